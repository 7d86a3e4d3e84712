"""Scores that follow from values of the answers: their seconds or cost, or how many of an item's samples are right.

A rule gives each item a score in [0, 1] from the values of its answers. The sum of these scores over the bank is a
quantity of the bank like the sum of the answers' own scores, and the draws' propensities make its one-draw estimates
unbiased. So the same bets hold. The bank predicts other scores, so the mean so far is the prediction of every item.

The truth of pass^k is the mean over items of the chance that k new samples are all right. With n samples of an item, c
of them right, ``C(c, k) / C(n, k)`` is its unbiased estimate: the share of the subsets of k samples that are all right.
That of any right one is ``1 - C(n - c, k) / C(n, k)`` (Chen et al. 2021, arXiv:2107.03374).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from pytest_adaptive_eval.claims.paired import MARGINS, Baseline, PairedClaim, stake_unit
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DesignLog, predicted_by_mean
from pytest_adaptive_eval.inference.noise import allowed_variance, variance_bound
from pytest_adaptive_eval.types import Array

SCORE = "score"  #: Name of the answers' own scores among their values.


class Rule(Protocol):
    """A score of an item by the values of its answers."""

    @property
    def k(self) -> int:
        """Number of answers that the score's expectation is about."""

    def each(self, values: Array) -> Array:
        """Return a score in [0, 1] of each answer by its value, in the same shape."""

    def together(self, scores: Array) -> Array:
        """Return a score in [0, 1] of each item by those of n answers, shape (...) of (..., n)."""


@dataclass(frozen=True, slots=True)
class Within:
    """The share of an item's answers whose value is at most `bound`."""

    bound: float
    k: int = field(default=1, init=False)

    def each(self, values: Array) -> Array:
        """Return a score of each answer, see `Rule`."""
        return np.asarray(values <= self.bound, dtype=np.float64)

    def together(self, scores: Array) -> Array:
        """Return the mean, see `Rule`."""
        return np.asarray(scores.mean(axis=-1))


@dataclass(frozen=True, slots=True)
class CutAt:
    """The mean value of an item's answers, each cut at `cap`, in units of `cap`.

    Args:
        saved: Score the distance from `cap` in place of the value, for claims that lower values are better.
    """

    cap: float
    saved: bool = False
    k: int = field(default=1, init=False)

    def each(self, values: Array) -> Array:
        """Return a score of each answer, see `Rule`."""
        scores = np.minimum(values / self.cap, 1.0)
        return 1.0 - scores if self.saved else scores

    def together(self, scores: Array) -> Array:
        """Return the mean, see `Rule`."""
        return np.asarray(scores.mean(axis=-1))


@dataclass(frozen=True, slots=True)
class AllRight:
    """The share of the subsets of `k` samples that are all right, see the module."""

    k: int

    def each(self, values: Array) -> Array:
        """Return 1 for each right sample, see `Rule`."""
        return np.asarray(values == 1.0, dtype=np.float64)

    def together(self, scores: Array) -> Array:
        """Return the share of subsets, see `Rule`."""
        if scores.shape[-1] < self.k:  # as of a baseline that was asked less often
            return np.full(scores.shape[:-1], np.nan)
        count = scores.sum(axis=-1)[..., None]
        place = np.arange(self.k)
        return np.asarray((np.maximum(count - place, 0.0) / (scores.shape[-1] - place)).prod(axis=-1))


