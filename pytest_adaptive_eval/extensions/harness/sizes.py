"""Choose the number of items in one call of a harness, from the seconds that earlier calls took.

A call needs its start, and then each item its share. A large call pays one start for many items; a small one runs few
items that the verdict turns out not to need. Where results come one by one, their times say what the start took. A
harness that writes them all at its end says it by two calls of different sizes, so calls grow until there are two.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Share of a call's items' time that its start may take.
START_SHARE = 0.25
#: Items that a call holds at least, where as many are expected to be needed.
LEAST = 8
#: Rounds of items at once in a first call, whose times are not known.
ROUNDS = 2
#: Growth of a call whose results came all at once, and of small calls that brought no verdict.
GROWTH, GROWING = 4, 2
#: Items that a call holds at most, and bytes of their ids in one argument of a command; Linux takes 131 071.
MOST, BYTES = 400, 120_000


class CallTimes:
    """Times of the calls of one harness.

    Args:
        parallel: Number of items that a call runs at once.

    Attributes:
        most: Number of items that a call holds at most.
    """

    def __init__(self, parallel: int) -> None:
        self.most = MOST
        self._parallel = parallel
        self._start = self._each = 0.0
        self._floor = 1  #: Items of the next call, where fewer are expected.
        self._at_once = (0, 0.0)  #: Items and seconds of the last call whose results came all at once.

    def fit(self, items: Iterable[str]) -> None:
        """Let a call hold no more items than their ids fit into one argument, with a sign before each of theirs."""
        longest = max(len(item.encode()) for item in items)
        self.most = max(1, min(MOST, BYTES // (2 * longest + 1)))

    def note(self, items: int, first: float, last: float) -> None:
        """Note the seconds from the begin of a call to its first and its last result."""
        if items < LEAST:
            self._floor = GROWING * items
        elif items > LEAST:
            self._floor = 1
        if last > first:
            self._start = first
            self._each = (last - first) / (items - 1)
        elif items > self._at_once[0]:
            more = items - self._at_once[0]
            if self._at_once[0]:
                self._each = max(0.0, last - self._at_once[1]) / more
            self._start = last - self._each * items
            self._at_once = items, last

    def size(self, expected: int) -> int:
        """Return the number of items of the next call, given the number that the verdict is expected to need.

        A verdict that is nearly certain is expected after one item again and again, and each call would pay for its
        start. So a call after a small one is at least twice as large, up to `LEAST`.
        """
        expected = max(expected, min(LEAST, self._floor))
        size = max(LEAST, ROUNDS * self._parallel)
        if self._start > 0.0 and self._each:
            size = max(size, round(self._start / (START_SHARE * self._each)))
        else:
            size = max(size, GROWTH * self._at_once[0])
        return max(1, min(expected, size, self.most))
