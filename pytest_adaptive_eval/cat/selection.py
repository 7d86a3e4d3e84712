"""Which items to ask next, and with what probability each could have been asked.

A `Selector` gives every item a criterion; `propose` turns criteria into items.
Two modes exist.  ``top`` asks the items of highest criterion; ``proportional``
draws without replacement with probabilities proportional to it.  Both are mixed
with a uniform floor: the chance q of an item not yet asked is ``1 - floor`` times
that of its mode plus ``floor / remaining``, and the item is drawn from q itself,
so that the logged q is the chance of the draw: what a design-based interval needs.

Where claims are to be decided, the floor leans.  A bet that the claim holds loses
p / q when an item of prediction p is answered wrong, and the largest of these
losses limits every stake.  Drawing in proportion to p, rather than evenly, makes
them small; in proportion to 1 - p for a bet on the other side.  So the floor's
draws, but for a uniform `GATE_FLOOR`, go by ``L p + (1 - L)(1 - p)``, where L is
how likely the claim seems, see `View.lean`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.stopping import StoppingRule
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.design import DESIGN, GATE_FLOOR, Proposal
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = [
    "MODES",
    "ROOMS",
    "Attentive",
    "LevelSelector",
    "Openable",
    "Selector",
    "View",
    "chances",
    "propose",
    "take_highest",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Items a block of the two-level weighted draw; near the square root of a large bank.
BLOCK = 128
#: Arrays that a view and its draws are computed in.
ROOMS = 5
#: tanh(NORMAL z) is 2 Phi(z) - 1, to a hundredth.
NORMAL = 0.85
#: What a selector does with its ratings: ask the best, or draw in proportion.
MODES = ("top", "proportional")
#: Beyond so many standard deviations one claim is as clear as another.
CLEAR = 30.0
#: Criteria whose sum is no more than this tell nothing.
TINY = float(np.finfo(np.float64).tiny)


@dataclass(slots=True)
class View:
    """What a selector may look at, for S subjects: all of a session or some, which are rated each by itself.

    Parameters
    ----------
    bank : ItemBank
    theta : array, shape (S, D)
    covariance : array, shape (S, D, D)
    predictions : array, shape (S, n), optional
        Predicted scores; without them, the bank's own at `theta`, computed when they are looked at.
    asked : array of int, shape (S, t)
        Items already administered, in order.
    work : array, shape (ROOMS, S, n), optional
        To compute in; what is there is lost, and what is found there is lost at
        the next step.  Kept from step to step it spares arrays that the system
        takes back each time, and gives anew page by page.
    lean : array, shape (S, 1), optional
        How likely, in [0, 1], what is to be decided seems to hold; where nothing is, the floor is uniform.
    """

    bank: ItemBank
    theta: Array
    covariance: Array
    predictions: Array | None
    asked: Ints
    work: Array | None = None
    lean: Array | None = None
    _spread: Array | None = field(default=None, init=False, repr=False)

    @property
    def probability(self) -> Array:
        """Predicted score of every item, shape (S, n)."""
        if self.predictions is None:
            self.predictions = self.bank.probability(self.theta, out=self.room(0))
        return self.predictions

    @property
    def spread(self) -> Array:
        """Variance p(1-p) of a right or wrong answer to every item, whatever the guess, shape (S, n), to read."""
        if self._spread is None:
            self._spread = irt.weight(self.probability, out=self.room(1))
        return self._spread

    def hand_over(self) -> Array:
        """The spread, for the caller to change; it is computed anew where it is looked at again."""
        spread, self._spread = self.spread, None
        return spread

    def room(self, number: int) -> Array:
        """One of the arrays (S, n) to work in: the first two are the view's own, number 2 is the selector's."""
        if self.work is None:
            self.work = np.empty((ROOMS, len(self.theta), len(self.bank)))
        room: Array = self.work[number]
        return room

    def lean_to(self, sought: Sequence[float], scores: Array, variance: Array) -> None:
        """Set `lean` by how likely claims about the bank's sum of scores seem, those in doubt counting most.

        The sum that is expected is taken for normal about the truth, which is
        enough to draw by, and nothing is said by it.

        Parameters
        ----------
        sought : sequence of float, length m
            Sums of scores that the claims turn on.
        scores : array, shape (S, t)
            Of the items asked, NaN where there is none.
        variance : array, shape (S,)
            Of the expected sum, in squared items.
        """
        heard = np.where(np.isnan(scores), 0.0, scores).sum(axis=1)
        expected = heard + self.probability.sum(axis=1) - self.predicted(self.asked).sum(axis=1)
        away = (expected[:, None] - np.array(sought)) / np.sqrt(np.maximum(variance, TINY))[:, None]
        away = np.clip(away, -CLEAR, CLEAR)
        nearest = np.abs(away).min(axis=1, keepdims=True)
        weight = np.exp(0.5 * (nearest**2 - away**2))
        likely = 0.5 + 0.5 * np.tanh(NORMAL * away)
        self.lean = np.asarray((weight * likely).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True))

    def predicted(self, items: Ints) -> Array:
        """Predicted scores of some items (S, m), each subject's own, and no more than these computed."""
        if self.predictions is not None:
            return np.take_along_axis(self.predictions, items, axis=1)
        bank, c = self.bank, self.bank.asymptote
        A, d = bank.discrimination.take(items, axis=0), bank.intercept.take(items)
        return irt.probability(self.theta, A, d, None if c is None else c.take(items))


