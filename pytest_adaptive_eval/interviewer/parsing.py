"""Lenient parsers of replies: JSON in fences or among prose, with single quotes or trailing commas.

Replies are foreign text. An unusable one raises `Unreadable` with a kind for counts and a sentence for the model.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.interviewer.interviewer import Categories
from pytest_adaptive_eval.interviewer.prompts import one_line

#: Characters of a reply that are read, and positions at which an object may begin.
READ_CHARACTERS, OPENINGS = 20_000, 50
#: Longest name of a category.
NAME_CHARACTERS = 60
#: Most categories of a question.
MOST_NAMES = 10

_COMMA = re.compile(r",(\s*[}\]])")
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.0*)?")
_LEADING = re.compile(r"(?:candidate|question|item|number|no\.?|q|id|#)[\s:#]*", re.IGNORECASE)


class Unreadable(ValueError):
    """An unusable reply.

    Args:
        kind: ``no-json``, ``no-choice``, ``outside`` or ``no-category``.
    """

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind
        self.problem = problem


def read_object(text: str, keys: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return the last JSON object in a reply, since earlier ones may be reasoning that quotes the form.

    One with any of these keys is preferred. Raises `Unreadable` if there is none.
    """
    text = text[-READ_CHARACTERS:]
    start = 0
    objects: list[Mapping[str, Any]] = []
    for _ in range(OPENINGS):
        start = text.find("{", start)
        if start < 0:
            break
        end = _closing(text, start)
        read = None
        if end:
            read = _object(text[start:end])
        if read:
            objects.append(read)
            start = end
        else:
            start = start + 1
    if not objects:
        raise Unreadable("no-json", "it has no JSON object")
    with_key = (candidate for candidate in reversed(objects) if not candidate.keys().isdisjoint(keys))
    return next(with_key, objects[-1])


def _closing(text: str, start: int) -> int:
    """Return the position after the brace that closes the one at `start`, outside of strings; 0 if there is none."""
    depth = 0
    quote = ""
    last = ""
    position = start
    while position < len(text):
        c = text[position]
        if quote:
            if c == "\\":
                position += 1
            elif c == quote:
                quote = ""
        elif c == '"' or (c == "'" and last in "{[:,"):  # else an apostrophe
            quote = c
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
        if not c.isspace():
            last = c
        position += 1
    return 0


def _object(text: str) -> Mapping[str, Any] | None:
    """Return an object with casefolded keys; None for an empty one and other values."""
    parsers: tuple[Callable[[str], Any], ...] = (
        lambda text: json.loads(text, strict=False),
        lambda text: json.loads(_COMMA.sub(r"\1", text), strict=False),
        ast.literal_eval,  # single quotes, as Python prints them
    )
    for parse in parsers:
        with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            read = parse(text)
            if not isinstance(read, dict) or not read:
                return None
            return {str(key).strip().casefold(): value for key, value in read.items()}
    return None


def read_choice(text: str, ids: Sequence[str]) -> tuple[int, str]:
    """Return the index of the chosen candidate, from 0, and the model's explanation with its summary of what was asked.

    Candidates have `ids`, and numbers from 1, which are preferred. Raises `Unreadable` for any other choice.
    """
    keys = ("question_index", "index", "question", "choice", "id")
    read = read_object(text, keys)
    choice = next((read[key] for key in keys if key in read), None)
    if isinstance(choice, list | tuple) and len(choice) == 1:
        choice = choice[0]
    if isinstance(choice, bool) or not isinstance(choice, int | float | str) or not str(choice).strip():
        raise Unreadable("no-choice", 'it has no "question_index"')
    reasons = []
    for key in ("think", "summary"):
        if isinstance(read.get(key), str):
            reasons.append(one_line(read[key], 300))
    reason = "; so far: ".join(filter(None, reasons))
    return _index(str(choice).strip(), ids), reason


def _index(name: str, ids: Sequence[str]) -> int:
    """Return the index of the candidate with this number or id."""
    is_id = ids.count(name) == 1
    number = _bare(name)
    if is_id and _NUMBER.fullmatch(name) is None:
        return ids.index(name)
    if _NUMBER.fullmatch(number) and 1 <= int(float(number)) <= len(ids):
        return int(float(number)) - 1
    if is_id:
        return ids.index(name)
    raise Unreadable("outside", f"{one_line(name, 60)!r} is none of the candidates 1 to {len(ids)}")


def read_categories(text: str, existing: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the categories in a reply, at least one, in the spelling of `existing` ones; or raise `Unreadable`."""
    read = read_object(text, ("category", "categories"))
    names = _names(read.get("category", read.get("categories")), existing)
    if not names:
        raise Unreadable("no-category", 'it has no name in "category"')
    return names


def read_assignment(text: str, items: Sequence[str], existing: Sequence[str] = ()) -> Categories:
    """Return the categories of each item, by its id or its number from 1, in a reply; empty for a missing item.

    Raises:
        Unreadable: The reply has no JSON.
    """
    read = read_object(text)
    numbered: dict[str, Any] = {}
    for key, value in read.items():
        numbered.setdefault(_bare(key), value)
    names = dict.fromkeys(existing)
    assignment = []
    for number, item in enumerate(items, 1):
        value = numbered.get(str(number), read.get(item.casefold()))
        categories = _names(value, list(names))
        names.update(dict.fromkeys(categories))
        assignment.append(categories)
    return assignment


def _bare(name: str) -> str:
    """Return a number without words and punctuation around it."""
    return _LEADING.sub("", name, count=1).strip(" .()[]\"'")


def _names(values: object, existing: Sequence[str]) -> tuple[str, ...]:
    exact = {name.casefold(): name for name in reversed(existing)}
    names: dict[str, None] = {}
    if not isinstance(values, list | tuple):
        values = (values,)
    for value in values:
        if not isinstance(value, str):
            continue
        name = one_line(value, NAME_CHARACTERS).replace("|", "/")
        if name:
            spelling = exact.setdefault(name.casefold(), name)
            names.setdefault(spelling)
    return tuple(names)[:MOST_NAMES]
