"""Modes of posteriors that grow by one score after the other, without summing over all scores at every step.

In one dimension without guessing, the sums in the score function and in the information are smooth functions of the
ability. Polynomials through Chebyshev nodes about the last mode stand for them, and a new score only adds its part.

Modes agree with `MAP` to eight decimals. A standard error is taken at the last point but one of the iteration,
and may differ by some parts in 10^5 where it takes one step more or less.
"""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.irt.chebyshev import nodes, weights_at
from pytest_adaptive_eval.irt.estimation import MAP, Estimate, fisher_scoring
from pytest_adaptive_eval.types import Array, Ints

FEWEST = 64  #: With fewer scores the sums are as fast.
#: Largest distance of an item's logit from its value at the centre of the nodes, and the number of nodes: the
#: polynomials err by less than a part in 10^9, as `block_draws` derives it.
REACH, NODES = 0.3, 12


class RunningMAP:
    """Posterior modes of S subjects, whose scores grow.

    Args:
        steepest: Shape (S,). Largest absolute slope of the bank's items, of each subject's bank.
        count: Largest number of scores of a subject.
    """

    def __init__(self, method: MAP, steepest: Array, count: int) -> None:
        self._method = method
        self._radius = REACH / np.maximum(steepest, 1e-9)
        self._precision = 1.0 / float(method.prior(1, 1).covariance[0, 0, 0])
        self._near = np.sqrt(method.tolerance / np.maximum(steepest, 1.0))[:, None]
        self._centre = np.full(len(steepest), np.inf)
        #: Sums of predicted scores times slopes, and the information, at the nodes, shape (S, 2, NODES).
        self._sums = np.zeros((len(steepest), 2, NODES))
        self._right = np.zeros(len(steepest))
        #: Scores, slopes and intercepts; both of the former are 0 where a score is missing.
        self._scores, self._a, self._d = np.zeros((3, len(steepest), count))
        self._known, self._made = 0, False
        self.latest = method.prior(len(steepest), 1)

    def add(self, scores: Array, a: Array, d: Array) -> Estimate:
        """Return the modes, as `MAP.estimate` does, with more scores (S, k) of items with slopes and intercepts."""
        new = slice(self._known, self._known + scores.shape[1])
        self._known = new.stop
        missing = np.isnan(scores)
        self._scores[:, new], self._d[:, new] = np.where(missing, 0.0, scores), d
        self._a[:, new] = a = np.where(missing, 0.0, a)
        self._right += (a * self._scores[:, new]).sum(axis=1)
        known = slice(self._known)
        if self._known < FEWEST:
            scores, a, d = self._scores[:, known], self._a[:, known, None], self._d[:, known]
            self.latest = self._method.estimate(scores, a, d, None, self.latest)
            return self.latest
        if self._made:
            self._sums += self._at_nodes(slice(None), a, d)
        self._made = True  # for all at the first call of `_places`
        self.latest = self._mode()
        return self.latest

    def with_more(self, scores: Array, a: Array, d: Array) -> Estimate:
        """Return the modes with more scores, as `add` does, without adding them."""
        before = np.s_[:, : self._known]
        scores = np.concatenate([self._scores[before], scores], axis=1)
        a, d = np.concatenate([self._a[before], a], axis=1), np.concatenate([self._d[before], d], axis=1)
        return self._method.estimate(scores, a[:, :, None], d, None, self.latest)

    def _mode(self) -> Estimate:
        """Return the modes by the polynomials."""
        precision, mean = self._precision, self._method.mean

        def derivatives(theta: Array) -> tuple[Array, Array]:
            basis = weights_at(self._places(theta[:, 0]), NODES)
            sums = np.add.reduce(self._sums * basis[:, None], axis=2)
            gradient = self._right - sums[:, 0] - precision * (theta[:, 0] - mean)
            return gradient[:, None], (sums[:, 1] + precision)[:, None, None]

        start, most = self.latest, self._method.iterations
        theta, information, arrived = fisher_scoring(derivatives, start.theta, start.covariance, self._near, most)
        return Estimate(theta, 1.0 / information, arrived)

    def _places(self, theta: Array) -> Array:
        """Return the abilities in [-1, 1] between the nodes; abilities outside become centres of new nodes."""
        x = (theta - self._centre) / self._radius
        away = np.flatnonzero(np.abs(x) > 1.0)
        if len(away):
            self._centre[away] = theta[away]
            self._sums[away] = self._at_nodes(away, self._a[away, : self._known], self._d[away, : self._known])
            x[away] = 0.0
        return np.asarray(x)

    def _at_nodes(self, rows: Ints | slice, a: Array, d: Array) -> Array:
        """Return the values at the nodes of sums over items (s, k) of some subjects, shape (s, 2, NODES)."""
        theta = self._centre[rows, None] + self._radius[rows, None] * nodes(NODES)
        p = theta[:, :, None] * -a[:, None]
        p -= d[:, None]
        np.exp(p, out=p)
        p += 1.0
        np.divide(1.0, p, out=p)
        sums, slopes = np.empty((len(p), 2, NODES)), a[:, :, None]
        np.matmul(p, slopes, out=sums[:, 0, :, None])
        p -= p * p
        np.matmul(p, slopes * slopes, out=sums[:, 1, :, None])
        return sums
