"""Select the next items and compute the probability of each draw.

A `Selector` rates every item; `propose` draws items by these ratings, the criteria. There are two modes. ``top`` takes
the items with the highest criterion; ``proportional`` draws without replacement with probabilities proportional to it.
Both are mixed with a uniform floor: the propensity q of an item not yet administered is ``1 - floor`` times its
probability in the mode, plus ``floor / remaining``. The item is drawn by q, so the logged q is exact, as a design-based
interval requires.

With claims to decide, the floor is not uniform. A bet that a claim holds loses p / q when an item of predicted score p
is answered wrong, and the largest of these losses limits every stake. Drawing in proportion to p makes these losses
small; for a bet on the opposite side, so does drawing in proportion to 1 - p. Except for a uniform `GATE_FLOOR`, the
floor therefore draws in proportion to ``L p + (1 - L)(1 - p)``, where L is the probability of the claim, see
`View.claim_probability`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from pytest_adaptive_eval.cat.stopping import StoppingRule
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.design import DESIGN, GATE_FLOOR, Proposal
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array, Ints

BLOCK = 128  #: Items per block of the two-level weighted draw; near the square root of a large bank's size.
BUFFERS = 5  #: Number of work buffers of a view and its draws.
NORMAL = 0.85  #: tanh(NORMAL z) approximates 2 Phi(z) - 1 to 0.01.
#: Selection modes: take the items with the highest ratings, or draw in proportion to the ratings.
MODES = ("top", "proportional")
CLEAR = 30.0  #: Distances from a claim are cut to this many standard deviations.
TINY = float(np.finfo(np.float64).tiny)  #: A sum of criteria of at most this counts as zero.


@dataclass(slots=True)
class View:
    """State of an interview as a selector sees it, for S subjects of a session, who are rated independently.

    Args:
        theta: Shape (S, D).
        covariance: Shape (S, D, D).
        predictions: Shape (S, n). Predicted scores; if None, the bank's predictions at `theta`, computed on first
            access.
        asked: Shape (S, t). Items already administered, in order.
        work: Shape (BUFFERS, S, n). Work buffers, overwritten at every step. Reusing them between steps avoids repeated
            allocation of large arrays.
        claim_probability: Shape (S, 1). Probability, in [0, 1], that the claims hold; if None, the floor is uniform.
        budget: Items that the interview administers at most.
    """

    bank: ItemBank
    theta: Array
    covariance: Array
    predictions: Array | None
    asked: Ints
    work: Array | None = None
    claim_probability: Array | None = None
    budget: int | None = None
    _spread: Array | None = field(default=None, init=False, repr=False)

    @property
    def probability(self) -> Array:
        """Predicted score of every item, shape (S, n)."""
        if self.predictions is None:
            self.predictions = self.bank.probability(self.theta, out=self.buffer(0))
        return self.predictions

    @property
    def spread(self) -> Array:
        """Variance p(1-p) of a score of 0 or 1 per item, guessing included, shape (S, n), read-only."""
        if self._spread is None:
            self._spread = irt.weight(self.probability, out=self.buffer(1))
        return self._spread

    def pop_spread(self) -> Array:
        """Return the array of `spread`, which the caller may overwrite: the next access makes a new one."""
        spread, self._spread = self.spread, None
        return spread

    def buffer(self, number: int) -> Array:
        """Return work buffer `number`, shape (S, n); 0 and 1 belong to the view, 2 to the selector."""
        if self.work is None:
            self.work = np.empty((BUFFERS, len(self.theta), len(self.bank)))
        buffer: Array = self.work[number]
        return buffer

    def set_claim_probability(self, claimed_sums: Sequence[float], scores: Array, variance: Array) -> None:
        """Set `claim_probability` from claims about the bank's sum of scores; the least certain one weighs most.

        The expected sum is assumed to be normal about the true sum. Only draws depend on this assumption, no interval
        does.

        Args:
            claimed_sums: Thresholds of the claims, as sums of scores.
            scores: Shape (S, t). Scores of the administered items, NaN if missing.
            variance: Shape (S,). Variance of the expected sum, in squared items.
        """
        scored = np.where(np.isnan(scores), 0.0, scores).sum(axis=1)
        told_items = self.asked[:, : scores.shape[1]]
        expected = scored + self.probability.sum(axis=1) - self.predicted(told_items).sum(axis=1)
        distance = (expected[:, None] - np.array(claimed_sums)) / np.sqrt(np.maximum(variance, TINY))[:, None]
        distance = np.clip(distance, -CLEAR, CLEAR)
        nearest = np.abs(distance).min(axis=1, keepdims=True)
        weight = np.exp(0.5 * (nearest**2 - distance**2))
        likely = 0.5 + 0.5 * np.tanh(NORMAL * distance)
        self.claim_probability = np.asarray(
            (weight * likely).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
        )

    def predicted(self, items: Ints) -> Array:
        """Return the predicted scores of each subject's `items`, shape (S, m), without computing the others."""
        if self.predictions is not None:
            subjects, n = self.predictions.shape
            return self.predictions.take(items + _starts(subjects * n, n)[:, None])
        bank = self.bank
        c = self.bank.asymptote
        A = bank.discrimination.take(items, axis=0)
        d = bank.intercept.take(items)
        return irt.probability(self.theta, A, d, None if c is None else c.take(items))


