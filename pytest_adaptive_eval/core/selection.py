"""Which items to ask next, and with what probability each could have been asked.

A `Selector` gives every item a criterion; `propose` turns criteria into items.
Two modes exist.  ``top`` asks the items of highest criterion; ``proportional``
draws without replacement with probabilities proportional to it.  Both are mixed
with a uniform floor: the chance q of an item not yet asked is ``1 - floor`` times
that of its mode plus ``floor / remaining``, and the item is drawn from q itself,
so that the logged q is the chance of the draw: what a design-based interval needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.core import irt
from pytest_adaptive_eval.core.bank import ItemBank

__all__ = ["Attentive", "Openable", "Proposal", "Selector", "View", "chances", "propose"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Items a block of the two-level weighted draw; near the square root of a large bank.
BLOCK = 128
#: Criteria whose sum is no more than this tell nothing.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class View:
    """What a selector may look at, for S subjects: all of a session or some, which are rated each by itself.

    Parameters
    ----------
    bank : ItemBank
    theta : array, shape (S, D)
    covariance : array, shape (S, D, D)
    probability : array, shape (S, n)
        Of a right answer at `theta`.
    asked : array of int, shape (S, t)
        Items already administered, in order.
    """

    bank: ItemBank
    theta: Array
    covariance: Array
    probability: Array
    asked: Ints


@runtime_checkable
class Selector(Protocol):
    """Something that rates items for the next question."""

    @property
    def name(self) -> str:
        """Short name, as written in settings."""

    @property
    def mode(self) -> Literal["top", "proportional"]:
        """Ask the best, or draw in proportion."""

    @property
    def needs_calibration(self) -> bool:
        """Whether the criterion means nothing on an uncalibrated bank."""

    def criterion(self, view: View) -> Array:
        """A fresh array (S, n) of numbers of at least 0; asked items are ignored."""


@runtime_checkable
class Attentive(Selector, Protocol):
    """A selector in the course of one session: it hears the answers and says why it chose what it chose."""

    def told(self, items: Ints, scores: Array) -> None:
        """Hear the scores (S, k), NaN where there is none, of the items (S, k) that were asked."""

    def reason(self, subject: int, item: int) -> str:
        """Why the item is the latest choice for a subject; empty when it is not the selector's own choice."""

    def account(self) -> Mapping[str, Any]:
        """What became of the interview, in JSON values, for its record: models, calls, costs, fallbacks."""

    def close(self) -> None:
        """Give back what was loaded for the session."""


@runtime_checkable
class Openable(Selector, Protocol):
    """The settings of a selector that remembers: opened once a session, for all its subjects."""

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> Attentive:
        """Make ready for a bank and as many subjects as there are seeds; its `criterion` always sees them all."""

    def to_json(self) -> Mapping[str, Any]:
        """Everything besides the name that decides which items are asked."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The next k items of S subjects, with what a design-based estimate needs.

    Parameters
    ----------
    items : array of int, shape (S, k)
    propensities : array, shape (S, k)
        Chance of the item at its own draw, given all draws before; NaN, as
        `rest` and `variance`, where the selector is deterministic.
    predictions : array, shape (S, k)
        Predicted score of the item, fixed before the batch was drawn.
    rest : array, shape (S, k)
        Sum of the predictions over the items not yet drawn, this one included.
    variance : array, shape (S, k)
        Model-based variance of that draw's weighted residual (score -
        prediction) / propensity, in squared items: the sum of p(1-p)/q over
        the items not yet drawn.  Serves to weight draws and is never trusted.
    down, up : array, shape (S, k)
        Largest prediction / propensity, and (1 - prediction) / propensity, of
        an item not yet drawn before the batch, in items: no draw can lower or
        raise the estimate of the total by more, which is what bets must survive.
    """

    items: Ints
    propensities: Array
    predictions: Array
    rest: Array
    variance: Array
    down: Array
    up: Array

    @classmethod
    def join(cls, parts: Sequence[Proposal]) -> Proposal:
        """One proposal for the subjects of several, in order."""
        return cls(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(cls)))


def _invert(cumulative: Array, x: float) -> int:
    """First index whose cumulative sum exceeds `x`, and at most the last one that adds to the sum."""
    found = int(cumulative.searchsorted(x, side="right"))
    if found == len(cumulative):  # x may exceed the sum by a rounding
        found = int(cumulative.searchsorted(cumulative[-1]))
    return found


