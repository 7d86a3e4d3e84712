"""What the interviewer remembers: a table of what was asked in each category, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

__all__ = ["CategoryRow", "Memory", "MemoryTable"]


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """One category so far.

    Parameters
    ----------
    name : str
    count : int
        Questions asked; those without a score included.
    lowest, highest, mean : float or None
        Of their difficulties, in logits; None where none is known.
    accuracy : float or None
        Mean score of those that have one.
    """

    name: str
    count: int
    lowest: float | None
    highest: float | None
    mean: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """All categories so far, in the order in which they came up.

    Parameters
    ----------
    rows : tuple of CategoryRow
    asked : int
        Questions in all; the counts add up to more where questions are of several categories.
    """

    rows: tuple[CategoryRow, ...] = ()
    asked: int = 0

    def count(self, name: str) -> int:
        """Questions asked of a category, 0 of one that has not come up."""
        return next((row.count for row in self.rows if row.name == name), 0)

    def to_json(self) -> list[dict[str, Any]]:
        """For records."""
        return [asdict(row) for row in self.rows]


class Memory:
    """Takes questions as they are answered; categories are open-ended, and a question may be of several."""

    def __init__(self) -> None:
        self._asked = 0
        self._difficulties: dict[str, list[float]] = {}
        self._scores: dict[str, list[float]] = {}
        self._counts: dict[str, int] = {}

    def add(self, categories: Sequence[str], difficulty: float | None, score: float | None) -> None:
        """Remember a question, its difficulty where it is known, and its score where it has one."""
        self._asked += 1
        for name in dict.fromkeys(categories):
            self._counts[name] = self._counts.get(name, 0) + 1
            for value, values in ((difficulty, self._difficulties), (score, self._scores)):
                values.setdefault(name, []).extend([] if value is None else [value])

    @property
    def table(self) -> MemoryTable:
        """Everything so far."""
        rows = []
        for name, count in self._counts.items():
            known, scores = self._difficulties[name], self._scores[name]
            rows.append(
                CategoryRow(
                    name,
                    count,
                    min(known, default=None),
                    max(known, default=None),
                    fsum(known) / len(known) if known else None,
                    fsum(scores) / len(scores) if scores else None,
                )
            )
        return MemoryTable(tuple(rows), self._asked)