@runtime_checkable
class Selector(Protocol):
    """Rating of items for the next administration.

    One whose ratings depend on `View.budget` has ``uses_budget = True``. Interviews of several budgets then share no
    draws. A selector of mode ``top`` may also have a method ``highest(view, k)``. It returns the `k` items with the
    highest ratings and their predicted scores, both (S, k), without rating all items, or None if it cannot.
    """

    @property
    def name(self) -> str:
        """Short name, as written in settings."""

    @property
    def mode(self) -> Literal["top", "proportional"]:
        """Selection mode, see `propose`."""

    @property
    def needs_calibration(self) -> bool:
        """Whether the criterion requires a calibrated bank."""

    def criterion(self, view: View) -> Array:
        """Return writable ratings of at least 0, shape (S, n). Ratings of administered items are ignored.

        The array may be ``view.buffer(2)``.
        """


@runtime_checkable
class SelectorSession(Selector, Protocol):
    """Selector state of one session, which receives scores and gives reasons for its choices."""

    def record_scores(self, items: Ints, scores: Array) -> None:
        """Record the scores of the administered `items`, both of shape (S, k), NaN if missing."""

    def reason(self, subject: int, item: int) -> str:
        """Return the reason for a subject's latest item; empty if the selector did not choose it."""

    def account(self) -> Mapping[str, Any]:
        """Return models, calls, costs and fallbacks of the interview as JSON values for its record."""

    def close(self) -> None:
        """Release the session's resources."""


@runtime_checkable
class StatefulSelector(Selector, Protocol):
    """Settings of a selector with state, opened once per session for all its subjects."""

    def open(self, bank: ItemBank, seeds: Sequence[np.random.SeedSequence]) -> SelectorSession:
        """Start a session on a bank with one subject per seed; its `criterion` always receives all subjects."""

    def to_json(self) -> Mapping[str, Any]:
        """Return all settings, besides the name, that determine the items."""


class RandomNumbers(Protocol):
    """Source of random numbers, such as a `numpy.random.Generator`."""

    def random(self) -> float:
        """Return a number in [0, 1)."""


@runtime_checkable
class LevelSelector(StatefulSelector, Protocol):
    """Selector of a bank of levels with `queries` items each, with a stopping rule that depends on the answers."""

    queries: int

    def stopping_rule(self, count: int) -> StoppingRule:
        """Return the rule that ends an interview with at most `count` administrations."""


def _invert(cumulative: Array, x: Array) -> Ints:
    """Return the first index in each row (S, m) whose sum exceeds `x` (S,), at most the last of positive weight."""
    index: Ints = np.add.reduce(cumulative <= x[:, None], axis=1)
    beyond = index == cumulative.shape[1]
    if beyond.any():  # rounding can put x above the sum
        index = np.where(beyond, (cumulative < cumulative[:, -1:]).sum(axis=1), index)
    return index


@lru_cache(maxsize=8)
def _starts(n: int, each: int) -> Ints:
    """Return the start of every block of `each` items among `n`; cached, so read-only."""
    starts = np.arange(0, n, each, dtype=np.int64)
    starts.flags.writeable = False
    return starts


def _draw_one(weights: Array, u: float) -> int:
    """Draw the index that `_draw` draws from a row (n,); quicker, because most interviews have one subject."""
    sums = np.add.reduceat(weights, _starts(len(weights), BLOCK)).cumsum()
    x = u * float(sums[-1])
    block = _invert_one(sums, x)
    start = block * BLOCK
    if block:
        x -= float(sums[block - 1])
    return start + _invert_one(weights[start : start + BLOCK].cumsum(), x)


def _invert_one(cumulative: Array, x: float) -> int:
    """Return the index that `_invert` finds in one row (m,)."""
    index = int(cumulative.searchsorted(x, side="right"))
    if index < len(cumulative):
        return index
    return int(cumulative.searchsorted(cumulative[-1]))


