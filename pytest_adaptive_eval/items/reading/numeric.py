"""Read a number that a text gives as its answer."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from pytest_adaptive_eval.items.reading.cleaning import without_checks, without_emphasis
from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains, without_denied
from pytest_adaptive_eval.items.reading.numbers import RATE, Number, find_numbers, plain_numbers
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once
from pytest_adaptive_eval.items.reading.stated import JOINED

#: A number that is part of an expression.
_EXPRESSED = Number(())
_JOIN = word_pattern(
    rf"[\s$*()\[\]\\'\"{{}}]*(?:[,;/&|\u2013-]|\b{JOINED}\b|⟨ranges⟩)[\s$*()\[\]\\'\"{{}}]*|\s+",
    re.IGNORECASE,
)
_EQUAL = word_pattern(r"=|≈|\\approx|\\equiv|≅|\bequals\b|→|\\Rightarrow")
_END = word_pattern(
    r"(?<=[^\W\d])[.!?](?=\s|$)|(?<=\d)[.!?](?=\s+[A-Z(]|$)|。|\n|;(?!\s*[-$\d])"
    r"|\b(?:check|because|since|given that|as there)\b"
)
#: Characters of a line that are searched, from its end, and of the words before a number.
_CHARACTERS, _BEFORE = 1000, 60
#: What stands before the number that a sentence tells.
_TOLD = word_pattern(
    r"(?:=|≈|\\approx|≅|→|⟨states measures remains⟩)[\s:~]*"
    r"(?:(?:\w+ly|⟨about concludes surely⟩)\s*)*[\s$*(\\\"'{]*\Z",
    re.IGNORECASE,
)
_ACCOMPANIED = word_pattern(r"⟨accompanies⟩\s+(?:[^\W\d]+\s+){0,2}[$(]*\Z", re.IGNORECASE)
#: A word before the first number of a sentence. A value has "about", a name of it, or a currency there.
_WORD_BEFORE = word_pattern(r"(?!⟨about⟩)(?<![\\\w])[^\W\d_]{2,}(?!\s*=)", re.IGNORECASE)
_REASON = word_pattern("⟨because concedes⟩", re.IGNORECASE)
_CORRECTED = word_pattern(r"\b(?:or rather|no(?=,)|wait|actually|correction)\b", re.IGNORECASE)
_ROUNDED = word_pattern(r"\brounds?\s+(?:up\s+|down\s+|off\s+)?to\s+[\s$\\(*]*\Z", re.IGNORECASE)
_NUMBERED = r"[$\s]*-?\{?\d[\d.,/]*(?<![.,])\}?"
#: Numbers that bound what the text speaks of.
_BOUNDED = word_pattern(
    rf"⟨bounds⟩\s*(?:[^\W\d]+\s+)?(?!\d+\s*\))[$€£]?{_NUMBERED}|(?:(?<![-=<])>|<|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))\s*=?\s*{_NUMBERED}(?!\s*>)"
    rf"|(?<!<){_NUMBERED}\s*(?:<(?!\w|/)|>|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))"
    rf"|{_NUMBERED}(?:\s?[^\W\d]{{1,12}})?\s?⟨bounded⟩|{_NUMBERED}\+(?=\s*(?:[.,;]|\Z))",
    re.IGNORECASE,
)
#: What makes all of a statement a bound.
_BOUND = word_pattern(r"[\s$*(]*(?:⟨bounds⟩|\b(?:more|less)\b)", re.IGNORECASE)
#: Numbers in brackets after a number: sources, working, and the whole of which it is a part.
_ASIDE = word_pattern(
    r"(\d[\d.,/}]*[^\s()\d\[]{0,9}(?:\s[^\s()\d\[=]{1,20}(?<![.,;])){0,3})"
    r"(?:(?:\s?\[\d{1,3}(?:\s?[,\u2013-]\s?\d{1,3})*\])+|(?:\s|(?<=[^\W\d]))\((?!\s*\d+\s*\))[^()\n=]*(?:=[^()\n]*)?\)|\s⟨out_of⟩\s+\d+)"
)
#: A number before the parts that make it.
_SUM_OF = word_pattern(r"\A(\W*\d[\d.,]*(?:\s[^\W\d]+){0,3}):\s(?=[^\n]*\d[^\n]*\d).*", re.DOTALL)
#: A question for a year, and what is one.
_ASKS_YEAR = word_pattern("⟨year⟩", re.IGNORECASE)
_YEARS = range(100, 2200)
#: A part and the whole, which are a number where the question asks for a rate.
_SHARE = word_pattern(r"(?<![\d.,])(\d+)\s+⟨out_of⟩\s+(\d+)(?![\d.,])", re.IGNORECASE)
#: Values of several names.
_ASSIGNED = word_pattern(r"(?:^|[\s(])[A-Za-z]\w?\s*=[^=]*?(?:,|;|\\quad|\band\b)[\s\\quad]*(?:and\s+)?[A-Za-z]\w?\s*=")
#: A number alone, or with a unit.
_SHORT = word_pattern(r"\W{0,4}[\d.,/\s]+\W{0,3}(?:[^\W\d]+\W?){0,2}\W{0,3}")
#: A line that is a number alone, with a mark of a list or without.
_ALONE = word_pattern(r"[\s*•-]*(?:\d{1,2}[.)]\s+)?[$\s]*[\d.,/]+[\s.$%]*")
#: Lines that are a list.
_SEVERAL = 2
#: A row of a table, with its last cell that is not empty.
_ROW = word_pattern(r"\A\s*\|.*\|\s*([^|\n]*\d[^|\n]*)\|\s*\Z")
#: Places in bold that are looked at.
_BOLDEST = 50
_BOLD = word_pattern(r"\*\*(.+?)\*\*")


#: Where a line or a sentence ends.
_LINE = word_pattern(
    r"\n|(?<=[^\W\d_][^\W\d_)\"'*%])[.!]\s+(?=[^\W\d_])|(?<=[\d)\"'*%])[.!]\s+(?=[A-ZÀ-ÖА-ЯЁŚŻŁ])|[。！](?!\Z)"
)


def _stripped(text: str) -> str:
    """Return a text without numbers that it denies, or gives beside another: bounds, sources and working."""
    text = _BOUNDED.sub(" ", plain_numbers(without_denied(without_emphasis(text))))
    return _SUM_OF.sub(r"\1", _ASIDE.sub(r"\1", text))


def _first(text: str) -> list[Number]:
    """Return the first number of a statement, with others that a word joins to it; an expression has no values."""
    listed = _alone(text)
    if listed:
        return listed
    text = _stripped(text.replace("**", " ")).lstrip()
    if _BOUND.match(text):
        if find_numbers(text):
            return [_EXPRESSED]
        return []
    sentence = _with_number(_END.split(text, maxsplit=1)[:1], text)
    sentence = _with_number(_CORRECTED.split(sentence)[::-1], sentence)
    if _ASSIGNED.search(sentence):
        return find_numbers(sentence)
    sentence = _last_side(sentence)
    numbers = find_numbers(sentence)
    rounded = []
    for number in numbers:
        if _ROUNDED.search(sentence[: number.start]):
            rounded.append(number)
    if rounded:
        return [replace(rounded[-1], values=(*rounded[-1].values, *numbers[0].values))]
    if numbers:
        return _groups(numbers, sentence)[0]
    return []


class _Asked(NamedTuple):
    """Facts on a question: its numbers, and whether it asks for a year."""

    numbers: frozenset[Fraction]
    year: bool

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, question: str) -> _Asked:
        numbers = find_numbers(plain_numbers(question))
        return cls(frozenset(value for number in numbers for value in number.values), bool(_ASKS_YEAR.search(question)))

    def years(self, numbers: list[Number]) -> list[Number]:
        """Return the numbers that may be the year which is asked for."""
        return [number for number in numbers if self.year and number.values[:1] and number.values[0] in _YEARS]


def _stated(text: str, asked: _Asked) -> list[Number]:
    """Return the numbers of a part that gives the answer: of a sentence as it is read alone, else the first."""
    plain = plain_numbers(text)
    numbers = find_numbers(plain)
    if numbers and "\n" not in text and _WORD_BEFORE.search(plain[: numbers[0].start]):
        return _loose(text, asked) or _first(text)
    return _first(text)


def _last_side(sentence: str) -> str:
    """Return the last side of an equation that begins with a number, else the last that holds one."""
    sides = []
    for side in _EQUAL.split(sentence):
        if find_numbers(side):
            sides.append(side)
    clean = []
    for side in sides:
        if find_numbers(side)[0].values:
            clean.append(side)
    return (clean or sides or [sentence])[-1]


def _with_number(parts: Sequence[str], text: str) -> str:
    """Return the first part that holds a number, else the text."""
    return next(filter(find_numbers, parts), text)


def _alone(text: str) -> list[Number]:
    """Return the numbers of several lines that each hold one and nothing else; empty for other texts."""
    lines = [line for line in text.split("\n") if line.strip()][-_BOLDEST:]
    if len(lines) < _SEVERAL or not all(map(_ALONE.fullmatch, lines)):
        return []
    return [number for line in lines for number in _first(line)]


def _groups(numbers: list[Number], text: str) -> list[list[Number]]:
    """Return numbers in groups that words or punctuation join."""
    groups: list[list[Number]] = []
    for number in numbers:
        if groups and _JOIN.fullmatch(text[groups[-1][-1].end : number.start]):
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _loose(text: str, asked: _Asked) -> list[Number]:
    """Return the only number in bold, or the one that the last line with a number ends with."""
    if abstains(text):
        return []
    text = without_checks(text)
    bold = _in_bold(text)
    if len(bold) == 1:
        listed = list(bold)
    else:
        listed = _alone(text)
    if listed:
        return listed
    for line in reversed(_LINE.split(text)):
        plain = _stripped(_ROW.sub(r"\1", line)[-_CHARACTERS:])  # the last cell of a table
        plain = _with_number(_REASON.split(plain, maxsplit=1)[:1], plain)
        numbers = find_numbers(plain)
        if _BOUND.match(plain) or (not numbers and find_numbers(plain_numbers(line[-_CHARACTERS:]))):
            return []
        if numbers:
            return (
                _after_verb(numbers, plain)
                or asked.years(numbers)[:1]
                or _groups(_main(_fresh(numbers, asked), plain), plain)[-1]
            )
    return []


def _in_bold(text: str) -> set[Number]:
    """Return the numbers that the last short texts in bold begin with."""
    bold = set()
    for part in _BOLD.findall(text)[-_BOLDEST:]:
        if _SHORT.fullmatch(part):
            bold.update(_first(part))
    return bold


def _fresh(numbers: list[Number], asked: _Asked) -> list[Number]:
    """Return the numbers that the question does not hold, else all."""
    return [number for number in numbers if not asked.numbers.intersection(number.values[:1])] or numbers


def _main(numbers: list[Number], text: str) -> list[Number]:
    """Return the numbers that do more than accompany another, else all."""
    return [number for number in numbers if not _ACCOMPANIED.search(text[: number.start][-_BEFORE:])] or numbers


def _after_verb(numbers: list[Number], text: str) -> list[Number]:
    """Return the number that a sentence states after "is", or the result of the expression there."""
    announced = []
    for group in _groups(numbers, text):
        if _TOLD.search(text[: group[0].start][-_BEFORE:]):
            announced.append(group)
    if not announced or _CORRECTED.search(text[announced[-1][-1].end :]):
        return []
    if any(number.values for number in announced[-1]):
        return announced[-1]
    return _first(text)


@read_once
def read_number(text: str, question: str = "") -> Reading[Number]:
    """Return the numbers that a text gives as its answer, others than the question's if there are any."""
    asked = _Asked.of(question)
    if RATE.search(question):
        text = _SHARE.sub(r"\1/\2", text)
    reading = read_answer(text, Parser(lambda part: _stated(part, asked), lambda part: _loose(part, asked)))
    return Reading(tuple(value.asked_in(question, text) for value in reading.values), reading.other)
