"""Grader of mathematical expressions by equivalence."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from pytest_adaptive_eval.deadline import Overdue, within
from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.reading.expression import normal_expression, read_expression
from pytest_adaptive_eval.items.reading.numbers import expected_numbers
from pytest_adaptive_eval.items.reading.numeric import read_number

__all__ = ["REGISTERED"]

#: Time limit of one comparison, in seconds.
SECONDS = 3.0
#: Characters of an expression above which it is compared as a text alone.
_LONGEST = 400
_LETTERS = re.compile(r"[A-Za-z]")


def _math(question: Asked, text: str) -> float:
    """Return 1 if an expression that the text gives is equivalent to an accepted one."""
    if all(_is_number(answer) for answer in question.answers):
        read = read_number(text, question.prompt).value
        if read is not None and any(set(expected_numbers(answer)) & set(read) for answer in question.answers):
            return 1.0
    expression = read_expression(text).value
    return float(expression is not None and any(_equal(answer, expression) for answer in question.answers))


def _is_number(answer: str) -> bool:
    return len(expected_numbers(answer)) > 0 and not _LETTERS.search(re.sub(r"\\[dt]?frac|\\text|\\%|\\\$", "", answer))


@functools.lru_cache(maxsize=1024)
def _equal(answer: str, expression: str) -> bool:
    if normal_expression(answer) == normal_expression(expression):
        return True
    if max(len(answer), len(expression)) > _LONGEST:
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
        readable=lambda _, text: bool(read_expression(text).values),
    ),
)
