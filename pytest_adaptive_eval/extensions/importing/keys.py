"""How the keys of a data set name choices: by label, letter, text or number."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.values import PREFIX, Choices, as_list, as_text

_LETTER = re.compile(r"\W*([A-Za-z])\W*\Z|[(\[]?([A-Z])[)\].:]\s+(\S.*)", re.DOTALL)
#: Several letters in a row, and what separates other keys of several choices.
_LETTERS, _SEPARATORS = re.compile(r"[A-J]{2,10}"), re.compile(r"[\s,;、/&|]+|and")
#: Records by which a convention is chosen, and the share of them that it has to explain.
_JUDGED, _EXPLAINED = 4000, 0.9


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!,;:\"'`*$")


def _by_label(answer: Any, choices: Choices) -> int | None:
    text = as_text(answer)
    if choices.labels.count(text) == 1:
        return choices.labels.index(text)
    stripped = PREFIX.sub("", text).strip("()[]. ").casefold()
    labels = [label.strip("()[]. ").casefold() for label in choices.labels]
    return labels.index(stripped) if labels.count(stripped) == 1 else None


def _by_letter(answer: Any, choices: Choices) -> int | None:
    match = _LETTER.match(as_text(answer)) if isinstance(answer, str) else None
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
    letter = _LETTER.match(stripped)
    return _by_letter(stripped, choices) if letter and letter[2] else None


def _from(first: int) -> Callable[[Any, Choices], int | None]:
    def read(answer: Any, choices: Choices) -> int | None:
        text = "" if isinstance(answer, bool) else as_text(answer)
        if not re.fullmatch(r"\d{1,2}(?:\.0)?", text):
            return None
        index = int(text.partition(".")[0]) - first
        return index if 0 <= index < len(choices.texts) else None

    return read


#: Ways in which an answer names a choice, by name.
READERS: Mapping[str, Callable[[Any, Choices], int | None]] = {
    "label": _by_label, "letter": _by_letter, "text": _by_text, "0": _from(0), "1": _from(1),
}  # fmt: skip
_NUMBERS = {"0": "numbers from 0", "1": "numbers from 1"}


def named(answer: Any, choices: Choices, convention: str) -> frozenset[int]:
    """Return the indexes of the choices that an answer names; empty if it names none.

    Args:
        answer: One answer, a list of answers, letters such as ``ABD``, or a mark for each of three or more choices.
    """
    read = READERS[convention]
    whole = read(answer, choices)
    if whole is not None:
        return frozenset([whole])
    parts = as_list(answer)
    if are_marks(parts, len(choices.texts)):
        return frozenset(n for n, mark in enumerate(parts) if mark)
    if len(parts) == 1 and isinstance(parts[0], str):
        parts = _split(parts[0].strip(), convention)
    indexes = [read(part, choices) for part in parts]
    return frozenset() if None in indexes else frozenset(index for index in indexes if index is not None)


def are_marks(parts: Sequence[Any], count: int) -> bool:
    """Return whether there is a mark for each choice; two marks may also be the numbers of both."""
    return len(parts) == count > 2 and all(mark in (0, 1) for mark in parts) and any(parts)


def _split(text: str, convention: str) -> list[str]:
    """Return the letters, labels or numbers of an answer that names several choices."""
    if convention in ("letter", "label") and _LETTERS.fullmatch(text):
        return list(text) if list(text) == sorted(set(text)) else [text]
    if convention == "text":
        return [part.strip() for part in re.split(r"[;|]|<AND>|<OR>", text)]
    return [part for part in _SEPARATORS.split(text) if part] or [text]


def find_convention(rows: Sequence[tuple[Any, Choices]], name: str) -> str:
    """Return how the answers of all rows name choices.

    Raises:
        DatasetError: No convention explains nine tenths of the rows, or several explain as many and name different
            choices.
    """
    judged = rows[:: 1 + len(rows) // _JUDGED]
    readings = {reader: [_partly(answer, choices, reader) for answer, choices in judged] for reader in READERS}
    explained = {reader: sum(map(bool, reading)) for reader, reading in readings.items()}
    best = max(READERS, key=explained.__getitem__)
    if explained[best] < _EXPLAINED * len(judged):
        answer, choices = next(row for row, found in zip(judged, readings[best], strict=True) if not found)
        raise DatasetError(
            f"the answers of {name!r} name a choice in {explained[best]} of {len(judged)} rows only: found "
            f"{answer!r:.60} for the choices {list(choices.texts)!r:.120}; give --set answer=FIELD, or --set "
            "choices=FIELDS"
        )
    if best == "label":  # the data set's own names
        return best
    for other in READERS:
        if other != best and explained[other] == explained[best]:
            _check_equal(judged, readings, (best, other), name)
    return best


def _partly(answer: Any, choices: Choices, reader: str) -> frozenset[int]:
    """Return the choices that an answer names; none if it is a text and names all."""
    found = named(answer, choices, reader)
    return found if len(found) < len(choices.texts) or isinstance(answer, list) else frozenset()


def _check_equal(
    rows: Sequence[tuple[Any, Choices]],
    readings: Mapping[str, Sequence[frozenset[int]]],
    pair: tuple[str, str],
    name: str,
) -> None:
    """Refuse answers that two conventions read as different choices."""
    first, second = pair
    for (answer, choices), one, other in zip(rows, readings[first], readings[second], strict=True):
        if one != other:
            raise DatasetError(
                f"the answers of {name!r} name choices by {_NUMBERS.get(first, first)} or by "
                f"{_NUMBERS.get(second, second)}, which differ: {answer!r:.60} for the choices "
                f"{list(choices.texts)!r:.120}; give --set counted={first} or {second}"
            )
