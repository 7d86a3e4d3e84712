"""Check and hash plain rows of a JSONL of items, without making items of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pytest_adaptive_eval.banks.items import GONE_EXPRESSION, LENIENT, is_item_id
from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.items.graders.kind import grader_kinds
from pytest_adaptive_eval.items.item import canonical_json, hash_of_content
from pytest_adaptive_eval.items.presentation import CHOICES_SHOWN

#: Keys of ``meta`` that `banks.items.parse_item` checks or acts on.
_CHECKED = frozenset({GONE_EXPRESSION, LENIENT, CHOICES_SHOWN, "max_tokens", "textless"})


class PlainRow(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A row with a prompt, one accepted answer and, optionally, choices, categories and metadata.

    The fields are in alphabetical order, as in an item's canonical JSON.
    """

    answer: str
    category: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    grader: str = ""
    id: str = ""
    meta: dict[str, Any] = {}
    prompt: str = ""

    @property
    def answers(self) -> tuple[str, ...]:
        """The accepted answer; see `items.graders.kind.Asked`."""
        return (self.answer,)

    @property
    def tools(self) -> tuple[()]:
        """None: a row with tools is read in full."""
        return ()


class PlainReader:
    """A reader of rows that `banks.items.parse_item` accepts, at a tenth of its cost."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(PlainRow).decode
        self._encode = msgspec.json.Encoder().encode
        self._parse = json.JSONDecoder(object_pairs_hook=unique_keys).decode
        self._kinds = grader_kinds()

    def read(self, line: bytes) -> tuple[PlainRow, str] | None:
        """Return a plain row and the content hash of its item; None for any other row, which may be faulty."""
        try:
            row = self._decode(line)
            quotes = line.count(b'"')
            if not row.grader:
                row.grader = "choice" if row.choices else "exact"
                quotes += 4
            text = self._encode(row)
            # a key that stands twice, or an empty list, has quotes that the row lacks
            if text.count(b'"') != quotes or b"\\u0022" in line:
                return None
            if row.meta or not text.isascii() or b"\x7f" in text:  # msgspec writes numbers and such characters its way
                data = {**self._parse(line.decode()), "grader": row.grader}
                row.meta = data.get("meta", row.meta)
                text = canonical_json(data).encode("ascii")
            if not (row.prompt and is_item_id(row.id) and row.answer.strip() and self._fits(row)):
                return None
        except (msgspec.MsgspecError, ValueError, RecursionError, TimeoutError):
            return None
        return row, hash_of_content(text)

    def _fits(self, row: PlainRow) -> bool:
        """Return whether the grader and the metadata are known and find no fault in the answer."""
        kind = self._kinds.get(row.grader)
        return (
            kind is not None
            and _CHECKED.isdisjoint(row.meta)
            and len(set(row.choices)) == len(row.choices)
            and not kind.check(row, row.answer)
            and kind.leniency(row, row.answer) is None
        )
