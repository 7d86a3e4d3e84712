"""Verdicts of claims on an interview's draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from pytest_adaptive_eval.claims.paired import PairedClaim
from pytest_adaptive_eval.gates.condition import Condition, corrected_confidence, undecided_interval
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import ROUNDING, UNIT, Claim, decide, interval_of_draws, log_wealth
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import noise_margin
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.text import counted, number

_OUTCOMES = {1: Outcome.PASS, -1: Outcome.FAIL, 0: Outcome.INCONCLUSIVE}


def judge_claim(
    result: SessionResult,
    condition: Condition,
    verdict: Verdict,
    to_unit: Callable[[float], float] = float,
    *,
    guessing: float | None = None,
    notes: Sequence[str] = (),
    missing: str | None = None,
) -> Verdict:
    """Return the verdict of a condition with one claim.

    Args:
        to_unit: Monotone function from the mean of the claim's scores to the metric's unit.
        guessing: Mean of the claim's view by guessing alone, from which a PASS must be distinguishable.
        notes: Further notes, shown last.
        missing: Note on answers without a value, in place of that on answers without a score.
    """
    if condition.kind == "at_most":  # the claim is on distances from 1, and guessing helps nobody to low scores
        to_metric, guessing = to_unit, None

        def to_unit(score: float) -> float:
            return to_metric(1.0 - score)

    (claim,) = condition.claims(result.bank, result.baselines)
    log = claim.view(result.log)
    (outcome,), (at,) = decide_claims(result, condition, [claim])
    family = claim_family(result, condition)
    required = claim.required(-1 if outcome is Outcome.FAIL else 1) / log.size

    def interval_at(confidence: float) -> Interval:
        return interval_of_draws(log, confidence, UNIT if claim.rare else claim.unit)

    interval = cut_to_outcome(interval_at(condition.confidence), outcome, required, (0.0, 1.0))
    if outcome is Outcome.INCONCLUSIVE:
        interval = undecided_interval(interval, family, interval_at, claim.required(-1) / log.size)
    all_notes = [*verdict.notes, *missing_score_notes(result, missing), *notes]
    if outcome is Outcome.PASS and guessing is not None and interval.low <= guessing:
        (outcome,), (at,) = decide_claims(result, condition, [above_guessing(claim, guessing * log.size)])
        if outcome is Outcome.PASS:
            interval = cut_to_outcome(interval, outcome, guessing, (0.0, 1.0))
        else:
            outcome = Outcome.INCONCLUSIVE
            score = number(to_unit(guessing))
            all_notes.insert(0, f"not distinguishable from guessing, which scores {score} on such choices")
    elif outcome is Outcome.INCONCLUSIVE:
        all_notes.insert(0, _remaining_items(result, claim, log, interval.estimate, family))
    return replace(
        verdict,
        outcome=outcome,
        interval=map_interval(interval, to_unit),
        notes=tuple(all_notes),
        decided_after=at if outcome is not Outcome.INCONCLUSIVE and 0 < at < result.asked else None,
    )


def above_guessing(claim: Claim, total: float) -> Claim:
    """Return the claim of a sum of scores above that of guessing, which a PASS needs too."""
    return replace(claim, total=total + 2.0 * ROUNDING, slack=0.0)


def decide_claims(
    result: SessionResult, condition: Condition, claims: Sequence[Claim]
) -> tuple[list[Outcome], list[int]]:
    """Return the outcome of each of a condition's claims, corrected for all others.

    The second list has the number of draws at each decision, 0 where it is undecided or was made at the end.
    """
    others = _other_claims(result, condition)
    family = claim_family(result, condition, len(claims))
    decisions = decide(result.log, [*claims, *others], family)
    signs = decisions.outcome[: len(claims)]
    at = decisions.at[: len(claims)]
    return [_OUTCOMES[int(sign)] for sign in signs], [0] * len(claims) if result.log.fixed else at.tolist()


def _other_claims(result: SessionResult, condition: Condition) -> list[Claim]:
    planned = []
    for c in result.planned:
        if c.by_draws and c != condition:
            planned.append(c)
    return [claim for c in planned for claim in c.claims(result.bank, result.baselines)]


def claim_family(result: SessionResult, condition: Condition, claims: int = 1) -> int:
    """Return the number of claims that a FAIL of a condition with so many `claims` is corrected for."""
    return max(result.family, claims + len(_other_claims(result, condition)))


def cut_to_outcome(interval: Interval, outcome: Outcome, required: float, limits: tuple[float, float]) -> Interval:
    """Return the interval on the outcome's side of the required value.

    An outcome is final once it is decided, although later draws may have moved the interval.
    """
    if outcome is Outcome.INCONCLUSIVE:
        return interval
    low, high = (required, limits[1]) if outcome is Outcome.PASS else (limits[0], required)
    low = max(interval.low, low)
    high = min(interval.high, high)
    return replace(interval, estimate=min(max(interval.estimate, low), high), low=low, high=high)


def map_interval(interval: Interval, to_unit: Callable[[float], float]) -> Interval:
    """Return the interval in another unit, by a monotone function."""
    low, high = sorted((to_unit(interval.low), to_unit(interval.high)))
    return replace(interval, estimate=to_unit(interval.estimate), low=low, high=high)


def missing_score_notes(result: SessionResult, missing_values: str | None = None) -> list[str]:
    """Return a note on answers without a score, if there are any, or another one on missing values."""
    unawaited = result.statuses.get(Status.NOT_AWAITED, 0)
    missing = result.asked - result.scored
    have = "answer has no score and is" if missing == 1 else "answers have no score and are"
    if missing_values is not None:
        notes = [*filter(None, [missing_values])]
    elif missing:
        notes = [f"{missing} {have} counted as wrong in the lower bound and as right in the upper"]
    else:
        notes = []
    if result.log.awaited:
        notes.append(f"{unawaited} not awaited: the estimate is that of the {result.log.awaited} draws before")
    return notes


def _remaining_items(result: SessionResult, claim: Claim, log: DesignLog, estimate: float, family: int) -> str:
    """Return a note on the number of further items that would probably decide, if the estimate were the truth."""
    if len(log) == log.size or result.asked == len(result.bank):
        missing = bool(np.isnan(log.scores).any())
        if not log.noise:
            return f"the whole bank was asked{', and answers without a score leave it open' * missing}"
        noise = "the noise of decoding leaves it open: another run may decide otherwise"
        return f"the whole bank was asked, and {'answers without a score, or ' * missing}{noise}"
    gap = estimate - claim.total / log.size
    side: Literal[1, -1] = 1 if gap >= 0 else -1
    if side > 0:
        confidence = claim.confidence
    else:
        confidence = corrected_confidence(claim.confidence, family)
    margin = noise_margin(log, confidence)
    filled = log.with_missing_as(0.5)
    remaining = max(log.size - len(log) + 1, 1)
    outlook = Outlook(
        log.size,
        max(abs(gap) - margin / log.size, 0.0),
        float(filled.variance[-1]) / remaining**2,
        confidence,
        len(log),
        0.0 if log.fixed else float(log_wealth(filled, claim, side, margin)[-1]),
        assumed=claim.assumed,
    )
    more = outlook.quantile(0.5) - len(log)
    baseline = None
    if isinstance(claim, PairedClaim):
        baseline = claim.baseline
    if baseline is not None and len(log) + more > baseline.draws:
        return baseline.coverage
    if more > 0.8 * (log.size - len(log)):
        return "the estimate is so near the threshold that probably only the whole bank would decide"
    return f"about {counted(max(more, 1), 'more question')} would probably decide"
