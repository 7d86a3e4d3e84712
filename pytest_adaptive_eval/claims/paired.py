"""Comparison with a baseline on the same items: its answers tell most of what the candidate will answer.

A candidate usually differs from its baseline on few items, so the baseline's
score is by far the best control variate for the candidate's.  Where the
baseline answered the whole bank, its total is known and the interview draws
mostly the items on which the two may differ.  Where it answered some items that
were drawn at random, the candidate follows the same draws, and the sum of the
differences is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DesignLog, Proposal
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Baseline", "PairedClaim"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Share of items on which a candidate is expected to differ, before any answer, and the items that this guess is worth.
FLIPS, GUESS_WORTH = 0.05, 10.0
#: Shares of flips that follow p(1-p), the rest being even, of the guesses that the answers decide between.
SHARES = (0.0, 0.5, 1.0)
#: Logits by which a candidate is expected to agree with its baseline beyond what its ability explains, likewise.
AGREEMENT = (0.0, 1.0, 2.0, 3.0, 4.0)
#: Margins that a candidate is assumed to lie from the threshold: an equal one lies one away, and in most trials was
#: decided soonest by stakes for a little more, as better ones are.
MARGINS = (1.5, 3.0)
#: A flip is never expected to be rarer or more frequent than this.
RAREST, MOST = 1e-3, 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """Scores of another subject on the items of a bank.

    Parameters
    ----------
    name : str
    scores : array, shape (n,)
        In [0, 1], in the bank's order; NaN where unknown.
    log : DesignLog, optional
        The draws by which the known items came; needed where some are unknown.
    twins : bool
        The items have the same places, and other values.
    climbed : bool
        The known items are those of a climb, which is compared level by level
        and says nothing of the others.

    Raises
    ------
    BaselineError
        Items are unknown, and nothing says how the known ones were drawn.
    """

    name: str
    scores: Array
    log: DesignLog | None = None
    climbed: bool = False
    twins: bool = False

    def __post_init__(self) -> None:
        log = self.log
        if (
            not self.climbed
            and not self.complete
            and (log is None or np.isnan(log.propensities + log.down + log.up).any())
        ):
            known = int((~np.isnan(self.scores)).sum())
            raise BaselineError(
                f"the baseline {self.name!r} has scores on {known} of {len(self.scores)} items that were not drawn at "
                'random, so nothing can be said about the others: record it on the whole bank (budget = "100%"), or '
                "by the policy 'decide'"
            )

    @property
    def complete(self) -> bool:
        """Whether the whole bank has a score."""
        return not bool(np.isnan(self.scores).any())

    @property
    def draws(self) -> int:
        """Items on which a candidate can be compared."""
        return len(self.scores) if self.log is None or self.complete else len(self.log)

    @property
    def coverage(self) -> str:
        """What a partial baseline lacks, and how to mend it."""
        return (
            f"the baseline {self.name} holds answers to only {self.draws} of {len(self.scores)} items, and no others "
            'can be compared: record it over more of the bank (a larger budget, stop = "budget")'
        )

    def shapes(self, bank: ItemBank) -> Array:
        """How likely each item is to flip, relative to the mean, by several guesses, shape (K, n).

        From all items alike to in proportion to p(1-p) at the baseline's own
        ability, since answers flip most where they were uncertain.
        """
        even = np.ones(len(bank))
        if not bank.calibrated:
            return even[None]
        A, d, c = bank.discrimination[None], bank.intercept[None], bank.asymptote
        estimator = MAP()
        at = estimator.estimate(
            self.scores[None], A, d, None if c is None else c[None], estimator.prior(1, bank.dimensions)
        )
        w = irt.weight(bank.probability(at.theta))[0]
        w /= max(float(w.mean()), RAREST)
        return np.stack([(1.0 - share) * even + share * w for share in SHARES])

    def predicted(self, shapes: Array, items: Ints, scores: Array, model: Array | None = None) -> Array:
        """Predicted scores of candidates, from the answers so far.

        Several models are mixed, each counting by its likelihood.  Some say
        where flips occur, with the rates that fit best, apart for right and
        wrong answers of the baseline.  Others take the bank's prediction at the
        candidate's ability and move its logit by `AGREEMENT` towards the
        baseline's answer.

        Parameters
        ----------
        shapes : array, shape (K, n)
            See `shapes`.
        items, scores : array, shape (S, t)
            Of the candidates; NaN where there is none.
        model : array, shape (S, n), optional
            Predicted by the bank.

        Returns
        -------
        array, shape (S, n)
        """
        scored = ~np.isnan(scores)
        right = self.scores >= 0.5
        was_right = right[items]
        flipped = np.where(scored, np.abs(scores - self.scores[items]), 0.0)
        met = [np.where(was_right == side, flipped, 0.0).sum(axis=1) for side in (False, True)]
        guesses = []
        for shape in shapes:
            rates = []
            for side in (False, True):
                expected = np.where(scored & (was_right == side), shape[items], 0.0).sum(axis=1)
                rates.append(((met[side] + GUESS_WORTH * FLIPS) / (expected + GUESS_WORTH))[:, None])
            flips = np.clip(shape * np.where(right, rates[1], rates[0]), RAREST, MOST)
            guesses.append(self.scores * (1.0 - flips) + (1.0 - self.scores) * flips)
        if model is not None:
            p = np.clip(model, RAREST, 1.0 - RAREST)
            odds = p / (1.0 - p)
            for agreement in AGREEMENT:
                moved = odds * np.exp(agreement * (2.0 * self.scores - 1.0))
                guesses.append(np.clip(moved / (1.0 + moved), RAREST, 1.0 - RAREST))
        fits = []
        for guess in guesses:
            chance = np.take_along_axis(guess, items, axis=1)
            each = scores * np.log(chance) + (1.0 - scores) * np.log1p(-chance)
            fits.append(np.where(scored, each, 0.0).sum(axis=1))
        weights = np.exp(np.array(fits) - np.max(fits, axis=0))
        weights /= weights.sum(axis=0)
        return np.asarray(sum(weight[:, None] * guess for weight, guess in zip(weights, guesses, strict=True)))

    def follow(self, start: int, predicted: Array, k: int) -> Proposal:
        """The baseline's own next draws, for S candidates whose predicted scores are (S, n).

        Its propensities hold for them too, since no draw depended on a
        candidate's answers.  The chances of the items not drawn were not kept,
        but none was below 1 / (down + up), which bounds what a draw may do.
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
        propensities, variance = (
            np.stack([getattr(row, name) for row in rows]) for name in ("propensities", "variance")
        )
        return Proposal(items, np.stack([propensities, chosen, rest, variance, reach, reach]))


