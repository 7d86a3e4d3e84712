"""Propose the mapping of a data set from the names of its fields, and show what it leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from statistics import median
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.expressions import as_path, is_template, key_path, parse_expression
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.extensions.importing import names
from pytest_adaptive_eval.extensions.importing.choices import following, read_choices
from pytest_adaptive_eval.extensions.importing.grading import count_words, is_made_of
from pytest_adaptive_eval.extensions.importing.names import NAMES, normal
from pytest_adaptive_eval.extensions.importing.reading import RecordReader
from pytest_adaptive_eval.extensions.importing.values import (
    as_list,
    as_text,
    entries_of,
    fields_of,
    is_missing,
    literal,
    texts_within,
)
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import replaced

#: Records whose fields are looked at.
SAMPLE = 400
#: Fields of objects that are looked into, levels of these, and fields in all.
_INNER, _LEVELS, _MOST = 12, 3, 400
#: Words of a text that a question may need, in the middle, and of one that is named like a category.
_LONG, _LONGER = 3, 6
#: Share of the questions that contain a field, from which they do not need it; share of records with a category, and
#: of ids that differ.
_MOSTLY = 0.9
#: Words of any signs, and words with two letters, which no equation has.
_ANY, _WORD = re.compile(r"\S+"), re.compile(r"\S*(?:[^\W\d_]{2}|[^\x00-\u2e7f])\S*")
#: Records with as many texts each, from which these may be choices.
_ALIKE = 10
#: Characters of a value that are compared and shown.
_BEGIN = 4000
#: Words below which a field with so many records for each value sorts them.
_SORTING, _EACH = 2, 5
#: Numbered columns of another name, from which they may be choices.
_COLUMNS = 3
#: Pairs of values from which these are no labels, and shares from which such values, or labels, say the same.
_LABELS, _CHANCE, _HALF = 30, 0.05, 0.5
#: Levels of lists and objects in which questions are looked for.
_DEPTH = 3
_PICTURE = re.compile(r"(?i)\.(png|jpe?g|gif|webp|bmp)\Z")
_MESSAGE = frozenset({"role", "from", "content", "value"})
_FLAG_WORDS = {"0", "1", "true", "false"}
#: Keys of what most records have.
_MAIN = ("question", "answer")
#: Types of the values of a key of a mapping, where not all are read.
_TYPES = {"question": str | list, "context": str | list, "category": str | int, "id": str | int, "unit": str}


#: Names of answers, without those of what a model said.
_ANSWERS = frozenset(NAMES["answer"]) - frozenset(names.REPLIES)


class Unused(NamedTuple):
    """A field that no question uses.

    Args:
        needed: Whether questions may need it: by its name, or as a text of several words.
        example: One of its values.
        constant: Whether all of its values are equal.
        words: Number of words in the middle.
        expression: The field as an expression; of an object with one entry, that entry.
        texts: What a prompt shows of it, as expressions: of an object, the entries that are texts of several words.
        asks: Whether most values end with a question mark.
        varied: Share of values that are distinct.
        is_text: Whether it may be shown before a question: by its name, or as a text that comes before the answer.
        holds_question: Whether most values have the text of the question and more.
        partly: Whether some records have no value.
        is_flag: Whether it is true of some records, and its name does not say that it is about the answer.
        precedes: Whether it comes before the question.
        is_rival: Whether it has the name of an answer, and the key of some records and not of others.
    """

    name: str
    expression: str
    texts: Sequence[str]
    needed: bool
    example: str
    constant: bool
    words: float
    asks: bool
    varied: float
    is_text: bool
    holds_question: bool
    partly: bool
    is_flag: bool
    precedes: bool
    is_rival: bool

    @property
    def is_shared(self) -> bool:
        """Whether several records have one of its values, and others have others."""
        return not self.constant and self.varied < 1


class _Fields:
    """Fields of records by expression, and the ones that a mapping does not use yet."""

    def __init__(self, records: Sequence[TableRecord], used: set[str]) -> None:
        self.records, self.used = records, used
        self.paths: dict[str, tuple[str, ...]] = {}
        for record in records:
            for path in _paths(record.data, _LEVELS):
                if len(path) == 1:
                    text = _expression(path[0])
                else:
                    text = ".".join(map(key_path, path))
                self.paths.setdefault(text, path)
            if len(self.paths) > _MOST:
                break
        self._by_name: dict[str, list[str]] = {}
        for text in sorted(self.paths, key=lambda text: len(self.paths[text])):
            self._by_name.setdefault(normal(self.paths[text][-1]), []).append(text)
        for name, texts in list(self._by_name.items()):
            if names.bare(name) != name:
                self._by_name.setdefault(names.bare(name), []).extend(texts)

    def values(self, expression: str) -> list[Any]:
        """Return the values of an expression that are not missing."""
        read = parse_expression(expression)
        values = [read(record.data, record.names) for record in self.records]
        return [value for value in values if not is_missing(value)]

    def named(self, key: str, field_names: Sequence[str] = ()) -> Iterator[str]:
        """Yield unused fields with a name and values for a key, in the order of the names; whole fields first."""
        for text in chain.from_iterable(self._by_name.get(name, ()) for name in field_names or NAMES[key]):
            path = self.paths[text]
            is_inner = len(path) > 1
            kind = str if normal(path[-1]) in names.QUESTIONS else _TYPES.get(key, object)
            is_free = text not in self.used and path[0] not in self.used
            is_of_answer = is_inner and key in ("question", "context") and any(map(names.is_about, path[:-1]))
            if not is_free or is_of_answer:
                continue
            values = self.values(text)
            is_rare = is_inner and len(values) * 2 < len(self.records)
            if not values or (is_rare and key in _MAIN) or not all(isinstance(value, kind) for value in values):
                continue
            if key == "question" and any(isinstance(value, list) and not _may_ask(value) for value in values):
                continue
            if is_inner and key == "question" and len(values) > 1 and len(set(map(_begin, values))) == 1:
                continue  # an instruction to all
            yield text

    def take(self, expressions: Iterable[str]) -> None:
        """Count the fields in expressions of `propose` as used."""
        self.used |= {part for text in expressions for part in (text, text.partition("[")[0])}

    def free(self) -> list[str]:
        """Return the whole fields that no key uses yet."""
        return [text for text, path in self.paths.items() if len(path) == 1 and text not in self.used]

    def are(self, expression: str, kind: Callable[[Any], bool], share: float = 1) -> bool:
        """Return whether an expression has values, of which at least a share is of one kind."""
        values = self.values(expression)
        return bool(values) and sum(map(kind, values)) >= share * len(values)

    def that_are(self, kind: Callable[[Any], bool], texts: Iterable[str] | None = None) -> list[str]:
        """Return the expressions, by default of unused whole fields, whose values are all of one kind."""
        return [text for text in (self.free() if texts is None else texts) if self.are(text, kind)]

    def first(self, key: str) -> str:
        """Return the first unused field for a key of a mapping; empty if there is none."""
        return next(self.named(key), "")


def _may_ask(parts: Sequence[Any]) -> bool:
    """Return whether a list may be a question: texts, or messages, also in lists."""
    for part in parts:
        is_message = isinstance(part, Mapping) and not _MESSAGE.isdisjoint(part)
        if not (isinstance(part, str) or is_message or (isinstance(part, list) and _may_ask(part))):
            return False
    return True


def _paths(fields: Mapping[str, Any], levels: int) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each field, in objects of few fields too."""
    for key, value in fields.items():
        yield (str(key),)
        if levels > 1 and isinstance(value, Mapping) and len(value) <= _INNER:
            for path in _paths(value, levels - 1):
                yield (str(key), *path)


