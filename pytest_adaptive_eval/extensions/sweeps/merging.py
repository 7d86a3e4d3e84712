"""One record of all finished cells of a sweep."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.extensions.sweeps.cells import Cell
from pytest_adaptive_eval.extensions.sweeps.driver import cell_folder
from pytest_adaptive_eval.extensions.sweeps.running import RECORD
from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord, StudyRecord, merged
from pytest_adaptive_eval.records.runs import new_run_id, read_run, write_record


def merge_cells(folder: Path, cells: Iterable[Cell], path: Path) -> RunRecord | None:
    """Write one record of the cells' records, under the names of their checkpoints; None where there is none.

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
    """Return a cell's record in which evaluations have the cell in their names, so that all names differ."""
    mark = f" ({cell.checkpoint.name}, seed {cell.seed})"
    evaluations: list[InterviewRecord | StudyRecord] = [*record.interviews, *record.studies]
    names = {entry.name for entry in evaluations}
    for entry in evaluations:
        entry.name += mark
    for gate in record.gates:
        if gate.interview in names:
            gate.interview += mark
    return record
