"""Find the one answer that a text gives, for graders and task families alike.

The most binding statement counts: tags and calls of tools, boxes, words such as "the answer is" after JSON, JSON
fields, such words anywhere from the last on, and then the text itself as the kind of answer reads it. A statement of
another kind ends the search: what the text considers before is not its answer.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pytest_adaptive_eval.items.reading.cleaning import answer_part, before_next_question, is_program, unwrapped
from pytest_adaptive_eval.items.reading.constructions import word_pattern
from pytest_adaptive_eval.items.reading.stated import (
    boxes,
    boxes_end,
    cue_parts,
    fields_end,
    is_definite,
    json_fields,
    tag_parts,
    without_notes,
)

#: Parts of a text that are read, from the most binding, and characters of each.
_PARTS, _CHARACTERS = 30, 1000
#: Characters before a restated question; more of them before another question are an answer, be it unreadable.
_RESTATED = 200
#: Lines that display the one between them.
_DISPLAY = ("", "\\[", "\\]", "$$", "\\)", "\\(", "```")
#: A sentence that says what something is, and words that make it something else.
_SAID = word_pattern(
    r"(?P<before>[^\n]{0,160}(?:\b(?:is|are|was|were)|'s|[=:—→➡⇒]"
    r"|⟨states mentions⟩)[*_]*)\s*(?P<answer>[^\n]+)",
    re.I,
)
_UNSURE = word_pattern(
    r"⟨hedges denies not⟩|\b(?:not|never|no|nor|neither|if|whether|unless|maybe|perhaps|possibly|might"
    r"|may|could|would|or|wrong|false|incorrect|unlikely|avoid|eliminated|excluded|rejected"
    r"|hardly|doubt|except|other|instead|some|many|people|they|once|used|formerly|guess|question|who|what|which|why|how)\b|n't\b|\?",
    re.IGNORECASE,
)
#: A quotation or words in bold, and where a sentence turns from what it denies.
_EMPHASIZED = word_pattern(r"(?:\*\*|[\"「『])([^*\"「」『』\n]{1,80})(?:\*\*|[\"」』])")
_DENIED_OR_DOUBTED = word_pattern(r"⟨denies not or seemed⟩|\b(?:maybe|perhaps|might|may|could)\b|\?", re.IGNORECASE)
_CONTRAST = word_pattern(r"⟨contrasts⟩|[→⇒]", re.IGNORECASE)
#: Words by which a text takes back what it said, and characters of what it says in its place.
_CORRECTED = word_pattern(
    r"(?:\b(?:wait|actually|scratch\s+that|correction|on\s+second\s+thoughts?|i\s+mean|sorry)\b\W*(?:no\b\W+(?=\w))?"
    r"|(?<=[.;\u2026\u2013\u2014-]\s)no\s*,\s*)"
    r"(?:that(?:'s|\s+is|\s+was)\s+(?:wrong|incorrect|not\s+right)\b\W*)?",
    re.IGNORECASE,
)
_CORRECTION = 40
Value = TypeVar("Value")
_SENTENCE = word_pattern(r"(?<=[\w)\"'*])[.!?](?=\s|$)|\n|。")


@dataclass(frozen=True, slots=True)
class Parser(Generic[Value]):
    """Parser of one kind of answer.

    Args:
        stated: Returns the different answers in a part that gives the answer; empty if there is none.
        loose: Returns the different answers of a text that does not say which is its answer.
            None if `stated` reads announcements, corrections and notes by itself.
    """

    stated: Callable[[str], Sequence[Value]]
    loose: Callable[[str], Sequence[Value]] | None = None


@dataclass(frozen=True, slots=True)
class Reading(Generic[Value]):
    """Answers that a text gives: one, none, or several different ones, which count as none.

    Args:
        other: What the text states as its answer if that is of another kind.
    """

    values: tuple[Value, ...]
    other: str = ""

    @property
    def value(self) -> Value | None:
        """The only answer, or None."""
        if len(self.values) == 1:
            return self.values[0]
        return None


#: Keeps the latest readings: the grade, whether a text is readable, and the kind of a fault come from one reading.
read_once = functools.lru_cache(maxsize=8)


def _stated_parts(text: str, *, whole: bool = False) -> Iterator[str]:
    """Yield the parts of a cleaned text that give its answer, the most binding first."""
    yield from boxes(text)
    if end := fields_end(text):
        yield from cue_parts(without_notes(text[end:]))
    yield from json_fields(text)
    if not whole:
        yield from cue_parts(without_notes(text[:end] if end else text))


def states_answer(text: str) -> bool:
    """Return whether a cleaned text says with a tag, a box, a field or words such as "the answer is" what it gives."""
    return bool(tag_parts(text)) or next(_stated_parts(text), None) is not None


def read_answer(text: str, parser: Parser[Value]) -> Reading[Value]:
    """Return the answers that a text gives, for a base model before its next question, if any."""
    text = answer_part(text)
    head = before_next_question(text)
    for body in dict.fromkeys((head, text) if len(head) <= _RESTATED else (head,)):
        tags = tag_parts(body)[:_PARTS]
        for part in (*tags, body):
            reading = _read_part(part, parser)
            if reading.values or reading.other:
                return reading
            if part is not body and is_definite(part):
                return Reading((), part)
    return Reading(())


def _read_part(text: str, parser: Parser[Value]) -> Reading[Value]:
    if is_program(text):
        return Reading(())
    for part in itertools.islice(_stated_parts(text, whole=parser.loose is None), _PARTS):
        values = parser.stated(part[:_CHARACTERS])
        if values:
            return Reading(tuple(dict.fromkeys(values)))
        if is_definite(part):
            later = cue_parts(text[max(boxes_end(text), fields_end(text)) :])
            values = next(filter(None, (parser.stated(each[:_CHARACTERS]) for each in later)), ())
            return Reading(tuple(dict.fromkeys(values)), "" if values else part)
    if parser.loose is None:
        return Reading(tuple(dict.fromkeys(parser.stated(text))))
    return _read_loosely(without_notes(text).strip(), parser.loose)


def _read_loosely(text: str, read: Callable[[str], Sequence[Value]]) -> Reading[Value]:
    """Return the only answer behind the last correction of a text, else the answers of the whole."""
    *_, corrected = (text, *(text[match.end() :] for match in _CORRECTED.finditer(text)))
    if corrected != text and len(corrected) <= _CORRECTION:
        values = read(corrected)
        if len(set(values)) == 1:
            return Reading((values[0],))
    return Reading(tuple(dict.fromkeys(read(text))))


def emphasized(text: str, question: str) -> str:
    """Return what the last sentence of a text quotes or has in bold, unless it denies or doubts it; else ""."""
    last = _last_sentence(text.rstrip("` \n").rpartition("\n")[2])
    parts = [part for part in _EMPHASIZED.findall(last) if part not in question]
    if len(parts) != 1:
        return ""
    before, part, after = last.partition(parts[0])
    if _DENIED_OR_DOUBTED.search(f"{_CONTRAST.split(before)[-1]} {after}"):
        return ""
    return part


def _last_sentence(line: str) -> str:
    return [*filter(str.strip, _SENTENCE.split(line)), ""][-2:][0].strip()


def _last_line(text: str) -> list[str]:
    """Return what the last line of a text says after its verb, if it is sure of it, and the line."""
    lines = []
    for line in text.rstrip("` \n").split("\n"):
        if line.strip() not in _DISPLAY:
            lines.append(line)
    last = lines[-1] if lines else ""
    statement = _SAID.fullmatch(_last_sentence(last))
    if statement and not _UNSURE.search(_CONTRAST.split(statement["before"])[-1]):
        return [statement["answer"], last]
    return [last]


def stated_texts(text: str, *, loose: bool = True) -> list[str]:
    """Return what a text may state as its answer in words, from the whole on, each with and without marks around it.

    Args:
        loose: Whether the last line of a text that states no answer is one, and what that says after its verb.
    """
    text = answer_part(text)
    head = before_next_question(text)
    if len(text) <= _CHARACTERS:
        texts = [text]
    else:
        texts = []
    for body in (*tag_parts(head)[:_PARTS], head):
        part = next(_stated_parts(body), body if body != text else "").strip()
        if part:
            texts += [part, _SENTENCE.split(part, maxsplit=1)[0]]
            break
    else:
        texts += _last_line(head) if loose else []
    return list(dict.fromkeys(form for each in texts for form in unwrapped(each[:_CHARACTERS])))
