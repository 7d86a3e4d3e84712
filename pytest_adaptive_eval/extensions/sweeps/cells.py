"""Cells of a sweep: one checkpoint on one file of evaluations, run as a pytest process."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import msgspec

from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.evaluation.toml import parse_toml
from pytest_adaptive_eval.extensions.sweeps import inputs as plugin
from pytest_adaptive_eval.extensions.sweeps.inputs import PARTS, Inputs
from pytest_adaptive_eval.file_hashes import FileHashes, stamp_of
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import RunRecord, knows_weights
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import Index, Table, read_table

RECORD, OUTPUT, INPUTS = "record.json", "output.txt", "inputs.json"
_REPLAY = "replay:"
_NUMBER = re.compile(r"(\d+)")


class SweepTable(Table, frozen=True, kw_only=True):
    """The file of a sweep.

    Args:
        checkpoints: Folders, replay:FILE or URL#MODEL; patterns such as runs/step-*.
        evaluations: Files of evaluations, as patterns; the whole project by default.
        arguments: Further arguments of pytest.
        gpus: GPUs of each cell; with 0 a cell sees all.
        folder: Folder of the results.
    """

    gone: ClassVar[Mapping[str, str]] = {
        "seeds": 'write arguments = ["--adaptive-eval-seed=1"] in a file for each seed',
        "retries": "run the command again, which goes on where it ended",
        "resources": "write gpus = N for each cell, and --jobs N",
    }

    checkpoints: list[str] = []
    evaluations: list[str] = []
    arguments: list[str] = []
    gpus: Index = 0
    folder: str = ".adaptive-eval-sweep"


@dataclass(frozen=True, slots=True)
class Cell:
    """One checkpoint on one file of evaluations.

    Args:
        name: Of the checkpoint, unique in the sweep.
        model: Text for ``--adaptive-eval-model``.
        evaluation: Argument of pytest; empty for the whole project.
        base: Working folder of the process.
        folder: Folder of its record, journal and output.
    """

    name: str
    model: str
    evaluation: str
    arguments: tuple[str, ...]
    base: Path
    folder: Path

    @property
    def title(self) -> str:
        """Name in lines of the command."""
        return f"{self.name} x {self.evaluation or 'all evaluations'}"

    def record(self) -> RunRecord | None:
        """Return the record of a cell with a verdict, else None."""
        try:
            record = read_run(self.folder / RECORD)
        except AdaptiveEvalError:
            return None
        if record.exit_status in (0, 1):
            return record
        return None


class CellInputs(msgspec.Struct):
    """Inputs of a cell's verdict, see `inputs.Inputs`.

    Args:
        files: Where a path led, and the SHA-256 of a file there; None for one that changed during the run.
    """

    facts: dict[str, Any]
    unknown: list[str]
    files: dict[str, tuple[str, str | None]]


class CellEnd(NamedTuple):
    """End of a cell.

    Args:
        status: Exit status of pytest.
        before: Whether an earlier sweep ran it, from the same inputs.
        unknown: Models that it was not asked again for, though nobody knows whether their weights changed.
    """

    status: int
    before: bool = False
    unknown: Sequence[str] = ()


def read_sweep(path: Path) -> tuple[SweepTable, list[Cell]]:
    """Read the file of a sweep, with the cells that it names.

    Raises:
        ConfigError: A key is malformed, or a pattern matches nothing.
    """
    _, data = parse_toml(path)
    table = read_table(SweepTable, data, str(path))
    if not table.checkpoints:
        raise ConfigError(f"{path}: no checkpoints; expected a list of folders, replay:FILE or URL#MODEL")
    base = path.absolute().parent
    models = []
    for text in table.checkpoints:
        for model in _models(text, base):
            models.append(model)
    evaluations = [file for text in table.evaluations for file in _files(text, base, "evaluations")] or [""]
    cells = []
    for name, model in _unique(models):
        for evaluation in evaluations:
            cells.append(Cell(name, model, evaluation, tuple(table.arguments), base, base / table.folder))
    return table, [replace(cell, folder=cell.folder / "cells" / _slug(cell)) for cell in cells]


def _models(text: str, base: Path) -> list[str]:
    """Return the models that a text names; a pattern names one for each folder or file."""
    if "://" in text:
        return [text]
    if text.startswith(_REPLAY):
        prefix = _REPLAY
    else:
        prefix = ""
    pattern, sign, row = text.removeprefix(prefix).partition("#")
    return [f"{prefix}{path}{sign}{row}" for path in _files(pattern, base, "checkpoints")]


def _files(text: str, base: Path, key: str) -> list[str]:
    pattern, colons, test = text.partition("::")
    anchor = Path(pattern).anchor
    if anchor:
        paths = [*Path(anchor).glob(pattern.removeprefix(anchor))]
    else:
        paths = [*base.glob(pattern)]
    if not paths:
        raise ConfigError(f"{key} {shown_address(text)!r}: nothing matches it in {base}; correct the pattern")
    ordered = sorted(map(str, paths), key=lambda path: [int(x) if x.isdigit() else x for x in _NUMBER.split(path)])
    return [f"{os.path.relpath(path, base) if not anchor else path}{colons}{test}" for path in ordered]


def _unique(models: Sequence[str]) -> list[tuple[str, str]]:
    """Return each model with the shortest name that no other has: its last part, or all of it."""
    once = list(dict.fromkeys(models))
    short = {}
    for model in once:
        short[model] = shown_address(model).removeprefix(_REPLAY).rpartition("/")[2]
    counts = Counter(short.values())
    return [(short[model] if counts[short[model]] == 1 else shown_address(model), model) for model in once]


def _slug(cell: Cell) -> str:
    """Return the name of a cell's folder: another model, evaluation or argument has another folder."""
    parts = (cell.model, cell.evaluation, *cell.arguments)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    readable = re.sub(r"[^0-9A-Za-z._-]+", "-", f"{cell.name}--{cell.evaluation}")[-80:].strip("-.")
    return f"{readable}--{digest}"


