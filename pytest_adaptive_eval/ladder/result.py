"""Results of ladders: the area, the last level, and the difference of two subjects.

A ladder administers a number of items of each level of a generated task, from the easiest level on. Its area is the sum
of the accuracies over the levels, the number of levels that a subject masters. The target is that sum up to a level
cap, at the accuracies over endlessly many items. It is not the sum up to the level at which a ladder of few items
stopped, which differs between two runs of one checkpoint: at a true accuracy of one in ten, ten wrong answers in a row
happen in a third of all ladders.

Unadministered levels add nothing to the estimate and to the lower bound. In the upper bound each adds the upper bound
of the last administered level, since accuracy is assumed never to rise with level. With ``untested="zero"`` they add
nothing to either bound, for ladders that end at a given rate by design.

The bounds join the levels' variances. The variance within a level of few answers is uncertain, so levels that the data
do not separate are pooled. Errors at easy levels and successes at hard ones are rare, and their number in the sample
may be 0. The score interval of a tilted sum allows for that. Let theta be the sum, V its variance, and V' = k3 / k2 the
rate at which the variance grows with the sum when all its parts are tilted alike (k2 = V, k3 the third cumulant). The
bounds solve (x - theta)^2 = z^2 (V + V' (x - theta)). For one level without a success this is the rule of z^2 / n. Easy
and hard levels err in opposite directions; the squares of their half widths are added (Zou and Donner 2008).

All intervals assume that accuracy never rises with level. Where it rises again, levels that were not asked may add more
than `Ladder.above` allows for, and a last level may be followed by better ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal, NamedTuple

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.types import Array

Untested = Literal["bounded", "zero"]

PRIOR = 1.0  #: Pseudo-answers of each pool of levels, half of them right, which keep every variance above zero.
#: Factor of the half widths for levels that were chosen by their answers, and stopped when the bounds were near enough:
#: such stops favour variances that came out small (benchmarks/error_rates.py).
STOPPED = 1.05
BORROWED = 2.0  #: Pseudo-answers of each level at the mean rate, in comparisons of two subjects.
STAKES = (0.1, 0.25, 0.5, 0.9)  #: Stakes of the bets on one level's accuracy, as shares of the largest stake.


class Levels(NamedTuple):
    """Sufficient statistics of L levels.

    Args:
        counts: Shape (L,). Numbers of answers.
        means: Shape (L,). Accuracies.
        dispersion: Ratio of the scores' variance to that of binary scores: 1 without fractional scores, less otherwise.
    """

    counts: Array
    means: Array
    dispersion: float

    @classmethod
    def of(cls, scores: Sequence[Array]) -> Levels:
        """Create from the scores of each level; an EstimationError if a level has none, or one is missing."""
        for n, level in enumerate(scores, 1):
            if not len(level):
                raise EstimationError(f"level {n} of the ladder has no score")
            if np.isnan(level).any():
                raise EstimationError("a score is missing")
        counts = np.array([len(level) for level in scores], dtype=float)
        sums = np.array([level.sum() for level in scores])
        squares = np.array([(level * level).sum() for level in scores])
        return cls(counts, sums / counts, _dispersion(counts, sums, squares))


def _dispersion(counts: Array, sums: Array, squares: Array) -> float:
    """Return the ratio of the variance within levels to that of binary scores, at most 1 and near 1 for little data."""
    binary = float((sums - sums * sums / counts).sum()) + PRIOR / 4
    within = float((squares - sums * sums / counts).sum() + PRIOR / 4)
    return min(within / binary, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """Scores of one subject by level.

    Args:
        scores: Scores of each administered level in [0, 1], from the first level on; NaN marks a missing score.
        cap: Number of the hardest level.
        first: Number of the easiest level.
        stop_at: Accuracy that fails a level; it defines the last level.
        alike: Number of last levels whose mean accuracy bounds that of unadministered levels: several if they were
            found to be alike, such as by guessing.

    Raises:
        EstimationError: Levels are missing, or more than the cap allows.
    """

    scores: tuple[Array, ...]
    cap: int
    first: int = 1
    stop_at: float = 0.0
    alike: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", tuple(np.array(level, dtype=float) for level in self.scores))
        if not 1 <= len(self.scores) <= self.cap - self.first + 1:
            raise EstimationError(
                f"a ladder from level {self.first} to {self.cap} cannot have scores on {len(self.scores)} levels"
            )

    @property
    def accuracies(self) -> Array:
        """Mean score of each administered level; NaN for a level without scores."""
        means = np.full(len(self.scores), np.nan)
        for n, level in enumerate(self.scores):
            scored = level[~np.isnan(level)]
            if len(scored):
                means[n] = scored.mean()
        return means

    @property
    def area(self) -> float:
        """Sum of the accuracies over the levels."""
        return float(np.nansum(self.accuracies))

    @property
    def last_level(self) -> int:
        """Number of the last level with an accuracy above `stop_at`; `first` - 1 if there is none."""
        return self.last_level_above(self.stop_at)

    def last_level_above(self, rate: float) -> int:
        """Return the number of the last level with an accuracy above a rate; `first` - 1 if there is none."""
        above = np.flatnonzero(np.nan_to_num(self.accuracies) > rate)
        if not len(above):
            return self.first - 1
        return self.first + int(above[-1])

    @property
    def untested(self) -> int:
        """Number of unadministered levels up to the cap."""
        return self.cap - self.first + 1 - len(self.scores)

    def __str__(self) -> str:
        """Return area and last level as ``1.7/2``."""
        area = f"{self.area:.3f}".rstrip("0").rstrip(".")
        return f"{area}/{self.last_level}"

    def filled(self, value: float) -> Ladder:
        """Return a copy with missing scores replaced by `value`."""
        return replace(self, scores=tuple(np.nan_to_num(level, nan=value) for level in self.scores))

    def above(self, confidence: float = 0.95) -> float:
        """Return the upper bound, in levels, on the area of unadministered levels.

        It assumes that accuracy never rises with level. A ladder may end by chance at each of its levels, so the error
        probability is split among them.
        """
        if not self.untested:
            return 0.0
        last = Levels.of([np.concatenate(self.filled(1.0).scores[-self.alike :])])
        error = (1.0 - confidence) / len(self.scores)
        _, high = area_bounds(last, 1.0 - error)
        return self.untested * high

    def interval(self, confidence: float = 0.95, untested: Untested = "bounded") -> Interval:
        """Return the area with its bounds; missing scores are 0 in the lower bound and 1 in the upper.

        Args:
            confidence: Confidence of each one-sided bound.
            untested: Accuracy of unadministered levels in the upper bound: `above`, or 0.

        Raises:
            EstimationError: A level has no answer.
        """
        low, _ = area_bounds(Levels.of(self.filled(0.0).scores), confidence)
        _, high = area_bounds(Levels.of(self.filled(1.0).scores), confidence)
        if untested == "bounded":
            high += self.above(confidence)
        return Interval(min(max(self.area, low), high), low, high, confidence, "by levels")


def pooled(means: Array, counts: Array) -> list[tuple[slice, float]]:
    """Return pools of adjacent levels and their mean scores, which fall from pool to pool.

    This is the weighted least-squares fit that never rises, by pooling adjacent violators.
    """
    pools: list[tuple[float, float, int]] = []  # sum of scores, answers, levels
    for mean, count in zip(means.tolist(), counts.tolist(), strict=True):
        total = mean * count
        answers = count
        levels = 1
        while pools:
            total_before, answers_before, levels_before = pools[-1]
            if total_before * answers > total * answers_before:  # the mean falls from that pool to this one
                break
            pools.pop()
            total = total_before + total
            answers = answers_before + answers
            levels = levels_before + levels
        pools.append((total, answers, levels))
    out = []
    start = 0
    for total, count, levels in pools:
        stop = start + levels
        out.append((slice(start, stop), total / count))
        start = stop
    return out


def smoothed(levels: Levels, predicted: Array | None = None) -> Array:
    """Return the accuracies that determine the variances, shape (L,): pooled, with pseudo-answers.

    Each pool has `PRIOR` pseudo-answers, half of them right. With `predicted` each level has as many besides, with that
    mean.
    """
    out = np.empty(len(levels.means))
    for where, mean in pooled(levels.means, levels.counts):
        answers = float(levels.counts[where].sum())
        size = where.stop - where.start
        right = mean * answers + PRIOR / 2
        more = PRIOR
        if predicted is not None:
            right = right + PRIOR * size * predicted[where]
            more = PRIOR + PRIOR * size
        out[where] = right / (answers + more)
    return out


def reach(variance: Array, third: Array, z: float, side: float | Array) -> Array:
    """Return the half width of a tilted sum's interval where its variance grows (`side` 1) or shrinks (-1)."""
    slope = np.divide(third, variance, out=np.zeros_like(variance), where=variance > 0)
    half: Array = (side * z * z * slope + np.sqrt((z * z * slope) ** 2 + 4.0 * z * z * variance)) / 2.0
    return half


