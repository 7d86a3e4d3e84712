"""Comparisons of variants of a network, each run with the same seeds.

A quantity of a network, such as its energy, has one value per seed. The change from one variant to another is the mean
of its differences by seed, with Student's interval. Welch's test takes the values of the two as independent, as in
MACEval's ablation of the number of queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.extensions.studies.network.result import NetworkResult
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.types import Array

#: Confidence of each one-sided bound of a change: 95 % two-sided.
CONFIDENCE = 0.975
METHOD = "Student over seeds"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Change of one quantity from the network as written to a variant.

    Args:
        before, after: Means over seeds.
        change: None with fewer than two seeds that have both values.
        p_value: Two-sided, of Welch's t-test; NaN where it is undefined.
        seeds: Seeds that have both values.
    """

    variant: str
    quantity: str
    before: float
    after: float
    change: Interval | None
    p_value: float
    seeds: int


def quantities(results: Sequence[NetworkResult]) -> dict[str, Array]:
    """Return the values of each quantity by seed, NaN where missing.

    The quantities are ``energy``, ``area of NODE``, and ``error rate of NODE`` of nodes with an interviewer.
    """
    values: dict[str, list[float]] = {"energy": [result.energy.estimate for result in results]}
    for n, node in enumerate(results[0].nodes):
        nodes = [result.nodes[n] for result in results]
        values[f"area of {node.name}"] = [node_result.area for node_result in nodes]
        if any(node_result.interviewer for node_result in nodes):
            values[f"error rate of {node.name}"] = [node_result.error_rate for node_result in nodes]
    return {name: np.array(by_seed, dtype=np.float64) for name, by_seed in values.items()}


def contrasts(variant: str, before: Mapping[str, Array], after: Mapping[str, Array]) -> list[Contrast]:
    """Return the changes of all quantities that both have, in order."""
    return [_contrast(variant, name, before[name], values) for name, values in after.items() if name in before]


def _contrast(variant: str, quantity: str, before: Array, after: Array) -> Contrast:
    both = np.isfinite(before) & np.isfinite(after)
    old, new = before[both], after[both]
    change = mean_over_seeds(new - old, CONFIDENCE)
    means = (float(old.mean()), float(new.mean())) if both.any() else (math.nan, math.nan)
    return Contrast(variant, quantity, *means, change, welch_p_value(old, new), int(both.sum()))


def mean_over_seeds(values: Array, confidence: float) -> Interval | None:
    """Return the mean with Student's interval; None with fewer than two finite values."""
    from scipy.special import stdtrit

    finite = values[np.isfinite(values)]
    if len(finite) < 2:
        return None
    mean, error = float(finite.mean()), float(finite.std(ddof=1)) / len(finite) ** 0.5
    half_width = float(stdtrit(len(finite) - 1, confidence)) * error
    return Interval(mean, mean - half_width, mean + half_width, confidence, METHOD)


def welch_p_value(first: Array, second: Array) -> float:
    """Return the two-sided p-value of Welch's t-test; NaN with fewer than two values, or without any variance."""
    from scipy.stats import ttest_ind_from_stats

    if min(len(first), len(second)) < 2 or not (np.ptp(first) or np.ptp(second)):
        return math.nan
    moments = [(values.mean(), values.std(ddof=1), len(values)) for values in (first, second)]
    return float(ttest_ind_from_stats(*moments[0], *moments[1], equal_var=False).pvalue)
