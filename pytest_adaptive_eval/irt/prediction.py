"""Predict unadministered scores from an item response model and the common components of its residuals.

About a subject's estimated ability, its scores are ``p + w (theta - estimate) + Z' a + e``: p and w are the predicted
scores and their slopes by ability, and a ~ N(0, I). The rows of Z are the residuals of the calibration subjects, a
shift of the subject's own, and a slope along the items' mean scores. The variance of e is that of a score of
probability p, times a constant. One solve of the size of Z predicts all scores, with their common error.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from pytest_adaptive_eval.types import Array, Ints

LEAST_VARIANCE = 0.01  #: Smallest variance p(1-p) of a score.
ABILITY_SD = 1.5  #: Standard deviation of abilities in logits, wider than that of the calibration subjects, 1.
CELLS = 1 << 16  #: Subjects times rows times items that are summed up at once: arrays of 512 KiB.


@dataclass(frozen=True, slots=True)
class Design:
    """Draws and estimate of interviews of about `count` items, chosen by their error on held-out families.

    Args:
        policy: Policy that the design is for.
        count: Items of an interview.
        selector: Selector of the first items.
        uniform: Share of the items, the last ones, that are drawn uniformly.
        residual: Weight of the calibration subjects' residuals; with 0 the item response model predicts alone.
        shift, slope: Standard deviations of the subject's own shift, and of the slope in units of it.
        noise: Variance of an item's own part, in units of p(1-p).
        weight: Weight, in [0, 1], of the difference estimator: predictions from the first items alone, corrected by the
            mean error of the uniform draws, which is unbiased however wrong the predictions are.
        error: Mean absolute error of the accuracy for held-out families.
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
    error: float = math.nan

    def __post_init__(self) -> None:
        shares = self.uniform, self.weight
        finite = (self.residual, self.shift, self.slope, self.noise)
        named = self.policy in ("estimate", "form") and self.selector in ("variance", "form")
        in_range = all(0.0 <= x <= 1.0 for x in shares) and all(math.isfinite(x) and x >= 0.0 for x in finite)
        if not named or self.count < 1 or not in_range or self.noise == 0.0:
            raise ValueError(f"a design is malformed: {self!r:.200}")

    def chosen(self, count: int) -> int:
        """Return how many of `count` items come before the uniform draws."""
        return count - round(self.uniform * count)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of the bank's file; an unknown `error` is left out."""
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

    Args:
        theta: Shape (S, D).
        probability: Shape (S, n).
        slopes: Shape (S, D, n). Derivatives of the predicted scores by ability.
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

    Args:
        residuals: Shape (m, n). Residuals of the calibration subjects times the roots of their weights, or their
            leading components.
        level: Shape (n,). Standardised mean scores of the items.
        order: Shape (n,). All items; each most lowers the variance of the bank's mean score after those before it.
        hash: Hash of all of these.

    Raises:
        ValueError: Shapes do not match, a value is not finite, or `order` is not a permutation.
    """

    residuals: Array
    level: Array
    order: Ints
    designs: tuple[Design, ...] = ()
    hash: str = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.level)
        fits = self.residuals.ndim == 2 and self.residuals.shape[1] == n
        finite = np.isfinite(self.residuals).all() and np.isfinite(self.level).all()
        if not (fits and finite and np.array_equal(np.sort(self.order), np.arange(n))):
            raise ValueError(
                f"residuals of shape {self.residuals.shape} for {n} items; they or the levels are not finite, or the "
                "form's order does not have each item once"
            )
        digest = hashlib.sha256(repr([design.to_json() for design in self.designs]).encode())
        for array, kind in ((self.residuals, "<f4"), (self.level, "<f4"), (self.order, "<i4")):
            array.setflags(write=False)
            digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        object.__setattr__(self, "hash", digest.hexdigest()[:16])

    def design(self, policy: str, count: int) -> Design | None:
        """Return the design of a policy for the count nearest to `count` by ratio, or None."""
        designs = [design for design in self.designs if design.policy == policy]
        return min(designs, key=lambda design: max(design.count, count) / min(design.count, count), default=None)

    def predict(self, design: Design, curves: Curves, items: Ints, scores: Array) -> tuple[Array, Array]:
        """Return what `Evidence.predict` returns, for one design."""
        return Evidence(self, [design], curves, items, scores).predict(design)


class Evidence:
    """Scores of S subjects, summed up once for the predictions by several designs.

    Args:
        designs: Residuals are summed up if one of them uses these.
        items, scores: Shape (S, k). NaN marks a missing score, whose item is predicted as those not in `items` are.
    """

    def __init__(
        self, predictor: Predictor, designs: Sequence[Design], curves: Curves, items: Ints, scores: Array
    ) -> None:
        self.items = items
        self.scores = scores
        self._curves = curves
        theta, p, slopes = curves
        (S, D), (n,) = theta.shape, predictor.level.shape
        self._level = predictor.level
        self._residuals = predictor.residuals[: len(predictor.residuals) * any(design.residual for design in designs)]
        scored = ~np.isnan(scores)
        noise = np.maximum(p * (1.0 - p), LEAST_VARIANCE)
        item_noise = np.take_along_axis(noise, items, axis=1)
        #: Sum of the variances of e over the items without a score, at a noise of 1, shape (S,).
        self._own_noise = np.maximum(noise.sum(axis=1) - (scored * item_noise).sum(axis=1), 0.0)
        by_ability = np.take_along_axis(slopes, items[:, None, :], axis=2).swapaxes(1, 2)  # (S, k, D)
        # the ability's prior is about 0, and the scores are expanded about the estimate
        rest = np.where(scored, scores, 0.0) - np.take_along_axis(p, items, axis=1)
        rest += (by_ability @ theta[:, :, None])[:, :, 0]
        weights = scored / item_noise
        K = D + 2 + len(self._residuals)
        asked = np.zeros(n, dtype=bool)
        asked[items] = True
        rank = asked.cumsum() - 1
        columns = np.concatenate([np.ones((1, rank[-1] + 1)), self._level[None, asked], self._residuals[:, asked]]).T
        columns = np.ascontiguousarray(columns)
        # the smaller system of equations is solved, of Z's rows or of the items
        self._by_items = 2 * items.shape[1] <= K
        #: Z at constants of 1 at the scored items, in units of the standard deviation of e, shape (S, k, K), or the
        #: products of its rows, shape (S, K, K).
        self._loadings = np.empty((S, items.shape[1] if self._by_items else K, K))
        #: Products of the rows with the scores, in units of the variance of e, shape (S, K).
        self._answers = np.empty((S, K))
        self._sums = np.empty((S, K))  #: Sums of the rows over the items without a score, shape (S, K).
        self._sums[:, :D], self._sums[:, D] = ABILITY_SD * slopes.sum(axis=2), n
        self._sums[:, D + 1], self._sums[:, D + 2 :] = self._level.sum(), self._residuals.sum(axis=1)
        step = max(1, CELLS // (K * max(items.shape[1], 1)))
        for first in range(0, S, step):
            part = slice(first, first + step)
            loadings = np.concatenate([ABILITY_SD * by_ability[part], columns.take(rank[items[part]], axis=0)], axis=2)
            scaled = loadings * weights[part, :, None]
            if self._by_items:
                self._loadings[part] = loadings * np.sqrt(weights[part, :, None])
            else:
                self._loadings[part] = loadings.swapaxes(1, 2) @ scaled
            self._answers[part] = (rest[part, None, :] @ scaled)[:, 0]
            self._sums[part] -= (scored[part, None, :] @ loadings)[:, 0]

    def predict(self, design: Design) -> tuple[Array, Array]:
        """Return predicted scores of all items, and the variance of the mean of those without a score.

        Args:
            design: Its constants are used.

        Returns:
            predictions: Shape (S, n).
            variance: Shape (S,). Of the bank's mean score, by the model.
        """
        theta, p, slopes = self._curves
        D = theta.shape[1]
        n = p.shape[1]
        # rows of Z from the front on, of which those of the design's shift may be 0
        if design.residual:
            count = self._sums.shape[1]
        else:
            count = D + 2 * (design.shift > 0.0)
        factors = np.full(count, math.sqrt(design.residual))
        factors[:D], factors[D : D + 2] = 1.0, [design.shift, design.shift * design.slope][: count - D]
        sums = self._sums[:, :count] * factors
        sides = np.stack([self._answers[:, :count] * (factors / design.noise), sums], axis=2)
        if self._by_items:
            rows = self._loadings[:, :, :count] * (factors / math.sqrt(design.noise))
            within = rows @ rows.swapaxes(1, 2) + np.eye(rows.shape[1])
            solved = sides - rows.swapaxes(1, 2) @ np.linalg.solve(within, rows @ sides)
        else:
            products = self._loadings[:, :count, :count] * (factors[:, None] * factors / design.noise)
            solved = np.linalg.solve(products + np.eye(count), sides)
        a = solved[:, :, 0]
        by_sums = solved[:, :, 1]
        variance = (sums * by_sums).sum(axis=1) + design.noise * self._own_noise
        along = a * factors
        ability = ABILITY_SD * along[:, :D] - theta
        if D == 1:
            predictions = ability * slopes[:, 0]
        else:
            predictions = (ability[:, None] @ slopes)[:, 0]
        predictions += p
        if design.shift:
            predictions += along[:, [D]] + along[:, [D + 1]] * self._level
        if design.residual:
            predictions += along[:, D + 2 :] @ self._residuals
        return np.clip(predictions, 0.0, 1.0, out=predictions), variance / n**2
