"""The rule that ends a run whose answers keep failing: three in a row, or more than 5 % of all.

Of a subject that asks each item twice by itself, three in a row do not count, and three faults never end a run.
"""

from __future__ import annotations

from collections import Counter

#: Consecutive faults of one source that end a run.
CONSECUTIVE_FAULTS = 3
#: Largest share of faults in the planned answers.
FAULT_SHARE = 0.05
#: Characters of a fault's message.
_MESSAGE = 200


class FaultLimit:
    """Counter of faults that gives the reason to end a run.

    Args:
        planned: Planned answers of the whole run.
        unit, whole: Names of one answer in the plural, and of all planned ones.
        asked_twice: Whether each fault is that of a second try.
    """

    def __init__(
        self, planned: int, unit: str = "answers", whole: str = "budget", *, asked_twice: bool = False
    ) -> None:
        self._asked_twice = asked_twice
        self._most = FAULT_SHARE * planned
        if asked_twice:
            self._most = max(self._most, CONSECUTIVE_FAULTS)
        self._unit = unit
        self._whole = whole
        self._consecutive: Counter[str] = Counter()
        self._faults = 0
        self._last = ""

    def add(self, fault: str | None, source: str = "") -> str:
        """Count an answer, and return the reason to end the run; an empty text to go on.

        Args:
            fault: Message of a failed answer, None for any other answer.
            source: Name of the subject; faults in a row are counted by source.
        """
        if source:
            of_source = f" of {source}"
        else:
            of_source = ""
        if fault is None:
            self._consecutive[source] = 0
        else:
            self._consecutive[source] += 1
            self._faults += 1
            self._last = " ".join(fault.split())[:_MESSAGE]
        if self._consecutive[source] >= CONSECUTIVE_FAULTS and not self._asked_twice:
            return f"{CONSECUTIVE_FAULTS} {self._unit}{of_source} in a row failed; the last: {self._last}"
        if self._faults > self._most:
            if self._most == CONSECUTIVE_FAULTS:
                limit = str(CONSECUTIVE_FAULTS)
            else:
                limit = f"{100 * FAULT_SHARE:.0f} % of the {self._whole}"
            share = f"{self._faults} of the {self._unit} failed, more than {limit}"
            return f"{share}; the last{of_source}: {self._last}"
        return ""
