"""Propose the mapping of a data set from the names of its fields, and show what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.expressions import as_path, parse_expression
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.extensions.importing import names
from pytest_adaptive_eval.extensions.importing.grading import count_words
from pytest_adaptive_eval.extensions.importing.names import NAMES, normal
from pytest_adaptive_eval.extensions.importing.values import as_text, is_missing, literal
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import replaced

#: Records whose fields are looked at.
SAMPLE = 400
#: Fields of objects that are looked into, and fields in all.
_INNER, _MOST = 12, 400
#: Words of a text that a question may need, in the middle, and of one that is named like a category.
_LONG, _LONGER = 3, 6
#: Share of the questions that contain a field, from which they do not need it.
_CONTAINED = 0.9
#: Records with as many different texts each, from which these may be choices.
_ALIKE = 10
#: Characters of a value that are compared and shown.
_BEGIN = 4000
_FLAG_WORDS = {"0", "1", "true", "false"}


class Unused(NamedTuple):
    """A field that no question uses.

    Args:
        needed: Whether questions may need it: by its name, or as a text of several words.
        example: One of its values.
        constant: Whether all of its values are equal.
    """

    name: str
    needed: bool
    example: str
    constant: bool


class _Fields:
    """Fields of records by expression, and the ones that a mapping does not use yet."""

    def __init__(self, records: Sequence[TableRecord], used: Iterable[str]) -> None:
        self.records, self.used = records, set(used)
        self.paths: dict[str, tuple[str, ...]] = {}
        for record in records:
            for key, value in record.data.items():
                self.paths.setdefault(_expression(key), (key,))
                if isinstance(value, Mapping) and len(value) <= _INNER:
                    for inner in map(str, value):
                        self.paths.setdefault(f"{as_path(key)}.{as_path(inner)}", (key, inner))
            if len(self.paths) > _MOST:
                break

    def values(self, expression: str) -> list[Any]:
        """Return the values of an expression that are not missing."""
        read = parse_expression(expression)
        found = [read(record.data, record.names) for record in self.records]
        return [value for value in found if not is_missing(value)]

    def named(self, wanted: Sequence[str]) -> Iterator[str]:
        """Yield unused fields that have one of the names and a value, in the order of the names; whole fields first."""
        for name in wanted:
            for length in (1, 2):
                for text, path in self.paths.items():
                    if len(path) == length and normal(path[-1]) == name and self._is_free(text) and self.values(text):
                        yield text

    def _is_free(self, text: str) -> bool:
        return text not in self.used and self.paths[text][0] not in self.used

    def take(self, expressions: Iterable[str]) -> None:
        """Count the fields in expressions of `propose` as used."""
        for text in expressions:
            for part in map(str.strip, re.split(r"\|\||[{}]", text)):
                self.used |= {part, part.partition("[")[0]}

    def first(self, key: str) -> str:
        """Return the first unused field for a key of a mapping; empty if there is none."""
        return next(self.named(NAMES[key]), "")


def _expression(key: str) -> str:
    """Return the expression of a whole field: its bare name if that is plain."""
    return key if re.fullmatch(r"[\w \-?:,]+", key) and key == key.strip() else json.dumps(key, ensure_ascii=False)


def nested_rows(records: Sequence[TableRecord]) -> str:
    """Return the place of questions in a list within each record, by the names in it; empty if there is none."""
    first = records[0].data
    if any(isinstance(first.get(name), str) for name in ("question", "prompt")):
        return ""
    for key, value in first.items():
        inner = value[0] if isinstance(value, list) and value else None
        if isinstance(inner, Mapping) and len(inner) > 1 and not names.ASKED.isdisjoint(map(normal, map(str, inner))):
            return as_path(key)
    return ""


def used_fields(mapping: ItemMapping) -> set[str]:
    """Return the names of the fields that a mapping uses."""
    found: set[str] = set()
    for value in mapping.given().values():
        for text in value if isinstance(value, list) else [value]:
            for expression in re.findall(r"\{([^{}]*)\}", str(text)) or [str(text)]:
                found |= {expression, expression.partition(".")[0], *re.findall(r"[\w$]+", expression)}
    return found


def propose(records: Sequence[TableRecord], given: ItemMapping, *, labelled: bool = False) -> ItemMapping:
    """Return a mapping whose keys that were not given follow from the names of fields.

    Args:
        labelled: Whether the answers are in a second file.
    """
    fields = _Fields(records, used_fields(given))
    mapping = given
    for key, find in _FOUND.items():
        if key in given.given() or (key in _ASKED and labelled):
            continue
        if value := find(fields, mapping):
            mapping = replaced(mapping, **{key: value})
            fields.take([value] if isinstance(value, str) else value)
    return mapping


def named_apart(records: Sequence[TableRecord], given: ItemMapping) -> ItemMapping:
    """Return a mapping with the id and the categories that the names of fields say, which change no question."""
    fields = _Fields(records, used_fields(given))
    category = given.category or _categories(fields, given)
    return replaced(given, id=given.id or _id(fields, given), category=category)


def _messages(fields: _Fields, mapping: ItemMapping) -> str:
    return "" if mapping.question else fields.first("messages")


def _question(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the field of the question, or a template of a pair of texts."""
    if mapping.messages:
        return ""
    found = next((text for text in fields.named(NAMES["question"]) if _may_ask(fields.values(text))), "")
    for pair in _pairs(fields) if normal(found) not in ("question", "query", "prompt") else ():
        return "\n\n".join(f"{{{text}}}" for text in pair)
    return found