def _draw(weights: Array, u: Sequence[float]) -> Ints | int:
    """Draw an index of each row (S, n) in proportion to its weights, not all 0, by two-level inversion of `u` (S,).

    Sums round differently on other processors, by about 1e-15. That moves a draw with about that chance, because `u`
    has 53 random bits, so no margin is kept.
    """
    subjects, n = weights.shape
    if subjects == 1:
        return _draw_one(weights[0], u[0])
    rows = np.arange(subjects)
    width = min(BLOCK, n)
    sums = np.add.reduceat(weights, _starts(n, BLOCK), axis=1).cumsum(axis=1)
    x = np.array(u) * sums[:, -1]
    block = _invert(sums, x)
    x -= np.where(block, sums[rows, block - 1], 0.0)
    start = block * BLOCK
    inside = start[:, None] + np.arange(width)
    part = weights.take(inside + (rows * n)[:, None], mode="clip")
    part[inside >= n] = 0.0
    return start + _invert(part.cumsum(axis=1), x)


def _propensities(criteria: Array, remaining: int, floor: float, top: bool, q: Array) -> Array:
    """Write each item's propensity at the next draw to `q`, shape (S, n); values of drawn items are undefined."""
    if top:
        q[:] = floor / remaining
        q[np.arange(len(q)), first_largest(criteria)] += 1.0 - floor
        return q
    total: Array = np.add.reduce(criteria, axis=1, keepdims=True)
    share: Array | float = floor
    if not total.min() > TINY:  # without positive ratings, all remaining items get equal propensities
        informed = total > TINY
        share = np.where(informed, floor, 1.0)
        total = np.where(informed, total, 1.0)
    np.multiply(criteria, (1.0 - share) / total, out=q)
    q += share / remaining
    return q


def _criteria(selector: Selector, view: View, administered: Ints) -> Array:
    """Return a selector's validated ratings, shape (S, n), with 0 for the items `administered`."""
    ratings = np.require(selector.criterion(view), np.float64, "W")
    expected = (len(view.asked), len(view.bank))
    if ratings.shape != expected:
        raise ConfigError(
            f"selector {selector.name!r}: its criterion has shape {ratings.shape}, expected (subjects, items), which "
            f"is {expected} here"
        )
    ratings.put(administered, 0.0)
    if not (ratings.min() >= 0.0 and ratings.max() < np.inf):
        raise ConfigError(f"selector {selector.name!r}: its criterion must be finite and at least 0 for every item")
    return ratings


def chances(selector: Selector, view: View, floor: float) -> Array:
    """Return each item's propensity at the first draw, shape (S, n)."""
    criteria = _criteria(selector, view, np.empty(0, dtype=np.int64))
    return _propensities(criteria, criteria.shape[1], floor, selector.mode == "top", np.empty(criteria.shape))


def _inverse(q: Array, floor: float) -> Array:
    """Return the inverse propensities, in place."""
    if floor > 0:
        return np.divide(1.0, q, out=q)
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(1.0, q, out=q)


def _over(weights: Array, inverse: Array, floor: float, out: Array) -> Array:
    """Return weights times inverse propensities, 0 for drawn items; written to `out` if `floor` is positive.

    Without a floor, the result is infinite for an item of positive weight and zero propensity.
    """
    if floor > 0:
        return np.multiply(weights, inverse, out=out)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(weights > 0, weights * inverse, 0.0)


def _mix_claim_draws(criteria: Array, view: View, probability: Array, administered: Ints, floor: float) -> Array:
    """Mix the floor above `GATE_FLOOR` into the criteria in place, as the module describes; shape (S, n)."""
    guard = np.multiply(view.probability, 2.0 * probability - 1.0, out=view.buffer(4))
    guard += 1.0 - probability
    guard.put(administered, 0.0)
    share = (floor - GATE_FLOOR) / (1.0 - GATE_FLOOR)
    for weights, part in ((criteria, 1.0 - share), (guard, share)):
        total = np.add.reduce(weights, axis=1, keepdims=True)
        weights *= part / np.maximum(total, TINY)
    criteria += guard
    return criteria


def take_highest(ratings: Array, k: int) -> tuple[Ints, Array]:
    """Return flat indices and values of the `k` highest ratings per row, shape (S, k), descending; set them to -1.

    Of nearly equal ratings, the first in the row comes first.
    """
    subjects, n = ratings.shape
    indices = np.empty((subjects, k), dtype=np.int64)
    values = np.empty((subjects, k))
    start = _starts(subjects * n, n)
    for j in range(k):
        highest = first_largest(ratings) + start
        indices[:, j], values[:, j] = highest, ratings.take(highest)
        ratings.put(highest, -1.0)
    return indices, values


