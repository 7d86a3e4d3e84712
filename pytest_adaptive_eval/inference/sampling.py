"""Design-based inference: intervals that hold for any quality of the bank.

The only randomness used is the draw of the items, with the logged propensities. The bank's predictions are control
variates. They can make an interval wide, never wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import widen_for_noise
from pytest_adaptive_eval.types import Array

SUREST = 0.1  #: Lower limit for model standard deviations in weights, per remaining item.
EXTREME = 0.5  #: Weight of the added extreme draw of each bound, in draws; 1 where no model gives the variance.
FEW_DRAWS = 20  #: Fewer draws by a bank's predictions do not measure their own variance: bets then give the interval.


def with_missing_bounded(log: DesignLog, confidence: float) -> tuple[Interval, Interval]:
    """Return the design-based intervals with every missing score counted as wrong, and as right."""
    if not np.isnan(log.scores).any():
        whole = design_based(log, confidence)
        return whole, whole
    return design_based(log.with_missing_as(0.0), confidence), design_based(log.with_missing_as(1.0), confidence)


def merge_missing_bounds(wrong: Interval, right: Interval) -> Interval:
    """Return the interval that contains both of `with_missing_bounded`, with the mean of their estimates."""
    middle = (wrong.estimate + right.estimate) / 2
    return Interval(middle, wrong.low, right.high, wrong.confidence, wrong.method)


def uniform_block(scores: Array, start: int, size: int, confidence: float) -> Interval:
    """Return the interval of the accuracy by the uniform draws at the end of an interview's part.

    Args:
        scores: Shape (t,). NaN marks a missing score.
        start: Number of items before the uniform draws, however they were chosen; their scores are known parts of the
            sum.
        size: Items in the bank.
        confidence: Confidence of each one-sided bound, exact for scores of 0 and 1.
    """
    t, draws = len(scores), scores[start:]
    if len(draws) and not np.isnan(scores[:start]).any() and ((draws == 0.0) | (draws == 1.0)).all():
        return _with_known(_exact(draws, size - start, confidence), scores[:start], size)
    left = np.maximum(size - np.arange(t, dtype=np.float64), 1.0)
    half = np.full(t, 0.5)
    uniform = np.where(np.arange(t) < start, 1.0, 1.0 / left)
    log = DesignLog(
        np.arange(t), scores, uniform, half, half * left, 0.25 * left**2, half * left, half * left, size, take_all=start
    )
    return merge_missing_bounds(*with_missing_bounded(log, confidence))


def design_based(log: DesignLog, confidence: float = 0.95) -> Interval:
    """Return the interval of the accuracy over the whole bank from a fixed number of randomly drawn items.

    With uniform draws and scores of 0 and 1 the bounds are exact, from the
    hypergeometric distribution (Wright 1991).  Otherwise the weighted mean of
    the unbiased one-draw estimates ::

        T_t = sum of scores before t + sum of predictions of the rest
              + (r_t - m_t) / q_t

    is used, with weights inverse to their model-based variance (chosen before the draw, so they cannot bias) and a
    Student interval whose variance is the larger of the empirical and the model-based one. Half an extreme draw is
    added per bound, see `_bound`. This holds for many draws. With fewer than `FEW_DRAWS` the interval is that of
    `betting.anytime_valid`, which holds for any number. Each is `widen_for_noise` if decoding noise is measured. The
    first `DesignLog.take_all` items are known parts of the sum, and the interval of the draws is that of the other
    items.

    Args:
        log: Draws without missing scores; see `DesignLog.with_missing_as`.
        confidence: Confidence of each one-sided bound, in (0.5, 1).

    Raises:
        EstimationError: No propensities, a missing score, or no item.
    """
    return widen_for_noise(_interval_of_scores(log, confidence), log)


def _interval_of_scores(log: DesignLog, confidence: float) -> Interval:
    """Return the interval of the mean score of this decoding."""
    if not log.take_all:
        return _interval_of_draws(log, confidence)
    draws = log.draws
    drawn = _interval_of_draws(draws, confidence) if len(draws) else Interval(0.5, 0.0, 1.0, confidence, "no draws")
    return _with_known(drawn, log.scores[: log.take_all], log.size)


def _with_known(drawn: Interval, known: Array, size: int) -> Interval:
    """Return the interval of all items from that of the ones after those of known scores."""
    if not len(known):
        return drawn
    total, rest = float(known.sum()), size - len(known)

    def whole(mean: float) -> float:
        return (total + rest * mean) / size

    return replace(drawn, estimate=whole(drawn.estimate), low=whole(drawn.low), high=whole(drawn.high))


def _interval_of_draws(log: DesignLog, confidence: float) -> Interval:
    """Return the interval of a log whose items were all drawn."""
    t, size = len(log.scores), log.size
    if t == 0:
        raise EstimationError("no item was administered, expected at least one")
    if np.isnan(log.propensities).any():
        raise EstimationError("propensities contain NaN, expected items drawn at random; use a random selector")
    if np.isnan(log.scores).any():
        raise EstimationError("scores contain NaN; call DesignLog.with_missing_as first")
    scored = float(log.scores.sum())
    least, most = scored / size, (scored + size - t) / size  # certain limits
    if t == size:
        return Interval(least, least, least, confidence, "exact uniform")
    uniform = log.uniform
    if uniform and np.isin(log.scores, (0.0, 1.0)).all():
        return _exact(log.scores, size, confidence)
    if t < FEW_DRAWS and not uniform:
        from pytest_adaptive_eval.inference.betting import anytime_valid  # which needs this module

        return anytime_valid(replace(log, noise=0.0), mean_of_draws(log), confidence)
    estimate = float(_weights(log) @ log.totals)
    ends = np.array([estimate, _bound(log, -1, confidence), _bound(log, 1, confidence)])
    middle, below, above = np.clip(ends / size, least, most).tolist()
    return Interval(min(max(middle, below), above), below, above, confidence, "design-based")


def _exact(scores: Array, size: int, confidence: float) -> Interval:
    """Return the hypergeometric interval from uniform draws with scores of 0 and 1."""
    t, right = len(scores), round(float(scores.sum()))
    low = _smallest_total(right, t, size, 1.0 - confidence)
    high = size - _smallest_total(t - right, t, size, 1.0 - confidence)
    return Interval(right / t, low / size, high / size, confidence, "exact uniform")


def _bound(log: DesignLog, side: Literal[1, -1], confidence: float) -> float:
    """Return Student's bound on the sum below (-1) or above (1), from the draws and half an added extreme draw.

    If the predictions are near certain and no rare error was drawn, the draws hardly differ, and neither they nor the
    model show the effect of one such error. So a draw of mean weight is added that lies as far as such errors could
    have put the draws on average. Half of it keeps the error rate on banks with wrong parameters; without it, bounds on
    these miss too often.
    """
    from scipy.special import stdtrit  # imported late: it takes a quarter of a second

    weights, t = _weights(log), len(log)
    error = log.predictions - log.low if side < 0 else log.high - log.predictions
    extreme = float(weights @ log.totals) + side * float((error / log.propensities).mean())
    weight = EXTREME if log.variance.any() else 1.0
    weights, totals = np.append(weights * t, weight) / (t + weight), np.append(log.totals, extreme)
    middle, concentration = float(weights @ totals), float((weights**2).sum())
    empirical = float((weights**2) @ (totals - middle) ** 2) / (1.0 - concentration)
    spread = math.sqrt(max(empirical, float((weights[:-1] ** 2) @ log.variance)))
    return middle + side * float(stdtrit(max(1.0 / concentration - 1.0, 1.0), confidence)) * spread


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
    draws = log.draws
    spread = _spread(draws.with_missing_as(0.5)) if len(draws) else 0.5 * draws.size
    return math.hypot(spread, log.decoding_sd) / log.size


def mean_of_draws(log: DesignLog) -> float:
    """Return the accuracy by the weighted mean of the one-draw estimates, within the limits that the scores set.

    For uniform draws from a bank with equal predictions it is the mean score.
    """
    if log.take_all:
        draws, known = log.draws, float(log.with_missing_as(0.5).scores[: log.take_all].sum())
        return (known + draws.size * (mean_of_draws(draws) if len(draws) else 0.5)) / log.size
    wrong, right = log.with_missing_as(0.0), log.with_missing_as(1.0)
    middle, remaining = log.with_missing_as(0.5), log.size - np.arange(len(log))
    if log.uniform and np.allclose(log.rest, remaining * log.predictions):
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
