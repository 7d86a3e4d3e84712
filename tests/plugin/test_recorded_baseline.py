"""A run's record as the baseline of another: from its file, and from a tracker that keeps it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.records.baseline import read_baseline
from pytest_adaptive_eval.records.runs import read_run


def reversed_keys(value: Any) -> Any:
    """The same JSON value, each object from its last key to its first."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(part) for part in value] if isinstance(value, list) else value


def test_answers_of_a_record_are_told_by_a_hash_whatever_the_order_of_its_keys(
    project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.run()
    (written,) = (
        path for path in Path(project.path, ".adaptive-eval").rglob("*.json") if "interviews" in path.read_text()
    )
    turned = Path(project.path, "turned.json")
    turned.write_text(json.dumps(reversed_keys(json.loads(written.read_text()))))
    bank = read_bank(project.path / "toy.jsonl")
    monkeypatch.setattr("pytest_adaptive_eval.records.baseline.fetch_run", lambda spec: read_run(written))
    first, second, tracked = (
        read_baseline(name, [project.path], bank, "toy") for name in (str(written), "turned.json", "mlflow:r1")
    )
    assert first.source["hash"] == second.source["hash"] == tracked.source["hash"]
    assert len(first.source["hash"]) == 16
    assert (second.source["path"], tracked.source["path"]) == ("turned.json", "mlflow:r1")
    np.testing.assert_array_equal(first.baseline.scores, tracked.baseline.scores)
