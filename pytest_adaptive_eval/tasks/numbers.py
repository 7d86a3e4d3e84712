"""Task families of exact arithmetic: decimals to multiply, linear equations to solve."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

from pytest_adaptive_eval.items.reading.cleaning import answer_part, without_emphasis
from pytest_adaptive_eval.items.reading.numbers import plain_latex
from pytest_adaptive_eval.tasks.answers import by_number, shortened
from pytest_adaptive_eval.tasks.family import (
    Content,
    Judge,
    Mark,
    Question,
    Runner,
    TaskFamily,
    check_level,
    only_match,
    plural,
)

NAMES = "xyzuvwpq"
#: Allowed error of a value: one unit of the fourth decimal place, for rounded and for truncated values.
TOLERANCE = Fraction(1, 10_000)
#: Pattern of "= 1.5", ": -3/2", "is about .25" and the like.  No operator or name may follow: "= 3 - y" is no value.
_VALUE = (
    r"\s*(?:=|:|\N{ALMOST EQUAL TO}|~|\||\\approx|\\to|\\rightarrow|\N{RIGHTWARDS ARROW}|->|(?:is|equals)\b"
    r"(?:\s+(?:approximately|about|roughly|around|equal\s+to))?)\s*(-?)\s*(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:\s*/\s*(\d{1,40}))?"
    r"(?![\d.]*(?:[ \t]*[-+*/^]|[A-Za-z(]))"
)
#: Names and their values in two lists.
_TUPLE = re.compile(r"\(([a-z](?:\s*,\s*[a-z]){1,7})\)\s*=\s*\(([^()\n]{1,400})\)")
_ROWS = re.compile(r"\|((?:\s*[a-z]\s*\|){2,8})\s*\n\s*\|[\s:|-]+\n\s*\|([^\n]{1,400})\|")


def _decimal(digits: int, decimals: int) -> str:
    """Return `digits` units of the last decimal place as a decimal number."""
    text = str(digits).rjust(decimals + 1, "0")
    return f"{text[:-decimals]}.{text[-decimals:]}"


def _product_question(a: int, p: int, b: int, q: int) -> Question:
    """Return the question for the product of `a` with `p` decimal places and `b` with `q`."""
    prompt = f"What is {_decimal(a, p)} * {_decimal(b, q)}? Give the exact decimal number."
    answer = _decimal(a * b, p + q)
    return Question(prompt, answer, judge=by_number(answer))


def _decimals(rng: random.Random, level: int) -> Question:
    low = max(10 ** (level - 1), 2)
    high = 10**level
    a = rng.randrange(low, high)
    b = rng.randrange(low, high)
    p = rng.randrange(1, level + 1)
    q = rng.randrange(1, level + 1)
    return _product_question(a, p, b, q)


_PRODUCT = re.compile(r"(?<![\d.])(\d{1,20})\.(\d{1,20}) ?[*x\N{MULTIPLICATION SIGN}] ?(\d{1,20})\.(\d{1,20})(?![\d.])")


def _product_demand(level: int) -> str:
    return f"two decimals of {level} digit{plural(level)} each, leading zeros left out, with a decimal point each"


def _read_product(text: str, level: int, _: random.Random) -> Question:
    a, p, b, q = only_match(_PRODUCT, text, "product of two decimals")
    first = int(a + p)
    second = int(b + q)
    matches = all(len(str(x)) == level and x > 1 for x in (first, second)) and max(len(p), len(q)) <= level
    check_level(matches, _product_demand(level))
    return _product_question(first, len(p), second, len(q))


_PRODUCTS = Content("What is 1.2 * 0.34?", _product_demand, _read_product)


def by_values(values: Mapping[str, Fraction]) -> Judge:
    """Return a judge of the values of several unknowns, each within `TOLERANCE`.

    The last value that the answer states for an unknown counts. Decimals and fractions are compared exactly, as ``x =
    1.5``, ``x: 3/2`` or ``x is 1.5000``.
    """

    def judge(text: str, _: Runner | None) -> Mark:
        text = _one_by_one(re.sub("[$&\"'`]", "", plain_latex(without_emphasis(answer_part(text)))))
        for name, value in values.items():
            stated = re.findall(rf"(?<![A-Za-z0-9_]){name}{_VALUE}", text)
            if not stated:
                return Mark(0.0, f"no value of {name} in {shortened(text)}")
            sign, top, bottom = stated[-1]
            if bottom and not int(bottom):
                return Mark(0.0, f"{name} is divided by zero")
            answer = Fraction(top) / int(bottom or 1)
            if sign:
                answer = -answer
            if abs(answer - value) > TOLERANCE:
                return Mark(0.0, f"{name} = {sign}{top}{'/' * bool(bottom)}{bottom} is not {_rounded(value)}")
        return Mark(1.0)

    return judge


def _one_by_one(text: str) -> str:
    """Return a text with each value of two lists, or of two rows of a table, after its name."""
    for pattern, mark in ((_TUPLE, ","), (_ROWS, "|")):
        for match in pattern.finditer(text):
            names, values = (row.strip(f" {mark}").split(mark) for row in match.groups())
            if len(names) == len(values):
                for name, value in zip(names, values, strict=True):
                    text += f"\n{name.strip()} = {value.strip()}"
    return text


def _rounded(value: Fraction) -> str:
    sign = "-" if value < 0 else ""
    return sign + _decimal(round(abs(value) * 10_000), 4)


def _solution(equations: Sequence[Sequence[int]]) -> list[Fraction] | None:
    """Return the solution of linear equations, given as rows of coefficients and the right side; None if singular."""
    rows = [list(row) for row in equations]
    n = len(rows)
    divisor = 1
    for i in range(n):
        k = next((k for k in range(i, n) if rows[k][i]), None)
        if k is None:
            return None
        rows[i], rows[k] = rows[k], rows[i]
        pivot = rows[i][i]
        for k in range(n):
            if k != i:
                factor = rows[k][i]
                rows[k] = [(pivot * a - factor * b) // divisor for a, b in zip(rows[k], rows[i], strict=True)]
        divisor = pivot
    return [Fraction(row[-1], row[i]) for i, row in enumerate(rows)]


def _equations(rng: random.Random, level: int) -> Question:
    names = NAMES[:level]
    coefficients = [c for c in range(-9, 10) if c not in (0, 1, -1)]
    solution = None
    while solution is None:  # none for singular equations
        rows = []
        for _ in names:
            row = [rng.choice(coefficients) for _ in names]
            row.append(rng.randrange(-99, 100))
            rows.append(row)
        solution = _solution(rows)
    lines = []
    for *left, right in rows:
        terms = []
        for c, name in zip(left, names, strict=True):
            sign = "-" if c < 0 else "+"
            terms.append(f"{sign} {abs(c)}{name}")
        lines.append(f"{' '.join(terms).removeprefix('+ ')} = {right}")
    values = dict(zip(names, solution, strict=True))
    prompt = "Solve:\n" + "\n".join(lines) + "\nGive each value to four decimal places."
    answer = ", ".join(f"{name} = {_rounded(value)}" for name, value in values.items())
    return Question(prompt, answer, judge=by_values(values))


FAMILIES = (
    TaskFamily(
        "decimals", "digits of each of the two factors", 12, 0.07, _decimals, "numeric", content=_PRODUCTS,
        form="End with `Answer: <number>`.",
    ),
    TaskFamily(
        "equations", "unknowns, and as many equations", 8, 0.02, _equations,
        form="End with one line of all values, in the form `Answer: x = <number>, y = <number>`.",
    ),
)  # fmt: skip
