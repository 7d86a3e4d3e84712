"""Predictions from the answers of an earlier checkpoint to the same items.

Consecutive checkpoints differ on few items, so an earlier checkpoint's score is by far the best prediction of a
candidate's. `EarlierAnswers.predicted` mixes models of agreement with the bank's predictions by likelihood, so an
earlier run that resembles the candidate in nothing soon loses its weight.

Gates keep their error rate with any earlier answers, by the argument of `inference.betting`. Given the earlier answers
E, a prediction is a function of E and of the candidate's answers before the draw, and so is the stake. An estimate
``before + rest + (score - prediction) / propensity`` is then unbiased given the past, provided that E says nothing
about the coming draws. An earlier run with the same seed would say much: its answers are known just for the items that
come next, so the residual there is small, while the errors of the bank on all others stay in `rest`. Therefore the
draws of an interview with predictions have a random stream of their own, by seed, name and a hash of the pairs of item
and score (`EarlierAnswers.hash`): the numbers of that stream are independent of the numbers that chose the items in E.
The wealth is then a nonnegative supermartingale given E, for each E, and so on average (Ville 1939).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

GUESS_WORTH = 10.0  #: Number of items with the weight of the prior share of flips.
#: Models of flips: share of flips in proportion to p(1-p), the rest being even.  The answers weight the models.
SHARES = (0.0, 0.5, 1.0)
#: Models of agreement: logits by which a candidate agrees with its baseline beyond its predicted score.
AGREEMENT = (0.0, 1.0, 2.0, 3.0, 4.0)
RAREST, MOST = 1e-3, 0.5  #: Limits of the expected flip rate.


@dataclass(frozen=True, slots=True, eq=False)
class EarlierAnswers:
    """Scores of an earlier subject, which predict the scores of a candidate.

    Args:
        scores: Shape (n,). In [0, 1], in the bank's order; NaN where missing.
    """

    flip_prior: ClassVar[float] = 0.1  #: Prior share of items on which a candidate differs.
    bank_odds: ClassVar[float] = 3.0  #: Prior log-odds of the bank's prediction against each other model.
    name: str
    scores: Array

    def shapes(self, bank: ItemBank) -> Array:
        """Return the relative flip rate of each item under K models, shape (K, n), with mean 1.

        The models go from equal rates to rates in proportion to p(1-p) at the earlier subject's ability, since
        uncertain answers flip most.
        """
        even = np.ones(len(bank))
        if not bank.calibrated:
            return even[None]
        A = bank.discrimination[None]
        d = bank.intercept[None]
        c = bank.asymptote
        estimator = MAP()
        ability = estimator.estimate(
            self.scores[None], A, d, None if c is None else c[None], estimator.prior(1, bank.dimensions)
        )
        w = irt.weight(bank.probability(ability.theta))[0]
        w /= max(float(w.mean()), RAREST)
        return np.stack([(1.0 - share) * even + share * w for share in SHARES])

    def predicted(self, shapes: Array, items: Ints, scores: Array, model: Array | None = None) -> Array:
        """Return the predicted scores of candidates, from the answers so far.

        Several models are mixed, weighted by likelihood. Some predict flips by `shapes`, with separate rates for right
        and wrong earlier answers. Others take the bank's prediction at the candidate's ability and move its logit by
        `AGREEMENT` towards the earlier answer. An item without an earlier score has the bank's prediction.

        Args:
            shapes: See `shapes`.
            items, scores: Shape (S, t). Administered items and scores of the candidates; NaN marks a missing score.
            model: Shape (S, n). Predicted scores by the bank; required if some earlier scores are missing.

        Returns:
            Shape (S, n).
        """
        is_known = ~np.isnan(self.scores)
        earlier = np.where(is_known, self.scores, 0.5)
        scored = ~np.isnan(scores)
        compared = scored & is_known[items]
        right = earlier >= 0.5
        was_right = right[items]
        flipped = np.where(compared, np.abs(scores - earlier[items]), 0.0)
        flip_sums = [np.where(was_right == side, flipped, 0.0).sum(axis=1) for side in (False, True)]
        predictions = []
        for shape in shapes:
            rates = []
            for side in (False, True):
                expected = np.where(compared & (was_right == side), shape[items], 0.0).sum(axis=1)
                rates.append(((flip_sums[side] + GUESS_WORTH * self.flip_prior) / (expected + GUESS_WORTH))[:, None])
            flips = np.clip(shape * np.where(right, rates[1], rates[0]), RAREST, MOST)
            predictions.append(earlier * (1.0 - flips) + (1.0 - earlier) * flips)
        if model is not None:
            p = np.clip(model, RAREST, 1.0 - RAREST)
            predictions = [np.where(is_known, prediction, p) for prediction in predictions]
            odds = p / (1.0 - p)
            for agreement in AGREEMENT:  # the first is the bank's own prediction
                moved = odds * np.exp(agreement * (2.0 * earlier - 1.0))
                predictions.append(np.clip(moved / (1.0 + moved), RAREST, 1.0 - RAREST))
        log_odds = np.zeros((len(predictions), len(items)))
        if model is not None:
            log_odds[len(shapes)] = self.bank_odds
        for prediction, log_likelihood in zip(predictions, log_odds, strict=True):
            p = np.take_along_axis(prediction, items, axis=1)
            terms = scores * np.log(p) + (1.0 - scores) * np.log1p(-p)
            log_likelihood += np.where(scored, terms, 0.0).sum(axis=1)
        weights = np.exp(log_odds - log_odds.max(axis=0))
        weights /= weights.sum(axis=0)
        return np.asarray(sum(weight[:, None] * p for weight, p in zip(weights, predictions, strict=True)))
