"""Probabilities of a candidate's rank among subjects of known accuracy.

An interview gives an estimate of the accuracy over the whole bank and its error. Both form a predictive distribution,
and each of its draws is compared with the reference subjects, whose accuracies the bank keeps (`ItemBank.accuracies`).
A stated probability is as good as that error: replayed interviews, where a bank has them, show the real errors of
subjects like the calibration subjects, while a normal from the design-based standard error trusts the estimate's own
variance.

An unbiased estimate that comes out high is more often too high than too low, since few subjects are that strong, and
rank probabilities made from it would be too high. `Predictive.replayed` learns from the replays how errors depend on
estimates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.conformal import Conformal
from pytest_adaptive_eval.ties import TIE
from pytest_adaptive_eval.types import Array

DRAWS = 2000  #: Draws of a predictive distribution, at the middles of as many equal shares of its probability.
JOINT = 4000  #: Random draws of several values at once.
TAIL = 0.2  #: Share of the errors, the largest of either side, whose mean excess gives the length of that side's tail.


@cache
def _levels() -> Array:
    """Return the probabilities of the draws, shape (DRAWS,), ascending."""
    return (np.arange(DRAWS) + 0.5) / DRAWS


@cache
def _standard_normal() -> Array:
    """Return the quantiles of the standard normal at `_levels`."""
    return np.array(list(map(NormalDist().inv_cdf, _levels().tolist())))


@dataclass(frozen=True, slots=True, eq=False)
class Predictive:
    """Equally likely values of a candidate's accuracy over the whole bank.

    Args:
        draws: Shape (m,). Kept in ascending order and cut to [0, 1].

    Raises:
        EstimationError: Draws are missing, or one is not finite.
    """

    draws: Array

    def __post_init__(self) -> None:
        draws = np.sort(np.asarray(self.draws, dtype=np.float64).ravel())
        if not len(draws) or not np.isfinite(draws).all():
            raise EstimationError(f"{len(draws)} draws of the accuracy: at least one is needed, and all must be finite")
        draws = np.clip(draws, 0.0, 1.0)
        draws.setflags(write=False)
        object.__setattr__(self, "draws", draws)

    @classmethod
    def replayed(cls, table: Conformal, accuracy: float, scale: float) -> Predictive:
        """Return the projection with the errors of replayed interviews.

        The error of one more subject of the same population falls with equal probability, 1 / (N + 1), into each of the
        N + 1 gaps that N errors leave (Vovk et al. 2019, conformal predictive distributions). Within a gap it is taken
        as uniform, and beyond the outermost errors as exponential, of the mean excess of the outer errors of that side.

        If the table has the projection of each error, the least-squares line through both is subtracted from the
        errors, each left out of its own line (the jackknife), and added at the candidate's projection. Beyond the
        replayed projections the line is level.

        Args:
            table: Table of the interview's policy. Its errors are used, without the addition to bounds for
                extrapolation.
            accuracy: The projection of the candidate.
            scale: See `conformal_scale`.

        Raises:
            EstimationError: Fewer than two errors, a number that is not finite, or a scale below 0.
        """
        n = table.families
        _refuse_unless_finite(accuracy, scale)
        if n < 2:
            raise EstimationError(f"{n} replayed errors: at least 2 are needed for a distribution")
        errors = _errors_at(table, accuracy)
        order = errors.argsort(kind="stable")
        errors = errors[order]
        weights = table.weights[order]
        levels = _levels()
        # gaps between members of a family are parts of one gap
        quantiles = np.interp(levels, (weights.cumsum() + (1.0 - weights) / 2.0) / (n + 1), errors)
        outer = int(np.searchsorted(levels, 1.0 / (n + 1)))  # draws beyond the outermost error of a side
        beyond = -np.log((n + 1) * levels[:outer])  # an exponential's, in any order: draws are sorted
        quantiles[:outer] -= _mean_excess(-errors) * beyond
        quantiles[DRAWS - outer :] += _mean_excess(errors[::-1]) * beyond
        return cls(accuracy + scale * quantiles)

    @classmethod
    def normal(cls, estimate: float, standard_error: float) -> Predictive:
        """Return a normal distribution, such as that of a design-based estimate, for banks without replayed errors.

        Args:
            estimate, standard_error: Accuracy and its standard error; 0 makes it certain.

        Raises:
            EstimationError: A number that is not finite, or a standard error below 0.
        """
        _refuse_unless_finite(estimate, standard_error)
        return cls(estimate + standard_error * _standard_normal())


def _refuse_unless_finite(estimate: float, spread: float) -> None:
    if not (math.isfinite(estimate) and math.isfinite(spread) and spread >= 0.0):
        raise EstimationError(
            f"an accuracy of {estimate!r} with an error of {spread!r}; expected finite numbers, the error at least 0"
        )


def _errors_at(table: Conformal, accuracy: float) -> Array:
    """Return the replayed errors, shifted by their regression on the projection to this accuracy, shape (N,)."""
    errors = np.array(table.errors)
    projected = np.array(table.projected)
    if not len(projected) or np.ptp(projected) < TIE:
        return errors
    centred = projected - projected.mean()
    squares = float(centred @ centred)
    slope = float(centred @ errors) / squares
    level = errors.mean()
    residuals = (errors - level - slope * centred) / (1.0 - centred**2 / squares)
    at = min(max(accuracy, float(projected.min())), float(projected.max())) - projected.mean()
    return np.asarray(level + slope * at + residuals)


def _mean_excess(descending: Array) -> float:
    """Return the mean excess of the outer errors of one side over the next one inwards."""
    count = min(max(1, math.ceil(TAIL * len(descending))), len(descending) - 1)
    return float(descending[:count].mean() - descending[count])


@dataclass(frozen=True, slots=True, eq=False)
class RankDistribution:
    """Probabilities of the ranks of a candidate among R reference subjects.

    Args:
        probabilities: Shape (R + 1,). Probability of rank 1, above all, to rank R + 1, below all; their sum is 1.
    """

    probabilities: Array

    @property
    def mean(self) -> float:
        """Expected rank, in [1, R + 1]."""
        return float(self.probabilities @ np.arange(1.0, len(self.probabilities) + 1))

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """Return the best and worst rank, each as a bound with this probability.

        Args:
            confidence: Confidence of each one-sided bound, in (0.5, 1).
        """
        reached = self.probabilities.cumsum()
        last = len(reached) - 1
        best = int(np.searchsorted(reached, 1.0 - confidence, side="right"))
        worst = int(np.searchsorted(reached, confidence - 1e-12))
        return min(best, last) + 1, min(worst, last) + 1


def _standing(predictive: Predictive, accuracies: ArrayLike) -> tuple[Array, Array]:
    """Return the numbers of references strictly better than each draw and tied with it, both of shape (m,)."""
    references = _checked(accuracies)
    above = len(references) - np.searchsorted(references, predictive.draws + TIE, side="right")
    not_below = len(references) - np.searchsorted(references, predictive.draws - TIE, side="left")
    return above.astype(np.float64), (not_below - above).astype(np.float64)


def _checked(accuracies: ArrayLike) -> Array:
    """Return the reference subjects' accuracies, shape (R,), ascending; refuse none and values that are not finite."""
    references = np.sort(np.asarray(accuracies, dtype=np.float64).ravel())
    if not len(references) or not np.isfinite(references).all():
        raise EstimationError(
            f"{len(references)} accuracies of reference subjects: at least one is needed, and all must be finite; "
            "calibrate the bank again to keep them"
        )
    return references


