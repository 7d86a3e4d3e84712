"""Predict unadministered scores from an item response model and what its residuals have in common.

About a subject's estimated ability, its scores are ``p + w (theta - estimate) + Z' a + e``: p and w are the predicted
scores and their slopes by ability, and a ~ N(0, I).  The rows of Z are the residuals of the calibration subjects, a
shift of the subject's own, and a slope along the items' mean scores.  The variance of e is that of a score of
probability p, times a constant.  One solve of the size of Z predicts all scores, with their common error.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Curves", "Design", "Predictor"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Smallest variance p(1-p) of a score.
LEAST_VARIANCE = 0.01
#: Standard deviation of abilities in logits, wider than that of the calibration subjects, 1.
ABILITY_SD = 1.5


@dataclass(frozen=True, slots=True)
class Design:
    """Draws and estimate of interviews of about `count` items, chosen by their error on held-out families.

    Parameters
    ----------
    policy : {"estimate", "form"}
        Policy that the design is for.
    count : int
        Items of an interview.
    selector : {"variance", "form"}
        Selector of the first items.
    uniform : float
        Share of the items, the last ones, that are drawn uniformly.
    residual : float
        Weight of the calibration subjects' residuals; with 0 the item response model predicts alone.
    shift, slope : float
        Standard deviations of the subject's own shift, and of the slope in units of it.
    noise : float
        Variance of an item's own part, in units of p(1-p).
    weight : float
        Weight, in [0, 1], of the difference estimator: predictions from the first items alone, corrected by the mean
        error of the uniform draws, which is unbiased however wrong the predictions are.
    least_fit : float
        Smallest person fit of held-out calibration subjects after the first items; a subject below it is unlike them.
    error : float
        Mean absolute error of the accuracy for held-out families.
    """

    policy: Literal["estimate", "form"]
    count: int
    selector: str = "variance"
    uniform: float = 0.0
    residual: float = 0.0
    shift: float = 0.0
    slope: float = 0.0
    noise: float = 1.0
    weight: float = 0.0
    least_fit: float = -math.inf
    error: float = math.nan

    def __post_init__(self) -> None:
        shares = self.uniform, self.weight
        finite = (self.residual, self.shift, self.slope, self.noise)
        named = self.policy in ("estimate", "form") and self.selector in ("variance", "form")
        if not named or self.count < 1 or not all(0.0 <= x <= 1.0 for x in shares):
            raise ValueError(f"a design is malformed: {self!r:.200}")
        if not all(math.isfinite(x) and x >= 0.0 for x in finite) or self.noise == 0.0:
            raise ValueError(f"constants of a design are at least 0, and noise above: {self!r:.200}")

    def chosen(self, count: int) -> int:
        """Return how many of `count` items come before the uniform draws."""
        return count - round(self.uniform * count)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of the bank's file; an infinite `least_fit` and an unknown `error` are left out."""
        data = asdict(self)
        return {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in data.items() if _is_told(v)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Design:
        """Restore from the values of `to_json`."""
        return cls(**data)


def _is_told(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


class Curves(NamedTuple):
    """Predicted scores at the estimated abilities of S subjects.

    Parameters
    ----------
    theta : array, shape (S, D)
    probability : array, shape (S, n)
    slopes : array, shape (S, D, n)
        Derivatives of the predicted scores by ability.
    """

    theta: Array
    probability: Array
    slopes: Array

    def of(self, subjects: Any) -> Curves:
        """Return the curves of some subjects."""
        return Curves(self.theta[subjects], self.probability[subjects], self.slopes[subjects])


@dataclass(frozen=True, slots=True, eq=False)
class Predictor:
    """Predictor of unadministered scores, with a test form and the designs of interviews.

    Parameters
    ----------
    residuals : array, shape (m, n)
        Residuals of the calibration subjects times the roots of their weights, or their leading components.
    level : array, shape (n,)
        Standardised mean scores of the items.
    order : array of int, shape (n,)
        All items; each most lowers the variance of the bank's mean score after those before it.
    designs : tuple of Design
    hash : str
        Hash of all of these.

    Raises
    ------
    ValueError
        Shapes do not belong together, a value is not finite, or `order` is no permutation.
    """

    residuals: Array
    level: Array
    order: Ints
    designs: tuple[Design, ...] = ()
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.level)
        if self.residuals.ndim != 2 or self.residuals.shape[1] != n or not np.isfinite(self.residuals).all():
            raise ValueError(f"residuals of shape {self.residuals.shape} for {n} items, or not finite")
        if not np.isfinite(self.level).all() or not np.array_equal(np.sort(self.order), np.arange(n)):
            raise ValueError("levels are not finite, or the form's order is no permutation of the items")
        digest = hashlib.sha256(repr([design.to_json() for design in self.designs]).encode())
        for array, kind in ((self.residuals, "<f4"), (self.level, "<f4"), (self.order, "<i4")):
            array.setflags(write=False)
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        object.__setattr__(self, "hash", digest.hexdigest()[:16])

    def design(self, policy: str, count: int) -> Design | None:
        """Return the design of a policy for the count nearest to `count` by ratio, or None."""
        designs = [design for design in self.designs if design.policy == policy]
        return min(designs, key=lambda design: abs(math.log(design.count / count)), default=None)

    def predict(self, design: Design, curves: Curves, items: Ints, scores: Array) -> tuple[Array, Array]:
        """Return predicted scores of all items, and the variance of the mean of those not in `items`.

        Parameters
        ----------
        design : Design
            Its constants are used.
        curves : Curves
        items, scores : array, shape (S, k)
            NaN marks a missing score, whose item is predicted as those not in `items` are.

        Returns
        -------
        predictions : array, shape (S, n)
        variance : array, shape (S,)
            Of the bank's mean score, by the model.
        """
        theta, p, slopes = curves
        (S, D), n = theta.shape, len(self.level)
        scored = ~np.isnan(scores)
        # the rows of Z in three parts, since building the whole would take most of the time
        shifts = design.shift * np.stack([np.ones(n), design.slope * self.level])[: 2 * (design.shift > 0.0)]
        common = math.sqrt(design.residual) * self.residuals[: len(self.residuals) * (design.residual > 0.0)]
        fixed = np.concatenate([shifts, common])
        by_ability = ABILITY_SD * np.take_along_axis(slopes, items[:, None, :], axis=2)
        loadings = np.concatenate([by_ability, fixed[:, items].swapaxes(0, 1)], axis=1)  # (S, K, k)
        noise = design.noise * np.maximum(p * (1.0 - p), LEAST_VARIANCE)
        weights = scored / np.take_along_axis(noise, items, axis=1)
        centre = np.zeros((S, len(fixed) + D))
        centre[:, :D] = theta / ABILITY_SD  # the ability's prior is about 0, and the scores are expanded about it
        scaled = loadings * weights[:, None, :]
        rest = np.where(scored, scores, 0.0) - np.take_along_axis(p, items, axis=1)
        rest += (centre[:, None, :] @ loadings)[:, 0]
        sums = np.concatenate([ABILITY_SD * slopes.sum(axis=2), np.tile(fixed.sum(axis=1), (S, 1))], axis=1)
        sums -= (loadings * scored[:, None, :]).sum(axis=2)
        own_noise = noise.sum(axis=1) - (scored * np.take_along_axis(noise, items, axis=1)).sum(axis=1)
        sides = np.stack([(scaled @ rest[:, :, None])[:, :, 0], sums], axis=2)
        solved = np.linalg.solve(np.eye(centre.shape[1]) + scaled @ loadings.swapaxes(1, 2), sides)
        a = solved[:, :, 0] - centre
        variance = (sums * solved[:, :, 1]).sum(axis=1) + np.maximum(own_noise, 0.0)
        change = ABILITY_SD * (a[:, None, :D] @ slopes)[:, 0] + a[:, D:] @ fixed
        return np.clip(p + change, 0.0, 1.0), variance / n**2