def _expression(key: str) -> str:
    """Return the expression of a whole field: its bare name if that is plain."""
    if re.fullmatch(r"[\w \-?:,]+", key) and key == key.strip():
        return key
    return json.dumps(key, ensure_ascii=False)


class _Watched(dict[str, Any]):
    """Fields of a record, which note the names that are read."""

    read: set[str]

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)


def used_fields(records: Iterable[TableRecord], mapping: ItemMapping) -> set[str]:
    """Return the names of the fields that a mapping reads."""
    used: set[str] = set()
    reader = RecordReader(mapping)
    for record in records:
        data = _Watched(record.data)
        data.read = used
        reader.values(record._replace(data=data))
    return used


def nested_rows(records: Sequence[TableRecord]) -> str:
    """Return the place of questions in a list within each record, by the names in it; empty if there is none."""
    first = records[0].data
    lists = _side_by_side(records)
    if lists:
        return ",".join(map(key_path, lists))
    if any(isinstance(first.get(name), str) for name in ("question", "prompt")):
        return ""
    whole = records[0].names.get("parent")
    for array in entries_of(whole)[:1]:
        for number, part in enumerate(entries_of(array)):
            if any(map(_are_asked, map(fields_of, entries_of(part)[:1]))):
                return f"[*][{number}][*]"
    return _rows_in(first, _DEPTH)


