"""Choices of a record in one form, whatever the data set writes, and the ones that its answer names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.names import normal
from pytest_adaptive_eval.extensions.importing.undecided import Advice, Undecided
from pytest_adaptive_eval.extensions.importing.values import as_list, as_text, literal

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TEXT_KEYS = ("text", "content", "option", "choice", "value", "answer", "body", "sentence", "choices", "options")
_LABEL_KEYS = ("label", "labels", "key", "id", "letter", "name", "option", "identifier", "answer")
_RIGHT_KEYS = ("is_correct", "correct", "isCorrect", "is_answer", "right", "score")
#: Words before the letter or number of a choice.
_PREFIX = re.compile(r"(?i)\A(?:option|choice|ans(?:wer)?)[ _-]?(?=\w{1,2}\Z)")
#: A letter or number before a choice in one text of all, and what may follow the choice.
_MARK, _ENDS = r"(?:\A|[\s,;|，；、。])[(\[]?{0}\s?[)\].:、．：]\s*|(?:\A|\n){0}\s+(?=\S)", " \n\t,;|，；、。"
#: Marks in one text at most: letters up to the last one, or numbers.
_MARKS = 25
_LEAD = re.compile(r"\s*[(\[]?([A-Za-z]|\d{1,2})\s?[)\].:、．]\s*")
#: Signs around a text that do not count, and those around a letter.
_AROUND, _AROUND_LETTER = " .!,;:\"'`*$", " .!,;:\"'`*$()[]<>"
#: Several letters in a row, and what separates other keys of several choices.
_SEVERAL, _SEPARATORS = re.compile(r"[A-J]{2,10}"), re.compile(r"[\s,;、/&|]+|and")
#: How an answer may name a choice, in words.
_CONVENTIONS = {
    "label": "label", "letter": "letter", "text": "text", "0": "numbers from 0", "1": "numbers from 1",
}  # fmt: skip
#: Records by which a convention is chosen, and the share of them that it has to explain.
_JUDGED, _EXPLAINED = 4000, 0.9


class Entry(NamedTuple):
    """One alternative; `right` is None where the data do not mark it."""

    text: str
    label: str = ""
    right: bool | None = None


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


def read_choices(value: Any, missing: Sequence[str]) -> Choices:
    """Return the alternatives of a value: lists, objects, pairs of a text and a mark, or one text of options.

    Args:
        missing: Texts that stand for no value.

    Raises:
        DatasetError: They have letters of their own in another order.
    """
    value = literal(value)
    if isinstance(value, Mapping):
        return choices_of(_of_mapping(value), missing)
    if isinstance(value, str):
        return choices_of(_of_one_text(value), missing)
    if not isinstance(value, list):
        return Choices(())
    if all(isinstance(entry, Mapping) for entry in value):
        return choices_of(_of_objects(value), missing)._replace(either=False)
    if all(isinstance(entry, list) and len(entry) == 2 for entry in value):
        return choices_of([Entry(as_text(text), "", right=right == 1) for text, right in value], missing)
    return choices_of(_of_texts(list(map(as_text, value))), missing)


def choices_of(entries: Sequence[Entry], missing: Sequence[str] = ()) -> Choices:
    """Return the choices of entries, without missing ones after the last; one between others stays empty."""
    texts = []
    for entry in entries:
        texts.append("" if entry.text in missing else entry.text)
    while texts and not texts[-1]:
        texts.pop()
    entries = entries[: len(texts)]
    labels = tuple(entry.label for entry in entries)
    right = frozenset(n for n, entry in enumerate(entries) if entry.right)
    marked = any(entry.right is not None for entry in entries)
    return Choices(tuple(texts), labels if all(labels) else (), right if marked else None)


def _of_mapping(value: Mapping[str, Any]) -> list[Entry]:
    """Return the choices of an object: lists side by side, scores by their texts, or texts by their labels."""
    lists = {}
    for key, entry in value.items():
        if isinstance(entry, list):
            lists[key] = entry
    if not lists.keys().isdisjoint(_TEXT_KEYS):
        return _of_objects([dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=False)])
    lettered = [str(key).upper() for key in value] == following("A", len(value))
    if not lettered and all(isinstance(entry, int | float) for entry in value.values()):
        best = max(value.values(), default=0)
        return [Entry(str(key), "", score == best > 0) for key, score in value.items()]
    return [Entry(as_text(entry), _PREFIX.sub("", str(key))) for key, entry in value.items()]


def _of_objects(value: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the choices of a list of objects with a text each, and a label or a mark of the right ones."""
    text = _key_of_all(value, _TEXT_KEYS, str | int | float)
    if not text:
        return []
    marks = ("labels", *_RIGHT_KEYS) if text == "choices" else _RIGHT_KEYS
    marked = _key_of_all(value, [key for key in marks if key != text], int) or _key_of_all(value, ("label",), bool)
    labelled = _key_of_all(value, [key for key in _LABEL_KEYS if key not in (text, marked)], str | int)
    return [
        Entry(as_text(entry[text]), as_text(entry.get(labelled)), entry[marked] == 1 if marked else None)
        for entry in value
    ]


