"""Records as drafts of items: question, choices and answer, read by a mapping."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.grading import how_to_say
from pytest_adaptive_eval.extensions.importing.values import (
    Choices,
    as_list,
    as_text,
    is_missing,
    literal,
    may_be_missing,
    read_choices,
    without_end,
)
from pytest_adaptive_eval.mappings import ItemMapping

_MEDIA = re.compile(r"(?i)\.(mp4|avi|mov|mkv|webm|mp3|wav|flac|ogg)\Z")
_MEDIA_FIELD = re.compile(r"(?i)video|audio|sound|clip|path|file")
#: Keys of a mapping with one expression, and with several; and a further field under a name of its own.
_SINGLE = ("where", "id", "unit", "question", "messages", "answer")
_SEVERAL = ("context", "distractors", "accepted", "images", "category")
_NAMED = re.compile(r"(\w+)=(?!=)(.*)", re.DOTALL)
_ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system"}
#: Names of system messages that play an example, as in OpenAI evals.
_PLAYED = {"example_user": "user", "example_assistant": "assistant"}


@dataclass(slots=True)
class Draft:
    """One record, read by a mapping.

    Args:
        answer: As the data set writes it; None if it gives none.
        turns: Further prompts of the user, each asked after the answer to the one before.
    """

    where: str
    number: int
    name: str
    question: str
    choices: Choices
    answer: Any
    accepted: list[Any]
    images: list[Any]
    category: tuple[str, ...]
    meta: dict[str, Any]
    unit: str
    messages: list[dict[str, str]] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The question, or the texts of its messages."""
        return self.question or "\n".join(message["content"] for message in self.messages)


def choices_of(columns: Sequence[str]) -> Callable[[TableRecord], Choices]:
    """Return the function from a record to its alternatives in one field, or in a column each."""
    expressions = [parse_expression(column, "choices") for column in columns]
    if len(expressions) == 1:
        return lambda record: read_choices(expressions[0](record.data, record.names))
    # letters in which names end that are else the same are labels, and the names where they do not
    letters = [column[-1:].upper() for column in columns]
    lettered = len({column[:-1] for column in columns}) == 1 and all(letter.isalpha() for letter in letters)
    labels = tuple(letters if lettered else columns)
    return lambda record: without_end(
        Choices(tuple(as_text(expression(record.data, record.names)) for expression in expressions), labels)
    )


