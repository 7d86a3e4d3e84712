"""Compact subsets chosen from the responses of calibration subjects, before anybody is interviewed.

Each takes a matrix (S, n) of scores, NaN where missing, and gives columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation

__all__ = ["anchors", "evolved", "item_total"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Of the evolutionary search: subsets in a generation, generations, and how many of each breed the next.
POPULATION, GENERATIONS, ELITE = 60, 15, 12
#: How often a column that none of the best subsets has is drawn, of a subset's even share.
MUTATION = 0.02
#: Clusters, at most: k-means of more takes its time, and many would have one member.
CLUSTERS = 350


def item_total(scores: Array) -> Array:
    """Correlation of each column with the subjects' means, shape (n,); -1 where a column is constant."""
    seen = ~np.isnan(scores)
    count = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, scores, 0.0).sum(axis=0) / count
    around = np.where(seen, scores - mean, 0.0)
    strength = np.array([row[some].mean() if some.any() else 0.0 for row, some in zip(around, seen, strict=True)])
    total = np.where(seen, (strength - strength.mean())[:, None], 0.0)
    total = np.where(seen, total - total.sum(axis=0) / count, 0.0)
    spread = np.sqrt((around**2).sum(axis=0) * (total**2).sum(axis=0))
    product = (around * total).sum(axis=0)
    return np.where(spread > 1e-12, product / np.where(spread > 1e-12, spread, 1.0), -1.0)


def anchors(points: Array, count: int, seed: int) -> tuple[Ints, Array]:
    """Columns near the centres of clusters, and the weight of each, which sum to 1.

    As tinyBenchmarks does (Polo et al. 2024): `points` are the parameters of an
    item response model.  A column stands for its share of its cluster.

    Parameters
    ----------
    points : array, shape (n, d)
    count : int
    seed : int
    """
    found = clusters(points, min(count, CLUSTERS), seed)
    sizes = np.bincount(found.label)
    centre = np.array([points[found.label == k].mean(axis=0) for k in range(len(sizes))])
    away = ((points - centre[found.label]) ** 2).sum(axis=1)
    order = np.argsort(away, kind="stable")
    turn = np.empty(len(order), dtype=np.int64)  # how many of its cluster are nearer
    for k in range(len(sizes)):
        mine = order[found.label[order] == k]
        turn[mine] = np.arange(len(mine))
    chosen = np.lexsort((away, turn))[:count]
    asked = np.bincount(found.label[chosen], minlength=len(sizes))
    weight = (sizes / np.maximum(asked, 1))[found.label[chosen]]
    return chosen.astype(np.int64), np.asarray(weight / weight.sum())


def evolved(scores: Array, count: int, rng: np.random.Generator) -> Ints:
    """Columns that rank the subjects as all columns do, by evolutionary search (FlashEval, Zhao et al. 2024).

    The best subsets of a generation breed the next: columns are drawn by how many
    of them have each.

    Parameters
    ----------
    scores : array, shape (S, n)
    count : int
    rng : numpy.random.Generator
    """
    n = scores.shape[1]
    truth = np.nanmean(scores, axis=1)
    seen = ~np.isnan(scores)
    whole, filled = seen.all(), np.where(seen, scores, 0.0)

    def fitness(subset: Ints) -> float:
        right = filled[:, subset].sum(axis=1)
        mean = right / count if whole else right / np.maximum(seen[:, subset].sum(axis=1), 1)
        rho = rank_correlation(mean, truth)
        return -1.0 if np.isnan(rho) else rho

    subsets = [rng.choice(n, count, replace=False) for _ in range(POPULATION)]
    best, height = subsets[0], -2.0
    for _ in range(GENERATIONS):
        values = np.array([fitness(subset) for subset in subsets])
        order = np.argsort(-values, kind="stable")[:ELITE]
        if values[order[0]] > height:
            best, height = subsets[order[0]], float(values[order[0]])
        often = np.bincount(np.concatenate([subsets[k] for k in order]), minlength=n) + MUTATION * ELITE * count / n
        chance = np.log(often)  # with Gumbel noise added, the largest are draws in proportion without replacement
        subsets = [best] + [np.argsort(-(chance + rng.gumbel(size=n)))[:count] for _ in range(POPULATION - 1)]
    return np.sort(best)
