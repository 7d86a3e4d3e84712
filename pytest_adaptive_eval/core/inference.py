"""Design-based inference: intervals that hold whatever the bank's quality.

The only randomness used is the interview's own: which items were drawn, with
the propensities that were logged.  The bank's predictions serve as control
variates and can make an interval wide, never wrong.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.core.irt import special  # scipy.stats would cost half a second to import
from pytest_adaptive_eval.core.session import DesignLog
from pytest_adaptive_eval.errors import EstimationError

__all__ = ["Interval", "design_based", "with_missing_as"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds.

    Parameters
    ----------
    estimate, low, high : float
    confidence : float
        Of each one-sided bound; the two-sided interval has 2 * confidence - 1.
    method : str
        ``exact uniform``, ``design-based`` or ``model-based``.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)


def with_missing_as(log: DesignLog, score: float) -> DesignLog:
    """The log with every missing score replaced: 0 and 1 bound what the missing could have been."""
    return replace(log, scores=np.where(np.isnan(log.scores), score, log.scores))


def design_based(log: DesignLog, confidence: float = 0.95) -> Interval:
    """Accuracy over the whole bank from a fixed number of randomly drawn items.

    With uniform draws and scores of 0 and 1 the bounds are exact, from the
    hypergeometric distribution (Wright 1991).  Otherwise the weighted mean of
    the unbiased one-draw estimates ::

        T_t = sum of scores before t + sum of predictions of the rest
              + (r_t - m_t) / q_t

    is used, with weights inverse to their model-based variance (chosen before
    the draw, so that they cannot bias) and a Student interval whose variance is
    the larger of the empirical and the model-based one.

    Parameters
    ----------
    log : DesignLog
        Without missing scores; see `with_missing_as`.
    confidence : float
        Of each one-sided bound, in (0.5, 1).

    Raises
    ------
    EstimationError
        No propensities, a missing score, or nothing asked.
    """
    t, size = len(log.scores), log.size
    if t == 0:
        raise EstimationError("no item was asked, so there is nothing to infer from")
    if np.isnan(log.propensities).any():
        raise EstimationError("the items were not drawn at random, so no design-based interval exists")
    if np.isnan(log.scores).any():
        raise EstimationError("a score is missing: bound it first, see with_missing_as")
    known = log.scores.sum()
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
    before = np.concatenate(([0.0], log.scores.cumsum()[:-1]))
    totals = before + log.rest + (log.scores - log.predictions) / log.propensities
    weights = 1.0 / np.maximum(log.variance, 1e-9)
    weights /= weights.sum()
    estimate = float(weights @ totals)
    concentration = float((weights**2).sum())
    empirical = float((weights**2) @ (totals - estimate) ** 2) / max(1.0 - concentration, 1e-9)
    model = float((weights**2) @ log.variance)
    half = float(special().stdtrit(max(1.0 / concentration - 1.0, 1.0), confidence)) * np.sqrt(max(empirical, model))
    low, high = (estimate - half) / size, (estimate + half) / size
    return Interval(
        float(np.clip(estimate / size, least, most)),
        float(np.clip(low, least, most)),
        float(np.clip(high, least, most)),
        confidence,
        "design-based",
    )


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
    k = np.arange(right, min(drawn, total) + 1)
    if len(k) == 0:
        return 0.0
    ways = _log_choose(total, k) + _log_choose(size - total, drawn - k)
    possible = drawn - k <= size - total
    return float(np.exp(special().logsumexp(ways[possible]) - _log_choose(size, drawn))) if possible.any() else 0.0


def _log_choose(n: int, k: int | NDArray[np.int64]) -> Array:
    gammaln = special().gammaln
    return np.asarray(gammaln(n + 1.0) - gammaln(np.asarray(k) + 1.0) - gammaln(np.maximum(n - k, 0) + 1.0))
