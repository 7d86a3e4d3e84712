"""A record for other tools: JSON lines, CSV, Every Eval Ever, MLflow.

Every value has the type that its column or field promises, whatever the
record holds: a number that is none, or not finite, is null; a text is valid
Unicode.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.record import Administration, InterviewRecord, RunRecord, plain
from pytest_adaptive_eval.core.verdict import Outcome
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.files import write_whole
from pytest_adaptive_eval.reports.text import clean_xml

__all__ = [
    "RESPONSES_VERSION",
    "every_eval_ever",
    "log_mlflow",
    "mlflow_metrics",
    "responses_csv",
    "responses_jsonl",
    "write_export",
]

#: Version of the columns of `responses_jsonl`; a new column leaves it, a changed or removed one raises it.
RESPONSES_VERSION = 1
#: Version of Every Eval Ever's schemas that `every_eval_ever` follows.
_EVERY_EVAL_EVER = "0.3.0"


def _text(value: Any) -> str:
    """A text, valid Unicode; empty for None."""
    if value is None:
        return ""
    try:
        return str(plain(value if isinstance(value, str) else json.dumps(plain(value))))
    except (ValueError, RecursionError):  # a number of thousands of digits, a list within itself
        return type(value).__name__


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _count(value: Any) -> int | None:
    """A whole number that any reader can hold, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _numbers(value: Any) -> list[float | None] | None:
    return [_number(v) for v in value] if isinstance(value, list | tuple) else None


def _texts(value: Any) -> list[str]:
    return [_text(v) for v in value] if isinstance(value, list | tuple) else []


#: Columns taken from an administration, by its own names, with their types.
_ASKED: dict[str, Callable[[Any], Any]] = {
    "position": _count,
    "item": _text,
    "item_hash": _text,
    "format": _text,
    "sample": _count,
    "category": _texts,
    "difficulty": _number,
    "status": _text,
    "score": _number,
    "text": _text,
    "detail": _text,
    "reason": _text,
    "propensity": _number,
    "predicted": _number,
    "rest": _number,
    "variance": _number,
    "down": _number,
    "up": _number,
    "theta_before": _numbers,
    "theta_after": _numbers,
    "seconds": _number,
    "resumed": bool,
}


def _rows(record: RunRecord) -> Iterator[dict[str, Any]]:
    """One flat mapping an administration, all with the same keys."""
    for interview in record.interviews:
        subject, bank = interview.subject, interview.bank
        about = {
            "schema_version": RESPONSES_VERSION,
            "run": _text(record.run),
            "started": _text(record.started),
            "evaluation": _text(interview.name),
            "subject": _text(subject.get("name")),
            "checkpoint": _text(subject.get("checkpoint")),
            "decoding_hash": _text(subject.get("decoding_hash")),
            "bank": _text(bank.get("name")),
            "bank_hash": _text(bank.get("content_hash")),
            "scale": _text(bank.get("scale")),
        }
        for asked in interview.administrations:
            yield about | {name: kind(getattr(asked, name)) for name, kind in _ASKED.items()}


def responses_jsonl(record: RunRecord) -> Iterator[str]:
    """Every answer as a line of JSON, without its end; the columns are documented in ``docs/exports.md``."""
    for row in _rows(record):
        yield json.dumps(row, ensure_ascii=True, allow_nan=False)


#: What spreadsheets may take for a formula, at the start of a cell.
_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
#: Characters of a cell; Excel breaks a longer one apart, and its rest may begin a formula.
_CELL = 32_000
_ABOUT = 10


def responses_csv(record: RunRecord) -> str:
    """Every answer as a row of CSV, with a head.

    The columns are those of `responses_jsonl`.  Lists of one are the thing
    itself, others JSON.  A text that a spreadsheet could take for a formula
    begins with an apostrophe, control characters are escapes, and a text of
    more than 32 000 characters is cut.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    empty = RunRecord("", "", interviews=[_nobody()])
    writer.writerow(next(_rows(empty)))
    writer.writerows([_cell(value) for value in row.values()] for row in _rows(record))
    return out.getvalue()
