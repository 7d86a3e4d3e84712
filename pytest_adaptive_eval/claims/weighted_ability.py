"""Abilities that all items would give, estimated from randomly drawn items on a bank of any quality.

The ability solves ``sum_i A_i (r_i - p_i(theta)) = theta`` (Fisher scoring of `estimation.MAP` with a standard normal
prior).  The sum over all items defines the target ability.  From draws with known propensities the sum itself is
estimated, one draw at a time ::

    U_t(theta) = sum of A_i (r_i - p_i) before t + A_t (r_t - p_t) / q_t

so that the solution of ``mean_t U_t(theta) = theta`` tends to the same ability for any answers (Binder 1983). Its error
is the larger of two: the spread of the U_t through the inverse information, and the model's standard error from the
unadministered items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

ITERATIONS, TOLERANCE = 60, 1e-7


@dataclass(frozen=True, slots=True)
class WeightedAbility:
    """Abilities of one subject, shape (D,), with standard errors over repeated draws.

    Args:
        theta, standard_error: Shape (D,). In logits.
        freedom: Shape (D,). Degrees of freedom of the errors: the effective number of draws, which is smaller if a few
            dominate.
    """

    theta: Array
    standard_error: Array
    freedom: Array


def weighted_ability(bank: ItemBank, log: DesignLog) -> WeightedAbility:
    """Estimate the ability that the answers to all items would give, from a fixed number of random draws.

    Args:
        bank: Bank without guessing.
        log: Draws of one subject, without missing scores; see `DesignLog.with_missing_as`.

    Raises:
        EstimationError: The log has no propensities, a missing score, or fewer than two draws.
    """
    whole = len(log) == len(bank)
    if (len(log.draws) < 2 and not whole) or np.isnan(log.propensities).any() or np.isnan(log.scores).any():
        usable = int((~np.isnan(log.propensities + log.scores)).sum())
        raise EstimationError(
            f"{usable} of {len(log)} draws have a propensity and a score; a weighted ability needs all, and 2 or more"
        )
    A, d, dimensions = bank.discrimination, bank.intercept, bank.dimensions
    slopes, intercepts = A[log.items], d[log.items]
    prior = np.eye(dimensions)

    def draws(theta: Array) -> Array:
        """Return the one-draw estimates, shape (t, D); items that were asked with probability 1 are none."""
        p = irt.probability(theta[None], slopes, intercepts)[0]
        scored = slopes * (log.scores - p)[:, None]
        before = scored.cumsum(axis=0) - scored
        return np.asarray(before + scored / log.propensities[:, None])[log.take_all :]

    def information(theta: Array, A: Array, d: Array) -> Array:
        weight = irt.weight(irt.probability(theta[None], A, d)[0])
        return np.asarray((A * weight[:, None]).T @ A + prior)

    theta, longest, last = np.zeros(dimensions), 1.0, np.zeros(dimensions)
    for _ in range(ITERATIONS):
        total = (
            slopes.T @ (log.scores - irt.probability(theta[None], slopes, intercepts)[0])
            if whole
            else draws(theta).mean(0)
        )
        step = np.linalg.solve(information(theta, A, d), total - theta)
        if step @ last < 0:
            longest *= 0.5
        size = float(np.abs(step).max())
        last = step * min(1.0, longest / max(size, 1e-300))
        theta = theta + last
        if size < TOLERANCE:
            break
    covariance = np.linalg.inv(information(theta, A, d))
    # decoding noise moves the observed scores off their expectations, see `inference.noise.widen_for_noise`
    noise_error = np.sqrt((covariance @ (slopes.T @ slopes) @ covariance).diagonal() * log.noise)
    if whole:
        return WeightedAbility(theta, noise_error, np.full(dimensions, np.inf))
    estimates = draws(theta)
    t = len(estimates)
    moves = (estimates - estimates.mean(axis=0)) @ covariance  # change of each ability by each draw
    squares = (moves**2).sum(axis=0)
    freedom = np.maximum(squares**2 / np.maximum((moves**4).sum(axis=0), 1e-300), 1.0)
    drawn_covariance = np.linalg.inv(information(theta, slopes, intercepts))
    variance = np.maximum(squares / (t * (t - 1)), (drawn_covariance - covariance).diagonal())
    return WeightedAbility(theta, np.sqrt(np.maximum(variance, 0.0)) + noise_error, freedom)