@dataclass(frozen=True, slots=True)
class PairedClaim(Claim):
    """The claim that a candidate's sum of scores is at most ``margin`` items below that of a baseline on some items.

    Tested on (1 + score - baseline's score) / 2, which lies in [0, 1] like a
    score; `total` is that sum's value at the margin.
    """

    baseline: Baseline | None = None

    @classmethod
    def of(cls, baseline: Baseline, margin: float, confidence: float) -> Claim:
        """The claim that the accuracy is at least the baseline's less `margin`."""
        size = len(baseline.scores)
        if baseline.complete:
            total = float(baseline.scores.sum()) - margin * size
            return Claim(total, confidence, _unit(margin), MARGINS, rare=True)
        total = (1.0 - margin) * size / 2.0
        return cls(total, confidence, _unit(margin) / 2.0, MARGINS, rare=True, baseline=baseline)

    @property
    def sought(self) -> float | None:
        """None: it is about differences."""
        return None

    def view(self, log: DesignLog) -> DesignLog:
        """The draws of the differences; they are the baseline's own, so that what one can do is known from its log."""
        baseline = self.baseline
        assert baseline is not None
        assert baseline.log is not None
        left = log.size - np.arange(len(log))
        own = baseline.scores[log.items]
        scores = (1.0 + log.scores - own) / 2.0
        differ = np.abs(2.0 * np.nan_to_num(scores, nan=0.5) - 1.0)
        met = differ.cumsum(axis=-1) - differ
        rate = (met + GUESS_WORTH * FLIPS) / (np.arange(len(log)) + GUESS_WORTH)
        even = np.broadcast_to(0.5, scores.shape)
        unknown = np.isnan(own)  # it was asked there, and could not be had
        reach = np.broadcast_to((baseline.log.down + baseline.log.up)[: len(log)] / 2.0, scores.shape)
        return replace(
            log,
            scores=scores,
            predictions=even,
            rest=np.broadcast_to(left / 2.0, scores.shape),
            variance=np.clip(rate, RAREST, MOST) / 4.0 * left**2,
            down=reach,
            up=reach,
            noise=log.noise / 4.0,
            low=np.where(unknown, 0.0, (1.0 - own) / 2.0),
            high=np.where(unknown, 1.0, 1.0 - own / 2.0),
        )


def _unit(margin: float) -> float:
    """The gamblers' distance: the margin itself, which is how far an equal candidate is from the threshold."""
    return max(margin, 1e-3)
