"""How many questions a gate will take, before the first one is asked.

The logarithm of a gambler's wealth grows like a Brownian motion whose drift is
half its variance, on a clock that counts information: a draw adds the squared
distance of the truth from the threshold over the draw's variance.  Drawing
without replacement makes later draws tell more, as fewer items are left.  The
chance of a verdict within n questions is then a first passage (inverse
Gaussian) in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.selection import View, chances
from pytest_adaptive_eval.cat.session import Policy
from pytest_adaptive_eval.claims.paired import FLIPS, Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ability_at
from pytest_adaptive_eval.gates.condition import PLANNING_MARGIN, Condition
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank

__all__ = ["Outlook", "draw_variance", "fixed_size", "outlook_sentence", "outlooks"]

Array = NDArray[np.float64]

#: What not knowing the best stake costs, and by how much the last draw overshoots, in nats; fitted to interviews on
#: real response matrices, where it brings the expected number of questions within a tenth.
COST = 0.6
#: Candidates that follow a baseline's draws in play, to learn how soon a gate decides: at most, and answers in all.
PLAYED, ANSWERS = 400, 1_000_000


@dataclass(frozen=True, slots=True)
class Outlook:
    """The number of questions that a verdict takes, as a random variable.

    Parameters
    ----------
    size : int
        Items in the bank.
    gap : float
        Distance of the truth from the threshold, as a share of the bank.
    variance : float
        Of a draw's estimate of the accuracy over the items left.
    confidence : float
    asked : int
        Questions asked already.
    log_wealth : float
        Reached by them.
    together : int
        Claims that must all be decided, each with the same chance; taken as independent, which is no more than the
        chance where they share draws.
    """

    size: int
    gap: float
    variance: float
    confidence: float = 0.95
    asked: int = 0
    log_wealth: float = 0.0
    together: int = 1

    def chance(self, asked: int) -> float:
        """Probability of a verdict after at most `asked` questions in all."""
        return self._alone(asked) ** self.together

    def _alone(self, asked: int) -> float:
        """The same of one claim."""
        if asked >= self.size:
            return 1.0
        if asked <= self.asked:
            return 0.0
        needed = math.log(1.0 / (1.0 - self.confidence)) + COST - self.log_wealth
        if needed <= 0:
            return 1.0
        clock = self._clock(asked) - self._clock(self.asked)
        if clock <= 0:
            return 0.0
        root = math.sqrt(clock)
        ahead, behind = (clock / 2 - needed) / root, (-clock / 2 - needed) / root
        return min(1.0, _normal(ahead) + math.exp(needed + _log_normal(behind)))

    def _clock(self, asked: int) -> float:
        return self.gap**2 * self.size / max(self.variance, 1e-9) * asked / (self.size - asked)

    @property
    def distribution(self) -> Array:
        """Probability of a verdict after at most 0 ... `size` questions, shape (size + 1,)."""
        return np.array([self.chance(n) for n in range(self.size + 1)])

    @property
    def expected(self) -> float:
        """Mean number of questions, those asked already included."""
        return float((1.0 - self.distribution[:-1]).sum())

    def quantile(self, probability: float) -> int:
        """Fewest questions that give a verdict with a probability."""
        low, high = self.asked, self.size
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.chance(middle) >= probability else (middle + 1, high)
        return high


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _log_normal(x: float) -> float:
    """Logarithm of the normal distribution function, also far in the lower tail."""
    if x > -30:
        return math.log(_normal(x))
    return -0.5 * x * x - math.log(-x * math.sqrt(2.0 * math.pi))


def draw_variance(bank: ItemBank, policy: Policy, accuracy: float, baseline: Baseline | None = None) -> float:
    """Variance of a draw's estimate of the accuracy over the items left, for a subject of some accuracy.

    On an uncalibrated bank that of a uniform draw; on a calibrated one as if
    the bank were right and the ability known; with a complete baseline as if
    `claims.paired.FLIPS` of the answers differed.
    """
    n = len(bank)
    if baseline is not None:
        known = np.array([[]])
        p = baseline.predicted(baseline.shapes(bank), known.astype(np.int64), known)
    elif bank.calibrated:
        theta = np.zeros((1, bank.dimensions))
        theta[0, 0] = ability_at(bank, accuracy)
        p = bank.probability(theta)
    else:
        return max(accuracy * (1.0 - accuracy), 0.25 / n)
    return float((irt.weight(p) / _first_chances(bank, policy, p)).sum()) / n**2


def _first_chances(bank: ItemBank, policy: Policy, p: Array) -> Array:
    """Chance of each item at the first draw, shape (1, n), where it is answered right with chance `p`."""
    theta = np.zeros((1, bank.dimensions))
    covariance = policy.estimator.prior(1, bank.dimensions).covariance
    view = View(bank, theta, covariance, p, np.empty((1, 0), dtype=np.int64))
    return np.maximum(chances(policy.selector, view, policy.floor), 1e-12)


def _of_gain(condition: Condition, bank: ItemBank, policy: Policy, margin: float) -> list[Outlook]:
    """A gain that exceeds the threshold over every smaller format, and one that falls short over a single one.

    Accuracies lie around one half, where they are hardest to tell.
    """
    from pytest_adaptive_eval.claims.gain import gap_claims

    claims = gap_claims(bank, condition.value, condition.confidence)
    n, items, signs = len(bank), claims[0].items, claims[0].signs
    theta = np.zeros((1, bank.dimensions))
    p = bank.probability(theta) if bank.calibrated else None
    q = np.full((1, n), 1.0 / n) if p is None else _first_chances(bank, policy, p)
    alone = 1.0 - (1.0 - condition.confidence) / len(claims)  # a denial is corrected for all of them
    ahead = []
    for gain, confidence, together in (
        (condition.value + margin, condition.confidence, len(claims)),
        (condition.value - margin, alone, 1),
    ):
        if -1 < gain < 1:
            spread = signs**2 / 4.0 * (1.0 - gain**2) / 4.0
            variance = float((spread / q).sum()) / n**2
            ahead.append(Outlook(n, margin * items / n / 2.0, variance, confidence, together=together))
    return ahead


def _following(condition: Condition, baseline: Baseline) -> Outlook:
    """Of a candidate that follows the draws of a baseline with answers to some items.

    What such a draw may do is only bounded, and the bound limits the stakes, so
    that wealth grows slower than any variance tells.  Therefore candidates that
    differ on `FLIPS` of the answers are played, and the variance is the one
    that gives as many verdicts.
    """
    log, n = baseline.log, len(baseline.scores)
    assert log is not None
    whole = Outlook(n, condition.value, FLIPS, condition.confidence)
    if not len(log):
        return whole
    played = max(min(PLAYED, ANSWERS // len(log)), 50)
    flipped = np.random.default_rng(0).random((played, len(log))) < FLIPS
    columns: dict[str, Any] = {name: np.broadcast_to(getattr(log, name), flipped.shape) for name in log.columns()}
    found = decide(
        replace(log, **columns | {"scores": np.abs(log.scores - flipped)}),
        [PairedClaim.of(baseline, condition.value, condition.confidence)],
    )
    at = np.where(found.outcome[:, 0] > 0, found.at[:, 0], n)
    asked, chance = len(log), max(float((at < n).mean()), 1.0 / played)
    if chance == 1.0:
        asked, chance = int(np.median(at)), 0.5
    low, high = 1e-6, 1e3  # verdicts get fewer as the variance grows
    while high > 1.001 * low:
        variance = math.sqrt(low * high)
        low, high = (variance, high) if replace(whole, variance=variance).chance(asked) > chance else (low, variance)
    return replace(whole, variance=low)


def fixed_size(outlook: Outlook, power: float) -> int:
    """Questions of a test that looks once, at the end: normal, one-sided, with the finite bank's correction."""
    alpha, beta = (student_quantile(math.inf, level) for level in (outlook.confidence, power))
    infinite = (alpha + beta) ** 2 * outlook.variance / outlook.gap**2
    return math.ceil(infinite / (1.0 + infinite / outlook.size))