def _side_by_side(records: Sequence[TableRecord]) -> list[str]:
    """Return the fields that are lists of one length in each record, as of questions and answers; else none."""
    lengths: dict[str, list[int]] = {}
    for key in records[0].data:
        lengths[key] = [len(entries_of(record.data.get(key))) for record in records]
    asked = ""
    for key, counts in lengths.items():
        # objects are turns of a conversation, which need the ones before
        if (
            normal(key) in names.QUESTIONS
            and max(counts) > 1
            and all(isinstance(entry, str) for entry in records[0].data[key])
        ):
            asked = key
    alike = [key for key in lengths if asked and lengths[key] == lengths[asked]]
    answered = {*NAMES["answer"], *NAMES["accepted"]}.intersection(map(normal, alike))
    if answered:
        return alike
    return []


def _rows_in(fields: Mapping[str, Any], depth: int) -> str:
    """Return the place of a list of questions in fields, or in lists and objects of theirs."""
    for key, value in fields.items():
        inner = value
        step = ""
        if isinstance(value, list) and value:
            inner = value[0]
            step = "[*]"
        if not isinstance(inner, Mapping):
            continue
        if step and _are_asked(inner):
            return key_path(key)
        below = ""
        if depth:
            below = _rows_in(inner, depth - 1)
        if below:
            return f"{key_path(key)}{step}.{below}"
    return ""


def _are_asked(fields: Mapping[str, Any]) -> bool:
    """Return whether fields have the name of a question, or the names of an instruction and its answer."""
    named = set(map(names.bare, map(str, fields)))
    if len(named) < 2:
        return False
    return not names.ASKED.isdisjoint(named) or ("instruction" in named and not named.isdisjoint(NAMES["answer"]))


def propose(
    records: Sequence[TableRecord], given: ItemMapping, keys: Iterable[str] = (), ignore: Iterable[str] = ()
) -> ItemMapping:
    """Return a mapping whose missing keys, or the ones in `keys`, follow from the names of other fields."""
    fields = _Fields(records, used_fields(records, given) | set(ignore))
    for text in given.context:
        path = fields.paths.get(text, ())
        if len(path) > 1:  # other entries of its object are free
            fields.used = fields.used - {path[0]} | {text}
    mapping = given
    for key in keys or _FOUND:
        if key in given.given():
            continue
        value = _FOUND[key](fields, mapping)
        if value:
            mapping = replaced(mapping, **{key: value})
            fields.take([value] if isinstance(value, str) else value)
    return mapping


def _messages(fields: _Fields) -> str:
    """Return the field of a chat, which is a list."""
    return next(iter(fields.that_are(lambda value: bool(entries_of(literal(value))), fields.named("messages"))), "")


