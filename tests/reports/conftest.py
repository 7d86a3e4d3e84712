"""Builders of run records for the report tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made import made, several

from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from tests.reports.browser import load


def interval(estimate: float, low: float, high: float, method: str = "design-based") -> dict[str, Any]:
    """An accuracy interval as a record holds it."""
    return {"estimate": estimate, "low": low, "high": high, "confidence": 0.95, "method": method}


def interview(**changes: Any) -> EvaluationRecord:
    """An interview that went well, with changes."""
    values: dict[str, Any] = {
        "name": "mmmu",
        "nodeid": "tests/test_eval.py::test_mmmu[aeval:mmmu]",
        "subject": {"name": "vlm-2b-step-4000", "checkpoint": "c" * 16},
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
    return made(EvaluationRecord, **{**values, **changes})


def gate(
    outcome: str = "PASS",
    *,
    name: str = "test_promotion",
    of: str = "mmmu",
    notes: tuple[str, ...] = (),
    condition: Mapping[str, Any] | None = None,
) -> GateRecord:
    """A gate with its verdict."""
    verdict = {
        "outcome": outcome,
        "metric": "accuracy",
        "requirement": ">= .55",
        "interval": interval(0.612, 0.551, 0.671),
        "confidence": 0.95,
        "asked": 96,
        "size": 640,
        "notes": list(notes),
        "condition": condition or {"metric": "accuracy", "kind": "at_least", "value": 0.55},
    }
    return made(GateRecord, name, f"tests/test_eval.py::{name}", of, verdict, "tests/test_eval.py", 12)


def row(subject: str, estimate: float, place: int) -> dict[str, Any]:
    """A subject's quantity in a study."""
    rank = {"mean": float(place), "best": place, "worst": place}
    bounds = {"low": estimate - 0.1, "high": estimate + 0.1, "confidence": 0.95, "method": "model-based"}
    return {"subject": subject, "estimate": estimate, **bounds, "error": 0.06, "rank": rank}


def study(names: tuple[str, ...] = ("ant", "bee", "cat"), **changes: Any) -> EvaluationRecord:
    """A panel that went well, with changes; the last is the best."""
    n = len(names)
    judge = {"weight": 0.3, "scale": 1.0, "bias": -0.1, "noise": 0.5, "self_excess": 0.2, "flags": []}
    scores = [3.0 + 0.4 * i for i in range(n)]
    account = {
        "models": [{"name": name} for name in names],
        "settings": {"mode": "reliability", "rounds": 9},
        "scores": scores,
        "topics": {"math": {"tasks": 4, "scores": scores, "errors": [0.2] * n}},
        "judgments": {"mean": [scores] * n},
        "judges": [{**judge, "flags": ["constant"] if i == 0 else []} for i in range(n)],
        "changes": [0.0, 0.0, 0.2, 0.1],
        "truth": [
            {
                "evaluation": "sums",
                "accuracies": dict.fromkeys(names, 0.5),
                "scores": {"spearman": 0.8, "kendall": 0.6},
                "judges": [{"spearman": None, "kendall": None}] * n,
            }
        ],
    }
    given: dict[str, Any] = {
        "name": "council",
        "nodeid": "adaptive-eval.toml::council",
        "kind": "peers",
        "candidate": names[-1],
        "members": [{"name": name, "checkpoint": "c" * 64} for name in names],
        "metrics": {"score": [row(name, scores[i], n - i) for i, name in enumerate(names)]},
        "asked": 8,
        "size": 9,
        "account": account,
        "opinion": True,
        "costs": {"total": {"calls": 99, "prompt_tokens": 5, "completion_tokens": 6}, "loads": dict.fromkeys(names, 1)},
        "notes": ["scores are a panel's opinion"],
    }
    return several(**{**given, **changes})


def network(**changes: Any) -> EvaluationRecord:
    """A network of two nodes that went well and a third that stayed closed, with changes."""

    def found(subject: str, estimate: float) -> dict[str, Any]:
        return {"subject": subject, **interval(estimate, estimate - 0.1, estimate + 0.1, "by levels")}

    given: dict[str, Any] = {
        "name": "web",
        "nodeid": "adaptive-eval.toml::web",
        "kind": "network",
        "candidate": "pupil",
        "members": [{"name": "pupil", "checkpoint": "p" * 64, "decoding": {"temperature": 0.5}}, {"name": "judge"}],
        "metrics": {
            "energy": [found("pupil", 0.4)],
            "auc": [found("first", 1.7), found("second", 2.5)],
            "last_level": [found("first", 2.0), found("second", 3.0)],
        },
        "asked": 2,
        "size": 3,
        "unit": "nodes",
    }
    return several(**{**given, **changes})


def record(interviews: list[EvaluationRecord] | None = None, gates: list[GateRecord] | None = None) -> RunRecord:
    """A run."""
    return RunRecord(
        run="20310506T070809000Z-00000000",
        started="2031-05-06T07:08:09Z",
        seconds=90.5,
        evaluations=[interview()] if interviews is None else interviews,
        gates=[gate()] if gates is None else gates,
    )


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """The builders: interval, interview, gate, study, network and record."""
    return SimpleNamespace(
        interval=interval, interview=interview, gate=gate, study=study, network=network, record=record
    )


@pytest.fixture
def in_chromium(tmp_path: Path) -> Callable[[str], str]:
    """What a browser makes of a page in ``page.html``."""
    return partial(load, folder=tmp_path)
