"""Grader of a number."""

from __future__ import annotations

import math
from fractions import Fraction

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.reading.numbers import Number, expected_number, expected_numbers
from pytest_adaptive_eval.items.reading.numeric import read_number

#: A tolerance of at least this many times the larger of the expected number and 1 counts as accepting any number.
_WIDE = 100


def tolerance_of(question: Asked) -> float:
    """Return ``meta.tolerance``; raise ValueError if it is not a number of at least 0."""
    tolerance = question.meta.get("tolerance", 0.0)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0.0 <= tolerance < math.inf:
        raise ValueError(f"meta.tolerance is {tolerance!r:.80}, expected a number of at least 0")
    return float(tolerance)


def _numeric(question: Asked, text: str) -> float:
    """Return 1 if the number that the text gives is within ``meta.tolerance`` of an accepted one."""
    tolerance = Fraction(tolerance_of(question))
    if why := next(filter(None, (_check(question, answer) for answer in question.answers)), ""):
        raise ValueError(f"the answer {question.answers[0]!r:.80} {why}")
    read = read_number(text, question.prompt).value
    if read is None:
        return 0.0
    rounds = "tolerance" not in question.meta
    accepted = []
    for answer in question.answers:
        if number := expected_number(answer):
            accepted.append(number)
    return float(any(same_number(number, read, tolerance, rounds=rounds) for number in accepted))


def same_number(accepted: Number, read: Number, tolerance: Fraction | int = 0, *, rounds: bool = True) -> bool:
    """Return whether a number that a text gives is within a tolerance of an accepted one, or rounds to it."""
    if rounds:
        rounding = max(tolerance, accepted.rounding, read.rounding)
    else:
        rounding = tolerance
    return any(
        abs(value - expected) <= (tolerance if expected.denominator == value.denominator == 1 else rounding)
        for expected in accepted.exact
        for value in read.values
    )


def _check(question: Asked, answer: str) -> str:
    tolerance_of(question)
    if expected_numbers(answer):
        return ""
    return "holds no number that the grader can read"


def _leniency(question: Asked, answer: str) -> Leniency | None:
    tolerance = tolerance_of(question)
    if tolerance >= _WIDE and tolerance >= _WIDE * abs(expected_numbers(answer)[0]):
        return Leniency(f"with meta.tolerance {tolerance:g} accepts numbers of any size")
    return None


REGISTERED = (
    GraderKind(
        "numeric",
        "the number that the answer gives is within `meta.tolerance` of the accepted one, in any notation",
        _numeric,
        check=_check,
        leniency=_leniency,
        readable=lambda question, text: bool(read_number(text, question.prompt).values),
    ),
)
