r"""Valid bounds of one component of ability, by bets on the score equations.

**Target.** The ability theta* is the fit to the answers r_i to all n items, within the limits of each component, see
`claims.weighted_ability`. With ``g(theta) = sum_i A_i (r_i - p_i(theta)) - theta`` it fulfils (Karush, Kuhn, Tucker)::

    g_j(theta*) = 0   inside of the limits of component j,
    g_j(theta*) <= 0  at its lower limit,     g_j(theta*) >= 0  at its upper limit.            (1)

The log-posterior is strictly concave, so no other point fulfils (1).

**Test of a point.** Let c be a direction with ``c_j = 0`` for each component at a limit, but for the tested one. If
theta is theta*, then ``c' g(theta) = 0`` by (1). This is a statement on a sum over all items, which random draws with
propensities q estimate without bias::

    G_t = sum_{s < t} y_s + y_t / q_t - c' theta,     y_i = c' A_i (r_i - p_i(theta)),         (2)

The predictions p_i(theta) at the tested point are control variates that cost nothing. ``E[G_t | past] = c' g(theta)``,
so the wealth ``prod_t (1 + s_t G_t)`` of stakes that are fixed before each draw is a nonnegative martingale if theta is
theta*. It ever reaches 1 / alpha with a probability of alpha at most (Ville 1939), for any answers and any bank. At a
limit of the tested component, (1) makes it a supermartingale for the one direction that is used: a point at the lower
limit can only be refused as too low, and one at the upper limit only as too high.

**Direction.** To refuse theta because component k of theta* is larger, c is row k of the inverse information among the
components inside of their limits (the efficient score). Then ``c' g(theta)`` is about ``theta*_k - theta_k``, and to
the first order the other components do not matter. Points that are far off in these are refused by bets along the rows
of the others, in both directions, which share `OTHERS` of the wealth: the mean of wealths is a wealth too.

**Stakes.** The factor of a draw must not be negative. The largest loss of (2) is::

    max_i max(c' A_i p_i, -c' A_i (1 - p_i)) / q_i - sum_{s < t} y_s + c' theta                (3)

over the items i that were not drawn. It needs their propensities, see `_largest_inverses`. Below that limit, stakes aim
at the planned number of draws as in `betting._aimed`, with the variance of G_t that the model has at theta, scaled by
the squares seen before.

**Bound.** A value of component k is refused if theta is refused for all values of the others. So the lower bound
exceeds theta*_k only if theta* itself was refused. The least refused point is searched about the fit with the component
held at the value, by three rounds of normal points, each about the best of the last one.

**Missing scores** count as the value that gives y_i the lesser gain. **Decoding noise**: theta* is of the expected
scores, so the sum has to clear a margin, Bernstein's bound of ``sum c' A_i (r_i - E r_i)`` over the administered items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from pytest_adaptive_eval.claims.weighted_ability import fit, information, limits, weighted_ability
from pytest_adaptive_eval.inference.betting import HALF, HAZARD, LIMIT, ROUNDING, draws_ahead
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array, Ints

OTHERS = 0.1  #: Share of the wealth that is bet along the other components.
BLOCK = 24  #: Draws for which the largest loss is computed once; propensities of undrawn items only grow.
POINTS, ROUNDS = 24, 3  #: Points of each round of the search, and rounds.
NARROWER = 0.6  #: Spread of a round, in that of the one before.
PRIOR_SQUARES = 8.0  #: Draws for which the model's variance counts.
LARGEST_SQUARE = 25.0  #: A square counts as this multiple of the model's variance at most.
PRECISION = 0.005  #: Of a bound, in standard deviations of the bank's subjects.


@dataclass(frozen=True, eq=False)
class ScoreEquations:
    """Bets on the score equations, from the draws of one subject.

    Args:
        bank: Bank in formats, without guessing.
        log: Draws of one subject, with propensities; missing scores are NaN.
    """

    bank: ItemBank
    log: DesignLog

    def bound(self, part: int, side: Literal[1, -1], confidence: float) -> float:
        """Return the one-sided bound of a component: the lower one for side 1, the upper one for side -1."""
        accepted = float(self._estimate[part])
        if len(self.log) == len(self.bank) and not np.isnan(self.log.scores).any() and not np.any(self.log.noise):
            return accepted
        low, high = limits(self.bank)
        refused = float(low[part] if side > 0 else high[part])
        if not self.refuses(refused, part, side, confidence):
            return refused
        while abs(accepted - refused) > PRECISION:
            middle = (accepted + refused) / 2.0
            if self.refuses(middle, part, side, confidence):
                refused = middle
            else:
                accepted = middle
        return refused

    @cached_property
    def _filled(self) -> DesignLog:
        return self.log.with_missing_as(0.5)

    @cached_property
    def _estimate(self) -> Array:
        return weighted_ability(self.bank, self._filled).theta

    def refuses(self, value: float, part: int, side: Literal[1, -1], confidence: float) -> bool:
        """Return whether bets on a larger (1) or smaller (-1) component refuse a value, whatever the others are."""
        log_alpha = math.log1p(-confidence)
        low, high = limits(self.bank)
        others = np.arange(self.bank.dimensions) != part
        start = self._estimate.copy()
        start[part] = value
        nearest = fit(self.bank, self._filled, start, others)
        least = float(self.log_wealth(nearest[None], part, side, log_alpha)[0])
        free = np.flatnonzero(others)
        covariance = np.linalg.inv(information(self.bank, nearest)[np.ix_(free, free)])
        spread = np.linalg.cholesky(covariance).T * math.sqrt(len(self.bank) / len(self.log))
        for steps in _steps(len(free)):
            if least < -log_alpha:
                return False
            points = np.tile(nearest, (POINTS, 1))
            points[:, free] += steps @ spread
            wealths = self.log_wealth(np.clip(points, low, high), part, side, log_alpha)
            best = int(wealths.argmin())
            if wealths[best] < least:
                least = float(wealths[best])
                nearest = np.clip(points[best], low, high)
        return least >= -log_alpha

    def log_wealth(self, theta: Array, part: int, side: Literal[1, -1], log_alpha: float) -> Array:
        """Return the logarithm of the largest wealth so far, against each of the points (B, D), shape (B,).

        Args:
            side: 1 bets on a larger value of the component `part`, -1 on a smaller one.
        """
        rows, directions, log_shares = self._directions(theta, part, side)
        log = self.log
        items = self.log.items
        p = irt.probability(theta, self.bank.discrimination, self.bank.intercept)[rows]
        slopes = directions @ self.bank.discrimination.T
        worst = np.maximum(slopes * p, -slopes * (1.0 - p))
        drawn = slopes[:, items]
        scores = np.where(np.isnan(log.scores), drawn < 0.0, log.scores)
        y = drawn * (scores - p[:, items])
        target = (directions * theta[rows]).sum(axis=1, keepdims=True) + self._margin(drawn, log_alpha)
        before = y.cumsum(axis=1) - y - target
        gain = before + y / log.propensities
        gain[:, : log.take_all] = 0.0
        block = np.arange(len(log)) // BLOCK
        largest = np.stack([(worst * inverse).max(axis=1) for inverse in self._largest_inverses], axis=1)[:, block]
        limit = LIMIT / np.maximum(largest - before, ROUNDING)
        variance = (slopes**2 * p * (1.0 - p) @ self._largest_inverses.T)[:, block]
        wealth = _wealth(gain, limit, np.maximum(variance, ROUNDING), draws_ahead(log), -log_alpha - log_shares)
        undrawn = worst.sum(axis=1, keepdims=True) - worst[:, items].cumsum(axis=1)
        wealth[before + y - undrawn > ROUNDING] = np.inf  # the scores alone refuse the point
        firsts = np.flatnonzero(np.diff(rows, prepend=-1))
        total = np.logaddexp.reduceat(wealth + log_shares[:, None], firsts, axis=0)
        return np.asarray(total.max(axis=1))

    def _directions(self, theta: Array, part: int, side: int) -> tuple[Ints, Array, Array]:
        """Return the point, the direction (D,) and the logarithm of the share of each bet against the points."""
        low, high = limits(self.bank)
        share = math.log(OTHERS / (2 * (len(low) - 1)))
        bets = [(part, side, math.log1p(-OTHERS))]
        bets += [(j, sign, share) for j in range(len(low)) if j != part for sign in (1, -1)]
        informations = information(self.bank, theta)
        rows = []
        directions = []
        log_shares = []
        for row, point in enumerate(theta):
            inside = (low < point) & (point < high)
            for j, sign, log_share in bets:
                if sign > 0:
                    at_end = point[j] >= high[j]
                else:
                    at_end = point[j] <= low[j]
                if at_end:
                    continue
                free = np.flatnonzero(inside | (np.arange(len(low)) == j))
                direction = np.zeros(len(low))
                direction[free] = np.linalg.solve(informations[row][np.ix_(free, free)], sign * (free == j))
                rows.append(row)
                directions.append(direction)
                log_shares.append(log_share)
        return np.array(rows, dtype=np.int64), np.array(directions).reshape(-1, len(low)), np.array(log_shares)

    def _margin(self, drawn: Array, log_alpha: float) -> Array:
        """Return the distance by which decoding noise may move the sum of `drawn` slopes times scores, shape (R, 1)."""
        noise = float(np.asarray(self.log.noise))
        if not noise:
            return np.zeros((len(drawn), 1))
        rate = math.log(8.0) - log_alpha
        sd = np.sqrt(noise * (drawn**2).sum(axis=1, keepdims=True))
        return np.asarray(math.sqrt(2.0 * rate) * sd + rate / 3.0 * np.abs(drawn).max(axis=1, keepdims=True))

    @cached_property
    def _largest_inverses(self) -> Array:
        """Inverse propensities of the undrawn items at the first draw of each block, or a bound, shape (blocks, n).

        The propensities of items that were not drawn are known if all draws mix uniform draws and draws by
        `ItemBank.leverage` in the same shares, which the propensities of the drawn items show. Otherwise the log has a
        bound: p / q and (1 - p) / q are limited for a prediction p, so 1 / q is at most the sum of both limits.
        """
        log = self.log
        ratings = self.bank.leverage
        remaining = len(self.bank) - np.arange(len(log))
        rated = ratings.sum() - ratings[log.items].cumsum() + ratings[log.items]
        by_rating = ratings[log.items] / rated
        even = 1.0 / remaining
        draws = slice(log.take_all, None)
        spread = (even - by_rating)[draws]
        share = float(spread @ (log.propensities - by_rating)[draws]) / max(float(spread @ spread), 1e-300)
        mixed = share * even + (1.0 - share) * by_rating
        is_known = np.allclose(mixed[draws], log.propensities[draws], rtol=1e-6, atol=0.0)
        undrawn = np.ones(len(self.bank), dtype=bool)
        inverses = []
        for first in range(0, len(log), BLOCK):
            if is_known:
                inverse = 1.0 / (share / remaining[first] + (1.0 - share) * ratings / rated[first])
            else:
                inverse = np.full(len(self.bank), (log.down + log.up)[first : first + BLOCK].max())
            inverses.append(np.where(undrawn, inverse, 0.0))
            undrawn[log.items[first : first + BLOCK]] = False
        return np.array(inverses)


def _steps(dimensions: int) -> Array:
    """Return the steps of the search, the same each time, shape (rounds, points, D)."""
    normal = np.random.default_rng(0).standard_normal((ROUNDS, POINTS, dimensions))
    return np.asarray(normal * NARROWER ** np.arange(ROUNDS)[:, None, None])


def _wealth(gain: Array, limit: Array, variance: Array, ahead: Array, lacking: Array) -> Array:
    """Return the logarithm of the running wealth of each bet, shape (R, t), by stakes that aim at the horizon.

    Args:
        gain, limit, variance: Shape (R, t). Gain of a draw per stake, the largest stake, and the model's variance.
        ahead: Shape (t,). See `draws_ahead`.
        lacking: Shape (R,). Logarithm of the wealth at which each bet alone decides.
    """
    squares = np.minimum(gain**2 / variance, LARGEST_SQUARE)
    count = PRIOR_SQUARES + np.arange(gain.shape[1])
    scale = (PRIOR_SQUARES + squares.cumsum(axis=1) - squares) / count
    sd = np.sqrt(variance * scale)
    share = HAZARD / ahead
    before = np.zeros(len(gain))
    wealth = np.empty(gain.shape)
    for t in range(gain.shape[1]):
        ratio = np.sqrt(np.clip(share[t] * (lacking + HALF - before), share[t] * HALF, 1.0))
        stake = np.minimum(ratio / ((1.0 + ratio**2) * sd[:, t]), limit[:, t])
        before = before + np.log1p(stake * gain[:, t])
        wealth[:, t] = before
    return wealth
