"""From a whole bank to a few candidates: the window of suitable difficulty, and what is farthest from all asked."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Distances", "Retrieval", "best", "proximity", "within"]

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Retrieval = Literal["farthest", "nearest-difficulty", "random"]

#: Times that an empty window is doubled before it takes everything: its bounds are then within 1e-7 of 0 and 1.
DOUBLINGS = 20


class Distances:
    """Squared Euclidean distance of every item to the nearest item asked so far, kept up as items are asked.

    An item that is asked costs one product of the embeddings with a vector;
    what was asked before is never looked at again.  Memory: the embeddings,
    4 d bytes an item and shared by all subjects, and 4 bytes an item and subject.

    Parameters
    ----------
    points : array, shape (n, d)
    subjects : int
    """

    def __init__(self, points: NDArray[Any], subjects: int) -> None:
        # a row a dimension: the product then adds whole rows, which is quicker than a sum along each item
        self._across: Floats = np.ascontiguousarray(points.T, dtype=np.float32)
        self._norms: Floats = np.einsum("dn,dn->n", self._across, self._across)
        #: Shape (S, n); infinite before the first item.
        self.nearest: Floats = np.full((subjects, len(points)), np.inf, dtype=np.float32)

    def told(self, items: Ints) -> None:
        """Take in items (S, k) that were asked, each subject's own."""
        for column in items.T:
            away = (-2.0 * self._across[:, column].T) @ self._across
            away += self._norms
            away += self._norms[column][:, None]
            np.minimum(self.nearest, away, out=self.nearest)
        np.maximum(self.nearest, 0.0, out=self.nearest)  # a twin's may fall below 0 by a rounding


def proximity(bank: ItemBank, logits: Array) -> Array:
    """Nearness of each item's difficulty b to the ability theta, one over 1 plus their distance, shape (S, n).

    In several dimensions the distance is that to an even chance along the
    item's own direction.  0 where an item does not discriminate.

    Parameters
    ----------
    bank : ItemBank
    logits : array, shape (S, n)
        A . theta + d.
    """
    slope = np.sqrt(bank.squared_slope)
    return np.asarray(slope / (slope + np.abs(logits) + (slope == 0)))


def within(p: Array, window: tuple[float, float] | None, left: Bools) -> tuple[Bools, Ints]:
    """Items not yet asked whose chance of a right answer is in the window.

    A window without any is widened: its distances to 0 and to 1 are halved
    until there is one.

    Parameters
    ----------
    p : array, shape (S, n)
    window : (low, high) or None
        None takes everything.
    left : array of bool, shape (S, n)
        Not asked yet; at least one a subject.

    Returns
    -------
    inside : array of bool, shape (S, n)
    widened : array of int, shape (S,)
        Times that the window was doubled.
    """
    widened = np.zeros(len(p), dtype=np.int64)
    if window is None:
        return left, widened
    low, high = window
    inside = (p >= low) & (p <= high) & left
    for times in range(1, DOUBLINGS + 1):
        empty = np.flatnonzero(~inside.any(axis=1))
        if not len(empty):
            break
        low, high = low / 2.0, (1.0 + high) / 2.0
        widened[empty] = times
        some = p[empty]
        inside[empty] = (some >= low) & (some <= high) & left[empty]
    else:
        empty = np.flatnonzero(~inside.any(axis=1))
        inside[empty] = left[empty]
    return inside, widened


def best(key: NDArray[Any], inside: Bools, count: int) -> list[Ints]:
    """Per subject, at most `count` items of those inside with the highest keys, best first; ties by position.

    Parameters
    ----------
    key : array, shape (S, n)
        Finite or infinite, at least 0.
    inside : array of bool, shape (S, n)
    count : int
    """
    kept = np.where(inside, key, key.dtype.type(-1.0))
    rows, found = np.arange(len(kept)), np.empty((len(kept), min(count, kept.shape[1])), dtype=np.int64)
    for turn in range(found.shape[1]):  # for a few of many, quicker than a partition
        found[:, turn] = kept.argmax(axis=1)
        kept[rows, found[:, turn]] = -1.0
    numbers = inside.sum(axis=1)
    return [row[:number] for row, number in zip(found, numbers, strict=True)]
