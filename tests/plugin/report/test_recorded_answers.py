"""What a run records of its answers, and the record as the baseline of another run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.records.baseline import read_baseline
from pytest_adaptive_eval.records.run_files import read_run


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
        path for path in Path(project.path, ".adaptive-eval").rglob("*.json") if "administrations" in path.read_text()
    )
    turned = Path(project.path, "turned.json")
    turned.write_text(json.dumps(reversed_keys(json.loads(written.read_text()))))
    bank = read_bank(project.path / "toy.jsonl")
    monkeypatch.setattr("pytest_adaptive_eval.extensions.exports.trackers.fetch_run", lambda _: read_run(written))
    first, second, tracked = (
        read_baseline(name, [project.path], bank, "toy") for name in (str(written), "turned.json", "mlflow:r1")
    )
    assert first.source.hash == second.source.hash == tracked.source.hash
    assert len(first.source.hash) == 16
    assert (second.source.path, tracked.source.path) == ("turned.json", "mlflow:r1")
    np.testing.assert_array_equal(first.baseline.scores, tracked.baseline.scores)


def test_each_answer_of_a_calibrated_bank_has_the_difficulty_of_its_item(lab: Any) -> None:
    bank = read_bank(lab.calibrated())
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.bank", budget=5, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    lab.run()
    difficulties = dict(zip(map(str, bank.ids), bank.difficulty_of(np.arange(len(bank))).tolist(), strict=True))
    asked = lab.record["interviews"][0]["administrations"]
    assert len(asked) == 5
    expected = {a["item"]: difficulties[a["item"]] for a in asked}
    assert {a["item"]: a["difficulty"] for a in asked} == pytest.approx(expected)
