"""Adaptive choice of levels, by which the area's interval reaches a target width with few items.

A ladder administers the same number of items of every level. At a level with an accuracy near 0 or 1, one more answer
hardly changes the interval. The schedule begins with a few items of each level and fits a curve. It then administers
the level whose next answer narrows the area's interval most, until the interval reaches its target width.

The curve is a posterior mean over logistic curves with a grid of positions and slopes, several rates of lapses at easy
levels, and several rates of successes by chance at hard ones. It determines the order, and has the weight of one answer
per level. The estimate therefore depends mostly on the answers, also where the curve is wrong.

The saving depends on the subject. Without an assumption on the shape, T items give the area a variance of at least
``(sum of sqrt(p (1 - p)))^2 / T``. Equal numbers per level give ``L * sum of p (1 - p) / T``. The two differ much if
accuracy falls within few of many levels, and are equal if it is constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import NormalDist

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, Levels, area_bounds, reach, smoothed
from pytest_adaptive_eval.ties import first_smallest
from pytest_adaptive_eval.types import Array, Bools

#: Rates of lapses, and of successes by chance besides the family's guessing parameter, with equal prior weights.
RATES = (0.005, 0.03, 0.1)
POSITIONS, SLOPES = 2, 10  #: Number of curve positions per level, and number of slopes.
FIRST = 2  #: Items of every level before the curve determines the order.


@lru_cache(maxsize=32)
def _curves(levels: int, floor: float) -> Array:
    """Return the accuracies by level of every curve, shape (curves, levels)."""
    from scipy.special import expit  # imported late: it takes a fifth of the time of a short run

    position = np.arange(-1.0, levels + 2.0, 1.0 / POSITIONS) + 0.5
    slope = np.geomspace(0.2, max(levels, 2), SLOPES)
    x = np.arange(1, levels + 1)
    falling = expit((position[:, None, None] - x) / slope[:, None]).reshape(-1, levels)
    guess_rates = sorted({*RATES, floor} - {0.0})
    return np.concatenate([low + (1.0 - low - lapse) * falling for lapse, low in product(RATES, guess_rates)])


def predicted(levels: Levels, floor: float = 0.0) -> Array:
    """Return the accuracies by level of a fitted smooth falling curve.

    Args:
        floor: Expected score of a guess, the lower asymptote of some curves.

    Returns:
        Shape (L,). Posterior mean.
    """
    curves = _curves(len(levels.means), floor)
    right = levels.counts * levels.means
    log = np.log(curves) @ right + np.log1p(-curves) @ (levels.counts - right)
    weights = np.exp(log - log.max())
    mean: Array = weights @ curves / weights.sum()
    return mean


def _scored(scores: Sequence[float]) -> Array:
    """Return the scores that are not missing."""
    return np.array([score for score in scores if score == score], dtype=float)


@dataclass(frozen=True, slots=True)
class Schedule:
    """Adaptive order of levels, until the area's interval reaches a target width.

    Args:
        levels: Number of levels.
        width: Target distance between the bounds, in levels.
        confidence: Confidence of each one-sided bound.
        floor: Expected score of a guess.

    Raises:
        EstimationError: The width is not above 0, or levels are missing.
    """

    levels: int
    width: float
    confidence: float = 0.95
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.width <= 0.0 or self.levels < 1:
            raise EstimationError(
                f"the schedule has a width of {self.width} and {self.levels} levels; "
                "expected a width above 0 and at least 1 level"
            )

    def ask(self, scores: Sequence[Sequence[float]], count: int, most: int | None = None) -> list[int]:
        """Return the levels, from 1, of the next items; none if the interval is narrow enough or no item remains.

        Args:
            scores: Scores so far, by level; NaN marks a missing score.
            count: Number of items to administer together.
            most: Number of items of each level; without it, no limit.
        """
        limit = np.inf if most is None else most
        remaining = limit - np.array([len(level) for level in scores], dtype=float)
        scored = [_scored(level) for level in scores]
        counts = np.array([len(level) for level in scored], dtype=float)
        initial = []
        for r in range(FIRST):
            for n in range(self.levels):
                if counts[n] <= r < counts[n] + remaining[n]:
                    initial.append(n)
        if initial:
            return [n + 1 for n in initial[:count]]
        if not counts.all():  # a level without a score and without further items has no bounds
            return []
        levels = Levels.of(scored)
        curve = predicted(levels, self.floor)
        low, high = area_bounds(levels, self.confidence, predicted=curve)
        if high - low <= self.width:
            return []
        return self._best_levels(smoothed(levels, curve), counts, remaining, count)

    def interval(self, scores: Sequence[Sequence[float]]) -> Interval:
        """Return the area with its bounds; missing scores are 0 in the lower bound and 1 in the upper.

        Raises:
            EstimationError: A level has no answers.
        """
        ladder = Ladder(tuple(np.asarray(level, dtype=float) for level in scores), self.levels)
        bounds = []
        estimates = []
        for missing in (0.0, 1.0):
            levels = Levels.of(ladder.filled(missing).scores)
            curve = predicted(levels, self.floor)
            bounds.append(area_bounds(levels, self.confidence, predicted=curve))
            means = (levels.counts * levels.means + curve) / (levels.counts + 1.0)
            estimates.append(float(means.sum()))
        (low, _), (_, high) = bounds
        estimate = min(max(float(np.mean(estimates)), low), high)
        return Interval(estimate, low, high, self.confidence, "by levels, adaptive")

    def _best_levels(self, p: Array, counts: Array, remaining: Array, count: int) -> list[int]:
        """Return up to `count` levels, from 1, each the best after those before; the arrays are changed in place."""
        chosen: list[int] = []
        while len(chosen) < count and remaining.max() > 0:
            n = self._best(p, counts, remaining > 0)
            counts[n] += 1
            remaining[n] -= 1
            chosen.append(n + 1)
        return chosen

    def _best(self, p: Array, counts: Array, available: Bools) -> int:
        """Return the available level whose next answer narrows the interval most at accuracies `p`, from 0."""
        z = NormalDist().inv_cdf(self.confidence)
        easy = p > 0.5
        more = counts + 1.0
        variances = p * (1.0 - p) / counts
        thirds = p * (1.0 - p) * abs(1.0 - 2.0 * p) / (counts * counts)
        less_variance = p * (1.0 - p) / more - variances
        less_third = p * (1.0 - p) * abs(1.0 - 2.0 * p) / (more * more) - thirds
        halves = []
        for group in (easy, ~easy):  # with one more answer at each level in turn
            variance = variances[group].sum() + np.where(group, less_variance, 0.0)
            third = thirds[group].sum() + np.where(group, less_third, 0.0)
            halves.append((reach(variance, third, z, 1) ** 2, reach(variance, third, z, -1) ** 2))
        (easy_growing, easy_shrinking), (hard_growing, hard_shrinking) = halves
        widths = np.sqrt(easy_growing + hard_shrinking) + np.sqrt(easy_shrinking + hard_growing)
        return int(first_smallest(np.where(available, widths, np.inf)))
