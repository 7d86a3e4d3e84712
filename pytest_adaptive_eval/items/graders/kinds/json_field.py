"""Grader of JSON: a field of an object, or a whole object or list."""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.graders.kinds.words import folded
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning
from pytest_adaptive_eval.items.reading.numbers import expected_numbers

_DECODER = json.JSONDecoder(strict=False)
#: Objects of an answer that are looked through, from the last.
_OBJECTS = 50
MISSING = object()  #: In place of a value that a text lacks.
_BRACED = re.compile(r"\{.*\}|\[.*\]", re.DOTALL)
#: Texts of JSON, and its names, which Python writes in another way. Python's parser takes seconds for long texts.
_WORD, _NAMES, _LONGEST = (
    re.compile(r"(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|\b(true|false|null)\b", re.DOTALL),
    {"true": "True", "false": "False", "null": "None"},
    5000,
)
_FIELD = "answer"  #: Field that is read where `meta.field` names none.


def _objects(text: str) -> Iterator[Any]:
    """Yield the outermost JSON objects and lists of a text, in order."""
    position = 0
    for _ in range(_OBJECTS):
        match = re.compile(r"[{\[]").search(text, position)
        if match is None:
            return
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        yield value


def _field(value: Any, path: str) -> Any:
    """Return the field at a path such as ``result.answer``, or `MISSING`."""
    for name in path.split("."):
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return MISSING
    return value


def last_value(text: str) -> Any:
    """Return the value of a text that is JSON, else the last object or list within it, or `MISSING`."""
    text = without_reasoning(text).strip()
    whole = _parsed(text)
    if whole is not MISSING:
        return whole
    return next(reversed(list(_objects(text))), MISSING)


def _expects_whole(question: Asked) -> bool:
    """Return whether the whole object or list of an answer is compared: a key is one, and no field is named."""
    return "field" not in question.meta and any(isinstance(_parsed(key), dict | list) for key in question.answers)


def _parsed(text: str) -> Any:
    """Return the value of a JSON text, or `MISSING`."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return MISSING


def parsed_leniently(text: str) -> Any:
    """Return the value of a JSON text, also with single quotes, a comma before a bracket, or names of Python."""
    value = _parsed(text)
    if value is MISSING and len(text) <= _LONGEST:
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            value = ast.literal_eval(_WORD.sub(lambda match: match[1] or _NAMES[match[2]], text.strip()))
    return value


def _read(question: Asked, text: str) -> Any:
    text = without_reasoning(text)
    values = list(_objects(text))
    if not values:
        fenced = _BRACED.search(text)
        if fenced:
            lenient = parsed_leniently(fenced[0])
        else:
            lenient = MISSING
        values = [] if lenient is MISSING else [lenient]
    path = str(question.meta.get("field", _FIELD))
    fields = [_field(value, path) for value in values]
    field = next((value for value in reversed(fields) if value is not MISSING), MISSING)
    if _expects_whole(question) and values:
        key_has_field = any(_field(_parsed(key), _FIELD) is not MISSING for key in question.answers)
        if field is MISSING or key_has_field:
            return values[-1]
        return field
    return field


def _same(value: Any, answer: str) -> bool:
    """Return whether a JSON value is an accepted answer: the same text, number, truth value, list or object."""
    if isinstance(value, str):
        return folded(value) == folded(answer)
    if isinstance(value, int | float) and not isinstance(value, bool):
        for number in expected_numbers(answer)[:1]:
            if float(number) == float(value):
                return True
        return False
    return _equal(value, _parsed(answer.lower() if isinstance(value, bool) else answer))


def _equal(value: Any, expected: Any) -> bool:
    """Return whether two JSON values are equal; texts as `folded`, and true is not 1."""
    if isinstance(value, str) and isinstance(expected, str):
        return folded(value) == folded(expected)
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_equal(value[name], expected[name]) for name in value)
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(_equal, value, expected))
    return bool(value == expected) and isinstance(value, bool) == isinstance(expected, bool)


def _json(question: Asked, text: str) -> float:
    """Return 1 if the field ``meta.field`` of the last JSON object that has it is an accepted answer.

    Where a key is an object or a list and no field is named, the last one of the text is compared as a whole.
    """
    value = _read(question, text)
    return float(value is not MISSING and any(_same(value, answer) for answer in question.answers))


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    field = question.meta.get("field", "answer")
    if isinstance(field, str) and field:
        return ""
    return f"cannot be looked for in meta.field {field!r:.80}; name a field"


REGISTERED = (
    GraderKind(
        "json",
        "a field of a JSON object, `meta.field` (by default `answer`), or a whole object or list is the accepted one",
        _json,
        check=_check,
        readable=lambda question, text: _read(question, text) is not MISSING,
    ),
)