def _pairs(fields: _Fields) -> Iterator[list[str]]:
    """Yield the fields of pairs of texts that are one question."""
    for pair in names.PAIRS:
        found = [text for name in pair for text in fields.named((name,))]
        if len(found) == 2:
            yield found


def _may_ask(values: Sequence[Any]) -> bool:
    """Return whether values are texts or chats."""
    return all(isinstance(value, str) or (isinstance(value, list) and value) for value in values)


def _images(fields: _Fields, _: ItemMapping) -> tuple[str, ...]:
    numbered = [(int(match[1]), text) for text in fields.paths if (match := names.NUMBERED_IMAGE.fullmatch(text))]
    single = fields.first("images")
    return (single,) if single else tuple(text for _, text in sorted(numbered))


def _choices(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the field of the choices, or a column of each."""
    if mapping.distractors:
        return ()
    if found := fields.first("choices"):
        return (found,)
    if names.INDEX.search(normal(fields.first("answer"))) and any(fields.named(("answers",))):
        return ("answers",)
    groups: dict[str, dict[str, str]] = {}
    for text, (name, *inner) in fields.paths.items():
        match = names.COLUMNS.fullmatch(name) if not inner and text not in fields.used else None
        if match:
            group = f"{normal(match[1])}{'#' if match[2].isdigit() else ''}"
            groups.setdefault(group, {})[match[2].upper()] = text
    longest = max(map(_run, groups.values()), key=len, default=())
    return longest if len(longest) > 1 else ()


def _run(members: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns in order from 0, 1 or A, up to the first gap."""
    label = next((name for name in ("0", "1", "A") if name in members), "")
    run = []
    while label in members:
        run.append(members[label])
        label = str(int(label) + 1) if label.isdigit() else chr(ord(label) + 1)
    return tuple(run)


def _distractors(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    if mapping.choices:
        return ()
    return tuple(text for text, path in fields.paths.items() if names.DISTRACTORS.fullmatch(normal(path[-1])))


def _answer(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the field of the answer, with another one where records lack it; or the last message of a chat."""
    if mapping.accepted:
        return ""
    first = fields.first("answer")
    if not first:
        return _last_message(fields, mapping)
    named = {normal(path[-1]) for path in fields.paths.values()} & set(NAMES["answer"])
    if normal(first) in names.REPLIES and not named <= set(names.REPLIES):
        return ""  # the answers are hidden, and a model's reply is there
    found, count = _inner(fields, first), len(fields.records)
    for other in fields.named(NAMES["answer"]) if len(fields.values(found)) < count else ():
        both = f"{as_path(found)} || {as_path(other)}"
        if len(fields.values(both)) == count:
            return both
    return found


def _last_message(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the expression of the assistant's message that ends each chat; empty if there is none."""
    chats = fields.values(mapping.messages) if mapping.messages else []
    if not chats or not all(isinstance(chat, list) and _is_reply(chat[-1]) for chat in chats):
        return ""
    return f"{as_path(mapping.messages)}[-1].{'content' if 'content' in chats[0][-1] else 'value'}"


def _is_reply(message: Any) -> bool:
    return isinstance(message, Mapping) and str(message.get("role", message.get("from"))) in ("assistant", "gpt")


def _accepted(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the fields whose entries are accepted answers."""
    if mapping.choices or mapping.distractors:
        return ()
    found = [text for text in fields.named(NAMES["accepted"]) if not _may_be_choices(fields.values(text))]
    spellings = [text for text in found if names.SPELLINGS.search(normal(text))]
    taken = found[:1] if not mapping.answer else []
    return tuple(_inner(fields, text) for text in dict.fromkeys([*taken, *spellings]))


def _may_be_choices(values: Sequence[Any]) -> bool:
    """Return whether values are lists of three to five different texts each, as choices are."""
    lists = [value for value in map(literal, values) if isinstance(value, list)]
    counts = {len(value) for value in lists}
    different = all(len(set(map(as_text, value))) == len(value) for value in lists)
    return len(lists) >= _ALIKE and len(lists) == len(values) and len(counts) == 1 and counts <= {3, 4, 5} and different


def _inner(fields: _Fields, text: str) -> str:
    """Return the expression of the answer within objects that are the values of a field."""
    values = fields.values(text) if text else []
    first = literal(values[0]) if values else None
    inner = first[0] if isinstance(first, list) and first else first
    keys = {normal(str(name)): name for name in inner} if isinstance(inner, Mapping) else {}
    key = next((keys[name] for name in names.WITHIN_ANSWER if name in keys), "")
    step = "[*]" if isinstance(first, list) else ""
    return f"{as_path(text)}{step}.{key}" if key else text


def _context(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the texts before the question."""
    if mapping.messages:
        return ()
    found = fields.named(NAMES["context"])
    return tuple(text for text in found if len(fields.paths[text]) == 1 and all(map(_is_prose, fields.values(text))))


def _is_prose(value: Any) -> bool:
    parts = value if isinstance(value, list) else [value]
    return all(isinstance(part, str) for part in parts)


def _categories(fields: _Fields, _: ItemMapping) -> tuple[str, ...]:
    """Return at most two fields that sort the records; the file where there are several."""
    found: list[str] = []
    for text in fields.named(NAMES["category"]):
        values = [as_text(value) for value in fields.values(text) if isinstance(value, str | int)]
        kinds = set(values)
        few = len(kinds) <= max(2, len(values) // 2) and max(map(len, kinds), default=99) <= 60
        if few and len(values) >= 0.9 * len(fields.records) and len(kinds) > len(found):
            found.append(text)
    several = len({record.names.get("set") for record in fields.records}) > 1
    return tuple(found[:2]) or (("$set",) if several else ())


def _id(fields: _Fields, _: ItemMapping) -> str:
    """Return the field that names the records; their keys if they are in an object."""
    if all(record.names.get("key") for record in fields.records):
        return "$key"
    for text in fields.named(NAMES["id"]):
        values = [
            value for value in fields.values(text) if isinstance(value, str | int) and not isinstance(value, bool)
        ]
        if len(values) == len(fields.records) and len(set(values)) * 10 >= len(values) * 9:
            return text
    return ""


#: How each key of a mapping is found, in this order; what one takes is not found for the next.
_FOUND = {
    "messages": _messages,
    "question": _question,
    "images": _images,
    "choices": _choices,
    "distractors": _distractors,
    "answer": _answer,
    "accepted": _accepted,
    "context": _context,
    "unit": lambda fields, mapping: "" if mapping.choices else fields.first("unit"),
    "category": _categories,
    "id": _id,
}
#: Keys that a second file with the answers replaces.
_ASKED = ("answer", "accepted")


def is_complete(mapping: ItemMapping) -> bool:
    """Return whether a mapping names question and answer, and needs no proposal."""
    asked = mapping.question or mapping.messages
    return bool(asked and (mapping.answer or mapping.accepted or mapping.grader))


def unused_fields(records: Sequence[TableRecord], mapping: ItemMapping, ignore: Sequence[str] = ()) -> list[Unused]:
    """Return the fields that a mapping does not use; first the ones that questions may need."""
    used = used_fields(mapping) | set(ignore)
    fields = _Fields(records, used)
    read = [parse_expression(text) for text in (*mapping.context, mapping.question, mapping.messages) if text]
    asked = [" ".join(_begin(each(record.data, record.names)) for each in read) for record in records]
    whole = [path[0] for text, path in fields.paths.items() if len(path) == 1 and not {text, path[0]} & used]
    found = [unused for name in whole if (unused := _unused(name, records, asked)) is not None]
    return sorted(found, key=lambda field: (not field.needed, not field.constant))


def _begin(value: Any) -> str:
    """Return the begin of a value's text; values may be whole books."""
    return as_text(value)[:_BEGIN]


def _unused(name: str, records: Sequence[TableRecord], asked: Sequence[str]) -> Unused | None:
    """Return what is known about a field that no question uses; None where it has no value."""
    cells = [record.data.get(name) for record in records]
    filled = [(cell, question) for cell, question in zip(cells, asked, strict=True) if not is_missing(cell)]
    if not filled:
        return None
    values, texts = [cell for cell, _ in filled], [_begin(cell) for cell, _ in filled]
    contained = sum(text in question for text, (_, question) in zip(texts, filled, strict=True))
    needed = contained < _CONTAINED * len(filled) and _may_be_needed(name, values)
    constant = len(filled) == len(records) > 1 and len(set(texts)) == 1
    return Unused(name, needed, texts[0], constant)


def _may_be_needed(name: str, values: Sequence[Any]) -> bool:
    """Return whether a question may need a field: by its name, or as a text of several words."""
    if names.FLAGS.fullmatch(normal(name)) and {as_text(value).lower() for value in values} <= _FLAG_WORDS:
        return True
    named_apart = normal(name) in (*NAMES["category"], *NAMES["id"])
    if names.is_needed(name) and not named_apart:
        return True
    if names.is_about(name) and not named_apart:
        return False
    words = [count_words(_begin(value)) for value in values if isinstance(value, str | list | Mapping)]
    return bool(words) and median(words) >= (_LONGER if named_apart else _LONG)
