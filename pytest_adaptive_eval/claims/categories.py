"""Accuracy by category, from the draws of one interview, and its mean over all categories (macro accuracy).

With n_c items in category c, every score is weighted by ``w = min(n) / n_c``. Weighted scores lie in [0, 1], and their
sum over the bank is ``min(n)`` times the sum of the categories' accuracies. That sum is a quantity of the bank like the
sum of the scores. The draws' propensities make its one-draw estimates unbiased, so the same bets hold.

The prediction of an item is its weight times the mean prediction over the items not yet drawn, which the log holds as
`rest`. It is fixed before the draw, as `inference.betting` requires. A log has no predictions of items that were not
drawn, so differences of difficulty within a category do not reduce the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import UNIT, Claim, interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import approximate_interval, sampling_error, standard_error
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Bools

#: Maximum number of ability estimates that predict a category; each takes a row of predicted scores over the bank.
_ABILITIES = 16
_CATEGORIES = 40  #: Maximum number of reported categories; the largest are kept.


@dataclass(frozen=True, slots=True)
class CategoryResult:
    """Result of an interview in one category.

    Args:
        size, asked, scored: Items in the bank, administered, and with a score.
        accuracy: Mean score over all the category's items. None if none of them was administered, or if the items were
            not drawn at random. The confidence holds for each interval alone, not for all at once.
        standard_error: Of the accuracy, by the draws.
        total: Sum of the scores; None without scores.
        sampling_error: Of the mean score over new samples of items and answers, see `sampling.sampling_error`.
    """

    category: str
    size: int
    asked: int
    scored: int
    accuracy: Interval | None = None
    standard_error: float | None = None
    sampling_error: float | None = None
    total: float | None = None


def by_category(
    bank: ItemBank,
    log: DesignLog,
    abilities: Sequence[Sequence[float]] | None,
    confidence: float = 0.95,
    *,
    drawn: bool = True,
) -> list[CategoryResult]:
    """Return the accuracy in each of the bank's broadest categories.

    Uniform draws are uniform within each category too, so the exact interval of
    the category's draws holds.  With other draws, the score within the category
    is a quantity on the whole bank that is zero for other items.  The draws
    estimate its total, with the bank's predictions as control variate::

        T_t = sum of the category's scores before t + its predicted scores after
              + (r_t - m_t) / q_t   where item t is of the category

    Args:
        log: Draws of one subject.
        abilities: Shape (t, D). Ability estimates before each draw, in logits; None on an uncalibrated bank.
        confidence: Confidence of each one-sided bound.
        drawn: Whether the draws represent the bank, see `SessionResult.invalid`. If not, intervals are missing.

    Returns:
        Ordered by name; empty if the bank has fewer than two categories.
    """
    names, code, sizes = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(names) < 2 or not len(log):
        return []
    drawn = drawn and not np.isnan(log.propensities).any()
    uniform = drawn and log.uniform
    largest = sorted(np.argsort(-sizes, kind="stable")[:_CATEGORIES].tolist())
    expected = None
    if drawn and not uniform:
        if abilities is None:
            theta = np.zeros((len(log), 1))
        else:
            theta = np.asarray(abilities, dtype=np.float64)
        expected = _Expected(bank, log, theta, code)
    results = []
    for c in largest:
        inside = code[log.items] == c
        result = CategoryResult(
            str(names[c]), int(sizes[c]), int(inside.sum()), int((inside & ~np.isnan(log.scores)).sum())
        )
        if inside.any() and uniform:
            chosen = int(inside[: log.take_all].sum())
            drawn_inside = uniform_draws(log.scores[inside], int(sizes[c]), chosen)
            category_log = replace(
                drawn_inside,
                noise=log.noise,
                awaited=int(inside[: log.awaited].sum()) if log.awaited else None,
                horizon=len(drawn_inside) if log.fixed else 0,
                fixed=log.fixed,
            )
            result = _with_interval(result, category_log, confidence)
        elif inside.any() and expected is not None:
            result = _with_interval(result, expected.log(c, inside), confidence)
        if result.scored:
            scores = log.scores[inside]
            result = replace(result, sampling_error=sampling_error(scores), total=float(np.nansum(scores)))
        results.append(result)
    return results


def _with_interval(result: CategoryResult, log: DesignLog, confidence: float) -> CategoryResult:
    """Return the result with its interval, from a log of the category's scores over `log.size` items."""
    share = log.size / result.size
    if log.uniform:
        mean = interval_of_draws(log, confidence)
    else:
        mean = approximate_interval(log, confidence)
    total = float(np.nansum(log.scores))
    least = total / result.size
    most = (total + result.size - result.scored) / result.size
    if log.noise:  # with decoding noise, the observed scores do not limit the accuracy
        least, most = 0.0, 1.0

    def within(value: float) -> float:
        return min(max(share * value, least), most)

    interval = Interval(within(mean.estimate), within(mean.low), within(mean.high), confidence, mean.method)
    return replace(result, accuracy=interval, standard_error=share * standard_error(log))


