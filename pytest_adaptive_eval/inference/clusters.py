"""K-means clusters of items, by embeddings or by responses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.ties import first_smallest
from pytest_adaptive_eval.types import Array, Ints

ITERATIONS = 20  #: Iterations of k-means; the centres of a few thousand items hardly move after half of them.
#: Squared distances up to this share of the largest squared length are those of equal points: products round them.
COPIES = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Items in groups.

    Args:
        items: Shape (k,). The item nearest to each centre.
        label: Shape (n,). The cluster of each item, 0 ... k - 1.
        inertia: Sum of the squared distances to the centres.
    """

    items: Ints
    label: Ints
    inertia: float


def clusters(points: NDArray[Any], count: int, seed: int) -> Clusters:
    """Return at most `count` clusters, fewer if points coincide or a cluster becomes empty (k-means, Lloyd 1982).

    Args:
        points: Shape (n, d).
        count: At least 1.
        seed: Seed of the first centres (k-means++, Arthur & Vassilvitskii 2007).
    """
    x = np.asarray(points, dtype=np.float64)  # products in single precision would decide many near-ties
    norms = np.einsum("nd,nd->n", x, x)
    centres = _spread(x, norms, count, np.random.default_rng(seed))
    label = _nearest(x, norms, centres)
    each = np.arange(len(centres))[:, None]
    sums = np.zeros_like(centres)
    previous = np.full(len(x), -1)
    for _ in range(ITERATIONS):
        moved = np.flatnonzero(previous != label)
        if not len(moved):
            break
        change = (label[moved] == each) - (previous[moved] == each).astype(np.float64)
        sums += change @ x[moved]  # a product is quick in any dimension, and soon few points move
        sizes = np.bincount(label, minlength=len(centres))[:, None]
        centres = np.where(sizes > 0, sums / np.maximum(sizes, 1), centres)
        previous = label
        label = _nearest(x, norms, centres)
    squared_distance = ((x - centres[label]) ** 2).sum(axis=1)
    filled, label = np.unique(label, return_inverse=True)
    scale = norms.max()  # both members of a pair are as near to their centre, and copies are at it
    chosen = []
    for members in map(np.flatnonzero, label == np.c_[: len(filled)]):
        chosen.append(int(members[first_smallest(squared_distance[members], scale)]))
    return Clusters(np.array(chosen, dtype=np.int64), label.astype(np.int64), float(squared_distance.sum()))


def _nearest(x: Array, norms: Array, centres: Array) -> Ints:
    """Return the centre nearest to each point, shape (n,), from the points and their squared lengths."""
    squares = np.square(centres).sum(axis=1)
    squared_distance = squares - x @ (2.0 * centres.T)  # without the point's own square
    return first_smallest(squared_distance, norms + squares.max())


def _spread(x: Array, norms: Array, count: int, rng: np.random.Generator) -> Array:
    """Return first centres, each drawn in proportion to the squared distance to those before; none twice."""
    chosen = [int(rng.integers(len(x)))]
    nearest = np.full(len(x), np.inf)  # squared distance to the nearest centre
    while len(chosen) < count:
        squared_distance = norms + norms[chosen[-1]] - 2.0 * (x @ x[chosen[-1]])
        np.minimum(nearest, squared_distance, out=nearest)
        nearest[nearest <= COPIES * norms.max()] = 0.0
        total = nearest.cumsum()  # rounding moves a draw with a chance of 1e-15, since no limit is at a round number
        if total[-1] <= 0:
            break
        drawn = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        chosen.append(min(drawn, int(np.flatnonzero(nearest)[-1])))  # rounding can put the draw beyond the last
    return x[chosen]


def _means(scores: Array) -> Array:
    """Return the mean score of each item; that of all scores if an item has none."""
    count = (~np.isnan(scores)).sum(axis=0)
    return np.where(count > 0, np.nansum(scores, axis=0) / np.maximum(count, 1), np.nanmean(scores))


def _factors(centred: Array, count: int) -> Array:
    u, s, _ = np.linalg.svd(np.nan_to_num(centred).T, full_matrices=False)
    return np.asarray(u[:, :count] * s[:count])


def response_factors(scores: Array, count: int = 8) -> Array:
    """Return coordinates of items by the subjects' responses, shape (n, count + 1).

    They are the first factors of the centred responses, and the share of right answers on the same scale. Items that
    separate the same subjects are near.

    Args:
        scores: Shape (S, n). NaN where missing.
        count: Factors; fewer where there are fewer subjects or items.
    """
    mean = _means(scores)
    return np.column_stack([_factors(scores - mean, count), mean * math.sqrt(len(scores))])


def residual_factors(scores: Array, count: int = 8) -> Array:
    """Return coordinates of items without difficulty and ability, shape (n, count), rows of length 1.

    They are the first factors of the responses less the item's and the subject's mean: items that the same subjects
    answer better than expected are near. They replace embeddings of the questions, and leave difficulty and
    discrimination out; distance does not depend on them. An item without responses is at the origin.

    Args:
        scores: Shape (S, n). NaN where missing.
        count: Factors; fewer where there are fewer subjects or items.
    """
    centred = scores - _means(scores)
    factors = _factors(centred - _means(centred.T)[:, None], count)
    length = np.linalg.norm(factors, axis=1, keepdims=True)
    return np.asarray(factors / np.where(length > 1e-9, length, 1.0))
