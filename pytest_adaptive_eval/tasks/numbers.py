"""Task families of exact arithmetic: decimals to multiply, linear equations to solve."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pytest_adaptive_eval.tasks.answers import shortened
from pytest_adaptive_eval.tasks.family import Judge, Mark, Question, Runner, TaskFamily

__all__ = ["DECIMALS", "EQUATIONS", "by_values", "product_question"]

NAMES = "xyzuvwpq"
#: How far a value may be off: a unit of the fourth decimal place, whether it was rounded or cut there.
TOLERANCE = Fraction(1, 10_000)
#: "= 1.5", ": -3/2", "is .25"; no operator or name may follow, since "= 3 - y" tells no value.
_VALUE = (
    r"\s*(?:=|:|\N{ALMOST EQUAL TO}|is\b)\s*(-?)\s*(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:\s*/\s*(\d{1,40}))?"
    r"(?![\d.]*(?:[ \t]*[-+*/^]|[A-Za-z(]))"
)


def _decimal(digits: int, places: int) -> str:
    """A whole number of so many units of the last decimal place, as a decimal."""
    text = str(digits).rjust(places + 1, "0")
    return f"{text[:-places]}.{text[-places:]}"


def product_question(a: int, p: int, b: int, q: int) -> Question:
    """What two decimals give, each as a whole number and its decimal places."""
    prompt = f"What is {_decimal(a, p)} * {_decimal(b, q)}? Give the exact decimal number, and end with it."
    return Question(prompt, _decimal(a * b, p + q))


def _decimals(rng: random.Random, level: int) -> Question:
    low, high = max(10 ** (level - 1), 2), 10**level
    a, b = rng.randrange(low, high), rng.randrange(low, high)
    p, q = rng.randrange(1, level + 1), rng.randrange(1, level + 1)
    return product_question(a, p, b, q)


def by_values(values: Mapping[str, Fraction]) -> Judge:
    """All of several unknowns, each within `TOLERANCE`; of each, what the answer says last counts.

    Decimals and fractions are compared exactly, as ``x = 1.5``, ``x: 3/2`` or ``x is 1.5000``.
    """

    def judge(text: str, _: Runner | None) -> Mark:
        text = text.replace("\N{MINUS SIGN}", "-").replace("**", "").replace("$", "")
        for name, true in values.items():
            said = re.findall(rf"(?<![A-Za-z0-9_]){name}{_VALUE}", text)
            if not said:
                return Mark(0.0, f"no value of {name} in {shortened(text)}")
            sign, top, bottom = said[-1]
            if bottom and not int(bottom):
                return Mark(0.0, f"{name} is divided by zero")
            got = Fraction(top) / int(bottom or 1) * (-1 if sign else 1)
            if abs(got - true) > TOLERANCE:
                return Mark(0.0, f"{name} = {sign}{top}{'/' * bool(bottom)}{bottom} is not {_rounded(true)}")
        return Mark(1.0)

    return judge


def _rounded(value: Fraction) -> str:
    return "-" * (value < 0) + _decimal(round(abs(value) * 10_000), 4)


def _solution(rows: Sequence[Sequence[int]]) -> list[Fraction] | None:
    """The one solution of linear equations with their right sides last; None if there is not one.

    Elimination in whole numbers, whose divisions leave no remainder (Bareiss 1968).
    """
    left = [list(row) for row in rows]
    n, before = len(left), 1
    for i in range(n):
        k = next((k for k in range(i, n) if left[k][i]), None)
        if k is None:
            return None
        left[i], left[k] = left[k], left[i]
        pivot = left[i][i]
        for k in range(n):
            if k != i:
                factor = left[k][i]
                left[k] = [(pivot * a - factor * b) // before for a, b in zip(left[k], left[i], strict=True)]
        before = pivot
    return [Fraction(row[-1], row[i]) for i, row in enumerate(left)]


def _equations(rng: random.Random, level: int) -> Question:
    names = NAMES[:level]
    coefficients = [c for c in range(-9, 10) if c not in (0, 1, -1)]
    while True:
        rows = [[*(rng.choice(coefficients) for _ in names), rng.randrange(-99, 100)] for _ in names]
        if (solved := _solution(rows)) is not None:
            break
    lines = []
    for *row, right in rows:
        terms = (f"{'-' if c < 0 else '+'} {abs(c)}{name}" for c, name in zip(row, names, strict=True))
        lines.append(f"{' '.join(terms).removeprefix('+ ')} = {right}")
    values = dict(zip(names, solved, strict=True))
    form = ", ".join(f"{name} = ..." for name in names)
    prompt = "Solve:\n" + "\n".join(lines) + f"\nGive each value to four decimal places, in a last line: {form}"
    answer = ", ".join(f"{name} = {_rounded(value)}" for name, value in values.items())
    return Question(prompt, answer, judge=by_values(values))


DECIMALS = TaskFamily("decimals", "digits of each of the two factors", 12, 0.07, _decimals, "numeric", max_tokens=1024)
EQUATIONS = TaskFamily("equations", "unknowns, and as many equations", 8, 0.02, _equations, max_tokens=2048)
