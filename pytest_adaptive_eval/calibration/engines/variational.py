"""Fit engine ``map``: item parameters by penalised marginal likelihood.

The logistic likelihood is bounded from below by a Gaussian (Jaakkola & Jordan 2000), abilities are integrated out under
that bound (Tipping 1999 for binary factors), and every block of the bound has its maximum in closed form. The normal
prior of the items' parameters is learned with them (empirical Bayes). An item that all subjects got right, or a
dimension that explains nothing, therefore stays finite without a tuning constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.calibration.curvature import curvature_at
from pytest_adaptive_eval.calibration.engine import Calibration, FitEngine, FitSettings, Progress
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.ties import first_largest
from pytest_adaptive_eval.types import Array

#: Item response models by the name used in settings.
MODELS = ("1pl", "2pl", "2pl-shrunk", "3pl", "mirt")
#: Standard deviation of the slopes' prior in ``2pl-shrunk``, in units of the one that ``2pl`` learns.
SHRUNK = 0.5
#: Default dimensions of ``mirt``, or one less than there are subjects; more than the data bear shrink away.
DIMENSIONS = 4

#: Beta prior of a 3PL item's guess floor: mean .2, as of five choices, worth twenty responses.
GUESS_PRIOR = (5.0, 17.0)
#: Lower limit of the variance of the items' prior in any direction, in squared logits.
VARIANCE_FLOOR = 1e-4
#: Below three times this change, or the tolerance, abilities are no longer standardised: with the variance floor,
#: standardising converges near the maximum only, and rotates the dimensions there without end.
FAR = 1e-4
#: Iterations with the starting prior, before it is learned.
WARM_UP = 5
#: Above so many responses 32-bit numbers are used, which takes six tenths of the time. On public matrices parameters
#: move by 1e-6 to 1e-5 logits, where the tolerance is 1e-3.
LARGE = 100_000
#: Sums over subjects or items of so many factors are made one by one.
FEW_ROWS = 3
#: Responses whose bound is tightened at once: arrays of 128 KiB, which fit into a processor's cache.
AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Fitted items and subjects: p = c + (1 - c) expit(A . theta + d).

    Args:
        discrimination: Shape (n, D). A, in logits per standard deviation of ability. Dimensions are uncorrelated,
            ordered by what they explain, with A of positive mean.
        intercept, guess: Shape (n,). d in logits, and c in [0, 1).
        covariance: Shape (n, D + 1, D + 1). Posterior covariance of each item's (A, d).
        theta: Shape (S, D). Posterior means of the calibration subjects; their prior is standard normal.
        converged: Whether the change and the gradient fell below the tolerance.
        interrupted: Whether Ctrl-C ended it; the state is the last complete one.
        change: Largest change of an item's parameter in the last iteration, in logits.
        gradient: Root mean square of the objective's derivative by the items' parameters, per response.
    """

    model: str
    discrimination: Array
    intercept: Array
    guess: Array
    covariance: Array
    theta: Array
    converged: bool
    interrupted: bool
    iterations: int
    change: float
    gradient: float

    def probability(self) -> Array:
        """Return predicted scores of the calibration subjects, shape (S, n)."""
        z = self.theta @ self.discrimination.T + self.intercept
        return np.asarray(self.guess + (1.0 - self.guess) / (1.0 + np.exp(-z)))


