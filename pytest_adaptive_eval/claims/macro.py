"""Macro accuracy: the mean of the accuracies of all categories, by the draws, whatever the bank's quality.

With n_c items in category c, every score is weighted by ``w = min(n) / n_c``, so that weighted scores lie in [0, 1] and
their sum over the bank is ``min(n)`` times the sum of the categories' accuracies. That sum is a quantity of the bank
like the sum of the scores. The draws' propensities make its one-draw estimates unbiased, so that the same bets hold.

The prediction of an item is its weight times the mean prediction over the items not yet drawn, which the log holds as
`rest`. It is fixed before the draw, as `inference.betting` requires. A log has no predictions of items that were not
drawn, so that differences of difficulty within a category do not reduce the variance.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import UNIT, Claim
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

LEAST_PREDICTED, MOST_PREDICTED = 0.02, 0.98  #: Limits of the mean prediction, which keep the variance above 0.


def macro_weights(bank: ItemBank) -> Array:
    """Return the weight of each item's score, shape (n,), in (0, 1]; ConfigError for fewer than two categories."""
    names, codes, counts = np.unique(np.asarray(bank.categories, dtype=object), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ConfigError(
            f"the bank {bank.name!r} has items of fewer than 2 categories, so that there is no mean over categories: "
            "gate on accuracy"
        )
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
