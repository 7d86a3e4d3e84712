"""Anytime-valid tests of the accuracy over a bank, by betting on the items drawn.

A claim about the bank's sum of scores, "it is no more than T", is tested by a
gambler who starts with 1 and stakes a share of it on every draw.  With the
logged propensities a draw's estimate X of the sum is unbiased, so that under
the claim the factor ``1 + s (X - T)`` has mean 1 at most, whatever the stake s
of at least 0 chosen before the draw, as long as no draw can make it negative.
The wealth is then a supermartingale: the chance that it *ever* reaches
1 / alpha is at most alpha (Ville 1939), so that one may look after each answer
and stop when it does.  The bank's predictions are control variates: they make
X vary less when they are good, and never make the test wrong (Waudby-Smith and
Ramdas 2024; Shekhar et al. 2023, for weighted draws without replacement).

How fast wealth grows depends on the stake, whose best value depends on how far
the claim is from the truth.  Several gamblers each assume one distance; the
test's wealth is their mean, which costs no more than the logarithm of their
number and keeps the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import noise_margin, widened

__all__ = ["UNIT", "Claim", "Decisions", "anytime_valid", "decide", "log_wealth"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Distance from the threshold, as a share of the bank, that the middle gamblers of a threshold assume.
UNIT = 0.05
#: Assumed distances in units: a doubling grid, since wealth grows at three quarters of its best rate a factor 2 off.
DISTANCES = (0.5, 1.0, 2.0, 4.0)
#: Largest share of the wealth that a draw may lose.
LIMIT = 0.97
#: Sums of scores are compared up to rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """What a gate claims: the bank's sum of scores is at least `total`.

    Parameters
    ----------
    total : float
        In items; the accuracy times the size of the bank.
    confidence : float
        1 - alpha of each one-sided decision.
    unit : float
        Distance that the gamblers assume, as a share of the bank.
    distances : tuple of float
        What they assume in units, one each.
    rare : bool
        Whether most scores are predicted nearly surely, as from a baseline:
        then a draw brings a small gain or, rarely, a great loss, and the stake
        is the best for two such outcomes.
    """

    total: float
    confidence: float = 0.95
    unit: float = UNIT
    distances: tuple[float, ...] = DISTANCES
    rare: bool = False

    @property
    def log_alpha(self) -> float:
        """Logarithm of the error rate of each one-sided decision."""
        return float(np.log1p(-self.confidence))

    @property
    def sought(self) -> float | None:
        """The bank's sum of scores that it turns on; None where it is about other sums."""
        return self.total

    def view(self, log: DesignLog) -> DesignLog:
        """The draws that the claim is about."""
        return log


def log_wealth(log: DesignLog, claim: Claim, side: Literal[1, -1], margin: float | Array = 0.0) -> Array:
    """Logarithm of the running wealth of the bets for one decision.

    Parameters
    ----------
    log : DesignLog
        Without missing scores, see `DesignLog.with_missing_as`.
    claim : Claim
    side : {1, -1}
        1 gathers evidence that the sum is at least ``claim.total``, against its
        being smaller; -1 that it is smaller.
    margin : float or array, shape (..., 1)
        By how much the sum must clear it, see `inference.noise.widened`.

    Returns
    -------
    array, shape (..., t)
        Infinite from where the scores known settle the matter.

    Raises
    ------
    EstimationError
        No propensities, or a missing score.
    """
    return _wealth(log, claim, side)(claim.total + side * margin)


def _wealth(log: DesignLog, claim: Claim, side: Literal[1, -1]) -> Callable[[float | Array], Array]:
    """`log_wealth` as a function of the sum of scores, whatever the claim's own is."""
    if np.isnan(log.scores).any():
        raise EstimationError("a score is missing: bound it first, see DesignLog.with_missing_as")
    if np.isnan(log.propensities).any():
        raise EstimationError("the items were not drawn at random, so no bets can be judged")
    size, before, totals = log.size, log.before, log.totals
    expected, certain = before + log.rest, before + log.scores
    if side < 0:
        certain += size - np.arange(1, len(log) + 1)  # what is left to draw may all be right
    gaps = [distance * claim.unit * size for distance in claim.distances]
    # the best stakes for many small outcomes
    stakes = [] if claim.rare else [gap / (log.variance + gap * gap) for gap in gaps]

    def wealth(total: float | Array) -> Array:
        gain = side * (totals - total)
        worst = total - expected + log.down if side > 0 else expected + log.up - total
        with np.errstate(divide="ignore"):
            limit = LIMIT / np.maximum(worst, 1e-300)
        own = stakes
        if claim.rare:  # Kelly's stakes for two outcomes, of mean `gap`, variance and greatest loss as given
            loss = np.maximum(worst, ROUNDING)
            own = [gap * (1.0 + gap / loss) / (log.variance + gap * (gap + loss)) for gap in gaps]
        logs = np.empty((len(gaps), *gain.shape))
        for k, stake in enumerate(own):
            np.log1p(np.minimum(stake, limit) * gain).cumsum(axis=-1, out=logs[k])
        found = np.logaddexp.reduce(logs, axis=0) - np.log(len(gaps))
        settled = certain >= total - ROUNDING if side > 0 else certain < total - ROUNDING
        return np.asarray(np.where(settled, np.inf, found))

    return wealth