@dataclass(frozen=True, slots=True)
class AnyRight:
    """The share of the subsets of `k` samples with at least one right one, see the module."""

    k: int

    def each(self, values: Array) -> Array:
        """Return 1 for each right sample, see `Rule`."""
        return np.asarray(values == 1.0, dtype=np.float64)

    def together(self, scores: Array) -> Array:
        """Return the share of subsets, see `Rule`."""
        return 1.0 - AllRight(self.k).together(1.0 - scores)


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Scores of items by a rule on one kind of values of their answers."""

    name: str
    rule: Rule

    def _each(self, log: DesignLog) -> Array:
        """Return the score of each answer, shape (..., t, n), NaN where its value is missing."""
        values = log.answers.get(self.name)
        if values is None:
            values = (log.scores if self.name == SCORE else np.full(log.scores.shape, np.nan))[..., None]
        return np.where(np.isnan(values), np.nan, self.rule.each(values))

    def of(self, log: DesignLog) -> Array:
        """Return the scores of the administered items, shape (..., t), NaN where a value of an answer is missing."""
        return self.rule.together(self._each(log))

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of these scores, with the noise of their decoding where that counts."""
        each = self._each(log)
        scores = self.rule.together(each)
        undrawn = log.size - np.arange(scores.shape[-1], dtype=np.float64)
        columns = predicted_by_mean(scores, undrawn, log.down + log.up)
        noise = np.where(log.noise, self._noise(each, scores), 0.0)
        return replace(log, scores=scores, **columns, noise=noise, low=0.0, high=1.0)

    def _noise(self, each: Array, scores: Array) -> Array:
        """Return an upper bound of the mean variance of an item's score over decodings, shape (...).

        The score is a mean over subsets of k of n samples (a U-statistic), so its variance is at most k / n of that of
        one subset (Hoeffding 1948). That of one subset is at most k times the variance v of a sample, since ``1 - p^k
        <= k (1 - p)``, and v is bounded as for accuracies, see `allowed_variance`.
        """
        most = variance_bound(scores)
        n = each.shape[-1]
        if n > 1:
            variances = each.var(axis=-1, ddof=1)
            rows = variances.reshape(-1, variances.shape[-1])
            allowed = np.array([allowed_variance(row[~np.isnan(row)]) for row in rows])
            most = np.minimum(most, self.rule.k * allowed.reshape(most.shape))
        return np.asarray(most * self.rule.k / n)

    def baseline(self, other: Baseline) -> Baseline:
        """Return a baseline with these scores, NaN where it lacks the values; raise BaselineError if it has none."""
        scores = np.full(len(other.scores), np.nan)
        if other.log is not None:
            scores[other.log.items] = self.of(other.log)
        if np.isnan(scores).all():
            raise BaselineError(
                f"the baseline {other.name!r} has no answer with a value of {self.name} for this gate: record it with "
                "a run that has them, or gate by at_least or at_most"
            )
        return replace(other, scores=scores)


@dataclass(frozen=True, slots=True)
class AnswerClaim(Claim):
    """The claim that a sum of scores by values of the answers is at least `total`."""

    scores: AnswerScores = field(default_factory=lambda: AnswerScores(SCORE, AllRight(1)))

    @property
    def sought(self) -> float | None:
        """None: the claim is not on the answers' own scores."""
        return None

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of these scores."""
        return self.scores.view(log)


@dataclass(frozen=True, slots=True)
class PairedAnswerClaim(PairedClaim):
    """The claim that a sum of such scores is at most ``margin`` items below that of a baseline.

    The draws are the candidate's own, so the bounds of its log count.
    """

    scores: AnswerScores = field(default_factory=lambda: AnswerScores(SCORE, AllRight(1)))

    @classmethod
    def against(cls, baseline: Baseline, margin: float, confidence: float, scores: AnswerScores) -> PairedAnswerClaim:
        """Create the claim that the mean score is at least that of a baseline, less `margin`."""
        total = (1.0 - margin) * len(baseline.scores) / 2.0
        unit = stake_unit(margin) / 2.0
        compared = scores.baseline(baseline)
        return cls(total, confidence, unit, MARGINS, rare=True, baseline=compared, scores=scores)

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the differences."""
        own = self.scores.view(log)
        return self.differences(own, log.down + log.up)


@dataclass(frozen=True, slots=True)
class MirroredClaim(Claim):
    """The claim that the sum of scores of another claim is at most its `total`: one on their distances from 1."""

    upper: Claim = field(default_factory=lambda: Claim(0.0))

    @classmethod
    def of(cls, upper: Claim, size: int) -> MirroredClaim:
        """Create the claim that the bank's sum is at most ``upper.total``, on a bank of `size` items."""
        total = size - upper.total
        settings = upper.confidence, upper.unit, upper.distances, upper.rare, upper.slack
        return cls(total, *settings, upper=upper)

    @property
    def sought(self) -> float | None:
        """Sum of the bank's own scores at which the claim changes; None if it is about other sums."""
        return self.upper.sought

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the distances from 1."""
        own = self.upper.view(log)
        undrawn = own.size - np.arange(len(own))
        return replace(
            own,
            scores=1.0 - own.scores,
            predictions=1.0 - own.predictions,
            rest=undrawn - own.rest,
            down=own.up,
            up=own.down,
            low=1.0 - own.high,
            high=1.0 - own.low,
        )
