"""Twins of bank items: the same question with other values, to tell knowing an item from knowing how.

An item marks its values in the prompt, ``<20>`` or ``<rate=20>``, and gives in
``meta`` how its answer follows from them: ``"answer_expression": "60 * v3 / v1"``.
Values without a name are called v1, v2, ... in the order of the text; those with
the same name are the same value.  A subject reads neither marks nor names.
"""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import EXPRESSION, MARK, MARKED, Item

__all__ = ["VALUES", "evaluate", "has_twin", "twin", "twin_bank"]

#: What the values of a bank's items may be.
VALUES = ("written", "redrawn")
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
)
LONGEST_EXPRESSION = 300
LARGEST_EXPONENT = 64
#: Bits that a number may have on the way to an answer.
LARGEST_BITS = 4096
#: Values are drawn anew so often before an item is said to have no twin.
DRAWS = 5000


def evaluate(expression: str, values: Mapping[str, Fraction]) -> Fraction:
    """Value of an arithmetic expression, exactly.

    Parameters
    ----------
    expression : str
        Numbers, names, parentheses and ``+ - * / // % **``; nothing else is known.
    values : mapping
        Of the names.

    Raises
    ------
    ValueError
        It is something else, divides by zero, or grows beyond bounds.
    """
    if len(expression) > LONGEST_EXPRESSION:
        raise ValueError(f"it has {len(expression)} characters, at most {LONGEST_EXPRESSION} are read")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body, values)
    except SyntaxError:
        raise ValueError("it is no arithmetic expression") from None
    except (RecursionError, MemoryError):
        raise ValueError("it is nested too deeply") from None
    except ZeroDivisionError:
        raise ValueError("it divides by zero") from None


