"""Grader of instructions on the form of an answer, which code can check."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning
from pytest_adaptive_eval.items.reading.instructions import fault, obeys, obeys_loosely


def _grade(question: Asked, text: str) -> float:
    """Return 1 if the text obeys every instruction of ``meta.instructions``."""
    text = without_reasoning(text)
    return float(all(obeys(instruction["id"], instruction, text) for instruction in question.meta["instructions"]))


def _grade_loosely(question: Asked, text: str) -> float:
    """Return 1 if each instruction is obeyed by the text or one of its variants, which can differ by instruction."""
    rest = without_reasoning(text)
    # the blank lines after reasoning are no first line
    if rest == text:
        rest = rest
    else:
        rest = rest.lstrip()
    return float(
        all(obeys_loosely(instruction["id"], instruction, rest) for instruction in question.meta["instructions"])
    )


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    instructions = question.meta.get("instructions")
    if not (
        isinstance(instructions, list | tuple)
        and instructions
        and all(isinstance(each, Mapping) for each in instructions)
    ):
        return f"needs meta.instructions, a list of objects with id and arguments, and has {instructions!r:.80}"
    why = next((why for instruction in instructions if (why := fault(instruction.get("id"), instruction))), "")
    if why:
        return f"cannot be checked: {why}"
    return ""


REGISTERED = (
    GraderKind(
        "instructions",
        "it obeys every instruction of `meta.instructions`, by the names of IFEval",
        _grade,
        check=_check,
    ),
    GraderKind(
        "instructions_loose",
        "the same, where first line, last line and asterisks may be left out, as the loose accuracy of IFEval does",
        _grade_loosely,
        check=_check,
    ),
)
