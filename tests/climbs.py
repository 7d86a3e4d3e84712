"""Records of climbs for tests: what an interview keeps that climbed the levels of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from made import made

from pytest_adaptive_eval.ladder.result import Ladder
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord


def bare(**changes: Any) -> EvaluationRecord:
    """An interview of a bank that measured nothing, with changes."""
    values: dict[str, Any] = {
        "name": "text",
        "nodeid": "adaptive-eval.toml::text",
        "subject": {"name": "one", "checkpoint": "c1"},
        "bank": {"name": "text", "content_hash": "b1", "scale": ""},
        "policy": {},
        "asked": 1,
        "scored": 1,
        "size": 10,
        "statuses": {"ok": 1},
        "stop": "LEVEL",
        "stop_sentence": "a level was failed",
        "theta": None,
        "standard_error": None,
        "accuracy": None,
        "accuracy_model": None,
    }
    return made(EvaluationRecord, **{**values, **changes})


def climb_of(scores: Sequence[Sequence[float]], cap: int, *, seed: int = 0, **changes: Any) -> EvaluationRecord:
    """A climb with these scores by level, as its interview records it."""
    ladder = Ladder(tuple(np.array(level, dtype=float) for level in scores), cap)
    queries = len(scores[0])
    levels = {
        "queries": queries,
        "cap": cap,
        "asked": [len(level) for level in ladder.scores],
        "accuracy": [None if np.isnan(share) else share for share in ladder.accuracies.tolist()],
        "last_level": ladder.last_level,
        "auc": ladder.interval().to_json(),
    }
    about = {"levels": cap, "queries": queries, "seed": seed}
    values: dict[str, Any] = {
        "name": "addition",
        "bank": {"name": "addition", "content_hash": f"b{seed}", "scale": "", "task": about},
        "policy": {"selector": "climb", "settings": {"queries": queries, "stop_at": 0.0, "settle": False}},
        "levels": levels,
    }
    return bare(**{**values, **changes})


def climb(right: Sequence[int], *, queries: int = 10, cap: int = 4, **changes: Any) -> EvaluationRecord:
    """A climb with so many right answers by level."""
    return climb_of([[1.0] * n + [0.0] * (queries - n) for n in right], cap, **changes)


def run(day: int, *interviews: EvaluationRecord) -> RunRecord:
    """The run of a day."""
    return RunRecord(
        f"203105{day:02d}T000000000Z-{day:08x}",
        f"2031-05-{day:02d}T00:00:00+00:00",
        exit_status=0,
        evaluations=list(interviews),
    )
