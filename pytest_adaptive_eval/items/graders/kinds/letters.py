"""Graders of a choice by letter or text, and of yes and no."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.reading.choice import choice_of, read_choice
from pytest_adaptive_eval.items.reading.truth import read_truth, truth_of


def _choice(question: Asked, text: str) -> float:
    """Return 1 for the letter of a right choice ("B", "(B) blue", "the answer is B") or its text."""
    chosen = read_choice(text, question.choices, question.prompt).value
    return float(
        chosen is not None
        and chosen in [choice_of(answer, question.choices, question.prompt) for answer in question.answers]
    )


def _check_choice(question: Asked, answer: str) -> str:
    plain = (*question.choices, *ascii_uppercase[: len(question.choices)])
    if answer not in plain and choice_of(answer, question.choices, question.prompt) is None:
        count = len(question.choices)
        expected = "a letter"
        if count:
            expected = f"one of its {count} choices or the letter of one"
        if answer.isdecimal() and int(answer) < count:
            expected += f" ({ascii_uppercase[int(answer)]} where they are counted from 0)"
        return f"names no choice; {expected} is expected (the grader 'literal' compares sequences)"
    return ""


def _truth(question: Asked, text: str) -> float:
    """Return 1 for yes, no or unknown as accepted, in many languages; true is yes."""
    values = _truths(question, text)
    return float(len(values) == 1 and values[0] in [truth_of(answer) for answer in question.answers])


def _truths(question: Asked, text: str) -> Sequence[str | None]:
    """Return the truth values that a text gives; a letter stands for the choice yes or no."""
    values = read_truth(text, question.prompt).values
    if values or not question.choices:
        return values
    chosen = read_choice(text, question.choices, question.prompt).value
    return [truth_of(question.choices[index]) for index in chosen or ()]


REGISTERED = (
    GraderKind(
        "choice",
        "the answer names the right choice, by letter or text",
        _choice,
        check=_check_choice,
        leniency=lambda question, _: Leniency("is the only choice") if len(question.choices) == 1 else None,
        readable=lambda question, text: bool(read_choice(text, question.choices, question.prompt).values),
    ),
    GraderKind(
        "yesno",
        "the answer is yes (true), no (false) or unknown, as accepted, in many languages",
        _truth,
        check=lambda _, answer: (
            "" if truth_of(answer) else "is none of yes, no and unknown; one of them, true or false is expected"
        ),
        readable=lambda question, text: bool(_truths(question, text)),
    ),
)
