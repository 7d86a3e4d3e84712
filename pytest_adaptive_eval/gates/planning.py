"""Forecasts of gates before the first item: the number of items to a verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import View, chances
from pytest_adaptive_eval.claims.earlier import EarlierAnswers
from pytest_adaptive_eval.claims.paired import FLIPS, MARGINS, Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ability_at
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.types import Array

#: Distance from the threshold, in accuracy, at which a gate without a margin forecasts its verdict.
PLANNING_MARGIN = 0.10
DEFAULT_CHANCE = 0.97  #: Probability of a verdict that the default budget gives a gate.
#: Limits of the simulated candidates that follow a baseline's draws: their number, and their answers in all.
MAX_CANDIDATES, MAX_ANSWERS = 400, 1_000_000


def draw_variance(bank: ItemBank, policy: Policy, accuracy: float, earlier: EarlierAnswers | None = None) -> float:
    """Return the variance of a draw's estimate of the accuracy over the items not yet drawn, for a true accuracy.

    On an uncalibrated bank it is that of a uniform draw. On a calibrated bank it assumes that the bank is right and the
    ability known, and with earlier answers, such as a complete baseline's, that `claims.paired.FLIPS` of them differ.
    """
    n = len(bank)
    p = np.full((1, n), accuracy)
    if bank.calibrated:
        theta = np.zeros((1, bank.dimensions))
        theta[0, 0] = ability_at(bank, accuracy)
        p = bank.probability(theta)
    if earlier is not None:
        no_answers = np.array([[]])
        alike = Baseline(earlier.name, np.nan_to_num(earlier.scores, nan=0.5))
        predicted = alike.predicted(alike.shapes(bank), no_answers.astype(np.int64), no_answers)
        p = np.where(np.isnan(earlier.scores), p, predicted)
    elif bank.calibrated:
        policy = policy.drawing
    else:
        return max(accuracy * (1.0 - accuracy), 0.25 / n)
    return float((irt.weight(p) / first_chances(bank, policy, p)).sum()) / n**2


def first_chances(bank: ItemBank, policy: Policy, p: Array) -> Array:
    """Return the probability of each item at the first draw, shape (1, n), for predicted scores `p`, shape (1, n)."""
    theta = np.zeros((1, bank.dimensions))
    covariance = policy.estimator.prior(1, bank.dimensions).covariance
    view = View(bank, theta, covariance, p, np.empty((1, 0), dtype=np.int64))
    return np.maximum(chances(policy.selector, view, policy.floor), 1e-12)


def threshold_outlooks(
    condition: Condition,
    bank: ItemBank,
    policy: Policy,
    target: float,
    earlier: EarlierAnswers | None = None,
    margin: float | None = None,
) -> list[Outlook]:
    """Return the outlooks of an accuracy threshold, for true accuracies on either side in (0, 1)."""
    gap = PLANNING_MARGIN if margin is None else margin
    sides = []
    for accuracy in (target + gap, target - gap):
        if 0 < accuracy < 1:
            sides.append(accuracy)
    variances = []
    for accuracy in sides:
        variances.append(draw_variance(bank, policy, accuracy, earlier))
    return [Outlook(len(bank), gap, variance, condition.confidence) for variance in variances]


def mean_outlooks(
    condition: Condition,
    bank: ItemBank,
    policy: Policy,
    share: float,
    margin: float | None = None,
    weights: Array | None = None,
) -> list[Outlook]:
    """Return the outlooks of a mean of scores of 0 and 1 that the bank does not predict.

    Args:
        share: Target or margin, as a share of the largest mean.
        weights: Shape (n,). Weights of the items' scores, in (0, 1]; 1 each when omitted.
    """
    n = len(bank)
    q = np.full((1, n), 1.0 / n)
    if bank.calibrated:
        q = first_chances(bank, policy, bank.probability(np.zeros((1, bank.dimensions))))
    if weights is None:
        weights = np.ones(n)
    spread = float((weights**2 / q).sum()) / n**2
    if condition.kind == "not_worse_than":  # of differences, which are halved to lie in [0, 1]
        assumed = tuple(distance * share / 2.0 for distance in MARGINS)
        return [Outlook(n, (margin or share) / 2.0, spread * FLIPS / 4.0, condition.confidence, assumed=assumed)]
    gap = PLANNING_MARGIN if margin is None else margin
    scale = float(weights.mean())
    sides = []
    for mean in (share + gap, share - gap):
        if 0 < mean < 1:
            sides.append(mean)
    return [Outlook(n, gap * scale, spread * mean * (1.0 - mean), condition.confidence) for mean in sides]


def paired_outlooks(
    condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
) -> list[Outlook]:
    """Return the outlook of a comparison, for a candidate like the baseline."""
    if baseline is not None and not baseline.complete:
        return [_partial_baseline_outlook(condition, baseline)]
    gap = condition.value if margin is None else margin
    variance = draw_variance(bank, policy, 0.5, baseline)
    return [Outlook(len(bank), gap, variance, condition.confidence, assumed=_assumed(condition))]


def _assumed(condition: Condition) -> tuple[float, ...]:
    return tuple(distance * condition.value for distance in MARGINS)


def _partial_baseline_outlook(condition: Condition, baseline: Baseline) -> Outlook:
    """Return the outlook of a candidate that follows the draws of a baseline with answers to some items.

    A bound on such a draw limits the stakes, so wealth grows more slowly than any variance shows. So candidates that
    differ on `FLIPS` of the answers are simulated, and the variance is the one that gives as many verdicts.
    """
    log = baseline.log
    n = len(baseline.scores)
    assert log is not None
    outlook = Outlook(n, condition.value, FLIPS, condition.confidence, assumed=_assumed(condition))
    if not len(log):
        return outlook
    candidates = max(min(MAX_CANDIDATES, MAX_ANSWERS // len(log)), 50)
    flipped = np.random.default_rng(0).random((candidates, len(log))) < FLIPS
    columns: dict[str, Any] = {}
    for name in log.columns():
        columns[name] = np.broadcast_to(getattr(log, name), flipped.shape)
    decisions = decide(
        replace(log, **columns | {"scores": np.abs(log.scores - flipped)}),
        [PairedClaim.of(baseline, condition.value, condition.confidence)],
    )
    at = np.where(decisions.outcome[:, 0] > 0, decisions.at[:, 0], n)
    asked = len(log)
    chance = max(float((at < n).mean()), 1.0 / candidates)
    if chance == 1.0:
        asked = int(np.median(at))
        chance = 0.5
    low, high = 1e-6, 1e3  # verdicts get fewer as the variance grows
    while high > 1.001 * low:
        variance = math.sqrt(low * high)
        if replace(outlook, variance=variance).chance(asked) > chance:
            low = variance
        else:
            high = variance
    return replace(outlook, variance=low)


def outlooks(
    condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None = None, margin: float | None = None
) -> list[Outlook]:
    """Return the outlooks of a sequential gate, from both sides of its threshold if the scale allows.

    Args:
        baseline: Baseline of a paired gate, for a candidate like it.
        margin: Distance of the true value from the threshold; `PLANNING_MARGIN` or the paired gate's own margin when
            omitted. A baseline with answers to some items always uses its own.

    Raises:
        ConfigError: The metric has no forecast.
    """
    forecast = condition.measure.forecast(condition, bank, policy, baseline, margin)
    if not forecast:
        call = condition.measure.call(condition)
        raise ConfigError(f"{call}: no forecast on the bank {bank.name!r}; plan another metric")
    return forecast


def predicted_outlooks(
    condition: Condition,
    bank: ItemBank,
    policy: Policy,
    earlier: EarlierAnswers | None,
    margin: float | None = None,
) -> list[Outlook]:
    """Return the outlooks of a gate's claims about the bank's sum of scores, with the predictions of an earlier run."""
    forecast = []
    for claim in condition.claims(bank, {}):
        if claim.sought is not None:
            forecast += threshold_outlooks(condition, bank, policy, claim.sought / len(bank), earlier, margin)
    return forecast


def default_budget(
    conditions: Sequence[Condition],
    bank: ItemBank,
    policy: Policy,
    baselines: Mapping[str, Baseline] = MappingProxyType({}),
) -> int:
    """Return the budget where none is written: the policy's, or more if gates need it, and at most the bank.

    A gate needs as many items as give it a verdict with the probability `DEFAULT_CHANCE`, if the truth is
    `PLANNING_MARGIN` from its threshold, or if a candidate is like its baseline.
    """
    needed = [policy.budget_on(bank)]
    for condition in filter(lambda condition: condition.by_draws, conditions):
        forecast = condition.measure.forecast(condition, bank, policy, baselines.get(condition.name), None)
        for outlook in forecast:
            needed.append(outlook.quantile(DEFAULT_CHANCE))
    return min(max(needed), len(bank))


def outlook_sentence(
    condition: Condition,
    bank: ItemBank,
    policy: Policy,
    budget: int,
    name: str,
    baseline: Baseline | None = None,
    *,
    must_pass: int = 0,
    earlier: EarlierAnswers | None = None,
) -> str:
    """Return a gate's probability of a verdict within its budget, with a warning if it is below one half.

    The first `must_pass` items of the budget are not drawn, so they move no bet. The answers of an `earlier` run
    predict the answers that a gate with a threshold asks for.
    """
    forecast = []
    if earlier is not None:
        forecast = predicted_outlooks(condition, bank, policy, earlier)
    forecast = forecast or outlooks(condition, bank, policy, baseline)
    if baseline is None:
        comparable = len(bank)
    else:
        comparable = baseline.draws
    budget = min(budget, comparable)
    drawn = max(budget - must_pass, 0)
    worst = min(forecast, key=lambda outlook: outlook.chance(drawn))
    chance = worst.chance(drawn)
    if condition.kind == "not_worse_than":
        case = f"if it is as good as {condition.name} and {100 * FLIPS:.0f} % of the answers differ"
    else:
        case = f"if the truth is {condition.measure.distance(PLANNING_MARGIN)} away"
        if earlier is not None:
            case += f" and {100 * FLIPS:.0f} % of the answers differ from the earlier run's"
    text = (
        f"{name}: {condition.quantity} {condition.requirement}: {chance:.0%} chance of a verdict within "
        f"{budget} of {len(bank)} questions {case}, {worst.expected + must_pass:.0f} expected"
    )
    if must_pass:
        text += f", including {must_pass} that must pass and come first"
    if baseline is not None and budget == comparable < len(bank):
        text += f"; {baseline.coverage}"
    if chance < 0.5:
        even, likely = (min(worst.quantile(chance) + must_pass, len(bank)) for chance in (0.5, 0.8))
        text += f". WARNING: less likely than not; an even chance needs budget = {even}, and four in five "
        text += f"budget = {likely}"
        text += ", in both runs" if likely > comparable else ""
    return text
