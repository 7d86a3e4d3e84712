"""``adaptive-eval sweep``: a grid of checkpoints and evaluations."""

from __future__ import annotations

import argparse
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, parse_count
from pytest_adaptive_eval.cli.screen import say
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd
    from pytest_adaptive_eval.records.run_record import RunRecord

#: Times that Ray runs a cell again whose worker or node died; the cell goes on from its journal.
_RETRIES = 3


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sweep", metavar="FILE", type=Path, help="TOML file with checkpoints and evaluations")
    add("--jobs", metavar="N", type=parse_count, default=1, help="cells at once on this machine (%(default)s)")
    text = "leave finished cells as they are though nobody knows whether the weights behind a server's name changed"
    add("--resume", action="store_true", help=text)
    text = "run the cells on a Ray cluster at this address; without one, on a local cluster that is started"
    add("--ray", metavar="ADDRESS", nargs="?", const="local", help=text)


def _run(options: argparse.Namespace) -> int:
    """Run the cells that have no verdict yet; returns 0 if every cell passed."""
    from pytest_adaptive_eval.extensions.sweeps.cells import OUTPUT, read_sweep
    from pytest_adaptive_eval.outputs import make_private

    table, cells = read_sweep(options.sweep)
    folder = options.sweep.absolute().parent / table.folder
    make_private(folder)
    say([f"{counted(len(cells), 'cell')}; results: {folder}"])
    run = _on_ray if options.ray else _here
    before = 0
    for cell, end in run(cells, table.gpus, options):
        before += end.before
        record = cell.record()
        if record is not None:
            outcomes = [gate.outcome.value for gate in record.gates]
        else:
            outcomes = []
        sentence = ", ".join(outcomes) or f"pytest ended with {end.status}, see {cell.folder / OUTPUT}"
        if end.before:
            sentence += ", finished before"
        if end.unknown:
            sentence += f"; whether the weights of {', '.join(end.unknown)} changed since is not known (--resume)"
        say([f"{cell.title}: {sentence}"])
    say([f"{before} of {counted(len(cells), 'cell')} finished before"])
    records = [(cell, cell.record()) for cell in cells]
    finished = _name_apart([(cell, record) for cell, record in records if record is not None])
    if finished:
        _merge(finished, folder / "record.json")
        say([f"record: {folder / 'record.json'}", f"pages: adaptive-eval report --from {folder} --index DIR"])
    passed = len(finished) == len(cells) and all(record.exit_status == 0 for record in finished)
    if passed:
        return PASSED
    return NOT_PASSED


def _here(cells: Sequence[Cell], gpus: int, options: argparse.Namespace) -> Iterator[tuple[Cell, CellEnd]]:
    """Run cells on this machine, and yield each when it has ended."""
    from pytest_adaptive_eval.extensions.sweeps.cells import run_cell

    slots: queue.SimpleQueue[int] = queue.SimpleQueue()
    for slot in range(options.jobs):
        slots.put(slot)

    def run(cell: Cell) -> CellEnd:
        slot = slots.get()
        devices = ",".join(str(slot * gpus + number) for number in range(gpus))
        try:
            return run_cell(cell, {"CUDA_VISIBLE_DEVICES": devices} if gpus else {}, resume=options.resume)
        finally:
            slots.put(slot)

    with ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(run, cell): cell for cell in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _on_ray(cells: Sequence[Cell], gpus: int, options: argparse.Namespace) -> Iterator[tuple[Cell, CellEnd]]:
    """Run cells as tasks of a Ray cluster whose nodes see the same files, and yield each when it has ended."""
    from pytest_adaptive_eval.extensions.sweeps.cells import CellEnd, run_cell

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ConfigError("--ray needs Ray: pip install pytest-adaptive-eval[ray]") from None
    try:
        ray.init(address=options.ray, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise ConfigError(
            f"--ray {options.ray}: no cluster can be reached there ({error}); check the address"
        ) from None
    try:
        task = ray.remote(run_cell).options(num_cpus=1, num_gpus=gpus, max_retries=_RETRIES)
        running = {task.remote(cell, resume=options.resume): cell for cell in cells}
        while running:
            ended, _ = ray.wait(list(running), num_returns=1)
            try:
                end = ray.get(ended[0])
            except ray.exceptions.RayError:  # its worker or node died too often
                end = CellEnd(-1)
            yield running.pop(ended[0]), end
    finally:
        ray.shutdown()


def _name_apart(finished: Sequence[tuple[Cell, RunRecord]]) -> list[RunRecord]:
    """Return the cells' records with the checkpoint in the names of their evaluations, which makes them unique.

    An evaluation keeps its own name, by which a history correlates subjects. Where files share it, it gets its file,
    and where checkpoints share a subject's name, that becomes the checkpoint's.
    """
    files: dict[str, set[str]] = {}
    checkpoints: dict[str, set[str]] = {}
    for cell, record in finished:
        for entry in record.evaluations:
            files.setdefault(entry.name, set()).add(cell.evaluation)
            checkpoints.setdefault(entry.subject.name, set()).add(cell.name)
    for cell, record in finished:
        names = {entry.name for entry in record.evaluations}
        for entry in record.evaluations:
            entry.own_name = entry.evaluation_name
            if len(files[entry.name]) > 1:
                entry.own_name += f", {cell.evaluation}"
            if entry.bank and len(checkpoints[entry.subject.name]) > 1:
                entry.subject = replace(entry.subject, name=cell.name)
            entry.name += f" ({cell.name})"
        for gate in record.gates:
            if gate.interview in names:
                gate.interview += f" ({cell.name})"
    return [record for _, record in finished]


def _merge(records: Sequence[RunRecord], path: Path) -> None:
    from pytest_adaptive_eval.records.run_files import new_run_id, write_record
    from pytest_adaptive_eval.records.run_record import merged

    write_record(path, merged(records, new_run_id(clock.now(), os.urandom(4))))


REGISTERED = (
    Verb(
        "sweep",
        "run a grid of checkpoints and evaluations",
        "Run each checkpoint of a sweep file on each of its evaluations, a pytest process each, and merge the records. "
        "A cell is run again unless its tests, settings and files are what they were at its verdict.",
        _add_arguments,
        _run,
        ("sweep sweep.toml --jobs 2",),
    ),
)
