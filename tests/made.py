"""Records for tests, from plain data that names only what matters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pytest_adaptive_eval.records.parts import Part, converted, plain
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord

T = TypeVar("T", bound=Part)
P = TypeVar("P")
#: Fields of an interview in the order in which tests give them.
INTERVIEW = (
    "name", "nodeid", "subject", "bank", "policy", "asked", "scored", "size", "statuses", "stop", "stop_sentence",
    "theta", "standard_error", "accuracy", "accuracy_model",
)  # fmt: skip


def made(kind: type[T], /, *values: Any, **named: Any) -> T:
    """A record or a part of one, whose parts may be dicts; fields in order, then by name."""
    fields = INTERVIEW if kind is EvaluationRecord else kind.__struct_fields__
    data = {**dict(zip(fields, values, strict=False)), **named}
    if kind is EvaluationRecord:
        data |= {name: _interval(data[name]) for name in ("accuracy", "accuracy_model") if name in data}
        data["categories"] = [_category(row) for row in data.get("categories", ())]
    record: T = converted(kind, data)
    return record


def several(name: str, nodeid: str, kind: str, candidate: str, members: Any = (), **named: Any) -> EvaluationRecord:
    """An evaluation of several models, of which one is the candidate."""
    subject = next((member for member in members if member["name"] == candidate), {"name": candidate})
    data = {"asked": 0, "size": 0, "unit": "rounds", "members": list(members), **named}
    return made(EvaluationRecord, name, nodeid, subject, kind=kind, **data)


def changed(part: P, /, **fields: Any) -> P:
    """A part of a record with other fields, from plain data."""
    data = {**plain(part), **fields}
    if isinstance(part, Part):
        return made(type(part), **data)
    same: P = converted(type(part), data)
    return same


def recorded(**interview: Any) -> EvaluationRecord:
    """An interview as a record of it is read."""
    run = {"run": "r", "started": "2031-05-06T07:08:09+00:00", "schema_version": 3, "interviews": [interview]}
    return RunRecord.from_json(run).interviews[0]


def _interval(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    estimate = value["estimate"]
    return {"low": estimate, "high": estimate, "confidence": 0.95, "method": "", **value}


def _category(row: Any) -> Any:
    if not isinstance(row, Mapping):
        return row
    return {"size": 1, "asked": 1, "scored": 1, "standard_error": None, **row, "accuracy": _interval(row["accuracy"])}
