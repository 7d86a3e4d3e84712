"""The built-in selectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import Selector, View, take_highest
from pytest_adaptive_eval.inference.clusters import clusters
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ties import TIE, tie_ranks
from pytest_adaptive_eval.types import Array, Ints

CLUSTERS = 200  #: Largest number of clusters: k-means of more is slow, and many would have one member.
SAMPLE = 10_000  #: Most items for k-means; of a larger bank, the first items come from a random sample of this size.
ABILITIES = 32  #: Abilities, drawn from the prior, at which predicted scores are compared.
SEED = 0  #: Seed of the sample, the abilities and k-means.


@lru_cache(maxsize=8)
def cluster_order(bank: ItemBank, count: int) -> Ints:
    """Return all items, the middles of `count` clusters first and large clusters before small ones, shape (n,).

    Args:
        bank: Calibrated.
        count: At least 1. With more than `CLUSTERS`, second items of clusters follow the first ones.
    """
    n = len(bank)
    sample = np.arange(n)
    if n > SAMPLE:
        sample = np.sort(np.random.default_rng(SEED).choice(n, SAMPLE, replace=False))
    points = _coordinates(bank, sample)
    label = clusters(points, min(count, CLUSTERS), SEED).label
    sizes = np.bincount(label)
    centres = np.stack([np.bincount(label, column) / sizes for column in points.T], axis=1)
    distance = ((points - centres[label]) ** 2).sum(axis=1)
    distance = tie_ranks(distance, float(np.square(points).sum(axis=1).max()))
    order = np.lexsort((distance, label))
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(sample), dtype=np.int64)  # number of nearer members of the cluster
    rank[order] = np.arange(len(sample)) - starts[label[order]]
    first = sample[np.lexsort((distance, -sizes[label], rank))]
    positions: Ints = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
    positions.flags.writeable = False
    return positions


def _coordinates(bank: ItemBank, items: Ints) -> Array:
    """Return coordinates whose squared distance is that of two items' scores, on average over subjects, without noise.

    They are the predicted scores at abilities of the prior, and the residuals of the calibration subjects where the
    bank's predictor has them.
    """
    theta = np.random.default_rng(SEED).standard_normal((ABILITIES, bank.dimensions))
    c = None if bank.asymptote is None else bank.asymptote[items]
    points = irt.probability(theta, bank.discrimination[items], bank.intercept[items], c).T / math.sqrt(ABILITIES)
    if bank.predictor is None:
        return np.ascontiguousarray(points)
    return np.concatenate([points, bank.predictor.residuals[:, items].T], axis=1)


Floats = NDArray[np.floating[Any]]

STEEPEST = 128  #: Additional items rated in the first pass of `MaximumInformation.highest`.
WORTHWHILE = 8  #: Rate a subset of the items only if the bank has at least this many times more.


@dataclass(frozen=True, slots=True)
class Random:
    """Uniform random selection."""

    name: str = "random"
    mode: Literal["top", "proportional"] = "proportional"
    needs_calibration: bool = False
    by_variance: ClassVar[bool] = False

    def criterion(self, view: View) -> Array:
        """Return ones, shape (S, n)."""
        return np.ones((len(view.theta), len(view.bank)))

    def rating(self, spread: Floats, squared: Floats, variance: Floats | float) -> Floats:  # noqa: ARG002
        """Return ones, see `block_draws.SmoothSelector`."""
        return np.ones_like(spread)

    def power(self, asked: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


@dataclass(frozen=True, slots=True)
class MaximumInformation:
    """Selection of the item with maximum information at the current ability (Lord 1980; D-optimal if D > 1)."""

    name: str = "maximum-information"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = True

    def criterion(self, view: View) -> Array:
        """Return `irt.information` at theta, shape (S, n)."""
        A = view.bank.discrimination
        c = view.bank.asymptote
        squared = view.bank.squared_slope
        return irt.information(view.probability, A, c, view.covariance, squared, view.buffer(2))

    def highest(self, view: View, k: int) -> tuple[Ints, Array] | None:
        """Return the `k` remaining items with the highest criterion and their predicted scores, both (S, k).

        Item information is at most a^2 / 4 at any ability and guessing parameter. The most discriminating items are
        rated first, others only if this limit is at least the k-th best rating. Return None if rating all items is as
        fast.
        """
        bank = view.bank
        t = view.asked.shape[1]
        if view.predictions is not None or bank.dimensions > 1:
            return None
        count = t + k + STEEPEST
        while WORTHWHILE * count <= len(bank):
            items = np.sort(bank.steepest.order[:count])  # in the bank's order, in which the first of equal ones wins
            A = bank.discrimination[items]
            c = None if bank.asymptote is None else bank.asymptote[items]
            p = irt.probability(view.theta, A, bank.intercept[items], c)
            rated = irt.information(p, A, c, squared=bank.squared_slope[items])
            for row, asked in zip(rated, view.asked, strict=True):
                row[np.isin(items, asked)] = -1.0
            best, most = take_highest(rated, k)
            needed = len(bank) - int(bank.steepest.ceiling.searchsorted((1.0 - TIE) * most[:, -1].min()))
            if needed <= count:
                return items.take(best % count), p.take(best)
            count = needed
        return None


@dataclass(frozen=True, slots=True)
class Information(MaximumInformation):
    """Draws in proportion to item information at the current ability."""

    name: str = "information"
    mode: Literal["top", "proportional"] = "proportional"


@dataclass(frozen=True, slots=True)
class Leverage:
    """Draws in proportion to `ItemBank.leverage`, whatever the answers.

    No answer to an item of small leverage moves an ability component far, so bets on the score equations may stake more
    if the other items are drawn more often, see `claims.score_equations`.
    """

    name: str = "leverage"
    mode: Literal["top", "proportional"] = "proportional"
    needs_calibration: bool = True

    def criterion(self, view: View) -> Array:
        """Return the leverages, shape (S, n)."""
        return np.tile(view.bank.leverage, (len(view.theta), 1))


@dataclass(frozen=True, slots=True)
class FormatInformation(MaximumInformation):
    """Selection of the item and format with maximum Fisher information about the ability in that format.

    For M2-IRT it is ``p (1 - p) a(s)^2`` (M3-IRT paper, Equation 9); for M3-IRT, and for banks without formats, the
    trace of the information matrix.
    """

    name: str = "format-information"
    mode: Literal["top", "proportional"] = "top"

    def criterion(self, view: View) -> Array:
        """Return the information at theta, shape (S, n)."""
        bank = view.bank
        scale = view.bank.in_formats
        squared = bank.squared_slope
        if scale is not None:
            slopes = bank.discrimination / scale.unit  # by abilities, and not by standings
            if scale.items.form == "m2":
                squared = slopes[:, 0] ** 2
            else:
                squared = (slopes**2).sum(axis=1)
        return np.asarray(view.probability * (1.0 - view.probability) * squared)

    def highest(self, view: View, k: int) -> None:  # noqa: ARG002
        """Return None: all items are rated."""
        return


@dataclass(frozen=True, slots=True)
class Spread:
    """Draws in proportion to the predicted standard deviation of the score, sqrt(p(1-p)).

    With correct predictions, this allocation minimises the variance of the importance-weighted difference estimator
    (Neyman 1934).
    """

    name: str = "spread"
    mode: Literal["top", "proportional"] = "proportional"
    needs_calibration: bool = True
    by_variance: ClassVar[bool] = False

    def criterion(self, view: View) -> Array:
        """Return sqrt(p(1-p)), shape (S, n)."""
        return np.sqrt(view.spread, out=view.buffer(2))

    def rating(self, spread: Floats, squared: Floats, variance: Floats | float) -> Floats:  # noqa: ARG002
        """Return sqrt(p(1-p)), see `block_draws.SmoothSelector`."""
        return np.sqrt(spread)

    def power(self, asked: int) -> float:  # noqa: ARG002
        """Return 1."""
        return 1.0


@dataclass(frozen=True, slots=True)
class Variance:
    """Draws by an item's reduction of the projected accuracy's variance.

    With the gradient g of the expected accuracy by ability and the posterior
    covariance V, administering item i lowers the variance ``g' V g`` by ::

        w_i (A_i' V g)^2 / (1 + w_i A_i' V A_i)

    (a rank-one update of the posterior information). Items are drawn in proportion to that reduction raised to a power
    which falls with the number t of administrations, ``max(least, decay / (t + 1))``. The first draws are nearly
    optimal under the model. Later draws are more uniform, because the remaining error is mostly misfit of the bank,
    which draws of the same items for all subjects would not average out.
    """

    decay: float = 200.0
    least: float = 2.0
    name: str = "variance"
    mode: Literal["top", "proportional"] = "proportional"
    needs_calibration: bool = True
    by_variance: ClassVar[bool] = True

    def criterion(self, view: View) -> Array:
        """Return the reduction raised to the power, scaled to a maximum of 1; 0 for administered items."""
        bank = view.bank
        if bank.dimensions == 1 and bank.asymptote is None:
            value = view.spread * bank.squared_slope
            value /= 1.0 + view.covariance[:, 0] * value  # times a factor of the subject, the reduction
        else:
            value = self._reduction(view)
        value.put(view.asked + np.arange(0, value.size, value.shape[1])[:, None], 0.0)
        top = value.max(axis=1, keepdims=True)
        value /= np.where(top > 0, top, 1.0)
        return np.asarray(np.power(value, self.power(view.asked.shape[1]), out=value))

    def rating(self, spread: Floats, squared: Floats, variance: Floats | float) -> Floats:
        """Return the reduction, up to a factor of the subject, see `block_draws.SmoothSelector`."""
        information = spread * squared
        return np.asarray(information / (1.0 + variance * information))

    def power(self, asked: int) -> float:
        """Return the power of the reduction after `asked` administrations."""
        return max(self.least, self.decay / (asked + 1))

    @staticmethod
    def _reduction(view: View) -> Array:
        """Return the reduction of the variance by each item, shape (S, n)."""
        bank = view.bank
        A, c = bank.discrimination, bank.asymptote
        if c is None:
            w = view.spread
        else:
            w = irt.weight(view.probability, c)
        if c is None:
            slope = w
        else:
            slope = (view.probability - c) * (1.0 - view.probability) / (1.0 - c)
        gradient = slope @ A
        direction = (view.covariance @ gradient[:, :, None])[:, :, 0]
        if bank.dimensions == 1:
            along = direction * A[:, 0]
            spread = view.covariance[:, 0] * bank.squared_slope
        else:
            along = direction @ A.T
            spread = ((A @ view.covariance) * A).sum(axis=-1)
        np.square(along, out=along)
        spread = w * spread
        spread += 1.0
        value = np.multiply(w, along, out=along)
        value /= spread
        return np.asarray(value)


@dataclass(frozen=True, slots=True)
class NearestDifficulty:
    """Selection of the item whose difficulty is nearest to the ability (AutoJudger's IRT baseline); D = 1."""

    name: str = "nearest-difficulty"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = True

    def criterion(self, view: View) -> Array:
        """Return 1 / (1 + |theta - b|), shape (S, n); 0 for an item without a difficulty."""
        return np.nan_to_num(1.0 / (1.0 + np.abs(view.theta[:, :1] - view.bank.difficulty)))


@dataclass(frozen=True, slots=True)
class Stratified:
    """Uniform draws from the least administered category; counts differ by at most one while items remain.

    It draws one by one, since a batch would draw from one category twice.
    """

    name: str = "stratified"
    mode: Literal["top", "proportional"] = "proportional"
    needs_calibration: bool = False
    one_by_one: ClassVar[bool] = True

    def criterion(self, view: View) -> Array:
        """Return 1 for items of the least administered categories with remaining items; ones without categories."""
        n = view.probability.shape[1]
        _, category = np.unique(list(view.bank.categories) or [""] * n, return_inverse=True)
        rows = np.arange(len(view.asked))[:, None]
        counts = np.zeros((len(view.asked), category.max() + 1))
        np.add.at(counts, (rows, category[view.asked]), 1.0)
        counts[counts >= np.bincount(category)] = np.inf
        return np.asarray(counts == counts.min(axis=1, keepdims=True), dtype=np.float64)[:, category]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Selection of the items nearest to the centres of as many clusters as the budget has items.

    Items are near whose scores the bank predicts alike, whoever is asked, see `clustered.cluster_order`. Every subject
    gets the same items.
    """

    name: str = "cluster"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = True
    uses_budget: ClassVar[bool] = True

    def criterion(self, view: View) -> Array:
        """Return ratings that fall along the order of the items, shape (S, n)."""
        subjects, n = view.probability.shape
        value = np.empty(n)
        value[cluster_order(view.bank, view.budget or n)] = np.linspace(1.0, 0.0, n)
        return np.tile(value, (subjects, 1))


@dataclass(frozen=True, slots=True)
class FixedForm:
    """Test form: the same items in the same order for every subject.

    Args:
        order: Positions in the bank; the remaining items follow in the bank's order.
    """

    order: tuple[int, ...]
    name: str = "fixed-form"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = False

    def criterion(self, view: View) -> Array:
        """Return ratings that decrease along the form, shape (S, n)."""
        subjects, n = view.probability.shape
        value = np.linspace(0.5, 0.0, n)
        value[list(self.order)] = np.linspace(1.0, 0.6, len(self.order))
        return np.tile(value, (subjects, 1))


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the bank's predictor: the same items in the same order for every subject."""

    name: str = "form"
    mode: Literal["top", "proportional"] = "top"
    needs_calibration: bool = True

    def criterion(self, view: View) -> Array:
        """Return ratings that fall along the form, shape (S, n)."""
        subjects, n = view.probability.shape
        value = np.empty(n)
        value[self._order(view)] = np.linspace(1.0, 0.0, n)
        return np.tile(value, (subjects, 1))

    def highest(self, view: View, k: int) -> tuple[Ints, Array]:
        """Return the next `k` items of the form and their predicted scores, both (S, k)."""
        order = self._order(view)
        t = view.asked.shape[1]
        head = order[: t + k]  # at most t of these are administered
        items = np.stack([head[~np.isin(head, asked)][:k] for asked in view.asked])
        return items, view.predicted(items)

    @staticmethod
    def _order(view: View) -> Ints:
        assert view.bank.predictor is not None  # the policy has checked it
        return view.bank.predictor.order


#: Selectors by the name used in settings.
SELECTORS: dict[str, Selector] = {
    s.name: s
    for s in (
        MaximumInformation(),
        Information(),
        FormatInformation(),
        Leverage(),
        Spread(),
        Variance(),
        NearestDifficulty(),
        Stratified(),
        Cluster(),
        Random(),
    )
}
