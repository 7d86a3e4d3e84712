"""Anytime-valid tests of the accuracy over a bank, by betting on the items drawn.

The claim that the bank's sum of scores is at most T is tested by a bet: a share of a wealth of 1 is staked on every
draw. With the logged propensities a draw's estimate X of the sum is unbiased. Under the claim, the factor ``1 + s (X -
T)`` has mean 1 at most for any stake s of at least 0 that is chosen before the draw and cannot make the factor
negative. The wealth is then a supermartingale: the probability that it *ever* reaches 1 / alpha is at most alpha (Ville
1939). The test may therefore be evaluated after each answer, and end when it decides. The bank's predictions are
control variates: good ones reduce the variance of X, and none invalidates the test (Waudby-Smith and Ramdas 2024;
Shekhar et al. 2023, for weighted draws without replacement).

Items that were asked with probability 1 (`DesignLog.take_all`) are known parts of the sum. Nothing is staked on them,
since their scores are not draws.

The growth of the wealth depends on the stake, whose best value depends on the distance of the claim from the truth.
Several bets each assume one distance. The test's wealth is their mean, which costs at most the logarithm of their
number and keeps the guarantee.

Where the number of draws is planned (`DesignLog.horizon`), half of the wealth aims at it, see `_aimed`. Uniform draws
that end there whatever the answers have bets of their own, see `_at_budget`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import noise_margin, widen_for_noise
from pytest_adaptive_eval.inference.sampling import is_exact, mean_of_draws, wealth_of_exact_test
from pytest_adaptive_eval.inference.tuning import Tuned, is_tunable, tuned
from pytest_adaptive_eval.types import Array, Bools, Ints

UNIT = 0.05  #: Distance from the threshold, as a share of the bank, that the middle bets assume.
#: Assumed distances in units, closer where gates are: wealth grows at three quarters of its best rate a factor 2 off.
DISTANCES = (0.5, 1.0, 2.0, 3.0)
LIMIT = 0.97  #: Largest share of the wealth that a draw may cost.
TWO_OUTCOMES = 0.8  #: The same for a stake by the two largest outcomes, which knows no variance.
AIMED = 0.5  #: Share of the wealth of the bet that aims at the horizon.
#: Factor and addition of the missing logarithm in `_aimed`, which approximate the hazard of a normal test.
HAZARD, HALF = 1.7, 0.5
#: Least distance, in units, that a bet aims for, in general and for rare flips: a horizon that allows a smaller one
#: leaves time enough.
NEAREST, NEAREST_RARE = 1.3, 0.5
SAME = 1e-11  #: Change of a logarithm of wealth that is none.
ROUNDING = 1e-9  #: Sums of scores are compared up to rounding.


@dataclass(frozen=True, slots=True)
class Claim:
    """Claim of a gate that the bank's sum of scores is at least `total`.

    Args:
        total: Sum in items: the accuracy times the size of the bank.
        confidence: 1 - alpha of each one-sided decision.
        unit: Unit of the distances that the bets assume, as a share of the bank.
        distances: Distance that each bet assumes, in units.
        rare: Whether most scores are predicted with near certainty, as from a baseline. A draw then brings a small gain
            or, rarely, a large loss, and the stake is the best one for two such outcomes.
        slack: Distance, in items, by which `total` may be off: a grant needs so much more, and a denial so much less.
    """

    total: float
    confidence: float = 0.95
    unit: float = UNIT
    distances: tuple[float, ...] = DISTANCES
    rare: bool = False
    slack: float = 0.0

    @property
    def log_alpha(self) -> float:
        """Logarithm of the error rate of each one-sided decision."""
        return float(np.log1p(-self.confidence))

    @property
    def assumed(self) -> tuple[float, ...]:
        """Distance that each bet assumes, as a share of the bank."""
        return tuple(self.unit * distance for distance in self.distances)

    @property
    def sought(self) -> float | None:
        """Bank's sum of scores at which the claim changes; None if it is about other sums."""
        return self.total

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws that the claim is about."""
        return log

    def required(self, side: int) -> float:
        """Return the sum that a grant (side 1) or a denial (side -1) has to clear."""
        return self.total + side * self.slack


def log_wealth(log: DesignLog, claim: Claim, side: Literal[1, -1], margin: float | Array = 0.0) -> Array:
    """Return the logarithm of the running wealth of the bets for one decision.

    Args:
        log: Without missing scores, see `DesignLog.with_missing_as`.
        side: 1 tests for a sum of at least ``claim.total``, -1 for a smaller sum.
        margin: Shape (..., 1). Distance by which the sum must clear it, see `inference.noise.widen_for_noise`.

    Returns:
        Shape (..., t). Infinite once the scores alone decide.

    Raises:
        EstimationError: No propensities, or a missing score.
    """
    return _wealth(log, claim, side)(claim.required(side) + side * margin)


def _wealth(log: DesignLog, claim: Claim, side: Literal[1, -1]) -> Callable[[float | Array], Array]:
    """Return `log_wealth` as a function of the sum of scores, in place of the claim's own."""
    if np.isnan(log.scores).any():
        raise EstimationError("scores contain NaN; call DesignLog.with_missing_as first")
    if np.isnan(log.propensities).any():
        raise EstimationError("propensities contain NaN, expected items drawn at random; bets need a random selector")
    tuning = None
    if not claim.rare and is_tunable(log):
        tuning = tuned(log)
    drawn = log if tuning is None else tuning.log
    size = log.size
    before = log.before
    totals = drawn.totals
    expected = before + log.rest
    certain = before + log.scores
    if side < 0:
        certain += size - np.arange(1, len(log) + 1)  # all remaining items may be right

    def wealth(total: float | Array) -> Array:
        # sums of right answers are whole numbers, and this is the nearest one that the bets refute
        refuted = total
        if tuning is not None:
            refuted = np.ceil(total - ROUNDING) - (side > 0)
        gain = side * (totals - refuted)
        gain[..., : log.take_all] = 0.0
        loss, best = refuted - expected + drawn.down, expected + drawn.up - refuted
        loss, best = (np.maximum(end, ROUNDING) for end in ((loss, best) if side > 0 else (best, loss)))
        limit = LIMIT / loss
        if tuning is not None:
            running = _at_budget(tuning, claim, side, refuted, gain, limit)
        else:
            running = np.zeros(gain.shape)
            if not log.fixed:
                running = _assuming_distances(log, claim, refuted, gain, loss, best)
            if log.take_all < min(len(log), log.horizon):
                running = _aimed(log, claim, side, gain, limit, running)
        if side > 0:
            settled = certain >= total - ROUNDING
        else:
            settled = certain < total - ROUNDING
        return np.asarray(np.where(settled, np.inf, running))

    return wealth


