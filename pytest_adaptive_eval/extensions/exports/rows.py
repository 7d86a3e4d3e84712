"""The answers of a record for other tools, as JSON lines and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.text import clean_xml

#: Version of the columns of `responses_jsonl`; a changed or removed column raises it, a new one does not.
RESPONSES_VERSION = 1
#: Columns taken from an administration, by its attributes.
_ASKED = (
    "position", "item", "item_hash", "format", "sample", "category", "difficulty", "status", "score", "text", "detail",
    "reason", "propensity", "predicted", "rest", "variance", "down", "up", "theta_before", "theta_after", "seconds",
    "resumed",
)  # fmt: skip
#: Columns of an interview, before those of `_ASKED`.
_INTERVIEW = (
    "schema_version", "run", "started", "evaluation", "subject", "checkpoint", "decoding_hash", "bank", "bank_hash",
    "scale",
)  # fmt: skip
_COLUMNS = (*_INTERVIEW, *_ASKED)


def _rows(record: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield a flat mapping per administration, all with the same keys."""
    for interview in record.interviews:
        subject = interview.subject
        bank = interview.bank
        facts = [RESPONSES_VERSION, record.run, record.started, interview.name]
        facts += [subject.name, subject.checkpoint, subject.decoding_hash, bank.name, bank.content_hash, bank.scale]
        head = dict(zip(_INTERVIEW, facts, strict=True))
        for asked in interview.administrations:
            yield head | {name: getattr(asked, name) for name in _ASKED}


def responses_jsonl(record: RunRecord) -> Iterator[str]:
    """Return every answer as a line of JSON, without its end; ``docs/reference/exports.md`` lists the columns."""
    return map(json.dumps, _rows(record))


#: Start of a cell that spreadsheets may read as a formula.
_FORMULA = re.compile("\\s*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n]")
#: Characters of a cell; Excel splits a longer one, and its rest may begin a formula.
_CELL = 32_000


def responses_csv(record: RunRecord) -> str:
    """Return every answer as a row of CSV, with a head.

    The columns are the same as in `responses_jsonl`. A list of one value becomes the value, a longer one JSON. A text
    that a spreadsheet could read as a formula begins with an apostrophe, control characters are shown as escapes, and a
    text of more than 32 000 characters is cut.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(_COLUMNS)
    writer.writerows(map(_cell, row.values()) for row in _rows(record))
    return out.getvalue()


def _cell(value: Any) -> Any:
    """Return a number, a text that no spreadsheet reads as a formula, or None."""
    if isinstance(value, list):
        if len(value) == 1:
            value = value[0]
        elif value:
            value = json.dumps(value)
        else:
            value = None
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, str):
        return value
    text = clean_xml(value, _CELL)
    if _FORMULA.match(text):
        return f"'{text}"
    return text


def write_export(record: RunRecord, path: Path, kind: str) -> int:
    """Write the answers of a run, replacing an earlier file in one step.

    Raises:
        UsageError: The kind is unknown, or the file cannot be written.
    """
    if kind == "jsonl":
        text = "".join(f"{line}\n" for line in responses_jsonl(record))
    elif kind == "csv":
        text = responses_csv(record)
    else:
        raise UsageError(f"unknown export {kind!r}: expected 'jsonl' or 'csv'")
    write_whole(path, [text.encode("utf-8")], "the answers")
    return sum(len(interview.administrations) for interview in record.interviews)
