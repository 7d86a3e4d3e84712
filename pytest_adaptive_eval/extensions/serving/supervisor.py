"""Keep a model server running for as long as any process leases it.

``python -I supervisor.py FOLDER`` is a process of its own, which outlives a killed run. It uses the standard library
alone, since it starts outside the run's environment of imports.

The folder holds

- ``lease``: each process that uses the server holds a shared lock on it, which the system releases when the process is
  killed;
- ``supervisor``: locked while the supervisor lives;
- ``command.json``: the command, its working directory and its port;
- ``status.json``: how often the server was started, and the exit code of its last end;
- ``healthy``: present once the server answered;
- ``log.txt``: output of the server.

The server is a process group. It is ended when no process leases it for `LINGER` seconds. A server that ends by itself
after it was healthy is started again, at most `MOST_RESTARTS` times.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

#: Seconds that the server keeps running without a lease.
LINGER = 3.0
#: Restarts of a server that ends by itself.
MOST_RESTARTS = 5
#: Seconds between two looks at the server and the leases.
PERIOD = 0.1
#: Seconds for the server to end when asked to, before it is killed.
GRACE = 10.0
#: Request of prctl(2): the signal to this process when its parent ends.
_PR_SET_PDEATHSIG = 1


def supervise(folder: Path) -> None:
    """Run the server until nobody leases it."""
    with (folder / "supervisor").open("a") as own_lock, (folder / "lease").open("a") as lease:
        fcntl.flock(own_lock, fcntl.LOCK_EX)
        command = json.loads((folder / "command.json").read_text(encoding="utf-8"))
        starts, free_since = 0, 0.0
        server = None
        exit_code = None
        with (folder / "log.txt").open("ab") as log:
            try:
                while True:
                    may_start = starts == 0 or ((folder / "healthy").exists() and starts <= MOST_RESTARTS)
                    if server is None and may_start:
                        server = _start(command, log)
                        exit_code = None
                        starts += 1
                        _write_status(folder, starts, server.pid, None)
                    if server is not None and server.poll() is not None:
                        exit_code = server.returncode
                        _end(server)
                        server = None
                        _write_status(folder, starts, None, exit_code)
                        log.write(f"\nthe server ended with exit code {exit_code}\n".encode())
                        log.flush()
                    if not _free(lease):
                        free_since = 0.0
                    elif not free_since:
                        free_since = time.monotonic()
                        fcntl.flock(lease, fcntl.LOCK_UN)
                    elif time.monotonic() - free_since >= LINGER:
                        return  # the lock on the lease ends with this process: a new user waits until then
                    else:
                        fcntl.flock(lease, fcntl.LOCK_UN)
                    time.sleep(PERIOD)
            finally:
                if server is not None:
                    _end(server)
                (folder / "status.json").unlink(missing_ok=True)


def _free(lease: IO[str]) -> bool:
    """Return whether nobody leases the server; the lease is then locked."""
    try:
        fcntl.flock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _start(command: dict[str, Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the server in a process group of its own.  Its input stays open until the supervisor ends."""
    return subprocess.Popen(
        command["command"],
        cwd=command["folder"],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )


def _end_with_parent() -> None:
    """Ask the system to end this process when its parent is killed, if it supports that."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(server: subprocess.Popen[bytes]) -> None:
    """End the server with its whole process group."""
    assert server.stdin is not None
    server.stdin.close()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(GRACE)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()


def _write_status(folder: Path, starts: int, pid: int | None, exit_code: int | None) -> None:
    """Replace the file that users of the server read."""
    partial = folder / "status.json.partial"
    partial.write_text(json.dumps({"starts": starts, "pid": pid, "exit_code": exit_code}), encoding="utf-8")
    partial.replace(folder / "status.json")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt of the terminal is for the run
    supervise(Path(sys.argv[1]))