class RecordReader:
    """Reader of records by a mapping.

    Args:
        labels: Answers of the second file, by position or id; empty if there is none.
        labels_by: Expression of the id in the second file.

    Raises:
        ConfigError: An expression is malformed.
    """

    def __init__(
        self, mapping: ItemMapping, labels: Sequence[Any] | Mapping[str, Any] = (), labels_by: str = ""
    ) -> None:
        single = {name: getattr(mapping, name) for name in _SINGLE} | {"labels_by": labels_by}
        self._single = {name: parse_expression(text, name) for name, text in single.items() if text}
        self._several = {name: [parse_expression(text, name) for text in getattr(mapping, name)] for name in _SEVERAL}
        self._choices = choices_of(mapping.choices) if mapping.choices else None
        self.mapping, self._labels = mapping, labels
        named = [_NAMED.match(text) for text in mapping.meta]
        self._needed = {match[1] for match in named if match}
        parts = [match.groups() if match else (text, text) for text, match in zip(mapping.meta, named, strict=True)]
        self._meta = {key: parse_expression(text, "meta") for key, text in parts}

    def read(self, record: TableRecord, number: int) -> Draft | None:
        """Return the draft of a record; None where the mapping leaves it out.

        Raises:
            DatasetError: The record has no question, or alternatives that cannot be read.
        """
        if not self._counts(record):
            return None
        name = as_text(self._value("id", record))
        label = self._label(record, name, number)
        record = record._replace(names={**record.names, "label": label, "number": number})

        def value(name: str) -> Any:
            return self._value(name, record)

        def each(name: str) -> list[Any]:
            return [expression(record.data, record.names) for expression in self._several[name]]

        wanted = label if not self.mapping.answer and "labels_by" not in self._single else value("answer")
        answer = None if self._is_missing(wanted) else wanted
        question, chat = value("question"), value("messages")
        if chat is None and _is_chat(question):
            chat, question = question, None
        messages, pictures, turns = read_chat(chat)
        if not (_joined([question]) or messages):
            raise self._no_question(record.data)
        _check_media(record.data)
        return Draft(
            where=record.where,
            number=number,
            name=name,
            question=_joined([*each("context"), question]),
            choices=self._alternatives(record, answer, each("distractors")),
            answer=answer,
            accepted=[part for cell in each("accepted") for part in as_list(cell) if not self._is_missing(part)],
            images=[part for cell in each("images") for part in _pictures(cell)] + pictures,
            category=tuple(filter(None, map(as_text, each("category")))),
            meta=self._kept(record),
            unit=as_text(value("unit")),
            messages=messages,
            turns=turns,
        )

    def _value(self, name: str, record: TableRecord) -> Any:
        """Return the value of a key of the mapping; None where it has no expression."""
        expression = self._single.get(name)
        return None if expression is None else expression(record.data, record.names)

    def _counts(self, record: TableRecord) -> bool:
        """Return whether the mapping counts a record; refuse one that an importer cannot use."""
        if "refused" in record.names:
            raise DatasetError(str(record.names["refused"]))
        return "where" not in self._single or bool(self._value("where", record))

    def _no_question(self, data: Mapping[str, Any]) -> DatasetError:
        place, present = self.mapping.question or self.mapping.messages, sorted(map(str, data))[:12]
        return DatasetError(f"no question at {place!r}; it has {present}")

    def _kept(self, record: TableRecord) -> dict[str, Any]:
        """Return the further fields of a record."""
        values = {key: expression(record.data, record.names) for key, expression in self._meta.items()}
        meta = {key: value for key, value in values.items() if value is not None}
        if lacking := self._needed - meta.keys():
            raise DatasetError(f"it has no value for {min(lacking)} in meta")
        return meta

    def _label(self, record: TableRecord, name: str, number: int) -> Any:
        """Return the answer in the second file, by the record's id or position; None without one."""
        joined = "labels_by" in self._single
        key = as_text(self._value("labels_by", record)) if joined else name
        labels = self._labels
        label = labels.get(key) if isinstance(labels, Mapping) else next(iter(labels[number : number + 1]), None)
        if joined and label is None:
            raise DatasetError(f"the second file has no record {key!r:.60}")
        return label

    def _is_missing(self, value: Any) -> bool:
        """Return whether a value is none, or a text that the mapping says means none."""
        return is_missing(value) or as_text(value) in (self.mapping.missing or ())

    def _alternatives(self, record: TableRecord, answer: Any, distractors: Sequence[Any]) -> Choices:
        if self._choices is None:
            return self._beside(answer, distractors) if distractors else Choices(())
        choices = self._choices(record)
        if not choices.texts:
            cells = [as_text(parse_expression(text)(record.data, record.names)) for text in self.mapping.choices]
            if written := next((cell for cell in cells if cell and cell != "[]"), ""):
                raise DatasetError(f"its choices {written!r:.80} cannot be read")
        if choices.right == frozenset(range(len(choices.texts))):
            return Choices(())  # all are accepted answers
        return self._whole(choices)

    def _beside(self, answer: Any, distractors: Sequence[Any]) -> Choices:
        """Return the right alternative and the wrong ones, which may be in one text."""
        right = as_text(next(iter(as_list(answer)), ""))
        wrong: list[str] = []
        for cells in map(as_list, distractors):
            in_one_text = len(distractors) == 1 and len(cells) == 1 and isinstance(cells[0], str)
            wrong += map(as_text, cells[0].split(";") if in_one_text else cells)
        wrong = [text for text in dict.fromkeys(wrong) if text not in ("", right) and not self._is_missing(text)]
        if not right or not wrong:
            raise DatasetError(f"the right alternative is {right!r:.60} and there are {len(wrong)} wrong ones")
        return Choices((right, *wrong), (), frozenset({0}))

    def _whole(self, choices: Choices) -> Choices:
        """Return choices without missing ones at the end; refuse others that are missing, and a single one."""
        texts = tuple("" if self._is_missing(text) else text for text in choices.texts)
        choices = without_end(choices._replace(texts=texts))
        if "" in choices.texts:
            raise DatasetError(f"choice {choices.texts.index('') + 1} of {len(choices.texts)} has no value")
        if len(choices.texts) == 1:
            raise DatasetError(f"{choices.texts[0]!r:.60} is its only choice")
        unsure = [text for text in choices.texts if may_be_missing(text) and text != "None"]
        if unsure and self.mapping.missing is None:
            raise DatasetError(f"the choice {unsure[0]!r} may mean no value: {how_to_say(unsure[0])}")
        return choices


