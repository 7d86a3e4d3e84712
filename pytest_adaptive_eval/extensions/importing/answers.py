"""Conventions by which the answers of a data set name choices, judged over all of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.choices import (
    PREFIX,
    Choices,
    as_list,
    as_text,
    is_missing,
    may_be_missing,
)

_YES = {"yes", "true", "y", "t"}
_NO = {"no", "false", "n", "f"}
_LETTERS = re.compile(r"\W*([A-Za-z])\W*\Z|[(\[]?([A-Z])[)\].:]\s+(\S.*)", re.DOTALL)
#: Conventions of numbers in words.
_NUMBERS = {"0": "numbers from 0", "1": "numbers from 1"}
#: Answers by which numbers begin at one place, for each that contradicts it.
_CONTRADICTED = 10
#: Share of the rows that a convention has to explain; the others are refused one by one.
_EXPLAINED = 0.9


def is_hidden(answer: Any, choices: Choices) -> bool:
    """Return whether an answer is missing, or is -1, signs or a word such as NaN that names no choice."""
    word = as_text(answer)
    may_hide = word == "-1" or may_be_missing(word) or not any(map(str.isalnum, word))
    return is_missing(answer) or (may_hide and _by_text(word, choices) is None and _by_label(word, choices) is None)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!,;:\"'`*$")


def _by_label(answer: Any, choices: Choices) -> int | None:
    text = as_text(answer)
    if choices.labels.count(text) == 1:
        return choices.labels.index(text)
    text = PREFIX.sub("", text)
    stripped = text.strip("()[]. ").casefold()
    labels = [label.strip("()[]. ").casefold() for label in choices.labels]
    return labels.index(stripped) if labels.count(stripped) == 1 else None


def _by_letter(answer: Any, choices: Choices) -> int | None:
    match = _LETTERS.match(as_text(answer)) if isinstance(answer, str) else None
    if not match:
        return None
    index = ord((match[1] or match[2]).upper()) - ord("A")
    if index >= len(choices.texts) or (match[2] and _normal(match[3]) != _normal(choices.texts[index])):
        return None
    return index


def _by_text(answer: Any, choices: Choices) -> int | None:
    stripped = as_text(answer)
    if choices.texts.count(stripped) == 1:
        return choices.texts.index(stripped)
    texts = [_normal(text) for text in choices.texts]
    if (form := _normal(stripped)) and texts.count(form) == 1:
        return texts.index(form)
    letter = _LETTERS.match(stripped)
    return _by_letter(stripped, choices) if letter and letter[2] else None


def _number(answer: Any) -> int | None:
    if isinstance(answer, bool):
        return None
    text = as_text(answer)
    return int(text.partition(".")[0]) if re.fullmatch(r"\d{1,2}(?:\.0)?", text) else None


def _from(first: int) -> Callable[[Any, Choices], int | None]:
    def read(answer: Any, choices: Choices) -> int | None:
        number = _number(answer)
        return None if number is None or not 0 <= number - first < len(choices.texts) else number - first

    return read


#: Ways in which an answer names a choice, by name.
READERS: Mapping[str, Callable[[Any, Choices], int | None]] = {
    "label": _by_label, "letter": _by_letter, "text": _by_text, "0": _from(0), "1": _from(1),
}  # fmt: skip


def named(answer: Any, choices: Choices, convention: str) -> frozenset[int]:
    """Return the indexes of the choices that an answer names; empty if it names none.

    Args:
        answer: One answer, a list of answers that are right together, or letters such as ``ABD``.
    """
    read = READERS[convention]
    parts = as_list(answer)
    if len(parts) == 1 and isinstance(parts[0], str) and read(parts[0], choices) is None:
        parts = _split(parts[0], convention)
    indexes = [read(part, choices) for part in parts]
    return frozenset() if None in indexes else frozenset(index for index in indexes if index is not None)


def _split(text: str, convention: str) -> list[str]:
    """Return the letters, labels or numbers of an answer that names several choices."""
    stripped = text.strip()
    if convention in ("letter", "label") and re.fullmatch(r"[A-J]{2,10}", stripped):
        return list(stripped) if list(stripped) == sorted(set(stripped)) else [text]
    if convention == "text":
        return [part.strip() for part in re.split(r"\s*[;|]\s*|<AND>|<OR>", stripped)]
    return [part for part in re.split(r"[\s,;、/&|]+|and", stripped) if part] or [text]


def find_convention(rows: Sequence[tuple[Any, Choices]], name: str) -> str:
    """Return how the answers of all rows name choices.

    Raises:
        DatasetError: No convention explains nine tenths of the rows, or several explain as many and name different
            choices.
    """
    readings: dict[str, list[frozenset[int]]] = {}
    explained: dict[str, int] = {}
    most = 0
    for reader in READERS:
        readings[reader] = reading = []
        missed = 0
        for answer, choices in rows:
            reading.append(found := named(answer, choices, reader))
            missed += not 0 < len(found) < len(choices.texts)
            if missed > len(rows) - most:  # another one explains more
                break
        explained[reader] = len(rows) - missed
        most = max(most, explained[reader])
    if most < len(rows) * _EXPLAINED:
        reading = readings[max(explained, key=explained.__getitem__)]
        answer, choices = next(row for row, found in zip(rows, reading, strict=True) if not found)
        raise DatasetError(
            f"the answers of {name!r} name a choice in {sum(map(bool, reading))} of {len(rows)} rows only: found "
            f"{answer!r:.60} for the choices {list(choices.texts)!r:.120}; give --set answer=FIELD, or --set "
            "choices=FIELDS"
        )
    best, *others = [reader for reader in READERS if explained[reader] == most]
    if best == "label":  # the data set's own names
        return best
    if best in _NUMBERS:
        _check_numbers(rows, name)
    for other in others:
        for (answer, choices), first, second in zip(rows, readings[best], readings[other], strict=True):
            if first != second:
                raise DatasetError(
                    f"the answers of {name!r} name choices by {_NUMBERS.get(best, best)} or by "
                    f"{_NUMBERS.get(other, other)}, which differ: "
                    f"{answer!r:.60} for the choices {list(choices.texts)!r:.120}; give --set counted={best} or "
                    f"{other}"
                )
    return best


def _check_numbers(rows: Sequence[tuple[Any, Choices]], name: str) -> None:
    """Refuse numbers that count partly from 0 and partly from 1, unless these are very few."""
    zeros = sum(_number(answer) == 0 for answer, _ in rows)
    lasts = sum(_number(answer) == len(choices.texts) for answer, choices in rows)
    if min(zeros, lasts) * _CONTRADICTED > max(zeros, lasts):
        raise DatasetError(
            f"the numbers in {name!r} count the choices from 0 ({zeros} are 0) and from 1 ({lasts} name the last); "
            "give --set counted=0 or 1"
        )


def yes_or_no(answer: Any) -> str | None:
    """Return ``yes`` or ``no`` for a truth value or a text that is one, else None."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    word = as_text(answer).strip(" .").casefold()
    return "yes" if word in _YES else "no" if word in _NO else None


def tail(text: str) -> str | None:
    """Return the text after the last ``####``; None without one."""
    before, mark, after = text.rpartition("####")
    return after.strip() if mark and (before or len(after) < 60) else None


def bracketed(text: str) -> str | None:
    """Return the text in double square brackets; None for other texts, and for lists of lists."""
    match = re.fullmatch(r"\s*\[\[([^\[\]]*)\]\]\s*", text)
    return match[1].strip() if match and "," not in match[1] else None


def boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}`` with its braces matched; None if there is none."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        match = re.search(r"\\boxed\s+(\S+?)[.$]*\Z", text)
        return match[1] if match else None
    at = start = text.index("{", start) + 1
    depth = 1
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return text[start:at].strip()
        at += 1
    return None
