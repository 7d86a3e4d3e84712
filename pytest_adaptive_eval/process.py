"""Start a process of foreign code, exchange lines over pipes until a deadline, and kill its process group."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE, Popen  # a test may replace the names in the module

from pytest_adaptive_eval import clock


class DeadlinePassed(Exception):
    """The process did not give its line in time."""


class Died(Exception):
    """The process is gone, or has closed its end, and gave no line."""


class Flooded(Exception):
    """The line is longer than it may be."""


class Process(contextlib.AbstractContextManager["Process"]):
    """A process with a private pipe for what it has to say.

    Its standard input is a pipe, its standard output nothing; the first lines of its standard error are kept for
    messages. It leads a session of its own, and leaving the ``with`` block kills that session's group.

    Args:
        command: ``{keep}`` in it is replaced by the descriptor `keep`.
        keep: A folder to hold open for the process, or empty.
        close: Whether other descriptors are closed, as they should be.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, keep: str = "", close: bool = True):
        self._read, self.result = os.pipe()
        if keep:
            self.keep = os.open(keep, os.O_PATH | os.O_CLOEXEC)
        else:
            self.keep = -1
        handed = [fd for fd in (self.result, self.keep) if fd >= 0]
        try:
            if not close:
                for fd in handed:
                    os.set_inheritable(fd, True)
            self._process = Popen(
                [part.replace("{keep}", str(self.keep)) for part in command],
                env=dict(environment),
                cwd="/",
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=PIPE,
                pass_fds=handed if close else (),
                close_fds=close,
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            os.close(self._read)
            raise
        finally:
            for fd in handed:
                os.close(fd)
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._stdin = self._process.stdin
        self._stderr = self._process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._read, False)
        self._pending = b""
        self._got = bytearray()

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def returncode(self) -> int | None:
        """Exit status, or minus the signal that ended the process; None before `end`."""
        return self._process.returncode

    def end(self) -> None:
        """Kill the process and all of its group, and close its pipes."""
        if self._process.returncode is not None:
            return
        with contextlib.suppress(PermissionError):  # of macOS, where only the dead leader is left
            os.killpg(self._process.pid, signal.SIGKILL)  # not yet waited for: the number is still its own
        self._process.wait()
        os.close(self._read)
        self._stdin.close()
        self._stderr.close()

    def complaint(self) -> str:
        """Return the last line of standard error so far."""
        os.set_blocking(self._stderr.fileno(), False)
        lines = (self._stderr.read(1 << 16) or b"").decode("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1][:500]
        return ""

    def send(self, data: bytes) -> None:
        """Have this written to standard input while `line` waits."""
        self._pending += data

    def line(self, most: int, deadline: float) -> bytes:
        """Wait for one line, while what was sent is written.

        Args:
            most: Bytes it may have.
            deadline: By `pytest_adaptive_eval.clock.elapsed`.
        """
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        if self._pending:
            poll.register(self._stdin, select.POLLOUT)
        searched = 0
        while True:
            end = self._got.find(b"\n", searched)
            if end > most or (end < 0 and len(self._got) > most):
                raise Flooded
            if end >= 0:
                line = bytes(self._got[:end])
                del self._got[: end + 1]
                return line
            searched = len(self._got)
            seconds = deadline - clock.elapsed()
            if seconds <= 0:
                raise DeadlinePassed
            for fd, _ in poll.poll(seconds * 1000 + 1):
                if fd == self._read:
                    data = os.read(fd, 1 << 16)
                    if not data:
                        raise Died
                    self._got += data
                elif not self._write():
                    poll.unregister(fd)

    def _write(self) -> bool:
        """Write as much as the pipe accepts. Return whether data is still pending."""
        try:
            self._pending = self._pending[os.write(self._stdin.fileno(), self._pending) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self._pending = b""  # that the process is gone shows on the other pipe
        return bool(self._pending)