def fit_map(
    responses: ArrayLike,
    *,
    model: str = "2pl",
    dimensions: int | None = None,
    tolerance: float = 1e-3,
    limit: int = 2000,
    device: str | None = None,
    start: Fit | None = None,
    progress: Progress | None = None,
    weights: Array | None = None,
    slope_scale: float | None = None,
) -> Fit:
    """Fit items to responses.

    Args:
        responses: Shape (S, n). Scores in [0, 1]; NaN where missing, but not for a whole row or column. A fraction r
            counts as r right and 1 - r wrong answers.
        model: ``1pl`` has one slope for all items. The bound biases the guessing parameters of ``3pl`` downwards, by a
            quarter to a half with thousands of subjects.
        dimensions: D, for ``mirt`` (default 4); the others have one. Too many do no harm, because the prior of a
            dimension that explains nothing shrinks.
        tolerance: Limit of the largest change of a parameter in one iteration, in logits. Half of it limits the
            gradient per response.
        limit: Largest number of iterations; if it ends the fit, `Fit.converged` is False.
        device: A torch device such as ``cuda``; numpy when omitted.
        start: Starting values: a fit of the same items.
        progress: Called with the iteration and the change.
        weights: Shape (S,). Number of subjects that each row counts for in the items' parameters and in the scale of
            abilities; one when omitted.
        slope_scale: Keep the prior of the `start`, with the standard deviation of its slopes times this, instead of
            learning it.

    Raises:
        EstimationError: Dimensions that the model does not have, or too few subjects for them.
    """
    scores = np.asarray(responses, dtype=np.float64)
    D = _dimensions(scores, model, dimensions)
    state = _State(scores, model, D, device, start, weights)
    if slope_scale is not None:
        state.scale_slopes(slope_scale)
    complete = vars(state).copy()
    interrupted = False
    far = True
    change = gradient = np.inf
    iteration = 0

    def converged() -> bool:
        return change < tolerance and gradient < tolerance / 2

    try:
        while iteration < limit and not converged():
            far = far and change > 3 * max(tolerance, FAR)
            learn = slope_scale is None and (start is not None or iteration >= WARM_UP)
            change, gradient = state.step(learn=learn, standardise=far)
            complete = vars(state).copy()
            iteration += 1
            if progress is not None:
                progress(iteration, change)
    except KeyboardInterrupt:
        interrupted = True
        vars(state).update(complete)  # half a step may have turned abilities and not yet items
    return state.result(converged(), interrupted, iteration, change, gradient)


def _dimensions(scores: Array, model: str, dimensions: int | None) -> int:
    """Return the number of dimensions of a fit that is possible."""
    D = dimensions
    if D is None:
        D = DIMENSIONS if model == "mirt" else 1
    if D < 1 or (model != "mirt" and D != 1) or len(scores) <= D:
        raise EstimationError(
            f"{D} dimensions with model {model!r} and {len(scores)} subjects: only mirt has more than one dimension, "
            "and there must be more subjects than dimensions"
        )
    return D


def _starting_abilities(scores: Array, D: int, weights: Array | None) -> Array:
    """Return standardised log-odds of the mean score, and principal components of the residuals, shape (S, D)."""
    mean = np.nanmean(scores, axis=1)
    first = np.log((mean + 0.02) / (1.02 - mean))
    theta = np.zeros((len(scores), D))
    centred = first - np.average(first, weights=weights)
    spread = float(np.sqrt(np.average(centred**2, weights=weights)))
    theta[:, 0] = centred / max(spread, 1e-9)
    if D > 1:
        rest = scores - mean[:, None] - np.nanmean(scores, axis=0) + np.nanmean(scores)
        rest = np.nan_to_num(rest)
        # the smaller Gram matrix has a decomposition that is more reliable than one of the whole matrix
        if len(rest) <= rest.shape[1]:
            _, vectors = np.linalg.eigh(rest @ rest.T)
            parts = vectors[:, ::-1][:, : D - 1]
        else:
            _, vectors = np.linalg.eigh(rest.T @ rest)
            parts = rest @ vectors[:, ::-1][:, : D - 1]
            parts /= np.maximum(np.linalg.norm(parts, axis=0), 1e-9)
        signs = np.sign(parts[first_largest(np.abs(parts.T)), np.arange(D - 1)])
        theta[:, 1:] = parts * signs * len(scores) ** 0.5
    return theta


