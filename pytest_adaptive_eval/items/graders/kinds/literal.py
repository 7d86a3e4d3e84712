"""Grader of code and identifiers, where case and order count."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
import warnings
from typing import Any

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.reading.cleaning import plain_characters
from pytest_adaptive_eval.items.reading.reader import stated_texts

#: Characters of a literal that is parsed; Python's parser takes seconds for the longest.
_LONGEST = 2000
_NO_LITERAL = object()


def _value(text: str) -> Any:
    """Return the value of a literal of Python or JSON, with the types of all parts; `_NO_LITERAL` for other texts."""
    if len(text) > _LONGEST:
        return _NO_LITERAL
    for read in (ast.literal_eval, json.loads):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                return typed(read(text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return _NO_LITERAL


def typed(value: Any) -> Any:
    """Return a value that differs from values of other types; numbers compare as numbers."""
    if isinstance(value, dict):
        return "dict", {repr(typed(key)): typed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [typed(part) for part in value]
    if isinstance(value, set | frozenset):
        return "set", frozenset(repr(typed(part)) for part in value)
    if isinstance(value, str):
        return "str", unicodedata.normalize("NFC", value)
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__, value


def _written(text: str) -> str:
    """Return a text with single spaces, and none around commas, as names in a row are compared."""
    return re.sub(r"\s*,\s*", ",", " ".join(plain_characters(text).split()))


def _literal(question: Asked, text: str) -> float:
    """Return 1 if the text, or what it states, is an accepted answer in the same case and order."""
    forms = list(stated_texts(text))
    for answer in question.answers:
        value = _value(answer.strip())
        for outer, form in zip(("", *forms), forms, strict=False):
            if outer.strip("_") == form and outer != form:
                continue  # the marks of emphasis are part of a name
            if not answer.endswith("."):
                bare = form.rstrip(".")
            else:
                bare = form
            if value is _NO_LITERAL:
                if _written(bare) == _written(answer):
                    return 1.0
            elif value == _value(bare) and not (outer[:1] in "'\"([{" and outer[1:-1] == form and outer):
                return 1.0
    return 0.0


REGISTERED = (
    GraderKind(
        "literal",
        "the same code or name, where case and order count; literals of Python and JSON by their values",
        _literal,
        within=("contains",),
    ),
)
