"""Variants of bank items: the same question with other values, which separate memory of an item from skill.

An item marks its values in the prompt, ``<20>`` or ``<rate=20>``, and computes its answer from them in ``meta``:
``"answer_expression": "60 * v3 / v1"``. Values without a name are called v1, v2, ... in the order of the text; marks
with the same name are the same value. A subject sees neither marks nor names.
"""

from __future__ import annotations

import ast
import math
import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import count
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import EXPRESSION, MARK, MARKED, Item

#: Settings of a bank's values.
VALUES = ("written", "redrawn")
LONGEST_EXPRESSION = 300
LARGEST_EXPONENT = 64
#: Most bits of an intermediate number.
LARGEST_BITS = 4096
#: Draws of values before an item counts as having no variant.
DRAWS = 5000


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError(f"it has the exponent {exponent}: whole numbers up to {LARGEST_EXPONENT} are expected")
    if _bits(base) * abs(exponent) > LARGEST_BITS:
        raise ValueError("it grows beyond bounds")
    return Fraction(base ** int(exponent))


_OPERATORS: Mapping[type, Callable[..., Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
        ast.Pow: _power,
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
    }
)


def evaluate(expression: str, values: Mapping[str, Fraction]) -> Fraction:
    """Return the exact value of an arithmetic expression.

    Args:
        expression: Numbers, names, parentheses and ``+ - * / // % **``.

    Raises:
        ValueError: The expression has other parts, divides by zero, or grows beyond bounds.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"it has {len(expression)} characters, at most {LONGEST_EXPRESSION} are read")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body, values)
    except SyntaxError:
        raise ValueError("it is not an arithmetic expression") from None
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply") from None
    except ZeroDivisionError:
        raise ValueError("it divides by zero") from None


def _value(node: ast.expr, values: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            if abs(number) == math.inf:
                raise ValueError("it grows beyond bounds")
            value = Fraction(str(number))
        case ast.Name(id=name):
            if name not in values:
                raise ValueError(f"it names {name!r}; the marked values are {', '.join(values) or 'none'}")
            value = values[name]
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _OPERATORS:
            value = _OPERATORS[type(sign)](_value(operand, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            value = Fraction(_OPERATORS[type(sign)](_value(left, values), _value(right, values)))
        case _:
            raise ValueError(f"it holds {ast.unparse(node)[:40]!r}, which is not arithmetic on the marked values")
    if _bits(value) > LARGEST_BITS:
        raise ValueError("it grows beyond bounds")
    return value


def has_twin(item: Item) -> bool:
    """Return whether an item marks values and has an expression for its answer."""
    return EXPRESSION in item.meta and MARK.search(_marked(item)) is not None


def _marked(item: Item) -> str:
    return str(item.meta.get(MARKED, item.prompt))


def twin(item: Item, seed: int) -> Item:
    """Return the item with other values and their answer, without marks.

    Each value keeps its sign and its numbers of digits before and after the point. The answer keeps its sign, has no
    more decimal places than the item's answer, and is a fraction only if that is one.

    Args:
        item: Graded by ``numeric`` or ``exact``.

    Raises:
        BankError: The item has no marked values or no expression, the expression contradicts the item's answer, or no
            other values meet the conditions above.
    """
    where = f"item {item.id!r}"
    names, written = _marked_values(item, where)
    expression = str(item.meta[EXPRESSION])
    try:
        answer = evaluate(expression, {name: Fraction(text) for name, text in written.items()})
        expected = Fraction(item.answer.strip())
    except (ValueError, ZeroDivisionError) as error:
        raise BankError(f"{where} has no twin: the answer or meta.{EXPRESSION} cannot be used: {error}") from None
    if answer != expected:
        raise BankError(
            f"{where}: meta.{EXPRESSION} gives {answer} for the values in the prompt, the answer is {expected}"
        )
    drawn, new_answer = _draw_values(random.Random(f"{item.id} {seed}"), expression, written, answer, where)
    replacements = iter(names)
    prompt = MARK.sub(lambda _: drawn[next(replacements)], _marked(item))
    meta = {name: value for name, value in item.meta.items() if name not in (EXPRESSION, MARKED)}
    meta |= {"twin_of": item.id, "seed": seed}
    return replace(item, id=f"{item.id}~{seed}", prompt=prompt, answer=_text(new_answer), meta=MappingProxyType(meta))


def _marked_values(item: Item, where: str) -> tuple[list[str], dict[str, str]]:
    """Return the name of each mark in the prompt, and the written values by name."""
    marks = list(MARK.finditer(_marked(item)))
    if not has_twin(item):
        missing = f"meta.{EXPRESSION}" if marks else "a marked value such as <20> in the prompt"
        raise BankError(f"{where} has no twin: {missing} is missing")
    if item.grader not in ("numeric", "exact"):
        raise BankError(f"{where} has no twin: its grader is {item.grader!r}, numeric or exact is expected")
    numbers = count(1)
    names = [mark[1] or f"v{next(numbers)}" for mark in marks]
    return names, dict(zip(names, (mark[0][1:-1].rpartition("=")[2] for mark in marks), strict=True))


def _draw_values(
    rng: random.Random, expression: str, written: Mapping[str, str], answer: Fraction, where: str
) -> tuple[dict[str, str], Fraction]:
    """Return redrawn values of a question's numbers, as texts by name, and the answer to them."""
    for _ in range(DRAWS):
        drawn = {name: _redrawn(rng, text) for name, text in written.items()}
        try:
            new_answer = evaluate(expression, {name: Fraction(text) for name, text in drawn.items()})
        except ValueError:
            continue
        if drawn != written and new_answer != answer and _alike(new_answer, answer):
            return drawn, new_answer
    raise BankError(f"{where} has no twin: no other values of as many digits give an answer of its kind")


