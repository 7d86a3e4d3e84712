"""Abilities from randomly drawn items as they would be from all items, whether or not the bank's model is right.

An ability is estimated by setting a sum over items to its prior's pull, ``sum_i A_i (r_i - p_i(theta)) = theta``
(Fisher scoring of `estimation.MAP` with a standard normal prior).  Over all items that gives *the* ability; from draws
with known chances the sum itself is estimated, one draw at a time ::

    U_t(theta) = sum of A_i (r_i - p_i) before t + A_t (r_t - p_t) / q_t

so that the solution of ``mean_t U_t(theta) = theta`` tends to the same ability for any answers whatever (Binder 1983).
Its error is the spread of the U_t through the inverse information, or what the model says of the answers not heard,
whichever is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["WeightedAbility", "weighted_ability"]

Array = NDArray[np.float64]

ITERATIONS, TOLERANCE = 60, 1e-7


@dataclass(frozen=True, slots=True)
class WeightedAbility:
    """Abilities of one subject, shape (D,), with errors over the draws that might have been.

    Parameters
    ----------
    theta, standard_error : array, shape (D,)
    freedom : array, shape (D,)
        Degrees of freedom of the errors: how many draws they rest on, fewer where some weigh much more than others.
    """

    theta: Array
    standard_error: Array
    freedom: Array


def weighted_ability(bank: ItemBank, log: DesignLog) -> WeightedAbility:
    """The ability that all answers would give, from those to a fixed number of random draws.

    Parameters
    ----------
    bank : ItemBank
        Without guess floors.
    log : DesignLog
        Of one subject, without missing scores; see `DesignLog.with_missing_as`.

    Raises
    ------
    EstimationError
        No propensities, a missing score, or fewer than two draws.
    """
    if len(log) < 2 or np.isnan(log.propensities).any() or np.isnan(log.scores).any():
        raise EstimationError("an ability is weighted from two random draws or more, all with a score")
    A, d, dimensions = bank.discrimination, bank.intercept, bank.dimensions
    drawn, base = A[log.items], d[log.items]
    prior = np.eye(dimensions)

    def draws(theta: Array) -> Array:
        """The one-draw estimates (t, D)."""
        p = irt.probability(theta[None], drawn, base)[0]
        scored = drawn * (log.scores - p)[:, None]
        before = scored.cumsum(axis=0) - scored
        return np.asarray(before + scored / log.propensities[:, None])

    def information(theta: Array, A: Array, d: Array) -> Array:
        weight = irt.weight(irt.probability(theta[None], A, d)[0])
        return np.asarray((A * weight[:, None]).T @ A + prior)

    whole = len(log) == len(bank)
    theta, longest, last = np.zeros(dimensions), 1.0, np.zeros(dimensions)
    for _ in range(ITERATIONS):
        total = drawn.T @ (log.scores - irt.probability(theta[None], drawn, base)[0]) if whole else draws(theta).mean(0)
        step = np.linalg.solve(information(theta, A, d), total - theta)
        if step @ last < 0:
            longest *= 0.5
        size = float(np.abs(step).max())
        last = step * min(1.0, longest / max(size, 1e-300))
        theta = theta + last
        if size < TOLERANCE:
            break
    everything = np.linalg.inv(information(theta, A, d))
    # the scores known are off what is expected of their items, see `inference.noise.widen_for_noise`
    by_luck = np.sqrt((everything @ (drawn.T @ drawn) @ everything).diagonal() * log.noise)
    if whole:
        return WeightedAbility(theta, by_luck, np.full(dimensions, np.inf))
    found = draws(theta)
    t = len(log)
    moves = (found - found.mean(axis=0)) @ everything  # what each draw moves each ability by
    squares = (moves**2).sum(axis=0)
    freedom = np.maximum(squares**2 / np.maximum((moves**4).sum(axis=0), 1e-300), 1.0)
    heard = np.linalg.inv(information(theta, drawn, base))
    variance = np.maximum(squares / (t * (t - 1)), (heard - everything).diagonal())
    return WeightedAbility(theta, np.sqrt(np.maximum(variance, 0.0)) + by_luck, freedom)
