"""Call functions on foreign data in a process that can be killed.

A thread that computes ``9**(9**9)`` holds the lock of the interpreter for as long as it computes: no time limit, signal
or Ctrl-C in the same process acts. One worker process serves all such calls. It starts at the first one, is killed at a
deadline, and ends with its parent. What it has used of its processor is what counts, so a busy machine changes no
result.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import itertools
import json
import os
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

import pytest_adaptive_eval
from pytest_adaptive_eval import clock
from pytest_adaptive_eval.deadline import Overdue
from pytest_adaptive_eval.process import DeadlinePassed, Died, Flooded, Process

#: Seconds for the worker to start and to import a function, on however busy a machine.
START_SECONDS = 60.0
#: Workers that a call may end before that is a fault.
_TRIES = 2
#: Seconds that pass until a call is given up, for each second of processor time that it may take.
_PATIENCE = 10.0
#: Bytes of a result, and of the worker's memory.
_RESULT, _MEMORY = 32 << 20, 4 << 30
#: Variables of the environment that the worker gets; others may hold secrets.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_OWN = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
#: Its first statement takes the places of modules and this package from the parent; the parent's own order of places
#: would let a file of a project hide one of the standard library.
_BOOT = """\
import sys, json, importlib.util as u
paths, file, result = json.loads(sys.stdin.buffer.readline())
sys.path += [path for path in paths if path not in sys.path]
spec = u.spec_from_file_location("pytest_adaptive_eval", file)
sys.modules[spec.name] = module = u.module_from_spec(spec)
spec.loader.exec_module(module)
from pytest_adaptive_eval.worker import serve
serve(result)
"""


class Raised(Exception):
    """The function raised an exception.

    Args:
        kind, message: Name of its type, and its text.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind


class WorkerFault(OSError):
    """The worker could not be started, or died twice at a call; a fault of the machine or of a library."""


def call(function: str, *arguments: Any, seconds: float, description: str) -> Any:
    """Call a function in the worker.

    Args:
        function: ``module:name``; its import does not count as time of the call.
        *arguments: Values of JSON.
        seconds: Limit of processor time.
        description: Name of the work, for messages.

    Returns:
        What it returned, a value of JSON.

    Raises:
        Overdue: It took longer, or needed more memory or a longer result than any that is meant.
        Raised: It raised an exception.
        WorkerFault: The worker could not be started.
    """
    return _CALLER.call(function, list(arguments), seconds, description)


class _Caller:
    """The parent's end of the worker."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._process: Process | None = None

    def forget(self) -> None:
        """Leave the worker to the parent of a forked process."""
        self.__init__()  # type: ignore[misc]

    def close(self) -> None:
        """End the worker, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def call(self, function: str, arguments: list[Any], seconds: float, description: str) -> Any:
        with self._lock:
            try:
                for _ in range(_TRIES):
                    with contextlib.suppress(Died):
                        return self._exchange(function, arguments, seconds)
                    status, complaint = self._bury()
                    if status == -getattr(signal, "SIGXCPU", 0):
                        raise DeadlinePassed
                raise WorkerFault(f"{description}: the worker process ends with exit status {status}{complaint}")
            except Raised as error:
                if error.kind != "MemoryError":
                    raise
                excess = f"needed more than {_MEMORY >> 30} GiB of memory"
            except DeadlinePassed:
                excess = f"took longer than {seconds:g} s"
            except Flooded:
                excess = f"gave more than {_RESULT >> 20} MiB"
            except BaseException:  # an interrupt: what the worker will still say belongs to no later call
                self.close()
                raise
            self.close()
            raise Overdue(f"{description} {excess} and was given up")

    def _bury(self) -> tuple[int | None, str]:
        """Return how the worker ended, and its last words."""
        process, self._process = self._process, None
        assert process is not None
        words = process.complaint()
        process.end()
        return process.returncode, words and f" ({words})"

    def _exchange(self, function: str, arguments: list[Any], seconds: float) -> Any:
        if self._process is None:
            self._process = self._start()
        process = self._process
        number = next(self._numbers)
        process.send(json.dumps([number, function, arguments, seconds]).encode() + b"\n")
        try:
            state, value = self._reply(process, number, START_SECONDS)
        except DeadlinePassed:  # of the import: no fault of the arguments
            raise Died from None
        if state == "ready":
            state, value = self._reply(process, number, seconds * _PATIENCE)
        if state == "error":
            raise Raised(*value)
        return value

    @staticmethod
    def _reply(process: Process, number: int, seconds: float) -> tuple[str, Any]:
        got, state, value = json.loads(process.line(_RESULT, clock.elapsed() + seconds))
        if got != number:
            raise Died  # never taken for an answer to this call
        return state, value

    @staticmethod
    def _start() -> Process:
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | _OWN
        try:
            process = Process([sys.executable, "-I", "-c", _BOOT], environment)
        except OSError as error:
            raise WorkerFault(f"a worker process cannot be started: {error}") from error
        paths = [os.path.abspath(path) for path in sys.path]  # noqa: PTH100 - the working folder is ""
        process.send(json.dumps([paths, pytest_adaptive_eval.__file__, process.result]).encode() + b"\n")
        return process


_CALLER = _Caller()
atexit.register(_CALLER.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_CALLER.forget)


# --- in the worker ---------------------------------------------------------------------------------------------------


def serve(result: int) -> None:
    """Answer calls from standard input until it ends.

    Args:
        result: Descriptor of the pipe for replies.
    """
    _limit_memory()
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 2)  # nobody reads what libraries say, and a full pipe would stop them
    sys.modules["torch"] = None  # type: ignore[assignment]  # nothing here needs it, and it takes seconds to import
    with os.fdopen(result, "wb") as replies, contextlib.suppress(BrokenPipeError):
        for line in sys.stdin.buffer:
            _answer(line, replies)


def _answer(line: bytes, replies: BinaryIO) -> None:
    number, name, arguments, seconds = json.loads(line)

    def reply(state: str, value: Any) -> None:
        replies.write(json.dumps([number, state, value]).encode() + b"\n")
        replies.flush()

    try:
        module, _, attribute = name.partition(":")
        function = getattr(importlib.import_module(module), attribute)
        reply("ready", None)
        _limit_time(seconds)
        value = function(*arguments)
        _limit_time(START_SECONDS)
        reply("value", value)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except BaseException as error:  # a panic of a native library is no Exception
        reply("error", [type(error).__name__, str(error)[:2000]])


def _limit_time(seconds: float) -> None:
    """Have the system end this process when it has computed for so long, even if its parent is gone."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + seconds) + 1, hard))


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
