"""Summary of a cell from its record, for the table and the page of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord, StudyRecord, plain


def summary_of(record: RunRecord) -> dict[str, Any]:
    """Return gates, interviews and the reason of void ones, as fields of a `CellEnd`.

    An interview has the keys name, measure (ability, accuracy, auc or a study's metric), estimate and error (None where
    there is none), low and high, accuracy, asked, size, calls, tokens, seconds, notes and error_text.
    """
    evaluations = [*map(_interview, record.interviews), *map(_study, record.studies)]
    void = [f"{entry['name']}: {entry['error_text']}" for entry in evaluations if entry["error_text"]]
    gates = [
        {
            "name": gate.name,
            "evaluation": gate.interview,
            "outcome": str(gate.verdict.get("outcome", "ERROR")),
            "holds": gate.holds,
            "sentence": str(gate.verdict.get("sentence", ""))[:300],
        }
        for gate in record.gates
    ]
    return plain({"gates": gates, "interviews": evaluations, "reason": "; ".join(void)[:500]})  # type: ignore[no-any-return]


def _interview(interview: InterviewRecord) -> dict[str, Any]:
    interval: Mapping[str, Any] = interview.accuracy or interview.accuracy_conformal or interview.accuracy_model or {}
    accuracy = interval.get("estimate")
    measure, estimate, error = "accuracy", accuracy, interview.accuracy_error
    if interview.theta and len(interview.theta) == 1:
        measure, estimate, interval = "ability", interview.theta[0], {}
        error = interview.standard_error[0] if interview.standard_error else None
    elif interview.levels and isinstance(area := interview.levels.get("auc"), Mapping):
        measure, interval, estimate, error = "auc", area, area.get("estimate"), None
    bounds = {"measure": measure, "estimate": estimate, "error": error, **_bounds(interval), "accuracy": accuracy}
    return _entry(interview, bounds, str(interview.bank.get("scale", "")), interview.costs.get("subject"))


def _study(study: StudyRecord) -> dict[str, Any]:
    quantity, row = next(
        ((quantity, row) for quantity, subject, row in study.quantities() if subject == study.candidate), (None, {})
    )
    estimate = {"estimate": row.get("estimate"), "error": row.get("error"), **_bounds(row), "accuracy": None}
    return _entry(
        study, {"measure": quantity.metric if quantity else study.kind, **estimate}, "", study.costs.get("total")
    )


def _bounds(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in ("low", "high")}


def _entry(
    record: InterviewRecord | StudyRecord, estimate: Mapping[str, Any], scale: str, costs: Any
) -> dict[str, Any]:
    """Return the summary of an interview or study; calls, tokens and FLOPs are 0 where they are not known."""

    def known(name: str) -> float:
        value = costs.get(name) if isinstance(costs, Mapping) else None
        return value if isinstance(value, int | float) else 0

    return {
        "name": record.name,
        **estimate,
        "asked": record.asked,
        "size": record.size,
        "scale": scale,
        "seconds": record.seconds,
        "error_text": record.error,
        "calls": known("calls"),
        "tokens": known("prompt_tokens") + known("completion_tokens"),
        "flops": known("flops"),
    }
