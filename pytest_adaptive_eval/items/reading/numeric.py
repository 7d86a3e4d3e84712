"""Read a number that a text gives as its answer."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from pytest_adaptive_eval.items.reading.cleaning import without_emphasis
from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.denial import abstains, without_denied
from pytest_adaptive_eval.items.reading.numbers import RATE, Number, find_numbers, plain_numbers
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer, read_once

_JOIN = word_pattern(
    r"[\s$*()\[\]\\'\"{}]*(?:[,;/&|\u2013-]|\b⟨joined⟩\b|⟨ranges⟩)[\s$*()\[\]\\'\"{}]*|\s+"
    r"|(?:\s?[^\W\d]{1,12})?,?\s*⟨or⟩\s*(?:⟨accompanies surely about⟩\s*)?",
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
    r"(?:=|≈|\\approx|≅|→|⟨states measures yields remains concludes⟩)[\s:~]*"
    r"(?:(?:\w+ly|⟨about concludes surely⟩)\s*)*[\s$*(\\\"'{]*\Z",
    re.IGNORECASE,
)
_ACCOMPANIED = word_pattern(r"⟨accompanies⟩\s+(?:[^\W\d]+\s+){0,2}[$(]*\Z", re.IGNORECASE)
#: A word before the first number of a sentence. A value has "about", a name of it, or a currency there.
_WORD_BEFORE = word_pattern(r"(?!⟨about⟩)(?<![\\\w])[^\W\d_]{2,}(?!\s*=)", re.IGNORECASE)
_REASON = word_pattern("⟨because concedes⟩", re.IGNORECASE)
_CORRECTED = word_pattern(
    r"\b(?:or rather|wait|actually|correction)\b|⟨takes_back⟩(?=\s*[,:;.!\u2013\u2014-])", re.IGNORECASE
)
#: Values of several names.
_ASSIGNED = word_pattern(r"(?:^|[\s(])[A-Za-z]\w?\s*=[^=]*?(?:,|;|\\quad|\band\b)[\s\\quad]*(?:and\s+)?[A-Za-z]\w?\s*=")
_BOLD = word_pattern(r"\*\*(.+?)\*\*")
#: Numbers that bound what the text speaks of.
_BOUNDED = word_pattern(
    r"⟨bounds⟩\s*(?:[^\W\d]+\s+)?(?!\d+\s*\))[$€£]?⟨digits⟩|(?:(?<![-=<])>|<|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))\s*=?\s*⟨digits⟩(?!\s*>)"
    r"|(?<!<)⟨digits⟩\s*(?:<(?!\w|/)|>|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))"
    r"|⟨digits⟩(?:\s?[^\W\d]{1,12})?\s?⟨bounded⟩|⟨digits⟩\+(?=\s*(?:[.,;]|\Z))",
    re.IGNORECASE,
)
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
#: A number alone, or with a unit.
_SHORT = word_pattern(r"\W{0,4}[\d.,/\s]+\W{0,3}(?:[^\W\d]+\W?){0,2}\W{0,3}")
#: A line that is a number alone, with a mark of a list or without.
_ALONE = word_pattern(r"[\s*•-]*(?:\d{1,2}[.)]\s+)?[$\s]*[\d.,/]+[\s.$%]*")
#: Lines that are a list.
_SEVERAL = 2
#: A row of a table, with its last cell that is not empty.
_ROW = word_pattern(r"\A\s*\|.*\|\s*([^|\n]*\d[^|\n]*)\|\s*\Z")
#: Lines of a list that are looked at, from its end.
_LINES = 50


#: Where a line or a sentence ends.
_LINE = word_pattern(
    r"\n|(?<=[^\W\d_][^\W\d_)\"'*%])[.!]\s+(?=[^\W\d_])|(?<=[\d)\"'*%€£])[.!]\s+(?=[A-ZÀ-ÖА-ЯЁŚŻŁ])|[。！](?!\Z)"
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
    sentence = _with_number(_END.split(text, maxsplit=1)[:1], text)
    sentence = _with_number(_CORRECTED.split(sentence)[::-1], sentence)
    if _ASSIGNED.search(sentence):
        return find_numbers(sentence)
    sentence = _last_side(sentence)
    numbers = find_numbers(sentence)
    if numbers:
        return _groups(numbers, sentence)[0]
    return []


def _written(number: Number, text: str) -> str:
    """Return the digits and marks of a number in a text."""
    return re.sub(r"[^\d.,/]", "", text[number.start : number.end])


class _Asked(NamedTuple):
    """Facts on a question: its numbers as they are written, and whether it asks for a year."""

    numbers: frozenset[str]
    year: bool

    @classmethod
    @functools.lru_cache(maxsize=64)
    def of(cls, question: str) -> _Asked:
        plain = plain_numbers(question)
        numbers = frozenset(_written(number, plain) for number in find_numbers(plain))
        return cls(numbers, bool(_ASKS_YEAR.search(question)))

    def fresh(self, numbers: list[Number], text: str) -> list[Number]:
        """Return the numbers that the question does not hold: it may hold 12/18 where 2/3 is the answer."""
        return [number for number in numbers if _written(number, text) not in self.numbers]

    def years(self, groups: list[list[Number]]) -> list[Number]:
        """Return the first numbers that may be the year which is asked for: one, or several that a word joins."""
        for group in groups * self.year:
            if years := [number for number in group if number.values[:1] and number.values[0] in _YEARS]:
                return years
        return []


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
    lines = [line for line in text.split("\n") if line.strip()][-_LINES:]
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
    """Return the only number in bold, those of a list, or the one that the last line with a number ends with."""
    if abstains(text):
        return []
    bold = _in_bold(text)
    if listed := list(bold) if len(bold) == 1 else _alone(text):
        return listed
    for line in reversed(_LINE.split(text)):
        plain = _stripped(_ROW.sub(r"\1", line)[-_CHARACTERS:])  # the last cell of a table
        plain = _with_number(_REASON.split(plain, maxsplit=1)[:1], plain)
        numbers = find_numbers(plain)
        if not numbers and find_numbers(plain_numbers(line[-_CHARACTERS:])):
            return []
        if numbers:
            return (
                _after_verb(numbers, plain)
                or asked.years(_groups(numbers, plain))
                or _groups(_main(asked.fresh(numbers, plain) or numbers, plain), plain)[-1]
            )
    return []


def _in_bold(text: str) -> set[Number]:
    """Return the numbers that the last short texts in bold begin with."""
    bold = set()
    for part in _BOLD.findall(text)[-_LINES:]:
        if _SHORT.fullmatch(part):
            bold.update(_first(part))
    return bold


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
    if RATE.search(question) and _SHARE.search(plain := plain_numbers(text)):
        text = _SHARE.sub(r"\1/\2", plain)
    reading = read_answer(text, Parser(lambda part: _stated(part, asked), lambda part: _loose(part, asked)))
    numbers = tuple(value.asked_in(question, text) for value in reading.values)
    if numbers:
        same = set.intersection(*(set(number.values) for number in numbers))
    else:
        same = set()
    if len(numbers) > 1 and same:  # one number in two notations
        numbers = (Number(tuple(same)),)
    return Reading(numbers, reading.other)
