"""Decide when requests to a server may begin; the caller passes the time."""

from __future__ import annotations

import math
import random

#: Upper limit of the seconds before the first retry of a request, doubled for each further one up to `LONGEST`.
FIRST, LONGEST = 0.5, 8.0
#: Upper limit for a request that came too soon or found no server, which are tried until their deadline, in seconds.
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
    """Even times of requests, at most `rate` a second; None for no limit."""

    def __init__(self, rate: float | None) -> None:
        if rate is None:
            self._gap = 0.0
        else:
            self._gap = 1.0 / rate
        self._next = -math.inf

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may begin."""
        return max(0.0, self._next - now)

    def begin(self, now: float, gap: float = 0.0) -> None:
        """Note that a request begins, and that the next one may `gap` seconds later at the earliest."""
        self._next = now + max(self._gap, gap)


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
        seconds = now - self._since
        self._since = now
        return seconds


class Window:
    """Number of requests at the server at once: doubled while throughput grows, halved when the server has too many.

    After the first decrease requests begin at even times, which a server that counts them does not see as a burst.
    Below one there is a request at a time, with pauses: a half means that a request is open half of the time.

    Args:
        start, most: Number at first, and its upper limit.
    """

    #: Longest time between two requests, in seconds.
    LONGEST_GAP = 1.0
    #: Least growth of throughput, as a share of the growth of the window, for which the window stays larger.
    LEAST_GAIN = 0.15
    #: Rounds without growth after one that did not raise throughput, or after a decrease.
    PAUSE = 4
    #: Seconds of an answer before the first one.
    UNKNOWN = 0.1
    #: Fewest answers of a round, and of one with a window below one.
    ROUND, SMALL_ROUND = 4, 2
    #: Weight of the latest answer's time in their mean.
    WEIGHT = 0.1

    def __init__(self, start: int, most: int) -> None:
        self._limit = float(start)
        self._most = float(most)
        self._seconds = 0.0
        self._pause = 0
        self._halved = -math.inf
        #: Window and throughput of the round before.
        self._before: tuple[float, float] | None = None
        #: Begin of the round, requests that began in it, those of them that filled the window, and answers.
        self._since = -math.inf
        self._begun = self._filled = self._answers = 0

    @property
    def limit(self) -> int:
        """Number of requests that may be under way."""
        return max(1, int(self._limit))

    @property
    def gap(self) -> float:
        """Seconds from the begin of a request to the next one; 0 before the first decrease."""
        if math.isinf(self._halved):
            return 0.0
        return min(self.LONGEST_GAP, self._answer_seconds / self._limit)

    @property
    def _answer_seconds(self) -> float:
        return self._seconds or self.UNKNOWN

    def begin(self, now: float, under_way: int) -> None:
        """Note that a request begins; `under_way` counts it."""
        if math.isinf(self._since):
            self._since = now
        self._begun += 1
        self._filled += under_way >= self.limit

    def accept(self, begun: float, now: float) -> None:
        """Note the answer to a request; a round has at least as many answers as requests fit into the window."""
        weight = self.WEIGHT if self._seconds else 1.0
        self._seconds += weight * (now - begun - self._seconds)
        self._answers += begun >= self._since
        fewest = self.ROUND if self._limit >= 1.0 else self.SMALL_ROUND
        if self._answers < max(fewest, self.limit):
            return
        throughput = self._answers / max(now - self._since, 1e-9)
        filled = self._filled * 2 >= self._begun or self.gap > 0.0
        self._restart(now)
        if not filled:
            return
        if self._pause:
            self._pause -= 1
        elif self._before is not None and throughput < self._expected_throughput(*self._before):
            self._limit = self._before[0]
            self._before = None
            self._pause = self.PAUSE
        elif self._limit < self._most:
            self._before = self._limit, throughput
            self._limit = min(self._most, 2.0 * self._limit)

    def shrink(self, begun: float, now: float) -> None:
        """Note a request that came too soon or was not answered in time; requests of one window count once."""
        if begun > self._halved:
            slowest = min(1.0, self._answer_seconds / self.LONGEST_GAP)  # a smaller window would be no slower
            self._limit = max(slowest, self._limit / 2.0)
            self._before = None
            self._pause = self.PAUSE
            self._halved = now
            self._restart(now)

    def _expected_throughput(self, limit: float, throughput: float) -> float:
        """Return the least throughput that keeps the window larger than the `limit` of the round before.

        Below one the pauses alone limit the throughput, and a refusal shows what is too much.
        """
        if limit < 1.0:
            return 0.0
        return throughput * (1.0 + self.LEAST_GAIN * (self._limit / limit - 1.0))

    def _restart(self, now: float) -> None:
        self._since = now
        self._begun = 0
        self._filled = 0
        self._answers = 0
