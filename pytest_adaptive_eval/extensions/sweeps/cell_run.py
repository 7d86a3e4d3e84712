"""Run one cell to its end, the same for every executor."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval import __version__, clock
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.extensions.sweeps.cells import CellEnd, Job, read_end, write_end
from pytest_adaptive_eval.extensions.sweeps.summaries import summary_of
from pytest_adaptive_eval.records.journal import lock
from pytest_adaptive_eval.records.run_files import read_run

#: Record and output of a cell, in its folder.
RECORD, OUTPUT = "record.json", "output.txt"
#: Longest time in seconds for another process of the cell to end, such as one whose node was thought dead.
LOCK_WAIT = 60.0
_PERIOD = 0.05
_STATUSES = {
    2: "pytest was interrupted",
    3: "pytest had an internal error",
    4: "pytest refused the command",
    5: "pytest found no test",
}


def run_cell(
    job: Job, stop: threading.Event | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> CellEnd:
    """Run a cell's process and keep how it ended.

    The cell's folder is locked while a process of it lives anywhere. So two drivers, or a node that was thought dead,
    never ask at once. A cell that has its verdicts already is not run.

    Args:
        stop: Ends the process when it is set.
        environment: Variables that the process gets in any case, such as the GPUs of this cell.
    """
    started, begun = clock.now(), clock.elapsed()
    end = CellEnd(
        job.key,
        job.fingerprint,
        host=socket.gethostname(),
        started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        version=__version__,
    )
    job.folder.mkdir(parents=True, exist_ok=True)
    with _locked(job.folder, stop) as descriptor:
        if descriptor is None:
            return replace(end, reason=f"another process has run this cell for more than {LOCK_WAIT:.0f} s")
        earlier = read_end(job.folder)
        if earlier is not None and earlier.finished and earlier.fingerprint == job.fingerprint:
            return earlier
        if earlier is not None and earlier.fingerprint == job.fingerprint:
            if earlier.died and (judged := _recorded(earlier, job.folder)):
                write_end(job.folder, judged)
                return judged
            end = replace(end, attempts=earlier.attempts + 1)
        (job.folder / RECORD).unlink(missing_ok=True)  # before the new fingerprint: a record is of the one beside it
        write_end(job.folder, replace(end, reason="it has not ended"))
        status = _run_process(job, descriptor, stop, environment)
        end = _judged(replace(end, seconds=clock.elapsed() - begun), status, job.folder)
        write_end(job.folder, end)
    return end


@contextmanager
def _locked(folder: Path, stop: threading.Event | None) -> Iterator[int | None]:
    """Hold the lock of a cell's folder; yields None if another process has it."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        latest = clock.elapsed() + LOCK_WAIT
        while not (locked := lock(descriptor)) and clock.elapsed() < latest and not (stop and stop.is_set()):
            clock.sleep(_PERIOD)
        yield descriptor if locked else None
    finally:
        os.close(descriptor)


def _run_process(job: Job, lock_descriptor: int, stop: threading.Event | None, environment: Mapping[str, str]) -> int:
    """Run pytest in a process group that ends with this process; returns the exit code."""
    own_options = [f"--adaptive-eval-dir={job.folder}", f"--adaptive-eval-record={job.folder / RECORD}"]
    reading, writing = os.pipe()
    try:
        with (job.folder / OUTPUT).open("wb") as output:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "pytest_adaptive_eval.extensions.sweeps.cell_process", str(reading)),
                    *("--adaptive-eval", *own_options, *job.arguments),
                ],
                cwd=job.base,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**job.environment, **os.environ, **environment},
                pass_fds=(reading, lock_descriptor),
                start_new_session=True,
            )
        os.close(reading)
        reading = -1
        while process.poll() is None and not (stop and stop.is_set()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PERIOD if stop else None)
        with suppress(ProcessLookupError):  # also what it left behind
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait()
    finally:
        for descriptor in (reading, writing):
            if descriptor >= 0:
                os.close(descriptor)


def _judged(end: CellEnd, status: int, folder: Path) -> CellEnd:
    """Return the end of a cell whose process has ended, from its record."""
    if status < 0:
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        hint = ", of too little memory perhaps" if -status == signal.SIGKILL else ""
        return replace(end, reason=f"the process was ended by {name}{hint}")
    end, ended = replace(end, exit_status=status), _STATUSES.get(status, f"pytest ended with {status}")
    try:
        record = read_run(folder / RECORD)
    except AdaptiveEvalError:  # the last line of the output that says something
        lines = (folder / OUTPUT).read_text("utf-8", "replace").splitlines()
        written = [line.strip() for line in lines if any(map(str.isalnum, line))]
        errors = [line for line in written if line.startswith("ERROR")]
        return replace(end, reason=f"{ended}: {(errors or written or ['it wrote nothing'])[-1][:300]}")
    content: dict[str, Any] = summary_of(record)
    return replace(end, **(content if status in (0, 1) else {**content, "reason": ended}))


def _recorded(end: CellEnd, folder: Path) -> CellEnd | None:
    """Return the end of a cell that died after writing its record, else None."""
    try:
        record = read_run(folder / RECORD)
    except AdaptiveEvalError:
        return None
    if record.exit_status not in (0, 1):
        return None
    content: dict[str, Any] = summary_of(record)
    return replace(end, exit_status=record.exit_status, seconds=record.seconds, **content)
