"""Grader of a regular expression, with a time limit."""

from __future__ import annotations

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.patterns import accepts_any_text, check_pattern, matches_in_time
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning


def _pattern(question: Asked, text: str) -> float:
    """Return 1 if an accepted answer, a regular expression, matches anywhere in the text."""
    text = without_reasoning(text)
    return float(any(matches_in_time(answer, text) for answer in question.answers))


REGISTERED = (
    GraderKind(
        "regex",
        "a regular expression matches anywhere in the text",
        _pattern,
        check=lambda _, answer: f"is no regular expression ({why})" if (why := check_pattern(answer)) else "",
        leniency=lambda _, answer: Leniency(problem) if (problem := accepts_any_text(answer)) else None,
    ),
)
