"""An interviewer that needs no model: it balances coverage of the categories, difficulty and distance by one rule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.interviewer.interviewer import Candidate, Choice
from pytest_adaptive_eval.interviewer.memory import MemoryTable
from pytest_adaptive_eval.items.item import Item

__all__ = ["DeterministicInterviewer", "categories_of"]

#: Clusters that stand for categories where items have none, as many as AutoJudger's first items.
CLUSTERS = 10
#: Difficulties at most this far from the ability are near it, in logits: the chance is then .27 to .73.
NEAR = 1.0


def categories_of(items: Sequence[Item], points: NDArray[Any]) -> tuple[tuple[str, ...], ...]:
    """The category that each item is balanced by.

    The finest of its own that another item has too, with the broader ones in
    front where two would have one name; ``other`` without any.  Where no item
    has one, `CLUSTERS` clusters of the embeddings, as ``group 1``, ...

    Parameters
    ----------
    items : sequence of Item, length n
        None are needed: a bank without texts has no categories.
    points : array, shape (n, d)
    """
    paths = [item.category for item in items]
    common = Counter(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    finest = [
        next((path[:depth] for depth in range(len(path), 0, -1) if common[path[:depth]] > 1), ()) for path in paths
    ]
    if any(finest):
        alike = Counter(path[-1] for path in set(finest) if path)
        return tuple(
            (" / ".join(path) if alike[path[-1]] > 1 else path[-1],) if path else ("other",) for path in finest
        )
    label = clusters(points, min(CLUSTERS, len(points)), 0).label
    return tuple((f"group {number + 1}",) for number in label.tolist())


@dataclass(frozen=True, slots=True)
class DeterministicInterviewer:
    """Chooses the candidate of the largest product of three shares.

    - coverage: (1 + questions of the least asked category among the candidates')
      / (1 + questions of its own); of several categories, the least asked counts;
    - difficulty: 4 p (1 - p), which is 1 where a right answer has an even chance;
    - distance: to the nearest question so far, over the largest of the candidates'.

    A share that is unknown is 1.  Ties go to the first item of the bank, so that
    the order of the candidates does not matter.

    Parameters
    ----------
    categories : mapping of str to tuple of str
        By item id; others are of their own finest category.
    """

    categories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    name: str = "deterministic"

    def categorise(self, items: Sequence[Item], known: Sequence[str]) -> list[tuple[str, ...]]:  # noqa: ARG002
        """As given, or the finest category of each item."""
        return [self.categories.get(item.id) or item.category[-1:] or ("other",) for item in items]

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """The best by the rule, and what speaks for it."""
        known = {row.name: row.count for row in memory.rows}
        counts = [min((known.get(name, 0) for name in one.categories), default=0) for one in candidates]
        finite = [one.distance for one in candidates if math.isfinite(one.distance)]
        largest, least = max(finite, default=0.0), min(counts)

        def rating(index: int) -> tuple[float, int]:
            one = candidates[index]
            p = one.probability
            suited = 1.0 if p is None else 4.0 * p * (1.0 - p)
            far = one.distance / largest if largest > 0 and math.isfinite(one.distance) else 1.0
            return (1.0 + least) / (1.0 + counts[index]) * suited * far, -one.position

        index = max(range(len(candidates)), key=rating)
        chosen = candidates[index]
        grounds = [_coverage(chosen, counts, index, memory), _difficulty(chosen, candidates, ability)]
        if largest > 0 and chosen.distance == largest:
            grounds.append("it is far from all questions so far")
        given = [ground for ground in grounds if ground]
        return Choice(index, "chosen because " + (_joined(given) or "it suits best, all in all"))

    def account(self) -> Mapping[str, Any]:
        """No model, no calls."""
        return {"name": self.name}

    def close(self) -> None:
        """Nothing was loaded."""


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
    if counts[index] == min(row.count for row in memory.rows):
        return f"{name} was asked least {share}"
    if counts[index] == min(counts) < max(counts):
        return f"{name} was asked less than what else was at hand {share}"
    return ""


def _difficulty(chosen: Candidate, candidates: Sequence[Candidate], ability: float | None) -> str:
    if chosen.difficulty is None or chosen.probability is None:
        return ""
    uncertain = [abs(one.probability - 0.5) for one in candidates if one.probability is not None]
    most = abs(chosen.probability - 0.5) == min(uncertain)
    if ability is None:
        return f"the chance of a right answer is {chosen.probability:.0%}" if most else ""
    if abs(chosen.difficulty - ability) <= NEAR:
        return f"its difficulty {chosen.difficulty:.1f} is near the ability {ability:.1f}"
    return f"its difficulty {chosen.difficulty:.1f} is the nearest at hand to the ability {ability:.1f}" if most else ""
