"""Memory of an interviewer: a table of counts, difficulties and accuracies by category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

#: Limit of difficulties in the table and in prompts, in logits: of items that nobody got right or wrong, estimates run
#: far off, and a mean would be theirs alone.
LIMIT = 9.9


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """Statistics of one category.

    Args:
        count: Administered questions, including those without a score.
        lowest, highest, mean: Statistics of their difficulties, in logits within `LIMIT`; None without difficulties.
        accuracy: Mean score; None without scores.
    """

    name: str
    count: int
    lowest: float | None
    highest: float | None
    mean: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """Statistics of all categories, in order of first use.

    Args:
        asked: Administered questions, each counted once even if it has several categories.
    """

    rows: tuple[CategoryRow, ...] = ()
    asked: int = 0

    def count(self, name: str) -> int:
        """Return the number of administered questions of a category."""
        return next((row.count for row in self.rows if row.name == name), 0)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the rows, for the record."""
        return [asdict(row) for row in self.rows]


class Memory:
    """Collector of administered questions; a question may have several categories, and new ones at any time."""

    def __init__(self) -> None:
        self._asked = 0
        self._difficulties: dict[str, list[float]] = {}
        self._scores: dict[str, list[float]] = {}
        self._counts: dict[str, int] = {}

    def add(self, categories: Sequence[str], difficulty: float | None, score: float | None) -> None:
        """Add a question, with None for an unknown difficulty and a missing score."""
        self._asked += 1
        difficulty = None if difficulty is None else min(max(difficulty, -LIMIT), LIMIT)
        for name in dict.fromkeys(categories):
            self._counts[name] = self._counts.get(name, 0) + 1
            for value, values in ((difficulty, self._difficulties), (score, self._scores)):
                values.setdefault(name, []).extend([] if value is None else [value])

    @property
    def table(self) -> MemoryTable:
        """Table of all questions so far."""
        rows = []
        for name, count in self._counts.items():
            difficulties, scores = self._difficulties[name], self._scores[name]
            rows.append(
                CategoryRow(
                    name,
                    count,
                    min(difficulties, default=None),
                    max(difficulties, default=None),
                    fsum(difficulties) / len(difficulties) if difficulties else None,
                    fsum(scores) / len(scores) if scores else None,
                )
            )
        return MemoryTable(tuple(rows), self._asked)
