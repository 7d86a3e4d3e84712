"""Grader of mathematical expressions by equivalence."""

from __future__ import annotations

import functools
from importlib.util import find_spec

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.deadline import Overdue
from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.graders.kinds.numeric import same_number
from pytest_adaptive_eval.items.reading.expression import (
    as_intervals,
    as_vector,
    canonical_expression,
    form_of,
    in_form_of,
    is_equation,
    is_vector,
    is_words,
    normal_expression,
    read_expression,
    with_braced_vector,
)
from pytest_adaptive_eval.items.reading.numbers import Number, expected_number, is_lone_number
from pytest_adaptive_eval.items.reading.numeric import read_number

#: Time limit of one comparison, in seconds of processor time.
SECONDS = 3.0
#: Comparison by `math-verify`, for the worker.
_COMPARE = "pytest_adaptive_eval.items.graders.equivalence:equivalent"
_COMPARE_EQUATIONS = "pytest_adaptive_eval.items.graders.equivalence:same_solutions"
#: Characters of an expression above which it is compared as a text alone.
_LONGEST = 400


def _math(question: Asked, text: str) -> float:
    """Return 1 if an expression that the text gives is equivalent to an accepted one."""
    if why := next(filter(None, (_check(question, answer) for answer in question.answers)), ""):
        raise ValueError(f"the answer {question.answers[0]!r:.80} {why}")
    expression = read_expression(text, equation=any(map(is_equation, question.answers))).value
    numbers = []
    for answer in question.answers:
        bare = canonical_expression(answer)
        if is_lone_number(bare) and (number := expected_number(bare)):
            numbers.append(number)
    if len(numbers) == len(question.answers) and "!" not in (expression or ""):
        read = read_number(text, question.prompt).value or Number(())
        is_equal = any(same_number(number, read) for number in numbers)
        if is_equal:
            return 1.0
        # words change a number, as in "6 hundred" or "half of 6", and the reader of numbers alone knows them
        bare = canonical_expression(expression or "")
        # they change no fraction whose number was read elsewhere in the text, as in "we divide by 6 above: 2/3"
        is_fraction = "\\frac" in bare or ("/" in bare and bool(read.values))
        if is_lone_number(bare) and "%" not in bare and not is_fraction:
            return 0.0
    if expression is None:
        return 0.0
    expression = with_braced_vector(expression, question.prompt)
    return float(any(_equal(answer, expression) for answer in question.answers))


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    if is_words(answer):
        return (
            "is words or letters, which algebra reads as products: use the grader 'exact', 'choice' for letters of "
            "choices, 'yesno' for truth, or 'literal' where case and order count; write a product as a*b"
        )
    return ""


@functools.lru_cache(maxsize=1024)
def _equal(answer: str, expression: str) -> bool:
    if is_equation(answer) and is_equation(expression):
        return _compared(_COMPARE_EQUATIONS, answer, expression)
    if is_vector(answer):
        expression = as_vector(expression)
    answer = as_intervals(canonical_expression(answer))
    expression = as_intervals(canonical_expression(expression))
    answer, expression = in_form_of(answer, expression), in_form_of(expression, answer)
    if normal_expression(answer) == normal_expression(expression):
        return True
    if max(len(answer), len(expression)) > _LONGEST or form_of(answer) != form_of(expression):
        return False
    return _compared(_COMPARE, answer, expression)


def _compared(function: str, answer: str, expression: str) -> bool:
    """Return what a function of `equivalence` returns; False without `math-verify`, and for what takes too long."""
    if not _verifies():
        return False
    try:
        return bool(worker.call(function, answer, expression, seconds=SECONDS, description="comparing two expressions"))
    except Overdue:  # what the subject wrote is beyond what can be computed
        return False


@functools.cache
def _verifies() -> bool:
    return find_spec("math_verify") is not None


REGISTERED = (
    GraderKind(
        "math",
        "the expression is equivalent to the accepted one (with the extra `math`; else the same but for its look)",
        _math,
        check=_check,
        readable=lambda _, text: bool(read_expression(text).values),
    ),
)
