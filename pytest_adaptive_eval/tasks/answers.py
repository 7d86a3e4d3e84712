"""Reading what was answered: prose around an answer is accepted, doubt about which answer is meant is not.

An answer is looked for in the whole text; where several different ones stand
there, in what follows the last "answer is" or "answer:", and then in the last
line.  If there are still several, or none, the text is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from pytest_adaptive_eval.items.item import GRADERS, Item
from pytest_adaptive_eval.tasks.family import Judge, Mark, Runner

__all__ = ["by_choice", "by_letters", "by_number", "by_pattern", "judge_by", "last_line", "settled", "shortened"]

Find = Callable[[str], Iterable[str]]

_STATED = re.compile(r"answer(?:\s+is\b|\s*[:=])", re.IGNORECASE)
_LETTER_RUN = re.compile(r"\b[A-Z](?:[\s,>\N{RIGHTWARDS ARROW}-]+[A-Z]\b)+")


def last_line(text: str) -> str:
    """The last line that is not blank."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def shortened(text: str, length: int = 60) -> str:
    """A text as a sentence quotes it: one line, cut."""
    line = " ".join(text.split())
    return repr(line if len(line) <= length else line[: length - 3] + "...")


def settled(text: str, find: Find) -> tuple[str, str]:
    """The one answer that a text gives, or an empty one and why.

    Parameters
    ----------
    text : str
    find : callable
        All answers in a text, in order.
    """
    parts = [text]
    if stated := list(_STATED.finditer(text)):
        parts.append(text[stated[-1].end() :].strip().partition("\n")[0])
    parts.append(last_line(text))
    found: list[str] = []
    for part in parts:
        found = list(dict.fromkeys(find(part))) or found
        if len(found) == 1:
            return found[0], ""
    if not found:
        return "", f"no answer in {shortened(text)}"
    return "", f"several answers, and none is said to be meant: {shortened(', '.join(found))}"


def judge_by(expected: str, find: Find) -> Judge:
    """Right where the text gives one answer and it is the expected one."""
    item = Item("", answer=expected)

    def judge(text: str, _: Runner | None) -> Mark:
        if GRADERS["exact"](item, text) == 1.0:
            return Mark(1.0)
        got, why = settled(text, find)
        if got == expected:
            return Mark(1.0)
        return Mark(0.0, why or f"{shortened(got)} is not {expected}")

    return judge


def by_choice(expected: str, alternatives: Iterable[str]) -> Judge:
    """One of a few words, in small or capital letters."""
    known = {word.casefold(): word for word in alternatives}
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, known))})\b", re.IGNORECASE)
    return judge_by(expected, lambda text: [known[word.casefold()] for word in pattern.findall(text)])


def by_pattern(expected: str, pattern: str, given: str = "") -> Judge:
    """Whatever matches a regular expression without groups, save what the question gives."""
    compiled = re.compile(pattern)
    return judge_by(expected, lambda text: [match for match in compiled.findall(text) if match != given])


def by_letters(expected: str, given: str = "") -> Judge:
    """An order of known letters, written in one word or with spaces, commas or arrows between.

    Parameters
    ----------
    expected : str
        In capital letters.
    given : str
        An order that stands in the question and is not the answer.
    """
    wanted = sorted(expected)

    def find(text: str) -> Iterable[str]:
        words = re.findall(r"[A-Z]+", text.upper())
        runs = ["".join(re.findall("[A-Z]", run)) for run in _LETTER_RUN.findall(text)]
        return [word for word in words + runs if len(word) == len(wanted) and word != given and sorted(word) == wanted]

    return judge_by(expected, find)


def by_number(expected: str) -> Judge:
    """The last number of the text, as the grader ``numeric`` reads it."""
    item = Item("", answer=expected, grader="numeric")

    def judge(text: str, _: Runner | None) -> Mark:
        right = item.grade(text) == 1.0
        return Mark(1.0) if right else Mark(0.0, f"the last number of {shortened(text)} is not {expected}")

    return judge
