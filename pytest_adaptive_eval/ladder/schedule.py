"""Which levels to ask so that the area under the accuracy is known well enough with few questions.

A ladder asks every level alike, though where a subject is nearly always right
or nearly always wrong one more answer tells little.  The schedule begins with a
few questions of each level, fits a curve, and asks the level whose next answer
narrows the interval of the area most, until it is as narrow as wanted.

The curve is a posterior mean over logistic curves of all positions and slopes,
with several rates of lapses at easy levels and of luck at hard ones.  It
steers, and counts as one answer a level besides those given: the estimate rests
on answers at every level, and forgets the curve where it is wrong.

What can be saved depends on the subject.  No method that asks T questions can
know the area better than ``(sum of sqrt(p (1 - p)))^2 / T`` without assuming a
shape, and asking all alike gives ``L * sum of p (1 - p) / T``: there is much to
gain where accuracy falls within few of many levels, and nothing where it is the
same at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, Levels, area_bounds, reach, smoothed

__all__ = ["Schedule", "predicted"]

Array = NDArray[np.float64]

#: Rates of lapses and of luck, apart from the family's own guess floor, that the curves may have; all as likely.
RATES = (0.005, 0.03, 0.1)
#: Positions a level, and slopes, of the curves.
POSITIONS, SLOPES = 2, 10
#: Questions of every level before the curve steers.
FIRST = 2


@lru_cache(maxsize=32)
def _curves(levels: int, floor: float) -> Array:
    """Accuracies by level of every curve, shape (curves, levels)."""
    from scipy.special import expit  # a fifth of a short run's time to import

    at = np.arange(-1.0, levels + 2.0, 1.0 / POSITIONS) + 0.5
    slope = np.geomspace(0.2, max(levels, 2), SLOPES)
    x = np.arange(1, levels + 1)
    falling = expit((at[:, None, None] - x) / slope[:, None]).reshape(-1, levels)
    luck = sorted({*RATES, floor} - {0.0})
    return np.concatenate([low + (1.0 - low - lapse) * falling for lapse, low in product(RATES, luck)])


def predicted(levels: Levels, floor: float = 0.0) -> Array:
    """Accuracies by level as a smooth falling curve has them.

    Parameters
    ----------
    levels : Levels
    floor : float
        The family's guess floor, which the accuracy of hard levels may come to.

    Returns
    -------
    array, shape (L,)
        Posterior mean.
    """
    curves = _curves(len(levels.means), floor)
    right = levels.counts * levels.means
    log = np.log(curves) @ right + np.log1p(-curves) @ (levels.counts - right)
    weights = np.exp(log - log.max())
    mean: Array = weights @ curves / weights.sum()
    return mean


@dataclass(frozen=True, slots=True)
class Schedule:
    """Asks levels until the interval of the area is narrow enough.

    Parameters
    ----------
    levels : int
        How many there are.
    width : float
        Wanted distance of the bounds, in levels.
    confidence : float
        Of each one-sided bound.
    floor : float
        The family's guess floor.

    Raises
    ------
    EstimationError
        The width is not above 0, or there is no level.
    """

    levels: int
    width: float
    confidence: float = 0.95
    floor: float = 0.0

    def __post_init__(self) -> None:
        if self.width <= 0.0 or self.levels < 1:
            raise EstimationError(f"a width of {self.width} over {self.levels} levels cannot be reached")

    def ask(self, scores: Sequence[Sequence[float]], count: int, most: int | None = None) -> list[int]:
        """The levels, from 1, of the next questions; none when the interval is narrow enough or no question is left.

        Parameters
        ----------
        scores : sequence of sequences, length L
            So far, by level; NaN where an answer has none.
        count : int
            Questions to ask at once.
        most : int, optional
            Questions that each level has.
        """
        asked = np.array([len(level) for level in scores], dtype=float)
        left = (np.inf if most is None else most) - asked
        scored = [[score for score in level if score == score] for level in scores]
        counts = np.array([len(level) for level in scored], dtype=float)
        few = [n for r in range(FIRST) for n in range(self.levels) if counts[n] <= r and left[n] > r - counts[n]]
        if few:
            return [n + 1 for n in few[:count]]
        if not counts.all():  # nothing can be said of a level without a score
            return []
        levels = Levels.of([np.asarray(level, dtype=float) for level in scored])
        curve = predicted(levels, self.floor)
        low, high = area_bounds(levels, self.confidence, predicted=curve)
        if high - low <= self.width:
            return []
        p = smoothed(levels, curve)
        wanted: list[int] = []
        while len(wanted) < count and left.max() > 0:
            n = self._best(p, counts, left > 0)
            counts[n] += 1
            left[n] -= 1
            wanted.append(n + 1)
        return wanted

    def interval(self, scores: Sequence[Sequence[float]]) -> Interval:
        """The area with its bounds; missing scores count as wrong in one and as right in the other.

        Raises
        ------
        EstimationError
            A level was not asked.
        """
        ladder = Ladder(tuple(np.asarray(level, dtype=float) for level in scores), self.levels)
        bounds = []
        estimates = []
        for missing in (0.0, 1.0):
            levels = Levels.of(ladder.filled(missing).scores)
            curve = predicted(levels, self.floor)
            bounds.append(area_bounds(levels, self.confidence, predicted=curve))
            estimates.append(float(((levels.counts * levels.means + curve) / (levels.counts + 1.0)).sum()))
        low, high = bounds[0][0], bounds[1][1]
        estimate = float(np.mean(estimates))
        return Interval(min(max(estimate, low), high), low, high, self.confidence, "by levels, adaptive")

    def _best(self, p: Array, counts: Array, able: NDArray[np.bool_]) -> int:
        """The able level whose next answer narrows the interval most, were its accuracy p."""
        z = NormalDist().inv_cdf(self.confidence)
        easy = p > 0.5
        now, then = ((p * (1.0 - p) / n, p * (1.0 - p) * abs(1.0 - 2.0 * p) / (n * n)) for n in (counts, counts + 1.0))
        widths = np.zeros(len(p))
        halves = []
        for group in (easy, ~easy):
            variance, third = (now[k][group].sum() + np.where(group, then[k] - now[k], 0.0) for k in (0, 1))
            halves.append((reach(variance, third, z, 1) ** 2, reach(variance, third, z, -1) ** 2))
        widths = np.sqrt(halves[0][0] + halves[1][1]) + np.sqrt(halves[0][1] + halves[1][0])
        return int(np.argmin(np.where(able, widths, np.inf)))
