"""Records as drafts of items: question, alternatives and answer, before it is known how answers are to be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.banks.expressions import Expression, parse_expression
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.choices import (
    Choices,
    as_list,
    as_text,
    is_missing,
    literal,
    may_be_missing,
    read_choices,
    without_end,
)
from pytest_adaptive_eval.extensions.importing.free import holds_answer
from pytest_adaptive_eval.mappings import ItemMapping

_MEDIA = re.compile(r"(?i)\.(mp4|avi|mov|mkv|webm|mp3|wav|flac|ogg)\Z")
_MEDIA_FIELD = re.compile(r"(?i)video|audio|sound|clip|path|file")
_ROLES = {"human": "user", "gpt": "assistant", "user": "user", "assistant": "assistant", "system": "system"}


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
    messages: list[dict[str, str]]
    choices: Choices
    answer: Any
    accepted: list[Any]
    images: list[Any]
    category: tuple[str, ...]
    meta: dict[str, Any]
    turns: list[str]
    unit: str = ""


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


class Drafter:
    """Reader of records by a mapping.

    Args:
        labels: Answers of the second file, by position or id; empty if there is none.
        labels_by: Expression of the id in the second file.
        guessed: Whether the answer was guessed, which is then no list of texts.

    Raises:
        ConfigError: An expression is malformed.
    """

    def __init__(
        self,
        mapping: ItemMapping,
        labels: Sequence[Any] | Mapping[str, Any] = (),
        labels_by: str = "",
        *,
        guessed: bool = False,
    ) -> None:
        self._guessed = guessed
        self.mapping, self._labels = mapping, labels
        self._by = parse_expression(labels_by, "labels_by") if labels_by else None

        def one(name: str) -> Expression | None:
            text = getattr(mapping, name)
            return parse_expression(text, name) if text else None

        def several(name: str) -> list[Expression]:
            return [parse_expression(text, name) for text in getattr(mapping, name)]

        self._where, self._id, self._context, self._unit = one("where"), one("id"), one("context"), one("unit")
        self._question, self._messages, self._answer = one("question"), one("messages"), one("answer")
        self._choices = choices_of(mapping.choices) if mapping.choices else None
        self._columns, self._distractors = several("choices"), several("distractors")
        self._accepted, self._images = several("accepted"), several("images")
        self._category = several("category")
        named = [re.match(r"(\w+)=(?!=)", text) for text in mapping.meta]
        texts = [text[match.end() :] if match else text for text, match in zip(mapping.meta, named, strict=True)]
        keys = [match[1] if match else text for text, match in zip(mapping.meta, named, strict=True)]
        self._meta = {key: parse_expression(text, "meta") for key, text in zip(keys, texts, strict=True)}
        self._needed = {match[1] for match in named if match}

    def draft(self, record: TableRecord, number: int) -> Draft | None:
        """Return the draft of a record; None where the mapping leaves it out.

        Raises:
            DatasetError: The record has no question, or alternatives that cannot be read.
        """
        data, names = record.data, record.names
        if "refused" in names:
            raise DatasetError(str(names["refused"]))
        if self._where is not None and not self._where(data, names):
            return None
        name = "" if self._id is None else as_text(self._id(data, names))
        label = self._label(record, name, number)
        names = {**names, "label": label, "number": number}

        def value(expression: Expression | None) -> Any:
            return None if expression is None else expression(data, names)

        wanted = value(self._answer) if self._answer else label if self._by is None else None
        choices, answer = self._alternatives(data, names, None if self._is_missing(wanted) else wanted)
        values = [entry for each in self._accepted for entry in as_list(value(each)) if not self._is_missing(entry)]
        images = [part for expression in self._images for part in _pictures(expression(data, names))]
        chat, turns = _turns(value(self._messages))
        if self._guessed and not (choices.texts or turns):
            self._check_one_value(answer)
        messages, pictures = _chat(chat) if self._messages and (chat is not None or not self._question) else ([], [])
        question = _joined(value(self._context), value(self._question))
        if not (question or messages):
            present = sorted(map(str, data))[:12]
            raise DatasetError(f"no question at {self.mapping.question or self.mapping.messages!r}; it has {present}")
        _check_media(data)
        category = tuple(filter(None, (as_text(value(each)) for each in self._category)))
        meta = {key: kept for key, each in self._meta.items() if (kept := value(each)) is not None}
        if lacking := self._needed - meta.keys():
            raise DatasetError(f"it has no value for {min(lacking)} in meta")
        pictures = images + pictures
        return Draft(
            *(record.where, number, name, question, messages, choices, answer, values, pictures, category, meta, turns),
            as_text(value(self._unit)),
        )

    def _label(self, record: TableRecord, name: str, number: int) -> Any:
        """Return the answer in the second file, by the record's id or position; None without one."""
        key = name if self._by is None else as_text(self._by(record.data, record.names))
        labels = self._labels
        label = labels.get(key) if isinstance(labels, Mapping) else next(iter(labels[number : number + 1]), None)
        if self._by is not None and label is None:
            raise DatasetError(f"the second file has no record {key!r:.60}")
        return label

    def _check_one_value(self, answer: Any) -> None:
        """Refuse a guessed answer that is a list of texts, or an object that no grader compares."""
        name = self.mapping.answer or "$label"
        parts = answer if isinstance(answer, list) else [answer]
        if len(parts) > 1 and any(isinstance(part, str) for part in parts):
            raise DatasetError(f"its answer is a list, {answer!r:.60}; give --set accepted={name} where any is right")
        if not self.mapping.grader and any(isinstance(part, Mapping) and not holds_answer(part) for part in parts):
            raise DatasetError(
                f"its answer is {answer!r:.80}, which no grader compares; give --set grader=judge, or "
                f"grader=python:module:function that compares it, or the part to compare as --set answer={name}.KEY"
            )

    def _is_missing(self, value: Any) -> bool:
        """Return whether a value is none, or a text that the mapping says stands for none."""
        return is_missing(value) or as_text(value) in (self.mapping.missing or ())

    def _alternatives(self, data: Any, names: Mapping[str, Any], answer: Any) -> tuple[Choices, Any]:
        if self._choices is not None:
            choices = self._choices(TableRecord("", data, names))
            if not choices.texts:
                cells = [cell for each in self._columns if not is_missing(cell := each(data, names))]
                if written := next((text for text in map(as_text, cells) if not may_be_missing(text)), ""):
                    raise DatasetError(f"its choices {written!r:.80} cannot be read")
            if choices.right == frozenset(range(len(choices.texts))):
                return Choices(()), answer  # all are accepted answers
            if choices.right is None and self.mapping.counted == "auto" and _marks(answer, len(choices.texts)):
                choices = choices._replace(right=frozenset(n for n, mark in enumerate(answer) if mark), either=False)
            return self._whole(choices), answer
        if not self._distractors:
            return Choices(()), answer
        return self._beside(answer, [expression(data, names) for expression in self._distractors]), answer

    def _beside(self, answer: Any, distractors: Sequence[Any]) -> Choices:
        """Return the right alternative and the wrong ones, which may stand in one text."""
        values = as_list(answer)
        right = as_text(values[0]) if values else ""
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
        return choices


