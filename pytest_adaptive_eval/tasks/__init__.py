"""Seeded task families with graded difficulty, whose answers code computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.tasks import (
    coding,
    distortions,
    graphs,
    instructions,
    numbers,
    reading,
    retelling,
    scenes,
    scrambled,
    strings,
    text,
)
from pytest_adaptive_eval.tasks.family import Content, Mark, Picture, Question, Runner, TaskFamily

__all__ = ["FAMILIES", "Content", "Mark", "Picture", "Question", "Runner", "TaskFamily", "families"]

_MODULES = (text, scenes, distortions, scrambled, strings, numbers, graphs, coding, instructions, reading, retelling)
#: Built-in families by name.
FAMILIES: Mapping[str, TaskFamily] = MappingProxyType(
    {family.name: family for module in _MODULES for family in module.FAMILIES}
)


def families(
    registered: Iterable[TaskFamily] = FAMILIES.values(), runner: Runner | None = None
) -> Mapping[str, TaskFamily]:
    """Return task families by name.

    Args:
        registered: Results of the hook ``pytest_adaptive_eval_task_families``; the built-in families when omitted.
        runner: Runs answers that are code. Without it such answers have the status ``not_run``.

    Raises:
        ConfigError: An entry is not a `TaskFamily`, or two families have one name.
    """
    by_name = {}
    for family in registered:
        if not isinstance(family, TaskFamily):
            raise ConfigError(f"pytest_adaptive_eval_task_families gave {family!r:.80}, expected a TaskFamily")
        if family.name in by_name:
            raise ConfigError(f"there are two task families called {family.name!r}: rename yours")
        if runner is not None:
            family = replace(family, runner=runner)
        by_name[family.name] = family
    return MappingProxyType(by_name)
