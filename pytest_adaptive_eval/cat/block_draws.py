"""Draw items of replayed interviews by sums of ratings over blocks of items, without rating all items at every step.

`propose` draws by inversion: of the cumulative ratings of all items, the first above a random number is drawn.  In one
dimension without guessing, a rating is a smooth function of the ability, and of its variance.  The sum of ratings over
a block of items is then smooth too.  It is interpolated between Chebyshev nodes about the last abilities, and only the
items of the block in which the random number falls are rated.  The interpolation error is bounded (Trefethen 2013,
theorem 8.2).  If the random number is nearer to the limit of an item than that bound, the draw is repeated with all
ratings.  So the items are those of `propose`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import BLOCK, RandomNumbers, Selector, View, propose
from pytest_adaptive_eval.irt.chebyshev import nodes, polynomials, transform
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["BlockDraws", "SmoothSelector", "smooth_selector"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Largest distance of an item's logit from its value at the centre of the nodes.
REACH = 0.3
#: Chebyshev nodes for the ability, and for its variance.
NODES, VARIANCE_NODES = 10, 4
#: Bound of the interpolation error by ability, relative to a sum of positive ratings: 4 M r^-9 / (r - 1) on the ellipse
#: of half-axis 1.5 i in logits, with r = 10.1.  M = 140 bounds the square of p(1 - p) there, relative to its value at
#: the centre.
ABILITY_ERROR = 6e-8
#: Rounding errors of cumulative sums.
ROUNDING = 1e-11
#: Products of variance and information up to which ratings are interpolated.
WEAK = 0.1
#: Fewer items are all rated.
FEWEST = 4 * BLOCK
#: Items drawn since the last step that are taken out of the sums one by one; after more, sums are made again.
FEW_NEW = 16


@runtime_checkable
class SmoothSelector(Selector, Protocol):
    """Selector whose criterion is, up to a factor of the subject, a power of a smooth rating."""

    @property
    def by_variance(self) -> bool:
        """Whether ratings depend on the variance of the ability."""

    def rating(self, spread: Array, squared: Array, variance: Array | float) -> Array:
        """Return ratings from p(1 - p), squared slopes and the ability's variance, which broadcast, in a new array."""

    def power(self, asked: int) -> float:
        """Return the power of the ratings after `asked` administrations; it never rises, and stays once it did."""


def smooth_selector(selector: Selector, bank: ItemBank) -> SmoothSelector | None:
    """Return a selector for `BlockDraws`, or None if it has to rate all items of this bank."""
    plain = bank.dimensions == 1 and bank.asymptote is None and len(bank) >= FEWEST
    return selector if plain and isinstance(selector, SmoothSelector) else None


def _spread(z: Array) -> Array:
    """Return p(1 - p) at logits, in place."""
    np.abs(z, out=z)
    np.negative(z, out=z)
    rest = np.exp(z, out=z)
    below = 1.0 + rest
    below *= below
    rest /= below
    return rest


class _Stored:
    """Random numbers that were drawn already, in place of a generator."""

    def __init__(self, numbers: Sequence[float]) -> None:
        self._numbers = iter(numbers)

    def random(self) -> float:
        """Return the next one."""
        return next(self._numbers)


