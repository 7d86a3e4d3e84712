"""Records as drafts of items: question, choices and answer, read by a mapping."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.banks.expressions import as_path, parse_expression
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError, DatasetError
from pytest_adaptive_eval.extensions.importing.choices import Choices, Entry, choices_of, read_choices
from pytest_adaptive_eval.extensions.importing.undecided import Advice, Undecided
from pytest_adaptive_eval.extensions.importing.values import (
    as_list,
    as_text,
    is_missing,
    literal,
    may_be_missing,
    may_mean_none,
)
from pytest_adaptive_eval.mappings import ItemMapping

#: Keys of a mapping with expressions, but for `meta`; and a further field under a name of its own.
_READ = (
    *("where", "id", "unit", "question", "messages", "tools", "answer", "choices"),
    *("context", "distractors", "accepted", "images", "category"),
)
_NAMED = re.compile(r"(?:(\w+)=(?!=))?(.*)", re.DOTALL)
_ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system"}
#: Names of system messages that play an example, as in OpenAI evals.
_PLAYED = {"example_user": "user", "example_assistant": "assistant"}
#: Signs between choices in one text.
_BETWEEN = ("; ", ";", " | ", "|", ", ", " / ", "\t", ",")
_PICTURE = ("image", "image_url", "input_image")
_MEDIA = re.compile(r"(?i)\.(mp4|avi|mov|mkv|webm|mp3|wav|flac|ogg)\Z")
_MEDIA_FIELD = re.compile(r"(?i)video|audio|sound|clip|path|file")


@dataclass(slots=True)
class Draft:
    """One record, read by a mapping.

    Args:
        question: Its text, or the texts of its messages.
        answer: As the data set writes it; None if it gives none.
        messages: Of role and content; empty where one of the user is the whole question.
        turns: Further prompts of the user, each asked after the answer to the one before.
        tools: Tools that the model may call.
    """

    where: str
    file: str
    number: int
    name: str
    question: str
    choices: Choices
    answer: Any
    accepted: list[Any]
    images: list[Any]
    category: tuple[str, ...]
    meta: dict[str, Any]
    messages: list[dict[str, str]]
    turns: list[str]
    tools: list[dict[str, Any]]


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
        self._meta = [match.groups() for match in map(_NAMED.fullmatch, mapping.meta) if match]
        texts = {name: getattr(mapping, name) for name in _READ}
        texts |= {"labels_by": labels_by, "meta": [text for _, text in self._meta]}
        self._expressions = {
            name: [parse_expression(text, name) for text in ((value,) if isinstance(value, str) else value) if text]
            for name, value in texts.items()
        }
        self.mapping, self._labels = mapping, labels

    def read(self, record: TableRecord, number: int) -> Draft | None:
        """Return the draft of a record; None where the mapping leaves it out.

        Raises:
            DatasetError: The record has no question, or alternatives that cannot be read.
        """
        if "refused" in record.names:
            raise DatasetError(str(record.names["refused"]))
        if self.mapping.where and not self._value_of("where", record):
            return None
        name = as_text(self._value_of("id", record))
        label = self._label(record, name, number)
        record = record._replace(names={**record.names, "label": label, "number": number})
        of_label = not (self.mapping.answer or self._expressions["labels_by"])
        answer = self._present(label if of_label else self._value_of("answer", record))
        asked, messages, pictures, turns = self._asked(record)
        _refuse_media(record)
        images = []
        for cell in self._each("images", record):
            for part in _pictures(cell):
                images.append(part)
        accepted = []
        for cell in self._each("accepted", record):
            for part in as_list(cell):
                accepted.append(part)
        return Draft(
            where=record.where,
            file=sys.intern(f"{record.names.get('folder')}/{record.names['file']}"),
            number=number,
            name=name,
            question=asked,
            choices=self._choices(record, answer),
            answer=answer,
            accepted=[part for part in accepted if self._present(part) is not None],
            images=images + pictures,
            category=tuple(filter(None, map(as_text, self._each("category", record)))),
            meta=self._further_fields(record),
            messages=messages,
            turns=turns,
            tools=as_list(self._value_of("tools", record)),
        )

    def _asked(self, record: TableRecord) -> tuple[str, list[dict[str, str]], list[Any], list[str]]:
        """Return what a record asks: the text of its question, and the messages, pictures and turns of a chat."""
        question = self._value_of("question", record)
        chat = self._value_of("messages", record)
        if chat is None and isinstance(question, list) and not all(isinstance(part, str) for part in question):
            question, chat = None, question
        messages, pictures, turns = read_chat(chat)
        asked = _joined([question])
        before = _joined(self._each("context", record))
        if len(messages) == 1 and messages[0]["role"] == "user":
            asked = paragraphs(asked, messages[0]["content"])
            messages = []
        if not (asked or messages):
            expression = self.mapping.question or self.mapping.messages
            raise DatasetError(f"no question at {expression!r}; it has {sorted(map(str, record.data))[:12]}")
        asked = paragraphs(before, asked, self._unit(record, asked))
        if messages:
            messages = [{"role": "system", "content": asked}] * bool(asked) + messages
            asked = "\n".join(message["content"] for message in messages)
        return asked, messages, pictures, turns

    def values(self, record: TableRecord) -> list[Any]:
        """Return the values of all expressions in a record, up to one that refuses it."""
        with contextlib.suppress(BankError):
            return [self._each(name, record) for name in self._expressions]
        return []

    def _each(self, name: str, record: TableRecord) -> list[Any]:
        return [expression(record.data, record.names) for expression in self._expressions[name]]

    def _value_of(self, name: str, record: TableRecord) -> Any:
        """Return the value of a key of the mapping; None where it has no expression."""
        return next(iter(self._each(name, record)), None)

    def _present(self, value: Any) -> Any:
        """Return a value; None if it is none, or a text that the mapping says means none."""
        if is_missing(value) or as_text(value) in (self.mapping.missing or ()):
            return None
        return value

    def _unit(self, record: TableRecord, asked: str) -> str:
        """Return the sentence that asks for a unit which the question does not name."""
        unit = _joined([self._value_of("unit", record)])
        is_named = re.search(rf"(?<!\w){re.escape(unit)}(?!\w)", asked)
        if unit and not is_named:
            return f"Give the answer in {unit}."
        return ""

    def _further_fields(self, record: TableRecord) -> dict[str, Any]:
        """Return the further fields of a record."""
        names = [name or text for name, text in self._meta]
        values = dict(zip(names, self._each("meta", record), strict=True))
        lacking = sorted(name for name, _ in self._meta if name and values[name] is None)
        check_faults((f"it has no value for {name} in meta" for name in lacking), error=DatasetError)
        return {name: value for name, value in values.items() if value is not None}

    def _label(self, record: TableRecord, name: str, number: int) -> Any:
        """Return the answer in the second file, by the record's id or position; None without one."""
        joined = self._each("labels_by", record)
        if joined:
            key = as_text(joined[0])
        else:
            key = name
        labels = self._labels
        if not isinstance(labels, Mapping):
            if number < len(labels):
                return labels[number]
            return None
        if joined and key not in labels:
            raise DatasetError(f"the second file has no record {key!r:.60}")
        return labels.get(key)

    def _choices(self, record: TableRecord, answer: Any) -> Choices:
        """Return the alternatives without missing ones at the end.

        Raises:
            DatasetError: One between others is missing or may be, or there is one only.
        """
        cells = self._each("choices", record)
        missing = self.mapping.missing or ()
        if len(cells) == 1:
            choices = read_choices(cells[0], missing)
        else:
            choices = choices_of(list(map(Entry, map(as_text, cells), self.mapping.choices)), missing)
        if cells == [] and self.mapping.distractors:
            choices = self._with_distractors(answer, self._each("distractors", record))
        if choices.right == frozenset(range(len(choices.texts))):
            return Choices(())  # all are accepted answers
        texts = choices.texts
        if len(cells) == 1 and not (texts or is_missing(cells[0])):
            text = as_text(cells[0])
            field = as_path(self.mapping.choices[0])
            signs = [sign for sign in _BETWEEN if sign in text]
            separated = [Advice({"choices": f"split({field}, '{sign}')"}) for sign in signs]
            raise Undecided(f"its choices {text!r:.80} are not a list", *separated)
        if "" in texts:
            raise DatasetError(f"choice {texts.index('') + 1} of {len(texts)} has no value")
        if len(texts) == 1:
            raise DatasetError(f"{texts[0]!r:.60} is its only choice")
        unsure = []
        for text in texts:
            if may_be_missing(text) and text != "None":
                unsure.append(text)
        if unsure and self.mapping.missing is None:
            raise may_mean_none("choice", unsure[0])
        return choices

    def _with_distractors(self, answer: Any, distractors: Sequence[Any]) -> Choices:
        """Return the right alternative and the wrong ones, which may be in one text."""
        right = as_text(next(iter(as_list(answer)), ""))
        cells = []
        for cell in distractors:
            for part in as_list(cell):
                cells.append(part)
        if len(cells) == 1 and isinstance(cells[0], str):
            cells = cells[0].split(";")
        texts = []
        for cell in cells:
            if self._present(cell) is not None:
                texts.append(as_text(cell))
        wrong = [text for text in dict.fromkeys(texts) if text != right]
        if not right or not wrong:
            raise DatasetError(f"the right alternative is {right!r:.60} and there are {len(wrong)} wrong ones")
        return choices_of([Entry(right, "", right=True), *(Entry(text, "", right=False) for text in wrong)])