def _question(fields: _Fields) -> str:
    """Return the field of the question; a template is filled from the fields that it names."""
    question = fields.first("question")
    asking = [text for text in fields.free() if _mostly_ask(map(_begin, fields.values(text)))]
    if normal(question) in names.PLAIN and asking and question not in asking:
        question = ""
    prompts = [f"{as_path(text)}[0]" for text in fields.named("", ("prompts",))]
    for template in filter(None, (*prompts, question)):
        texts = fields.values(template)
        for key in ("@", *fields.paths):
            holders = fields.values(key)
            pairs = zip(texts, holders, strict=False)
            if len(holders) == len(texts) and all(is_template(text, holder) for text, holder in pairs):
                return f"fill({as_path(template)}, {key if key == '@' else as_path(key)})"
    return question


def _images(fields: _Fields, _: ItemMapping) -> tuple[str, ...]:
    """Return the field of the images: by its name, or with a word for them in its name and files in its values."""
    named_so = (text for text in fields.free() if not names.SHOWN.isdisjoint(names.words_of(text)))
    field = fields.first("images") or next(iter(fields.that_are(_are_pictures, named_so)), "")
    if field:
        return (field,)
    return ()


def _are_pictures(value: Any) -> bool:
    """Return whether a value is the names of image files."""
    return all(isinstance(entry, str) and _PICTURE.search(entry) for entry in as_list(value))