def run_cell(cell: Cell, environment: Mapping[str, str] = MappingProxyType({}), *, resume: bool = False) -> CellEnd:
    """Run a cell to its end, from the answers that an earlier process of it kept, unless its inputs are as they were.

    Args:
        environment: Variables of the process.
        resume: Leave models as they are whose weights nobody knows.
    """
    cell.folder.mkdir(parents=True, exist_ok=True)
    record = cell.record()
    inputs = cell.folder / INPUTS
    if record is not None and record.exit_status is not None and inputs.exists():
        before = msgspec.json.decode(read_regular(inputs), type=CellInputs)
        unknown = [*_unknown_subjects(record), *before.unknown]
        if (resume or not unknown) and _are_equal(cell, before, environment):
            return CellEnd(record.exit_status, True, unknown)
    for path in (cell.folder / RECORD, inputs):
        path.unlink(missing_ok=True)
    status, read = _run(cell, environment, OUTPUT, f"--adaptive-eval-record={cell.folder / RECORD}")
    hashes = _kept_hashes(cell)
    files = {path: _look_at(path, hashes, stamp) for path, stamp in read.files.items() if Path(path).exists()}
    inputs.write_bytes(msgspec.json.encode(CellInputs(read.facts, read.unknown, files)))
    return CellEnd(status)


def _are_equal(cell: Cell, before: CellInputs, environment: Mapping[str, str]) -> bool:
    """Return whether the files that a cell read are as they were, and collecting its tests gives the same."""
    hashes = _kept_hashes(cell)
    for path, recorded in before.files.items():
        if not Path(path).exists() or _look_at(path, hashes) != recorded:
            return False
    _, now = _run(cell, environment, "collection.txt", "--collect-only")
    return bool(now.facts) and now.facts == before.facts and now.files.keys() <= before.files.keys()


def _kept_hashes(cell: Cell) -> FileHashes:
    """Return the hashes of checkpoint files that the cell's run kept."""
    return FileHashes(cell.folder / "cache" / "checkpoint-hashes.json")


def _look_at(path: str, hashes: FileHashes, stamp: Sequence[int] | None = None) -> tuple[str, str | None]:
    """Return where a path leads, and the hash of a file there; None if the file has another stamp by now."""
    target = Path(path).resolve()
    if not target.is_file():
        return str(target), ""
    if stamp not in (None, stamp_of(target)):
        return str(target), None
    return str(target), hashes.of(target)


def _run(cell: Cell, environment: Mapping[str, str], output: str, *arguments: str) -> tuple[int, Inputs]:
    """Run pytest for a cell.  Return its exit status, and what its processes rest on."""
    parts = cell.folder / "inputs"
    shutil.rmtree(parts, ignore_errors=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", plugin.__name__),
        *("--adaptive-eval", f"--adaptive-eval-model={cell.model}", f"--adaptive-eval-dir={cell.folder}"),
        *(*arguments, *cell.arguments, *filter(None, [cell.evaluation])),
    ]
    with (cell.folder / output).open("wb") as stream:
        status = subprocess.run(
            command,
            cwd=cell.base,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment, PARTS: str(parts)},
            check=False,
        ).returncode
    whole = Inputs()
    for path in parts.glob("*.json"):
        part = msgspec.json.decode(path.read_bytes(), type=Inputs)
        whole.facts = whole.facts or part.facts
        whole.unknown = whole.unknown or part.unknown
        whole.files = part.files | whole.files
    return status, whole


def _unknown_subjects(record: RunRecord) -> list[str]:
    """Return the names of subjects whose weights nobody knows."""
    subjects = []
    for entry in record.evaluations:
        for subject in (entry.subject, *entry.members):
            subjects.append(subject)
    return list(dict.fromkeys(subject.name for subject in subjects if not knows_weights(subject)))
