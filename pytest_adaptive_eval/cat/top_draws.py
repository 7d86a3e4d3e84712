"""Choose the items of most information in replayed interviews, without rating all items at every step.

While an ability stays near, the information of an item has an upper limit. Only the items of the highest limits are
rated, until the best of them falls to the limit of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ties import TIE, first_largest
from pytest_adaptive_eval.types import Array, Bools, Ints

CANDIDATES = 192  #: Items that are rated at every step.
#: Distance that an ability may go before limits are computed again, in steps of about the size of the next ones.
STEPS = 4.0


class TopDraws:
    """Items of S subjects by maximum information, one item each at a time.

    Args:
        banks: Of one dimension without guessing, with the same number n of items.
        of: Shape (S,). Bank of each subject.
    """

    def __init__(self, banks: Sequence[ItemBank], of: Ints) -> None:
        self._banks, self._of, self._rows = banks, of, np.arange(len(of))
        self._free = np.ones((len(of), len(banks[0])), dtype=bool)
        shape = len(of), min(CANDIDATES, len(banks[0]))
        #: Candidates in the bank's order, and their parameters; the squared slope of one that was drawn is -1.
        self._items = np.zeros(shape, dtype=np.int64)
        self._slope, self._intercept, self._squared = np.zeros((3, *shape))
        #: Largest limit of the other items, the ability of the limits, and how far away they hold.
        self._others = np.full(len(of), np.inf)
        self._centre, self._radius = np.zeros((2, len(of)))

    def draw(self, theta: Array, variance: Array, first: int) -> Ints:
        """Return the next item of each subject, shape (S,), as `MaximumInformation` chooses it.

        Args:
            theta, variance: Shape (S,). Abilities before the batch of this draw.
            first: Number of draws before that batch.
        """
        best, sure = self._best(self._rows, theta)
        unsure = np.flatnonzero(~sure)
        if len(unsure):
            for s in unsure.tolist():
                self._renew(s, float(theta[s]), STEPS * float(variance[s] / (first + 1.0)) ** 0.5)
            best[unsure], sure[unsure] = self._best(unsure, theta[unsure])
        items = self._items[self._rows, best]
        self._squared[self._rows, best] = -1.0
        for s in np.flatnonzero(~sure).tolist():
            items[s] = self._exact(s, float(theta[s]))
            self._others[s] = np.inf  # the candidates may still hold that item
        self._free[self._rows, items] = False
        return items

    def take(self, items: Ints) -> None:
        """Take an item of each subject, shape (S,), that something else has drawn."""
        self._free[self._rows, items] = False
        self._squared[self._items == items[:, None]] = -1.0

    def _best(self, rows: Ints, theta: Array) -> tuple[Ints, Bools]:
        """Return the place of some subjects' best candidate, and whether no other item can be better."""
        p = irt.probability(theta[:, None], self._slope[rows, :, None], self._intercept[rows])
        rated = irt.weight(p)
        rated *= self._squared[rows]
        best = first_largest(rated)
        near = np.abs(theta - self._centre[rows]) <= self._radius[rows]
        return best, near & (rated[np.arange(len(rows)), best] > (1.0 + 2.0 * TIE) * self._others[rows])

    def _renew(self, s: int, theta: float, radius: float) -> None:
        """Compute the limits of a subject's items about its ability."""
        bank = self._banks[self._of[s]]
        slope, squared = bank.discrimination[:, 0], bank.squared_slope
        nearest = np.abs(theta * slope + bank.intercept) - radius * np.abs(slope)
        limits = irt.weight(1.0 / (1.0 + np.exp(np.maximum(nearest, 0.0)))) * squared
        limits[~self._free[s]] = -1.0
        count = self._items.shape[1]
        if count < len(limits):
            order = np.argpartition(-limits, count)
            self._others[s] = limits[order[count]]
            items = np.sort(order[:count])
        else:
            self._others[s], items = -np.inf, np.arange(count)
        self._items[s] = items
        self._slope[s], self._intercept[s] = slope[items], bank.intercept[items]
        self._squared[s] = np.where(self._free[s, items], squared[items], -1.0)
        self._centre[s], self._radius[s] = theta, radius

    def _exact(self, s: int, theta: float) -> int:
        """Return a subject's best item, for which all are rated."""
        bank = self._banks[self._of[s]]
        rated = irt.information(bank.probability(np.array([[theta]])), bank.discrimination, squared=bank.squared_slope)
        rated[0, ~self._free[s]] = -1.0
        return int(first_largest(rated[0]))