def _choices(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the field of the choices, or a column of each."""
    if mapping.distractors:
        return ()
    for field in _choice_fields(fields):
        return (field,)
    for pattern, least in ((names.COLUMNS, 2), (names.NUMBERED, _COLUMNS)):
        groups: dict[str, dict[str, str]] = {}
        for text in fields.free():
            match = pattern.fullmatch(fields.paths[text][0])
            if match and (pattern is names.COLUMNS or _may_be_column(fields, text, match[1])):
                group = f"{normal(match[1])}{match[2].isdigit()}"
                groups.setdefault(group, {})[match[2].upper()] = text
        longest = max(map(_run, groups.values()), key=len, default=())
        if len(longest) >= least:
            return longest
    return ()


def _choice_fields(fields: _Fields) -> Iterator[str]:
    """Yield the fields that have all choices, the likeliest first."""
    yield from fields.named("choices")
    if names.INDEX.search(normal(fields.first("answer"))):
        yield from fields.named("", ("answers",))
    yield from fields.that_are(_are_lettered)
    yield from _indexed(fields)
    for text in fields.named("accepted"):
        if fields.are(text, _are_labelled, _MOSTLY):
            yield text


def _may_be_column(fields: _Fields, text: str, name: str) -> bool:
    """Return whether a numbered column of another name may have a choice: no wrong one, and none that sorts records."""
    values = list(map(as_text, fields.values(text)))
    sorts = len(set(values)) * _EACH < len(values)
    return not (sorts or names.is_needed(name) or names.DISTRACTORS.fullmatch(normal(text)))


def _indexed(fields: _Fields) -> Iterator[str]:
    """Yield fields of lists of texts that an answer has the place of an entry in."""
    answer = fields.first("answer")
    if names.PLACE.search(normal(answer)):
        places = fields.values(answer)
    else:
        places = []
    if not all(isinstance(place, int) for place in places):
        return
    for text in fields.that_are(_is_texts):
        lists = fields.values(text)
        pairs = zip(places, lists, strict=False)
        if len(lists) == len(places) and all(0 <= place < len(entries) for place, entries in pairs):
            yield text


def _is_texts(value: Any) -> bool:
    """Return whether a value is a list of several texts."""
    return isinstance(value, list) and len(value) > 1 and all(isinstance(entry, str) for entry in value)


def _are_lettered(value: Any) -> bool:
    """Return whether a value is an object of texts by letters from A."""
    if not isinstance(value, Mapping) or len(value) < 2:
        return False
    return [str(key).upper() for key in value] == following("A", len(value))


def _are_labelled(value: Any) -> bool:
    """Return whether a value is a list of objects with a text each, and a label or a mark of the right ones."""
    if not all(isinstance(entry, Mapping) for entry in entries_of(value) or [None]):
        return False
    choices = read_choices(value, ())
    return len(choices.texts) > 1 and bool(choices.labels or choices.right is not None)


def _run(members: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns in order from 0, 1 or A, up to the first gap."""
    first = next((name for name in ("0", "1", "A") if name in members), "A")
    return tuple(members[name] for name in takewhile(members.__contains__, following(first, len(members))))


def _distractors(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    if mapping.choices:
        return ()
    wrong = [text for text, path in fields.paths.items() if names.DISTRACTORS.fullmatch(normal(path[-1]))]
    return tuple(fields.that_are(_are_texts, wrong))


def _are_texts(value: Any) -> bool:
    """Return whether a value is a text or a number, or a list of these."""
    return all(isinstance(entry, str | int | float | None) for entry in as_list(value))


def _answer(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the field of the answer; empty where the answers are hidden beside a model's reply."""
    answers = [*fields.that_are(_are_calls, fields.named("accepted")), *fields.named("answer")]
    named = {normal(path[-1]) for path in fields.paths.values()} & set(NAMES["answer"])
    hidden = answers and normal(answers[0]) in names.REPLIES and not named <= set(names.REPLIES)
    if not answers or mapping.accepted or hidden:
        return ""
    # an object without a text of its own, such as the span that a question is about, comes last
    answers.sort(key=lambda text: _inner(fields, text) == text and fields.are(text, _is_object))
    first = _inner(fields, answers[0], labels=bool(mapping.choices))
    if len(fields.values(answers[0])) * 2 < len(fields.records):
        # corrections of an answer that all records have
        for other in answers[1:]:
            if len(fields.values(other)) >= _MOSTLY * len(fields.records):
                return f"{as_path(first)} || {as_path(other)}"
    return first


def _is_object(value: Any) -> bool:
    return isinstance(literal(value), Mapping)


def _accepted(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the fields whose entries are accepted answers."""
    if mapping.choices or mapping.distractors:
        return ()
    accepted = []
    for text in fields.named("accepted"):
        if not _may_be_choices(fields.values(text)):
            accepted.append(text)
    spellings = []
    for text in accepted:
        if names.SPELLINGS.search(normal(text)):
            spellings.append(text)
    taken = accepted[:1] if not mapping.answer else []
    return tuple(_inner(fields, text) for text in dict.fromkeys([*taken, *spellings]))


def _may_be_choices(values: Sequence[Any]) -> bool:
    """Return whether values are lists of three to five different entries each, as choices are."""
    lists = []
    for value in map(literal, values):
        if isinstance(value, list) and len(set(map(as_text, value))) == len(value):
            lists.append(value)
    counts = set(map(len, lists))
    return len(lists) == len(values) >= _ALIKE and len(counts) == 1 and counts <= {3, 4, 5}


def _inner(fields: _Fields, text: str, *, labels: bool = False) -> str:
    """Return the expression of the answer within objects that are the values of a field."""
    first = literal(fields.values(text)[0])
    if isinstance(first, list) and first:
        inner = first[0]
    else:
        inner = first
    if isinstance(inner, Mapping):
        keys = {normal(str(name)): name for name in inner if "arguments" not in inner}
    else:
        keys = {}
    candidates = (*(names.LABELS if labels else ()), *names.WITHIN_ANSWER)
    key = next((keys[name] for name in candidates if name in keys), "")
    if not isinstance(first, list):
        step = ""
    elif {"output", "tags"} <= keys.keys():
        step = "[?contains(tags, 'correct')]"
    else:
        step = "[*]"
    if key and isinstance(inner[keys.get("output", key)], Mapping):
        return f"{as_path(text)}{step}.output.text"
    if key:
        return f"{as_path(text)}{step}.{key_path(key)}"
    return text


def _context(fields: _Fields, mapping: ItemMapping) -> tuple[str, ...]:
    """Return the texts before the question."""
    contexts: Iterable[str] = ()
    if not mapping.messages:
        contexts = fields.named("context")
    outer = fields.records[0].names.get("outer")
    texts = []
    for number, part in enumerate(entries_of(outer)):
        if entries_of(part) and _is_prose(part):
            texts.append(f"$outer[{number}]")
    asked = fields.paths.get(mapping.question, ("",))
    for text in contexts:
        path = fields.paths[text]
        is_beside = len(path) == 1 or path[:-1] == asked[:-1]
        asks = not mapping.question and _mostly_ask(map(_begin, fields.values(text)))
        if is_beside and fields.are(text, _is_prose) and not asks:
            texts.append(text)
    return tuple(texts)


def _is_prose(value: Any) -> bool:
    if isinstance(value, str):
        return not names.FILE_NAME.fullmatch(value)
    return all(isinstance(part, str) for part in value)


def _grader(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the grader that tools, or the assertions of a test, ask for."""
    if mapping.tools:
        return "calls"
    name, _, inner = mapping.answer.partition("[*].")
    if normal(name) != "assert" or inner != "value":
        return ""
    kinds = {as_text(kind) for value in fields.values(f"{name}[*].type") for kind in value}
    graders = {names.ASSERTIONS.get(kind, "") for kind in kinds}
    if len(graders) > 1:
        return ""
    return graders.pop()


def _tools(fields: _Fields, mapping: ItemMapping) -> str:
    """Return the tools beside an answer that calls some."""
    are_calls = mapping.answer and fields.are(mapping.answer, _are_calls)
    field = fields.first("tools")
    if are_calls and field:
        return f"offered_tools(parse({as_path(field)}))"
    return ""


def _are_calls(value: Any) -> bool:
    """Return whether a value is calls of tools: objects with a name and arguments."""
    return all(isinstance(call, Mapping) and {"name", "arguments"} <= call.keys() for call in as_list(value))


def _categories(fields: _Fields, _: ItemMapping) -> tuple[str, ...]:
    """Return at most two fields that sort the records; the file where there are several."""
    categories: list[str] = []
    for text in fields.named("category"):
        values = fields.values(text)
        sorts = len(categories) < len(set(values)) <= max(2, len(values) // 2)
        if sorts and len(values) >= _MOSTLY * len(fields.records):
            categories.append(text)
    several = len({record.names.get("set") for record in fields.records}) > 1
    return tuple(categories[:2]) or (("$set",) if several else ())


def _id(fields: _Fields, _: ItemMapping) -> str:
    """Return the field that names the records; their keys if they are in an object."""
    if all(record.names.get("key") for record in fields.records):
        return "$key"
    for text in fields.named("id"):
        values = fields.values(text)
        if len(values) == len(fields.records) and len(set(values)) >= _MOSTLY * len(values):
            return text
    return ""


#: How each key of a mapping is found, in this order; what one takes is not found for the next.
_FOUND = {
    "messages": lambda fields, mapping: "" if mapping.question else _messages(fields),
    "question": lambda fields, mapping: "" if mapping.messages else _question(fields),
    "images": _images,
    "choices": _choices,
    "distractors": _distractors,
    "answer": _answer,
    "accepted": _accepted,
    "context": _context,
    "unit": lambda fields, mapping: "" if mapping.choices else fields.first("unit"),
    "tools": lambda fields, mapping: _tools(fields, mapping),
    "grader": lambda fields, mapping: _grader(fields, mapping),
    "category": _categories,
    "id": _id,
}
#: Keys that change no question, and those that are found where a second file has the answers.
APART = ("category", "id")
UNLABELLED = [key for key in _FOUND if key not in ("answer", "accepted")]


def is_complete(mapping: ItemMapping) -> bool:
    """Return whether a mapping names question and answer, and needs no proposal."""
    asked = mapping.question or mapping.messages
    return bool(asked and (mapping.answer or mapping.accepted or mapping.grader))


def unused_fields(records: Sequence[TableRecord], mapping: ItemMapping, ignore: Sequence[str]) -> list[Unused]:
    """Return the fields that a mapping does not use; first the ones that questions may need."""
    used = used_fields(records, mapping) | {
        mapping.question,
        mapping.answer,
        *mapping.choices,
        *mapping.context,
        *ignore,
    }
    before = [parse_expression(text) for text in mapping.context]
    asking = [parse_expression(text) for text in (mapping.question, mapping.messages) if text]
    choices = list(map(parse_expression, mapping.choices))
    key_of = parse_expression(mapping.answer or "$none")
    path = mapping.question.rpartition(".")[0]
    expressions: dict[str, str] = {}
    values: dict[str, list[_Occurrence]] = {}
    for record in records:
        context, question, listed = (
            " ".join(_text_of(each(record.data, record.names)) for each in read) for read in (before, asking, choices)
        )
        within = {f"{path}.{key}": value for key, value in fields_of(record.data.get(path)).items()}
        expressions |= {**{name: _expression(name) for name in record.data}, **dict(zip(within, within, strict=True))}
        for name, value in (*record.data.items(), *within.items()):
            if not is_missing(value):
                key = key_of(record.data, record.names)
                values.setdefault(name, []).append(_Occurrence(value, context, f"{context} {question}", listed, key))
    order = list(expressions)
    question_place = _last_within(order, mapping.question)
    answer_place = _last_within(order, mapping.answer)
    unused = []
    for place, (name, expression) in enumerate(expressions.items()):
        if name in values and {name, expression}.isdisjoint(used):
            unused.append(
                _unused(
                    name,
                    expression,
                    values[name],
                    len(records),
                    precedes=place < question_place,
                    comes_before=place < answer_place,
                )
            )
    return sorted(unused, key=lambda field: (not field.needed, not field.constant))


class _Occurrence(NamedTuple):
    """A value of a field, with the text before the question of its record, this and the question, and the choices."""

    value: Any
    context: str
    asked: str
    choices: str
    key: Any


def _last_within(fields: Sequence[str], expression: str) -> int:
    """Return the place of the longest field that an expression names; the number of fields where it names none."""
    within = [name for name in fields if name in expression]
    if not within:
        return len(fields)
    return fields.index(max(within, key=len))


def _unused(
    name: str, expression: str, found: Sequence[_Occurrence], count: int, *, precedes: bool, comes_before: bool
) -> Unused:
    """Return a field with its values."""
    values = [each.value for each in found]
    begins = list(map(_begin, values))
    texts = list(map(_text_of, values))
    asked = [each.asked for each in found]
    shown = [f"{each.asked} {each.choices}" for each in found]
    kinds = len(set(begins))
    words = _middle_words(values)

    def mostly(is_so: Callable[[str, str], bool], others: Sequence[str]) -> bool:
        return sum(map(is_so, others, texts)) >= _MOSTLY * len(found)

    holds = isinstance(values[0], str) and mostly(
        lambda other, text: count_words(other) >= _LONG and other.strip() in text, asked
    )
    restates = mostly(_restates, asked)
    asks = _mostly_ask(begins)
    is_apart = names.is_reference(name) or names.DISTRACTORS.fullmatch(normal(name)) or not _middle_words(values, _WORD)
    sorts = words < _SORTING and kinds * _EACH < len(found)
    keys, *others = {tuple(fields_of(value)) for value in values}
    if not others:
        entries = fields_of(values[0])
    else:
        entries = {}
    if len(keys) == 1 and entries:
        expression = f"{as_path(expression)}.{key_path(keys[0])}"
        entries = {}
    inner = [f"{as_path(expression)}.{key_path(key)}" for key in entries if is_phrase(entries[key])]
    is_shown = mostly(lambda other, text: text in other or _restates(text, other), shown)
    are_tokens = (
        all(map(entries_of, values)) and any(texts) and mostly(lambda other, text: is_made_of(text, other), asked)
    )
    return Unused(
        name,
        expression,
        inner or [expression],
        _may_be_needed(name, values) and not (is_shown or are_tokens or _is_of_context(name, begins, found)),
        begins[0],
        constant=kinds == 1 < count == len(found),
        words=words,
        asks=asks,
        varied=kinds / len(found),
        is_text=(comes_before or names.is_needed(name)) and not (sorts or holds or restates or asks or is_apart),
        holds_question=holds,
        partly=len(found) < count,
        precedes=precedes,
        is_rival=normal(name) in _ANSWERS and _differ_in_some(found),
        is_flag=kinds > 1 and _are_flags(values) and not names.FLAGS.fullmatch(normal(name)),
    )


def is_phrase(value: Any) -> bool:
    """Return whether a value is a text of several words."""
    return isinstance(value, str) and " " in value.strip()


def _differ_in_some(found: Sequence[_Occurrence]) -> bool:
    """Return whether values are the keys of some records, and others in other records."""
    pairs = [(_plain(each.value), _plain(each.key)) for each in found]
    share = sum(value == key for value, key in pairs) / len(pairs)
    if len(set(pairs)) > _LABELS:
        return _CHANCE < share < 1
    return _HALF <= share < 1


def _plain(value: Any) -> str:
    return as_text(value).strip(" .$").casefold()


def _restates(text: str, other: str) -> bool:
    """Return whether a text of many words is made of words of another."""
    return count_words(text) > _LONGER and is_made_of(text, other)


def _is_of_context(name: str, begins: Sequence[str], found: Sequence[_Occurrence]) -> bool:
    """Return whether a name of a record elsewhere is that of the text before the question, which several share."""
    pairs = {(each.context, begin) for each, begin in zip(found, begins, strict=True)}
    contexts = {context for context, _ in pairs}
    is_named = names.is_reference(name) and not names.is_file(name) and names.SHOWN.isdisjoint(names.words_of(name))
    return is_named and "" not in contexts and len(pairs) == len(contexts) < len(found)


def _mostly_ask(texts: Iterable[str]) -> bool:
    """Return whether most texts end with a question mark."""
    marks = [text.endswith(("?", "？")) for text in texts]
    return sum(marks) * 2 > len(marks)


def _begin(value: Any) -> str:
    """Return the begin of a value's text; values may be whole books."""
    return as_text(value)[:_BEGIN]


def _text_of(value: Any) -> str:
    """Return the begin of the texts in a list or an object, and of the text of another value."""
    if isinstance(value, list | Mapping):
        return " ".join(texts_within(value))[:_BEGIN]
    return _begin(value)


def _may_be_needed(name: str, values: Sequence[Any]) -> bool:
    """Return whether a question may need a field: by its name, or as a text of several words."""
    if _are_flags(values) and (names.FLAGS.fullmatch(normal(name)) or not names.SHOWN.isdisjoint(names.words_of(name))):
        return len(set(map(_begin, values))) > 1
    if all(map(_is_marked, values)):
        return False
    named_apart = normal(name) in (*NAMES["category"], *NAMES["id"])
    if not named_apart and (names.is_needed(name) or names.is_about(name)):
        return names.is_needed(name)
    return _middle_words(values, _WORD) >= (_LONGER if named_apart else _LONG)


def _is_marked(value: Any) -> bool:
    """Return whether a value is alternatives with the right ones marked."""
    is_object = isinstance(value, Mapping) or (bool(entries_of(value)) and isinstance(value[0], Mapping))
    return is_object and bool(read_choices(value, ()).right)


def _are_flags(values: Sequence[Any]) -> bool:
    return {as_text(value).lower() for value in values} <= _FLAG_WORDS


def _middle_words(values: Sequence[Any], word: re.Pattern[str] = _ANY) -> float:
    """Return the median number of words of texts, lists and objects; 0 for other values.

    Args:
        word: What counts as one, beside two characters of a script without spaces.
    """
    words = []
    for value in values:
        if isinstance(value, str | list | Mapping):
            words.append(count_words(" ".join(word.findall(_text_of(value)))))
    return median(words or [0])