def _check_media(data: Mapping[str, Any]) -> None:
    """Refuse a record that names a file of sound or video."""
    for key, cell in data.items():
        if isinstance(cell, str) and len(cell) < 500 and _MEDIA.search(cell) and _MEDIA_FIELD.search(key):
            raise DatasetError(f"{key!r:.40} is {cell!r:.60}: sound and video cannot be asked")


def _joined(parts: Sequence[Any]) -> str:
    texts = [
        "\n".join(map(as_text, part)) if isinstance(part, list) else as_text(part)
        for part in parts
        if not (is_missing(part) or may_be_missing(as_text(part)))
    ]
    return "\n\n".join(text for text in texts if text)


def _pictures(value: Any) -> list[Any]:
    value = literal(value)
    if isinstance(value, list):
        return list(value)
    blank = value is None or (isinstance(value, str) and (not value.strip() or may_be_missing(value)))
    return [] if blank else [value]


def _is_chat(value: Any) -> bool:
    """Return whether a value is a chat: messages of role and content, or these in a list of one."""
    if not isinstance(value, list) or not value:
        return False
    if len(value) == 1 and isinstance(value[0], list):
        return _is_chat(value[0])
    return all(isinstance(part, Mapping) and part.keys() & {"content", "value"} for part in value)


def read_chat(value: Any) -> tuple[list[dict[str, str]], list[Any], list[str]]:
    """Return the messages of a chat as role and text, the images in them, and further turns of the user.

    Last messages of the assistant are expected answers, and no part of the question.

    Args:
        value: A text, a list of the texts that a user writes one after the other, or messages.

    Raises:
        DatasetError: It is of another form.
    """
    value = literal(value)
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if value is None:
        return [], [], []
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value:
        raise DatasetError(f"the chat is {value!r:.80}, expected messages of role and content")
    if all(isinstance(part, str) for part in value):
        return [{"role": "user", "content": value[0]}], [], value[1:]
    return *_read_messages(value), []


def _read_messages(parts: Sequence[Any]) -> tuple[list[dict[str, str]], list[Any]]:
    """Return the messages up to the last one of the user, and their images."""
    read = [_message(part) for part in parts]
    while read and read[-1][0]["role"] == "assistant":
        read.pop()
    if not read:
        raise DatasetError("the chat has no message of the user")
    return [message for message, _ in read], [image for _, images in read for image in images]


def _message(part: Any) -> tuple[dict[str, str], list[Any]]:
    """Return role and text of a message, and its images."""
    if isinstance(part, str):
        return {"role": "user", "content": part}, []
    if not isinstance(part, Mapping):
        raise DatasetError(f"a message of the chat is {part!r:.80}, expected role and content")
    role = _ROLES.get(str(part.get("role", part.get("from", "user"))).lower())
    if role is None:
        raise DatasetError(f"a message has the role {part.get('role')!r:.40}; tools cannot be asked in a bank")
    text, images = _content(part.get("content", part.get("value")))
    return {"role": _PLAYED.get(str(part.get("name", "")), role), "content": text}, images


def _content(content: Any) -> tuple[str, list[Any]]:
    if isinstance(content, str):
        return content, []
    if not isinstance(content, list):
        raise DatasetError(f"the content of a message is {content!r:.80}, expected a text or parts")
    texts, pictures = [], []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            texts.append(as_text(part.get("text")))
        elif kind in ("image", "image_url", "input_image"):
            image = part.get("image", part.get("image_url"))
            pictures.append(image.get("url") if isinstance(image, Mapping) else image)
        else:
            raise DatasetError(f"a part of a message is of the type {kind!r:.40}; only text and images can be asked")
    return "\n".join(texts), pictures
