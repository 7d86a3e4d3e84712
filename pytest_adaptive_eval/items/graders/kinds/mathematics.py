"""Grader of mathematical expressions by equivalence."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from pytest_adaptive_eval.deadline import Overdue, within
from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.graders.kinds.numeric import same_number
from pytest_adaptive_eval.items.reading.expression import form_of, is_words, normal_expression, read_expression
from pytest_adaptive_eval.items.reading.numbers import expected_number, is_lone_number
from pytest_adaptive_eval.items.reading.numeric import read_number

__all__ = ["REGISTERED"]

#: Time limit of one comparison, in seconds.
SECONDS = 3.0
#: Characters of an expression above which it is compared as a text alone.
_LONGEST = 400


def _math(question: Asked, text: str) -> float:
    """Return 1 if an expression that the text gives is equivalent to an accepted one."""
    if why := next(filter(None, (_check(question, answer) for answer in question.answers)), ""):
        raise ValueError(f"the answer {question.answers[0]!r:.80} {why}")
    numbers = [number for answer in question.answers if is_lone_number(answer) and (number := expected_number(answer))]
    if len(numbers) == len(question.answers):
        read = read_number(text, question.prompt).value
        if read is not None and any(same_number(number, read) for number in numbers):
            return 1.0
    expression = read_expression(text).value
    return float(expression is not None and any(_equal(answer, expression) for answer in question.answers))


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    if is_words(answer):
        return (
            "is words or letters, of which algebra makes products: use the grader 'exact', 'choice' for letters of "
            "choices, 'yesno' for truth, or 'literal' where case and order count; write a product as a*b"
        )
    return ""


@functools.lru_cache(maxsize=1024)
def _equal(answer: str, expression: str) -> bool:
    if normal_expression(answer) == normal_expression(expression):
        return True
    if max(len(answer), len(expression)) > _LONGEST or form_of(answer) != form_of(expression):
        return False
    compare = _verifier()
    if compare is None:
        return False
    try:
        return within(SECONDS, lambda: compare(answer, expression), "the comparison of two expressions")
    except Overdue:
        return False


@functools.cache
def _verifier() -> Callable[[str, str], bool] | None:
    """Return the comparison of `math-verify`, or None where that is not installed."""
    if find_spec("math_verify") is None:
        return None
    import math_verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)
    config = (math_verify.LatexExtractionConfig(), math_verify.ExprExtractionConfig())

    def parsed(text: str) -> Any:
        return math_verify.parse(f"${text.strip('$ ')}$", config, parsing_timeout=None)

    def compare(answer: str, expression: str) -> bool:
        with contextlib.suppress(Exception):  # whatever a parser makes of a text that is no expression
            return bool(math_verify.verify(parsed(answer), parsed(expression), timeout_seconds=None))
        return False

    return compare


REGISTERED = (
    GraderKind(
        "math",
        "the expression is equivalent to the accepted one (with the extra `math`; else the same but for its look)",
        _math,
        check=_check,
        readable=lambda _, text: bool(read_expression(text).values),
    ),
)