class _State:
    """Blocks of the bound, on numpy or torch, which share the function names used here.

    Arrays have the axis of items or subjects last. No operation then goes over axes of a few elements.
    """

    def __init__(
        self, scores: Array, model: str, D: int, device: str | None, start: Fit | None, weights: Array | None = None
    ) -> None:
        self.model = model
        self.D = D
        xp: Any = np
        small = scores.size <= LARGE
        real: Any = np.float64 if small else np.float32
        make: Callable[[Any], Any] = lambda a: np.asarray(a, dtype=real)  # noqa: E731
        if device is not None:
            import torch

            xp = torch
            real = torch.float64 if small else torch.float32
            make = lambda a: torch.as_tensor(np.ascontiguousarray(a), dtype=real, device=device)  # noqa: E731
        self.xp = xp
        observed = ~np.isnan(scores)
        S, n = scores.shape
        counted: Any = observed
        self.weights: Any = None
        if weights is not None:
            counted = weights[:, None] * observed
            self.weights = make(weights)
        mean = np.clip((np.nan_to_num(scores) * counted).sum(axis=0) / counted.sum(axis=0), 0.03, 0.97)
        level = np.log(mean / (1.0 - mean))
        self.responses = float(counted.sum())
        self.score = make(np.nan_to_num(scores))
        self.observed: Any = None
        self.half: Any = 0.5
        if not observed.all():
            self.observed = make(observed)
            self.half = 0.5 * self.observed
        self.centred = self.score - self.half
        guess = 0.2 if model == "3pl" else 0.0
        self.guess = make(np.full(n, guess))
        B = np.zeros((D + 1, n))
        B[0] = 0.7
        B[D] = level
        C = np.zeros((D + 1, D + 1, n))
        mean0 = np.r_[0.7, np.zeros(D - 1), level.mean()]
        cov0 = np.diag(np.r_[np.full(D, 0.5), 2.0])
        if start is not None:
            B[:D] = start.discrimination.T
            B[D] = start.intercept
            C = np.moveaxis(start.covariance, 0, -1)
            self.guess = make(start.guess)
            mean0 = B.mean(axis=1)
            cov0 = np.cov(B, bias=True) + C.mean(axis=2) + VARIANCE_FLOOR * np.eye(D + 1)
        #: Rows and columns of the upper triangle of a symmetric matrix, and the place there of each of its elements.
        rows, columns = np.triu_indices(D + 1)
        self.upper = rows.tolist(), columns.tolist()
        entries = np.zeros((D + 1, D + 1), dtype=np.int64)
        entries[rows, columns] = entries[columns, rows] = np.arange(len(rows))
        self.place = entries
        self.twice = make(np.where(rows == columns, 1.0, 2.0)[:, None])
        #: (A, d) of the items, shape (D + 1, n), with their covariance (D + 1, D + 1, n); abilities (D, S), theirs V.
        self.B = make(B)
        self.C = make(C)
        self.theta = make(_starting_abilities(scores, D, weights).T)
        self.V = make(np.broadcast_to(0.05 * np.eye(D)[:, :, None], (D, D, S)).copy())
        self.mean = make(mean0)
        self.cov = make(cov0)
        self.eye = make(np.eye(D + 1))
        self.ones = make(np.ones((1, S)))
        #: Twice lambda(xi), the curvature of the bound, 0 where missing; shape (S, n).
        self.curvature = self._seen(curvature_at(1.0 + 0.0 * self.score, xp), slice(None))
        #: Upper triangles of E[B B'], shape (U, n), and of E[phi phi'], with phi = (theta, 1), shape (U, S).
        self.EB = self._item_moments()
        self.Ephi = self._subject_moments()
        self.target = self._target()
        if start is not None:  # the start may be of other subjects, so abilities follow from its items
            self._abilities()
            self._tighten()

    def scale_slopes(self, scale: float) -> None:
        """Multiply the standard deviations of the slopes' prior."""
        factor = self.xp.ones_like(self.mean)
        factor[: self.D] = scale
        self.cov = self.cov * factor[:, None] * factor

    def _item_moments(self) -> Any:
        rows, columns = self.upper
        return self.B[rows] * self.B[columns] + self.C[rows, columns]

    def _phi(self) -> Any:
        return self.xp.concatenate([self.theta, self.ones], 0)

    def _subject_moments(self) -> Any:
        phi = self._phi()
        rows, columns = self.upper
        moments = phi[rows] * phi[columns]
        for k, (i, j) in enumerate(zip(rows, columns, strict=True)):
            if j < self.D:
                moments[k] += self.V[i, j]
        return moments

    def _seen(self, curvature: Any, rows: slice) -> Any:
        """Return the curvature of rows, 0 where missing."""
        if self.observed is None:
            return curvature
        return curvature * self.observed[rows]

    def _tighten(self) -> None:
        """Set every xi to the root mean square of its logit, where the bound is tight."""
        phi = (self.twice * self.Ephi).T
        n = self.EB.shape[1]
        step = max(1, AT_ONCE // n)
        for first in range(0, len(phi), step):
            rows = slice(first, first + step)
            self.curvature[rows] = self._seen(curvature_at(phi[rows] @ self.EB, self.xp), rows)

    def _sums(self, factors: Any, matrix: Any) -> Any:
        """Return ``factors @ matrix``, of shapes (k, m) and (m, l); row by row takes half the time if they are few."""
        if len(factors) > FEW_ROWS:
            return factors @ matrix
        return self.xp.stack([row @ matrix for row in factors])

    def _weighted(self, values: Any) -> Any:
        """Return values (..., S) times the subjects' weights."""
        if self.weights is None:
            return values
        return values * self.weights

    @staticmethod
    def _inverse(matrices: Any) -> Any:
        """Return the inverses of positive definite matrices (F, F, ...)."""
        inverse = matrices * 1.0
        for k in range(len(matrices)):
            pivot = 1.0 / inverse[k, k]
            row = inverse[k] * pivot
            column = inverse[:, k] * 1.0
            row[k] = pivot
            column[k] = 0.0
            inverse[:, k] = 0.0
            inverse -= column[:, None] * row
            inverse[k] = row
        return inverse

    def _average(self, values: Any) -> Any:
        """Return the weighted mean over subjects of values (..., S)."""
        if self.weights is None:
            return values.mean(-1)
        return self._weighted(values).sum(-1) / self.weights.sum()

    def _target(self) -> Any:
        """Return the score less one half; with guessing, scores are weighted by the probability of no guess."""
        if self.model != "3pl":
            return self.centred
        z = self.theta.T @ self.B[:-1] + self.B[-1]
        not_guessed = 1.0 / (1.0 + self.guess * self.xp.exp(-self.xp.clip(z, -30.0, 30.0)))
        # of p = c + (1 - c) s, with s = expit(z), the share s / p is not guessed: 1 / (1 + c (1 - s) / s)
        right = self.score * not_guessed
        a, b = GUESS_PRIOR
        weights = self._weighted(self.ones)[0]
        guessed = weights @ (self.score - right) + a - 1.0
        not_known = weights @ (2.0 * self.half - right) + a + b - 2.0
        self.guess = guessed / not_known
        return right - self.half

    def _abilities(self) -> None:
        D = self.D
        EB = self.EB[:-1]
        sums = self._sums(EB, self.curvature.T)
        self.V = self._inverse(sums[self.place[:D, :D]] + self.eye[:D, :D, None])
        right = self._sums(self.B[:D], self.target.T) - sums[self.place[:D, D]]
        self.theta = (self.V * right).sum(1)
        self.Ephi = self._subject_moments()

    def _items(self) -> Any:
        """Update (A, d) of every item; return the derivative at the old ones."""
        right = self._sums(self._weighted(self._phi()), self.target)
        Ephi = self._weighted(self.Ephi)
        sums = self._sums(Ephi, self.curvature)
        data = sums[self.place]
        if self.model == "1pl":
            return self._one_slope(right, data)
        prior = self._inverse(self.cov)
        precision = data + prior[:, :, None]
        right = right + (prior @ self.mean)[:, None]
        derivative = right - (precision * self.B).sum(1)
        self.C = self._inverse(precision)
        self.B = (self.C * right).sum(1)
        return derivative

    def _one_slope(self, right: Any, data: Any) -> Any:
        """Update the Rasch model: intercepts given the slope, then the common slope."""
        weight = 1.0 / self.cov[1, 1]
        precision = data[1, 1] + weight
        slope = self.B[0, 0]
        by_slope = right[0] - data[0, 0] * slope - data[0, 1] * self.B[1]
        of_intercept = right[1] + weight * self.mean[1] - data[0, 1] * slope
        derivative = self.xp.stack([by_slope, of_intercept - precision * self.B[1]])
        derivative[0] = derivative[0].mean()  # one parameter, so the mean is what has to vanish
        d = of_intercept / precision
        slope = (right[0] - data[0, 1] * d).sum() / data[0, 0].sum()
        self.B = self.xp.stack([0.0 * d + slope, d])
        self.C = 0.0 * self.C
        self.C[1, 1] = 1.0 / precision
        return derivative

    def _standardise(self) -> None:
        """Standardise abilities and transform the items inversely: logits stay, and EM converges faster."""
        xp = self.xp
        D = self.D
        mean = self._average(self.theta)
        centred = self.theta - mean[:, None]
        total = centred.shape[1]
        if self.weights is not None:
            total = self.weights.sum()
        covariance = self._weighted(centred) @ centred.T / total + self._average(self.V)
        root = xp.linalg.cholesky(covariance)
        inverse = xp.linalg.inv(root)
        self.theta = inverse @ centred
        self.V = self._turned(inverse, self.V)
        turn = 1.0 * self.eye
        turn[:D, :D] = root.T
        turn[D, :D] = mean
        self.B = turn @ self.B
        self.C = self._turned(turn, self.C)

    def _turned(self, turn: Any, matrices: Any) -> Any:
        """Return ``turn M turn'`` of matrices M, shape (F, F, m)."""
        return (self.xp.kron(turn, turn) @ matrices.reshape(len(turn) ** 2, -1)).reshape(matrices.shape)

    def step(self, learn: bool, standardise: bool) -> tuple[float, float]:
        """Update all blocks once; return the largest change and the gradient, see `Fit`."""
        xp = self.xp
        old = self.B
        derivative = self._items()
        self.EB = self._item_moments()
        self._abilities()
        if standardise:
            self._standardise()
            self.EB = self._item_moments()
            self.Ephi = self._subject_moments()
        if learn:
            self.mean = self.B.mean(1)
            self.cov = self.EB.mean(1)[self.place] - self.mean[:, None] * self.mean + VARIANCE_FLOOR * self.eye
        self._tighten()
        self.target = self._target()
        per_item = self.responses / self.B.shape[1]
        return float(xp.abs(self.B - old).max()), float(xp.sqrt((derivative**2).mean())) / per_item

    def result(self, converged: bool, interrupted: bool, iterations: int, change: float, gradient: float) -> Fit:
        """Return the state as a `Fit`, its dimensions rotated to principal ones."""

        def plain(array: Any) -> Array:
            if hasattr(array, "cpu"):
                array = array.cpu()
            return np.asarray(array, dtype=np.float64)

        D = self.D
        B = plain(self.B).T
        C = np.moveaxis(plain(self.C), -1, 0)
        theta = plain(self.theta).T
        _, turn = np.linalg.eigh(B[:, :D].T @ B[:, :D])
        turn = turn[:, ::-1]
        turn = turn * np.where((B[:, :D] @ turn).mean(axis=0) < 0, -1.0, 1.0)
        whole = np.eye(D + 1)
        whole[:D, :D] = turn
        return Fit(
            self.model,
            B[:, :D] @ turn,
            B[:, D],
            plain(self.guess),
            whole.T @ C @ whole,
            theta @ turn,
            converged,
            interrupted,
            iterations,
            change,
            gradient,
        )


def _calibrate(
    scores: Array,
    settings: FitSettings,
    progress: Progress | None,
    weights: Array | None = None,
    shared_fits: dict[Any, Any] | None = None,
) -> Calibration:
    """Fit the items with the settings of a calibration; ``2pl-shrunk`` starts from the fit of ``2pl``."""
    dimensions = settings.dimensions
    if settings.model == "mirt" and dimensions is None:
        dimensions = max(1, min(DIMENSIONS, len(scores) - 1))
    shrunk = settings.model == "2pl-shrunk"
    model = "2pl" if shrunk else settings.model
    options: dict[str, Any] = {
        "model": model,
        "device": settings.device,
        "progress": progress,
        "weights": weights,
    }
    if settings.limit is not None:
        options["limit"] = settings.limit
    if shared_fits is None:
        shared_fits = {}
    if (model, dimensions) not in shared_fits:
        shared_fits[model, dimensions] = fit_map(scores, dimensions=dimensions, **options)
    fit: Fit = shared_fits[model, dimensions]
    if shrunk and not fit.interrupted:
        fit = fit_map(scores, start=fit, slope_scale=SHRUNK, **options)
    slope = np.sqrt((fit.discrimination**2).sum(axis=1))
    about = {
        "engine": "map",
        "dimensions": fit.discrimination.shape[1],
        "iterations": fit.iterations,
        "change": float(f"{fit.change:.3g}"),
        "gradient": float(f"{fit.gradient:.3g}"),
    }
    if shrunk:
        about["slope_scale"] = SHRUNK
    return Calibration(
        model,
        fit.discrimination,
        fit.intercept,
        fit.guess,
        np.sqrt(fit.covariance[:, -1, -1]) / np.maximum(slope, 0.1),
        fit.converged,
        fit.interrupted,
        about,
    )


REGISTERED = (FitEngine("map", "map is fast", MODELS, _calibrate, weighted=True, shares=True),)
