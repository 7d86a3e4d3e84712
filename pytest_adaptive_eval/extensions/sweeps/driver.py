"""Drive a sweep: finished cells stay, the others run, and cells whose process died run again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.extensions.sweeps.cell_run import RECORD
from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd, Job, read_end
from pytest_adaptive_eval.extensions.sweeps.checks import Signatures, fingerprint
from pytest_adaptive_eval.extensions.sweeps.executors import Executor
from pytest_adaptive_eval.extensions.sweeps.settings import Sweep
from pytest_adaptive_eval.records.run_files import new_run_id, read_run, write_record
from pytest_adaptive_eval.records.run_record import RunRecord, merged

#: Folder of the cells' folders, in that of the sweep.
CELLS = "cells"
#: Longest time in seconds between two looks at the executor.
_PERIOD = 0.5


def cell_folder(folder: Path, cell: Cell) -> Path:
    """Return the folder of a cell."""
    return folder / CELLS / cell.key


def job_of(sweep: Sweep, cell: Cell, signatures: Signatures) -> Job:
    """Return a cell as a process runs it."""
    arguments = (
        *("-q", "-p", "no:cacheprovider"),
        f"--adaptive-eval-model={cell.checkpoint.model}",
        f"--adaptive-eval-seed={cell.seed}",
        *sweep.table.arguments,
        cell.evaluation.argument,
    )
    return Job(
        cell.key,
        cell_folder(sweep.folder, cell),
        sweep.base,
        arguments,
        fingerprint(cell, sweep.table.arguments, signatures),
        {"OMP_NUM_THREADS": str(sweep.table.resources.cpus)},
    )


class SweepRun:
    """Cells of one command.

    Args:
        retries: Times that a cell whose process died is run again.

    Attributes:
        ends: By key, of the cells that ended.
        kept: Cells that had their verdicts before.
    """

    def __init__(self, jobs: Sequence[Job], retries: int) -> None:
        self.jobs: Mapping[str, Job] = {job.key: job for job in jobs}
        self.retries = retries
        self.ends: dict[str, CellEnd] = {}
        for job in jobs:
            end = read_end(job.folder)
            if end is not None and end.finished and end.fingerprint == job.fingerprint:
                self.ends[job.key] = end
        self.kept = len(self.ends)

    @property
    def waiting(self) -> list[str]:
        """Keys of the cells that have not ended."""
        return [key for key in self.jobs if key not in self.ends]

    def drive(
        self,
        executor: Executor,
        ended: Callable[[CellEnd], None],
        again: Callable[[CellEnd, int], None],
        tick: Callable[[Sequence[str]], None],
    ) -> None:
        """Run all cells that have not ended.

        Args:
            again: Takes a cell whose process died and which is run again, and the number of this retry.
            tick: Takes the keys of the running cells, several times a second.
        """
        for key in self.waiting:
            executor.submit(self.jobs[key])
        retried: Counter[str] = Counter()
        while len(self.ends) < len(self.jobs):
            for end in executor.wait(_PERIOD):
                if end.died and retried[end.key] < self.retries:
                    retried[end.key] += 1
                    again(end, retried[end.key])
                    executor.submit(self.jobs[end.key])
                    continue
                if end.died:
                    reason = f"{end.reason}; run {1 + self.retries} times, so it is given up"
                    end = replace(end, exit_status=3, reason=reason)
                self.ends[end.key] = end
                ended(end)
            tick(executor.running)


def merge_cells(folder: Path, cells: Iterable[Cell], path: Path) -> RunRecord | None:
    """Write one record of the cells' records, under the names of their checkpoints; None without records.

    Raises:
        JournalError: The record of a cell is damaged, or the file cannot be written.
    """
    records = [_named(read_run(cell_folder(folder, cell) / RECORD), cell) for cell in cells]
    if not records:
        return None
    record = merged(records, new_run_id(clock.now(), os.urandom(4)))
    write_record(path, record)
    return record


def _named(record: RunRecord, cell: Cell) -> RunRecord:
    """Return a cell's record with the cell in the names of its evaluations, which makes them unique."""
    mark = f" ({cell.checkpoint.name}, seed {cell.seed})"
    names = {entry.name for entry in record.evaluations}
    for entry in record.evaluations:
        entry.name += mark
    for gate in (*record.gates, *(part for suite in record.gates for part in suite.gates)):
        if gate.interview in names:
            gate.interview += mark
    return record
