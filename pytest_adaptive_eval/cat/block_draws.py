"""Draw items of replayed interviews by sums of ratings over blocks of items, without rating all items at every step.

`propose` draws by inversion: of the cumulative ratings of all items, the first above a random number is drawn. In one
dimension without guessing, a rating is a smooth function of the ability, and of its variance. The sum of ratings over a
block of items is then smooth too. It is interpolated between Chebyshev nodes about the last abilities, and only the
items of the block in which the random number falls are rated. The interpolation error is bounded (Trefethen 2013,
theorem 8.2). Where ratings are not smooth enough, because they are raised to a high power or the variance is large, the
sums are computed in single precision. If the random number is nearer to the limit of an item than the error of the
sums, the draw is repeated with all ratings. So the items are the same as from `propose`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import BLOCK, Selector, View, propose
from pytest_adaptive_eval.irt.chebyshev import nodes, weights_at
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Bools, Ints

Floats = NDArray[np.floating[Any]]

REACH = 0.3  #: Largest distance of an item's logit from its value at the centre of the nodes.
NODES, VARIANCE_NODES = 11, 5  #: Chebyshev nodes for the ability, and for its variance.
#: Bound of the interpolation error by ability, relative to a sum of positive ratings: 4 M r^-10 / (r - 1) on the
#: ellipse of half-axis 1.5 i in logits, with r = 10.1.  M = 140 bounds the square of p(1 - p) there, relative to its
#: value at the centre.
ABILITY_ERROR = 6e-9
ROUNDING = 1e-11  #: Rounding errors of cumulative sums.
#: Bound of the error of cumulative sums in single precision, per power, where logits are moderate; rounding errors of
#: ratings are as large, and mostly cancel.
SINGLE_ERROR = 1.2e-7
#: Largest moderate product of ability and slope: rounding errors of larger logits are larger in proportion.
MODERATE = 8.0
WEAK = 0.1  #: Products of variance and information up to which ratings are interpolated.
#: Steps of the ability that are expected to be larger than this share of the distance to the last node come in single
#: precision, since sums at nodes take as long as many of them.
STEP = 0.2
CELLS = 1 << 15  #: Items that are rated at once in single precision, as many as fit into a processor's cache.


@runtime_checkable
class SmoothSelector(Selector, Protocol):
    """Selector whose criterion is, up to a factor of the subject, a power of a smooth rating."""

    @property
    def by_variance(self) -> bool:
        """Whether ratings depend on the variance of the ability."""

    def rating(self, spread: Floats, squared: Floats, variance: Floats | float) -> Floats:
        """Return ratings from p(1 - p), squared slopes and the ability's variance, which broadcast, in a new array."""

    def power(self, asked: int) -> float:
        """Return the power of the ratings after `asked` administrations; it never rises, and stays once it did."""