def _unexplained(log: DesignLog) -> Array:
    """Return the share of the variance of right and wrong answers that predictions leave, shape (..., t)."""
    most = log.rest * (log.size - np.arange(len(log)) - log.rest)
    return np.asarray(np.maximum(log.variance / np.maximum(most, ROUNDING), ROUNDING))


def _assuming_distances(
    log: DesignLog, claim: Claim, refuted: float | Array, gain: Array, loss: Array, best: Array
) -> Array:
    """Return the logarithm of the mean wealth of bets that each assume one distance.

    Args:
        refuted: Sum to refute.
        gain, loss, best: Shape (..., t). Gain of a draw per stake, and the largest possible loss and gain.
    """
    gaps = [distance * log.size for distance in claim.assumed]
    limit = LIMIT / loss
    items_left = log.size - np.arange(len(log))
    claimed = np.clip(refuted / log.size, 0.0, 1.0)
    variance = np.maximum(_unexplained(log) * claimed * (1.0 - claimed) * items_left**2, log.variance)
    logs = np.empty((len(gaps), *gain.shape))
    for gap, log_of_bet in zip(gaps, logs, strict=True):
        if claim.rare:  # Kelly's stake for two outcomes of mean `gap`, this variance and this largest loss
            stake = np.minimum(gap * (1.0 + gap / loss) / (log.variance + gap * (gap + loss)), limit)
        else:  # the best one for many small outcomes, or Kelly's for the two largest if that is more
            stake = np.maximum(np.minimum(gap / variance, limit), np.minimum(gap / best, TWO_OUTCOMES) / loss)
        np.log1p(stake * gain).cumsum(axis=-1, out=log_of_bet)
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(len(gaps)))


