"""Abilities that all items would give, estimated from randomly drawn items on a bank of any quality.

The ability maximises the log-likelihood of the answers to all items under a standard normal prior, within the limits of
each component. Where it is inside of them, it solves the score equations of `estimation.MAP` ::

    sum_i A_i (r_i - p_i(theta)) = theta

The sum over all items defines the target ability. From draws with known propensities q the sum itself is estimated,
one draw at a time ::

    U_t(theta) = sum of A_i (r_i - p_i) before t + A_t (r_t - p_t) / q_t

The mean of the U_t gives each drawn item a weight. The weighted fit tends to the same ability for any answers (Binder
1983). Its standard error is the larger of two: the spread of the U_t through the inverse information, and the model's
standard error from the unadministered items. Gates do not rest on it, see `claims.score_equations`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Bools

ITERATIONS, TOLERANCE = 100, 1e-7


@dataclass(frozen=True, slots=True)
class WeightedAbility:
    """Abilities of one subject, shape (D,), with approximate standard errors over repeated draws, in logits."""

    theta: Array
    standard_error: Array


def limits(bank: ItemBank) -> tuple[Array, Array]:
    """Return the least and the largest value of each component, shape (D,); infinite on a bank without formats."""
    scale = bank.in_formats
    if scale is None:
        unlimited = np.full(bank.dimensions, np.inf)
        return -unlimited, unlimited
    ends = np.array([[0.0], [scale.items.bound]]) * np.ones(bank.dimensions)
    low, high = scale.standing(ends)
    return low, high


def information(bank: ItemBank, theta: Array) -> Array:
    """Return the information of all items and the prior at abilities (..., D), shape (..., D, D)."""
    A = bank.discrimination
    weight = irt.weight(irt.probability(np.atleast_2d(theta), A, bank.intercept))
    shape = (*theta.shape, bank.dimensions)
    squares = (A[:, :, None] * A[:, None, :]).reshape(len(bank), -1)
    return np.asarray((weight @ squares).reshape(shape) + np.eye(bank.dimensions))


def item_weights(log: DesignLog) -> Array:
    """Return the weight of each administration in the mean of the one-draw estimates, shape (t,)."""
    t = len(log)
    if t == log.size:
        return np.ones(t)
    order = np.arange(t)
    draws = t - log.take_all
    weights = (t - 1 - order + 1.0 / log.propensities) / draws
    return np.where(order < log.take_all, 1.0, weights)


def fit(bank: ItemBank, log: DesignLog, theta: Array, free: Bools) -> Array:
    """Return the abilities of the highest weighted posterior, shape (D,).

    Args:
        log: Without missing scores.
        theta: Shape (D,). Start, within `limits`; components that are not `free` keep their value.
    """
    low, high = limits(bank)
    slopes = bank.discrimination[log.items]
    intercepts = bank.intercept[log.items]
    weights = item_weights(log)
    longest = 1.0
    last = np.zeros(len(theta))
    for _ in range(ITERATIONS):
        p = irt.probability(theta[None], slopes, intercepts)[0]
        gradient = slopes.T @ (weights * (log.scores - p)) - theta
        at_limit = (theta <= low) & (gradient < 0.0) | (theta >= high) & (gradient > 0.0)
        moved = np.flatnonzero(free & ~at_limit)
        if not len(moved):
            break
        step = np.zeros(len(theta))
        step[moved] = np.linalg.solve(information(bank, theta)[np.ix_(moved, moved)], gradient[moved])
        if step @ last < 0:
            longest *= 0.5
        size = float(np.abs(step).max())
        last = step * min(1.0, longest / max(size, 1e-300))
        theta = np.clip(theta + last, low, high)
        if size < TOLERANCE:
            break
    return theta


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
    dimensions = bank.dimensions
    theta = fit(bank, log, np.clip(np.zeros(dimensions), *limits(bank)), np.ones(dimensions, dtype=bool))
    slopes = bank.discrimination[log.items]
    covariance = np.linalg.inv(information(bank, theta))
    # decoding noise moves the observed scores off their expectations, see `inference.noise.widen_for_noise`
    noise_error = np.sqrt((covariance @ (slopes.T @ slopes) @ covariance).diagonal() * log.noise)
    if whole:
        return WeightedAbility(theta, noise_error)
    p = irt.probability(theta[None], slopes, bank.intercept[log.items])[0]
    scored = slopes * (log.scores - p)[:, None]
    estimates = (scored.cumsum(axis=0) - scored + scored / log.propensities[:, None])[log.take_all :]
    t = len(estimates)
    moves = (estimates - estimates.mean(axis=0)) @ covariance  # change of each ability by each draw
    drawn_information = (slopes * irt.weight(p)[:, None]).T @ slopes + np.eye(dimensions)
    unadministered = np.linalg.inv(drawn_information) - covariance
    variance = np.maximum((moves**2).sum(axis=0) / (t * (t - 1)), unadministered.diagonal())
    return WeightedAbility(theta, np.sqrt(np.maximum(variance, 0.0)) + noise_error)