def _spread(z: Floats) -> Floats:
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
    """Draws of S subjects by one selector, one item each at a time.

    Args:
        banks: Of one dimension without guessing, with the same number n of items.
        of: Shape (S,). Bank of each subject.
        numbers: Shape (S, t). Uniform random numbers, one for each draw.
    """

    def __init__(
        self, banks: Sequence[ItemBank], of: Ints, selector: SmoothSelector, floor: float, numbers: Array
    ) -> None:
        self._banks = banks
        self._of = of
        self._selector = selector
        self._floor = floor
        self._numbers = numbers
        n = len(banks[0])
        self._rows = np.arange(len(of))
        blocks = -(-n // BLOCK)
        self._size, self._blocks = n, blocks
        a, d = np.zeros((2, len(banks), blocks * BLOCK))
        for row, bank in enumerate(banks):
            a[row, :n], d[row, :n] = bank.discrimination[:, 0], bank.intercept
        self._steepest = steepest = np.abs(a).max(axis=1)[of]
        #: Parameters of all banks in rows of a block each, and the first row of each subject's bank.
        self._a = a.reshape(-1, BLOCK)
        self._d = d.reshape(-1, BLOCK)
        self._squared = self._a**2
        self._first = of * blocks
        self._single = tuple(part.astype(np.float32) for part in (a, d, a**2))
        self._radius = REACH / np.maximum(steepest, 1e-9)
        self._most = 0.25 * steepest**2
        self._power = selector.power(n)
        #: Items drawn so far, and 1 for the others, in a row for each block of each subject.
        self._items = np.empty(numbers.shape, dtype=np.int64)
        self._drawn = 0
        free = np.zeros((len(of), blocks * BLOCK), dtype=np.float32)
        free[:, :n] = 1.0
        self._free = free.reshape(-1, BLOCK)
        self._counts = self._free.sum(axis=1, dtype=np.float64).reshape(len(of), blocks)
        #: The blocks' sums at the nodes, shape (S, layers * NODES, blocks), once they are needed.
        self._layers = VARIANCE_NODES if selector.by_variance else 1
        self._values: Array | None = None
        self._centre = np.full(len(of), np.inf)
        self._highest = np.zeros(len(of))
        self._abilities, self._variances = np.zeros((len(of), NODES)), np.zeros((len(of), self._layers))

    def draw(self, theta: Array, variance: Array, first: int) -> Ints:
        """Return the next item of each subject, shape (S,), as `propose` draws it.

        Args:
            theta, variance: Shape (S,). Abilities before the batch of this draw.
            first: Number of draws before that batch.
        """
        power = self._selector.power(first)
        rough = self._renewed(theta, variance, first)
        if not rough.any():
            sums = self._at(self._rows, theta, variance)
            error = self._interpolation_error()
            top = None
        else:
            sums = np.empty((len(theta), self._blocks))
            error = self._single_error(theta, power)
            top = np.ones(len(theta))
            sums[rough], top[rough] = self._in_single_precision(self._rows[rough], theta, variance, power)
            if not rough.all():
                smooth = self._rows[~rough]
                sums[smooth] = self._at(smooth, theta, variance)
                error = np.where(rough, error, self._interpolation_error())
        items, sure = self._by_blocks(sums, error, theta, variance, power, top)
        for s in np.flatnonzero(~sure).tolist():
            items[s] = self._exact(s, float(theta[s]), float(variance[s]), first)
        self.take(items)
        return items

    def take(self, items: Ints) -> None:
        """Take an item of each subject, shape (S,)."""
        self._items[:, self._drawn] = items
        self._drawn += 1
        self._remove(items)

    def _renewed(self, theta: Array, variance: Array, first: int) -> Bools:
        """Make sums about new abilities where the old ones are too far; return for which subjects none serve, (S,)."""
        if not self._selector.power(first) == self._power <= 2.0:
            return np.ones(len(theta), dtype=bool)
        rough = np.zeros(len(theta), dtype=bool)
        away = np.abs(theta - self._centre) > self._radius
        if self._selector.by_variance:
            away |= variance > self._highest
            rough |= variance * self._most > WEAK
        if away.any():
            restless = variance > (STEP * self._radius) ** 2 * (first + 1.0)
            rough |= away & restless
            for s in self._rows[away & ~rough].tolist():
                self._renew(s, float(theta[s]), float(variance[s]))
        return rough

    def _exact(self, s: int, theta: float, variance: float, first: int) -> int:
        """Return the next item of a subject, for which all items are rated."""
        bank = self._banks[self._of[s]]
        drawn = self._drawn
        view = View(bank, np.array([[theta]]), np.array([[[variance]]]), None, self._items[s : s + 1, :first])
        stored = _Stored(self._numbers[s, first : drawn + 1].tolist())
        return int(propose(self._selector, view, drawn + 1 - first, self._floor, [stored], designed=False).items[0, -1])

    def _interpolation_error(self) -> Array | float:
        """Return the relative errors of interpolated sums, shape (S,) or all the same."""
        if not self._selector.by_variance:
            return ABILITY_ERROR
        # 12 (v / 4)^5 of the largest variance v times information, with the fifth derivative; errors grow between nodes
        return np.asarray(4.0 * ABILITY_ERROR + 15.0 * (0.25 * self._most * self._highest) ** 5)

    def _single_error(self, theta: Array, power: float) -> Array:
        """Return the relative errors of sums in single precision, shape (S,)."""
        return np.asarray(SINGLE_ERROR * (power + 1.0) * (1.0 + np.abs(theta) * self._steepest / MODERATE))

    def _raised(self, ratings: Floats, power: float) -> Floats:
        """Return ratings raised to a power, in place."""
        if power == 2.0:
            ratings *= ratings
        elif power != 1.0:
            np.power(ratings, power, out=ratings)
        return ratings

    def _renew(self, s: int, theta: float, variance: float) -> None:
        """Make the sums of a subject about its ability."""
        if self._values is None:
            self._values = np.zeros((len(self._of), self._layers * NODES, self._blocks))
        self._centre[s], self._highest[s] = theta, 1.05 * variance
        self._abilities[s] = theta + self._radius[s] * nodes(NODES)
        self._variances[s] = self._highest[s] * (0.5 + 0.5 * nodes(self._layers))
        block_ranks = slice(self._first[s], self._first[s] + self._blocks)
        free = slice(s * self._blocks, (s + 1) * self._blocks)
        for i, at in enumerate(self._abilities[s].tolist()):  # one after the other, to stay in a processor's cache
            spread = _spread(at * self._a[block_ranks] + self._d[block_ranks])
            for layer, own_variance in enumerate(self._variances[s].tolist()):
                ratings = self._selector.rating(spread, self._squared[block_ranks], own_variance)
                ratings = self._raised(ratings, self._power)
                ratings *= self._free[free]
                np.add.reduce(ratings, axis=1, out=self._values[s, layer * NODES + i])

    def _remove(self, items: Ints) -> None:
        """Take an item of each subject out of its sums."""
        blocks, offsets = np.divmod(items, BLOCK)
        self._free[self._rows * self._blocks + blocks, offsets] = 0.0
        self._counts[self._rows, blocks] -= 1.0
        if self._values is None:
            return
        block_rows = self._first + blocks
        slopes = self._a[block_rows, offsets][:, None]
        spread = _spread(self._abilities * slopes + self._d[block_rows, offsets][:, None])
        ratings = self._selector.rating(spread[:, None], (slopes * slopes)[:, None], self._variances[:, :, None])
        self._values[self._rows, :, blocks] -= self._raised(ratings, self._power).reshape(len(items), -1)

    def _at(self, rows: Ints, theta: Array, variance: Array) -> Array:
        """Return the interpolated sums of some subjects' blocks at the abilities, shape (s, blocks)."""
        basis = weights_at((theta[rows] - self._centre[rows]) / self._radius[rows], NODES)
        if self._layers > 1:
            across = weights_at(2.0 * variance[rows] / self._highest[rows] - 1.0, self._layers)
            basis = (across[:, :, None] * basis[:, None]).reshape(len(rows), -1)
        assert self._values is not None
        if len(rows) == len(self._values):
            values = self._values
        else:
            values = self._values[rows]
        return np.asarray((basis[:, None] @ values)[:, 0])

    def _in_single_precision(self, rows: Ints, theta: Array, variance: Array, power: float) -> tuple[Array, Array]:
        """Return some subjects' sums of blocks, (s, blocks), of ratings over the largest, and the largest, (s,)."""
        sums = np.empty((len(rows), self._blocks))
        top = np.empty(len(rows))
        a, d, squared = self._single
        free = self._free.reshape(len(theta), -1)
        step = max(1, CELLS // free.shape[1])
        for part in (slice(low, low + step) for low in range(0, len(rows), step)):
            part_rows = rows[part]
            of = self._of[part_rows]
            if len(set(of.tolist())) == 1:
                of = of[:1]
            spread = _spread(theta[part_rows, None].astype(np.float32) * a[of] + d[of])
            ratings = self._selector.rating(spread, squared[of], variance[part_rows, None].astype(np.float32))
            ratings *= free[part_rows]
            highest = ratings.max(axis=1, keepdims=True)
            top[part] = highest[:, 0]
            ratings /= np.maximum(highest, np.finfo(np.float32).tiny)
            if power != 1.0:
                with np.errstate(divide="ignore"):
                    logs = np.log(ratings, out=ratings)
                logs *= np.float32(power)
                np.exp(logs, out=ratings)
            sums[part] = ratings.reshape(len(ratings), -1, BLOCK).sum(axis=2)
        return sums, np.maximum(top, np.finfo(np.float32).tiny)

    def _by_blocks(
        self, sums: Array, error: Array | float, theta: Array, variance: Array, power: float, top: Array | None
    ) -> tuple[Ints, Bools]:
        """Return the items (S,) that the next random numbers draw, and whether the sums are precise enough."""
        rows = self._rows
        scale = (1.0 - self._floor) / np.maximum(np.add.reduce(sums, axis=1), 1e-300)
        even = self._floor / (self._size - self._drawn)
        cumulative = sums * scale[:, None]
        if even:
            cumulative += even * self._counts
        cumulative.cumsum(axis=1, out=cumulative)
        target = self._numbers[:, self._drawn] * cumulative[:, -1]
        block = (cumulative > target[:, None]).argmax(axis=1)
        target -= np.where(block, cumulative[rows, block - 1], 0.0)
        block_row = self._first + block
        z = theta[:, None] * self._a[block_row]
        z += self._d[block_row]
        ratings = self._selector.rating(_spread(z), self._squared[block_row], variance[:, None])
        if top is not None:
            ratings /= top[:, None]
        within = self._raised(ratings, power)
        within *= scale[:, None]
        if even:
            within += even
        within *= self._free[rows * self._blocks + block]
        within.cumsum(axis=1, out=within)
        first_beyond = (within > target[:, None]).argmax(axis=1)  # the first, if there is none
        margin = 4.0 * error + ROUNDING
        sure = within[rows, first_beyond] - target > margin
        sure &= target - np.where(first_beyond, within[rows, first_beyond - 1], 0.0) > margin
        return block * BLOCK + first_beyond, sure
