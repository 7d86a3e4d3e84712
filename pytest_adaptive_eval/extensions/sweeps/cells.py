"""Cells of a sweep: one checkpoint on one file of evaluations, run as a pytest process."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.evaluation.toml import parse_toml
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.text import shown_address
from pytest_adaptive_eval.typed_tables import Index, Table, read_table

RECORD, OUTPUT = "record.json", "output.txt"
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
        """Return the record of a cell with a verdict that is newer than all that it was made from, else None."""
        path = self.folder / RECORD
        try:
            record = read_run(path)
        except AdaptiveEvalError:
            return None
        modified = path.stat().st_mtime
        newer = any(file.stat().st_mtime > modified for file in self._inputs(record) if file.is_file())
        return None if newer or record.exit_status not in (0, 1) else record

    def _inputs(self, record: RunRecord) -> Iterator[Path]:
        """Yield the files of the checkpoint, the evaluations and the banks."""
        banks = [interview.bank.path for interview in record.interviews if interview.bank.path]
        specs = [self.model.removeprefix(_REPLAY).partition("#")[0], self.evaluation.partition("::")[0], *banks]
        for spec in filter(None, specs):
            path = self.base / spec
            yield path
            yield from path.rglob("*")


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
    models = [model for text in table.checkpoints for model in _models(text, base)]
    evaluations = [file for text in table.evaluations for file in _files(text, base, "evaluations")] or [""]
    cells = [
        Cell(name, model, evaluation, tuple(table.arguments), base, base / table.folder)
        for name, model in _unique(models)
        for evaluation in evaluations
    ]
    return table, [replace(cell, folder=cell.folder / "cells" / _slug(cell)) for cell in cells]


def _models(text: str, base: Path) -> list[str]:
    """Return the models that a text names; a pattern names one for each folder or file."""
    if "://" in text:
        return [text]
    prefix = _REPLAY if text.startswith(_REPLAY) else ""
    pattern, sign, row = text.removeprefix(prefix).partition("#")
    return [f"{prefix}{path}{sign}{row}" for path in _files(pattern, base, "checkpoints")]


def _files(text: str, base: Path, key: str) -> list[str]:
    pattern, colons, test = text.partition("::")
    anchor = Path(pattern).anchor
    paths = [*Path(anchor).glob(pattern.removeprefix(anchor))] if anchor else [*base.glob(pattern)]
    if not paths:
        raise ConfigError(f"{key} {shown_address(text)!r}: nothing matches it in {base}; correct the pattern")
    ordered = sorted(map(str, paths), key=lambda path: [int(x) if x.isdigit() else x for x in _NUMBER.split(path)])
    return [f"{os.path.relpath(path, base) if not anchor else path}{colons}{test}" for path in ordered]


def _unique(models: Sequence[str]) -> list[tuple[str, str]]:
    """Return each model with the shortest name that no other has: its last part, or all of it."""
    once = list(dict.fromkeys(models))
    short = {model: shown_address(model).removeprefix(_REPLAY).rpartition("/")[2] for model in once}
    counts = Counter(short.values())
    return [(short[model] if counts[short[model]] == 1 else shown_address(model), model) for model in once]


def _slug(cell: Cell) -> str:
    """Return the name of a cell's folder: another model, evaluation or argument has another folder."""
    parts = (cell.model, cell.evaluation, *cell.arguments)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    readable = re.sub(r"[^0-9A-Za-z._-]+", "-", f"{cell.name}--{cell.evaluation}")[-80:].strip("-.")
    return f"{readable}--{digest}"


def run_cell(cell: Cell, environment: Mapping[str, str] = MappingProxyType({})) -> int:
    """Run a cell to its end, from the answers that an earlier process of it kept.  Return the exit status of pytest."""
    cell.folder.mkdir(parents=True, exist_ok=True)
    record = cell.folder / RECORD
    record.unlink(missing_ok=True)
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval"),
        *(f"--adaptive-eval-model={cell.model}", f"--adaptive-eval-dir={cell.folder}"),
        f"--adaptive-eval-record={record}",
        *cell.arguments,
        *([cell.evaluation] if cell.evaluation else []),
    ]
    with (cell.folder / OUTPUT).open("wb") as output:
        return subprocess.run(
            command,
            cwd=cell.base,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            check=False,
        ).returncode