def _refuse_media(record: TableRecord) -> None:
    """Raise a DatasetError for a field that names sound or video, which no model is asked."""
    for key, cell in record.data.items():
        if isinstance(cell, str) and _MEDIA.search(cell[-9:]) and _MEDIA_FIELD.search(key):
            raise DatasetError(f"{key!r:.40} is {cell!r:.60}: sound and video cannot be asked")


def paragraphs(*texts: str) -> str:
    """Return texts, but for empty ones, with blank lines between them."""
    return "\n\n".join(filter(None, texts))


def _joined(parts: Sequence[Any]) -> str:
    """Return the texts that have a value as paragraphs; a list is lines."""
    texts = []
    for part in parts:
        texts.append("\n".join(map(as_text, part)) if isinstance(part, list) else as_text(part))
    return paragraphs(*(text for text in texts if not may_be_missing(text)))


def _pictures(value: Any) -> list[Any]:
    value = literal(value)
    if isinstance(value, list):
        return value
    blank = value is None or (isinstance(value, str) and (not value.strip() or may_be_missing(value)))
    if blank:
        return []
    return [value]


def read_chat(value: Any) -> tuple[list[dict[str, str]], list[Any], list[str]]:
    """Return the messages of a chat as role and text, the images in them, and further turns of the user.

    Last messages of the assistant are expected answers, and no part of the question.

    Args:
        value: A text, a list of the texts that a user writes one after the other, or messages.

    Raises:
        DatasetError: It is of another form.
    """
    parts = as_list(value)
    images: list[Any] = []
    if parts and all(isinstance(part, list) for part in parts):
        parts = [message for turn in parts for message in turn]
    messages = [_message(part, images) for part in parts]
    while messages and messages[-1]["role"] == "assistant":
        messages.pop()
    if parts and not messages:
        raise DatasetError("the chat has no message of the user")
    first = next((n for n, message in enumerate(messages) if message["role"] == "user"), len(messages))
    later = messages[first + 1 :]
    if all(message["role"] == "user" for message in later):  # nothing is answered between them
        return messages[: first + 1], images, [message["content"] for message in later]
    return messages, images, []


def _message(part: Any, images: list[Any]) -> dict[str, str]:
    """Return role and text of a message, and add its images to others."""
    if isinstance(part, Mapping):
        fields = part
    else:
        fields = {"content": part}
    role = _ROLES.get(str(fields.get("role", fields.get("from", "user"))).lower())
    content = fields.get("content", fields.get("value"))
    if isinstance(content, list):
        pieces = content
    else:
        pieces = [{"type": "text", "text": content}]
    texts = []
    for piece in pieces:
        kind = None
        if isinstance(piece, Mapping):
            kind = piece.get("type")
        if kind in _PICTURE:
            image = piece.get("image", piece.get("image_url"))
            images.append(image.get("url") if isinstance(image, Mapping) else image)
        elif kind == "text" and isinstance(piece.get("text"), str):
            texts.append(str(piece["text"]))
        else:
            role = None
    if role is None:
        raise DatasetError(
            f"a message of the chat is {part!r:.80}, expected the role user, assistant or system and a content of text "
            "and images"
        )
    return {"role": _PLAYED.get(str(fields.get("name", "")), role), "content": "\n".join(texts)}
