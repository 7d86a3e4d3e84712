"""The file of tasks and document numbers that lm-evaluation-harness takes by ``--samples``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.harness import lmeval_ids
from pytest_adaptive_eval.extensions.harness.command import Command

_INCLUDE = "--include_path"
SECONDS = 600.0  #: For the harness to load its tasks.


def numbers_of(command: Command, tasks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the number of each document of tasks by its hash, from the harness's own environment.

    Raises:
        ConfigError: The harness cannot load the tasks.
    """
    words = [command.python(), lmeval_ids.__file__, _include_path(command.words), *tasks]
    errors = ""
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, env=command.environment(), timeout=SECONDS, check=False
        )
        errors = ended.stderr
        numbers: dict[str, dict[str, int]] = json.loads(ended.stdout.strip().rpartition("\n")[2])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        last = errors.strip().rpartition("\n")[2][:300]
        raise ConfigError(
            f"harness:{command.harness.name}: the tasks {', '.join(tasks)} cannot be loaded ({last}); try them with "
            "the harness itself"
        ) from None
    return numbers


def _include_path(words: Sequence[str]) -> str:
    """Return the folder of the user's own tasks in a command; empty without one."""
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == _INCLUDE:
            return following
        if word.startswith(f"{_INCLUDE}="):
            return word.partition("=")[2]
    return ""


def chosen(items: Sequence[str], numbers: Mapping[str, Mapping[str, int]]) -> dict[str, list[int]]:
    """Return the numbers of the documents of ids ``TASK:HASH``, by task and in order.

    The harness mislabels documents whose numbers are not in order, and runs all documents of a task without any.

    Raises:
        ConfigError: A task has no document of a hash.
    """
    by_task: dict[str, set[int]] = {}
    for item in items:
        task, _, digest = item.partition(":")
        number = numbers.get(task, {}).get(digest)
        if number is None:
            raise ConfigError(
                f"item {item!r}: the task {task!r} of the harness has no document of this hash; make the bank again "
                "from a log of this version of the task"
            )
        by_task.setdefault(task, set()).add(number)
    return {task: sorted(documents) for task, documents in by_task.items()}
