"""Run the command of one call, and end it when the run that began it ends.

``python -I supervisor.py FOLDER`` uses the standard library alone. The run holds the other end of its standard input.
When the run closes that end, or is killed, the harness gets SIGTERM, and SIGKILL after its grace, with its whole
process group. Nothing of that group is left when this process ends.

The folder holds

- ``call.json``: the command's words, and the grace in seconds;
- ``group``: the number of the harness's process group, once it runs;
- ``log.txt``: output of the harness;
- ``ended.json``: its exit status.

This process holds the lock on a free call that its run has taken, so the next call waits for the end of this one.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Seconds between two looks at the harness and the run.
PERIOD = 0.05
#: Request of prctl(2): the signal to this process when its parent ends.
_PR_SET_PDEATHSIG = 1


def supervise(folder: Path, parent: int) -> None:
    """Run the command until it ends, or until the run does not want it any more."""
    call = json.loads((folder / "call.json").read_text(encoding="utf-8"))
    with (folder / "log.txt").open("ab") as log:
        try:
            harness = subprocess.Popen(
                call["words"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=_end_with_parent,
            )
        except OSError as error:
            log.write(f"{error}\n".encode())
            _write(folder / "ended.json", json.dumps({"exit_status": None}))
            return
    _write(folder / "group", str(harness.pid))
    try:
        while harness.poll() is None and _is_wanted(parent):
            pass
        if harness.poll() is None:
            _signal(harness.pid, signal.SIGTERM)
            _wait(harness, call["grace"])
    finally:
        _signal(harness.pid, signal.SIGKILL)
        harness.wait()
        _write(folder / "ended.json", json.dumps({"exit_status": harness.returncode}))


def _is_wanted(parent: int) -> bool:
    """Wait a moment, and return whether the run still lives and holds its end of the pipe."""
    readable, _, _ = select.select([sys.stdin], [], [], PERIOD)
    if readable and not os.read(sys.stdin.fileno(), 1):
        return False
    return os.getppid() == parent


def _wait(harness: subprocess.Popen[bytes], grace: float) -> None:
    """Wait until no process of the group is left, at most the grace: a child may still write its results."""
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        harness.poll()
        if not _signal(harness.pid, 0):
            return
        time.sleep(PERIOD)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group, and return whether it has a process."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # of macOS, for a group of dead processes
        return False
    return True


def _end_with_parent() -> None:
    """Ask the system to kill the harness when this process is killed, if it supports that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _write(path: Path, text: str) -> None:
    """Write a file in one step: the run reads it meanwhile."""
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # a handler of Python's, which the harness does not inherit
    supervise(Path(sys.argv[1]), int(sys.argv[2]))