class _Expected:
    """Predicted scores of the bank during an interview, summed by category."""

    def __init__(self, bank: ItemBank, log: DesignLog, theta: Array, code: NDArray[np.intp]) -> None:
        self.outer = log
        # any prediction fixed before a draw is valid, so a few of the ability estimates suffice
        changes = np.flatnonzero(np.r_[True, (theta[1:] != theta[:-1]).any(axis=1)])
        selected = np.unique(np.linspace(0, len(changes) - 1, min(_ABILITIES, len(changes))).round().astype(int))
        starts = changes[selected]
        self.row = np.searchsorted(starts, np.arange(len(log)), side="right") - 1
        if bank.calibrated:
            p = bank.probability(theta[starts])
        else:
            p = np.full((len(starts), len(bank)), 0.5)
        self.code, self.p = code, p
        self.drawn = p[self.row, log.items]

    def log(self, category: int, inside: Bools) -> DesignLog:
        """Return the draws with scores that are zero outside the category."""
        outer = self.outer
        members = self.code == category
        spread = self.p * (1.0 - self.p)
        share = spread[:, members].sum(axis=1) / np.maximum(spread.sum(axis=1), 1e-12)
        items = outer.items
        drawn_inside = np.where(inside, self.p[:, items], 0.0)
        # sum of each row's predicted scores of the category over the items drawn before t
        before = np.concatenate([np.zeros((len(drawn_inside), 1)), drawn_inside.cumsum(axis=1)[:, :-1]], axis=1)
        steps = np.arange(len(items))
        rest = self.p[:, members].sum(axis=1)[self.row] - before[self.row, steps]
        return replace(
            outer,
            scores=np.where(inside, outer.scores, 0.0),
            predictions=np.where(inside, self.drawn, 0.0),
            rest=rest,
            variance=outer.variance * share[self.row],
            noise=outer.noise * inside.mean(),
            high=inside.astype(np.float64),
        )


LEAST_PREDICTED, MOST_PREDICTED = 0.02, 0.98  #: Limits of the mean prediction, which keep the variance above 0.


def macro_weights(bank: ItemBank) -> Array:
    """Return the weight of each item's score, shape (n,), in (0, 1]; ConfigError for fewer than two categories."""
    names, codes, counts = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ConfigError(f"the bank {bank.name!r} has items of fewer than 2 categories: gate on accuracy")
    return np.asarray(counts.min() / counts[codes])


@dataclass(frozen=True, slots=True)
class MacroClaim(Claim):
    """The claim that the weighted sum of scores, see the module, is at least `total`.

    Args:
        weights: Shape (n,). Weights of all items, see `macro_weights`.
    """

    weights: Array = field(default_factory=lambda: np.empty(0))

    @property
    def sought(self) -> float | None:
        """None: the claim is on weighted scores."""
        return None

    @property
    def scale(self) -> float:
        """Macro accuracy of a mean weighted score of 1."""
        return len(self.weights) / float(self.weights.sum())

    def view(self, log: DesignLog) -> DesignLog:
        """Return the draws of the weighted scores."""
        weights = self.weights[log.items]
        items_left = log.size - np.arange(len(log))
        weights_left = self.weights.sum() - (weights.cumsum(axis=-1) - weights)
        squares_left = (self.weights**2).sum() - ((weights**2).cumsum(axis=-1) - weights**2)
        mean = np.clip(log.rest / items_left, LEAST_PREDICTED, MOST_PREDICTED)
        inverse_propensity = log.down + log.up  # its upper bound over the items not yet drawn
        return replace(
            log,
            scores=weights * log.scores,
            predictions=weights * mean,
            rest=weights_left * mean,
            variance=items_left * squares_left * mean * (1.0 - mean),
            down=mean * inverse_propensity,
            up=(1.0 - mean) * inverse_propensity,
            noise=log.noise * (weights**2).mean(axis=-1),
            high=weights,
        )


def macro_claim(bank: ItemBank, accuracy: float, confidence: float) -> MacroClaim:
    """Return the claim that the macro accuracy is at least `accuracy`."""
    weights = macro_weights(bank)
    total = accuracy * float(weights.sum())
    return MacroClaim(total, confidence, UNIT * float(weights.mean()), weights=weights)
