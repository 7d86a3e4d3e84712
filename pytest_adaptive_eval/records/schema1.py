"""Conversion of records of schema 1, which were written up to version 0.9, to the present schema.

Their JSON has the same names. Schema 1 left values open that the present one types: verdicts without an outcome,
intervals without bounds, estimates of an interview without any score, and null in place of an empty text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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
    lists = {"interviews": _interview, "studies": _study, "gates": _gate}
    return {
        **data,
        "schema_version": 2,
        **({"shard": _SHARD} if shard is True else {}),
        **{
            name: [convert(entry) if isinstance(entry, Mapping) else entry for entry in data[name]]
            for name, convert in lists.items()
            if isinstance(data.get(name), list)
        },
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not null, so that texts have their default."""
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


def _study(data: Mapping[str, Any]) -> dict[str, Any]:
    study = dict(data)
    if "judgments" in _mapping(study.get("account")):
        study["opinion"] = True
    if isinstance(study.get("members"), list):
        study["members"] = [_texts(member) if isinstance(member, Mapping) else member for member in study["members"]]
    return study


def _gate(data: Mapping[str, Any]) -> dict[str, Any]:
    verdict = _intervals(_texts(_mapping(data.get("verdict"))), "interval")
    if isinstance(verdict.get("outcome"), str | None) and verdict.get("outcome") not in _OUTCOMES:
        verdict["outcome"] = Outcome.ERROR.value
    if not verdict.get("condition"):
        verdict.pop("condition", None)
    if not verdict.get("sentence"):
        verdict.pop("sentence", None)
    return {**data, "verdict": verdict}
