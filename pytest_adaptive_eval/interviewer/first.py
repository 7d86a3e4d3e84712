"""The first questions, which are asked of everybody before anything is known of the subject."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy

__all__ = ["FirstItems", "by_cluster", "by_difficulty"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
FirstItems = Literal["cluster", "difficulty", "random", "none"]

#: Points that k-means sees; where a bank has more, centres are sought among so many drawn at random.
POINTS = 10_000


def by_cluster(
    points: NDArray[Any], count: int, *, restarts: int = 50, responses: Array | None = None, seed: int = 0
) -> Ints:
    """The items nearest to the centres of `count` clusters, by the best of many restarts.

    The best are those whose mean score ranks the subjects of `responses` most
    as their whole mean does, as in AutoJudger; without responses, those of the
    tightest clusters.  Ties keep the earlier restart.

    Parameters
    ----------
    points : array, shape (n, d)
    count : int
        At most n.
    restarts : int
    responses : array, shape (S, n), optional
        Scores of known subjects, NaN where missing.
    seed : int
        Below a thousand restarts, no two seeds share one.

    Returns
    -------
    array of int, shape (count,)
        Filled up with the first items of the bank where points coincide.
    """
    place = np.arange(len(points))
    if len(points) > POINTS:
        place = np.sort(np.random.default_rng(seed).choice(place, POINTS, replace=False))
    some = points[place]
    truth = None if responses is None else np.nanmean(responses, axis=1)
    best, height = place[:count], -np.inf
    for restart in range(restarts):
        found = clusters(some, count, 1000 * seed + restart)
        items = place[found.items]
        rated = -found.inertia if truth is None or responses is None else _ranks(responses[:, items], truth)
        if rated > height:
            best, height = items, rated
    rest = np.setdiff1d(np.arange(len(points)), best)[: count - len(best)]
    return np.concatenate([best, rest])


def _ranks(scores: Array, truth: Array) -> float:
    """Ranking accuracy of the mean scores; a subject without any counts as an average one."""
    seen = (~np.isnan(scores)).sum(axis=1)
    mean = np.where(seen > 0, np.nansum(scores, axis=1) / np.maximum(seen, 1), np.nanmean(truth))
    return ranking_accuracy(mean, truth) if np.ptp(truth) > 0 else 0.0


def by_difficulty(difficulty: Array, count: int) -> Ints:
    """The items at the middles of `count` equal parts of all items by difficulty, shape (count,), easiest first.

    Items without a difficulty (NaN) come last.
    """
    order = np.argsort(difficulty, kind="stable")
    known = max(count, int((~np.isnan(difficulty)).sum()))
    return np.asarray(order[((np.arange(count) + 0.5) * known / count).astype(np.int64)])