@runtime_checkable
class Selector(Protocol):
    """Something that rates items for the next question.

    One of mode ``top`` may have a method ``highest(view, k)`` besides, which finds
    the same best `k` items and their predicted scores, both (S, k), without all
    ratings, or gives None where it cannot.
    """

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
        """An array (S, n) of numbers of at least 0, for the caller to change; asked items are ignored.

        It may lie in ``view.room(2)``.
        """


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


@runtime_checkable
class LevelSelector(Openable, Protocol):
    """An `Openable` that asks a bank of levels, `queries` items each, and ends by what it was answered."""

    queries: int

    def stopping_rule(self, count: int) -> StoppingRule:
        """Return the rule that ends an interview with at most `count` administrations."""


def _invert(cumulative: Array, x: float) -> int:
    """First index whose cumulative sum exceeds `x`, and at most the last one that adds to the sum."""
    found = int(cumulative.searchsorted(x, side="right"))
    if found == len(cumulative):  # x may exceed the sum by a rounding
        found = int(cumulative.searchsorted(cumulative[-1]))
    return found


@lru_cache(maxsize=8)
def _starts(n: int, each: int) -> Ints:
    """Where parts of `each` of `n` items begin; kept, and so to be read only."""
    starts = np.arange(0, n, each, dtype=np.int64)
    starts.flags.writeable = False
    return starts


def _draw(weights: Array, u: float) -> int:
    """Index drawn in proportion to `weights`, not all 0, by inversion of `u` in [0, 1), in two levels."""
    sums = np.add.reduceat(weights, _starts(len(weights), BLOCK)).cumsum()
    x = u * float(sums[-1])
    block = _invert(sums, x)
    start = block * BLOCK
    if block:
        x -= float(sums[block - 1])
    return start + _invert(weights[start : start + BLOCK].cumsum(), x)


def _chances(criteria: Array, left: int, floor: float, top: bool, q: Array) -> Array:
    """Chance (S, n) of each item at the next draw, in `q`; that of items already drawn is of no meaning."""
    if top:
        q[:] = floor / left
        q[np.arange(len(q)), criteria.argmax(axis=1)] += 1.0 - floor
        return q
    total: Array = np.add.reduce(criteria, axis=1, keepdims=True)
    share: Array | float = floor
    if not total.min() > TINY:  # then every item left has the same chance
        informed = total > TINY
        share, total = np.where(informed, floor, 1.0), np.where(informed, total, 1.0)
    np.multiply(criteria, (1.0 - share) / total, out=q)
    q += share / left
    return q


def _criteria(selector: Selector, view: View, gone: Ints) -> Array:
    """The ratings of a selector, which may be a plugin's, with those of items already drawn as 0.

    Raises
    ------
    ConfigError
        They are no such array: a negative rating would make draws that no
        verdict may rest on.
    """
    found = np.require(selector.criterion(view), np.float64, "W")
    expected = (len(view.asked), len(view.bank))
    if found.shape != expected:
        raise ConfigError(
            f"selector {selector.name!r}: its criterion has shape {found.shape}, expected (subjects, items), which "
            f"is {expected} here"
        )
    found.put(gone, 0.0)
    if not (found.min() >= 0.0 and found.max() < np.inf):
        raise ConfigError(f"selector {selector.name!r}: its criterion must be finite and at least 0 for every item")
    return found


def chances(selector: Selector, view: View, floor: float) -> Array:
    """Chance of each item at the first draw, shape (S, n)."""
    criteria = _criteria(selector, view, np.empty(0, dtype=np.int64))
    return _chances(criteria, criteria.shape[1], floor, selector.mode == "top", np.empty(criteria.shape))


def _inverse(q: Array, floor: float) -> Array:
    """One over the chances, in their place."""
    if floor > 0:
        return np.divide(1.0, q, out=q)
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(1.0, q, out=q)


