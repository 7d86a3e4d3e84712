"""Interviewer by code, which balances coverage of the categories, difficulty and distance by one rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.interviewer.interviewer import (
    UNKNOWN,
    Candidate,
    Categories,
    Choice,
    Difficulties,
    MemoryTable,
)
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ties import TIE, first_largest

#: Clusters in place of categories if items have none, as many as AutoJudger's first items.
CLUSTERS = 10
#: Largest distance of a difficulty near the ability, in logits: predicted scores are then .27 to .73.
NEAR = 1.0


def categories_of(items: Sequence[Item], points: NDArray[Any]) -> tuple[tuple[str, ...], ...]:
    """Return the category of each item for the balance of coverage.

    It is the item's finest category that another item shares, with broader ones in front if the name is ambiguous, or
    ``other`` without any. If no item has one, it is one of `CLUSTERS` clusters of the embeddings, ``group 1``, ...

    Args:
        items: May be without categories.
        points: Shape (n, d).
    """
    paths = [item.category for item in items]
    common: Counter[tuple[str, ...]] = Counter()
    for path in paths:
        common.update(path[:depth] for depth in range(1, len(path) + 1))
    finest = [_finest(path, common) for path in paths]
    names = Counter(path[-1] for path in set(finest) if path)
    if names:
        return tuple((_category(path, names),) for path in finest)
    label = clusters(points, min(CLUSTERS, len(points)), 0).label
    return tuple((f"group {number + 1}",) for number in label.tolist())


def _finest(path: tuple[str, ...], common: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """Return the longest beginning of a category that another item shares; empty if none does."""
    while path and common[path] < 2:
        path = path[:-1]
    return path


def _category(path: tuple[str, ...], names: Mapping[str, int]) -> str:
    """Return the name of a category, with the broader ones in front if it is ambiguous."""
    if not path:
        return "other"
    if names[path[-1]] > 1:
        return " / ".join(path)
    return path[-1]


@dataclass(frozen=True, slots=True)
class DeterministicInterviewer:
    """Interviewer that chooses the candidate with the largest product of three shares.

    - coverage: (1 + count of the least asked category of all candidates) / (1 + count of the candidate's least asked
      category);
    - difficulty: 4 p (1 - p), which is 1 at a predicted score of 1/2;
    - distance: distance to the nearest earlier question, over the largest of all candidates.

    An unknown share is 1. Ties go to the first item of the bank, so the order of the candidates has no effect.

    Args:
        categories: Categories by item id; default is the item's finest category.
    """

    categories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    name: str = "deterministic"

    def categorise(
        self,
        items: Sequence[Item],
        existing: Sequence[str],  # noqa: ARG002
        difficulties: Difficulties = UNKNOWN,  # noqa: ARG002
    ) -> Categories:
        """Return the configured or the finest category of each item."""
        return [self.categories.get(item.id) or item.category[-1:] or ("other",) for item in items]

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """Return the best candidate by the rule, with its reasons."""
        counts = [min(map(memory.count, candidate.categories), default=0) for candidate in candidates]
        largest = max((c.distance for c in candidates if math.isfinite(c.distance)), default=0.0)

        def rating(index: int) -> float:
            candidate = candidates[index]
            p = candidate.probability
            coverage = (1.0 + min(counts)) / (1.0 + counts[index])
            difficulty = 1.0
            if p is not None:
                difficulty = 4.0 * p * (1.0 - p)
            distance = 1.0
            if largest > 0 and math.isfinite(candidate.distance):
                distance = candidate.distance / largest
            return coverage * difficulty * distance

        order = sorted(range(len(candidates)), key=lambda index: candidates[index].position)
        best = first_largest(list(map(rating, order)))
        index = order[int(best)]
        chosen = candidates[index]
        reasons = [_coverage(chosen, counts, index, memory), _difficulty(chosen, candidates, ability)]
        if largest > 0 and chosen.distance >= (1.0 - TIE) * largest:
            reasons.append("it is far from all questions so far")
        reason = _joined(list(filter(None, reasons))) or "it suits best, all in all"
        return Choice(index, f"chosen because {reason}")

    def account(self) -> Mapping[str, Any]:
        """Return the name, for the record."""
        return {"name": self.name}

    def close(self) -> None:
        """Do nothing, since nothing is loaded."""


def _joined(parts: Sequence[str]) -> str:
    if len(parts) < 3:
        return " and ".join(parts)
    return f"{', '.join(parts[:-1])}, and {parts[-1]}"


def _coverage(chosen: Candidate, counts: Sequence[int], index: int, memory: MemoryTable) -> str:
    if not memory.asked or not chosen.categories:
        return ""
    name = min(chosen.categories, key=memory.count)
    if counts[index] == 0:
        return f"no question was of {name} yet"
    share = f"({counts[index]} of {memory.asked} questions)"
    least = min(row.count for row in memory.rows)
    if counts[index] == least:
        return f"{name} was asked least {share}"
    if counts[index] == min(counts) < max(counts):
        return f"{name} was asked less than the other candidates {share}"
    return ""


def _difficulty(chosen: Candidate, candidates: Sequence[Candidate], ability: float | None) -> str:
    if chosen.difficulty is None or chosen.probability is None:
        return ""
    uncertain = []
    for candidate in candidates:
        if candidate.probability is not None:
            uncertain.append(abs(candidate.probability - 0.5))
    is_nearest = abs(chosen.probability - 0.5) <= min(uncertain) + TIE
    if ability is not None and abs(chosen.difficulty - ability) <= NEAR:
        return f"its difficulty {chosen.difficulty:.1f} is near the ability {ability:.1f}"
    if not is_nearest:
        return ""
    if ability is None:
        return f"the chance of a right answer is {chosen.probability:.0%}"
    return f"its difficulty {chosen.difficulty:.1f} is the nearest to the ability {ability:.1f}"
