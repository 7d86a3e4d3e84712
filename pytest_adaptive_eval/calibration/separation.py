"""Difference of a quantity between original and low-quality items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.types import Bools

#: Bins of a drawn distribution.
BINS = 12


@dataclass(frozen=True, slots=True)
class Separation:
    """Difference of one quantity between original and low-quality items.

    Args:
        original, low: Means.
        u, p: Statistic and two-sided p value of the Mann-Whitney test.
        wasserstein: Distance of the two distributions.
        auc: Probability that an original item has the larger value, ties half.
        edges: Edges of BINS bins of equal width over all values.
        counts: Original and low-quality items in each bin.
    """

    original: float
    low: float
    u: float
    p: float
    wasserstein: float
    auc: float
    edges: tuple[float, ...]
    counts: tuple[tuple[int, ...], tuple[int, ...]]


def separation(values: ArrayLike, low: Bools) -> Separation:
    """Compare a quantity (n,) between items that are low-quality and those that are not."""
    from scipy.stats import mannwhitneyu, wasserstein_distance

    quantity = np.asarray(values, dtype=np.float64)
    original, bad = quantity[~low], quantity[low]
    test = mannwhitneyu(original, bad)
    edges = np.histogram_bin_edges(quantity, BINS)
    counts = [np.histogram(part, edges)[0].tolist() for part in (original, bad)]
    return Separation(
        float(original.mean()),
        float(bad.mean()),
        float(test.statistic),
        float(test.pvalue),
        float(wasserstein_distance(original, bad)),
        float(test.statistic) / (len(original) * len(bad)),
        tuple(edges.tolist()),
        (tuple(counts[0]), tuple(counts[1])),
    )
