"""Decisions from bounds and from probabilities, shared by interviews and studies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.verdict import CORRECTED, Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.text import number


def with_note(verdict: Verdict, note: str, outcome: Outcome | None = None) -> Verdict:
    """Return the verdict with a note before all others, and with another outcome if given."""
    return replace(verdict, notes=(note, *verdict.notes), outcome=verdict.outcome if outcome is None else outcome)


def corrected_confidence(confidence: float, family: int) -> float:
    """Return the confidence of a FAIL among `family` claims (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(family, 1)


def undecided_interval(
    interval: Interval, family: int, interval_at: Callable[[float], Interval], required: float
) -> Interval:
    """Return the interval of an INCONCLUSIVE verdict, whose upper bound is corrected where it alone would deny.

    Args:
        interval: With bounds of the condition's confidence.
        family: Claims that a FAIL is corrected for.
        interval_at: Returns the interval whose bounds each have a confidence.
        required: Required value; the corrected bound reaches it, since the claim is not denied.
    """
    if interval.high >= required or family < 2:
        return interval
    high = interval_at(corrected_confidence(interval.confidence, family)).high
    return replace(interval, high=max(high, required), method=f"{interval.method}{CORRECTED}{family} claims (Holm)")


def decide_by_bounds(
    verdict: Verdict, condition: Condition, family: int, interval_at: Callable[[float], Interval], required: float
) -> Verdict:
    """Return the verdict of one-sided bounds.

    Args:
        family: Claims that a FAIL is corrected for.
        interval_at: Returns the interval whose bounds each have a confidence.
        required: PASS if the lower bound reaches it, FAIL if the corrected upper bound does not.
    """
    interval = interval_at(condition.confidence)
    outcome = Outcome.INCONCLUSIVE
    if interval.low >= required:
        outcome = Outcome.PASS
    elif interval_at(corrected_confidence(condition.confidence, family)).high < required:
        outcome = Outcome.FAIL
    else:
        interval = undecided_interval(interval, family, interval_at, required)
    return replace(verdict, outcome=outcome, interval=interval)


def decide_by_probability(
    verdict: Verdict, condition: Condition, fact: str, probability: float, highest: float | None = None
) -> Verdict:
    """Return the verdict of a rank or a comparison.

    Args:
        fact: Estimated rank or compared values, as shown.
        probability: Probability that the requirement holds.
        highest: Upper bound of that probability, if unknown subjects widen it.
    """
    required = condition.probability
    outcome = Outcome.PASS if probability >= required else Outcome.INCONCLUSIVE
    if (probability if highest is None else highest) <= 1.0 - required:
        outcome = Outcome.FAIL
    stated = f"{fact} with probability {number(probability)}, {number(required, 2)} required"
    return replace(verdict, outcome=outcome, stated=stated)
