"""Design-based inference: estimates and exact bounds that hold for any quality of the bank.

The only randomness used is the draw of the items, with the logged propensities. The bank's predictions are control
variates. They can make an interval wide, never wrong.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.tuning import is_tunable, tuned
from pytest_adaptive_eval.types import Array, Ints

APPROXIMATE = "approximate"  #: Method of intervals that hold nearly, at one look.
TINY = 1e-300  #: Least chance, whose logarithm is finite.
SUREST = 0.1  #: Lower limit for model standard deviations in weights, per remaining item.


def is_exact(log: DesignLog) -> bool:
    """Return whether bounds of the accuracy are exact, whatever the missing scores.

    Either the whole bank was asked, or the number of draws was planned, and they were uniform with scores of 0 and 1.
    Their bounds are hypergeometric (Wright 1991) unless the draws rely on predictions.
    """
    if not log.fixed or len(log) != log.horizon:
        return False
    if len(log) == log.size or log.earlier or not is_tunable(log):
        return len(log) == log.size
    limits = (log.with_missing_as(score) for score in (0.0, 1.0))
    return all((tuned(limit).start == len(log)).all() for limit in limits)


def wealth_of_exact_test(log: DesignLog, count: Ints, total: Array, side: Literal[1, -1], alpha: float) -> Array:
    """Return the logarithm of the wealth of the exact test as a bet, after `count` administrations, shape (...,).

    The bet pays 1 over the test's error rate if all draws refute the claim, and nothing otherwise. Before the last draw
    its wealth is the expectation of that payment under the claim.

    Args:
        log: All planned draws, uniform, with scores of 0 and 1. The test is that of the first planned number.
        count: Shape (...,).
        total: Shape () or (..., 1), whole numbers. Sum of scores to refute: it is at most that (side 1), or at least
            that (side -1).
        side: See `betting.log_wealth`.
        alpha: Error rate of the test.
    """
    taken = log.take_all
    size = log.size - log.take_all
    planned = log.horizons[0] - log.take_all
    sums = np.concatenate([np.zeros((*count.shape, 1)), log.scores.cumsum(axis=-1)], axis=-1)
    right = np.take_along_axis(sums, count[..., None], axis=-1)[..., 0] - sums[..., taken]
    most = total.reshape(total.shape[:-1]) - sums[..., taken]
    drawn = count - taken
    if side < 0:
        right = drawn - right
        most = size - most
    states = zip(right.ravel().tolist(), drawn.ravel().tolist(), most.ravel().tolist(), strict=True)
    wealth = [_wealth(int(right), drawn, int(most), size, planned, alpha) for right, drawn, most in states]
    return np.array(wealth).reshape(count.shape)


@lru_cache(maxsize=4096)
def _wealth(right: int, drawn: int, most: int, size: int, planned: int, alpha: float) -> float:
    """Return the logarithm of the wealth against a sum of at most `most`, after `right` of `drawn`."""
    needed = _fewest_refuting(most, planned, size, alpha)
    if most >= size or needed > min(planned, most):  # the test cannot refute it
        return 0.0
    if right >= needed:
        chance = 1.0
    else:
        chance = _at_least(needed - right, planned - drawn, most - right, size - drawn)
    return math.log(max(chance, TINY) / max(_at_least(needed, planned, most, size), TINY))


@lru_cache(maxsize=4096)
def _fewest_refuting(total: int, drawn: int, size: int, alpha: float) -> int:
    """Return the smallest number of right items that refutes `total` or fewer right items in the bank."""
    low = 0
    high = drawn + 1
    while low < high:
        middle = (low + high) // 2
        if middle == 0 or _at_least(middle, drawn, total, size) > alpha * (1 - 1e-9):
            low = middle + 1
        else:
            high = middle
    return low


def _weights(log: DesignLog) -> Array:
    """Return weights of the one-draw estimates: inverse to their variance by the model, fixed before the draw.

    `SUREST` limits that variance, since otherwise the few draws with the surest predictions would count alone.
    """
    remaining = log.size - np.arange(len(log))
    weights = 1.0 / np.maximum(log.variance, (SUREST * remaining) ** 2)
    return np.asarray(weights / weights.sum())


def _spread(log: DesignLog) -> float:
    """Return the standard error of the mean one-draw estimate, the larger of the empirical and the model-based."""
    weights = _weights(log)
    concentration = float((weights**2).sum())
    empirical = float((weights**2) @ (log.totals - weights @ log.totals) ** 2) / max(1.0 - concentration, 1e-9)
    return math.sqrt(max(empirical, float((weights**2) @ log.variance)))


def standard_error(log: DesignLog) -> float:
    """Return the standard error of `mean_of_draws` over possible draws and decodings.

    Missing scores count as a half.

    Args:
        log: At least one item, with propensities. Without a draw, the error of any other item is at most a half.
    """
    log = log.estimated
    draws = log.draws
    middle = draws.with_missing_as(0.5)
    if len(draws):
        spread = _spread(tuned(middle).log if is_tunable(draws) else middle)
    else:
        spread = 0.5 * draws.size
    return math.hypot(spread, log.decoding_sd) / log.size


def sampling_error(scores: Array) -> float:
    """Return the standard error of a mean score over new samples of items and answers: its spread over their root.

    A score of 0 and one of 1, of half a weight each, are added, since equal scores do not make the mean certain.

    Args:
        scores: Shape (t,). At least one is not missing.
    """
    scored = np.append(scores[~np.isnan(scores)], [0.0, 1.0])
    weights = np.ones(len(scored))
    weights[-2:] = 0.5
    mean = np.average(scored, weights=weights)
    variance = np.average((scored - mean) ** 2, weights=weights)
    return math.sqrt(variance / (len(scored) - 2))


def mean_of_draws(log: DesignLog) -> float:
    """Return the accuracy by the weighted mean of the one-draw estimates, within the limits that the scores set.

    It is the mean score for uniform draws from a bank with equal predictions, and where exact bounds hold.
    """
    log = log.estimated
    if log.take_all:
        draws = log.draws
        take_all_score = float(log.with_missing_as(0.5).scores[: log.take_all].sum())
        return (take_all_score + draws.size * (mean_of_draws(draws) if len(draws) else 0.5)) / log.size
    wrong = log.with_missing_as(0.0)
    right = log.with_missing_as(1.0)
    middle = log.with_missing_as(0.5)
    remaining = log.size - np.arange(len(log))
    if is_exact(log) or (log.uniform and np.allclose(log.rest, remaining * log.predictions)):
        estimate = log.size * float(middle.scores.mean())
    else:
        if is_tunable(log):
            middle = tuned(middle).log
        estimate = float(_weights(middle) @ middle.totals)
    return float(np.clip(estimate, wrong.scores.sum(), right.scores.sum() + log.size - len(log))) / log.size


def approximate_interval(log: DesignLog, confidence: float = 0.95) -> Interval:
    """Return `mean_of_draws` with bounds by `standard_error`, which no gate uses; missing scores widen it.

    The one-draw estimates are taken as normal, and the quantile is Student's to the first order of one over the draws.

    Args:
        log: At least one item, with propensities.
        confidence: Confidence of each one-sided bound.
    """
    quantile = NormalDist().inv_cdf(confidence)
    quantile += (quantile**3 + quantile) / (4.0 * max(len(log.estimated.draws) - 1, 1))
    half = quantile * standard_error(log)
    low, high = (mean_of_draws(log.with_missing_as(score)) for score in (0.0, 1.0))
    return Interval(mean_of_draws(log), max(low - half, 0.0), min(high + half, 1.0), confidence, APPROXIMATE)


def _at_least(right: int, drawn: int, total: int, size: int) -> float:
    """Return P(`right` or more among `drawn` of `size` items with `total` right ones), hypergeometric."""
    first = max(right, drawn - (size - total))
    last = min(drawn, total)
    if first > last:
        return 0.0
    start = _log_choose(total, first) + _log_choose(size - total, drawn - first) - _log_choose(size, drawn)
    k = np.arange(first, last, dtype=np.float64)
    growth = (total - k) * (drawn - k) / ((k + 1.0) * (size - total - drawn + k + 1.0))
    logs = start + np.concatenate(([0.0], np.log(growth).cumsum()))
    return min(1.0, float(np.exp(logs).sum()))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