def outlooks(
    condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None = None, margin: float | None = None
) -> list[Outlook]:
    """What to expect of a sequential gate, from both sides of its threshold where the scale has room.

    Parameters
    ----------
    condition : Condition
    bank : ItemBank
    policy : Policy
    baseline : Baseline, optional
        Of a paired gate, whose planning margin is its own: a candidate like the baseline.
    margin : float, optional
        Distance of the truth from the threshold; `PLANNING_MARGIN`, or the paired gate's own, which alone serves
        where the baseline answered some items only.
    """
    size = len(bank)
    if condition.kind == "not_worse_than":
        if baseline is not None and not baseline.complete:
            return [_following(condition, baseline)]
        gap = condition.value if margin is None else margin
        variance = draw_variance(bank, policy, 0.5, baseline)
        return [Outlook(size, gap, variance, condition.confidence)]
    gap, target = PLANNING_MARGIN if margin is None else margin, condition.target(bank)
    if condition.metric == "gain":
        return _of_gain(condition, bank, policy, gap)
    sides = [accuracy for accuracy in (target + gap, target - gap) if 0 < accuracy < 1]
    whole = Outlook(size, gap, 0.0, condition.confidence)
    return [replace(whole, variance=draw_variance(bank, policy, accuracy, baseline)) for accuracy in sides]


def outlook_sentence(
    condition: Condition, bank: ItemBank, policy: Policy, budget: int, name: str, baseline: Baseline | None = None
) -> str:
    """What a gate may expect of its budget, with a warning where a verdict is less likely than not."""
    ahead = outlooks(condition, bank, policy, baseline)
    known = len(bank) if baseline is None else baseline.draws
    budget = min(budget, known)
    chance = min(outlook.chance(budget) for outlook in ahead)
    worst = min(ahead, key=lambda outlook: outlook.chance(budget))
    if condition.kind == "not_worse_than":
        case = f"if it is as good as {condition.name} and {FLIPS:.0%} of the answers differ"
    else:
        case = f"if the truth is {100 * PLANNING_MARGIN:g} points away"
    text = (
        f"{name}: {condition.quantity} {condition.requirement}: {chance:.0%} chance of a verdict within {budget} of "
        f"{len(bank)} questions {case}, {worst.expected:.0f} expected"
    )
    if baseline is not None and budget == known < len(bank):
        text += f"; {baseline.coverage}"
    if chance < 0.5:
        even, likely = worst.quantile(0.5), worst.quantile(0.8)
        text += f". WARNING: less likely than not; an even chance needs budget = {even}, and four in five "
        text += f"budget = {likely}"
        text += ", in both runs" if likely > known else ""
    return text