def _aimed(log: DesignLog, claim: Claim, side: int, gain: Array, limit: Array, others: Array) -> Array:
    """Return the logarithm of the wealth of other bets and of one that aims at the log's horizon, half each.

    With m draws left to the horizon, each of variance v, the bet assumes the distance ``sqrt(HAZARD (x + HALF) v / m)``
    at which m draws are likely to bring the x nats of wealth that it still lacks for a decision of its own. So it risks
    more when it is behind than when it is ahead, like a test of that fixed size with looks (O'Brien and Fleming 1979).
    Where the first distance would be below `NEAREST` units, the horizon leaves time enough, and the bet is left out.
    In an interview that ends at its horizon whatever the answers (`DesignLog.fixed`), all of the wealth aims at it.

    The wealth is a nonnegative supermartingale like that of the others: the stake follows from the horizon, the
    variance of the draw and the wealth before it, all fixed before the draw, and `limit` bounds it. It grows with every
    score too. With ratio r of distance to standard deviation, in (0, 1], the stake ``r / (1 + r^2) / sqrt(v)`` falls
    with the wealth W before it, so a loss takes a smaller share of more wealth. The amount W times stake grows with W,
    since ``-d log r / d log W = 1 / (2 (x + HALF)) <= 1``, so a gain adds more. Each score raises the gain of its own
    draw and of all later ones, and a share of the largest loss falls with it.

    For rare flips a draw has two outcomes, a small gain or, with a chance p of at most a half, the largest loss. The
    bet assumes the chance p' with ``2 (asin sqrt p - asin sqrt p') = r``, as `_at_budget` does, so it loses ``1 - p' /
    p`` of the wealth. The same is true of its stake.

    Args:
        gain, limit, others: Shape (..., t). Gain of a draw per stake, largest stake, and the other bets' wealth.
    """
    ahead = draws_ahead(log)
    part, nearest = 1.0, 0.0
    if not log.fixed:
        part = AIMED
        nearest = (NEAREST_RARE if claim.rare else NEAREST) * claim.unit * log.size
    lacking = np.log(1.0 / part) - claim.log_alpha
    sd = np.sqrt(np.maximum(log.variance, ROUNDING))
    first = log.take_all
    share = HAZARD / ahead
    near = share[first] * (lacking + HALF) >= (nearest / sd[..., first, None]) ** 2
    if not near.any():
        return others
    least = np.minimum(np.maximum(share * HALF, np.where(np.isfinite(ahead), (nearest / sd) ** 2, 0.0)), 1.0)
    most = share * (lacking + HALF)

    loss = np.maximum(LIMIT / limit, sd)
    angle = np.arctan(sd / loss)  # asin sqrt p

    def stakes(before: Array) -> Any:
        ratio = np.sqrt(np.minimum(np.maximum(most - share * before, least), 1.0))
        if claim.rare:
            stake = (1.0 - (np.sin(np.maximum(angle - ratio / 2.0, 0.0)) / np.sin(angle)) ** 2) / loss
        else:
            stake = ratio / ((1.0 + ratio**2) * sd)
        return np.minimum(stake, limit)

    wealth = _growing(log, (side, claim.total, claim.unit), gain, stakes)
    if log.fixed:
        return wealth
    both = np.logaddexp(np.log1p(-AIMED) + others, np.log(AIMED) + wealth)
    return np.asarray(np.where(near, both, others))


def draws_ahead(log: DesignLog) -> Array:
    """Return how many draws from an endless bank inform as much as those left to the next horizon, shape (t,)."""
    order = np.arange(len(log))
    horizons = np.array(log.horizons)
    aim = horizons[np.minimum(horizons.searchsorted(order, side="right"), len(horizons) - 1)]
    items_left = log.size - order
    end = np.maximum(log.size - aim, ROUNDING)
    return np.asarray(np.where(order < aim, items_left * (aim - order) / end, np.inf))


def _growing(
    log: DesignLog, key: tuple[float, ...], gain: Array, stakes: Callable[[Array], Any], first: Array | float = 0.0
) -> Array:
    """Return the logarithm of the wealth of bets whose stakes depend on their wealth before each draw.

    Args:
        key: Of the bets in `DesignLog.paths`.
        stakes: Takes the logarithm of the wealth before each draw.
        first: Shape (..., 1). Logarithm of the wealth before all draws.
    """
    before = np.zeros(gain.shape) + first
    wealth = np.empty(gain.shape)
    if (earlier := log.paths.get(key)) is not None and earlier.shape[:-1] == gain.shape[:-1]:
        shared = min(earlier.shape[-1], gain.shape[-1] - 1)
        before[..., 1 : shared + 1], before[..., shared + 1 :] = earlier[..., :shared], earlier[..., -1:]
    # iterated until nothing changes, which each pass makes true of one more draw at least
    for _ in range(gain.shape[-1] + 1):
        np.log1p(stakes(before) * gain).cumsum(axis=-1, out=wealth)
        wealth += first
        change = np.abs(wealth[..., :-1] - before[..., 1:]).max(initial=0.0)
        before[..., 1:] = wealth[..., :-1]
        if change < SAME:
            break
    log.paths[key] = wealth
    return wealth