def twin_bank(bank: ItemBank, values: str, seed: int) -> ItemBank:
    """Return the items of a bank that have variants, as written or with other values.

    Both banks have the same items in the same order with the same parameters. Two evaluations of them are therefore
    compared pair by pair.

    Raises:
        BankError: No item has a variant, or one cannot be made, see `twin`.
        ConfigError: `values` is out of range.
    """
    if values not in VALUES:
        raise ConfigError(f"values is {values!r}, expected 'written' or 'redrawn'")
    positions, items = [], []
    for position, item in enumerate(bank.items):
        if has_twin(item):
            positions.append(position)
            items.append(item)
    if not items:
        raise BankError(
            f"bank {bank.name!r}: no item marks a value such as <20> in its prompt and says by meta.{EXPRESSION} how "
            "the answer follows, so none has a twin"
        )
    drawn = [twin(item, seed) for item in items] if values == "redrawn" else None
    subset = bank.some(positions, f"{values} {seed}" if drawn else values, drawn)
    origin = {"of": bank.content_hash, "values": values, "seed": seed}
    return replace(subset, report=MappingProxyType({**bank.report, "twins": origin}))


def _redrawn(rng: random.Random, text: str) -> str:
    """Draw a number with as many digits.  A leading zero stays, and the last decimal is not zero."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, decimals = digits.partition(".")
    if not (whole == "0" and point):
        whole = str(rng.randrange(10 ** (len(whole) - 1), 10 ** len(whole)))
    if decimals:
        decimals = "".join(str(rng.randrange(10)) for _ in decimals[1:]) + str(rng.randrange(1, 10))
    return f"{sign}{whole}{point}{decimals}"


def _decimals(value: Fraction) -> int | None:
    """Return the number of decimals; None if it is infinite or above 39."""
    return next((n for n in range(40) if (value * 10**n).denominator == 1), None)


def _alike(answer: Fraction, original: Fraction) -> bool:
    """Return whether an answer has the sign of the original one and at most as many decimals."""
    if (answer > 0) - (answer < 0) != (original > 0) - (original < 0):
        return False
    limit, decimals = _decimals(original), _decimals(answer)
    return limit is None or (decimals is not None and decimals <= limit)


def _text(value: Fraction) -> str:
    decimals = _decimals(value)
    if decimals is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator * 10**decimals // value.denominator)).rjust(decimals + 1, "0")
    point = len(digits) - decimals
    return "-" * (value < 0) + digits[:point] + ("." + digits[point:] if decimals else "")
