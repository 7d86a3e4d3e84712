"""Agreement of estimates and truth on the order of subjects."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.types import Array


def ranking_accuracy(estimate: ArrayLike, truth: ArrayLike, *, ties: Literal["half", "autojudger"] = "half") -> float:
    """Return the share of pairs of subjects in the right order, in percent.

    Args:
        estimate, truth: Shape (S,). At least two subjects.
        ties: ``half``: a pair that is equal in one of the two only counts one half; one that is equal in the truth is
            left out. ``autojudger``: 100 (1 - inversions / pairs), where an inversion is a pair in strictly opposite
            order, as in that paper's section 4.1.

    Raises:
        ValueError: Shapes differ, or no pair can be judged.
    """
    e, t = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if e.shape != t.shape or e.ndim != 1:
        raise ValueError(
            f"estimates of shape {e.shape} for truths of shape {t.shape}; expected two lists of one length"
        )
    i, j = np.triu_indices(len(e), 1)
    product = np.sign(e[i] - e[j]) * np.sign(t[i] - t[j])
    if ties == "half":
        product = product[t[i] != t[j]]
    if not len(product):
        raise ValueError("all truths are equal, expected two different ones")
    if ties == "autojudger":
        return float(100.0 * (1.0 - (product < 0).mean()))
    return float(100.0 * (0.5 + 0.5 * product.mean()))


def mean_ranks(values: ArrayLike) -> Array:
    """Return ranks from 1, ties at their mean; all NaN if one value is.

    They are those of `scipy.stats.rankdata`, whose import takes nearly a second.
    """
    array = np.asarray(values, dtype=np.float64)
    if np.isnan(array).any():
        return np.full(array.shape, np.nan)
    _, place, counts = np.unique(array, return_inverse=True, return_counts=True)
    return np.asarray((counts.cumsum() - 0.5 * (counts - 1))[place])


def rank_correlation(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Spearman's rho, ties at their mean rank; NaN if either is constant or has a NaN."""
    x, y = (ranks - ranks.mean() for ranks in map(mean_ranks, (estimate, truth)))
    norm = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / norm if norm > 0 else float("nan")


def kendall_tau(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Kendall's tau-b, which allows for ties; NaN if either is constant."""
    signs = []
    for values in (estimate, truth):
        x = np.asarray(values, dtype=np.float64)
        signs.append(np.sign(np.subtract.outer(x, x)))
    pairs = float(np.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum()))  # each twice
    return float((signs[0] * signs[1]).sum()) / pairs if pairs > 0 else float("nan")
