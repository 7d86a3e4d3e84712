"""Mappings of the fields of foreign records to fields of items and of responses, as TOML tables hold them.

Values are expressions, see `pytest_adaptive_eval.banks.expressions`.
"""

from __future__ import annotations

import re
import shlex
from typing import Any, Literal

from pytest_adaptive_eval.typed_tables import Table, replaced

#: How an answer may name a choice.
Counted = Literal["auto", "label", "letter", "text", "0", "1"]
#: How an answer of several parts is read; empty where answers have one part.
AnswerKind = Literal["", "any", "all", "letters", "list"]

Names = tuple[str, ...]


class ItemMapping(Table, frozen=True):
    """Fields of items.

    Args:
        rows: Place of the records in nested data, such as data[*].qas[*], or lists side by side.
        header: Names of the columns of a table without a header.
        where: Rows that count, such as split == 'test'.
        id: Id of an item; made distinct by content where repeated.
        context: Texts before the question, such as a passage or an instruction.
        question: Question; a name, or a text with names in braces.
        messages: Chat of role and content, instead of the question.
        tools: Tools that the model may call.
        choices: Alternatives: a list, an object, a text of options, or several columns.
        distractors: Wrong alternatives, where the right one is the answer.
        answer: Expected answer, or what names the right choice.
        answer_kind: How an answer of several parts is read: each is right, all in any order, in this order, or letters.
        accepted: Accepted answers: each entry of a list is right.
        missing: Texts that stand for no value, such as NaN; every text is a value where empty.
        counted: How the answer names a choice: by label, letter, text, or number.
        images: Images: paths, bytes, base64 or data addresses.
        category: Categories, the broadest first.
        unit: Unit of a number, which the question then asks for.
        grader: Grader of all items.
        instruction: Sentence after the question; none where empty.
        bare: Leave choices and instruction out of the prompt, for likelihood scoring.
        choices_shown: List choices after a prompt that lacks them, when it is asked.
        tolerance: Accepted difference of a number.
        meta: Further fields to keep under meta, or NAME=EXPRESSION.
    """

    rows: str = ""
    header: Names = ()
    where: str = ""
    id: str = ""
    context: Names = ()
    question: str = ""
    messages: str = ""
    tools: str = ""
    choices: Names = ()
    distractors: Names = ()
    answer: str = ""
    answer_kind: AnswerKind = ""
    accepted: Names = ()
    missing: Names | None = None
    counted: Counted = "auto"
    images: Names = ()
    category: Names = ()
    unit: str = ""
    grader: str = ""
    instruction: str | None = None
    bare: bool = False
    choices_shown: bool = True
    tolerance: float | None = None
    meta: Names = ()

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, as JSON data."""
        return _given(self, ItemMapping)


class ResponseMapping(Table, frozen=True):
    """Fields of responses; empty without an expression.

    Args:
        rows: Where the records lie in a file, such as results[*].samples.
        subject: Name of the model ($file by default).
        item: Id of the item.
        score: Score in [0, 1], truth value or verdict; without it the answer is compared with the target.
        answer: What the model answered.
        question: Text of the question, or its messages.
        choices: List of choices.
        target: Right answer, or a list of accepted ones.
        images: Images: paths, data URLs or bytes.
        category: Category of the item.
        error: Where it is not empty, the response is missing.
    """

    rows: str = ""
    subject: str = ""
    item: str = ""
    score: str = ""
    answer: str = ""
    question: str = ""
    choices: str = ""
    target: str = ""
    images: str = ""
    category: str = ""
    error: str = ""

    @property
    def given(self) -> dict[str, str]:
        """The expressions that are not empty, by field."""
        return _given(self, ResponseMapping)

    @property
    def options(self) -> str:
        """The mapping as options of the command line."""
        return " ".join(f"--set {name}={shlex.quote(text)}" for name, text in self.given.items())

    def with_defaults(self, other: ResponseMapping) -> ResponseMapping:
        """Return a copy with the expressions of another mapping where this one has none."""
        return replaced(other, **self.given)


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
