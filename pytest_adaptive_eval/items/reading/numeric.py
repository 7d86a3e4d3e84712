"""Read a number that a text gives as its answer."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction

from pytest_adaptive_eval.items.reading.cleaning import without_emphasis
from pytest_adaptive_eval.items.reading.denial import abstains, without_denied
from pytest_adaptive_eval.items.reading.numbers import Number, find_numbers, plain_latex
from pytest_adaptive_eval.items.reading.reader import Parser, Reading, read_answer
from pytest_adaptive_eval.items.reading.stated import JOINED
from pytest_adaptive_eval.lazy_pattern import lazy_pattern


@dataclass(frozen=True, slots=True)
class NumberReading:
    """A number that a text gives.

    Args:
        values: All that it may stand for; empty for an expression.
        place: Unit of its last digit where it is precise enough to round to; else 0.
    """

    values: tuple[Fraction, ...]
    place: Fraction | int = field(default=0, compare=False)
    percent: bool = field(default=False, compare=False)

    def asked_in(self, question: str) -> NumberReading:
        """Return the number without the value that leaves out its percent sign, unless a question may ask for it."""
        if not self.percent or not question or _RATE.search(question):
            return self
        return replace(self, values=self.values[1:])


#: A question for what may be in percent; one without words may.
_RATE = lazy_pattern(
    r"\A\W*\Z|%|percent|per cent|\b(?:rates?|ratios?|shares?|probabilit\w+|chances?|proportions?|interest|discount"
    r"|profit|margin|how likely|growth|change|increase|decrease|efficiency|return|yield)\b|百分|率",
    re.IGNORECASE,
)
_EXPRESSED = NumberReading(())
_JOIN = lazy_pattern(
    rf"[\s$*()\[\]\\'\"{{}}]*(?:[,;/&|\u2013-]|\b{JOINED}\b|\bto\b)[\s$*()\[\]\\'\"{{}}]*|\s+", re.IGNORECASE
)
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
_REASON = lazy_pattern(r"\b(?:because|since|given that)\b", re.IGNORECASE)
_CORRECTED = lazy_pattern(r"\b(?:or rather|no|wait|actually|correction)\b", re.IGNORECASE)
#: What makes a number part of an expression, which is no number, after it and before it.
_EXPRESSION = lazy_pattern(
    r"\s?[)\]}]*\s?(?:\\sqrt|\\pi|π|√|\^|[+*/×·÷]\s?[\w(\\]|-\s?[\d(\\]|\\(?:cdot|times|div|sqrt)|[xyznrquvwai](?![A-Za-z]))"
)
_WITHIN = lazy_pattern(
    r"(?:[\w)\]}]\s?[+*/×·÷^]|\\(?:log|ln|sin|cos|tan|sqrt|cdot|times|div)\S{0,3}|√|\\sqrt\s*[{(\[]?)\s*[{(]?\Z"
)
#: A term before a sign, which is then no sign of the number.
_TERM = lazy_pattern(r"(?:(?<![A-Za-z])[A-Za-z]|[\d)\]}])\s*\Z")
_UNBOUNDED = lazy_pattern(r"\\infty|∞")
_ROUNDED = lazy_pattern(r"\brounds?\s+(?:up\s+|down\s+|off\s+)?to\s+[\s$\\(*]*\Z", re.IGNORECASE)
_NUMBERED = r"[$\s]*-?\d[\d.,/]*(?<![.,])"
#: Numbers that bound what the text speaks of.
_BOUNDED = lazy_pattern(
    r"\b(?:less|fewer|more|greater|smaller|larger|bigger|higher|lower|shorter|longer|older|younger|better|worse|other)\s+than\s+(?:or\s+equal\s+to\s+)?"
    rf"{_NUMBERED}|(?:(?<![-=<])>|<|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))\s*=?\s*{_NUMBERED}(?!\s*>)"
    rf"|(?<!<){_NUMBERED}\s*(?:<(?!\w|/)|>|≤|≥|\\[lg]eq?(?![a-z])|\\[lg]t(?![a-z]))"
    rf"|{_NUMBERED}(?:\s+or\s+(?:more|less|fewer|higher|lower|above|below)\b|\+(?=\s*(?:[.,;]|\Z)))",
    re.IGNORECASE,
)
#: What makes all of a statement a bound.
_BOUND = lazy_pattern(
    r"[\s$*(]*(?:at\s+(?:least|most)|more|less|over|under|above|below|up\s+to|no\s+(?:more|less))\b", re.IGNORECASE
)
#: Numbers in brackets after a number: sources, working, and the whole of which it is a part.
_ASIDE = lazy_pattern(
    r"(?<=[\w.!?%°$])(?:\s?\[\d{1,3}(?:\s?[,\u2013-]\s?\d{1,3})*\])+"
    r"|(?<=[\w%°$*])\s?\((?!\s*\d+\s*\))[^()\n=]*(?:=[^()\n]*)?\)|\bout\s+of\s+(?:a\s+total\s+of\s+)?\d+"
)
#: Values of several names.
_ASSIGNED = lazy_pattern(r"(?:^|[\s(])[A-Za-z]\w?\s*=[^=]*?(?:,|;|\\quad|\band\b)[\s\\quad]*(?:and\s+)?[A-Za-z]\w?\s*=")
#: A number alone, or with a unit.
_SHORT = lazy_pattern(r"\W{0,4}[\d.,/\s]+\W{0,3}(?:[^\W\d]+\W?){0,2}\W{0,3}")
#: A line that is a number alone, with a mark of a list or without.
_ALONE = lazy_pattern(r"[\s*•-]*(?:\d{1,2}[.)]\s+)?[$\s]*[\d.,/]+[\s.$%]*")
#: Lines that are a list.
_SEVERAL = 2
#: A row of a table, with its last cell that is not empty.
_ROW = lazy_pattern(r"\A\s*\|.*\|\s*([^|\n]*\d[^|\n]*)\|\s*\Z")
#: Words between a number and a bracket that belongs to it.
_ASIDE_WORDS = 3
#: Places in bold that are looked at.
_BOLDEST = 50
_BOLD = lazy_pattern(r"\*\*(.+?)\*\*")


def _stripped(text: str) -> str:
    """Return a text without numbers that it denies, or gives beside another: bounds, sources and working."""
    text = plain_latex(_BOUNDED.sub(" ", without_denied(without_emphasis(text))))
    for match in reversed([*_ASIDE.finditer(text)]):
        line = text[: match.start()].rpartition("\n")[2]
        before = find_numbers(line)
        if before and not _JOIN.fullmatch(line[before[-1].end :] + " ,"):
            between = line[before[-1].end :]
            near = len(between.split()) <= _ASIDE_WORDS and not _CLAUSE.search(between.rstrip(". "))
            text = text[: match.start()] + text[match.end() :] if near else text
        elif before:
            text = text[: match.start()] + text[match.end() :]
    return text


def _quantity(number: Number, text: str) -> NumberReading:
    """Return a number of a text; a number within an expression has no values."""
    before = text[max(0, number.start - _BEFORE) : number.start]
    signed = text[number.start] in "+-" and _TERM.search(before)
    if signed or _EXPRESSION.match(text, number.end) or _WITHIN.search(before):
        return _EXPRESSED
    return NumberReading(number.values, number.place, number.percent)


def _first(text: str) -> list[NumberReading]:
    """Return the first number of a statement, with others that a word joins to it; an expression has no values."""
    if listed := _alone(text):
        return listed
    text = _stripped(text.replace("**", " ")).lstrip()
    if _BOUND.match(text) or _UNBOUNDED.search(text):
        return [_EXPRESSED] if find_numbers(text) else []
    end = _END.search(text)
    sentence = text[: end.start()] if end and find_numbers(text[: end.start()]) else text
    if _ASSIGNED.search(sentence):
        return _distinct(find_numbers(sentence), sentence)
    parts = [part for part in reversed(_EQUAL.split(sentence)) if find_numbers(part)]
    clean = (part for part in parts if _quantity(find_numbers(part)[0], part).values)
    sentence = next(clean, parts[0] if parts else sentence)
    numbers = find_numbers(sentence)
    rounded = [number for number in numbers if _ROUNDED.search(sentence[: number.start])]
    if rounded:
        return [NumberReading((*rounded[-1].values, *numbers[0].values), rounded[-1].place)]
    return _joined(numbers, sentence)


def _alone(text: str) -> list[NumberReading]:
    """Return the numbers of several lines that each hold one and nothing else; empty for other texts."""
    lines = [line for line in text.split("\n") if line.strip()][-_BOLDEST:]
    if len(lines) < _SEVERAL or not all(map(_ALONE.fullmatch, lines)):
        return []
    return list(dict.fromkeys(quantity for line in lines for quantity in _first(line)))


def _distinct(numbers: list[Number], text: str) -> list[NumberReading]:
    return list(dict.fromkeys(_quantity(number, text) for number in numbers))


def _joined(numbers: list[Number], text: str) -> list[NumberReading]:
    joined = numbers[:1]
    for before, number in itertools.pairwise(numbers):
        if not _JOIN.fullmatch(text[before.end : number.start]):
            break
        joined.append(number)
    return _distinct(joined, text)


def _loose(text: str, asked: frozenset[Fraction]) -> list[NumberReading]:
    """Return the only number in bold, or the one that the last line with a number ends with."""
    if abstains(text):
        return []
    bold = {values for part in _BOLD.findall(text)[-_BOLDEST:] if _SHORT.fullmatch(part) for values in _first(part)}
    if len(bold) == 1:
        return list(bold)
    lines = [line for line in text.split("\n") if line.strip()]
    if listed := _alone(text):
        return listed
    for line in reversed(lines):
        line = _ROW.sub(r"\1", line)  # the last cell of a table
        plain = _stripped(line[-_CHARACTERS:])
        said = _REASON.split(plain, maxsplit=1)[0]
        plain = said if find_numbers(said) else plain
        if _BOUND.match(plain):
            return []
        numbers = find_numbers(plain)
        if stated := _after_verb(numbers, plain):
            return stated
        if numbers:
            fresh = [number for number in numbers if number.values[0] not in asked]
            return _last(numbers, plain) if len(fresh) in (0, len(numbers)) else _last(fresh, plain)
        if find_numbers(plain_latex(line[-_CHARACTERS:])):
            return []
    return []


def _after_verb(numbers: list[Number], text: str) -> list[NumberReading]:
    """Return the number that a sentence states after "is", or the result of the expression there."""
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
    told = _joined(numbers[last:], text)
    return _first(text) if told == [_EXPRESSED] else told


def _last(numbers: list[Number], text: str) -> list[NumberReading]:
    last = numbers[-1:]
    if len(numbers) > 1 and _JOIN.fullmatch(text[numbers[-2].end : numbers[-1].start]):
        last = numbers[-2:]
    return _distinct(last, text)


def read_number(text: str, question: str = "") -> Reading[NumberReading]:
    """Return the numbers that a text gives as its answer, others than the question's if there are any."""
    reading = read_answer(text, Parser(_first, lambda part: _loose(part, _numbers_of(question))))
    return Reading(tuple(value.asked_in(question) for value in reading.values), reading.other)


@functools.lru_cache(maxsize=64)
def _numbers_of(question: str) -> frozenset[Fraction]:
    return frozenset(value for number in find_numbers(plain_latex(question)) for value in number.values)
