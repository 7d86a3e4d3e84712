"""Accuracy by category, from the draws of one interview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import merge_missing_bounds, standard_error, with_missing_bounded
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["CategoryResult", "by_category"]

Array = NDArray[np.float64]
#: Abilities at which a category's expected accuracy is computed anew: one matrix row of the bank each.
_ABILITIES = 16
#: Categories reported, the largest first.
_CATEGORIES = 40


@dataclass(frozen=True, slots=True)
class CategoryResult:
    """What an interview says about one category.

    Parameters
    ----------
    category : str
    size, asked, scored : int
        Items in the bank, administered, and with a score.
    accuracy : Interval or None
        Over all the category's items; None where none was asked, or the items
        were not drawn at random.  Each interval holds by itself, not all at once.
    standard_error : float or None
        Of the estimate.
    """

    category: str
    size: int
    asked: int
    scored: int
    accuracy: Interval | None = None
    standard_error: float | None = None

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return {
            "category": self.category,
            "size": self.size,
            "asked": self.asked,
            "scored": self.scored,
            "accuracy": self.accuracy.to_json() if self.accuracy else None,
            "standard_error": self.standard_error,
        }


def by_category(
    bank: ItemBank,
    log: DesignLog,
    abilities: Sequence[Sequence[float]] | None,
    confidence: float = 0.95,
    *,
    drawn: bool = True,
) -> list[CategoryResult]:
    """Accuracy in each of the bank's broadest categories.

    Uniform draws are uniform within each category too, so that the exact
    interval of a category's own draws holds.  Otherwise the score within the
    category is taken as a quantity on the whole bank, zero outside of it, whose
    total the draws estimate, with the bank's predictions as control variate::

        T_t = sum of the category's scores before t + its predicted scores after
              + (r_t - m_t) / q_t   where item t is of the category

    Parameters
    ----------
    bank : ItemBank
    log : DesignLog
        Of one subject.
    abilities : sequence of shape (t, D), or None
        Estimated before each draw; None on an uncalibrated bank.
    confidence : float
        Of each one-sided bound.
    drawn : bool
        Whether the draws say something of the bank, see `SessionResult.invalid`; without, there are no intervals.

    Returns
    -------
    list of CategoryResult
        By name; empty where the bank has fewer than two categories.
    """
    names, code, sizes = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(names) < 2 or not len(log):
        return []
    drawn = drawn and not np.isnan(log.propensities).any()
    uniform = drawn and np.allclose(log.propensities * (log.size - np.arange(len(log))), 1.0, rtol=1e-9)
    largest = sorted(np.argsort(-sizes, kind="stable")[:_CATEGORIES].tolist())
    expected = None
    if drawn and not uniform:
        theta = np.zeros((len(log), 1)) if abilities is None else np.asarray(abilities, dtype=np.float64)
        expected = _Expected(bank, log, theta, code)
    results = []
    for c in largest:
        inside = code[log.items] == c
        result = CategoryResult(
            str(names[c]), int(sizes[c]), int(inside.sum()), int((inside & ~np.isnan(log.scores)).sum())
        )
        if inside.any() and uniform:
            own = log[inside]
            left = sizes[c] - np.arange(len(own), dtype=np.float64)
            mean = np.full(len(own), 0.5)
            right = (float(np.nansum(own.scores)) + 1.0) / (result.scored + 2.0)
            spread = left**2 * right * (1.0 - right)
            own = replace(own, propensities=1.0 / left, predictions=mean, rest=0.5 * left, variance=spread)
            result = _with_interval(result, replace(own, size=int(sizes[c])), confidence)
        elif inside.any() and expected is not None:
            result = _with_interval(result, expected.log(c, inside), confidence)
        results.append(result)
    return results


def _with_interval(result: CategoryResult, log: DesignLog, confidence: float) -> CategoryResult:
    """The result with its interval, from a log of the category's scores over `log.size` items."""
    share = log.size / result.size
    found = merge_missing_bounds(*with_missing_bounded(log, confidence))
    right = float(np.nansum(log.scores))
    least, most = right / result.size, (right + result.size - result.scored) / result.size
    if log.noise:  # another decoding may find other scores
        least, most = 0.0, 1.0

    def within(value: float) -> float:
        return min(max(share * value, least), most)

    interval = Interval(within(found.estimate), within(found.low), within(found.high), confidence, found.method)
    return replace(result, accuracy=interval, standard_error=share * standard_error(log))


class _Expected:
    """Predictions of the bank along an interview, summed by category."""

    def __init__(self, bank: ItemBank, log: DesignLog, theta: Array, code: NDArray[np.intp]) -> None:
        self.outer = log
        # of all the abilities on the way, some known before each draw serve: any prediction made before is valid
        changes = np.flatnonzero(np.r_[True, (theta[1:] != theta[:-1]).any(axis=1)])
        some = np.unique(np.linspace(0, len(changes) - 1, min(_ABILITIES, len(changes))).round().astype(int))
        starts = changes[some]
        self.row = np.searchsorted(starts, np.arange(len(log)), side="right") - 1
        p = bank.probability(theta[starts]) if bank.calibrated else np.full((len(starts), len(bank)), 0.5)
        self.code, self.p = code, p
        self.drawn = p[self.row, log.items]

    def log(self, category: int, inside: NDArray[np.bool_]) -> DesignLog:
        """The draws as of a score that is zero outside the category."""
        outer, members = self.outer, self.code == category
        spread = self.p * (1.0 - self.p)
        share = spread[:, members].sum(axis=1) / np.maximum(spread.sum(axis=1), 1e-12)
        items = outer.items
        # what a row predicts of the items drawn before t
        own = np.where(inside, self.p[:, items], 0.0)
        gone = np.concatenate([np.zeros((len(own), 1)), own.cumsum(axis=1)[:, :-1]], axis=1)
        steps = np.arange(len(items))
        rest = self.p[:, members].sum(axis=1)[self.row] - gone[self.row, steps]
        return replace(
            outer,
            scores=np.where(inside, outer.scores, 0.0),
            predictions=np.where(inside, self.drawn, 0.0),
            rest=rest,
            variance=outer.variance * share[self.row],
            noise=outer.noise * inside.mean(),
            high=inside.astype(np.float64),
        )
