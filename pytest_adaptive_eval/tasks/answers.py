"""Parsers of answers.  Prose around an answer is accepted; an ambiguous answer is not.

An answer is searched where the text states it, see `pytest_adaptive_eval.items.reading.reader`, and else in the whole
text. If several different ones are there, the last line is searched. If several are left, or none, the text is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.reading.cleaning import without_emphasis
from pytest_adaptive_eval.items.reading.denial import without_denied
from pytest_adaptive_eval.items.reading.reader import Parser as Reader
from pytest_adaptive_eval.items.reading.reader import read_answer
from pytest_adaptive_eval.items.reading.stated import boxes, json_fields, tag_parts, without_notes
from pytest_adaptive_eval.tasks.family import Judge, Mark, Runner

#: Returns all candidate answers in a text, in order.
Parser = Callable[[str], Iterable[str]]

#: What stands between letters of one order: punctuation, arrows, numbers of a list, a word before the last.
_BETWEEN = r"(?:[\W_]|\\(?:[lL]ong)?(?:[rR]ightarrow|to|quad|text\w{0,2}|mathrm)\b|\band\b|\b\d{1,2}[.)])+"
_LETTER_RUN = re.compile(rf"\b[A-Z](?:{_BETWEEN}[A-Z]\b)+")

#: Most parts and last paragraphs of an answer that may be the text.
_PARTS = 10
_TEXT = re.compile(r"\A\s*\\text\{(.*)\}\s*\Z", re.DOTALL)
_ENVIRONMENT = re.compile(r"\\begin\{\w+\*?\}(.*?)\\end\{", re.DOTALL)
_FENCE = re.compile(r"```[a-z]*\n(.*?)\n?```", re.DOTALL)


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    for line in reversed(text.splitlines()):
        if line.strip():
            return line
    return ""


def shortened(text: str, length: int = 60) -> str:
    """Return a quotation of a text: one line, truncated to `length` characters."""
    line = " ".join(text.split())
    if len(line) > length:
        line = line[: length - 3] + "..."
    return repr(line)


def _read_answer(text: str, parse: Parser) -> tuple[str, str]:
    """Return the unambiguous answer of a text and ``""``, or ``""`` and the reason why there is none."""

    def distinct(part: str) -> list[str]:
        return list(dict.fromkeys(parse(without_denied(without_emphasis(part)))))

    def loose(part: str) -> list[str]:
        answers = distinct(part)
        if len(answers) > 1:
            last = distinct(last_line(part))
            if len(last) == 1:
                return last
        return answers

    reading = read_answer(text, Reader(distinct, loose))
    if reading.value is not None:
        return reading.value, ""
    if reading.other:
        return reading.other, ""
    if not reading.values:
        return "", f"no answer in {shortened(text)}"
    return "", f"several answers, and none is marked as final: {shortened(', '.join(reading.values))}"


def _judge_by(expected: str, parse: Parser) -> Judge:
    """Return a judge of texts whose unambiguous answer is the expected one."""
    item = Item("", answer=expected)

    def judge(text: str, _: Runner | None) -> Mark:
        if item.grade(text) == 1.0:
            return Mark(1.0)
        answer, why = _read_answer(text, parse)
        if answer == expected:
            return Mark(1.0)
        return Mark(0.0, why or f"{shortened(answer)} is not {expected}")

    return judge


def by_any(judges: Iterable[Judge]) -> Judge:
    """Return a judge by the best of several marks, of equal ones the first."""
    accepting = tuple(judges)

    def judge(text: str, runner: Runner | None) -> Mark:
        return max((each(text, runner) for each in accepting), key=lambda mark: mark.score)

    return judge


def by_choice(expected: str, alternatives: Iterable[str]) -> Judge:
    """Return a judge of answers that are one of a few words, in any case."""
    words = {word.casefold(): word for word in alternatives}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\b", re.IGNORECASE)
    return _judge_by(expected, lambda text: [words[word.casefold()] for word in pattern.findall(text)])


def by_sequence(expected: str, pattern: str, length: int = 1, excluded: Collection[str] = ()) -> Judge:
    """Return a judge of answers that have `length` matches of a pattern without groups, in order.

    Args:
        expected: The matches, joined by a comma and a space.
        length: A line with that many matches is an answer, or a text without such a line.
    """
    compiled = re.compile(pattern)

    def parse(text: str) -> Iterable[str]:
        whole = []
        in_one_line = []
        for line in text.splitlines():
            matches = [match for match in compiled.findall(line) if match not in excluded]
            whole += matches
            if len(matches) == length:
                in_one_line.append(", ".join(matches))
        if length == 1:
            return whole
        if not in_one_line and len(whole) == length:
            return [", ".join(whole)]
        return in_one_line

    return _judge_by(expected, parse)


def by_letters(expected: str, excluded: str = "") -> Judge:
    """Return a judge of orders of capital letters, in one word or with spaces, commas or arrows; not `excluded`."""
    letters = sorted(expected)

    def parse(text: str) -> Iterable[str]:
        words = re.findall(r"[A-Z]+", text.upper())
        for run in _LETTER_RUN.findall(text):
            single = re.findall(r"(?<![A-Za-z\\])[A-Z](?![A-Za-z])", run)
            words.append("".join(single))
        return [word for word in words if word != excluded and sorted(word) == letters]

    return _judge_by(expected, parse)


def by_number(expected: str) -> Judge:
    """Return a judge of the number that a text gives, exactly, as the grader ``numeric`` reads it."""
    item = Item("", "Which number?", expected, "numeric", meta={"tolerance": 0})

    def judge(text: str, _: Runner | None) -> Mark:
        right = item.grade(text) == 1.0
        if right:
            return Mark(1.0)
        return Mark(0.0, f"the number that {shortened(text)} gives is not {expected}")

    return judge


def text_versions(text: str) -> list[str]:
    """Return what may be the text that an answer gives: all of it, a part in a box, field or fence, last paragraphs."""
    boxed = [_TEXT.sub(r"\1", box) for box in boxes(text)]
    enclosed = [*_FENCE.findall(text), *tag_parts(text), *json_fields(text), *boxed]
    if "\\end{" in text:
        enclosed += _ENVIRONMENT.findall(text)
    versions = [text]
    for part in (text, *enclosed[:_PARTS]):
        paragraphs = re.split(r"\n\s*\n", part.strip())
        while len(paragraphs) > 1 and not without_notes(paragraphs[-1]).strip():
            paragraphs.pop()
        for start in range(max(0, len(paragraphs) - _PARTS), len(paragraphs)):
            versions.append("\n\n".join(paragraphs[start:]))
    return list(dict.fromkeys(version for version in versions if version.strip()))
