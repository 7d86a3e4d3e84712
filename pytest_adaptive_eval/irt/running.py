"""Modes of posteriors that grow by one score after the other, without summing over all scores at every step.

In one dimension without guessing, the sums in the score function and in the information are smooth functions of the
ability.  Polynomials through Chebyshev nodes about the last mode stand for them, and a new score only adds its part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.irt.chebyshev import nodes, polynomials, transform
from pytest_adaptive_eval.irt.estimation import MAP, Estimate

__all__ = ["FEWEST", "RunningMAP"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

#: With fewer scores the sums are as fast.
FEWEST = 64
#: Largest distance of an item's logit from its value at the centre of the nodes, and the number of nodes: the
#: polynomials err by less than a part in 10^9, as `block_draws` derives it.
REACH, NODES = 0.3, 12


class RunningMAP:
    """Posterior modes of S subjects of one bank, whose scores grow.

    Parameters
    ----------
    method : MAP
    steepest : float
        Largest absolute slope of the bank's items.
    subjects : int
        S.
    """

    def __init__(self, method: MAP, steepest: float, subjects: int) -> None:
        self._method = method
        self._radius = REACH / max(steepest, 1e-9)
        self._precision = 1.0 / float(method.prior(1, 1).covariance[0, 0, 0])
        self._near = (method.tolerance / max(steepest, 1.0)) ** 0.5
        self._centre = np.full(subjects, np.inf)
        #: Coefficients of the sums of predicted scores times slopes, and of the information, shape (S, 2, NODES).
        self._sums = np.zeros((subjects, 2, NODES))
        self._right = np.zeros(subjects)
        self._known = 0

    def estimate(self, scores: Array, a: Array, d: Array, start: Estimate) -> Estimate:
        """Return the modes, as `MAP.estimate` does, from all scores (S, k) so far, and slopes and intercepts (S, k)."""
        scored = ~np.isnan(scores)
        a, scores = np.where(scored, a, 0.0), np.where(scored, scores, 0.0)
        new = slice(self._known, scores.shape[1])
        self._right += (a[:, new] * scores[:, new]).sum(axis=1)
        if np.isfinite(self._centre).all():
            self._sums += self._coefficients(np.arange(len(scores)), a[:, new], d[:, new])
        self._known = scores.shape[1]
        theta = start.theta[:, 0].copy()
        done, limit = np.zeros(len(theta), dtype=bool), np.full(len(theta), 2.0)
        last, information = theta, start.covariance[:, 0, 0]
        for i in range(self._method.iterations):
            x = self._places(theta, a, d)
            predicted, fisher = (polynomials(x, NODES)[:, None] * self._sums).sum(axis=2).T
            information = np.where(done, information, fisher + self._precision)
            step = (self._right - predicted - self._precision * (theta - self._method.mean)) / information
            if i > 5:
                limit = np.where(step * last < 0, 0.5 * limit, limit)
            last = step
            theta = theta + np.where(done, 0.0, np.clip(step, -limit, limit))
            done |= np.abs(step) < self._near
            if done.all():
                break
        return Estimate(theta[:, None], (1.0 / information)[:, None, None], done)

    def _places(self, theta: Array, a: Array, d: Array) -> Array:
        """Return the abilities in [-1, 1] between the nodes; those that lie outside become centres of new nodes."""
        x = (theta - self._centre) / self._radius
        away = np.flatnonzero(np.abs(x) > 1.0)
        if len(away):
            self._centre[away] = theta[away]
            self._sums[away] = self._coefficients(away, a[away], d[away])
            x[away] = 0.0
        return np.asarray(x)

    def _coefficients(self, rows: Ints, a: Array, d: Array) -> Array:
        """Return the coefficients of sums over items (s, k) of some subjects, shape (s, 2, NODES)."""
        theta = self._centre[rows, None] + self._radius * nodes(NODES)
        p = np.multiply(theta[:, :, None], a[:, None])
        p += d[:, None]
        p = 1.0 / (1.0 + np.exp(-p))
        slopes = a[:, :, None]
        sums = np.stack([(p @ slopes)[..., 0], ((p * (1.0 - p)) @ slopes**2)[..., 0]], axis=1)
        return np.asarray(sums @ transform(NODES).T)
