"""Protocol of interviewers, which sort questions into categories and choose the next one among candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import fsum
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from pytest_adaptive_eval.items.item import Item

#: Category of each item, outermost first.
Categories = list[tuple[str, ...]]
Difficulties = Mapping[str, float | None]
UNKNOWN: Difficulties = MappingProxyType({})  #: Difficulties where the bank has none.
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
        ability, standard_error: Ability in the category, in logits, of an interview that estimates a profile; else
            None.
    """

    name: str
    count: int
    lowest: float | None
    highest: float | None
    mean: float | None
    accuracy: float | None
    ability: float | None = None
    standard_error: float | None = None


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
        for row in self.rows:
            if row.name == name:
                return row.count
        return 0

    @property
    def profiled(self) -> bool:
        """Whether the categories have abilities."""
        return any(row.ability is not None for row in self.rows)

    def with_abilities(self, abilities: Mapping[str, tuple[float, float]]) -> MemoryTable:
        """Return the table with ability and standard error of each category that has them."""
        rows = []
        for row in self.rows:
            ability, error = abilities.get(row.name, (None, None))
            rows.append(replace(row, ability=ability, standard_error=error))
        return MemoryTable(tuple(rows), self.asked)

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
        for name in dict.fromkeys(categories):
            self._counts[name] = self._counts.get(name, 0) + 1
            difficulties = self._difficulties.setdefault(name, [])
            if difficulty is not None:
                difficulties.append(min(max(difficulty, -LIMIT), LIMIT))
            scores = self._scores.setdefault(name, [])
            if score is not None:
                scores.append(score)

    @property
    def table(self) -> MemoryTable:
        """Table of all questions so far."""
        rows = []
        for name, count in self._counts.items():
            difficulties = self._difficulties[name]
            scores = self._scores[name]
            lowest = min(difficulties, default=None)
            highest = max(difficulties, default=None)
            rows.append(CategoryRow(name, count, lowest, highest, _mean(difficulties), _mean(scores)))
        return MemoryTable(tuple(rows), self._asked)


def _mean(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return fsum(values) / len(values)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that may be asked next.

    Args:
        item: Item with text and images, or with an id alone if the bank has no texts.
        categories: Categories that are known before the item is administered.
        difficulty: Difficulty on the scale of the ability, in logits; None if hidden or unknown.
        probability: Predicted score at the current ability; None likewise.
        distance: Euclidean distance of its embedding to the nearest earlier question; infinite before the first.
    """

    position: int
    item: Item
    categories: tuple[str, ...]
    difficulty: float | None
    probability: float | None
    distance: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice of an interviewer, with its reason.

    Args:
        reason: Sentence for the report, which may contain foreign text.
        fallback: Kind of failure, if code chose in place of the interviewer; else empty.
    """

    index: int
    reason: str
    fallback: str = ""


@runtime_checkable
class Interviewer(Protocol):
    """Leader of an interview; one object serves one session with one or more subjects."""

    @property
    def name(self) -> str:
        """Name for reports and records."""

    def categorise(
        self, items: Sequence[Item], existing: Sequence[str], difficulties: Difficulties = UNKNOWN
    ) -> Categories:
        """Return at least one category per item, new ones or exact names of `existing` ones.

        Args:
            difficulties: In logits, by the item's id.
        """

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """Choose among at least one candidate; `ability` is in logits, None if hidden or unknown."""

    def account(self) -> Mapping[str, Any]:
        """Return models, calls, tokens, seconds and fallbacks by kind as JSON values."""

    def close(self) -> None:
        """Release memory, devices and connections."""
