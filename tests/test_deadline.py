"""Work that never ends is given up."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from pytest_adaptive_eval.deadline import within


def test_the_result_comes_back() -> None:
    assert within(5, lambda: "done", "a thing") == "done"


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_what_is_raised_comes_back(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        within(5, work, "a thing")
    assert caught.value is error


@pytest.mark.skipif(
    sys.version_info < (3, 12) and sys.gettrace() is not None,
    reason="a thread cannot be interrupted under a tracer on Python 3.11",
)
def test_an_endless_loop_is_interrupted_and_leaves_no_thread() -> None:
    def work() -> None:
        while True:
            try:
                sum(range(100))
            except Exception:  # as a library would
                continue

    before, start = set(threading.enumerate()), time.monotonic()
    with pytest.raises(TimeoutError, match=r"the loop took longer than 0.2 s"):
        within(0.2, work, "the loop")
    assert time.monotonic() - start < 5
    assert set(threading.enumerate()) <= before  # threads of other tests may end meanwhile