class Cumulants(NamedTuple):
    """Cumulants of the sampling error of a sum, in two groups by how its variance moves when the sum does.

    Cumulants of independent sums add up, so the skewness of many sums together is less than that of each: bounds come
    from the total.

    Args:
        variance, third: Shape (2,). Second and third cumulants: of the group whose variance grows as the sum falls
            (easy levels, losses), and of the one whose variance grows as it rises.
        covariance: Between the two groups.
    """

    variance: Array
    third: Array
    covariance: float = 0.0

    def scaled(self, factor: float) -> Cumulants:
        """Return the cumulants of the sum times a positive factor."""
        return Cumulants(factor**2 * self.variance, factor**3 * self.third, factor**2 * self.covariance)

    def mirrored(self) -> Cumulants:
        """Return the cumulants of the negative sum."""
        return self._replace(variance=self.variance[::-1], third=self.third[::-1])

    @classmethod
    def total(cls, sums: Sequence[Cumulants]) -> Cumulants:
        """Return the cumulants of independent sums together."""
        variance = np.sum([part.variance for part in sums], axis=0)
        third = np.sum([part.third for part in sums], axis=0)
        return cls(variance, third, float(sum(part.covariance for part in sums)))

    def half_widths(self, z: float) -> tuple[float, float]:
        """Return the half widths below and above the estimate, of score intervals joined by their squares."""
        product = float(np.sqrt(self.variance.prod()))
        correlation = 0.0
        if product > 0.0:
            correlation = min(self.covariance / product, 1.0)
        widths = []
        for side in (-1.0, 1.0):
            parts = reach(self.variance, self.third, z, side * np.array([-1.0, 1.0]))
            widths.append(float(np.sqrt((parts**2).sum() + 2.0 * correlation * parts.prod())))
        return widths[0], widths[1]