def _value(node: ast.expr, values: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            found = Fraction(str(number)) if abs(number) < float("inf") else None
        case ast.Name(id=name):
            if name not in values:
                raise ValueError(f"it names {name!r}; the marked values are {', '.join(values) or 'none'}")
            found = values[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            found = _value(operand, values) * (-1 if isinstance(sign, ast.USub) else 1)
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            found = _power(_value(left, values), _value(right, values))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            found = Fraction(_OPERATORS[type(sign)](_value(left, values), _value(right, values)))
        case _:
            raise ValueError(f"it holds {ast.unparse(node)[:40]!r}, which is not arithmetic on the marked values")
    if found is None or max(found.numerator.bit_length(), found.denominator.bit_length()) > LARGEST_BITS:
        raise ValueError("it grows beyond bounds")
    return found


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError(f"it has the exponent {exponent}: whole numbers up to {LARGEST_EXPONENT} are known")
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if size * abs(exponent) > LARGEST_BITS:
        raise ValueError("it grows beyond bounds")
    return Fraction(base ** int(exponent))


def has_twin(item: Item) -> bool:
    """Whether an item marks values and says how its answer follows from them."""
    return EXPRESSION in item.meta and MARK.search(_marked(item)) is not None


def _marked(item: Item) -> str:
    return str(item.meta.get(MARKED, item.prompt))


def twin(item: Item, seed: int) -> Item:
    """The item with other values and the answer that follows from them, without marks.

    Each value keeps its sign and its digits before and after the point.  The
    answer keeps its sign too, and is as round as the item's own: no more
    decimal places, and a fraction only where that is one.

    Parameters
    ----------
    item : Item
        Graded by ``numeric`` or ``exact``.
    seed : int
        Another one gives another twin.

    Raises
    ------
    BankError
        The item has no marked values or no expression, the expression does not give the item's own answer, or
        no other values were found that keep to the above.
    """
    where = f"item {item.id!r}"
    marks = list(MARK.finditer(_marked(item)))
    if not has_twin(item):
        missing = f"meta.{EXPRESSION}" if marks else "a marked value such as <20> in the prompt"
        raise BankError(f"{where} has no twin: {missing} is missing")
    if item.grader not in ("numeric", "exact"):
        raise BankError(f"{where} has no twin: its grader is {item.grader!r}, numeric or exact is expected")
    names = _names(marks)
    written = dict(zip(names, (mark[0][1:-1].rpartition("=")[2] for mark in marks), strict=True))
    expression = str(item.meta[EXPRESSION])
    try:
        own = evaluate(expression, {name: Fraction(text) for name, text in written.items()})
        expected = Fraction(item.answer.strip())
    except (ValueError, ZeroDivisionError) as error:
        raise BankError(f"{where} has no twin: the answer or meta.{EXPRESSION} cannot be used: {error}") from None
    if own != expected:
        raise BankError(
            f"{where}: meta.{EXPRESSION} gives {own} for the values in the prompt, the answer is {expected}"
        )
    rng = random.Random(f"{item.id} {seed}")
    for _ in range(DRAWS):
        drawn = {name: _redrawn(rng, text) for name, text in written.items()}
        try:
            answer = evaluate(expression, {name: Fraction(text) for name, text in drawn.items()})
        except ValueError:
            continue
        if drawn != written and answer != own and _alike(answer, own):
            break
    else:
        raise BankError(f"{where} has no twin: no other values of as many digits give an answer of its kind")
    shown = iter(names)
    prompt = MARK.sub(lambda _: drawn[next(shown)], _marked(item))
    meta = {**item.meta, "twin_of": item.id, "seed": seed}
    del meta[EXPRESSION]
    meta.pop(MARKED, None)
    return replace(item, id=f"{item.id}~{seed}", prompt=prompt, answer=_text(answer), meta=MappingProxyType(meta))


def twin_bank(bank: ItemBank, values: str, seed: int) -> ItemBank:
    """The items of a bank that have twins, as they are written or with values drawn anew.

    Both banks have the same items in the same order and parameters, so that two
    evaluations of them are compared pair by pair.

    Parameters
    ----------
    bank : ItemBank
    values : {"written", "redrawn"}
    seed : int
        Of the values drawn.

    Raises
    ------
    BankError
        No item has a twin, or one cannot be made, see `twin`.
    ConfigError
        `values` is something else.
    """
    if values not in VALUES:
        raise ConfigError(f"values is {values!r}, expected 'written' or 'redrawn'")
    found = [(n, item) for n, item in enumerate(bank.items) if has_twin(item)]
    if not found:
        raise BankError(
            f"bank {bank.name!r}: no item marks a value such as <20> in its prompt and says by meta.{EXPRESSION} how "
            "the answer follows, so none has a twin"
        )
    places = [n for n, _ in found]
    drawn = [twin(item, seed) for _, item in found] if values == "redrawn" else None
    part = bank.some(places, f"{values} {seed}" if drawn else values, drawn)
    about = {"of": bank.content_hash, "values": values, "seed": seed}
    return replace(part, report=MappingProxyType({**bank.report, "twins": about}))


def _names(marks: list[re.Match[str]]) -> list[str]:
    numbers = iter(range(1, len(marks) + 1))
    return [mark[1] or f"v{next(numbers)}" for mark in marks]


def _redrawn(rng: random.Random, text: str) -> str:
    """Another number of as many digits; a leading zero stays, and the last digit is none."""
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, point, places = digits.partition(".")
    if not (whole == "0" and point):
        whole = str(rng.randrange(10 ** (len(whole) - 1), 10 ** len(whole)))
    if places:
        places = "".join(str(rng.randrange(10)) for _ in places[1:]) + str(rng.randrange(1, 10))
    return f"{sign}{whole}{point}{places}"


def _places(value: Fraction) -> int | None:
    """Decimal places of a number; None where they have no end."""
    for places in range(40):
        if (value * 10**places).denominator == 1:
            return places
    return None


def _alike(answer: Fraction, own: Fraction) -> bool:
    if (answer > 0) - (answer < 0) != (own > 0) - (own < 0):
        return False
    limit, places = _places(own), _places(answer)
    return limit is None or (places is not None and places <= limit)


def _text(value: Fraction) -> str:
    places = _places(value)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator * 10**places // value.denominator)).rjust(places + 1, "0")
    cut = len(digits) - places
    return "-" * (value < 0) + digits[:cut] + ("." + digits[cut:] if places else "")
