"""Read numbers in words of many languages."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from pytest_adaptive_eval.items.reading.constructions import (
    AMBIGUOUS,
    COUNTS_JOINED,
    ENGLISH_WORDS,
    NO_COUNTS,
    WORDS,
    any_of,
)
from pytest_adaptive_eval.lazy_pattern import lazy_pattern

_TEN, _TWENTY, _HUNDRED, _THOUSAND = 10, 20, 100, 1000
_VALUES = (*range(21), *range(30, 100, 10), _HUNDRED, _THOUSAND, _THOUSAND**2, *range(200, _THOUSAND, 100))
#: A pattern that matches nothing.
_NEVER = "(?!)"
_AMBIGUOUS = re.compile(rf"(?:{AMBIGUOUS})\Z", re.IGNORECASE)


class _Language(NamedTuple):
    """Patterns of numbers in words, of their words with the value of each, and of parts of one by denominator."""

    number: re.Pattern[str]
    words: re.Pattern[str]
    values: tuple[int, ...]
    parts: re.Pattern[str]


@functools.cache
def _language(name: str) -> _Language:
    """Return the patterns of a language, the longest words first."""
    forms = [each for each in zip(WORDS["counts"][name].split(), _VALUES, strict=False) if each[0] != "-"]
    forms.sort(key=lambda each: -max(map(len, each[0].split("|"))))
    word = "|".join(form for form, _ in forms)
    number = rf"(?:(?:{word}){COUNTS_JOINED}){{0,30}}(?:{word})"
    half, *parts = WORDS["parts"].get(name, _NEVER).split()
    more, one_more = WORDS["halves"].get(name, f"{_NEVER} {_NEVER}").split()
    fraction = (
        rf"(?P<count>{number}|\d+)(?:(?P<more>{more})|[\s-]?(?P<part>{'|'.join((half, *parts))}))"
        rf"|(?P<half>{half})|(?P<one_more>{one_more})"
    )
    return _Language(
        lazy_pattern(any_of([(name, rf"{fraction}|(?!(?:{NO_COUNTS})(?!\w))(?<!\d\s){number}")]), re.IGNORECASE),
        lazy_pattern("|".join(f"({form})" for form, _ in forms), re.IGNORECASE),
        tuple(value for _, value in forms),
        lazy_pattern("|".join(f"({form})" for form in (half, *parts)), re.IGNORECASE),
    )


def with_digits(text: str) -> str:
    """Return a text with numbers in words as digits, of the language with the longest ones."""

    def length(name: str) -> int:
        return sum(len(match[0]) for match in _language(name).number.finditer(text) if not _AMBIGUOUS.match(match[0]))

    name = max(WORDS["counts"], key=length)
    if not length(name):
        lone = text.strip(" .!*\n")
        name = next((each for each in WORDS["counts"] if _language(each).number.fullmatch(lone)), "")
    if not name or text.casefold() in ENGLISH_WORDS:
        return text
    language = _language(name)
    return language.number.sub(lambda match: _in_digits(match, language), text)


def _in_digits(match: re.Match[str], language: _Language) -> str:
    """Return a number in words in digits, or a fraction."""
    if match["more"] or match["one_more"]:
        return f"{2 * (_value(match['count'] or '', language) or 1) + 1}/2"
    found = language.parts.fullmatch(match["part"] or match["half"] or "")
    if found and found.lastindex:
        return f"{_value(match['count'] or '', language) or 1}/{found.lastindex + 1}"
    return str(_value(match[0], language))


def _value(text: str, language: _Language) -> int:
    """Return the value of a number in words: hundreds and thousands multiply, others add up or follow as digits do."""
    if text.isdigit():
        return int(text)
    total = below = last = 0
    for match in language.words.finditer(text):
        value = language.values[(match.lastindex or 1) - 1]
        if value >= _THOUSAND:
            total += max(below + last, 1) * value
            below = last = 0
        elif value == _HUNDRED or match[0] == "十":
            below += max(last, 1) * value
            last = 0
        else:
            last = last * _places(last, value) + value
    return total + below + last


def _places(last: int, value: int) -> int:
    """Return by what a value that follows another shifts it: 1 if they add up, as in twenty-one."""
    if last % _TEN and value < _TEN:
        return _TEN
    if last >= _TEN and _TWENTY <= value < _HUNDRED:
        return _HUNDRED  # nineteen forty-nine
    return 1
