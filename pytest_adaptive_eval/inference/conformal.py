"""Conformal intervals from the errors of replayed interviews.

The whole interview, its policy and stopping rule, is replayed on subjects whose accuracy over the bank is known, with
items calibrated on others. Each gives one number, its error over a scale that is known at the end of any interview. For
one more subject of the same population the k-th largest of N such numbers is exceeded with probability (N + 1 - k) / (N
+ 1) at most, for any quality of the bank (Vovk et al. 2005; Lei et al. 2018 for scaled errors).

A new checkpoint may be stronger than every calibration subject. The replay is therefore repeated with items calibrated
on the weakest subjects alone, administered to the strongest, and vice versa. The upper bound of a subject that seems
stronger than `SIDE` of the calibration subjects is at least the largest error of that replay away, and likewise the
lower bound of one that seems weaker. Beyond the outer `OUTER` of them that error counts `FURTHER` times. No bound is
moved further than that of as many uniform draws: `estimate` is chosen so that it errs no more than they do, and an
interval that is wider than theirs would be worse than none.

High projections are mostly too high, and low ones too low, because both include sampling error. The least-squares line
through errors and projections measures this regression. Within the population it belongs into the interval's middle,
and for a subject from outside it is wrong, so `REGRESSED` of it is subtracted from the errors. The line includes the
new subject's error, as an unknown. All N + 1 subjects are then treated alike, and the bound above stays exact (full
conformal prediction by regression, Nouretdinov et al. 2001).

Subjects of one family, such as checkpoints of one training run, err alike: a family counts once, its members in equal
parts (Dunn et al. 2023), and N is the number of families.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.types import Array

#: Share of the calibration subjects beyond which a subject counts as of one side.  A smaller share reaches more strong
#: subjects whose projection errs towards the middle, and widens the intervals of all the others.
SIDE = 0.8
#: Share of the calibration subjects at either end beyond which extrapolation may reach further than where it was tried,
#: and how much further.
OUTER, FURTHER = 0.1, 1.2
REGRESSED = 0.5  #: Share of the regression towards the mean that moves an interval.
TIE = 1e-9  #: Projections of less spread tell no line.
_SIDES = ("below", "above", "weak", "strong")


def conformal_scale(accuracy: ArrayLike, standard_error: ArrayLike, asked: ArrayLike, size: int) -> Array:
    """Return the unit of errors: the bank's standard error, at least half that of as many uniform draws.

    The bank's standard error alone is smallest where it is most wrong: at many items and at the ends of the scale.

    Args:
        accuracy, standard_error: Shape (S,). The projection, see `projection.project`.
        asked: Shape (S,). Items administered.
        size: Items in the bank.
    """
    uniform = _uniform_error(accuracy, asked, size)
    return np.maximum(np.asarray(standard_error, dtype=np.float64), 0.5 * uniform)


def uniform_half_width(accuracy: ArrayLike, asked: ArrayLike, size: int, confidence: float = 0.95) -> Array:
    """Return the half-width of a normal interval from as many uniform draws, shape (S,).

    Args:
        accuracy, asked: Shape (S,). See `conformal_scale`.
        confidence: Of each one-sided bound.
    """
    return NormalDist().inv_cdf(confidence) * _uniform_error(accuracy, asked, size)


def _uniform_error(accuracy: ArrayLike, asked: ArrayLike, size: int) -> Array:
    """Return the standard error of the mean of as many uniform draws."""
    e = np.clip(np.asarray(accuracy, dtype=np.float64), 0.0, 1.0)
    t = np.maximum(np.asarray(asked, dtype=np.float64), 1.0)
    variance = np.maximum(e * (1.0 - e), 0.25 / (t + 1.0))
    return np.asarray(np.sqrt(variance / t * np.maximum(1.0 - t / size, 0.0)))


def subjects_needed(confidence: float) -> int:
    """Return the fewest calibration subjects that give an interval at a confidence of each one-sided bound."""
    return math.ceil((_two_sided(confidence) - 1e-9) / (1.0 - _two_sided(confidence)))


def percent(families: int) -> int:
    """Return the level, in whole percent, of the widest interval that so many families of subjects can give."""
    if families > 1:
        return 100 * families // (families + 1)
    return 0


def _two_sided(confidence: float) -> float:
    """Return the confidence of the two-sided interval whose bounds have `confidence` each."""
    return 2.0 * confidence - 1.0


@dataclass(frozen=True, slots=True)
class Conformal:
    """Replayed errors of one policy at one budget, each (true - projected accuracy) / scale.

    Args:
        policy: Key of the policy, with its stopping rule and budget, see `Policy.key`.
        errors: Errors of the calibration subjects, by cross-fitting.
        below, above: Smallest and largest error of extrapolated subjects, see the module.
        weak, strong: Projected accuracies at and below which `below` counts, and at and above which `above` does.
        projected: Projection of each subject in `errors`; empty where it is unknown.
        sizes: Number of calibration subjects in the family of each; 1 each when omitted.

    Raises:
        ValueError: Not as many projections or sizes as errors, a projection that is not finite, or a size below 1.
    """

    policy: str
    errors: tuple[float, ...]
    below: float = 0.0
    above: float = 0.0
    weak: float = 1.0
    strong: float = 0.0
    projected: tuple[float, ...] = ()
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("projected", "sizes"):
            values = getattr(self, name)
            if values and len(values) != len(self.errors):
                raise ValueError(f"{len(values)} {name} for {len(self.errors)} errors; expected one per error")
        whole_sizes = all(isinstance(size, int) and size >= 1 for size in self.sizes)
        if not (whole_sizes and all(map(math.isfinite, self.projected))):
            raise ValueError(f"projections are finite, and sizes of families whole numbers: {self!r:.200}")

    @property
    def weights(self) -> Array:
        """Weight of each subject, shape (N,): the members of a family sum to 1."""
        if self.sizes:
            return 1.0 / np.array(self.sizes)
        return np.ones(len(self.errors))

    def confidence(self, most: float = 0.95) -> float:
        """Return the highest confidence of each bound, at most `most`, that the families can give; see `percent`."""
        if self.families >= subjects_needed(most):
            return most
        return 0.5 + percent(self.families) / 200.0

    @property
    def families(self) -> int:
        """Number of families of the calibration subjects."""
        return round(float(self.weights.sum()))

    def interval(self, accuracy: float, scale: float, confidence: float = 0.95, furthest: float = math.inf) -> Interval:
        """Return the two-sided interval of the accuracy over the bank.

        Args:
            accuracy: Projection of the new subject.
            scale: See `conformal_scale`.
            confidence: Confidence of each one-sided bound, in (0.5, 1); that of the interval is 2 confidence - 1.
            furthest: Distance up to which extrapolation may move a bound, see `uniform_half_width`.

        Raises:
            EstimationError: There are too few calibration subjects for this confidence.
        """
        if self.families < subjects_needed(confidence):
            raise EstimationError(
                f"{self.families} calibration subjects of different families cannot give an interval at "
                f"{100 * _two_sided(confidence):.4g} %: at least {subjects_needed(confidence)} are needed; calibrate "
                "with more, or lower the confidence"
            )
        worst, best = self._errors_in_reach(accuracy, (self.families + 1) * _two_sided(confidence))
        if self.projected:
            least, most = np.quantile(self.projected, [OUTER, 1.0 - OUTER])
        else:
            least, most = -math.inf, math.inf
        if accuracy <= self.weak:
            below = self.below * (FURTHER if accuracy <= least else 1.0)
        else:
            below = 0.0
        if accuracy >= self.strong:
            above = self.above * (FURTHER if accuracy >= most else 1.0)
        else:
            above = 0.0
        below = max(scale * below, -furthest)
        above = min(scale * above, furthest)
        low = accuracy + min(below, scale * worst)
        high = accuracy + max(above, scale * best)
        middle = min(max(accuracy, 0.0), 1.0)
        return Interval(middle, min(max(low, 0.0), middle), max(min(high, 1.0), middle), confidence, "conformal")

    def _errors_in_reach(self, accuracy: float, mass: float) -> tuple[float, float]:
        """Return the least and largest error of a new subject that is exceeded by too few families to be excluded.

        Errors are compared as residuals, less `REGRESSED` of the line through all of them. With the new error z these
        are ``u + v z``. The new subject's residual is the larger one outside of two roots, between which it is 0, so
        the errors in reach form one interval.
        """
        errors = np.array(self.errors)
        projections = np.array([*self.projected, accuracy])
        n = len(errors)
        weights = np.append(self.weights, 1.0)
        u = np.append(errors, 0.0)
        v = np.append(np.zeros(n), 1.0)
        if len(projections) == n + 1 and np.ptp(projections) > TIE:
            total = float(weights.sum())
            centred = projections - float(weights @ projections) / total
            slopes = weights * centred / float(weights @ centred**2)
            u -= REGRESSED * (float(weights[:n] @ errors) / total + centred * float(slopes[:n] @ errors))
            v -= REGRESSED * (1.0 / total + centred * slopes[n])
        roots = np.stack([(u[:n] - u[n]) / (v[n] - v[:n]), -(u[:n] + u[n]) / (v[n] + v[:n])])
        return -_reached(-roots.min(axis=0), weights[:n], mass), _reached(roots.max(axis=0), weights[:n], mass)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of the bank's file."""
        return {
            "policy": self.policy,
            "errors": [float(f"{e:.6g}") for e in self.errors],
            **{name: float(f"{getattr(self, name):.6g}") for name in _SIDES},
            "projected": [float(f"{p:.6g}") for p in self.projected],
            **({"sizes": list(self.sizes)} if self.sizes else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Conformal:
        """Restore from the values of `to_json`."""
        below, above, weak, strong = (float(data[name]) for name in _SIDES)
        errors = np.array([float(e) for e in data["errors"]])
        order = errors.argsort(kind="stable").tolist()
        columns = [[float(p) for p in data.get("projected", ())], list(data.get("sizes", ()))]
        # columns of another length stay, so that the constructor refuses them
        projected, sizes = (tuple(x[s] for s in order) if len(x) == len(order) else tuple(x) for x in columns)
        return cls(str(data["policy"]), tuple(errors[order].tolist()), below, above, weak, strong, projected, sizes)


def _reached(values: Array, weights: Array, mass: float) -> float:
    """Return the smallest value at which the weights of all values up to it sum to `mass`."""
    order = values.argsort(kind="stable")
    index = int(np.searchsorted(weights[order].cumsum(), mass - 1e-9))
    return float(values[order[min(index, len(order) - 1)]])


def combined(first: Interval, second: Interval) -> Interval | None:
    """Return the intersection of two intervals, or None if it is empty.

    Give each half of the error that the result may have: if both have confidence 1 - a / 2, the result has 1 - a by the
    union bound. It is at most as wide as either of them; against the narrower one at 1 - a alone that costs a factor of
    1.19 at 95 % and 1.14 at 97.5 %, as for the normal.
    """
    low = max(first.low, second.low)
    high = min(first.high, second.high)
    if low > high:
        return None
    confidence = first.confidence + second.confidence - 1.0
    narrower = min(first, second, key=lambda i: i.high - i.low)
    return Interval(min(max(narrower.estimate, low), high), low, high, confidence, "combined")
