"""When a server is asked again, how soon, and when it is left alone; pure, the time is handed in."""

from __future__ import annotations

import datetime
import email.utils
import math
import random

__all__ = ["Breaker", "Pace", "Retries", "retry_after"]

#: Seconds before the first retry at most, doubled for each further one up to `LONGEST`.
FIRST, LONGEST = 0.5, 8.0


class Retries:
    """How often and how soon a request is repeated.

    Repeating is limited twice: a request has so many retries of its own, and
    all requests together have a budget, since a server that fails for all would
    else get several times the load.

    Parameters
    ----------
    most : int
        Of one request.
    seed : int
        Of the jitter.
    first : float
        Seconds before the first retry at most.
    """

    #: Retries that are there at the start, and what each request adds: one in five may be repeated.
    START, SHARE, CAP = 10.0, 0.2, 50.0

    def __init__(self, most: int, seed: int, first: float = FIRST) -> None:
        self._most, self._first = most, first
        self._random = random.Random(seed)
        self._budget = self.START

    def begin(self) -> None:
        """Note a new request."""
        self._budget = min(self.CAP, self._budget + self.SHARE)

    def take(self, done: int) -> float | None:
        """Seconds to wait before retry number `done` + 1, or None when there is none left.

        Between half and all of an exponentially growing wait, so that requests
        that failed together do not return together.
        """
        if done >= self._most or self._budget < 1.0:
            return None
        self._budget -= 1.0
        return float(min(LONGEST, self._first * 2.0**done) * self._random.uniform(0.5, 1.0))


class Pace:
    """Requests begin at most so many a second, evenly.

    Parameters
    ----------
    rate : float or None
        Requests per second; None is without limit.
    """

    def __init__(self, rate: float | None) -> None:
        self._step = 0.0 if rate is None else 1.0 / rate
        self._next = -math.inf

    def wait(self, now: float) -> float:
        """Take the next place; gives the seconds until it comes."""
        place = max(now, self._next)
        self._next = place + self._step
        return place - now


class Breaker:
    """Leaves a server alone after a row of failures that are not the request's fault.

    Parameters
    ----------
    after : int
        Failures in a row.
    rest : float
        Seconds until one request may try again; the others follow when it succeeds.
    """

    def __init__(self, after: int, rest: float) -> None:
        self._after, self._rest = after, rest
        self._row = 0
        self._until = -math.inf

    def closed(self, now: float) -> float:
        """Seconds that the server is still left alone; 0 lets the caller try, and report by `note`."""
        if self._row < self._after:
            return 0.0
        if now < self._until:
            return self._until - now
        self._until = now + self._rest  # for all others, until this one tells
        return 0.0

    def note(self, failed: bool, now: float) -> None:
        """Tell how a try went."""
        self._row = self._row + 1 if failed else 0
        if self._row >= self._after:
            self._until = now + self._rest


def retry_after(value: str, now: datetime.datetime) -> float:
    """Seconds that a ``Retry-After`` header asks for, as a number or a date; 0 where it says nothing readable."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError):
            return 0.0
        seconds = (when.replace(tzinfo=when.tzinfo or datetime.UTC) - now).total_seconds()
    return max(0.0, seconds) if not math.isnan(seconds) else 0.0