def rank_probability(predictive: Predictive, accuracies: ArrayLike, k: int) -> float:
    """Return the probability that the candidate is among the first `k`: that fewer than `k` references are better.

    Of tied subjects each order is equally likely, so one tied reference is better with probability one half.

    Args:
        accuracies: Shape (R,). Accuracies of the reference subjects over the whole bank.
        k: At least 1; from R + 1 on the probability is 1.

    Raises:
        EstimationError: References are missing, or an accuracy is not finite.
    """
    better, tied = _standing(predictive, accuracies)
    return float((np.clip(k - better, 0.0, tied + 1.0) / (tied + 1.0)).mean())


def rank_distribution(predictive: Predictive, accuracies: ArrayLike) -> RankDistribution:
    """Return the probabilities of all ranks among R references, ties as in `rank_probability`.

    Args:
        accuracies: Shape (R,). Accuracies of the reference subjects over the whole bank.

    Raises:
        EstimationError: References are missing, or an accuracy is not finite.
    """
    better, tied = _standing(predictive, accuracies)
    k = np.arange(1.0, np.size(accuracies) + 2.0)[:, None]
    first_k = (np.clip(k - better, 0.0, tied + 1.0) / (tied + 1.0)).mean(axis=1)
    return RankDistribution(np.diff(first_k, prepend=0.0))


def joint_ranks(
    values: ArrayLike, covariance: ArrayLike, *, draws: int = JOINT, seed: int = 0
) -> tuple[RankDistribution, ...]:
    """Return the probabilities of the ranks of n subjects, 1 the highest, whose values are all uncertain.

    Args:
        values: Shape (n,). NaN where missing: such a subject has no probabilities, and the others are ranked among
            themselves.
        covariance: Shape (n, n). NaN where missing.
        draws: Joint draws of the normal distribution.
    """
    means = np.asarray(values, dtype=np.float64)
    spread = np.asarray(covariance, dtype=np.float64)
    present = np.flatnonzero(np.isfinite(means) & np.isfinite(np.diag(spread)))
    squares, vectors = np.linalg.eigh(spread[np.ix_(present, present)])
    root = vectors * np.sqrt(np.maximum(squares, 0.0))
    drawn = means[present] + np.random.default_rng(seed).standard_normal((draws, len(present))) @ root.T
    ranks = np.argsort(np.argsort(-drawn, axis=1, kind="stable"), axis=1)
    shares = {}
    for j, drawn_ranks in zip(present.tolist(), ranks.T, strict=True):
        shares[j] = np.bincount(drawn_ranks, minlength=len(present)) / draws
    return tuple(RankDistribution(shares.get(j, np.zeros(0))) for j in range(len(means)))
