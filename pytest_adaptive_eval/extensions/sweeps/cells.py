"""Cells of a sweep: one checkpoint on one evaluation file with one seed, and their files on disk."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.outputs import replacing

#: File of a cell's folder that says how the cell ended.
_END = "cell.json"
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class SweptModel:
    """A model of a sweep.

    Args:
        name: Unique in the sweep.
        model: Text for ``--adaptive-eval-model``.
        path: Its folder, or file of recorded answers; None for a model on a server.
    """

    name: str
    model: str
    path: Path | None

    @property
    def step(self) -> int | None:
        """Training step: the last number in the name, None without one."""
        numbers = _NUMBER.findall(self.name)
        return int(numbers[-1]) if numbers else None

    @property
    def training_run(self) -> str:
        """Name without the step, which checkpoints of one training run share."""
        numbers = [*_NUMBER.finditer(self.name)]
        return f"{self.name[: numbers[-1].start()]}*{self.name[numbers[-1].end() :]}" if numbers else self.name


@dataclass(frozen=True, slots=True)
class EvaluationFile:
    """A file of evaluations, or some tests in it."""

    name: str
    argument: str
    path: Path


@dataclass(frozen=True, slots=True)
class Cell:
    """One checkpoint on one file of evaluations with one seed."""

    checkpoint: SweptModel
    evaluation: EvaluationFile
    seed: int

    @property
    def name(self) -> str:
        """Name in lines of the log."""
        return f"{self.checkpoint.name} x {self.evaluation.name}, seed {self.seed}"

    @property
    def key(self) -> str:
        """Name of the cell's folder, the same on every machine."""
        names = (self.checkpoint.name, self.evaluation.name, str(self.seed))
        digest = hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]
        slug = "--".join(re.sub(r"[^0-9A-Za-z._-]+", "-", name)[-40:].strip("-.") for name in names)
        return f"{slug}--{digest}"


@dataclass(frozen=True, slots=True)
class Job:
    """One cell as a process runs it.

    Args:
        base: Working folder of the command.
        arguments: Of pytest, without the ones that name the cell's folder.
        fingerprint: Hash of everything known beforehand that the cell's result depends on.
        environment: Variables that the process gets unless they are set.
    """

    key: str
    folder: Path
    base: Path
    arguments: tuple[str, ...]
    fingerprint: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellEnd:
    """End of a cell.

    Args:
        exit_status: Of pytest; None if the process, its worker or its node died.
        reason: Reason for a missing verdict, else empty.
        started: ISO 8601, UTC.
        seconds: Of the last process.
        attempts: Processes that were started for it, by this sweep and earlier ones.
        gates: Name, evaluation, outcome and sentence of each gate.
        interviews: See `summary_of`.
    """

    key: str
    fingerprint: str
    exit_status: int | None = None
    reason: str = ""
    host: str = ""
    started: str = ""
    seconds: float = 0.0
    attempts: int = 1
    gates: Sequence[Mapping[str, Any]] = ()
    interviews: Sequence[Mapping[str, Any]] = ()
    version: str = ""

    @property
    def died(self) -> bool:
        """Whether the process, its worker or its node died; the cell then runs again."""
        return self.exit_status is None

    @property
    def finished(self) -> bool:
        """Whether the cell has its verdicts; it then never runs again."""
        return self.exit_status in (0, 1) and not self.reason


def write_end(folder: Path, end: CellEnd) -> None:
    """Write how a cell ended, atomically."""
    with replacing(folder / _END, durable=True) as file:
        file.write(json.dumps(asdict(end)).encode("ascii"))


def read_end(folder: Path) -> CellEnd | None:
    """Return how a cell ended, None if it has not, or if the file has another version."""
    try:
        data = json.loads(read_regular(folder / _END))
        return CellEnd(**data)
    except (OSError, ValueError, TypeError):
        return None