def _draw(weights: Array, u: float) -> int:
    """Index drawn in proportion to `weights`, not all 0, by inversion of `u` in [0, 1), in two levels."""
    sums = np.add.reduceat(weights, np.arange(0, len(weights), BLOCK)).cumsum()
    x = u * float(sums[-1])
    block = _invert(sums, x)
    start = block * BLOCK
    if block:
        x -= float(sums[block - 1])
    return start + _invert(weights[start : start + BLOCK].cumsum(), x)


def _chances(criteria: Array, left: int, floor: float, top: bool) -> Array:
    """Chance (S, n) of each item at the next draw; that of items already drawn is of no meaning."""
    q: Array
    if top:
        q = np.full(criteria.shape, floor / left)
        q[np.arange(len(q)), criteria.argmax(axis=1)] += 1.0 - floor
        return q
    total: Array = np.add.reduce(criteria, axis=1, keepdims=True)
    share: Array | float = floor
    if not total.min() > TINY:  # then every item left has the same chance
        informed = total > TINY
        share, total = np.where(informed, floor, 1.0), np.where(informed, total, 1.0)
    q = criteria * ((1.0 - share) / total)
    q += share / left
    return q


def chances(selector: Selector, view: View, floor: float) -> Array:
    """Chance of each item at the first draw, shape (S, n)."""
    criteria = selector.criterion(view)
    return _chances(criteria, criteria.shape[1], floor, selector.mode == "top")


def _over(weights: Array, inverse: Array, floor: float, out: Array) -> Array:
    """Weighted inverse chances, those of items drawn being 0; `out` may be overwritten, and may be `weights`.

    Infinite where an item without a chance, which no floor leaves, could tell something.
    """
    if floor > 0:
        return np.multiply(weights, inverse, out=out)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(weights > 0, weights * inverse, 0.0)


def propose(selector: Selector, view: View, k: int, floor: float, rngs: Sequence[np.random.Generator]) -> Proposal:
    """Draw the next `k` items for every subject.

    Parameters
    ----------
    selector : Selector
    view : View
    k : int
        At most the number of items left.
    floor : float
        Probability, in [0, 1], of drawing uniformly instead.
    rngs : sequence of Generator, one a subject
        A subject's draws depend on its own generator alone; a draw takes one
        uniform number from it.

    Returns
    -------
    Proposal

    Raises
    ------
    ValueError
        `k` is not in 1 ... the number of items left.
    """
    criteria, p = selector.criterion(view), view.probability
    subjects, n = criteria.shape
    t = view.asked.shape[1]
    if not 1 <= k <= n - t:
        raise ValueError(f"{k} items were wanted of the {n - t} that are left")
    top = selector.mode == "top"
    randomised = floor > 0 or not top
    drawn = -1.0 if top else 0.0
    # items as places in the flat (S, n) arrays, which numpy reads and writes faster than pairs of row and column
    start = np.arange(0, subjects * n, n, dtype=np.int64)
    gone = np.empty((subjects, t + k), dtype=np.int64)
    np.add(view.asked, start[:, None], out=gone[:, :t])
    criteria.put(gone[:, :t], drawn)
    propensities = rest = variance = down = up = np.full((subjects, k), np.nan)
    if randomised:
        propensities, rest, variance, down, up = np.empty((5, subjects, k))
        spread = irt.weight(p)  # of the score, whatever the guess
        spread.put(gone[:, :t], 0.0)
        sum_left = p.sum(axis=1) - p.take(gone[:, :t]).sum(axis=1)
        inverse, scratch = np.empty((2, *p.shape))
    for j in range(k):
        chosen = gone[:, t + j]
        if randomised:
            q = _chances(criteria, n - t - j, floor, top)
            with np.errstate(divide="ignore", over="ignore"):
                np.divide(1.0, q, out=inverse)  # once: it takes longer than the products with it
            inverse.put(gone[:, : t + j], 0.0)
            if j == 0:  # the chance of an item left only grows as others are drawn: this bounds the later draws as well
                down[:] = _over(p, inverse, floor, scratch).max(axis=1, keepdims=True)
                up[:] = _over(np.subtract(1.0, p, out=scratch), inverse, floor, scratch).max(axis=1, keepdims=True)
            variance[:, j] = _over(spread, inverse, floor, scratch).sum(axis=1)
            q.put(gone[:, : t + j], 0.0)
            for s in range(subjects):
                chosen[s] = s * n + _draw(q[s], rngs[s].random())
            propensities[:, j], rest[:, j] = q.take(chosen), sum_left
            sum_left -= p.take(chosen)
            spread.put(chosen, 0.0)
        else:
            np.add(start, criteria.argmax(axis=1), out=chosen)
        criteria.put(chosen, drawn)
    new = gone[:, t:]
    return Proposal(new - start[:, None], propensities, p.take(new), rest, variance, down, up)
