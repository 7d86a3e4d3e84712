"""Values of a record as texts, lists and choices, in the forms in which data sets publish them."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple

#: Characters of a text that is read as a list.
_LONGEST = 200_000
_TEXT_KEYS = ("text", "content", "option", "choice", "value", "answer", "body", "sentence")
_LABEL_KEYS = ("label", "key", "id", "letter", "name", "option", "identifier")
_RIGHT_KEYS = ("is_correct", "correct", "isCorrect", "is_answer", "right", "score")
#: Texts that tables have for a missing value.  Each may as well be a text.
_MISSING_WORDS = frozenset(["nan", "NaN", "NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "None"])
#: Words before the letter or number of a choice.
PREFIX = re.compile(r"(?i)\A(?:option|choice|ans(?:wer)?)[ _-]?(?=\w{1,2}\Z)")
_LEAD = re.compile(r"\s*[(\[]?([A-Za-z]|\d{1,2})\s?[)\].:、．]\s*")
_NUMPY_LIST = re.compile(r"\[\s*(?:'[^']*'|\"[^\"]*\")(?:\s+(?:'[^']*'|\"[^\"]*\"))+\s*\]")


class Choices(NamedTuple):
    """Alternatives.

    Args:
        labels: Their names in the data set; empty if it gives none.
        right: Indexes of the right ones, if the alternatives mark them.
        either: Whether one of several right ones is a right answer, instead of all together.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()
    right: frozenset[int] | None = None
    either: bool = True


def is_missing(value: Any) -> bool:
    """Return whether a value is none: null, NaN, a blank text or an empty list."""
    return as_text(value) == "" or (isinstance(value, list | Mapping) and not value)


def may_be_missing(text: str) -> bool:
    """Return whether a text such as ``NaN`` or ``N/A`` may mean no value."""
    return text.strip() in _MISSING_WORDS


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
    for read in (json.loads, ast.literal_eval):
        try:
            parsed = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return list(parsed) if isinstance(parsed, set) else parsed
    return value


def as_list(value: Any) -> list[Any]:
    """Return a value as a list: a list, a text that holds one, or the value alone; nothing for none."""
    value = literal(value)
    if is_missing(value):
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def flat_texts(value: Any) -> list[str]:
    """Return the texts of all entries of a list, at any depth; of a value alone, its text."""
    if isinstance(value, list | tuple):
        return [text for entry in value for text in flat_texts(entry)]
    return [] if is_missing(value) else [as_text(value)]


def read_choices(value: Any) -> Choices:
    """Return the alternatives of a value: lists, objects, or one text of options behind letters.

    Missing ones after the last are left out; a missing one between others is empty.
    """
    return without_end(_read(literal(value)))


def without_end(choices: Choices) -> Choices:
    """Return choices without missing ones after the last."""
    count = len(choices.texts)
    while count and not choices.texts[count - 1]:
        count -= 1
    return choices._replace(texts=choices.texts[:count], labels=choices.labels[:count])


def _read(value: Any) -> Choices:
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if isinstance(value, str):
        return _of_text(value.strip())
    if not isinstance(value, list) or not value:
        return Choices(())
    if all(isinstance(entry, Mapping) for entry in value):
        return _of_objects(value)
    return _without_leads(tuple(as_text(entry) for entry in value))


def _of_mapping(value: Mapping[str, Any]) -> Choices:
    """Return the choices of an object: lists of texts and labels, texts by their labels, or scores by their texts."""
    lists = {key: entry for key, entry in value.items() if isinstance(entry, list)}
    texts = next((lists[key] for key in (*_TEXT_KEYS, "choices", "options") if key in lists), None)
    if texts is not None:
        return _of_lists(texts, lists)
    lettered = [str(key).upper() for key in value] == [chr(ord("A") + n) for n in range(len(value))]
    if not lettered and all(isinstance(entry, int | float) for entry in value.values()):
        return _of_scores(value)
    return Choices(tuple(map(as_text, value.values())), tuple(PREFIX.sub("", str(key)) for key in value))


def _of_scores(value: Mapping[str, float]) -> Choices:
    """Return the choices of an object of scores; the best ones above 0 are right."""
    best = max(value.values(), default=0)
    right = frozenset(n for n, score in enumerate(value.values()) if score == best > 0)
    return Choices(tuple(map(str, value)), (), right)


