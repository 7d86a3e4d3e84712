"""Interviews that a bank's predictor assists: its design says how items are drawn, and its predictions estimate.

The first items come from the design's selector and the last ones from uniform draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.cat.selection import Selector
from pytest_adaptive_eval.cat.selectors import Form, Variance
from pytest_adaptive_eval.irt.estimation import Estimator
from pytest_adaptive_eval.irt.prediction import Curves, Design, Evidence
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

#: Selectors of first items, by the name in designs.
FIRST: Mapping[str, Selector] = {"variance": Variance(), "form": Form()}


def curves(bank: ItemBank, estimator: Estimator, items: Ints, scores: Array) -> Curves:
    """Return the subjects' curves at the abilities that their scores (S, k) of `items` (S, k) give."""
    A, c = bank.discrimination, bank.asymptote
    chosen = None if c is None else c[items]
    start = estimator.prior(len(items), bank.dimensions)
    if items.size:
        ability = estimator.estimate(scores, A[items], bank.intercept[items], chosen, start)
    else:
        ability = start
    p = bank.probability(ability.theta)
    if c is None:
        steep = p * (1.0 - p)
    else:
        steep = (p - c) * (1.0 - p) / (1.0 - c)
    return Curves(ability.theta, p, steep[:, None, :] * A.T)


def parts(design: Design, estimated: Evidence, first: Evidence) -> tuple[Array, Array, Array, Array]:
    """Return accuracies by the model and by the difference estimator, and the standard errors of both, shape (S,) each.

    Args:
        design: Its weight does not count.
        estimated, first: All scores, and the scores of the first items before the uniform draws, each with the
            abilities that they give. A subject without scored draws has the model's estimates as both.
    """
    items = estimated.items
    scores = estimated.scores
    chosen = first.items.shape[1]
    predicted, variance = estimated.predict(design)
    n = predicted.shape[1]
    model = _mean(predicted, items, scores)
    error = np.sqrt(variance)
    before = np.s_[:, :chosen]
    drawn = np.s_[:, chosen:]
    scored = ~np.isnan(scores[drawn])
    count = scored.sum(axis=1)
    if not count.any():
        return model, model, error, error
    by_first, _ = first.predict(design)
    wrong = np.where(scored, scores[drawn] - np.take_along_axis(by_first, items[drawn], axis=1), 0.0)
    outside = n - (~np.isnan(scores[before])).sum(axis=1)
    divisor = np.maximum(count, 1)
    mean = wrong.sum(axis=1) / divisor
    difference = _mean(by_first, items[before], scores[before]) + mean * outside / n
    # one surprise more than there was, since few draws may show none
    spread = (
        ((wrong**2).sum(axis=1) - count * mean**2 + 0.25)
        / (divisor + 1)
        / divisor
        * np.maximum(1.0 - count / outside, 0.0)
    )
    by_design = np.sqrt(np.maximum(spread, 0.0)) * outside / n
    return model, np.where(count, difference, model), error, np.where(count, by_design, error)


def _mean(predicted: Array, items: Ints, scores: Array) -> Array:
    """Return the means, shape (S,), of predictions (S, n) with the scores that are known in place of theirs."""
    change = scores - np.take_along_axis(predicted, items, axis=1)
    return np.asarray((predicted.sum(axis=1) + np.nansum(change, axis=1)) / predicted.shape[1])


@dataclass(slots=True)
class Assistance:
    """Design of a session's interviews.

    Args:
        bank: With a predictor.
        count: Items of an interview.
        take_all: Items asked before the design's, see `inference.design.DesignLog`.
    """

    bank: ItemBank
    design: Design
    estimator: Estimator
    count: int
    take_all: int = 0

    @property
    def chosen(self) -> int:
        """Number of items before the uniform draws that the design plans."""
        return self.take_all + self.design.chosen(self.count - self.take_all)

    @property
    def first(self) -> Selector:
        """Selector of the first items."""
        return FIRST[self.design.selector]

    def estimate(self, items: Ints, scores: Array, counts: Ints) -> tuple[Array, Array]:
        """Return every subject's accuracy and its standard error, both of shape (S,), from its first `counts` items."""
        predictor = self.bank.predictor
        assert predictor is not None
        scores = np.where(np.arange(items.shape[1]) < counts[:, None], scores, np.nan)
        estimated = curves(self.bank, self.estimator, items, scores)
        whole = first = Evidence(predictor, [self.design], estimated, items, scores)
        if (chosen := self.chosen) < items.shape[1]:
            asked = items[:, :chosen]
            answers = scores[:, :chosen]
            first = Evidence(
                predictor, [self.design], curves(self.bank, self.estimator, asked, answers), asked, answers
            )
        model, difference, by_model, by_design = parts(self.design, whole, first)
        weight = self.design.weight
        return np.clip(model + weight * (difference - model), 0.0, 1.0), by_model + weight * (by_design - by_model)
