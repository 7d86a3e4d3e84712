"""Mapping of a published data set's fields to fields of items."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec

from pytest_adaptive_eval.typed_tables import Table, described

Counted = Literal["auto", "label", "letter", "text", "0", "1"]
#: How an answer may name a choice.
COUNTED: tuple[Counted, ...] = ("auto", "label", "letter", "text", "0", "1")

Names = tuple[str, ...]


class ItemMapping(Table, frozen=True):
    """Expressions for the fields of items; see `pytest_adaptive_eval.banks.expressions`."""

    rows: Annotated[
        str, described("place of the records in nested data, such as data[*].qas[*], or lists side by side")
    ] = ""
    header: Annotated[Names, described("names of the columns of a table without a header")] = ()
    where: Annotated[str, described("rows that count, such as split == 'test'")] = ""
    id: Annotated[str, described("id of an item; made distinct by content where repeated")] = ""
    context: Annotated[str, described("text before the question, such as a passage")] = ""
    question: Annotated[str, described("question; a name, or a text with names in braces")] = ""
    messages: Annotated[str, described("chat of role and content, instead of the question")] = ""
    choices: Annotated[Names, described("alternatives: a list, an object, a text of options, or several columns")] = ()
    distractors: Annotated[Names, described("wrong alternatives, where the right one is the answer")] = ()
    answer: Annotated[str, described("expected answer; a list is one value, all of it wanted")] = ""
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
    tolerance: Annotated[float | None, described("accepted difference of a number")] = None
    meta: Annotated[Names, described("further fields to keep under meta")] = ()

    def given(self) -> dict[str, object]:
        """Return the fields that differ from the defaults, as JSON data."""
        default, values = ItemMapping(), msgspec.structs.asdict(self)
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value != getattr(default, name)
        }


def split_list(text: str) -> Names:
    """Return the expressions of a comma-separated option; commas within brackets, braces and quotes do not count."""
    parts = re.findall(r"(?:\([^)]*\)|\[[^\]]*\]|\{[^}]*\}|'[^']*'|\"[^\"]*\"|[^,])+", text)
    return tuple(part.strip() for part in parts if part.strip())
