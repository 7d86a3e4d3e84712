"""Summary of a cell from its record, for the table and the page of a sweep."""

from __future__ import annotations

from typing import Any

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import QuantityRecord, Spent, plain
from pytest_adaptive_eval.records.quantities import of_subject
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord


def summary_of(record: RunRecord) -> dict[str, Any]:
    """Return gates, interviews and the reason of void ones, as fields of a `CellEnd`.

    An interview has the keys name, measure (ability, accuracy, auc or another metric), estimate and error (None where
    there is none), low and high, accuracy, asked, size, calls, tokens, seconds, notes and error_text.
    """
    evaluations = [_interview(e) if e.is_interview else _quantity(e) for e in record.evaluations]
    void = [f"{entry['name']}: {entry['error_text']}" for entry in evaluations if entry["error_text"]]
    gates = [
        {
            "name": gate.name,
            "evaluation": gate.interview,
            "outcome": gate.outcome.value,
            "holds": gate.holds,
            "sentence": gate.verdict.sentence[:300],
        }
        for gate in record.gates
    ]
    return plain({"gates": gates, "interviews": evaluations, "reason": "; ".join(void)[:500]})  # type: ignore[no-any-return]


def _interview(interview: EvaluationRecord) -> dict[str, Any]:
    interval = interview.projection
    accuracy = interval.estimate if interval else None
    measure, estimate, error = "accuracy", accuracy, interview.accuracy_error
    if interview.theta and len(interview.theta) == 1:
        measure, estimate, interval = "ability", interview.theta[0], None
        error = interview.standard_error[0] if interview.standard_error else None
    elif interview.levels and (area := interview.levels.auc):
        measure, interval, estimate, error = "auc", area, area.estimate, None
    bounds = {"measure": measure, "estimate": estimate, "error": error, **_bounds(interval), "accuracy": accuracy}
    return _entry(interview, bounds, interview.bank.scale, interview.costs.subject)


def _quantity(evaluation: EvaluationRecord) -> dict[str, Any]:
    metric, row = next(
        ((quantity.metric, row) for quantity, row in of_subject(evaluation)),
        (evaluation.kind, QuantityRecord(evaluation.subject.name)),
    )
    estimate = {"estimate": row.estimate, "error": row.error, **_bounds(row), "accuracy": None}
    return _entry(evaluation, {"measure": metric, **estimate}, "", evaluation.costs.total)


def _bounds(row: Interval | QuantityRecord | None) -> dict[str, float | None]:
    return {"low": row.low if row else None, "high": row.high if row else None}


def _entry(record: EvaluationRecord, estimate: dict[str, Any], scale: str, spent: Spent | None) -> dict[str, Any]:
    """Return the summary of an evaluation; calls, tokens and FLOPs are 0 where they are not known."""
    spent = spent or Spent()
    return {
        "name": record.name,
        **estimate,
        "asked": record.asked,
        "size": record.size,
        "scale": scale,
        "seconds": record.seconds,
        "error_text": record.error,
        "calls": spent.calls,
        "tokens": spent.tokens,
        "flops": spent.flops,
    }