def _turns(chat: Any) -> tuple[Any, list[str]]:
    """Return a chat, or the first of several prompts, and the prompts of further turns."""
    prompts = literal(chat)
    if isinstance(prompts, list) and len(prompts) > 1 and all(isinstance(part, str) for part in prompts):
        return prompts[0], prompts[1:]
    return chat, []


def _check_media(data: Mapping[str, Any]) -> None:
    """Refuse a record that names a file of sound or video."""
    for key, cell in data.items():
        if isinstance(cell, str) and len(cell) < 500 and _MEDIA.search(cell) and _MEDIA_FIELD.search(key):
            raise DatasetError(f"{key!r:.40} is {cell!r:.60}: sound and video cannot be asked")


def _marks(answer: Any, count: int) -> bool:
    """Return whether an answer is a mark for each of so many choices, such as ``[0, 1, 0, 0]``.

    Two marks may also be the numbers of both choices, and are none.
    """
    return (
        isinstance(answer, list) and len(answer) == count > 2 and all(mark in (0, 1) for mark in answer) and any(answer)
    )


def _joined(*parts: Any) -> str:
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
    return [] if value is None or (isinstance(value, str) and (not value.strip() or may_be_missing(value))) else [value]


def _chat(value: Any) -> tuple[list[dict[str, str]], list[Any]]:
    """Return the messages of a chat as role and text, and the images in them.

    A last message of the assistant is the expected answer, and no part of the question.
    """
    value = literal(value)
    if isinstance(value, str):
        return [{"role": "user", "content": value}], []
    if not isinstance(value, list) or not value:
        raise DatasetError(f"the chat is {value!r:.80}, expected messages of role and content")
    messages: list[dict[str, str]] = []
    pictures: list[Any] = []
    for part in value:
        if isinstance(part, str):
            part = {"role": "user", "content": part}
        if not isinstance(part, Mapping):
            raise DatasetError(f"a message of the chat is {part!r:.80}, expected role and content")
        role = _ROLES.get(str(part.get("role", part.get("from", "user"))).lower())
        if role is None:
            raise DatasetError(f"a message has the role {part.get('role')!r:.40}; tools cannot be asked in a bank")
        text, images = _content(part.get("content", part.get("value")))
        pictures += images
        # a system message that plays an example, as OpenAI evals name it
        played = {"example_user": "user", "example_assistant": "assistant"}.get(str(part.get("name", "")), role)
        messages.append({"role": played, "content": text})
    while messages and messages[-1]["role"] == "assistant":
        messages.pop()
    if not messages:
        raise DatasetError("the chat has no message of the user")
    return messages, pictures


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