def area_cumulants(levels: Levels, predicted: Array | None = None) -> Cumulants:
    """Return the cumulants of the sum of the levels' accuracies; see `area_bounds`."""
    p = smoothed(levels, predicted)
    variance = levels.dispersion * p * (1.0 - p) / levels.counts
    third = variance * abs(1.0 - 2.0 * p) / levels.counts
    groups = np.array([p > 0.5, p <= 0.5], dtype=float)  # the variance of easy levels grows as their accuracy falls
    return Cumulants(groups @ variance, groups @ third)


def area_bounds(levels: Levels, confidence: float, predicted: Array | None = None) -> tuple[float, float]:
    """Return the bounds of the sum of the levels' accuracies.

    Args:
        confidence: Confidence of each one-sided bound.
        predicted: Shape (L,). Accuracies of a fitted curve, with the weight of one answer per level; see `smoothed`.
            Their levels were chosen by their answers, so the bounds are wider by `STOPPED`.
    """
    z = NormalDist().inv_cdf(confidence)
    means = levels.means
    if predicted is not None:
        z *= STOPPED
        means = (levels.counts * means + PRIOR * predicted) / (levels.counts + PRIOR)
    down, up = area_cumulants(levels, predicted).half_widths(z)
    area = float(means.sum())
    return max(area - down, 0.0), min(area + up, float(len(means)))


def difference(
    candidate: Ladder, baseline: Ladder, confidence: float = 0.95, untested: Untested = "bounded"
) -> Interval:
    """Return the candidate's area less the baseline's, for two ladders of the same items.

    Gains and losses on the same item are rare if the two hardly differ, and each sum is bounded like an area. A level
    that only one ladder has is bounded alone; a level that neither has, as in `Ladder.interval`.

    Args:
        candidate, baseline: Ladders with the same levels and items: the k-th scores of a level are of the same item.
        confidence: Confidence of each one-sided bound.

    Raises:
        EstimationError: The two ladders differ in their levels, or in the number of items of a level.
    """
    z = NormalDist().inv_cdf(confidence)
    (low, low_error), (high, high_error) = difference_ends(candidate, baseline, confidence, untested)
    down, _ = low_error.half_widths(z)
    _, up = high_error.half_widths(z)
    low = low - down
    high = high + up
    estimate = min(max(candidate.area - baseline.area, low), high)
    return Interval(estimate, low, high, confidence, "by levels, paired")


