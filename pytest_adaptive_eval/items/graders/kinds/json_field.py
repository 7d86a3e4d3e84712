"""Grader of a field of a JSON object."""

from __future__ import annotations

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
_MISSING = object()


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
    """Return the field at a path such as ``result.answer``, or `_MISSING`."""
    for name in path.split("."):
        if isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict) and name in value:
            value = value[name]
        else:
            return _MISSING
    return value


def _read(question: Asked, text: str) -> Any:
    path = str(question.meta.get("field", "answer"))
    fields = [_field(value, path) for value in _objects(without_reasoning(text))]
    return next((value for value in reversed(fields) if value is not _MISSING), _MISSING)


def _same(value: Any, answer: str) -> bool:
    """Return whether a JSON value is an accepted answer: the same text, number, truth value, list or object."""
    if isinstance(value, str):
        return folded(value) == folded(answer)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return any(float(number) == float(value) for number in expected_numbers(answer)[:1])
    try:
        return bool(value == json.loads(answer.lower() if isinstance(value, bool) else answer))
    except ValueError:
        return False


def _json(question: Asked, text: str) -> float:
    """Return 1 if the field ``meta.field`` of the last JSON object that has it is an accepted answer."""
    value = _read(question, text)
    return float(value is not _MISSING and any(_same(value, answer) for answer in question.answers))


def _check(question: Asked, answer: str) -> str:  # noqa: ARG001 - has the form of a check
    field = question.meta.get("field", "answer")
    return "" if isinstance(field, str) and field else f"cannot be looked for in meta.field {field!r:.80}; name a field"


REGISTERED = (
    GraderKind(
        "json",
        "a field of a JSON object, `meta.field` (by default `answer`), equals the accepted answer",
        _json,
        check=_check,
        readable=lambda question, text: _read(question, text) is not _MISSING,
    ),
)
