"""Interviews that a bank's predictor assists: its design says how items are drawn, and its predictions estimate.

The first items come from the design's selector and the last ones from uniform draws.  A subject whose answers to the
first items fit worse than those of every calibration subject is unlike them: from half of its interview on all items
are drawn uniformly, and its estimate is the difference estimator, which rests on its own answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import Selector
from pytest_adaptive_eval.cat.selectors import Form, Random, Variance
from pytest_adaptive_eval.irt.estimation import Estimator
from pytest_adaptive_eval.irt.person_fit import lz_star
from pytest_adaptive_eval.irt.prediction import Curves, Design, Evidence
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Assistance", "curves", "parts", "person_fits"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Selectors of first items, by the name in designs, and of the others.
FIRST: Mapping[str, Selector] = {"variance": Variance(), "form": Form()}
LATER = Random()


def curves(bank: ItemBank, estimator: Estimator, items: Ints, scores: Array) -> Curves:
    """Return the subjects' curves at the abilities that their scores (S, k) of `items` (S, k) give."""
    A, c = bank.discrimination, bank.asymptote
    chosen = None if c is None else c[items]
    start = estimator.prior(len(items), bank.dimensions)
    ability = estimator.estimate(scores, A[items], bank.intercept[items], chosen, start) if items.size else start
    p = bank.probability(ability.theta)
    steep = p * (1.0 - p) if c is None else (p - c) * (1.0 - p) / (1.0 - c)
    return Curves(ability.theta, p, steep[:, None, :] * A.T)


def person_fits(bank: ItemBank, estimated: Curves, items: Ints, scores: Array) -> Array:
    """Return each subject's person fit, shape (S,), normal under the model; NaN where it cannot be measured."""
    if not items.size:
        return np.full(len(items), np.nan)
    c = None if bank.asymptote is None else bank.asymptote[items]
    p = np.take_along_axis(estimated.probability, items, axis=1)
    return lz_star(scores, p, bank.discrimination[items], c).normal


def parts(design: Design, estimated: Evidence, first: Evidence) -> tuple[Array, Array, Array, Array]:
    """Return accuracies by the model and by the difference estimator, and the standard errors of both, shape (S,) each.

    Parameters
    ----------
    design : Design
        Its weight does not count.
    estimated, first : Evidence
        All scores, and those of the first items alone, before the uniform draws, each with the abilities that they
        give.  A subject without scored draws has the model's estimates as both.
    """
    items, scores, chosen = estimated.items, estimated.scores, first.items.shape[1]
    predicted, variance = estimated.predict(design)
    n = predicted.shape[1]
    model, error = _mean(predicted, items, scores), np.sqrt(variance)
    before, drawn = np.s_[:, :chosen], np.s_[:, chosen:]
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
    """Design of a session's interviews, and who of its subjects is unlike the calibration subjects.

    Parameters
    ----------
    bank : ItemBank
        With a predictor.
    design : Design
    estimator : Estimator
    count : int
        Items of an interview.
    unlike : array of bool, shape (S,), optional
        None until the first items are answered.
    take_all : int
        Items that are asked before those of the design, see `inference.design.DesignLog`.
    """

    bank: ItemBank
    design: Design
    estimator: Estimator
    count: int
    unlike: Bools | None = None
    take_all: int = 0

    @property
    def checked(self) -> int:
        """Number of items after which `unlike` is known; without uniform draws, half of all, if any may follow."""
        if self.design.policy == "form":
            return self.count
        return self._chosen if self.design.uniform else max(self.take_all, -(-self.count // 2))

    @property
    def _chosen(self) -> int:
        """Number of items before the uniform draws that the design plans."""
        return self.take_all + self.design.chosen(self.count - self.take_all)

    def limit(self, asked: int) -> int:
        """Return how many items may be drawn together: those up to the next change of the draws."""
        return self.checked - asked if asked < self.checked else self.count - asked

    def selector(self, subject: int, asked: int) -> Selector:
        """Return the selector of a subject's next item."""
        if asked >= self.chosen(subject):
            return LATER
        return self.first

    @property
    def first(self) -> Selector:
        """Selector of the first items."""
        return FIRST[self.design.selector]

    def chosen(self, subject: int) -> int:
        """Return the number of a subject's items before its uniform draws."""
        return min(self.checked, self._chosen) if self.strays(subject) else self._chosen

    def chosen_each(self, subjects: int) -> Ints:
        """Return `chosen` of each of the subjects, shape (S,)."""
        unlike = np.zeros(subjects, dtype=bool) if self.unlike is None else self.unlike
        return np.where(unlike, min(self.checked, self._chosen), self._chosen)

    def strays(self, subject: int) -> bool:
        """Return whether a subject is unlike the calibration subjects."""
        return self.unlike is not None and bool(self.unlike[subject])

    def unlike_sentence(self, subject: int) -> str:
        """Return how the interview of a subject went on that is unlike the calibration subjects; empty if it is not."""
        if not self.strays(subject):
            return ""
        return (
            f"its first {self.checked} answers fit the bank less than those of any calibration subject: the later "
            "questions were drawn uniformly, and the estimate rests on them instead of predictions"
        )

    def check(self, items: Ints, scores: Array) -> None:
        """Set `unlike` once there are enough items and scores, both of shape (S, t), and more may follow."""
        if self.unlike is not None or not self.checked <= items.shape[1] or self.checked >= self.count:
            return
        items, scores = items[:, : self.checked], scores[:, : self.checked]
        estimated = curves(self.bank, self.estimator, items, scores)
        with np.errstate(invalid="ignore"):
            self.unlike = person_fits(self.bank, estimated, items, scores) < self.design.least_fit

    def estimate(self, items: Ints, scores: Array, counts: Ints) -> tuple[Array, Array]:
        """Return every subject's accuracy and its standard error, both of shape (S,), from its first `counts` items."""
        predictor = self.bank.predictor
        assert predictor is not None
        scores = np.where(np.arange(items.shape[1]) < counts[:, None], scores, np.nan)
        estimated = curves(self.bank, self.estimator, items, scores)
        accuracy, error = np.empty((2, len(items)))
        chosen = np.minimum(self.chosen_each(len(items)), items.shape[1])
        for count in np.unique(chosen):
            rows = np.flatnonzero(chosen == count)
            asked, answers = items[rows], scores[rows]
            whole = first = Evidence(predictor, [self.design], estimated.of(rows), asked, answers)
            if count < items.shape[1]:
                asked, answers = asked[:, :count], answers[:, :count]
                by_first = curves(self.bank, self.estimator, asked, answers)
                first = Evidence(predictor, [self.design], by_first, asked, answers)
            model, difference, by_model, by_design = parts(self.design, whole, first)
            weight = np.array([1.0 if self.strays(s) else self.design.weight for s in rows.tolist()])
            accuracy[rows] = np.clip(model + weight * (difference - model), 0.0, 1.0)
            error[rows] = by_model + weight * (by_design - by_model)
        return accuracy, error