def _highest(selector: Selector, view: View, k: int) -> tuple[Ints, Array]:
    """Return the `k` remaining items with the highest criterion and their predicted scores, both of shape (S, k)."""
    shortcut = getattr(selector, "highest", None)
    highest: tuple[Ints, Array] | None = None if shortcut is None else shortcut(view, k)
    if highest is not None:
        return highest
    subjects = len(view.asked)
    n = len(view.bank)
    start = _starts(subjects * n, n)
    administered = view.asked + start[:, None]
    criteria = _criteria(selector, view, administered)
    criteria.put(administered, -1.0)
    items = take_highest(criteria, k)[0] - start[:, None]
    return items, view.predicted(items)


def propose(
    selector: Selector, view: View, k: int, floor: float, rngs: Sequence[RandomNumbers], *, designed: bool = True
) -> Proposal:
    """Draw the next `k` items for every subject.

    Args:
        k: Items to draw per subject, at most the number of remaining items.
        floor: Share of uniform draws, in [0, 1].
        rngs: A subject's draws depend on its own generator alone; a draw takes one uniform number from it.
        designed: Whether to compute the design, which takes a third of the time; it is NaN otherwise.

    Raises:
        ConfigError: The selector's criterion is of another shape, negative or not finite.
    """
    (subjects, t), n = view.asked.shape, len(view.bank)
    top = selector.mode == "top"
    design = np.empty((len(DESIGN), subjects, k))
    if top and floor == 0:
        design.fill(np.nan)
        items, design[1] = _highest(selector, view, k)
        return Proposal(items, design)
    drawn = -1.0 if top else 0.0
    # flat indices into the (S, n) arrays, because numpy reads and writes them faster than index pairs
    start = _starts(subjects * n, n)[:, None]
    administered = np.empty((subjects, t + k), dtype=np.int64)
    np.add(view.asked, start, out=administered[:, :t])
    criteria = _criteria(selector, view, administered[:, :t])
    if top:
        criteria.put(administered[:, :t], drawn)
    if view.claim_probability is not None and not top and floor > GATE_FLOOR:
        criteria = _mix_claim_draws(criteria, view, view.claim_probability, administered[:, :t], floor)
        floor = GATE_FLOOR
    q = view.buffer(3)
    log = None
    if designed:
        log = _Design(view, administered[:, :t], floor)
    for j in range(k):
        drawn_before = administered[:, : t + j]
        chosen = administered[:, t + j]
        _propensities(criteria, n - t - j, floor, top, q)
        q.put(drawn_before, 0.0)
        chosen[:] = _draw(q, [rng.random() for rng in rngs])
        if subjects > 1:
            chosen += start[:, 0]
        if log is not None:
            design[:, :, j] = log.row(q, drawn_before, chosen)
        if j + 1 < k:
            criteria.put(chosen, drawn)
            if log is not None:
                log.remove(chosen)
    if log is None:
        design.fill(np.nan)
    return Proposal(administered[:, t:] - start, design)


class _Design:
    """Quantities of `DESIGN` for the draws of one batch of all subjects of a view.

    Args:
        view: Its spread and last work buffer are used up.
        administered: Shape (S, t). Items before the batch, as flat indices into arrays (S, n).
    """

    def __init__(self, view: View, administered: Ints, floor: float) -> None:
        self.p = view.probability
        self.spread = view.pop_spread()
        self.scratch = view.buffer(4)
        self.floor = floor
        self.spread.put(administered, 0.0)
        self.rest = np.add.reduce(self.p, axis=1) - np.add.reduce(self.p.take(administered), axis=1)
        self.bounds: tuple[Array, Array] | None = None

    def row(self, q: Array, drawn_before: Ints, chosen: Ints) -> tuple[Array, ...]:
        """Return the quantities, each (S,), of the draws of `chosen` with propensities `q`; `q` is lost."""
        p, floor = self.p, self.floor
        propensity = q.take(chosen)
        prediction = p.take(chosen)
        q.put(drawn_before, np.inf)
        inverse = _inverse(q, floor)  # computed once, because division is slower than multiplication
        if self.bounds is None:  # propensities of remaining items only grow, so these hold for the later draws
            lower = _over(p, inverse, floor, self.scratch)
            down = np.maximum.reduce(lower, axis=1)
            if floor > 0:
                up = np.subtract(inverse, lower, out=self.scratch)
            else:
                up = _over(1.0 - p, inverse, floor, lower)
            self.bounds = down, np.maximum.reduce(up, axis=1)
        variance = np.add.reduce(_over(self.spread, inverse, floor, self.scratch), axis=1)
        return propensity, prediction, self.rest, variance, *self.bounds

    def remove(self, chosen: Ints) -> None:
        """Take the items just drawn out of the sums over the remaining ones."""
        self.rest = self.rest - self.p.take(chosen)
        self.spread.put(chosen, 0.0)
