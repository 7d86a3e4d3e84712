"""Retrieval of candidates from a bank: the window of suitable difficulty, and distances to earlier questions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.clusters import COPIES
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ties import TIE, first_largest
from pytest_adaptive_eval.types import Array, Bools, Ints

Retrieval = Literal["farthest", "nearest-difficulty", "random"]

#: Most widenings of an empty window; its bounds are then within 1e-7 of 0 and 1.
DOUBLINGS = 20


class Distances:
    """Squared Euclidean distances of all items to the nearest administered item.

    An administered item costs one product of the embeddings with a vector. Memory is 8 d bytes per item for the
    embeddings, shared by all subjects, and 8 bytes per item and subject: in single precision, the processor's rounding
    would decide which item is the farthest.

    Args:
        points: Shape (n, d).
    """

    def __init__(self, points: NDArray[Any], subjects: int) -> None:
        # a row per dimension: the product then adds whole rows, which is faster than a sum along each item
        self._coordinates: Array = np.ascontiguousarray(points.T, dtype=np.float64)
        self._norms: Array = np.einsum("dn,dn->n", self._coordinates, self._coordinates)
        #: Shape (S, n); infinite before the first item, 0 for its copies.
        self.nearest: Array = np.full((subjects, len(points)), np.inf)
        #: Shape (S, n); the administered item at that distance, the first one of several.
        self.closest: Ints = np.zeros((subjects, len(points)), dtype=np.int64)

    def points(self, items: Ints) -> Array:
        """Return the embeddings of some items, shape (t, d)."""
        return np.asarray(self._coordinates[:, items].T)

    def record_items(self, items: Ints) -> None:
        """Update distances after the items of each subject, shape (S, k)."""
        for column in items.T:
            distances = (-2.0 * self._coordinates[:, column].T) @ self._coordinates
            distances += self._norms
            distances += self._norms[column][:, None]
            np.copyto(self.closest, column[:, None], where=distances < self.nearest)
            np.minimum(self.nearest, distances, out=self.nearest)
        self.nearest[self.nearest <= COPIES * self._norms.max()] = 0.0


def proximity(bank: ItemBank, logits: Array) -> Array:
    """Return the proximity of each item's difficulty to the ability, one over 1 plus their distance, shape (S, n).

    In several dimensions the distance is that to a predicted score of 1/2 along the item's direction. The proximity of
    an item without discrimination is 0.

    Args:
        logits: Shape (S, n). A . theta + d.
    """
    slope = np.sqrt(bank.squared_slope)
    return np.asarray(slope / (slope + np.abs(logits) + (slope == 0)))


def within(p: Array, window: tuple[float, float] | None, available: Bools) -> tuple[Bools, Ints]:
    """Return the available items whose predicted score is in the window, or nearly at a limit of it.

    An empty window is widened: its distances to 0 and to 1 are halved until it has an item.

    Args:
        p: Shape (S, n). Predicted scores.
        window: None has no limits.
        available: Shape (S, n). Items that were not administered; at least one per subject.

    Returns:
        inside: Shape (S, n).
        widened: Shape (S,). Number of widenings.
    """
    widened = np.zeros(len(p), dtype=np.int64)
    if window is None:
        return available, widened
    low, high = window
    inside = _between(p, low, high) & available
    for times in range(1, DOUBLINGS + 1):
        empty = np.flatnonzero(~inside.any(axis=1))
        if not len(empty):
            break
        low = low / 2.0
        high = (1.0 + high) / 2.0
        widened[empty] = times
        inside[empty] = _between(p[empty], low, high) & available[empty]
    else:
        empty = np.flatnonzero(~inside.any(axis=1))
        inside[empty] = available[empty]
    return inside, widened


def _between(p: Array, low: float, high: float) -> Bools:
    return np.asarray((p >= low - TIE) & (p <= high + TIE))


def best(key: Array, inside: Bools, count: int) -> list[Ints]:
    """Return, per subject, the `count` items inside with the highest keys, best first, ties by position.

    Args:
        key: Shape (S, n). Finite or infinite, at least 0.
        inside: Shape (S, n).
    """
    keys = np.where(inside, key, -1.0)
    rows = np.arange(len(keys))
    items = np.empty((len(keys), min(count, keys.shape[1])), dtype=np.int64)
    for rank in range(items.shape[1]):  # faster than a partition for a few of many
        items[:, rank] = first_largest(keys)
        keys[rows, items[:, rank]] = -1.0
    return [row[:size] for row, size in zip(items, inside.sum(axis=1), strict=True)]