def difference_ends(
    candidate: Ladder, baseline: Ladder, confidence: float = 0.95, untested: Untested = "bounded"
) -> list[tuple[float, Cumulants]]:
    """Return both ends of a `difference` before the sampling error of the shared levels, each with its cumulants.

    Missing scores count against the candidate at the lower end, and for it at the upper.
    """
    shared = min(len(candidate.scores), len(baseline.scores))
    if (candidate.cap, candidate.first) != (baseline.cap, baseline.first):
        raise EstimationError(
            f"levels {candidate.first} to {candidate.cap} and levels {baseline.first} to {baseline.cap}: "
            "the two ladders do not have the same levels"
        )
    for a, b in zip(candidate.scores, baseline.scores, strict=False):
        if len(a) != len(b):
            raise EstimationError(f"{len(a)} and {len(b)} questions of one level cannot be paired")
    pairs = list(zip(candidate.scores, baseline.scores, strict=False))
    candidate_above = _above(candidate, shared, confidence, untested)
    baseline_above = _above(baseline, shared, confidence, untested)
    ends = []
    for end, missing in enumerate((0.0, 1.0)):
        change, error = _paired(pairs, missing, 1.0 - missing)
        ends.append((change + candidate_above[end] - baseline_above[1 - end], error))
    return ends


def _above(ladder: Ladder, shared: int, confidence: float, untested: Untested) -> tuple[float, float]:
    """Return the bounds of the area above the shared levels."""
    if len(ladder.scores) > shared:
        rest = replace(ladder, scores=ladder.scores[shared:], first=ladder.first + shared)
        interval = rest.interval(confidence, untested)
        return interval.low, interval.high
    if untested == "bounded":
        return 0.0, ladder.above(confidence)
    return 0.0, 0.0


def _paired(pairs: Sequence[tuple[Array, Array]], missing: float, missing_baseline: float) -> tuple[float, Cumulants]:
    """Return the sum of mean differences, with missing scores replaced by the two values."""
    changes = []
    for a, b in pairs:
        changes.append(np.nan_to_num(a, nan=missing) - np.nan_to_num(b, nan=missing_baseline))
    counts = np.array([len(change) for change in changes], dtype=float)
    rates = []
    variances = []
    thirds = []
    for sign in (-1.0, 1.0):
        scores = [np.maximum(sign * change, 0.0) for change in changes]
        sums = np.array([score.sum() for score in scores])
        squares = np.array([(score * score).sum() for score in scores])
        mean = (sums.sum() + PRIOR / 2) / (counts.sum() + PRIOR)
        p = (sums + BORROWED * mean) / (counts + BORROWED)
        variance = _dispersion(counts, sums, squares) * p * (1.0 - p) / counts
        rates.append(p)
        variances.append(float(variance.sum()))
        thirds.append(float((variance * (1.0 - 2.0 * p) / counts).sum()))
    # an item cannot be gained and lost at once, so the two sums correlate negatively, and one less the other positively
    covariance = float((rates[0] * rates[1] / counts).sum())
    estimate = float(sum(change.mean() for change in changes))
    return estimate, Cumulants(np.array(variances), np.array(thirds), covariance)


@dataclass(frozen=True, slots=True)
class Settled:
    """Anytime-valid test of whether a level's accuracy is above a rate.

    Args:
        rate: Accuracy in [0, 1).
        confidence: 1 less the probability of a wrong decision at any time, on each side.
    """

    rate: float
    confidence: float = 0.95

    def side(self, scores: Sequence[float]) -> int:
        """Return 1 if the accuracy is above the rate, -1 if it is below, 0 if the test is undecided.

        The factor ``1 + s (score - rate)`` has mean 1 at most while the accuracy is at most the rate, so wealth reaches
        1 / alpha with probability alpha at most (Ville 1939). The wealth is split among several stakes. With a rate of
        0, one score above 0 decides for above, and no scores decide for below.
        """
        y = np.asarray(scores, dtype=float)
        y = y[~np.isnan(y)]
        if not len(y):
            return 0
        if self.rate == 0.0:
            return int((y > 0).any())
        needed = -np.log1p(-self.confidence) + np.log(len(STAKES))
        reached = []
        for sign, largest in ((1.0, 1.0 / self.rate), (-1.0, 1.0 / (1.0 - self.rate))):
            stakes = largest * np.array(STAKES)[:, None]
            wealth = np.log1p(stakes * sign * (y - self.rate)).cumsum(axis=1)
            over = np.flatnonzero(np.logaddexp.reduce(wealth, axis=0) >= needed)
            if len(over):
                first = int(over[0])
            else:
                first = len(y)
            reached.append(first)
        above, below = reached
        if above == below:
            return 0
        if above < below:
            return 1
        return -1


