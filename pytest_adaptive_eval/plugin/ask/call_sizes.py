"""Choose the number of questions in one call of a model, from the seconds that earlier calls took.

A call of n questions is taken to last ``a + b n`` seconds. On a GPU b is next to nothing, so one call holds all
questions that are likely to be needed. On a processor each question costs its share, so a call holds as many as make
the time of a question little longer than b, and few questions are asked in vain.
"""

from __future__ import annotations

import numpy as np

#: Share of b by which a question of a call may last longer than b.
SURPLUS = 0.25
#: Largest growth from the largest size that was tried to the next one.
GROWTH = 4
#: Seconds of a call that may still grow: an interruption waits for its end.
LONGEST = 10.0


class CallSizes:
    """Times of one model's calls by their size."""

    def __init__(self) -> None:
        self._latest: dict[int, float] = {}

    def note(self, size: int, seconds: float) -> None:
        """Note the seconds of a call."""
        self._latest[size] = seconds

    def best(self, most: int, *, first: int, least: int) -> int:
        """Return the number of questions that a call should hold.

        Args:
            most: Upper limit, such as what fits into the memory.
            first: Number of the first call, whose cost is not known.
            least: Number that is asked whatever it costs.
        """
        if not self._latest:
            return min(first, most)
        largest = max(self._latest)
        fixed, each = self._times()
        if each <= 0.0:
            enough = most
        else:
            enough = round(fixed / (SURPLUS * each))
        if each <= 0.0:
            in_time = most
        else:
            in_time = int((LONGEST - fixed) / each)
        return min(most, GROWTH * largest, max(enough, least), max(in_time, least))

    def _times(self) -> tuple[float, float]:
        """Return a and b of the module's docstring; from calls of one size all time is in a."""
        sizes = np.array(list(self._latest), dtype=float)
        seconds = np.array(list(self._latest.values()))
        if len(sizes) == 1:
            return float(seconds[0]), 0.0
        each = max(float(np.polyfit(sizes, seconds, 1)[0]), 0.0)
        return max(float((seconds - each * sizes).mean()), 0.0), each
