"""Comparison of a candidate with a baseline on the same items.

A candidate usually differs from its baseline on few items, so the baseline's score is by far the best control variate
for the candidate's. If the baseline answered the whole bank, its total is known, and the interview mostly draws items
on which the two may differ. If it answered randomly drawn items alone, the candidate follows the same draws, and the
sum of the differences is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from pytest_adaptive_eval.claims.earlier import GUESS_WORTH, MOST, RAREST, EarlierAnswers
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DesignLog, Proposal
from pytest_adaptive_eval.types import Array

FLIPS = 0.05  #: Prior share of items on which a candidate differs from its baseline.
#: Assumed distances of a candidate from the threshold, in margins.  An equal candidate lies one margin away; in most
#: trials, stakes for a slightly greater distance decided it soonest, as they do better candidates.
MARGINS = (1.5, 3.0)


@dataclass(frozen=True, slots=True, eq=False)
class Baseline(EarlierAnswers):
    """Scores of another subject on the items of a bank, with which a candidate is compared.

    Args:
        log: Draws of the scored items; required if some scores are missing.
        climbed: The scored items come from a ladder, which is compared level by level and does not represent the
            other items.

    Raises:
        BaselineError: Scores are missing, and the draws of the others are unknown.
    """

    flip_prior: ClassVar[float] = FLIPS
    bank_odds: ClassVar[float] = 0.0
    log: DesignLog | None = None
    climbed: bool = False

    def __post_init__(self) -> None:
        log = self.log
        if (
            not self.climbed
            and not self.complete
            and (log is None or np.isnan(log.propensities + log.down + log.up).any())
        ):
            scored = int((~np.isnan(self.scores)).sum())
            raise BaselineError(
                f"the baseline {self.name!r} has scores on {scored} of {len(self.scores)} items that were not drawn at "
                'random, so nothing can be said about the others: record it on the whole bank (budget = "100%"), or '
                "by the policy 'decide'"
            )

    @property
    def complete(self) -> bool:
        """Whether every item of the bank has a score."""
        return not bool(np.isnan(self.scores).any())

    @property
    def draws(self) -> int:
        """Items on which a candidate can be compared."""
        if self.log is None or self.complete:
            return len(self.scores)
        return len(self.log)

    @property
    def coverage(self) -> str:
        """Explanation that a partial baseline does not suffice, with the fix."""
        return (
            f"the baseline {self.name} holds answers to only {self.draws} of {len(self.scores)} items, and no others "
            'can be compared: record it over more of the bank (a larger budget, stop = "budget")'
        )

    def follow(self, start: int, predicted: Array, k: int) -> Proposal:
        """Return the baseline's next `k` draws, for S candidates with predicted scores (S, n).

        The baseline's propensities hold for the candidates too, since no draw depended on a candidate's answers. The
        log has no propensities of items that were not drawn, but none was below 1 / (down + up). This bounds the
        one-draw estimates.
        """
        log = self.log
        assert log is not None
        subjects = len(predicted)
        rows = [log[slice(start, start + k)]] * subjects
        items = np.stack([row.items for row in rows])
        chosen = np.take_along_axis(predicted, items, axis=1)
        earlier = predicted[:, log.items[:start]].sum(axis=1, keepdims=True)
        rest = predicted.sum(axis=1, keepdims=True) - earlier - (chosen.cumsum(axis=1) - chosen)
        reach = np.stack([row.down + row.up for row in rows])
        propensities = np.stack([row.propensities for row in rows])
        variance = np.stack([row.variance for row in rows])
        return Proposal(items, np.stack([propensities, chosen, rest, variance, reach, reach]))


@dataclass(frozen=True, slots=True)
class PairedClaim(Claim):
    """The claim that a candidate's sum of scores is at most ``margin`` items below that of a baseline on some items.

    The bets are on (1 + score - baseline's score) / 2, which lies in [0, 1] like a score. `total` is the sum of these
    values at the margin.
    """

    baseline: Baseline | None = None

    @classmethod
    def of(cls, baseline: Baseline, margin: float, confidence: float) -> Claim:
        """Create the claim that the accuracy is at least the baseline's less `margin`."""
        size = len(baseline.scores)
        if baseline.complete:
            total = float(baseline.scores.sum()) - margin * size
            return Claim(total, confidence, stake_unit(margin), MARGINS, rare=True)
        total = (1.0 - margin) * size / 2.0
        return cls(total, confidence, stake_unit(margin) / 2.0, MARGINS, rare=True, baseline=baseline)

    @property
    def sought(self) -> float | None:
        """None: the claim is on differences."""
        return None

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the differences, with the bounds of the baseline's log, since the draws are the same."""
        assert self.baseline is not None
        log_of_baseline = self.baseline.log
        assert log_of_baseline is not None
        return self.differences(log, (log_of_baseline.down + log_of_baseline.up)[: len(log)])

    def differences(self, log: DesignLog, reach: Array) -> DesignLog:
        """Return the draws of the differences.

        Args:
            reach: Shape (..., t). Upper bound of 1 / propensity over the items left.
        """
        baseline = self.baseline
        assert baseline is not None
        items_left = log.size - np.arange(len(log))
        baseline_scores = baseline.scores[log.items]
        scores = (1.0 + log.scores - baseline_scores) / 2.0
        flips = np.abs(2.0 * np.nan_to_num(scores, nan=0.5) - 1.0)
        earlier_flips = flips.cumsum(axis=-1) - flips
        rate = (earlier_flips + GUESS_WORTH * FLIPS) / (np.arange(len(log)) + GUESS_WORTH)
        even = np.broadcast_to(0.5, scores.shape)
        unscored = np.isnan(baseline_scores)  # the baseline drew the item, but its answer has no score
        half = np.broadcast_to(reach / 2.0, scores.shape)
        return replace(
            log,
            scores=scores,
            predictions=even,
            rest=np.broadcast_to(items_left / 2.0, scores.shape),
            variance=np.clip(rate, RAREST, MOST) / 4.0 * items_left**2,
            down=half,
            up=half,
            noise=log.noise / 4.0,
            low=np.where(unscored, 0.0, (1.0 - baseline_scores) / 2.0),
            high=np.where(unscored, 1.0, 1.0 - baseline_scores / 2.0),
        )


def stake_unit(margin: float) -> float:
    """Return the unit of the stakes: the margin, which is the distance of an equal candidate from the threshold."""
    return max(margin, 1e-3)