def last_above(ladder: Ladder, rate: float = 0.5, confidence: float = 0.95) -> Interval:
    """Return the last level with an accuracy above a rate, assuming that accuracy never rises with level.

    Levels are certified one after the other, upwards from the easiest and downwards from the hardest, until a level
    fails its test. Upwards, the bound is wrong only if the first level that is not above the rate passes, which is one
    level whatever the answers. Downwards, the tests begin at the level where the ladder ended, which the answers chose,
    so they have a share of the error rate, see `_share_of`. Each bound is wrong with probability 1 - `confidence` at
    most, for any number of levels; with fractional scores, approximately.
    """
    below = ladder.first - 1
    low_side = Levels.of(ladder.filled(0.0).scores)
    high_side = Levels.of(ladder.filled(1.0).scores)
    low = below
    for n in range(len(ladder.scores)):
        least, _ = _level_bounds(low_side, n, confidence)
        has_success = rate == 0.0 and low_side.means[n] > 0  # one success shows that the accuracy is not 0
        if least <= rate and not has_success:
            break
        low += 1
    high = ladder.cap
    for n in reversed(range(len(ladder.scores))):
        _, most = _level_bounds(high_side, n, _share_of(confidence, n))
        if most > rate:
            break
        high = below + n
    estimate = min(max(ladder.last_level_above(rate), low), high)
    return Interval(float(estimate), float(low), float(high), confidence, "by levels")


def last_settled(ladder: Ladder, rate: float = 0.0, confidence: float = 0.95) -> Interval:
    """Return the last level with an accuracy above a rate, for levels that ended when `Settled` decided."""
    below = ladder.first - 1
    test = Settled(rate, confidence)
    sides = [test.side(level.tolist()) for level in ladder.scores]
    low = next((n for n, side in enumerate(sides) if side <= 0), len(sides))
    high = next((n for n, side in enumerate(sides) if side < 0), ladder.cap - below)
    estimate = next((n for n, above in enumerate(ladder.accuracies > rate) if not above), len(sides))
    high = max(high, low)
    estimate = min(max(estimate, low), high)
    return Interval(float(below + estimate), float(below + low), float(below + high), confidence, "by levels, settled")


def _share_of(confidence: float, n: int) -> float:
    """Return the confidence of the n-th level's test from 0: error rates of 1 / (n + 1)(n + 2) add up to 1 at most."""
    return 1.0 - (1.0 - confidence) / ((n + 1) * (n + 2))


def _level_bounds(levels: Levels, n: int, confidence: float) -> tuple[float, float]:
    """Return the bounds of one level's accuracy: exact for binary scores (Clopper and Pearson 1934)."""
    from scipy.special import betaincinv  # imported late: it takes a fifth of the time of a short run

    count = levels.counts[n]
    right = levels.counts[n] * levels.means[n]
    if levels.dispersion < 1.0:
        return area_bounds(Levels(levels.counts[n : n + 1], levels.means[n : n + 1], levels.dispersion), confidence)
    low = 0.0
    high = 1.0
    if right > 0.0:
        low = float(betaincinv(right, count - right + 1.0, 1.0 - confidence))
    if right < count:
        high = float(betaincinv(right + 1.0, count - right, confidence))
    return low, high


def crossing(ladder: Ladder, rate: float = 0.5, confidence: float = 0.95) -> Interval:
    """Return the level at which accuracy crosses a rate, assuming that accuracy never rises with level.

    The estimate is interpolated linearly between levels. The bounds are the last level certified to be above the rate
    and the first certified to be below. A crossing outside the administered levels is returned as the nearest of them.
    """
    outer = last_above(ladder, rate, confidence)
    levels = Levels.of(ladder.filled(0.0).scores)
    means = np.empty(len(levels.means))
    for where, mean in pooled(levels.means, levels.counts):
        means[where] = mean
    x = np.arange(len(means)) + ladder.first
    first = float(x[0])
    last = float(x[-1])
    low = max(outer.low, first)
    high = last
    if outer.high < ladder.cap:
        high = min(outer.high + 1.0, last)
    if means[0] <= rate:
        estimate = first
    elif means[-1] > rate:
        estimate = last
    else:
        estimate = float(np.interp(-rate, -means, x))
    return Interval(min(max(estimate, low), high), low, max(low, high), confidence, "by levels")