def _over(weights: Array, inverse: Array, floor: float, out: Array) -> Array:
    """Weighted inverse chances, those of items drawn being 0, in `out` where every item has a chance.

    Infinite where an item without a chance, which no floor leaves, could tell something.
    """
    if floor > 0:
        return np.multiply(weights, inverse, out=out)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(weights > 0, weights * inverse, 0.0)


def _leaning(criteria: Array, view: View, lean: Array, gone: Ints, floor: float) -> Array:
    """Criteria, in their place, with all of the floor but `GATE_FLOOR` in them, see the module; both (S, n)."""
    guard = np.multiply(view.probability, 2.0 * lean - 1.0, out=view.room(4))
    guard += 1.0 - lean
    guard.put(gone, 0.0)
    share = (floor - GATE_FLOOR) / (1.0 - GATE_FLOOR)
    for weights, part in ((criteria, 1.0 - share), (guard, share)):
        total = np.add.reduce(weights, axis=1, keepdims=True)
        weights *= part / np.maximum(total, TINY)
    criteria += guard
    return criteria


def take_highest(ratings: Array, k: int) -> tuple[Ints, Array]:
    """Places in the flat array, and values, of the `k` highest of each row in falling order; they become -1 there."""
    subjects, n = ratings.shape
    places, values, start = np.empty((subjects, k), dtype=np.int64), np.empty((subjects, k)), _starts(subjects * n, n)
    for j in range(k):
        place = ratings.argmax(axis=1) + start
        places[:, j], values[:, j] = place, ratings.take(place)
        ratings.put(place, -1.0)
    return places, values


def _highest(selector: Selector, view: View, k: int) -> tuple[Ints, Array]:
    """The `k` items left of highest criterion, and their predicted scores, both of shape (S, k)."""
    shortcut = getattr(selector, "highest", None)
    found: tuple[Ints, Array] | None = None if shortcut is None else shortcut(view, k)
    if found is not None:
        return found
    subjects, n = len(view.asked), len(view.bank)
    start = _starts(subjects * n, n)
    gone = view.asked + start[:, None]
    criteria = _criteria(selector, view, gone)
    criteria.put(gone, -1.0)
    items = take_highest(criteria, k)[0] - start[:, None]
    return items, view.predicted(items)


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
    ConfigError
        The selector's criterion is of another shape, negative or not finite.
    ValueError
        `k` is not in 1 ... the number of items left.
    """
    (subjects, t), n = view.asked.shape, len(view.bank)
    if not 1 <= k <= n - t:
        raise ValueError(f"{k} items were wanted of the {n - t} that are left")
    top = selector.mode == "top"
    design = np.empty((len(DESIGN), subjects, k))
    if top and floor == 0:
        design.fill(np.nan)
        items, design[1] = _highest(selector, view, k)
        return Proposal(items, design)
    drawn = -1.0 if top else 0.0
    # items as places in the flat (S, n) arrays, which numpy reads and writes faster than pairs of row and column
    start = _starts(subjects * n, n)[:, None]
    gone = np.empty((subjects, t + k), dtype=np.int64)
    np.add(view.asked, start, out=gone[:, :t])
    criteria = _criteria(selector, view, gone[:, :t])
    if top:
        criteria.put(gone[:, :t], drawn)
    if view.lean is not None and not top and floor > GATE_FLOOR:
        criteria, floor = _leaning(criteria, view, view.lean, gone[:, :t], floor), GATE_FLOOR
    p, spread, q, scratch = view.probability, view.hand_over(), view.room(3), view.room(4)
    spread.put(gone[:, :t], 0.0)
    sum_left = np.add.reduce(p, axis=1) - np.add.reduce(p.take(gone[:, :t]), axis=1)
    for j in range(k):
        met, chosen = gone[:, : t + j], gone[:, t + j]
        _chances(criteria, n - t - j, floor, top, q)
        q.put(met, 0.0)
        for s in range(subjects):
            chosen[s] = s * n + _draw(q[s], rngs[s].random())
        propensity, prediction = q.take(chosen), p.take(chosen)
        q.put(met, np.inf)
        inverse = _inverse(q, floor)  # once: it takes longer than the products with it
        if j == 0:  # the chance of an item left only grows as others are drawn: this bounds the later draws as well
            lower = _over(p, inverse, floor, scratch)
            down = np.maximum.reduce(lower, axis=1)
            higher = np.subtract(inverse, lower, out=scratch) if floor > 0 else _over(1.0 - p, inverse, floor, scratch)
            up = np.maximum.reduce(higher, axis=1)
        variance = np.add.reduce(_over(spread, inverse, floor, scratch), axis=1)
        design[:, :, j] = propensity, prediction, sum_left, variance, down, up
        if j + 1 < k:
            sum_left -= prediction
            spread.put(chosen, 0.0)
            criteria.put(chosen, drawn)
    return Proposal(gone[:, t:] - start, design)
