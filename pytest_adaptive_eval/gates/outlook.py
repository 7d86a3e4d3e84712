"""Number of items that a verdict takes, as a random variable.

A gate's wealth is the mean of several bets, and each assumes one distance of the true value from the threshold
(`inference.betting`). The logarithm of one bet's wealth grows like a Brownian motion: each draw adds the stake times
the distance, less half of the squared stake times the mean square of the draw's gain. Draws without replacement give
more information as fewer items remain. The probability that a bet decides within n items is then a first passage
(inverse Gaussian) in closed form, and that of a verdict is taken as the largest of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from pytest_adaptive_eval.inference.betting import DISTANCES, UNIT

#: Cost of the mean over several bets, of predictions that are not there yet, and of the last draw's overshoot, in nats.
#: Fitted to interviews on real response matrices, where it brings the expected number of items within a tenth.
COST = 0.8
NEGLIGIBLE = 1e-9  #: Probability of no verdict below which further items do not count.


@dataclass(frozen=True, slots=True)
class Outlook:
    """Number of items that a verdict takes, as a random variable.

    Args:
        gap: Distance of the true value from the threshold, as a share of the bank.
        variance: Variance of one draw's estimate of the accuracy over the items not yet drawn.
        together: Claims that must all be decided, each with the same probability. They are taken as independent, a
            lower bound where they share draws.
        assumed: Distance that each bet assumes, as a share of the bank.
    """

    size: int
    gap: float
    variance: float
    confidence: float = 0.95
    asked: int = 0
    log_wealth: float = 0.0
    together: int = 1
    assumed: tuple[float, ...] = tuple(UNIT * distance for distance in DISTANCES)

    def chance(self, asked: int) -> float:
        """Return the probability of a verdict after at most `asked` items in all."""
        return self._single_chance(asked) ** self.together

    def _single_chance(self, asked: int) -> float:
        """Return the probability of a verdict on one claim after at most `asked` items."""
        if asked >= self.size:
            return 1.0
        if asked <= self.asked:
            return 0.0
        needed = math.log(1.0 / (1.0 - self.confidence)) + COST - self.log_wealth
        if needed <= 0:
            return 1.0
        draws = self._draws(asked) - self._draws(self.asked)
        return max(self._chance_of_bet(distance, draws, needed) for distance in self.assumed)

    def _draws(self, asked: int) -> float:
        """Return the number of first draws that give as much information as so many without replacement."""
        return self.size * asked / (self.size - asked)

    def _chance_of_bet(self, distance: float, draws: float, needed: float) -> float:
        """Return the probability that a bet has gained `needed` nats within so many draws."""
        variance = max(self.variance, 1e-9)
        stake = distance / (variance + distance**2)
        gap = min(self.gap, 1.0 / stake)  # from where on the drift is no longer that of small gains
        drift = stake * gap - stake**2 * (variance + gap**2) / 2.0
        spread = stake * math.sqrt(variance * draws)
        ahead = (drift * draws - needed) / spread
        behind = (-drift * draws - needed) / spread
        return min(1.0, _normal(ahead) + math.exp(2.0 * drift * needed / (stake**2 * variance) + _log_normal(behind)))

    @property
    def expected(self) -> float:
        """Mean number of items, including those already administered."""
        total = 0.0
        for asked in range(self.size):
            total += (undecided := 1.0 - self.chance(asked))
            if undecided < NEGLIGIBLE:
                break
        return total

    def quantile(self, probability: float) -> int:
        """Return the smallest number of items that gives a verdict with a probability."""
        low, high = self.asked, self.size
        while low < high:
            middle = (low + high) // 2
            if self.chance(middle) >= probability:
                low, high = low, middle
            else:
                low, high = middle + 1, high
        return high


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _log_normal(x: float) -> float:
    """Return the logarithm of the normal distribution function, accurate far in the lower tail."""
    if x > -30:
        return math.log(_normal(x))
    return -0.5 * x * x - math.log(-x * math.sqrt(2.0 * math.pi))


def fixed_size(outlook: Outlook, power: float) -> int:
    """Return the number of items that a one-sided normal test needs for a power, if it looks once, at the end.

    The correction for a finite bank is applied.
    """
    alpha, beta = (NormalDist().inv_cdf(level) for level in (outlook.confidence, power))
    of_infinite_bank = (alpha + beta) ** 2 * outlook.variance / outlook.gap**2
    return math.ceil(of_infinite_bank / (1.0 + of_infinite_bank / outlook.size))
