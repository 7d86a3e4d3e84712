"""Design-based inference: estimates and exact bounds that hold for any quality of the bank.

The only randomness used is the draw of the items, with the logged propensities. The bank's predictions are control
variates. They can make an interval wide, never wrong.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.types import Array

SUREST = 0.1  #: Lower limit for model standard deviations in weights, per remaining item.


def is_exact(log: DesignLog) -> bool:
    """Return whether the bounds of `exact_bounds` hold, whatever the missing scores.

    The number of draws was planned, and they were uniform with scores of 0 and 1, or the whole bank was asked.
    """
    if not log.fixed or len(log) != log.horizon:
        return False
    limits = np.stack([log.with_missing_as(score).draws.scores for score in (0.0, 1.0)])
    return len(log) == log.size or (log.uniform and bool(np.isin(limits, (0.0, 1.0)).all()))


def exact_bounds(log: DesignLog, confidence: float) -> tuple[float, float]:
    """Return the hypergeometric bounds of the mean score over the bank (Wright 1991), where `is_exact` holds.

    Args:
        log: Draws of one subject, without missing scores. The first `DesignLog.take_all` are known parts of the sum.
        confidence: Confidence of each one-sided bound, in (0.5, 1).
    """
    scored = float(log.scores.sum())
    if len(log) == log.size:
        return scored / log.size, scored / log.size
    draws = log.draws
    t, right = len(draws), round(float(draws.scores.sum()))
    least = _smallest_total(right, t, draws.size, 1.0 - confidence)
    wrong = _smallest_total(t - right, t, draws.size, 1.0 - confidence)
    scored_wrong = scored - right
    return (scored_wrong + least) / log.size, (scored_wrong + draws.size - wrong) / log.size


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
    spread = _spread(draws.with_missing_as(0.5)) if len(draws) else 0.5 * draws.size
    return math.hypot(spread, log.decoding_sd) / log.size


def mean_of_draws(log: DesignLog) -> float:
    """Return the accuracy by the weighted mean of the one-draw estimates, within the limits that the scores set.

    It is the mean score for uniform draws from a bank with equal predictions, and where exact bounds hold.
    """
    log = log.estimated
    if log.take_all:
        draws, take_all_score = log.draws, float(log.with_missing_as(0.5).scores[: log.take_all].sum())
        return (take_all_score + draws.size * (mean_of_draws(draws) if len(draws) else 0.5)) / log.size
    wrong, right = log.with_missing_as(0.0), log.with_missing_as(1.0)
    middle, remaining = log.with_missing_as(0.5), log.size - np.arange(len(log))
    if is_exact(log) or (log.uniform and np.allclose(log.rest, remaining * log.predictions)):
        estimate = log.size * float(middle.scores.mean())
    else:
        estimate = float(_weights(middle) @ middle.totals)
    return float(np.clip(estimate, wrong.scores.sum(), right.scores.sum() + log.size - len(log))) / log.size


@lru_cache(maxsize=4096)  # replays ask for the bounds of a block of one length again and again
def _smallest_total(right: int, drawn: int, size: int, alpha: float) -> int:
    """Return the smallest number of right items in the bank with P(`right` or more of `drawn`) above `alpha`."""
    if right == 0:
        return 0
    low, high = right, size - (drawn - right)
    while low < high:
        middle = (low + high) // 2
        if _at_least(right, drawn, middle, size) > alpha * (1 - 1e-9):  # a tie does not exclude
            high = middle
        else:
            low = middle + 1
    return low


def _at_least(right: int, drawn: int, total: int, size: int) -> float:
    """Return P(`right` or more among `drawn` of `size` items with `total` right ones), hypergeometric."""
    first, last = max(right, drawn - (size - total)), min(drawn, total)
    if first > last:
        return 0.0
    start = _log_choose(total, first) + _log_choose(size - total, drawn - first) - _log_choose(size, drawn)
    k = np.arange(first, last, dtype=np.float64)
    growth = (total - k) * (drawn - k) / ((k + 1.0) * (size - total - drawn + k + 1.0))
    logs = start + np.concatenate(([0.0], np.log(growth).cumsum()))
    return min(1.0, float(np.exp(logs).sum()))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
