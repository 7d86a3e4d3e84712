"""Conventions by which the answers of a data set name choices, judged over all of its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from pytest_adaptive_eval.banks.importing.choices import Choices, as_list, as_text
from pytest_adaptive_eval.errors import DatasetError

__all__ = ["READERS", "boxed", "find_convention", "named", "tail", "yes_or_no"]

_YES = {"yes", "true", "y", "t"}
_NO = {"no", "false", "n", "f"}
_LETTERS = re.compile(r"\W*([A-Za-z])\W*\Z|[(\[]?([A-Z])[)\].:]\s+\S")
#: Share of the rows that a convention has to explain; the others are refused one by one.
_EXPLAINED = 0.9


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!,;:\"'`*$")


def _by_label(answer: Any, choices: Choices) -> int | None:
    text = as_text(answer)
    if text in choices.labels:
        return choices.labels.index(text)
    stripped = text.strip("()[]. ").casefold()
    labels = [label.strip("()[]. ").casefold() for label in choices.labels]
    return labels.index(stripped) if labels.count(stripped) == 1 else None


def _by_letter(answer: Any, choices: Choices) -> int | None:
    match = _LETTERS.match(as_text(answer)) if isinstance(answer, str) else None
    if not match:
        return None
    index = ord((match[1] or match[2]).upper()) - ord("A")
    return index if index < len(choices.texts) else None


def _by_text(answer: Any, choices: Choices) -> int | None:
    stripped = as_text(answer)
    if choices.texts.count(stripped) == 1:
        return choices.texts.index(stripped)
    texts = [_normal(text) for text in choices.texts]
    for form in (_normal(stripped), _normal(re.sub(r"\A[(\[]?[A-Za-z][)\].:]\s+", "", stripped))):
        if form and texts.count(form) == 1:
            return texts.index(form)
    return None


def _number(answer: Any) -> int | None:
    if isinstance(answer, bool):
        return None
    text = as_text(answer)
    return int(text) if re.fullmatch(r"\d{1,2}", text) else None


def _from(first: int) -> Callable[[Any, Choices], int | None]:
    def read(answer: Any, choices: Choices) -> int | None:
        number = _number(answer)
        return None if number is None or not 0 <= number - first < len(choices.texts) else number - first

    return read


#: Ways in which an answer names a choice, by name.
READERS: Mapping[str, Callable[[Any, Choices], int | None]] = {
    "label": _by_label,
    "letter": _by_letter,
    "text": _by_text,
    "0": _from(0),
    "1": _from(1),
}


def named(answer: Any, choices: Choices, convention: str) -> frozenset[int]:
    """Return the indexes of the choices that an answer names; empty if it names none.

    Parameters
    ----------
    answer : object
        One answer, a list of answers that are right together, or letters such as ``ABD``.
    choices : Choices
    convention : str
        A name of `READERS`.
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

    Parameters
    ----------
    rows : sequence of (answer, Choices)
        Rows with alternatives and an answer.
    name : str
        Name of the answer's field, for the rare case that it decides, and for messages.

    Raises
    ------
    DatasetError
        No convention explains nine tenths of the rows, or numbers may count from 0 and from 1.
    """
    explained = {reader: sum(bool(named(answer, choices, reader)) for answer, choices in rows) for reader in READERS}
    whole = {reader for reader, count in explained.items() if count == len(rows)}
    if ({"0", "1"} & whole or not whole) and (convention := _among_numbers(rows, explained, whole, name)):
        return convention
    if convention := next((reader for reader in ("label", "letter", "text") if reader in whole), ""):
        return convention
    best = max(explained, key=lambda reader: explained[reader])
    if explained[best] >= len(rows) * _EXPLAINED:
        return best
    answer, choices = next((row for row in rows if not named(*row, best)), rows[0])
    raise DatasetError(
        f"the answers of {name!r} name a choice in {explained[best]} of {len(rows)} rows only: found {answer!r:.60} "
        f"for the choices {list(choices.texts)!r:.120}; give --answer another field, or --choices"
    )


def _among_numbers(
    rows: Sequence[tuple[Any, Choices]], explained: Mapping[str, int], whole: Set[str], name: str
) -> str:
    """Return the convention where answers may be numbers of choices; empty if too few of them are numbers."""
    typed = any(isinstance(answer, int) for answer, _ in rows)
    indexed = bool(re.search(r"(?i)ind(ex)?|idx|label|cop|num|gold", name))
    if "label" in whole:
        return "label"
    if "text" in whole and not (typed and indexed):
        return "text"
    numbers = sum(_number(answer) is not None for answer, _ in rows)
    return _first_number(rows, explained, name) if numbers >= len(rows) * _EXPLAINED else ""


def _first_number(rows: Sequence[tuple[Any, Choices]], explained: Mapping[str, int], name: str) -> str:
    """Return whether numbers count from 0 or 1: a 0 stands for the first, a number of all choices for the last."""
    zero = sum(_number(answer) == 0 for answer, _ in rows)
    last = sum(_number(answer) == len(choices.texts) for answer, choices in rows)
    if zero and explained["0"] >= len(rows) * _EXPLAINED and zero >= last:
        return "0"
    if last and explained["1"] >= len(rows) * _EXPLAINED:
        return "1"
    if re.search(r"(?i)ind(ex)?\Z|idx|\Alabel|\Agold", name):
        return "0"
    raise DatasetError(
        f"the numbers in {name!r} may count the choices from 0 or from 1: none is 0 and none names the last; give "
        "--counted 0 or --counted 1"
    )


def yes_or_no(answer: Any) -> str | None:
    """Return ``yes`` or ``no`` for a truth value or a text that is one, else None."""
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    word = as_text(answer).strip(" .").casefold()
    return "yes" if word in _YES else "no" if word in _NO else None


def tail(text: str) -> str | None:
    """Return what stands after the last ``####``; None if there is none."""
    before, mark, after = text.rpartition("####")
    return after.strip() if mark and (before or len(after) < 60) else None


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
