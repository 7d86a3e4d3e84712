"""The real clock: a project may freeze or patch time in its tests, and waits must still end.

freezegun replaces the functions of `time` and `datetime` by name in every module, so they are kept here as defaults.
The counter is `time.perf_counter`, which is monotonic and which no release of time-machine replaces.
"""

from __future__ import annotations

import datetime
import functools
import time
from collections.abc import Callable

#: Return seconds from a fixed moment in the past.  A `partial` is no function that is replaced by name.
elapsed: Callable[[], float] = functools.partial(time.perf_counter)


def now(
    _read: Callable[[datetime.tzinfo], datetime.datetime] = datetime.datetime.now, _zone: datetime.tzinfo = datetime.UTC
) -> datetime.datetime:
    """Return the date and time in UTC."""
    return _read(_zone)


def sleep(seconds: float, _wait: Callable[[float], None] = time.sleep) -> None:
    """Wait for a number of seconds."""
    _wait(seconds)
