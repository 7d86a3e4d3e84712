"""Mappings of the fields of foreign records to those of items and of responses, as TOML tables hold them.

Values are expressions, see `pytest_adaptive_eval.banks.expressions`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pytest_adaptive_eval.typed_tables import Table, described, replaced

#: How an answer may name a choice.
Counted = Literal["auto", "label", "letter", "text", "0", "1"]
#: How an answer of several parts is read; empty where answers have one part.
AnswerKind = Literal["", "any", "all", "letters", "list"]

Names = tuple[str, ...]


class ItemMapping(Table, frozen=True):
    """Fields of items."""

    rows: Annotated[
        str, described("place of the records in nested data, such as data[*].qas[*], or lists side by side")
    ] = ""
    header: Annotated[Names, described("names of the columns of a table without a header")] = ()
    where: Annotated[str, described("rows that count, such as split == 'test'")] = ""
    id: Annotated[str, described("id of an item; made distinct by content where repeated")] = ""
    context: Annotated[Names, described("texts before the question, such as a passage or an instruction")] = ()
    question: Annotated[str, described("question; a name, or a text with names in braces")] = ""
    messages: Annotated[str, described("chat of role and content, instead of the question")] = ""
    choices: Annotated[Names, described("alternatives: a list, an object, a text of options, or several columns")] = ()
    distractors: Annotated[Names, described("wrong alternatives, where the right one is the answer")] = ()
    answer: Annotated[str, described("expected answer, or what names the right choice")] = ""
    answer_kind: Annotated[
        AnswerKind,
        described("how an answer of several parts is read: each is right, all in any order, in this order, or letters"),
    ] = ""
    accepted: Annotated[Names, described("accepted answers: each entry of a list is right")] = ()
    missing: Annotated[
        Names | None, described("texts that stand for no value, such as NaN; every text is a value where empty")
    ] = None
    counted: Annotated[Counted, described("how the answer names a choice: by label, letter, text, or number")] = "auto"
    images: Annotated[Names, described("images: paths, bytes, base64 or data addresses")] = ()
    category: Annotated[Names, described("categories, the broadest first")] = ()
    unit: Annotated[str, described("unit of a number, which the question then asks for")] = ""
    grader: Annotated[str, described("grader of all items")] = ""
    instruction: Annotated[str | None, described("sentence after the question; none where empty")] = None
    bare: Annotated[bool, described("leave choices and instruction out of the prompt, for likelihood scoring")] = False
    choices_shown: Annotated[bool, described("list choices after a prompt that lacks them, when it is asked")] = True
    tolerance: Annotated[float | None, described("accepted difference of a number")] = None
    meta: Annotated[Names, described("further fields to keep under meta, or NAME=EXPRESSION")] = ()

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, as JSON data."""
        return _given(self, ItemMapping)


class ResponseMapping(Table, frozen=True):
    """Fields of responses; empty where there is no expression."""

    rows: Annotated[str, described("where the records lie in a file, such as results[*].samples")] = ""
    subject: Annotated[str, described("name of the model ($file by default)")] = ""
    item: Annotated[str, described("id of the item")] = ""
    score: Annotated[
        str, described("score in [0, 1], truth value or verdict; without it the answer is compared with the target")
    ] = ""
    answer: Annotated[str, described("what the model answered")] = ""
    question: Annotated[str, described("text of the question, or its messages")] = ""
    choices: Annotated[str, described("list of choices")] = ""
    target: Annotated[str, described("right answer, or a list of accepted ones")] = ""
    images: Annotated[str, described("images: paths, data URLs or bytes")] = ""
    category: Annotated[str, described("category of the item")] = ""
    error: Annotated[str, described("where it is not empty, the response is missing")] = ""

    @property
    def given(self) -> dict[str, str]:
        """The expressions that are not empty, by field."""
        return _given(self, ResponseMapping)

    @property
    def options(self) -> str:
        """The mapping as options of the command line."""
        return " ".join(f"--set {name}={_quoted(text)}" for name, text in self.given.items())

    def with_defaults(self, other: ResponseMapping) -> ResponseMapping:
        """Return a copy with the expressions of another mapping where this one has none."""
        return replaced(other, **self.given)


def _quoted(text: str) -> str:
    """Return an expression as a word of a shell."""
    if text.replace("_", "").replace(".", "").replace("-", "").isalnum():
        return text
    return f"'{text}'" if "'" not in text else f'"{text}"'


def _given(table: Table, kind: type[Table]) -> dict[str, Any]:
    """Return the fields of a kind of table that differ from its defaults, as JSON data."""
    default = kind()
    values = ((name, getattr(table, name)) for name in kind.__struct_fields__)
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values
        if value != getattr(default, name)
    }


def split_list(text: str) -> Names:
    """Return the expressions of a comma-separated option; commas within brackets, braces and quotes do not count."""
    parts = re.findall(r"(?:\([^)]*\)|\[[^\]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"|[^,])+", text)
    return tuple(part.strip() for part in parts if part.strip())
