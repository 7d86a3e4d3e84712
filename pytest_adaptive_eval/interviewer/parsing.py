"""What a model replied, read with patience: JSON in fences or among prose, with single quotes or trailing commas.

Replies are foreign text.  Whatever cannot be read is an `Unreadable` with a kind to count by and a sentence to
tell the model.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.interviewer.prompts import one_line

__all__ = ["Unreadable", "read_assignment", "read_categories", "read_choice", "read_object"]

#: Characters of a reply that are looked at, and places in it where an object may begin.
READ_CHARACTERS, OPENINGS = 20_000, 50
#: A longer name is no name of a category.
NAME_CHARACTERS = 60
#: Categories of one question.
MOST_NAMES = 10

_COMMA = re.compile(r",(\s*[}\]])")
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.0*)?")
_LEADING = re.compile(r"(?:candidate|question|item|number|no\.?|q|id|#)[\s:#]*", re.IGNORECASE)


class Unreadable(ValueError):
    """A reply that cannot be used.

    Parameters
    ----------
    kind : str
        ``no-json``, ``no-choice``, ``outside`` or ``no-category``.
    problem : str
        What the model is told.
    """

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind
        self.problem = problem


def read_object(text: str, wanted: Sequence[str] = ()) -> Mapping[str, Any]:
    """The last JSON object in a reply; what stands before it may be reasoning that quotes the form.

    Parameters
    ----------
    text : str
    wanted : sequence of str
        Keys; an object that has one of them, by whatever case, goes before one that has none.

    Raises
    ------
    Unreadable
        There is none.
    """
    text = text[-READ_CHARACTERS:]
    at, found = 0, []
    for _ in range(OPENINGS):
        at = text.find("{", at)
        if at < 0:
            break
        end = _closing(text, at)
        read = _object(text[at:end]) if end else None
        found += [read] if read else []
        at = end if read else at + 1
    if not found:
        raise Unreadable("no-json", "there is no JSON object in it")
    return next((read for read in reversed(found) if read.keys() & set(wanted)), found[-1])


def _closing(text: str, start: int) -> int:
    """Behind the brace that closes the one at `start`, 0 where none does; braces in strings do not count."""
    depth, quote, last, at = 0, "", "", start
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c == '"' or (c == "'" and last in "{[:,"):  # else an apostrophe
            quote = c
        elif c in "{[":
            depth += 1
        elif c in "}]":
            depth -= 1
            if depth == 0:
                return at + 1
        last = last if c.isspace() else c
        at += 1
    return 0


def _object(text: str) -> Mapping[str, Any] | None:
    for variant in (text, _COMMA.sub(r"\1", text)):
        try:
            read = json.loads(variant, strict=False)
        except (ValueError, RecursionError):
            continue
        return _folded(read)
    try:
        read = ast.literal_eval(text)  # single quotes, as Python prints them
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return _folded(read)


def _folded(read: object) -> Mapping[str, Any] | None:
    """An object that is not empty, its keys in lower case."""
    if not isinstance(read, dict):
        return None
    return {str(key).strip().casefold(): value for key, value in read.items()} or None


def read_choice(text: str, ids: Sequence[str]) -> tuple[int, str]:
    """Which candidate a reply chooses, from 0, and what it thinks.

    Parameters
    ----------
    text : str
    ids : sequence of str
        Of the candidates, in the order in which they were numbered from 1; a number goes before an id.

    Raises
    ------
    Unreadable
        There is no JSON, no choice in it, or the choice is none of the candidates.
    """
    keys = ("question_index", "index", "question", "choice", "id")
    read = read_object(text, keys)
    given = next((read[key] for key in keys if key in read), None)
    if isinstance(given, list | tuple) and len(given) == 1:
        given = given[0]
    if isinstance(given, bool) or not isinstance(given, int | float | str) or not str(given).strip():
        raise Unreadable("no-choice", 'it has no "question_index"')
    name, think = str(given).strip(), _sentence(read.get("think"))
    if _NUMBER.fullmatch(name) is None and ids.count(name) == 1:
        return ids.index(name), think
    number = _bare(name)
    if _NUMBER.fullmatch(number) and 1 <= int(float(number)) <= len(ids):
        return int(float(number)) - 1, think
    if ids.count(name) == 1:
        return ids.index(name), think
    raise Unreadable("outside", f"{one_line(name, 60)!r} is none of the candidates 1 to {len(ids)}")


def read_categories(text: str, known: Sequence[str] = ()) -> tuple[str, ...]:
    """The categories that a reply names, at least one; those `known` by another spelling get their exact names.

    Raises
    ------
    Unreadable
        There is no JSON, or no name in it.
    """
    read = read_object(text, ("category", "categories"))
    names = _names(next((read[key] for key in ("category", "categories") if key in read), None), known)
    if not names:
        raise Unreadable("no-category", 'it has no name in "category"')
    return names


def read_assignment(text: str, items: Sequence[str], known: Sequence[str] = ()) -> list[tuple[str, ...]]:
    """The categories of each item by a reply, empty for those that it leaves out.

    Parameters
    ----------
    text : str
    items : sequence of str
        Ids, in the order in which they were numbered from 1.
    known : sequence of str

    Raises
    ------
    Unreadable
        There is no JSON.
    """
    read = read_object(text)
    numbered: dict[str, Any] = {}
    for key, value in read.items():
        numbered.setdefault(_bare(key), value)
    seen, out = dict.fromkeys(known), []
    for number, name in enumerate(items, 1):
        own = _names(numbered.get(str(number), read.get(name.casefold())), list(seen))
        seen.update(dict.fromkeys(own))
        out.append(own)
    return out


def _bare(name: str) -> str:
    """A number without what people write around it."""
    return _LEADING.sub("", name, count=1).strip(" .()[]\"'")


def _names(given: object, known: Sequence[str]) -> tuple[str, ...]:
    exact = {name.casefold(): name for name in reversed(known)}
    names: dict[str, None] = {}
    for value in given if isinstance(given, list | tuple) else (given,):
        if isinstance(value, str) and (name := one_line(value, NAME_CHARACTERS).replace("|", "/")):
            names.setdefault(exact.setdefault(name.casefold(), name))
    return tuple(names)[:MOST_NAMES]


def _sentence(think: object) -> str:
    return one_line(think, 300) if isinstance(think, str) else ""
