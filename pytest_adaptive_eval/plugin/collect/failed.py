"""Ask again what a run got wrong: the questions of ``--adaptive-eval-failed`` by their node ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.questions import wrong_questions

FLAG = "--adaptive-eval-failed"


def failed_arguments(config: pytest.Config, name: str, folder: Path) -> list[str]:
    """Return the arguments of pytest that ask the questions to which a run has wrong answers, and nothing else.

    Args:
        name: Path of a record, or ``latest`` or an id in the history of `folder`.

    Raises:
        ConfigError: Files or tests are named too, the run has no wrong answer, or a question cannot be named.
    """
    worker = hasattr(config, "workerinput")  # of xdist, which always names what it collects
    if config.args_source is pytest.Config.ArgsSource.ARGS and not worker:
        raise ConfigError(f"{FLAG} says what is asked: remove {' '.join(config.args)}")
    record = _run_of(config.invocation_params.dir / name, name, folder)
    arguments = []
    for evaluation, nodeid in wrong_questions(record):
        file, sign, test = nodeid.partition("::")
        path = (config.rootpath / file).resolve()
        if not sign or not path.is_relative_to(config.rootpath) or not path.is_file():
            raise ConfigError(
                f"{FLAG}={name}: the questions of {evaluation!r} are of no file in {config.rootpath}, or of a test "
                "with other parameters: run it where the run was, or name them as FILE::TEST[ITEM]"
            )
        arguments.append(f"{path}::{test}")
    if not arguments:
        raise ConfigError(f"{FLAG}={name}: the run {record.run} has no wrong answer to a question")
    return arguments


def _run_of(path: Path, name: str, folder: Path) -> RunRecord:
    if path.suffix == ".json" or path.is_file():
        return read_run(path)
    return History(folder).find(name)
