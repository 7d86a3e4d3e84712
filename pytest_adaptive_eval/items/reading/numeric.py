"""Read a number that a text gives as its answer."""

from __future__ import annotations

import functools
import itertools
import re
from fractions import Fraction

from pytest_adaptive_eval.items.abstention import abstains
from pytest_adaptive_eval.items.reading.numbers import Number, find_numbers, plain_latex
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.items.reading.stated import JOINED
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

__all__ = ["read_number"]

Values = tuple[Fraction, ...]
_JOIN = lazy_pattern(rf"[\s$*()\[\]\\'\"]*(?:[,;/&|]|{JOINED})?[\s$*()\[\]\\'\"]*", re.IGNORECASE)
_EQUAL = lazy_pattern(r"=|≈|\\approx|\\equiv|≅|\bequals\b|→|\\Rightarrow")
_END = lazy_pattern(
    r"(?<=[^\W\d])[.!?](?=\s|$)|(?<=\d)[.!?](?=\s+[A-Z]|$)|。|\n|;|\b(?:because|since|given that|as there)\b"
)
#: Characters of a line that are searched, from its end, and of the words before a number.
_CHARACTERS, _BEFORE = 1000, 60
#: What stands before the number that a sentence tells.
_TOLD = lazy_pattern(
    r"(?:=|≈|\\approx|≅|→|(?P<verb>\b(?:is|are|was|were|be|equals)\b))[\s:~]*(?:(?:\w+ly|about|around|equal\s+to|only|just)\s+)*"
    r"[\s$*(\\\"'{]*\Z",
    re.IGNORECASE,
)
_CLAUSE = lazy_pattern(r"[,;](?!\d)|\.(?:\s|$)")
_CORRECTED = lazy_pattern(r"\b(?:or rather|no|wait|actually|correction)\b", re.IGNORECASE)
#: What makes a number part of an expression, which is no number.
_EXPRESSION = lazy_pattern(r"\s?(?:\\sqrt|\\pi|π|√|\^)")
_ROUNDED = lazy_pattern(r"\brounds?\s+(?:up\s+|down\s+|off\s+)?to\s+[\s$\\(*]*\Z", re.IGNORECASE)
_ROOT = lazy_pattern(r"(?:\\sqrt|√)\s*[{(\[]?\s*\Z")
#: Values of several names.
_ASSIGNED = lazy_pattern(r"(?:^|[\s(])[A-Za-z]\w?\s*=[^=]*?(?:,|;|\\quad|\band\b)[\s\\quad]*(?:and\s+)?[A-Za-z]\w?\s*=")
#: A number alone, or with a unit.
_SHORT = lazy_pattern(r"\W{0,4}[\d.,/\s]+\W{0,3}(?:[^\W\d]+\W?){0,2}\W{0,3}")
#: Places in bold that are looked at.
_BOLDEST = 50
_BOLD = lazy_pattern(r"\*\*(.+?)\*\*")


def _first(text: str) -> list[Values]:
    """Return the first number of a statement, with others that a word joins to it; an expression has no values."""
    text = plain_latex(text.replace("**", " ")).lstrip()
    end = _END.search(text)
    sentence = text[: end.start()] if end and find_numbers(text[: end.start()]) else text
    if _ASSIGNED.search(sentence):
        numbers = find_numbers(sentence)
        return list(dict.fromkeys(number.values for number in numbers))
    parts = _EQUAL.split(sentence)
    sentence = next((part for part in reversed(parts) if find_numbers(part)), sentence)
    numbers = find_numbers(sentence)
    rounded = [number for number in numbers if _ROUNDED.search(sentence[: number.start])]
    if rounded:
        return [(*rounded[-1].values, *numbers[0].values)]
    if numbers and (_EXPRESSION.match(sentence, numbers[0].end) or _ROOT.search(sentence[: numbers[0].start])):
        return [()]
    return _joined(numbers, sentence)


def _joined(numbers: list[Number], text: str) -> list[Values]:
    joined: list[Values] = [numbers[0].values] if numbers else []
    for before, number in itertools.pairwise(numbers):
        if not _JOIN.fullmatch(text[before.end : number.start]):
            break
        joined.append(number.values)
    return list(dict.fromkeys(joined))


def _loose(text: str, asked: frozenset[Fraction]) -> list[Values]:
    """Return the only number in bold, or the one that the last line with a number ends with."""
    if abstains(text):
        return []
    bold = {values for part in _BOLD.findall(text)[-_BOLDEST:] if _SHORT.fullmatch(part) for values in _first(part)}
    if len(bold) == 1:
        return list(bold)
    for line in reversed(text.split("\n")):
        plain = plain_latex(line[-_CHARACTERS:])
        numbers = find_numbers(plain)
        if stated := _after_verb(numbers, plain):
            return stated
        if numbers:
            fresh = [number for number in numbers if number.values[0] not in asked]
            return _last(numbers, plain) if len(fresh) in (0, len(numbers)) else _last(fresh, plain)
    return []


def _after_verb(numbers: list[Number], text: str) -> list[Values]:
    """Return the number that a sentence tells: after "is", or the result of what stands there."""
    has_verb = {}
    for index, number in enumerate(numbers):
        if match := _TOLD.search(text[max(0, number.start - _BEFORE) : number.start]):
            has_verb[index] = match["verb"] is not None
    if not has_verb:
        return []
    last = max((index for index, verb in has_verb.items() if verb), default=max(has_verb))
    clause = _CLAUSE.split(text[numbers[last].end :], maxsplit=1)[0]
    end = numbers[last].end + len(clause)
    last = max(index for index in has_verb if index == last or numbers[last].start < numbers[index].start < end)
    if _CORRECTED.search(text[numbers[last].end :]):
        return []
    return _joined(numbers[last:], text)


def _last(numbers: list[Number], text: str) -> list[Values]:
    values = [numbers[-1].values]
    if len(numbers) > 1 and re.fullmatch(rf"\s*{JOINED}\s*", text[numbers[-2].end : numbers[-1].start], re.IGNORECASE):
        values.insert(0, numbers[-2].values)
    return list(dict.fromkeys(values))


def read_number(text: str, question: str = "") -> Reading[Values]:
    """Return the numbers that a text gives as its answer, each with all that it may stand for.

    Parameters
    ----------
    text : str
    question : str
        Its numbers are no answer where a text gives others beside them.
    """
    return read_answer(text, Parser(_first, lambda part: _loose(part, _numbers_of(question))))


@functools.lru_cache(maxsize=64)
def _numbers_of(question: str) -> frozenset[Fraction]:
    return frozenset(value for number in find_numbers(plain_latex(question)) for value in number.values)