def _key_of_all(value: Sequence[Mapping[str, Any]], keys: Iterable[str], kind: type | UnionType) -> str:
    """Return the first of the keys under which all objects have a value of a kind, empty if there is none."""
    if value:
        names = list(value[0])
    else:
        names = []
    for key in keys:
        for name in (key, *(name for name in names if normal(str(name)).endswith(key))):
            if all(isinstance(entry.get(name), kind) for entry in value):
                return name
    return ""


def _of_one_text(text: str) -> list[Entry]:
    """Return the choices in one text: behind letters or numbers in order, or in lines."""
    for first in "Aa1":
        marks = []
        at = 0
        for label in following(first, _MARKS):
            match = re.compile(_MARK.format(label)).search(text, at)
            if match is None:
                break
            marks.append(match)
            at = match.end()
        if len(marks) > 1 and not text[: marks[0].start()].strip():
            ends = [mark.start() for mark in marks[1:]] + [len(text)]
            names = following(first, len(marks))
            return [
                Entry(text[mark.end() : end].strip(_ENDS), name)
                for mark, end, name in zip(marks, ends, names, strict=True)
            ]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return _of_texts(lines)
    return []


def _of_texts(texts: Sequence[str]) -> list[Entry]:
    """Return the choices of texts; letters or numbers that lead all of them in order become labels."""
    leads = [match for match in map(_LEAD.match, texts) if match]
    names = [lead[1] for lead in leads]
    if len(names) != len(texts) or len(names) < 2:
        return list(map(Entry, texts))
    rest = []
    for text, lead in zip(texts, leads, strict=True):
        rest.append(text[lead.end() :].strip())
    if names[0] in "Aa10" and names == following(names[0], len(names)) and all(rest):
        return list(map(Entry, rest, names))
    letters = "".join(names).upper()
    in_order = following("A", len(names))
    if list(letters) != in_order and set(letters) <= set(in_order):
        raise DatasetError(f"its choices have the letters {letters} of their own, so the right one is not certain")
    return list(map(Entry, texts))


def following(first: str, count: int) -> list[str]:
    """Return letters or numbers in order."""
    return [str(int(first) + n) if first.isdigit() else chr(ord(first) + n) for n in range(count)]


def named(answer: Any, choices: Choices, convention: str) -> frozenset[int]:
    """Return the indexes of the choices that an answer names; empty if it names none.

    Args:
        answer: One answer, a list of answers, or letters such as ``ABD``.
    """
    return frozenset(ordered(answer, choices, convention))


def ordered(answer: Any, choices: Choices, convention: str) -> list[int]:
    """Return the indexes of the choices that an answer names, in its order; empty if it names none."""
    whole = _index(as_text(answer), choices, convention)
    if whole is None:
        whole = _index_with_text(as_text(answer), choices)
    if whole is not None:
        return [whole]
    parts = as_list(answer)
    if len(parts) == 1 and isinstance(parts[0], str):
        parts = _split(parts[0].strip(), convention)
    indexes = []
    for part in parts:
        index = _index(as_text(part), choices, convention)
        if index is not None and index not in indexes:
            indexes.append(index)
    if len(indexes) == len(parts):
        return indexes
    return []


