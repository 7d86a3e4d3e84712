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

    The user's limit is the only one until the server refuses a request that came too soon. Some servers refuse a share
    of requests at any rate, for example because others use them too. If half the rate does not lower the share, the
    rate is not limited any more until the share has doubled.

    Args:
        rate: Upper limit of requests per second; None for no limit.
    """

    #: Factor of a decrease, and of the one for the third refusal in a row.
    CUT, DEEP_CUT, IN_A_ROW = 0.97, 0.5, 3
    #: Refusals from which a share is measured, and shares for which half the rate is tried. At the rate that a server
    #: accepts, increases and decreases balance at a share of 1/30.
    MEASURED, LEAST_SHARE, MOST_SHARE = 4, 0.06, 0.4
    #: Refusals within twice as many results at half the rate, from which on the rate does not matter.
    UNCHANGED = 3
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
        self._row, self._shut = 0, False
        self._begun: deque[float] = deque()
        #: Results since a share of refusals was measured, and those of them that were refusals.
        self._results = self._refused = 0
        #: While half the rate is tried: the rate before, and the results that its share was measured from.
        self._trial: tuple[float, int] | None = None
        #: Share of refusals that a lower rate does not change.
        self._tolerated: float | None = None

    @property
    def rate(self) -> float:
        """Requests per second that may begin now; infinite without a limit."""
        return self._rate

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
        self._row, self._shut = 0, False
        self._results += 1
        if self._trial is not None:
            if self._results >= 2 * self._trial[1]:  # hardly a refusal at half the rate
                self._rate = min(self._most, self._trial[0] * self.CUT)
                self._end_trial()
        elif self._rate < self._most:
            self._rate = min(self._most, self._rate * self.SEARCH if self._searching else self._rate + self._step)
            self._step *= self.ACCELERATION
            if self._rate > self.UNLIMITED:
                self._rate, self._step = self._most, 0.0

    def refuse(self, begun: float, now: float, *, alone: bool = True) -> bool:
        """Note a request that came too soon.

        Args:
            begun: Time at which the request began. Requests from before the last decrease do not decrease the rate
                again.
            alone: Whether no other request is under way, which the server may be about to answer.

        Returns:
            Whether the server refused several in a row, so it may accept none for now.
        """
        if begun <= self._decreased:
            return False
        self._row += 1
        self._results += 1
        self._refused += 1
        shut = alone and self._row >= self.IN_A_ROW
        if shut and self._shut:  # it accepts none at any rate, for example while it restarts
            return True
        self._shut = shut
        if not shut and self._makes_no_difference():
            return False
        recent = [start for start in self._begun if start > now - self.WINDOW] or [now]
        measured = len(recent) / max(self.LEAST_WINDOW, now - recent[0])
        rate = measured if math.isinf(self._rate) else min(self._rate, self.LATENESS * measured)
        self._step = self.INCREASE * rate
        deep = self._begins_trial(rate) or self._row == self.IN_A_ROW
        lower = rate * (self.DEEP_CUT if deep else self.CUT)
        # a large decrease comes from a burst, a lull or an outage, not from the rate that the server accepts
        self._searching = lower <= self._rate / 2.0
        self._rate = lower
        self._next = max(self._next, now + 1.0 / self._rate)
        self._decreased = now
        return shut

    def _makes_no_difference(self) -> bool:
        """Return whether a lower rate would not lower the share of refusals in what was tried."""
        if self._trial is not None and self._refused >= self.UNCHANGED:
            if not self._exceeds(self.MEASURED / self._trial[1]):
                self._tolerated = (self._refused + self.MEASURED) / (self._results + self._trial[1])
                self._rate, self._next = self._most, -math.inf
            self._end_trial()
        elif self._tolerated is not None and self._results >= 10 * self.MEASURED:
            share = (self._refused / self._results + self._tolerated) / 2.0
            self._tolerated = None if self._exceeds(self._tolerated) else share
            self._results = self._refused = 0
        return self._tolerated is not None or self._trial is not None

    def _exceeds(self, share: float) -> bool:
        """Return whether the share of refusals is now clearly larger than `share`."""
        return self._refused > (2.0 * share + 0.1) * self._results

    def _begins_trial(self, rate: float) -> bool:
        """Return whether half the rate is to be tried, since a share of refusals was measured."""
        if self._refused < self.MEASURED:
            return False
        results, share = self._results, self._refused / self._results
        self._end_trial()
        if self.LEAST_SHARE <= share <= self.MOST_SHARE:
            self._trial = rate, results
        return self._trial is not None

    def _end_trial(self) -> None:
        self._trial = None
        self._results = self._refused = 0


class OpenTime:
    """Wall time during which at least one request is open, divided among the requests."""

    def __init__(self) -> None:
        self._open = 0
        self._since = 0.0

    def begin(self, now: float) -> None:
        """Note that a request begins."""
        if not self._open:
            self._since = now
        self._open += 1

    def end(self, now: float) -> float:
        """Note that a request ends; return the seconds that no earlier end returned."""
        self._open -= 1
        seconds, self._since = now - self._since, now
        return seconds


class Window:
    """Number of requests at the server at once: doubled while throughput grows, halved after a timeout.

    Args:
        start, most: Number at first, and its upper limit.
    """

    #: Least growth of throughput, as a share of the growth of the window, for which the window stays larger.
    LEAST_GAIN = 0.15
    #: Rounds without growth after one that did not raise throughput, or after a timeout.
    PAUSE = 8
    #: Requests per one that a limited rate keeps under way on average, since answers take unequal times.
    ROOM = 1.5
    #: Weight of the latest answer's time in their mean.
    WEIGHT = 0.1

    def __init__(self, start: int, most: int) -> None:
        self._limit, self._most = start, most
        self._seconds = 0.0
        self._pause = 0
        self._halved = -math.inf
        #: Window and throughput of the round before.
        self._before: tuple[int, float] | None = None
        #: Begin of the round, requests that began in it, those of them that filled the window, and answers.
        self._since = -math.inf
        self._begun = self._filled = self._answers = 0

    def limit(self, rate: float) -> int:
        """Return the number of requests that may be under way, limited to what `rate` per second can fill."""
        if math.isinf(rate) or not self._seconds:
            return self._limit
        return min(self._limit, math.ceil(self.ROOM * rate * self._seconds) + 1)

    def begin(self, now: float, under_way: int) -> None:
        """Note that a request begins; `under_way` counts it."""
        if math.isinf(self._since):
            self._since = now
        self._begun += 1
        self._filled += under_way >= self._limit

    def accept(self, begun: float, now: float) -> None:
        """Note the answer to a request; a round has as many answers as requests fit into the window."""
        weight = self.WEIGHT if self._seconds else 1.0
        self._seconds += weight * (now - begun - self._seconds)
        self._answers += begun >= self._since
        if self._answers < self._limit:
            return
        throughput = self._answers / max(now - self._since, 1e-9)
        filled = self._filled * 2 >= self._begun
        self._restart(now)
        if not filled:
            return
        if self._pause:
            self._pause -= 1
        elif self._before is not None and throughput < self._before[1] * self._expected_growth():
            self._limit, self._before, self._pause = self._before[0], None, self.PAUSE
        elif self._limit < self._most:
            self._before = self._limit, throughput
            self._limit = min(self._most, 2 * self._limit)

    def time_out(self, begun: float, now: float) -> None:
        """Note a request that was not answered in time; those from before the last decrease count once."""
        if begun > self._halved:
            self._limit, self._before, self._pause = max(1, self._limit // 2), None, self.PAUSE
            self._halved = now
            self._restart(now)

    def _expected_growth(self) -> float:
        assert self._before is not None
        return 1.0 + self.LEAST_GAIN * (self._limit / self._before[0] - 1.0)

    def _restart(self, now: float) -> None:
        self._since, self._begun, self._filled, self._answers = now, 0, 0, 0


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
