"""Pytest plugin of a sweep's processes: it writes down what the run of a cell rests on.

Every file that Python opens is noted as it is opened, and every module that is loaded. Files of installed packages, and
files that the process wrote itself, do not count.
"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.file_hashes import stamp_of
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.plugin.state import STATE, EvaluationTest
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.text import shown_address

#: Environment variable with the folder where each process of a cell writes its part.
PARTS = "ADAPTIVE_EVAL_SWEEP_INPUTS"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_READS = ("os.listdir", "os.scandir", "sqlite3.connect")
_SYSTEM = ("/proc/", "/sys/", "/dev/", f"{sysconfig.get_path('stdlib')}/")
_INSTALLED = frozenset({"site-packages", "dist-packages", "__pycache__"})


class Inputs(msgspec.Struct):
    """Inputs of one process, or of all processes of a run.

    Args:
        facts: Versions, tests and settings; empty for a process that collects no tests.
        unknown: Judges, interviewers and members of panels whose weights no setting states.
        files: Stamps of files and folders by path, as they were first read.
    """

    facts: dict[str, Any] = {}
    unknown: list[str] = []
    files: dict[str, list[int]] = {}


_INPUTS, _WRITTEN = Inputs(), set[str]()


def _note(path: Any, *, writes: bool = False) -> None:
    """Note a path, if it is one and something is there."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 -- of bytes too
        if writes:
            _WRITTEN.add(name)
        elif name not in _INPUTS.files:
            _INPUTS.files[name] = stamp_of(Path(name))


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open":
        _note(arguments[0], writes=bool(arguments[2] & _WRITES))
    elif event in _READS:
        _note(arguments[0])


def _note_modules() -> None:
    """Note the sources of modules, which Python does not open where it has compiled them."""
    for module in list(sys.modules.values()):
        _note(getattr(module, "__file__", None))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the tests, and settings that a test may compute, such as from the environment."""
    _note_modules()
    config = session.config
    evaluations = session.config.stash[STATE].evaluations
    _INPUTS.unknown = list(dict.fromkeys(_unknown_models(evaluations)))
    _INPUTS.facts = plain(
        {
            "versions": [sys.version, pytest.__version__, __version__],
            "options": os.environ.get("PYTEST_ADDOPTS", ""),
            "ini": str(config.inipath),
            "tests": [item.nodeid for item in session.items],
            "budgets": [node.evaluation.most_questions for node in evaluations],
            "gates": [gate.to_json() for node in evaluations for gate in node.gate_plan.conditions],
        }
    )


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the part of this process."""
    _note_modules()
    _note(config.inipath)
    folder = Path(os.environ[PARTS])
    _INPUTS.files = {path: stamp for path, stamp in _INPUTS.files.items() if _counts(path, folder.parent)}
    folder.mkdir(exist_ok=True)
    (folder / f"{os.getpid()}.json").write_bytes(msgspec.json.encode(_INPUTS))


def _counts(path: str, cell: Path) -> bool:
    if path in _WRITTEN or path.startswith(_SYSTEM):
        return False
    return _INSTALLED.isdisjoint(Path(path).parts) and not Path(path).is_relative_to(cell)


def _unknown_models(evaluations: Sequence[EvaluationTest]) -> Iterator[str]:
    """Yield the models besides subjects whose weights nobody knows."""
    for node in evaluations:
        for spec, options, _ in node.evaluation.other_models():
            if resolve(spec)[0].remote and not options.get("revision"):
                yield shown_address(spec)


if PARTS in os.environ:  # in a process of a cell
    sys.addaudithook(_audit)