@dataclass(frozen=True, slots=True)
class Decisions:
    """What draws decide about m claims.

    Parameters
    ----------
    outcome : array of int, shape (..., m)
        1 where a claim holds, -1 where it does not, 0 where it is open.
    at : array of int, shape (..., m)
        Draws after which it was decided, from 1; 0 where it is open.
    """

    outcome: Ints
    at: Ints


def decide(log: DesignLog, claims: Sequence[Claim], family: int = 0) -> Decisions:
    """Decide claims that share an interview; what was decided once stays.

    Each claim is granted at its own error rate, since promotion asks for all of
    them.  Denials are corrected for their number by Holm's procedure (1979) on
    the anytime-valid p-values, 1 over the largest wealth so far: the chance of
    any false denial is at most alpha, however the claims depend on each other.
    Where the noise of decoding is known, claims are about what is expected over
    decodings, and thresholds move by it, see `inference.noise.widened`.

    Parameters
    ----------
    log : DesignLog
        With missing scores as NaN: granting counts them as 0, denying as 1.
    claims : sequence of Claim, length m
    family : int
        Number of claims to correct for, when others are judged elsewhere; at least m counts.

    Returns
    -------
    Decisions
    """
    t, m = len(log), len(claims)
    shape = log.scores.shape[:-1]
    if t == 0 or m == 0:
        return Decisions(np.zeros((*shape, m), dtype=np.int64), np.zeros((*shape, m), dtype=np.int64))
    logs = [c.view(log) for c in claims]

    number = max(family, m)

    def evidence(side: Literal[1, -1], missing: float) -> Array:
        """Log wealth times alpha of each claim, shape (..., m, t): at least 0 where one alone is decided."""
        found = []
        for claim, view in zip(claims, logs, strict=True):
            alpha = (1.0 - claim.confidence) / (number if side < 0 else 1)
            margin = np.asarray(noise_margin(view, 1.0 - alpha))[..., None]
            found.append(log_wealth(view.with_missing_as(missing), claim, side, margin) + claim.log_alpha)
        return np.stack(found, axis=-2)

    grant, deny = evidence(1, 0.0), evidence(-1, 1.0)
    best = np.maximum.accumulate(deny, axis=-1)
    order = (-best).argsort(axis=-2, kind="stable")
    needed = np.log(number - np.arange(m))[:, None] - ROUNDING
    steps = np.minimum.accumulate(np.take_along_axis(best, order, axis=-2) >= needed, axis=-2)
    denied = np.empty(steps.shape, dtype=bool)
    np.put_along_axis(denied, order, steps, axis=-2)
    granted_at, denied_at = _first(grant >= -ROUNDING), _first(denied)
    outcome = np.where(granted_at < denied_at, 1, np.where(denied_at <= t, -1, 0))
    at = np.minimum(granted_at, denied_at)
    return Decisions(outcome, np.where(outcome == 0, 0, at))


def _first(reached: NDArray[np.bool_]) -> Ints:
    """Draws up to and with the first that is true, or one more than there are, along the last axis."""
    return np.asarray(np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, reached.shape[-1] + 1))


def anytime_valid(log: DesignLog, estimate: float, confidence: float = 0.95, unit: float = UNIT) -> Interval:
    """Accuracies that no bet has refuted: an interval that holds at every moment at once.

    Parameters
    ----------
    log : DesignLog
        Of one subject, with missing scores as NaN: they widen it.
    estimate : float
        To show; moved into the interval.
    confidence : float
        Of each one-sided bound.
    unit : float
        See `Claim`.
    """
    size = log.size
    wrong, right = log.with_missing_as(0.0), log.with_missing_as(1.0)
    known = float(wrong.scores.sum())
    most = float(right.scores.sum()) + size - len(log)

    def refuted(missing: DesignLog, side: Literal[1, -1]) -> Callable[[float], bool]:
        claim = Claim(0.0, confidence, unit)
        wealth = _wealth(missing, claim, side)
        return lambda total: bool((wealth(total) + claim.log_alpha >= -ROUNDING).any())

    low = _edge(refuted(wrong, 1), known, most)
    high = _edge(refuted(right, -1), most, known)
    if low > high:  # draws that contradict each other: both ends were refuted, and what lies between is left in doubt
        low, high = high, low
    middle = min(max(estimate, low / size), high / size)
    return widened(Interval(middle, low / size, high / size, confidence, "anytime-valid"), log)


def _edge(refuted: Callable[[float], bool], sure: float, far: float) -> float:
    """Where bets stop refuting, between a total that is certain and the far end, to a thousandth of an item."""
    if refuted(far):
        return far
    while abs(far - sure) > 1e-3:
        middle = (sure + far) / 2
        sure, far = (middle, far) if refuted(middle) else (sure, middle)
    return sure
