"""Decide when requests to a server may begin; the caller passes the time."""

from __future__ import annotations

import math
import random
from collections import deque

#: Upper limit of the seconds before the first retry of a request, doubled for each further one up to `LONGEST`.
FIRST, LONGEST = 0.5, 8.0
#: Upper limit for a request that came too soon, which the shared pace delays as well, in seconds.
LONGEST_PACED = 1.0


class Backoff:
    """Jittered exponential waits between the tries of a request.

    Args:
        first: Upper limit of the seconds before the first retry.
    """

    def __init__(self, seed: int, first: float = FIRST) -> None:
        self._first = first
        self._random = random.Random(seed)

    def seconds(self, done: int, longest: float = LONGEST) -> float:
        """Return the wait after `done` failed tries, in seconds: half to all of a doubling limit, at most `longest`."""
        return float(min(longest, self._first * 2.0 ** min(done - 1, 16)) * self._random.uniform(0.5, 1.0))


class Pace:
    """Requests per second, shared by all requests: accelerating increase, multiplicative decrease.

    The user's limit is the only one until the server refuses a request that came too soon.

    Args:
        rate: Upper limit of requests per second; None for no limit.
    """

    #: Factor of a decrease, and of the one for the third refusal in a row.
    CUT, DEEP_CUT, IN_A_ROW = 0.97, 0.5, 3
    #: The first accepted request after a decrease raises the rate by this share of what it was before, and each
    #: further one by `ACCELERATION` times as much as the one before it: 29 make up for `CUT`, 109 treble the rate.
    INCREASE, ACCELERATION = 0.0005, 1.05
    #: Factor by which each accepted request raises the rate after a decrease by half or more, until the next refusal.
    SEARCH = 1.1
    #: Seconds over which the rate of requests is measured, at most and at least.
    WINDOW, LEAST_WINDOW = 1.0, 0.1
    #: A decrease starts from at most so many times the measured rate, which a busy machine keeps below the set one.
    LATENESS = 1.25
    #: Rates above this are no limit, in requests per second.
    UNLIMITED = 1e4

    def __init__(self, rate: float | None) -> None:
        self._most = math.inf if rate is None else rate
        self._rate = self._most
        self._step = 0.0
        self._searching = False
        self._next = self._decreased = -math.inf
        self._row = 0
        self._begun: deque[float] = deque()

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may begin."""
        return max(0.0, self._next - now)

    def begin(self, now: float) -> None:
        """Note that a request begins."""
        self._next = now + 1.0 / self._rate
        self._begun.append(now)
        while self._begun[0] <= now - self.WINDOW:
            self._begun.popleft()

    def accept(self) -> None:
        """Note that the server took a request."""
        self._row = 0
        if self._rate < self._most:
            self._rate = min(self._most, self._rate * self.SEARCH if self._searching else self._rate + self._step)
            self._step *= self.ACCELERATION
            if self._rate > self.UNLIMITED:
                self._rate, self._step = self._most, 0.0

    def refuse(self, begun: float, now: float) -> bool:
        """Note a request that came too soon.

        Args:
            begun: Time at which the request began. Requests from before the last decrease do not decrease the rate
                again.

        Returns:
            Whether the server refused several in a row, so that it may accept none for now.
        """
        if begun <= self._decreased:
            return False
        self._row += 1
        if self._row > self.IN_A_ROW:  # it accepts none at any rate, for example while it restarts
            return True
        shut = self._row == self.IN_A_ROW
        recent = [start for start in self._begun if start > now - self.WINDOW] or [now]
        measured = len(recent) / max(self.LEAST_WINDOW, now - recent[0])
        rate = measured if math.isinf(self._rate) else min(self._rate, self.LATENESS * measured)
        self._step = self.INCREASE * rate
        lower = rate * (self.DEEP_CUT if shut else self.CUT)
        # a large decrease comes from a burst, a lull or an outage, not from the rate that the server accepts
        self._searching = lower <= self._rate / 2.0
        self._rate = lower
        self._next = max(self._next, now + 1.0 / self._rate)
        self._decreased = now
        return shut


class Circuit:
    """A circuit breaker: while a server answers no request, one at a time is sent, and the others wait.

    Args:
        after: Number of failures in a row that open it.
        first, longest: Upper limit of the seconds until the first trial, doubled for each further one up to `longest`.
    """

    def __init__(self, after: int, seed: int, first: float = FIRST, longest: float = 2.0) -> None:
        self._after = after
        self._rests = random.Random(seed)
        self._first, self._longest = first, longest
        self._row = self._trials = 0
        self._until = -math.inf
        #: Time at which it opened; None while it is closed.
        self.opened: float | None = None
        #: Sentence about the latest failure.
        self.reason = ""

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may begin."""
        return 0.0 if self.opened is None else max(0.0, self._until - now)

    def begin(self, now: float) -> None:
        """Note that a request begins; while the circuit is open, the others wait for its reply."""
        if self.opened is not None:
            self._rest(now, 0.0)

    def succeed(self) -> None:
        """Note a reply: the circuit closes."""
        self._row = self._trials = 0
        self.opened = None

    def fail(self, now: float, reason: str, *, at_once: bool = False, wait: float = 0.0) -> None:
        """Note a failure that the server may have caused, and which, `at_once`, shows that it accepts no request."""
        self._row += 1
        self.reason = reason
        if self.opened is None and (at_once or self._row >= self._after):
            self.opened = now
            self._rest(now, wait)
        elif self.opened is not None:
            self._until = max(self._until, now + wait)

    def _rest(self, now: float, wait: float) -> None:
        rest = min(self._longest, self._first * 2.0 ** min(self._trials, 16)) * self._rests.uniform(0.5, 1.0)
        self._trials += 1
        self._until = now + max(rest, wait)
