"""Two-parameter logistic calibration by penalised marginal likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.core.estimation import MAP
from pytest_adaptive_eval.errors import EstimationError

__all__ = ["Calibration", "fit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fitted bank of n items from S subjects.

    Parameters
    ----------
    discrimination, intercept : array, shape (n,)
        p = expit(a theta + d), theta standard normal over the subjects.
    theta : array, shape (S,)
        MAP abilities of the calibration subjects, in logits.
    converged : bool
        Whether the largest change of a parameter fell below the tolerance.
    iterations : int
    change : float
        Largest change of a parameter in the last iteration.
    """

    discrimination: Array
    intercept: Array
    theta: Array
    converged: bool
    iterations: int
    change: float


def fit(
    responses: ArrayLike,
    *,
    log_slope_sd: float = 0.5,
    difficulty_sd: float = 2.0,
    nodes: int = 41,
    tolerance: float = 1e-4,
    limit: int = 2000,
) -> Calibration:
    """Fit a 2PL by expectation-maximisation (Bock & Aitkin 1981; Mislevy 1986 for the priors).

    Parameters
    ----------
    responses : array_like, shape (S, n)
        Scores in [0, 1]; NaN where missing.
    log_slope_sd : float
        Of the normal prior of log a, around 0; keeps every slope finite and above 0.
    difficulty_sd : float
        Of the normal prior of the intercept d, around 0, in logits; keeps items
        that everybody got right, or wrong, finite.
    nodes : int
        Quadrature points over theta in [-5, 5].
    tolerance : float
        On the largest change of log a or d in one iteration.
    limit : int
        Largest number of iterations.

    Raises
    ------
    EstimationError
        Fewer than two subjects, or a value outside [0, 1].
    """
    scores = np.asarray(responses, dtype=np.float64)
    if scores.ndim != 2 or len(scores) < 2:
        raise EstimationError(f"responses have shape {scores.shape}; at least two subjects (rows) are needed")
    seen = ~np.isnan(scores)
    if not ((scores[seen] >= 0) & (scores[seen] <= 1)).all():
        raise EstimationError("responses lie in [0, 1], with NaN where missing")
    right = np.where(seen, scores, 0.0)
    wrong = np.where(seen, 1.0 - scores, 0.0)
    grid = np.linspace(-5.0, 5.0, nodes)
    log_prior = -0.5 * grid**2
    items = scores.shape[1]
    log_a, d = np.zeros(items), np.zeros(items)
    change, iteration = np.inf, 0
    while iteration < limit and change >= tolerance:
        iteration += 1
        z = np.exp(log_a) * grid[:, None] + d
        log_p, log_q = -np.logaddexp(0.0, -z), -np.logaddexp(0.0, z)
        posterior = right @ log_p.T + wrong @ log_q.T + log_prior
        posterior = np.exp(posterior - posterior.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        step_a, step_d = _newton(
            log_a, d, grid, posterior.T @ right, posterior.T @ (right + wrong), log_slope_sd, difficulty_sd
        )
        log_a, d = log_a + step_a, d + step_d
        change = float(max(np.abs(step_a).max(), np.abs(step_d).max()))
    a = np.exp(log_a)
    shape = scores.shape
    estimator = MAP()
    theta = estimator.estimate(
        scores, np.broadcast_to(a[:, None], (*shape, 1)), np.broadcast_to(d, shape), None, estimator.prior(shape[0], 1)
    ).theta[:, 0]
    return Calibration(a, d, theta, change < tolerance, iteration, change)


def _newton(
    log_a: Array, d: Array, grid: Array, right: Array, count: Array, sd_a: float, sd_d: float
) -> tuple[Array, Array]:
    """One Fisher-scoring step of every item in (log a, d), given expected counts (nodes, items)."""
    a = np.exp(log_a)
    slope = a * grid[:, None]
    p = 1.0 / (1.0 + np.exp(-(slope + d)))
    residual = right - count * p
    w = count * p * (1.0 - p)
    g_a = (slope * residual).sum(axis=0) - log_a / sd_a**2
    g_d = residual.sum(axis=0) - d / sd_d**2
    h_aa = (slope**2 * w).sum(axis=0) + 1.0 / sd_a**2
    h_ad = (slope * w).sum(axis=0)
    h_dd = w.sum(axis=0) + 1.0 / sd_d**2
    determinant = h_aa * h_dd - h_ad**2
    step_a = (h_dd * g_a - h_ad * g_d) / determinant
    step_d = (h_aa * g_d - h_ad * g_a) / determinant
    return step_a.clip(-1.0, 1.0), step_d.clip(-2.0, 2.0)
