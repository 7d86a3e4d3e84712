"""Values of a record as texts and lists, in the forms in which data sets publish them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_adaptive_eval.banks.expressions import parse_literal
from pytest_adaptive_eval.extensions.importing.undecided import Advice, Undecided

#: Characters of a text that is read as a list.
_LONGEST = 200_000
#: Texts that tables have for a missing value.  Each may as well be a text.
_MISSING_WORDS = frozenset(["nan", "NaN", "NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "None"])
_NUMPY_LIST = re.compile(r"\[\s*(?:'[^']*'|\"[^\"]*\")(?:\s+(?:'[^']*'|\"[^\"]*\"))+\s*\]")


def is_missing(value: Any) -> bool:
    """Return whether a value is none: null, NaN, a blank text, an empty list or an object of such values alone."""
    if isinstance(value, Mapping):
        return all(map(is_missing, value.values()))
    if isinstance(value, list):
        return not value  # its text may have hundreds of megabytes
    return as_text(value) == ""


def may_be_missing(text: str) -> bool:
    """Return whether a text such as ``NaN`` or ``N/A`` may mean no value."""
    return text.strip() in _MISSING_WORDS


def may_mean_none(kind: str, word: str) -> Undecided:
    """Return the error on a text that may mean no value."""
    return Undecided(
        f"the {kind} {word!r} may mean no value",
        Advice({"missing": word}, "if it does"),
        Advice({"missing": ""}, "if it is a text"),
    )


def as_text(value: Any) -> str:
    """Return a value as text: a whole number without a point, true as ``True``, NaN and null as nothing."""
    if isinstance(value, str):
        return value.strip()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, list | Mapping):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def literal(value: Any) -> Any:
    """Return the list or object that a text holds as JSON, as Python or as numpy prints it; other values unchanged."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        return value
    text = value.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return value
    if _NUMPY_LIST.fullmatch(text):
        return [part[1:-1] for part in re.findall(r"'[^']*'|\"[^\"]*\"", text)]
    parsed = parse_literal(text)
    if isinstance(parsed, list | dict):
        return parsed
    return value


def fields_of(value: Any) -> Mapping[str, Any]:
    """Return an object; an empty one for another value."""
    if isinstance(value, Mapping):
        return value
    return {}


def entries_of(value: Any) -> list[Any]:
    """Return a list; an empty one for another value."""
    if isinstance(value, list):
        return value
    return []


def texts_within(value: Any) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    for part in (*entries_of(value), *fields_of(value).values()):
        yield from texts_within(part)


def as_list(value: Any) -> list[Any]:
    """Return a value as a list: a list, a text that holds one, or the value alone; nothing for none."""
    value = literal(value)
    if is_missing(value):
        return []
    if isinstance(value, list):
        return value
    return [value]


def without_place(entry: Any) -> Any:
    """Return the text of a list that pairs one with numbers, as with its place in a passage; other values unchanged."""
    if not isinstance(entry, list):
        return entry
    texts = [part for part in entry if isinstance(part, str)]
    are_numbers = all(isinstance(part, int | float | str) for part in entry)
    if len(texts) == 1 < len(entry) and are_numbers:
        return texts[0]
    return entry


def flat_texts(value: Any) -> list[str]:
    """Return the texts of all entries of a list, at any depth; of a value alone, its text."""
    if isinstance(value, list):
        return [text for entry in value for text in flat_texts(without_place(entry))]
    if is_missing(value):
        return []
    return [as_text(value)]