def _at_budget(
    tuning: Tuned, claim: Claim, side: Literal[1, -1], refuted: float | Array, gain: Array, limit: Array
) -> Array:
    """Return the logarithm of the wealth of bets on a budget of uniform draws, 0 before they begin.

    Up to `Tuned.start` the bets equal the exact test of right and wrong answers, see `sampling.wealth_of_exact_test`.
    From there on predictions reduce the variance. With m draws left, and x the nats of
    wealth still lacking, the bet on a right answer of chance p assumes p' at the distance of Bernoulli draws, ``4 (asin
    sqrt p' - asin sqrt p)^2 = HAZARD (x + HALF) / m``. With predictions, both outcomes are nearer to 0, by the root of
    the variance's share that these leave.

    Args:
        refuted: Sum to refute.
        gain, limit: Shape (..., t). Gain of a draw per stake, and largest stake.
    """
    log, start = tuning.log, tuning.start
    order = np.arange(len(log))
    if len(log) == log.horizon:
        start = np.minimum(start, log.horizons[0])
        first = wealth_of_exact_test(log, start, np.asarray(refuted), side, 1.0 - claim.confidence)[..., None]
    else:
        start, first = np.full(start.shape, log.take_all), np.zeros((*start.shape, 1))
    begins = start[..., None]
    items_left = log.size - order
    chance = np.clip((refuted - log.before) / items_left, ROUNDING, 1.0 - ROUNDING)
    if side < 0:
        chance = 1.0 - chance
    angle = np.arcsin(np.sqrt(chance))
    share = HAZARD / draws_ahead(log)
    per_stake = chance * (1.0 - chance) * items_left * np.sqrt(_unexplained(log))

    def stakes(before: Array) -> Any:
        lacking = np.maximum(-claim.log_alpha - before, 0.0)
        assumed = np.minimum(angle + np.sqrt(share * (lacking + HALF)) / 2.0, np.pi / 2.0)
        return np.minimum((np.sin(assumed) ** 2 - chance) / per_stake, limit)

    key = (side, claim.total, claim.confidence)
    path = _growing(log, key, np.where(order >= begins, gain, 0.0), stakes, first)
    return np.asarray(np.where(order >= begins - 1, path, 0.0))


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions about m claims by draws.

    Args:
        outcome: Shape (..., m). 1 where a claim holds, -1 where it does not, 0 where it is undecided.
        at: Shape (..., m). Number of draws at the decision, from 1; 0 where it is undecided.
    """

    outcome: Ints
    at: Ints


def decide(log: DesignLog, claims: Sequence[Claim], family: int = 0) -> Decisions:
    """Decide claims that share an interview; a decision is final.

    Each claim is granted at its own error rate, since promotion needs all of them. Denials are corrected for their
    number by Holm's procedure (1979) on the anytime-valid p-values, 1 over the largest wealth so far. The probability
    of any false denial is at most alpha, for any dependence between the claims. If decoding noise is measured, claims
    are about the expected score over decodings, and thresholds move by a margin, see `inference.noise.widen_for_noise`.

    Args:
        log: Missing scores are NaN: granting counts them as 0, denying as 1.
        family: Number of claims to correct for, when others are judged elsewhere; at least m counts.
    """
    t = len(log)
    m = len(claims)
    shape = log.scores.shape[:-1]
    if t == 0 or m == 0:
        return Decisions(np.zeros((*shape, m), dtype=np.int64), np.zeros((*shape, m), dtype=np.int64))
    logs = [c.view(log) for c in claims]

    number = max(family, m)

    def evidence(side: Literal[1, -1], missing: float) -> Array:
        """Return log(wealth alpha) of each claim, shape (..., m, t): at least 0 where one alone is decided."""
        evidence_by_claim = []
        for claim, view in zip(claims, logs, strict=True):
            alpha = (1.0 - claim.confidence) / (number if side < 0 else 1)
            margin = np.asarray(noise_margin(view, 1.0 - alpha))[..., None]
            if log.fixed:
                aimed = replace(claim, confidence=1.0 - alpha)
            else:
                aimed = claim
            evidence_by_claim.append(log_wealth(view.with_missing_as(missing), aimed, side, margin) + claim.log_alpha)
        return np.stack(evidence_by_claim, axis=-2)

    grant = evidence(1, 0.0)
    deny = evidence(-1, 1.0)
    best = np.maximum.accumulate(deny, axis=-1)
    order = (-best).argsort(axis=-2, kind="stable")
    needed = np.log(number - np.arange(m))[:, None] - ROUNDING
    steps = np.minimum.accumulate(np.take_along_axis(best, order, axis=-2) >= needed, axis=-2)
    denied = np.empty(steps.shape, dtype=bool)
    np.put_along_axis(denied, order, steps, axis=-2)
    granted_at = _first(grant >= -ROUNDING)
    denied_at = _first(denied)
    outcome = np.where(granted_at < denied_at, 1, np.where(denied_at <= t, -1, 0))
    at = np.minimum(granted_at, denied_at)
    return Decisions(outcome, np.where(outcome == 0, 0, at))


#: Draws for which a prior expectation of their number counts in `further_draws`.
PRIOR_DRAWS = 16


def further_draws(log: DesignLog, claim: Claim, expected: float) -> int:
    """Return how many further draws a decision about a claim may need, at least 1; a forecast without a guarantee.

    The evidence is taken to grow as in the later half of the draws so far.

    Args:
        log: At least one draw of one subject.
        expected: Draws that were expected to be needed before the first.
    """
    view = claim.view(log)
    prior = -claim.log_alpha / expected * PRIOR_DRAWS
    half = len(log) // 2
    needed = np.inf
    sides: tuple[tuple[Literal[1, -1], float], ...] = ((1, 0.0), (-1, 1.0))
    for side, missing in sides:
        wealth = log_wealth(view.with_missing_as(missing), claim, side)
        now = float(wealth[-1])
        if half:
            then = float(wealth[half - 1])
        else:
            then = 0.0
        if now + claim.log_alpha >= 0:
            return 1
        growth = (now - max(then, claim.log_alpha) + prior) / (len(log) - half + PRIOR_DRAWS)
        if growth > 0:
            needed = min(needed, (-claim.log_alpha - now) / growth)
    return int(min(max(np.ceil(needed), 1), 1 << 30))


def _first(reached: Bools) -> Ints:
    """Return the number of draws up to the first true one, or one more than all, along the last axis."""
    return np.asarray(np.where(reached.any(axis=-1), reached.argmax(axis=-1) + 1, reached.shape[-1] + 1))


def interval_of_draws(log: DesignLog, confidence: float = 0.95, unit: float = UNIT) -> Interval:
    """Return the interval of the accuracy by the draws, as gates have it.

    It is exact after a planned number of uniform draws that the bank's predictions do not help, see
    `sampling.is_exact`. Otherwise it holds the accuracies that no bet has refuted: at every moment at once, or at the
    horizon alone if the log is `DesignLog.fixed`.

    Args:
        log: Draws of one subject; missing scores, NaN, widen the interval.
        confidence: Confidence of each one-sided bound.
        unit: See `Claim`.

    Raises:
        EstimationError: No item, or no propensities.
    """
    if not len(log):
        raise EstimationError("no item was administered, expected at least one")
    wrong = log.with_missing_as(0.0)
    right = log.with_missing_as(1.0)
    least = float(wrong.scores.sum())
    most = float(right.scores.sum()) + log.size - len(log)
    ends = [
        _edge(_refuted_by(wrong, 1, confidence, unit), least, most),
        _edge(_refuted_by(right, -1, confidence, unit), most, least),
    ]
    if is_tunable(log):
        ends = [float(round(end)) for end in ends]  # sums of right answers
    # if both ends are refuted, the values between remain
    low = min(ends) / log.size
    high = max(ends) / log.size
    method = "bets at the budget" if log.fixed else "anytime-valid"
    if is_exact(log):
        method = "exact uniform"
    middle = min(max(mean_of_draws(log), low), high)
    return widen_for_noise(Interval(middle, low, high, confidence, method), log)


def excludes(log: DesignLog, accuracy: float, confidence: float = 0.95) -> bool:
    """Return whether an accuracy lies outside of `interval_of_draws`, which takes a tenth of its time."""
    total = accuracy * log.size
    below = _refuted_by(log.with_missing_as(0.0), 1, confidence, UNIT)
    above = _refuted_by(log.with_missing_as(1.0), -1, confidence, UNIT)
    return below(total + 2.0 * ROUNDING) or above(total)


def _refuted_by(log: DesignLog, side: Literal[1, -1], confidence: float, unit: float) -> Callable[[float], bool]:
    """Return the function that says whether the bets for a sum above (1) or below (-1) another one refute that."""
    claim = Claim(0.0, confidence, unit)
    wealth = _wealth(log, claim, side)
    return lambda total: bool((wealth(total) + claim.log_alpha >= -ROUNDING).any())


def _edge(refuted: Callable[[float], bool], sure: float, far: float) -> float:
    """Return the total at which bets stop refuting, between a certain one and the far end, to 0.001 items."""
    if refuted(far):
        return far
    while abs(far - sure) > 1e-3:
        middle = (sure + far) / 2
        if refuted(middle):
            sure, far = middle, far
        else:
            sure, far = sure, middle
    return sure
