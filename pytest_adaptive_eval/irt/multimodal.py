"""M2-IRT and M3-IRT: abilities and items in parts, one for each modality and each combination of modalities.

A *format* is the set of modalities that a subject is given of an item: of image
and text there are four, image and text, image, text, and none.  Ability,
discrimination and difficulty are sums of *parts*: a base part, one per modality,
and one per combination of modalities; a part counts in the formats that hold all
its modalities.  With the design s (F, K), 1 where part k counts in format f, and
all parts in ``[0, q]``, there is **one convention of signs: a modality that is
given raises ability and discrimination, and lowers difficulty** ::

    ability(s)        = sum_k s_k theta_k
    discrimination(s) = sum_k s_k a_k
    difficulty(s)     = b_base - sum_{k > 0} s_k b_k

    M2:  logit p = discrimination(s) (ability(s) - difficulty(s))
    M3:  logit p = sum_k s_k a_k theta_k - difficulty(s)

(Equations 3-7 of the M3-IRT paper, whose printed Equation 7 would make abilities hurt.) Both are linear in theta, so an
item in a format is an item of a multidimensional logistic model with slopes and an intercept of its own:
`MultimodalItems.slopes` and `MultimodalItems.intercepts`. A part with a large b is one that its item needs: a large b
of image and text together, *cross difficulty*, marks an item for which neither modality alone helps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.types import Array, Bools

Form = Literal["m2", "m3"]

AT_BOUND = 0.01  #: An ability or a parameter nearer to a bound than this share of the range is at the bound.


@dataclass(frozen=True, slots=True)
class Modalities:
    """Modalities of items, with their formats and parts.

    Args:
        names: Such as ``("image", "text")``; at least one, none of them ``none``, ``base`` or ``cross``, or with a plus
            sign.
        formats: Formats in which items are administered, in the order of the responses' last axis; a format joins its
            modalities with a plus sign, in the order of `names`, and ``none`` has none of them. All of them when
            omitted, from the fullest to ``none``.

    Raises:
        EstimationError: A reserved or duplicate name, or a format of unknown modalities.
    """

    names: tuple[str, ...] = ("image", "text")
    formats: tuple[str, ...] = ()
    #: Parts of abilities and items: ``base``, the modalities, then their combinations; for two modalities the
    #: combination is called ``cross``.
    parts: tuple[str, ...] = field(init=False, default=())
    #: 1 where a part counts in a format, shape (F, K).
    design: Array = field(init=False, compare=False, default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        names = tuple(self.names)
        _check_names(names)
        subsets = []
        for size in range(len(names) + 1):
            for subset in combinations(names, size):
                subsets.append(subset)
        by_format = {"+".join(subset) or "none": subset for subset in subsets}
        formats = tuple(self.formats) or tuple(sorted(by_format, key=lambda form: len(by_format[form]), reverse=True))
        if unknown := [form for form in formats if form not in by_format]:
            raise EstimationError(f"the format {unknown[0]!r} is not one of {', '.join(by_format)}")
        if len(set(formats)) < len(formats):
            raise EstimationError(f"formats are {formats!r}, expected each once")
        design = np.array([[float(set(part) <= set(by_format[form])) for part in subsets] for form in formats])
        design.setflags(write=False)
        if len(names) == 2:
            combined = ["cross"]
        else:
            combined = list(by_format)[1 + len(names) :]
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "formats", formats)
        object.__setattr__(self, "parts", ("base", *names, *combined))
        object.__setattr__(self, "design", design)

    @property
    def fullest(self) -> int:
        """Position of the format with most modalities."""
        return int(self.design.sum(axis=1).argmax())

    @property
    def signs(self) -> Array:
        """Signs of the parts in the sum of difficulty, shape (K,): 1 for the base, -1 for all others."""
        return np.where(np.arange(len(self.parts)) == 0, 1.0, -1.0)


def _check_names(names: tuple[str, ...]) -> None:
    """Refuse names that cannot form formats and parts."""
    reserved = any(name in ("none", "base", "cross", "") or "+" in name for name in names)
    if not names or len(set(names)) < len(names) or reserved:
        raise EstimationError(
            f"modalities are {names!r}, expected different names, none of them 'none', 'base' or 'cross', without a "
            "plus sign"
        )


@dataclass(frozen=True, slots=True, eq=False)
class MultimodalItems:
    """`n` items whose discrimination and difficulty have K parts in ``[0, bound]``, in F formats.

    Args:
        bound: q, the upper bound of every part of ability, discrimination and difficulty.
        discrimination, difficulty: Shape (n, K).

    Raises:
        EstimationError: Unequal shapes, or a part outside its bounds.
    """

    modalities: Modalities
    form: Form
    bound: float
    discrimination: Array
    difficulty: Array
    #: Slopes of the logit by the abilities, shape (n, F, K).
    slopes: Array = field(init=False, default_factory=lambda: np.empty(0))
    #: The logit of a subject whose abilities are all 0, shape (n, F).
    intercepts: Array = field(init=False, default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        shape = (len(self.discrimination), len(self.modalities.parts))
        for name in ("discrimination", "difficulty"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != shape or not ((values >= 0) & (values <= self.bound)).all():
                raise EstimationError(
                    f"{name} has shape {values.shape} and values from {values.min(initial=0.0):g} to "
                    f"{values.max(initial=0.0):g}; expected {shape}, in [0, {self.bound:g}]"
                )
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        design = self.modalities.design
        lowered = self.difficulty @ (design * self.modalities.signs).T
        if self.form == "m2":
            whole = self.discrimination @ design.T
            slopes = whole[:, :, None] * design
            intercepts = -whole * lowered
        else:
            slopes = self.discrimination[:, None, :] * design
            intercepts = -lowered
        slopes.setflags(write=False)
        intercepts.setflags(write=False)
        object.__setattr__(self, "slopes", slopes)
        object.__setattr__(self, "intercepts", intercepts)

    def __len__(self) -> int:
        return len(self.discrimination)

    @property
    def parameters(self) -> dict[str, Array]:
        """Difficulty and discrimination by part, such as ``difficulty cross``, each of shape (n,)."""
        return {
            f"{kind} {part}": values[:, k]
            for kind, values in (("difficulty", self.difficulty), ("discrimination", self.discrimination))
            for k, part in enumerate(self.modalities.parts)
        }

    def probability(self, theta: Array) -> Array:
        """Return the probability of a right answer of subjects with abilities (S, K), shape (S, n, F)."""
        n, formats, parts = self.slopes.shape
        p = irt.probability(theta, self.slopes.reshape(-1, parts), self.intercepts.ravel())
        return np.asarray(p.reshape(len(theta), n, formats))

    def information(self, theta: Array) -> Array:
        """Return the Fisher information of each item in each format about the ability there, shape (S, n, F).

        For M2 ``p (1 - p) a(s)^2`` (Equation 9 of the paper); for M3, which has no one ability in a format, the trace
        of the information matrix (Equation 10).
        """
        if self.form == "m2":
            squared = self.slopes[:, :, 0] ** 2
        else:
            squared = (self.slopes**2).sum(axis=-1)
        return irt.weight(self.probability(theta)) * squared

    def cross_gain(self, theta: Array) -> Array:
        """Return the gain of all modalities over the best smaller format, averaged over subjects, shape (n,).

        In probability. At most 0 for a shortcut, an item that is as easy with fewer modalities.
        """
        p = self.probability(theta).mean(axis=0)
        full = self.modalities.fullest
        rest = np.delete(p, full, axis=1)
        return np.asarray(p[:, full] - rest.max(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Abilities of the calibration subjects, as the prior of a new one: normal in ``logit(theta / bound)``.

    Args:
        mean: Shape (K,).
        covariance: Shape (K, K).
    """

    mean: Array
    covariance: Array
    bound: float

    @classmethod
    def of(cls, theta: Array, bound: float, *, pseudo: float = 8.0, spread: float = 1.0) -> Population:
        """Create from subjects (S, K), with `pseudo` subjects of independent abilities added to the covariance."""
        u = unbounded(theta, bound)
        centred = u - u.mean(axis=0)
        scatter = centred.T @ centred + pseudo * spread**2 * np.eye(theta.shape[1])
        return cls(u.mean(axis=0), scatter / (len(u) + pseudo), bound)

    @property
    def theta(self) -> Array:
        """Abilities in the middle of the population, shape (K,)."""
        return _bounded(self.mean, self.bound)

    def precision(self) -> Array:
        """Return the inverse covariance of theta about the middle, shape (K, K), to the first order."""
        slope = self.theta * (1.0 - self.theta / self.bound)
        return np.asarray(np.linalg.inv(self.covariance) / np.outer(slope, slope))


