"""Design-based inference: intervals that hold whatever the bank's quality.

The only randomness used is the interview's own: which items were drawn, with
the propensities that were logged.  The bank's predictions serve as control
variates and can make an interval wide, never wrong.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import widened
from pytest_adaptive_eval.inference.student import student_quantile

__all__ = ["design_based", "hull", "mean_of_draws", "standard_error", "with_missing_bounded"]

Array = NDArray[np.float64]

#: Smallest standard deviation of a one-draw estimate that weighs, as a share of the items left.
SUREST = 0.1
#: Fewer draws in proportion to what a bank foresees tell too little of their own spread: then bets give the interval.
FEW_DRAWS = 20


def with_missing_bounded(log: DesignLog, confidence: float = 0.95) -> tuple[Interval, Interval]:
    """The design-based interval with every missing score counted as wrong, and as right; twice one where none is."""
    if not np.isnan(log.scores).any():
        whole = design_based(log, confidence)
        return whole, whole
    return design_based(log.with_missing_as(0.0), confidence), design_based(log.with_missing_as(1.0), confidence)


def hull(wrong: Interval, right: Interval) -> Interval:
    """The interval that holds both, see `with_missing_bounded`, about the middle of their estimates."""
    middle = (wrong.estimate + right.estimate) / 2
    return Interval(middle, wrong.low, right.high, wrong.confidence, wrong.method)


def design_based(log: DesignLog, confidence: float = 0.95) -> Interval:
    """Accuracy over the whole bank from a fixed number of randomly drawn items.

    With uniform draws and scores of 0 and 1 the bounds are exact, from the
    hypergeometric distribution (Wright 1991).  Otherwise the weighted mean of
    the unbiased one-draw estimates ::

        T_t = sum of scores before t + sum of predictions of the rest
              + (r_t - m_t) / q_t

    is used, with weights inverse to their model-based variance (chosen before
    the draw, so that they cannot bias) and a Student interval whose variance is
    the larger of the empirical and the model-based one, with one surprise more
    at either end than there was, see `_bound`: it holds for many draws.  Of
    fewer than `FEW_DRAWS` it is what bets leave, see `betting.anytime_valid`,
    which hold for any number.  Each is `widened` where the noise of decoding is known.

    Parameters
    ----------
    log : DesignLog
        Without missing scores; see `DesignLog.with_missing_as`.
    confidence : float
        Of each one-sided bound, in (0.5, 1).

    Raises
    ------
    EstimationError
        No propensities, a missing score, or nothing asked.
    """
    return widened(_of_scores(log, confidence), log)


def _of_scores(log: DesignLog, confidence: float) -> Interval:
    """The interval of the mean of the scores as they are, or would have been."""
    t, size = len(log.scores), log.size
    if t == 0:
        raise EstimationError("no item was asked, so there is nothing to infer from")
    if np.isnan(log.propensities).any():
        raise EstimationError("the items were not drawn at random, so no design-based interval exists")
    if np.isnan(log.scores).any():
        raise EstimationError("a score is missing: bound it first, see DesignLog.with_missing_as")
    known = float(log.scores.sum())
    least, most = known / size, (known + size - t) / size  # what is certain, come what may
    left = size - np.arange(t)
    uniform = np.allclose(log.propensities * left, 1.0, rtol=1e-9)
    if t == size:
        return Interval(least, least, least, confidence, "exact uniform")
    if uniform and np.isin(log.scores, (0.0, 1.0)).all():
        right = round(known)
        low = _smallest_total(right, t, size, 1.0 - confidence)
        high = size - _smallest_total(t - right, t, size, 1.0 - confidence)
        return Interval(right / t, low / size, high / size, confidence, "exact uniform")
    if t < FEW_DRAWS and not uniform:
        from pytest_adaptive_eval.inference.betting import anytime_valid  # which needs this module

        return anytime_valid(replace(log, noise=0.0), mean_of_draws(log), confidence)
    estimate = float(_weights(log) @ log.totals)
    ends = np.array([estimate, _bound(log, -1, confidence), _bound(log, 1, confidence)])
    middle, below, above = np.clip(ends / size, least, most).tolist()
    return Interval(min(max(middle, below), above), below, above, confidence, "design-based")


def _bound(log: DesignLog, side: Literal[1, -1], confidence: float) -> float:
    """Student's bound on the sum below (-1) or above (1), from the draws and one more that is as bad as may be.

    Where the bank is sure, and a surprise is rare and was not met, the draws hardly differ, and neither they nor the
    model tell how far one surprise would move them.  So a draw of mean weight is added that moves by as much as the
    draws could have on average, had each been the surprise.
    """
    weights, t = _weights(log), len(log)
    room = log.predictions - log.low if side < 0 else log.high - log.predictions
    surprise = float(weights @ log.totals) + side * float((room / log.propensities).mean())
    weights, totals = np.append(weights * t, 1.0) / (t + 1), np.append(log.totals, surprise)
    middle, concentration = float(weights @ totals), float((weights**2).sum())
    empirical = float((weights**2) @ (totals - middle) ** 2) / (1.0 - concentration)
    spread = math.sqrt(max(empirical, float((weights[:-1] ** 2) @ log.variance)))
    return middle + side * student_quantile(max(1.0 / concentration - 1.0, 1.0), confidence) * spread


def _weights(log: DesignLog) -> Array:
    """Shares of the one-draw estimates in their mean: inverse to their variance by the model, fixed before the draw.

    What the model says is believed down to `SUREST`, lest few draws of which it was surest count alone.
    """
    left = log.size - np.arange(len(log))
    weights = 1.0 / np.maximum(log.variance, (SUREST * left) ** 2)
    return np.asarray(weights / weights.sum())


def _spread(log: DesignLog) -> float:
    """Standard error of the mean of the one-draw estimates: the larger of the empirical and the model-based one."""
    weights = _weights(log)
    concentration = float((weights**2).sum())
    empirical = float((weights**2) @ (log.totals - weights @ log.totals) ** 2) / max(1.0 - concentration, 1e-9)
    return math.sqrt(max(empirical, float((weights**2) @ log.variance)))


def standard_error(log: DesignLog) -> float:
    """Standard error of `mean_of_draws`, over the draws and decodings that might have been.

    Missing scores count as a half.

    Parameters
    ----------
    log : DesignLog
        With propensities, and at least one draw.
    """
    return math.hypot(_spread(log.with_missing_as(0.5)), log.doubt) / log.size


def mean_of_draws(log: DesignLog) -> float:
    """Accuracy by the weighted mean of the one-draw estimates, within what the scores known allow.

    Of uniform draws from a bank that tells nothing of its items it is the share of right answers.
    """
    wrong, right = log.with_missing_as(0.0), log.with_missing_as(1.0)
    middle, left = log.with_missing_as(0.5), log.size - np.arange(len(log))
    if np.allclose(log.propensities * left, 1.0, rtol=1e-9) and np.allclose(log.rest, left * log.predictions):
        estimate = log.size * float(middle.scores.mean())
    else:
        estimate = float(_weights(middle) @ middle.totals)
    return float(np.clip(estimate, wrong.scores.sum(), right.scores.sum() + log.size - len(log))) / log.size


def _smallest_total(right: int, drawn: int, size: int, alpha: float) -> int:
    """Smallest number of right items in the bank that makes `right` or more of `drawn` likelier than `alpha`."""
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
    """Probability of `right` or more among `drawn` of `size` items, `total` of which are right (hypergeometric)."""
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
