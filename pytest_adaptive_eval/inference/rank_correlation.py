"""Agreement of estimates and truth on the order of subjects."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.ties import tie_ranks


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
    e = np.asarray(estimate, dtype=np.float64)
    t = np.asarray(truth, dtype=np.float64)
    if e.shape != t.shape or e.ndim != 1:
        raise ValueError(
            f"estimates of shape {e.shape} for truths of shape {t.shape}; expected two lists of one length"
        )
    # estimates from equal scores differ by rounding
    e = tie_ranks(e)
    t = tie_ranks(t)
    i, j = np.triu_indices(len(e), 1)
    product = np.sign(e[i] - e[j]) * np.sign(t[i] - t[j])
    if ties == "half":
        product = product[t[i] != t[j]]
    if not len(product):
        raise ValueError("all truths are equal, expected two different ones")
    if ties == "autojudger":
        return float(100.0 * (1.0 - (product < 0).mean()))
    return float(100.0 * (0.5 + 0.5 * product.mean()))


def rank_correlation(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Spearman's rho, ties at their mean rank; NaN if either is constant or has a NaN."""
    from scipy.stats import rankdata  # imported late: it takes nearly a second

    ranks = rankdata([tie_ranks(np.asarray(values)) for values in (estimate, truth)], axis=1)
    if np.isnan(ranks).any() or not np.ptp(ranks, axis=1).all():
        return float("nan")
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def kendall_tau(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return Kendall's tau-b, which allows for ties; NaN if either is constant or has a NaN."""
    from scipy.stats import kendalltau

    return float(kendalltau(tie_ranks(np.asarray(estimate)), tie_ranks(np.asarray(truth))).statistic)
