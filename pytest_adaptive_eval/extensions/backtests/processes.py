"""Work in parts on several processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from pytest_adaptive_eval.errors import ConfigError

Part = TypeVar("Part")
Result = TypeVar("Result")


def in_processes(
    process_part: Callable[[Any, Part], Result], shared: Any, work: Sequence[Part], jobs: int
) -> Iterator[Result]:
    """Yield the result of every part of some work, in order, whatever the number of processes.

    Args:
        process_part: A function of a module, of what all parts share and of one part.
        shared: Sent to each process once.
        jobs: Processes; this one alone where 1 is enough.

    Raises:
        ConfigError: A process died.
    """
    if min(jobs, len(work)) <= 1:
        for part in work:
            yield process_part(shared, part)
        return
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import active_children, get_context

    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    others = set(active_children())
    pool = ProcessPoolExecutor(min(jobs, len(work)), get_context("spawn"), _start, (shared,))
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
