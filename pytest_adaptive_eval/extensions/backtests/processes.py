"""Work in parts, on several processes: the same whatever their number."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from pytest_adaptive_eval.cli.options import INTERRUPTED, PASSED, check_writable
from pytest_adaptive_eval.cli.screen import save, say, screen, width
from pytest_adaptive_eval.errors import ConfigError


class Mergeable(Protocol):
    """Result to which results of the same class can be added."""

    def merge(self, other: Self) -> None:
        """Add the result of another part."""


class Reportable(Mergeable, Protocol):
    """Mergeable result of a backtest."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""


Shared = TypeVar("Shared")
Reported = TypeVar("Reported", bound=Reportable)
Part = TypeVar("Part")
Result = TypeVar("Result", bound=Mergeable)


def check_results(options: argparse.Namespace, inputs: Iterable[Path | None]) -> None:
    """Refuse files of results that cannot be written or are inputs."""
    for flag, path in (("--json", options.json), ("--plot", options.plot)):
        if path is not None:
            check_writable(flag, path, inputs)


def run_backtest(
    process_part: Callable[[Shared, Part], Reported],
    shared: Shared,
    work: Sequence[Part],
    options: argparse.Namespace,
    part_name: str,
    *,
    draw: Callable[[Mapping[str, Any]], str],
    lines: Callable[[Mapping[str, Any], int], list[str]],
) -> int:
    """Backtest every part, and keep, draw and print the merged result; returns the exit code.

    Args:
        process_part, shared, work, part_name: See `merged_parts`.
        options: ``json`` gets the result so far after each part, ``plot`` the picture; ``jobs`` is the number of
            processes.
        lines: Returns the tables of a result, given the columns of the screen.
    """

    def keep(total: Reported, done: int) -> None:
        if options.json is not None:
            complete = done == len(work)
            save(options.json, {**total.to_json(), "complete": complete}, complete=complete)

    total, done = merged_parts(process_part, shared, work, options.jobs, part_name, keep)
    keep(total, done)
    result = total.to_json()
    if options.plot is not None:
        options.plot.write_text(draw(result), encoding="utf-8")
    say(lines(result, width()))
    return PASSED if done == len(work) else INTERRUPTED


def merged_parts(
    process_part: Callable[[Shared, Part], Result],
    shared: Shared,
    work: Sequence[Part],
    jobs: int,
    part_name: str,
    keep: Callable[[Result, int], None],
) -> tuple[Result, int]:
    """Do every part of some work, in order, and merge the results; Ctrl-C ends it after the first part.

    Args:
        process_part: A function of a module, of what all parts share and of one part.
        shared: Sent to each process once.
        work: At least one part.
        jobs: Processes; this one alone where 1 is enough.
        keep: Called after each part with the result so far and the number of its parts.
    """
    count = min(jobs, len(work))
    results: Iterator[Result] = (
        (process_part(shared, part) for part in work)
        if count == 1
        else _in_processes(process_part, shared, work, count)
    )
    screen.progress(f"interviewing, {part_name} 1 of {len(work)}")
    total = next(results)
    done = 1
    try:
        while done < len(work):
            keep(total, done)
            screen.progress(f"interviewing, {part_name} {done + 1} of {len(work)}")
            total.merge(next(results))
            done += 1
    except KeyboardInterrupt:
        screen.say(f"adaptive-eval: interrupted; the results are of {done} of {len(work)} {part_name}s")
    screen.progress("")
    return total, done


def _in_processes(
    process_part: Callable[[Shared, Part], Result], shared: Shared, work: Sequence[Part], jobs: int
) -> Iterator[Result]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    others = set(active_children())
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start, (shared,))
    try:
        for name in before:
            os.environ.setdefault(name, "1")  # of the processes to come: one thread each
        yield from pool.map(partial(_shared_part, process_part), work)
    except BrokenProcessPool:
        raise ConfigError(f"--jobs {jobs}: a process died, of too little memory perhaps: use fewer") from None
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
        for child in set(active_children()) - others:  # after Ctrl-C, or an error in one, they would go on
            child.terminate()
        pool.shutdown(cancel_futures=True)


_shared: list[Any] = []


def _start(shared: Any) -> None:
    """Prepare a process of the pool, which ignores Ctrl-C: the main process ends the others."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _shared[:] = [shared]


def _shared_part(process_part: Callable[[Any, Any], Any], part: Any) -> Any:
    return process_part(_shared[0], part)
