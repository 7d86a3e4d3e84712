"""Grader of a regular expression, with a time limit."""

from __future__ import annotations

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.patterns import accepts_any_text, check_pattern, matches_in_time
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning


def _pattern(question: Asked, text: str) -> float:
    """Return 1 if an accepted answer, a regular expression, matches anywhere in the text."""
    text = without_reasoning(text)
    return float(any(matches_in_time(answer, text) for answer in question.answers))


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    why = check_pattern(answer)
    return f"is no regular expression ({why})" if why else ""


def _leniency(question: Asked, answer: str) -> Leniency | None:  # noqa: ARG001
    problem = accepts_any_text(answer)
    return Leniency(problem) if problem else None


REGISTERED = (
    GraderKind(
        "regex", "a regular expression matches anywhere in the text", _pattern, check=_check, leniency=_leniency
    ),
)