@dataclass(frozen=True, slots=True, eq=False)
class FormatScale:
    """Scale of a bank's items in formats.

    Args:
        standings: Shape (S, K). Abilities of the calibration subjects, as in `standing`.
        report: Report of the fit: held-out ``auc``, ``at_bound``, ``reliability`` and ``confused`` parts.
    """

    items: MultimodalItems
    population: Population
    standings: Array
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> Array:
        """Standard deviation of each part of ability in the population, to the first order, shape (K,)."""
        middle = self.population.theta
        return np.asarray(
            middle * (1.0 - middle / self.items.bound) * np.sqrt(self.population.covariance.diagonal()),
            dtype=np.float64,
        )

    def standing(self, theta: Array) -> Array:
        """Return abilities (S, K) in standard deviations of the population from its middle."""
        return np.asarray((theta - self.population.theta) / self.unit)

    def abilities(self, standings: ArrayLike) -> Array:
        """Return abilities (S, K) in ``[0, bound]``, to the first order, from standings."""
        return np.asarray(np.clip(self.population.theta + self.unit * np.asarray(standings), 0.0, self.items.bound))

    @property
    def gains(self) -> Array:
        """Gain of all modalities over the best smaller format, by item, over the calibration subjects, shape (n,)."""
        return self.items.cross_gain(self.abilities(self.standings))

    def subset(self, positions: Sequence[int]) -> FormatScale:
        """Return the scale of the items at some positions."""
        rows = list(positions)
        items = self.items
        part = replace(items, discrimination=items.discrimination[rows], difficulty=items.difficulty[rows])
        return replace(self, items=part)

    def standard(self) -> tuple[Array, Array]:
        """Return slopes (n, F, K) by the standings, and the logit of the population's middle (n, F)."""
        items = self.items
        return items.slopes * self.unit, np.asarray(items.intercepts + items.slopes @ self.population.theta)


