"""Builders of run records for the report tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_adaptive_eval.core.record import GateRecord, InterviewRecord, RunRecord


def interval(estimate: float, low: float, high: float, method: str = "design-based") -> dict[str, Any]:
    """An accuracy interval as a record holds it."""
    return {"estimate": estimate, "low": low, "high": high, "confidence": 0.95, "method": method}


def interview(**changes: Any) -> InterviewRecord:
    """An interview that went well, with changes."""
    values: dict[str, Any] = {
        "name": "mmmu",
        "nodeid": "tests/test_eval.py::test_mmmu[aeval:mmmu]",
        "subject": {"name": "vlm-2b-step-4000", "checkpoint": "c" * 16, "decoding_hash": "d" * 16},
        "bank": {"name": "mmmu", "content_hash": "b" * 16, "scale": "5" * 12, "size": 640, "calibrated": True},
        "policy": {"selector": "spread", "floor": 0.25, "budget": "15%", "seed": 7},
        "asked": 96,
        "scored": 96,
        "size": 640,
        "statuses": {"ok": 96},
        "stop": "BUDGET",
        "stop_sentence": "the budget is spent",
        "theta": [1.234],
        "standard_error": [0.188],
        "accuracy": interval(0.612, 0.551, 0.671),
        "accuracy_model": interval(0.605, 0.58, 0.63, "model-based"),
        "seconds": 83.25049,
    }
    return InterviewRecord(**{**values, **changes})


def gate(
    outcome: str = "PASS", *, name: str = "test_promotion", of: str = "mmmu", notes: tuple[str, ...] = ()
) -> GateRecord:
    """A gate with its verdict."""
    relation = {"PASS": ">=", "FAIL": "<", "INCONCLUSIVE": "against", "ERROR": "for"}[outcome]
    verdict = {
        "outcome": outcome,
        "metric": "accuracy",
        "requirement": ">= .55",
        "interval": interval(0.612, 0.551, 0.671),
        "confidence": 0.95,
        "asked": 96,
        "size": 640,
        "notes": list(notes),
        "sentence": f"{outcome} accuracy .612 [.551, .671] {relation} .55 required, 95 %, 96 of 640 items, "
        "design-based" + "".join(f"; {note}" for note in notes),
    }
    return GateRecord(name, f"tests/test_eval.py::{name}", of, verdict, "tests/test_eval.py", 12)


def record(interviews: list[InterviewRecord] | None = None, gates: list[GateRecord] | None = None) -> RunRecord:
    """A run."""
    return RunRecord(
        run="20310506T070809000Z-00000000",
        started="2031-05-06T07:08:09Z",
        seconds=90.5,
        interviews=[interview()] if interviews is None else interviews,
        gates=[gate()] if gates is None else gates,
    )


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """The builders: interval, interview, gate and record."""
    return SimpleNamespace(interval=interval, interview=interview, gate=gate, record=record)
