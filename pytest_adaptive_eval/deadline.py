"""Call a function with a time limit."""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Time for an overdue thread to end after the exception in it.
GRACE_SECONDS = 1.0


class Overdue(TimeoutError):
    """The function did not return in time; its own TimeoutError is not of this class."""


class _GivenUp(BaseException):
    """An exception raised in an overdue thread, which no ordinary handler there catches."""


def within(seconds: float, work: Callable[[], T], description: str) -> T:
    """Call `work` in a separate thread and wait for it at most `seconds`.

    Signals are not used, so this works in any thread and beside plugins that use them. The caller's context variables
    are visible.

    An overdue thread is interrupted at its next Python instruction; one that hangs in native code, or under a tracer on
    Python 3.11, stays behind as a daemon thread.

    Raises:
        Overdue: `work` did not end in time; the message has its `description`.
    """
    context = contextvars.copy_context()
    outcome = []
    faults = []

    def run() -> None:
        with contextlib.suppress(_GivenUp):
            try:
                outcome.append(context.run(work))
            except BaseException as error:  # raised in the caller below
                faults.append(error)

    thread = threading.Thread(target=run, name=f"adaptive-eval: {description}", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        # Python 3.11 does not begin a traced call in any thread (coverage, debuggers) until the exception is taken.
        if sys.version_info >= (3, 12) or sys.gettrace() is None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_GivenUp))
            thread.join(GRACE_SECONDS)
        raise Overdue(f"{description} took longer than {seconds:g} s and was given up")
    if faults:
        raise faults[0]
    return outcome[0]