def parts_at_bound(parts: Sequence[str], at_bound: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Return the parts that say nothing because half of their values or more lie at a bound.

    Args:
        at_bound: Share of the values at a bound, by kind: ``ability``, ``discrimination`` or ``difficulty``.


    Returns:
        By kind, the share of each such part; kinds without any are left out.
    """
    shares_by_part = {}
    for kind, shares in at_bound.items():
        shares_by_part[kind] = {part: float(share) for part, share in zip(parts, shares, strict=False) if share >= 0.5}
    return {kind: shares for kind, shares in shares_by_part.items() if shares}


def _bounded(u: Array, bound: float) -> Array:
    """Return ``bound expit(u)``."""
    return np.asarray(bound / (1.0 + np.exp(-u)))


def unbounded(theta: Array, bound: float) -> Array:
    """Return ``logit(theta / bound)`` of any shape; shares are limited to AT_BOUND / 10 from a bound."""
    share = np.clip(np.asarray(theta, dtype=np.float64) / bound, AT_BOUND / 10, 1.0 - AT_BOUND / 10)
    return np.asarray(np.log(share / (1.0 - share)))


@dataclass(frozen=True, slots=True, eq=False)
class Abilities:
    """Estimated abilities of S subjects.

    Args:
        theta: Shape (S, K). Abilities in ``(0, bound)``.
        covariance: Shape (S, K, K). Covariance of theta, to the first order.
        u, spread: Shape (S, K) and (S, K, K). ``logit(theta / bound)`` and its covariance, for intervals.
        converged: Shape (S,).
    """

    theta: Array
    covariance: Array
    u: Array
    spread: Array
    bound: float
    converged: Bools

    @property
    def standard_error(self) -> Array:
        """Standard errors of theta, shape (S, K)."""
        return np.sqrt(self.covariance.diagonal(axis1=1, axis2=2))

    @property
    def at_bound(self) -> Bools:
        """Whether an ability is within a hundredth of the range of a bound, and so not estimated, shape (S, K)."""
        share = self.theta / self.bound
        return np.asarray((share < AT_BOUND) | (share > 1.0 - AT_BOUND))

    def interval(self, confidence: float = 0.95) -> tuple[Array, Array]:
        """Return the bounds of a two-sided interval of every ability, both of shape (S, K), within ``[0, bound]``."""
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * np.sqrt(self.spread.diagonal(axis1=1, axis2=2))
        return _bounded(self.u - half, self.bound), _bounded(self.u + half, self.bound)


def estimate_abilities(
    scores: ArrayLike,
    slopes: Array,
    intercepts: Array,
    population: Population,
    *,
    start: Array | None = None,
    iterations: int = 100,
    tolerance: float = 1e-6,
) -> Abilities:
    """Return the abilities of highest posterior probability from answers to items in formats.

    Args:
        scores: Shape (S, k). Scores in [0, 1]; NaN where missing.
        slopes, intercepts: Shape (k, K) or (S, k, K). Parameters of each administered item in its format, for all
            subjects or for each.
        start: Shape (S, K). Starting abilities.
        iterations: Largest number of iterations.
        tolerance: Limit of the last step in ``logit(theta / bound)``.

    Raises:
        EstimationError: Scores are not in [0, 1].
    """
    scores = np.asarray(scores, dtype=np.float64)
    scored = ~np.isnan(scores)
    if not ((scores[scored] >= 0) & (scores[scored] <= 1)).all():
        raise EstimationError("scores lie in [0, 1], with NaN where missing")
    filled = np.where(scored, scores, 0.0)
    prior = np.linalg.inv(population.covariance)
    bound = population.bound
    if start is None:
        u = np.tile(population.mean, (len(scores), 1))
    else:
        u = unbounded(start, bound)
    limit = np.ones((len(u), 1))
    last = np.zeros_like(u)
    arrived = np.zeros(len(u), dtype=bool)
    for _ in range(iterations):
        theta = _bounded(u, bound)
        p = irt.probability(theta, slopes, intercepts)
        turn = theta * (1.0 - theta / bound)
        gradient = _along(np.where(scored, filled - p, 0.0), slopes) * turn - (u - population.mean) @ prior
        information = (
            _spanned(np.where(scored, irt.weight(p), 0.0), slopes) * turn[:, :, None] * turn[:, None, :] + prior
        )
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        # scoring overshoots where the sigmoid of theta is curved; steps in alternating directions halve the limit
        limit = np.where((step * last).sum(axis=1, keepdims=True) < 0, 0.5 * limit, limit)
        longest = np.abs(step).max(axis=1, keepdims=True)
        last = step * np.minimum(1.0, limit / np.maximum(longest, 1e-300))
        u = u + np.where(arrived[:, None], 0.0, last)
        arrived |= longest[:, 0] < tolerance
        if arrived.all():
            break
    theta = _bounded(u, bound)
    turn = theta * (1.0 - theta / bound)
    spread = np.linalg.inv(information)
    return Abilities(theta, spread * turn[:, :, None] * turn[:, None, :], u, spread, bound, arrived)


def _along(weights: Array, slopes: Array) -> Array:
    """Return ``sum_i w_i A_i``, shape (S, K)."""
    if slopes.ndim == 2:
        return weights @ slopes
    return np.asarray((weights[:, None, :] @ slopes)[:, 0])


def _spanned(weights: Array, slopes: Array) -> Array:
    """Return ``sum_i w_i A_i A_i'``, shape (S, K, K)."""
    if slopes.ndim == 2:
        k, parts = slopes.shape
        squares = (slopes[:, :, None] * slopes[:, None, :]).reshape(k, -1)
        return np.asarray((weights @ squares).reshape(-1, parts, parts))
    return np.asarray((slopes * weights[:, :, None]).swapaxes(1, 2) @ slopes)


@dataclass(slots=True)
class CumulativeInformation:
    """Cumulative information about one subject's abilities, as its inverse and its log-determinant.

    Both change by rank-one updates (Sherman & Morrison 1950): no determinant is ever recomputed. ``det(I + w A A') =
    det(I) (1 + w A' I^-1 A)``.

    Args:
        inverse: Shape (K, K).
        log_determinant: Log-determinant of the information itself.
    """

    inverse: Array
    log_determinant: float

    @classmethod
    def start(cls, precision: Array) -> CumulativeInformation:
        """Create from the prior precision matrix, shape (K, K)."""
        return cls(np.asarray(np.linalg.inv(precision), dtype=np.float64), float(np.linalg.slogdet(precision)[1]))

    def gain(self, weights: Array, slopes: Array) -> Array:
        """Return the increase of the log-determinant by each of several answers alone.

        Args:
            weights: Shape (...). ``p (1 - p)`` of every item in every format.
            slopes: Shape (..., K).
        """
        return np.asarray(np.log1p(weights * ((slopes @ self.inverse) * slopes).sum(axis=-1)))

    def joint_gain(self, weights: Array, slopes: Array) -> Array:
        """Return the increase by all formats of an item together, shape (n,), from (n, F) and (n, F, K)."""
        inverse = np.broadcast_to(self.inverse, (len(slopes), *self.inverse.shape))
        total = np.zeros(len(slopes))
        for f in range(slopes.shape[1]):
            towards = (inverse @ slopes[:, f, :, None])[:, :, 0]
            grown = weights[:, f] * (towards * slopes[:, f]).sum(axis=1)
            total += np.log1p(grown)
            inverse = (
                inverse - (weights[:, f] / (1.0 + grown))[:, None, None] * towards[:, :, None] * towards[:, None, :]
            )
        return total

    def add(self, weights: Sequence[float] | Array, slopes: Array) -> None:
        """Add answers of weights (k,) and slopes (k, K)."""
        for weight, slope in zip(weights, slopes, strict=True):
            towards = self.inverse @ slope
            grown = float(weight * (slope @ towards))
            self.inverse = self.inverse - (float(weight) / (1.0 + grown)) * np.outer(towards, towards)
            self.log_determinant += float(np.log1p(grown))
