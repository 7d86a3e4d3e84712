"""Items that stand for many: k-means over embeddings, or over how subjects answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clusters", "clusters", "residual_factors", "response_factors"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Turns of k-means; the centres of a few thousand items hardly move after half of them.
TURNS = 20


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """Items in groups.

    Parameters
    ----------
    items : array of int, shape (k,)
        The item nearest to each centre.
    label : array of int, shape (n,)
        The cluster of each item, 0 ... k - 1.
    inertia : float
        Sum of the squared distances to the centres.
    """

    items: Ints
    label: Ints
    inertia: float


def clusters(points: NDArray[Any], count: int, seed: int) -> Clusters:
    """At most `count` clusters, fewer where points coincide or a cluster runs empty (k-means, Lloyd 1982).

    Parameters
    ----------
    points : array, shape (n, d)
    count : int
        At least 1.
    seed : int
        Of the first centres (k-means++, Arthur & Vassilvitskii 2007).
    """
    x: NDArray[Any] = np.asarray(points, dtype=np.float32 if points.dtype == np.float32 else np.float64)
    centres = _spread(x, count, np.random.default_rng(seed))
    label = _nearest(x, centres)
    for _ in range(TURNS):
        members = np.zeros((len(centres), len(x)), dtype=x.dtype)
        members[label, np.arange(len(x))] = 1.0
        sizes = members.sum(axis=1, keepdims=True)
        centres = np.where(sizes > 0, members @ x / np.maximum(sizes, 1.0), centres)  # products: quick in any dimension
        before, label = label, _nearest(x, centres)
        if (before == label).all():
            break
    away = ((x - centres[label]) ** 2).sum(axis=1, dtype=np.float64)
    filled, label = np.unique(label, return_inverse=True)
    chosen = [int(members[away[members].argmin()]) for members in map(np.flatnonzero, label == np.c_[: len(filled)])]
    return Clusters(np.array(chosen, dtype=np.int64), label.astype(np.int64), float(away.sum()))


def _nearest(x: NDArray[Any], centres: NDArray[Any]) -> Ints:
    """The centre nearest to each point."""
    away = np.square(centres).sum(axis=1) - 2.0 * (x @ centres.T)
    return np.asarray(away.argmin(axis=1))


def _spread(x: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[Any]:
    """First centres, each drawn in proportion to the squared distance to those before; none twice."""
    norms = np.square(x).sum(axis=1)
    chosen = [int(rng.integers(len(x)))]
    left = np.full(len(x), np.inf)
    while len(chosen) < count:
        away = norms + norms[chosen[-1]] - 2.0 * (x @ x[chosen[-1]])
        np.minimum(left, away, out=left)
        left[left <= 1e-6 * norms.max()] = 0.0  # a twin, by rounding
        total = left.cumsum()
        if total[-1] <= 0:
            break
        found = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        chosen.append(min(found, int(np.flatnonzero(left)[-1])))  # beyond the last by a rounding
    return x[chosen]


def _means(scores: Array) -> Array:
    """Mean score of each item, that of all scores where it has none."""
    seen = (~np.isnan(scores)).sum(axis=0)
    return np.where(seen > 0, np.nansum(scores, axis=0) / np.maximum(seen, 1), np.nanmean(scores))


def _factors(centred: Array, count: int) -> Array:
    u, s, _ = np.linalg.svd(np.nan_to_num(centred).T, full_matrices=False)
    return np.asarray(u[:, :count] * s[:count])


def response_factors(scores: Array, count: int = 8) -> Array:
    """Where items lie by how subjects answered them, shape (n, count + 1).

    The first factors of the centred responses, and how many were right on the
    same scale; items that tell subjects apart alike lie together.

    Parameters
    ----------
    scores : array, shape (S, n)
        NaN where missing.
    count : int
        Factors; fewer where there are fewer subjects or items.
    """
    mean = _means(scores)
    return np.column_stack([_factors(scores - mean, count), mean * math.sqrt(len(scores))])


def residual_factors(scores: Array, count: int = 8) -> Array:
    """Where items lie by what their answers say besides difficulty and strength, shape (n, count), rows of length 1.

    The first factors of the responses less the item's and the subject's mean:
    items that the same subjects answer better than one expects of them lie
    together.  They stand in for embeddings of what the questions are about, and
    leave difficulty and discrimination out, so that what is far is not just what
    tells nobody apart.  An item that nothing is known of is at the origin.

    Parameters
    ----------
    scores : array, shape (S, n)
        NaN where missing.
    count : int
        Factors; fewer where there are fewer subjects or items.
    """
    around = scores - _means(scores)
    strength = _means(around.T)
    found = _factors(around - strength[:, None], count)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.where(length > 1e-9, length, 1.0))