def _index_with_text(answer: str, choices: Choices) -> int | None:
    """Return the index of the choice that an answer names by its letter or label and its text, as in ``B) ivy``."""
    lead = _LEAD.match(answer)
    if lead is None:
        return None
    text = answer[lead.end() :].strip()
    for index, choice in enumerate(choices.texts):
        names = (LETTERS[index : index + 1], *choices.labels[index : index + 1])
        if choice == text and lead[1].upper() in map(str.upper, names):
            return index
    return None


def _index(answer: str, choices: Choices, convention: str) -> int | None:
    """Return the index of the only choice that a convention calls as an answer says, but for case and marks."""
    count = len(choices.texts)
    names = {
        "label": choices.labels, "letter": LETTERS[:count], "text": choices.texts, "0": map(str, range(count)),
        "1": map(str, range(1, count + 1)),
    }[convention]  # fmt: skip
    signs = _AROUND if convention == "text" else _AROUND_LETTER
    exact = list(names)
    for forms, form in ((exact, answer), ([_plain(name, signs) for name in exact], _plain(answer, signs))):
        if form and forms.count(form) == 1:
            return forms.index(form)
    return None


def _plain(text: str, signs: str) -> str:
    return _PREFIX.sub("", " ".join(text.casefold().split()).strip(signs)).removesuffix(".0")


def _split(text: str, convention: str) -> list[str]:
    """Return the letters, labels or numbers of an answer that names several choices."""
    if convention in ("letter", "label") and _SEVERAL.fullmatch(text):
        if list(text) == sorted(set(text)):
            return list(text)
        return [text]
    separators = "[;|]" if convention == "text" else _SEPARATORS
    return [part.strip() for part in re.split(separators, text) if part] or [text]


def find_convention(rows: Sequence[tuple[Any, Choices]], name: str, fields: Sequence[str] = ()) -> str:
    """Return how the answers of all rows name choices, which some fields have.

    Raises:
        DatasetError: No convention explains nine tenths of the rows, or several explain as many and name different
            choices.
    """
    judged = rows[:: 1 + len(rows) // _JUDGED]
    readings: dict[str, list[frozenset[int]]] = {}
    for convention in _CONVENTIONS:
        reading = [named(*row, convention) for row in judged]
        orders = sum(len(right) == len(row[1].texts) for right, row in zip(reading, judged, strict=True))
        if orders * 2 > len(judged):
            readings[convention] = [frozenset()] * len(judged)
        else:
            readings[convention] = reading
    explained = {}
    for convention, reading in readings.items():
        explained[convention] = sum(map(bool, reading))
    best = max(_CONVENTIONS, key=explained.__getitem__)
    if explained[best] < _EXPLAINED * len(judged):
        answer, choices = judged[readings[best].index(frozenset())]
        problem = (
            f"the answers of {name!r} name a choice in {explained[best]} of {len(judged)} rows only: found "
            f"{answer!r:.60} for the choices {list(choices.texts)!r:.120}"
        )
        orders = sum(len(ordered(*row, "letter")) == len(row[1].texts) for row in judged)
        if orders >= _EXPLAINED * len(judged):
            raise Undecided(problem, Advice({"answer_kind": "list"}, "where they put the choices in order"))
        problem += "; write --set answer=FIELD, or --set choices=FIELDS"
        if 0 < explained[best] * 2 < len(judged):
            raise Undecided(problem, Advice({"ignore": ",".join(fields)}, "where answers are texts of their own"))
        raise Undecided(problem)
    equal = []
    for other in _CONVENTIONS:
        if explained[other] == explained[best]:
            equal.append(other)
    rival = next((other for other in equal if readings[other] != readings[best]), best)
    if rival != best != "label":  # labels are the data set's own names
        pairs = zip(readings[best], readings[rival], strict=True)
        answer, choices = judged[[first == second for first, second in pairs].index(False)]
        raise Undecided(
            f"the answers of {name!r} name choices by {_CONVENTIONS[best]} or by {_CONVENTIONS[rival]}, which "
            f"differ: {answer!r:.60} for the choices {list(choices.texts)!r:.120}",
            Advice({"counted": best}),
            Advice({"counted": rival}),
            even=True,
        )
    return best
