"""Compact subsets of items, chosen from the responses of calibration subjects.

Each function takes a matrix (S, n) of scores, NaN where missing, and returns columns.
"""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.inference.rank_correlation import rank_correlation
from pytest_adaptive_eval.ties import TIE, tie_ranks
from pytest_adaptive_eval.types import Array, Ints

#: Evolutionary search: subsets per generation, generations, and parents of the next one.
POPULATION, GENERATIONS, ELITE = 60, 15, 12
#: Weight of a column that none of the parents has, as a share of the even weight.
MUTATION = 0.02


def item_total(scores: Array) -> Array:
    """Return the correlation of each column with the subjects' means, shape (n,); -1 if a column is constant."""
    scored = ~np.isnan(scores)
    count = np.maximum(scored.sum(axis=0), 1)
    mean = np.where(scored, scores, 0.0).sum(axis=0) / count
    centred = np.where(scored, scores - mean, 0.0)
    strength = np.array([row[mask].mean() if mask.any() else 0.0 for row, mask in zip(centred, scored, strict=True)])
    total = np.where(scored, (strength - strength.mean())[:, None], 0.0)
    total = np.where(scored, total - total.sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) * (total**2).sum(axis=0))
    product = (centred * total).sum(axis=0)
    return np.where(spread > 1e-12, product / np.where(spread > 1e-12, spread, 1.0), -1.0)


def evolved(scores: Array, count: int, rng: np.random.Generator) -> Ints:
    """Return columns that rank the subjects as all columns do, by evolutionary search (FlashEval, Zhao et al. 2024).

    The best subsets of a generation are the parents of the next, whose columns are drawn in proportion to the number of
    parents with each.

    Args:
        scores: Shape (S, n).
    """
    n = scores.shape[1]
    truth = np.nanmean(scores, axis=1)
    scored = ~np.isnan(scores)
    complete, filled = scored.all(), np.where(scored, scores, 0.0)

    def fitness(subset: Ints) -> float:
        right = filled[:, subset].sum(axis=1)
        if complete:
            mean = right / count
        else:
            mean = right / np.maximum(scored[:, subset].sum(axis=1), 1)
        rho = rank_correlation(mean, truth)
        if np.isnan(rho):
            return -1.0
        return rho

    subsets = [rng.choice(n, count, replace=False) for _ in range(POPULATION)]
    best, height = subsets[0], -2.0
    for _ in range(GENERATIONS):
        values = np.array([fitness(subset) for subset in subsets])
        order = np.argsort(-tie_ranks(values), kind="stable")[:ELITE]
        if values[order[0]] > height + TIE:
            best, height = subsets[order[0]], float(values[order[0]])
        weights = np.bincount(np.concatenate([subsets[k] for k in order]), minlength=n) + MUTATION * ELITE * count / n
        log_weights = np.log(
            weights
        )  # with Gumbel noise added, the largest are draws in proportion without replacement
        subsets = [best] + [np.argsort(-(log_weights + rng.gumbel(size=n)))[:count] for _ in range(POPULATION - 1)]
    return np.sort(best)