def _of_lists(texts: Sequence[Any], lists: Mapping[str, Sequence[Any]]) -> Choices:
    """Return choices with texts in one list, and labels, or marks of the right ones, in another."""
    labels = lists.get("label") or lists.get("labels") or []
    choices = tuple(map(as_text, texts))
    if len(labels) != len(texts):
        return Choices(choices)
    if "choices" in lists and set(map(as_text, labels)) <= {"0", "1", "True", "False"}:
        return Choices(choices, (), frozenset(n for n, label in enumerate(labels) if label in (1, True, "1")))
    return Choices(choices, tuple(map(as_text, labels)))


def _of_objects(value: Sequence[Mapping[str, Any]]) -> Choices:
    """Return the choices of a list of objects with a text each, and a label or a mark of the right ones."""
    if all(isinstance(entry.get("output"), Mapping) and "tags" in entry for entry in value):
        return _of_references(value)
    text = _key_of_all(value, _TEXT_KEYS, str | int | float)
    if not text:
        return Choices(())
    marked = _key_of_all(value, [key for key in _RIGHT_KEYS if key != text], bool | int)
    marked = marked or _key_of_all(value, ("label",), bool)
    labelled = _key_of_all(value, [key for key in _LABEL_KEYS if key not in (text, marked)], str | int)
    labels = _column(value, labelled) if labelled else ()
    right = frozenset(n for n, entry in enumerate(value) if entry[marked] == 1) if marked else None
    return Choices(_column(value, text), labels, right, either=False)


def _column(value: Sequence[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(as_text(entry[key]) for entry in value)


def _of_references(value: Sequence[Mapping[str, Any]]) -> Choices:
    """Return the choices of HELM's references; the tag ``correct`` marks the right ones."""
    tagged = frozenset(n for n, entry in enumerate(value) if "correct" in entry["tags"])
    return Choices(tuple(as_text(entry["output"].get("text")) for entry in value), (), tagged)


def _key_of_all(value: Sequence[Mapping[str, Any]], keys: Sequence[str], kind: type | UnionType) -> str:
    """Return the first of the keys under which all objects have a value of a kind, empty if there is none."""
    return next((key for key in keys if all(isinstance(entry.get(key), kind) for entry in value)), "")


def _without_leads(texts: tuple[str, ...]) -> Choices:
    """Return texts without the letters or numbers that lead all of them in order, which become labels."""
    leads = [match for match in map(_LEAD.match, texts) if match]
    names = [lead[1] for lead in leads]
    first = names[0] if names else ""
    if len(texts) < 2 or first not in ("A", "a", "1", "0") or names != [_after(first, n) for n in range(len(texts))]:
        return Choices(texts)
    rest = tuple(text[lead.end() :].strip() for text, lead in zip(texts, leads, strict=True))
    return Choices(rest, tuple(names)) if all(rest) else Choices(texts)


def letters_out_of_order(choices: Choices) -> str:
    """Return the letters of choices that have letters of their own in another order, such as ``ACBD``; else empty."""
    leads = [_LEAD.match(text) for text in choices.texts]
    letters = "".join(lead[1].upper() for lead in leads if lead)
    in_order = "".join(_after("A", n) for n in range(len(leads)))
    other = len(letters) == len(leads) > 1 and letters != in_order and set(letters) <= set(in_order)
    return letters if other else ""


def _after(first: str, n: int) -> str:
    return str(int(first) + n) if first.isdigit() else chr(ord(first) + n)


def _of_text(text: str) -> Choices:
    """Return the options of one text such as ``A) .. B) ..``, or of its lines."""
    for first in ("A", "a", "1"):
        parts = _labelled(text, first)
        if len(parts) > 1:
            return Choices(tuple(parts), tuple(_after(first, n) for n in range(len(parts))))
    lines = tuple(line.strip() for line in text.splitlines() if line.strip())
    return Choices(lines) if len(lines) > 1 else Choices(())


def _labelled(text: str, first: str) -> list[str]:
    """Return the texts between labels in order; the first label begins the text."""
    spans: list[tuple[int, int]] = []
    while True:
        name = re.escape(_after(first, len(spans)))
        label = re.compile(rf"(?:\A|(?<=[\s,;]))[(\[]?{name}\s?[)\].:、．]\s*")
        match = label.search(text, spans[-1][1] if spans else 0)
        if match is None or (not spans and match.start()):
            break
        spans.append(match.span())
    ends = [start for start, _ in spans[1:]] + [len(text)]
    parts = [text[begin:end].strip(" ,;\n\t") for (_, begin), end in zip(spans, ends, strict=False)]
    return parts if all(parts) else []