class BlockDraws:
    """Draws of S subjects by one selector, of which each call may concern some.

    Parameters
    ----------
    bank : ItemBank
    selector : SmoothSelector
    floor : float
    subjects : int
        S.
    """

    def __init__(self, bank: ItemBank, selector: SmoothSelector, floor: float, subjects: int) -> None:
        self._bank, self._selector, self._floor = bank, selector, floor
        n = len(bank)
        self._starts = np.arange(0, n, BLOCK)
        blocks = len(self._starts)
        size = blocks * BLOCK
        self._a, self._d = np.zeros(size), np.zeros(size)
        self._a[:n], self._d[:n] = bank.discrimination[:, 0], bank.intercept
        self._squared = self._a**2
        self._radius = REACH / max(float(np.abs(self._a).max()), 1e-9)
        self._power = selector.power(n)
        self._most = 0.25 * float(self._squared.max())
        self._layers = VARIANCE_NODES if selector.by_variance else 1
        #: Items not yet administered, shape (S, blocks, BLOCK), and their numbers, shape (S, blocks).
        self._free = np.zeros((subjects, blocks, BLOCK), dtype=bool)
        self._counts = np.zeros((subjects, blocks))
        #: Chebyshev coefficients of the blocks' sums, shape (S, layers * NODES, blocks).
        self._sums = np.empty((subjects, self._layers * NODES, blocks))
        self._transform = np.kron(transform(self._layers), transform(NODES))
        self._centre, self._highest = np.full(subjects, np.inf), np.zeros(subjects)
        self._abilities, self._variances = np.empty((subjects, NODES)), np.empty((subjects, self._layers))
        #: Number of administrations that the sums are without.
        self._known = np.zeros(subjects, dtype=np.int64)

    def serves(self, view: View) -> bool:
        """Return whether the next items of a view can be drawn here."""
        t = view.asked.shape[1]
        if not self._selector.power(t) == self._power <= 2.0:
            return False
        return not self._selector.by_variance or bool((view.covariance[:, 0, 0] * self._most <= WEAK).all())

    def draw(self, subjects: slice, view: View, k: int, rngs: Sequence[RandomNumbers]) -> Ints:
        """Return the next `k` items of a slice of the subjects, shape (s, k), as `propose` draws them."""
        rows = np.arange(subjects.start, subjects.stop)
        numbers = np.array([[rng.random() for _ in range(k)] for rng in rngs])
        error = self._update(rows, view)
        items = self._by_blocks(rows, view, numbers, error)
        unsure = np.flatnonzero((items < 0).any(axis=1))
        if len(unsure):
            items[unsure] = self._exact(view, unsure, numbers[unsure])
        return items

    def _exact(self, view: View, which: Ints, numbers: Array) -> Ints:
        """Return the items of some rows of a view, all of whose items are rated."""
        part = View(view.bank, view.theta[which], view.covariance[which], None, view.asked[which], budget=view.budget)
        stored = [_Stored(row.tolist()) for row in numbers]
        return propose(self._selector, part, numbers.shape[1], self._floor, stored, designed=False).items

    def _update(self, rows: Ints, view: View) -> Array:
        """Take administered items out of the sums, and make sums about new abilities; return errors, shape (s,)."""
        t = view.asked.shape[1]
        theta, variance = view.theta[:, 0], view.covariance[:, 0, 0]
        known = self._known[rows]
        away = np.abs(theta - self._centre[rows]) > self._radius
        away |= known < max(int(known.max()), t - FEW_NEW)
        if self._selector.by_variance:
            highest = self._highest[rows]
            away |= (variance > highest) | (variance < 0.5 * highest)
        if not away.all():
            some = np.flatnonzero(~away)
            for j in range(int(known.max()), t):
                self._remove(rows[some], view.asked[some, j])
        for s in np.flatnonzero(away).tolist():
            self._renew(int(rows[s]), view.asked[s], float(theta[s]), float(variance[s]))
        self._known[rows] = t
        if not self._selector.by_variance:
            return np.full(len(rows), ABILITY_ERROR)
        # 10 (v h / 2)^4, with the fourth derivative, times the growth of errors there
        return np.asarray(4.0 * ABILITY_ERROR + 12.0 * (0.125 * self._most * self._highest[rows]) ** 4)

    def _weights(self, spread: Array, squared: Array, variance: Array | float) -> Array:
        """Return ratings raised to their last power."""
        ratings = self._selector.rating(spread, squared, variance)
        return ratings if self._power == 1.0 else np.asarray(np.power(ratings, self._power, out=ratings))

    def _renew(self, row: int, asked: Ints, theta: float, variance: float) -> None:
        """Make the sums of a subject about its ability."""
        self._centre[row], self._highest[row] = theta, 1.05 * variance
        self._abilities[row] = theta + self._radius * nodes(NODES)
        self._variances[row] = self._highest[row] * (0.75 + 0.25 * nodes(self._layers))
        self._free[row] = False
        free = self._free[row].reshape(-1)
        free[: len(self._bank)] = True
        free[asked] = False
        self._counts[row] = self._free[row].sum(axis=1)
        spread = _spread(self._abilities[row, :, None] * self._a + self._d)
        values = np.empty((self._layers, NODES, len(self._starts)))
        for layer, at in enumerate(self._variances[row].tolist()):
            ratings = self._weights(spread, self._squared, at)
            ratings *= free
            values[layer] = ratings.reshape(NODES, -1, BLOCK).sum(axis=2)
        self._sums[row] = self._transform @ values.reshape(self._layers * NODES, -1)

    def _remove(self, rows: Ints, items: Ints) -> None:
        """Take an item of each subject out of its sums."""
        slopes = self._a[items, None]
        spread = _spread(self._abilities[rows] * slopes + self._d[items, None])
        values = self._weights(spread[:, None], (slopes * slopes)[:, None], self._variances[rows][:, :, None])
        blocks, places = np.divmod(items, BLOCK)
        self._free[rows, blocks, places] = False
        self._counts[rows, blocks] -= 1.0
        self._sums[rows, :, blocks] -= values.reshape(len(rows), -1) @ self._transform.T

    def _at(self, rows: Ints, view: View) -> Array:
        """Return the interpolated sums of the blocks at the abilities, shape (s, blocks)."""
        x = np.clip((view.theta[:, 0] - self._centre[rows]) / self._radius, -1.0, 1.0)
        basis = polynomials(x, NODES)
        if self._layers > 1:
            y = np.clip(4.0 * view.covariance[:, 0, 0] / self._highest[rows] - 3.0, -1.0, 1.0)
            basis = (polynomials(y, self._layers)[:, :, None] * basis[:, None]).reshape(len(rows), -1)
        return np.asarray((basis[:, None] @ self._sums[rows])[:, 0])

    def _by_blocks(self, rows: Ints, view: View, numbers: Array, error: Array) -> Ints:
        """Return the items (s, k) that the random numbers (s, k) draw, -1 from where the sums cannot tell."""
        s, k = numbers.shape
        remaining = len(self._bank) - view.asked.shape[1]
        theta, variance = view.theta, view.covariance[:, 0]
        sums = self._at(rows, view)
        counts = self._counts[rows]
        items, sure = np.empty((s, k), dtype=np.int64), np.ones(s, dtype=bool)
        each = np.arange(s)
        for j in range(k):
            scale = (1.0 - self._floor) / np.maximum(sums.sum(axis=1), 1e-300)
            even = self._floor / (remaining - j)
            cumulative = (sums * scale[:, None] + even * counts).cumsum(axis=1)
            target = numbers[:, j] * cumulative[:, -1]
            block = np.minimum((cumulative <= target[:, None]).sum(axis=1), cumulative.shape[1] - 1)
            target -= np.where(block, cumulative[each, block - 1], 0.0)
            inside = block[:, None] * BLOCK + np.arange(BLOCK)
            ratings = self._weights(_spread(theta * self._a[inside] + self._d[inside]), self._squared[inside], variance)
            free = self._free[rows, block]
            for earlier in range(j):
                free &= inside != items[:, [earlier]]
            within = np.where(free, ratings * scale[:, None] + even, 0.0).cumsum(axis=1)
            place = (within <= target[:, None]).sum(axis=1)
            sure &= place < BLOCK
            place = np.minimum(place, BLOCK - 1)
            margin = 4.0 * error + ROUNDING
            sure &= within[each, place] - target > margin
            sure &= target - np.where(place, within[each, place - 1], 0.0) > margin
            items[:, j] = np.where(sure, inside[each, place], -1)
            if j + 1 < k:
                sums[each, block] -= ratings[each, place]
                counts[each, block] -= 1.0
        return items
