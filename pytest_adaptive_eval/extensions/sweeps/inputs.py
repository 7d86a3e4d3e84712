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
from pytest_adaptive_eval.file_hashes import FileHashes, stamp_of
from pytest_adaptive_eval.models import resolve
from pytest_adaptive_eval.plugin.state import STATE, EvaluationTest
from pytest_adaptive_eval.records.parts import plain
from pytest_adaptive_eval.text import shown_address

#: Environment variable with the folder of the cell, and the folder in it where each process writes its part.
CELL, PARTS = "ADAPTIVE_EVAL_SWEEP_CELL", "inputs"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SYSTEM = ("/proc/", "/sys/", "/dev/", f"{sysconfig.get_path('stdlib')}/")
_INSTALLED = frozenset({"site-packages", "dist-packages", "__pycache__"})


class CellInputs(msgspec.Struct):
    """What the run of a cell rests on.

    Args:
        facts: Versions, tests and settings; empty for a process that does not collect tests.
        files: The file or folder that a path led to, and the SHA-256 of a file, by the path; None if it changed.
        unknown: Judges, interviewers and members of panels of which no setting says what weights answer.
    """

    facts: dict[str, Any] = {}
    files: dict[str, tuple[str, str | None]] = {}
    unknown: list[str] = []


class _Opened:
    """Audit hook that keeps the stamps of files that this process reads, and the names of those that it writes."""

    def __init__(self) -> None:
        self.read: dict[str, list[int]] = {}
        self.written: set[str] = set()

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self.note(arguments[0], writes=bool(arguments[2] & _WRITES))
        elif event in ("os.listdir", "os.scandir", "sqlite3.connect"):
            self.note(arguments[0])

    def note(self, path: Any, *, writes: bool = False) -> None:
        """Note a path, if it is one and something is there."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 -- of bytes too
            if writes:
                self.written.add(name)
            elif name not in self.read:
                self.read[name] = stamp_of(Path(name))

    def note_modules(self) -> None:
        """Note the sources of modules, which Python does not open where it has compiled them."""
        for module in list(sys.modules.values()):
            self.note(vars(module).get("__file__") if hasattr(module, "__dict__") else None)


def kept_hashes(folder: Path) -> FileHashes:
    """Return the hashes of checkpoint files that a cell's run kept."""
    return FileHashes(folder / "cache" / "checkpoint-hashes.json")


def look_at(path: str, hashes: FileHashes, stamp: Sequence[int] | None = None) -> tuple[str, str | None]:
    """Return where a path leads, and the hash of a file there; None if the file has another stamp by now."""
    target = Path(os.path.realpath(path))
    if not target.is_file():
        return str(target), ""
    if stamp is not None and stamp_of(target) != stamp:
        return str(target), None
    return str(target), hashes.of(target)


class InputsPlugin:
    """Hooks that write the inputs of this process to the folder of the cell."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._inputs = CellInputs()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep the tests, and the settings of evaluations and gates."""
        _OPENED.note_modules()
        config, state = session.config, session.config.stash[STATE]
        self._inputs.facts = plain(
            {
                "versions": [sys.version, pytest.__version__, __version__],
                "options": os.environ.get("PYTEST_ADDOPTS", ""),
                "ini": str(config.inipath),
                "tests": [item.nodeid for item in session.items],
                "evaluations": [_settings(node) for node in state.evaluations],
            }
        )
        self._inputs.unknown = list(dict.fromkeys(_unknown_models(state.evaluations)))

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Write the part of this process."""
        _OPENED.note_modules()
        _OPENED.note(config.inipath)
        hashes = kept_hashes(self._folder)
        for path, stamp in list(_OPENED.read.items()):
            if self._counts(path):
                with contextlib.suppress(OSError):  # a temporary file is gone
                    self._inputs.files[path] = look_at(path, hashes, stamp)
        part = self._folder / PARTS / f"{os.getpid()}.json"
        part.parent.mkdir(exist_ok=True)
        part.write_bytes(msgspec.json.encode(self._inputs))

    def _counts(self, path: str) -> bool:
        installed = path.startswith(_SYSTEM) or not _INSTALLED.isdisjoint(Path(path).parts)
        return not installed and path not in _OPENED.written and not Path(path).is_relative_to(self._folder)


def _settings(node: EvaluationTest) -> list[Any]:
    """Return settings that a test may compute, such as from the environment."""
    evaluation, bank = node.evaluation, node.evaluation.question_bank
    conditions = [condition.to_json() for condition in node.gate_plan.conditions]
    content = "" if bank is None else bank.content_hash
    return [node.nodeid, evaluation.name, evaluation.most_questions, content, conditions]


def _unknown_models(evaluations: Sequence[EvaluationTest]) -> Iterator[str]:
    """Yield the models besides subjects whose weights nobody knows."""
    for node in evaluations:
        for spec, options, _ in node.evaluation.other_models():
            if resolve(spec)[0].remote and not options.get("revision"):
                yield shown_address(spec)


_OPENED = _Opened()
if CELL in os.environ:  # a process of a cell
    sys.addaudithook(_OPENED)


def pytest_configure(config: pytest.Config) -> None:
    """Register the hooks for the cell of this process."""
    config.pluginmanager.register(InputsPlugin(Path(os.environ[CELL])), "adaptive-eval-sweep-inputs")
