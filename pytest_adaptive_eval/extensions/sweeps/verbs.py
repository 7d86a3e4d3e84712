"""``adaptive-eval sweep``: a grid of checkpoints, evaluations and seeds."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import INTERRUPTED, NOT_PASSED, PASSED, parse_count
from pytest_adaptive_eval.cli.screen import say, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.extensions.sweeps.cells import Cell
    from pytest_adaptive_eval.extensions.sweeps.checks import Signatures
    from pytest_adaptive_eval.extensions.sweeps.executors import Executor
    from pytest_adaptive_eval.extensions.sweeps.settings import Sweep

_SHARD = re.compile(r"([1-9]\d{0,5})/([1-9]\d{0,5})")


def _shard(text: str) -> tuple[int, int]:
    """Return number and count of a shard such as 2/8."""
    match = _SHARD.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r}, expected I/N such as 2/8, with I from 1 to N")
    return int(match[1]), int(match[2])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("sweep", metavar="FILE", type=Path, help="TOML file with checkpoints, evaluations, seeds and resources")
    add("--jobs", metavar="N", type=parse_count, help="most cells at once on this machine; as many as fit by default")
    text = "run the cells on a Ray cluster at this address; without one, on a local cluster that is started"
    add("--ray", metavar="ADDRESS", nargs="?", const="", help=text)
    add("--shard", metavar="I/N", type=_shard, help="run each Nth cell alone, from the Ith on")
    add("--keep-going", action="store_true", help="leave out cells that cannot start, and run the others")
    add("--report-only", action="store_true", help="run nothing: write record and page of the cells that ended")


def _run(options: argparse.Namespace) -> int:
    """Run the cells that have no verdict yet; returns 0 if every cell of this command passed."""
    from pytest_adaptive_eval.extensions.sweeps.checks import Signatures, startable
    from pytest_adaptive_eval.extensions.sweeps.settings import read_sweep

    if options.report_only and (options.shard or options.ray is not None):
        raise ConfigError("--report-only runs no cell: leave out --shard and --ray")
    if options.jobs and options.ray is not None:
        raise ConfigError("--jobs is for this machine, and Ray places the cells by [resources]: leave it out")
    sweep = read_sweep(options.sweep)
    if options.report_only:
        return PASSED if _report(sweep, sweep.cells) else NOT_PASSED
    signatures = Signatures(sweep.base)
    cells, complaints = startable(sweep, signatures, keep_going=options.keep_going)
    for complaint in complaints:
        screen.note(f"left out: {complaint}")
    chosen = cells if options.shard is None else cells[options.shard[0] - 1 :: options.shard[1]]
    interrupted = False
    try:
        ends_well = _drive(sweep, chosen, signatures, options)
    except KeyboardInterrupt:
        interrupted = True
    _report(sweep, sweep.cells)
    if interrupted:
        screen.say(
            "adaptive-eval: interrupted; finished cells and all answers are kept: run the command again to go on"
        )
        return INTERRUPTED
    return PASSED if ends_well and not complaints else NOT_PASSED


def _drive(sweep: Sweep, cells: Sequence[Cell], signatures: Signatures, options: argparse.Namespace) -> bool:
    """Run all cells; returns whether every one passed."""
    from pytest_adaptive_eval.extensions.sweeps.driver import SweepRun, job_of
    from pytest_adaptive_eval.extensions.sweeps.live import LiveTable
    from pytest_adaptive_eval.records.journal import make_private

    make_private(sweep.folder)
    jobs = [job_of(sweep, cell, signatures) for cell in cells]
    run = SweepRun(jobs, sweep.table.retries)
    earlier = f", {run.kept} finished before" if run.kept else ""
    say([f"{counted(len(cells), 'cell')}{earlier}; results: {sweep.folder}"])
    if run.waiting:
        executor = _executor(sweep, cells, signatures, options)
        table = LiveTable(cells, run.ends)
        try:
            run.drive(executor, table.ended, table.again, table.tick)
        finally:
            table.clear()
            executor.close()
    return all(end.finished and end.exit_status == 0 for end in run.ends.values())


def _executor(sweep: Sweep, cells: Sequence[Cell], signatures: Signatures, options: argparse.Namespace) -> Executor:
    if options.ray is not None:
        from pytest_adaptive_eval.extensions.sweeps.ray_executor import RayExecutor

        where, needs = str(sweep.path), sweep.table.resources
        return RayExecutor(needs, where, options.ray, sweep.folder, signatures.files(cells))
    from pytest_adaptive_eval.extensions.sweeps.executors import LocalExecutor

    return LocalExecutor(sweep.table.resources, str(sweep.path), options.jobs)


def _report(sweep: Sweep, cells: Sequence[Cell]) -> bool:
    """Write record and page of all cells of the sweep that ended, of any command; returns whether all passed."""
    from pytest_adaptive_eval.extensions.sweeps.cells import read_end
    from pytest_adaptive_eval.extensions.sweeps.driver import cell_folder, merge_cells
    from pytest_adaptive_eval.extensions.sweeps.matrix import Matrix
    from pytest_adaptive_eval.extensions.sweeps.page import write_sweep_page
    from pytest_adaptive_eval.records.pairs import all_pairs

    ends = {cell.key: end for cell in cells if (end := read_end(cell_folder(sweep.folder, cell))) is not None}
    finished = [cell for cell in cells if cell.key in ends and ends[cell.key].finished]
    record, page = sweep.folder / "record.json", sweep.folder / "sweep.html"
    merged = merge_cells(sweep.folder, finished, record)
    write_sweep_page(
        page,
        f"Sweep {sweep.path.parent.name if sweep.path.stem == 'sweep' else sweep.path.stem}",
        cells,
        ends,
        sweep.table.resources.gpus,
        all_pairs(merged.interviews) if merged is not None else (),
    )
    matrix = Matrix(cells, ends, sweep.table.resources.gpus)
    words = {"none": "without a gate", "waiting": "not ended"}
    say([", ".join(f"{n} {words.get(state, state)}" for state, n in sorted(matrix.states.items()))])
    say([f"best: {best.checkpoint} ({best.reason})" for best in matrix.best()[:1]])
    say([*([f"record: {record}"] if merged is not None else []), f"page: {page}"])
    return all(cell.key in ends and ends[cell.key].finished and ends[cell.key].exit_status == 0 for cell in cells)


REGISTERED = (
    Verb(
        "sweep",
        "run a grid of checkpoints, evaluations and seeds",
        "Run each checkpoint of a sweep file on each of its evaluations with each seed, a pytest process each. "
        "Cells that have their verdicts are not run again. Exit codes are as pytest's.",
        _add_arguments,
        _run,
        ("sweep sweep.toml --jobs 2",),
    ),
)
