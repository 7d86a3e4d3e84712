"""Scores that follow from values of the answers: their seconds or cost, or how many of an item's samples are right.

Each item gets a score in [0, 1] from the values of its answers. The sum of these scores over the bank is a
quantity of the bank like the sum of the answers' own scores, and the draws' propensities make its one-draw estimates
unbiased. So the same bets hold. The bank predicts other scores, so the mean so far is the prediction of every item.

The truth of pass^k is the mean over items of the chance that k new samples are all right. With n samples of an item, c
of them right, ``C(c, k) / C(n, k)`` is its unbiased estimate: the share of the subsets of k samples that are all right.
That of any right one is ``1 - C(n - c, k) / C(n, k)`` (Chen et al. 2021, arXiv:2107.03374).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pytest_adaptive_eval.claims.paired import MARGINS, Baseline, PairedClaim, stake_unit
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DesignLog, predicted_by_mean
from pytest_adaptive_eval.inference.noise import allowed_variance, variance_bound
from pytest_adaptive_eval.types import Array

SCORE = "score"  #: Name of the answers' own scores among their values.


@dataclass(frozen=True, slots=True)
class AnswerScores:
    """Scores of items by one kind of values of their answers: by default 1 for a right one, as a mean over samples.

    Args:
        name: Name of the values.
        within: Score values up to this bound 1, and others 0.
        cap: Score a value by its share of this cap, 1 at most.
        k: Size of the subsets of an item's answers whose product counts, see the module.
        opposite: Score each answer by its distance from 1.
        complement: Score an item by its distance from 1: with `opposite`, whether any answer of a subset is right.
    """

    name: str = SCORE
    within: float | None = None
    cap: float | None = None
    k: int = 1
    opposite: bool = False
    complement: bool = False

    def _each(self, log: DesignLog) -> Array:
        """Return the score of each answer, shape (..., t, n), NaN where its value is missing."""
        values = log.answers.get(self.name)
        if values is None:
            values = (log.scores if self.name == SCORE else np.full(log.scores.shape, np.nan))[..., None]
        if self.within is not None:
            scores = values <= self.within
        elif self.cap is not None:
            scores = np.minimum(values / self.cap, 1.0)
        else:
            scores = values == 1.0
        return np.where(np.isnan(values), np.nan, np.abs(scores - float(self.opposite)))

    def _together(self, each: Array) -> Array:
        """Return the score of each item from the scores of its answers; NaN with fewer than `k` answers."""
        order = np.arange(self.k)
        answers = each.shape[-1]
        if answers < self.k:
            return np.full(each.shape[:-1], np.nan)
        share = (np.maximum(each.sum(axis=-1)[..., None] - order, 0.0) / (answers - order)).prod(axis=-1)
        return np.asarray(np.abs(share - float(self.complement)))

    def of(self, log: DesignLog) -> Array:
        """Return the scores of the administered items, shape (..., t), NaN where a value of an answer is missing."""
        return self._together(self._each(log))

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of these scores, with the noise of their decoding where that counts."""
        each = self._each(log)
        scores = self._together(each)
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
            most = np.minimum(most, self.k * allowed.reshape(most.shape))
        return np.asarray(most * self.k / n)

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

    scores: AnswerScores = field(default_factory=AnswerScores)

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

    scores: AnswerScores = field(default_factory=AnswerScores)

    @classmethod
    def against(cls, baseline: Baseline, margin: float, confidence: float, scores: AnswerScores) -> PairedAnswerClaim:
        """Create the claim that the mean score is at least that of a baseline, less `margin`."""
        total = (1.0 - margin) * len(baseline.scores) / 2.0
        unit = stake_unit(margin) / 2.0
        compared = scores.baseline(baseline)
        return cls(total, confidence, unit, MARGINS, rare=True, baseline=compared, scores=scores)

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the differences."""
        log_of_scores = self.scores.view(log)
        return self.differences(log_of_scores, log.down + log.up)


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
        log_of_scores = self.upper.view(log)
        undrawn = log_of_scores.size - np.arange(len(log_of_scores))
        return replace(
            log_of_scores,
            scores=1.0 - log_of_scores.scores,
            predictions=1.0 - log_of_scores.predictions,
            rest=undrawn - log_of_scores.rest,
            down=log_of_scores.up,
            up=log_of_scores.down,
            low=1.0 - log_of_scores.high,
            high=1.0 - log_of_scores.low,
        )
