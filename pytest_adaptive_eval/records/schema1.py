"""Conversion of records of schema 1, which were written up to version 0.9, to the present schema.

Schema 1 kept interviews apart from evaluations of several models, which had the name of a candidate. It left values
open that the present one types: verdicts without an outcome, intervals without bounds, estimates of an interview
without any score, and null in place of an empty text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome

_OUTCOMES = frozenset(Outcome)
_ESTIMATES = ("theta", "standard_error", "accuracy", "accuracy_model", "accuracy_conformal", "accuracy_error", "levels")
_ROW = ("estimate", "low", "high", "confidence", "error", "guess")  #: Numbers of a quantity's row.
_CONFIDENCE = 0.95  #: One-sided confidence where the record names none.
_SHARD = "unnamed"  #: Shard of a merged record, which said only that there was one.


def upgraded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a run record of schema 1 as the present schema has it; other types than its own stay."""
    shard = data.get("shard")
    found = {name: _each(data.get(name, []), convert) for name, convert in _LISTS.items()}
    interviews, several = found["interviews"], found["studies"]
    both = isinstance(interviews, list) and isinstance(several, list)
    return {
        **{name: value for name, value in data.items() if name not in _LISTS},
        "schema_version": 2,
        **({"shard": _SHARD} if shard is True else {}),
        "interviews": [*interviews, *several] if both else interviews if several == [] else several,
        "gates": found["gates"],
    }


def _each(entries: Any, convert: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Any:
    if not isinstance(entries, list):
        return entries
    return [convert(entry) if isinstance(entry, Mapping) else entry for entry in entries]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null; texts then have their default."""
    return {name: value for name, value in data.items() if value is not None}


def _interval(value: object) -> object:
    """Return an interval with all its fields; None without an estimate and its bounds."""
    if not isinstance(value, Mapping):
        return value
    if any(value.get(name) is None for name in ("estimate", "low", "high")):
        return None
    return {**value, "confidence": value.get("confidence") or _CONFIDENCE, "method": value.get("method") or ""}


def _intervals(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {**data, **{name: _interval(data[name]) for name in names if name in data}}


def _interview(data: Mapping[str, Any]) -> dict[str, Any]:
    interview = _intervals(data, "accuracy", "accuracy_model", "accuracy_conformal")
    digest = hashlib.sha256(json.dumps(dict(data), sort_keys=True).encode()).hexdigest()
    interview["schema1_hash"] = digest[:16]
    interview["kind"] = "ladder" if _mapping(data.get("bank")).get("task") else "bank"
    if interview.get("scored") == 0:  # they repeat the prior
        interview |= dict.fromkeys(_ESTIMATES)
    for name in ("subject", "bank", "policy"):
        if isinstance(interview.get(name), Mapping):
            interview[name] = _texts(interview[name])
    if isinstance(interview.get("levels"), Mapping):
        interview["levels"] = _intervals(interview["levels"], "auc", "half")
    if isinstance(interview.get("categories"), list):
        interview["categories"] = [
            _category(row) if isinstance(row, Mapping) else row for row in interview["categories"]
        ]
    if interview.pop("prompt", None):  # a hash of the test's source, which does not say what was asked
        interview["administrations"] = [{**entry, "request": "unknown"} for entry in interview["administrations"]]
    return interview


def _category(row: Mapping[str, Any]) -> dict[str, Any]:
    counts = dict.fromkeys(("size", "asked", "scored"), 0)
    scored = {} if row.get("scored") != 0 else {"accuracy": None, "standard_error": None}
    return {**counts, **_intervals(row, "accuracy"), **scored, "category": str(row.get("category", ""))}


def _several(data: Mapping[str, Any]) -> dict[str, Any]:
    evaluation = {"asked": 0, "size": 0, "unit": "rounds", **data}
    if "judgments" in _mapping(evaluation.get("account")):
        evaluation["opinion"] = True
    if isinstance(evaluation.get("members"), list):
        evaluation["members"] = _each(evaluation["members"], _texts)
        named = [member for member in map(_mapping, evaluation["members"]) if member.get("name") == data["candidate"]]
    else:
        named = []
    candidate = evaluation.pop("candidate")
    return {**evaluation, "subject": next(iter(named), {"name": candidate})}


def _gate(data: Mapping[str, Any]) -> dict[str, Any]:
    verdict = _intervals(_texts(_mapping(data.get("verdict"))), "interval")
    if isinstance(verdict.get("outcome"), str | None) and verdict.get("outcome") not in _OUTCOMES:
        verdict["outcome"] = Outcome.ERROR.value
    if not verdict.get("condition"):
        verdict.pop("condition", None)
    if not verdict.get("sentence"):
        verdict.pop("sentence", None)
    return {**data, "verdict": verdict}


_LISTS = {"interviews": _interview, "studies": _several, "gates": _gate}
