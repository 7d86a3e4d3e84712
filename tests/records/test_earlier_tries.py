"""A gate that passes after other outcomes within a day says so."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from made import changed, made

from pytest_adaptive_eval.records.history import earlier_tries
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord

NOW = datetime.fromisoformat("2031-05-06T07:08:09+00:00")


def run(outcome: str, hours: float, checkpoint: str = "hash") -> RunRecord:
    """A run of one gate that began some hours ago."""
    subject = {"name": "m", "checkpoint": checkpoint}
    interview = made(EvaluationRecord, "text", "n", subject, {}, {"seed": 3}, 20, 20, 50, {}, "BUDGET", "")
    gate = made(GateRecord, "test_gate", "test_gate", "text", {"outcome": outcome, "sentence": ""})
    started = (NOW - timedelta(hours=hours)).isoformat()
    return RunRecord(f"run {hours}", started, evaluations=[interview], gates=[gate])


@pytest.mark.parametrize(
    ("earlier", "named"),
    [
        (run("FAIL", 0.5), True),
        (run("FAIL", 2), True),
        (run("INCONCLUSIVE", 23.9), True),
        (run("FAIL", 24.1), False),
        (run("PASS", 2), False),
        (run("FAIL", 2, checkpoint="other"), False),
        (run("FAIL", -1), False),
    ],
)
def test_another_outcome_of_the_last_day_is_named(earlier: RunRecord, named: bool) -> None:
    sentences = earlier_tries(run("PASS", 0), [earlier])
    assert len(sentences) == named
    if named:
        outcome = earlier.gates[0].outcome.value
        expected = (
            f"test_gate passed after 1 other run of it for this checkpoint within a day: {outcome} (seed 3, 20 of"
        )
        assert sentences[0].startswith(expected)


def test_the_run_that_became_the_baseline_is_no_earlier_try() -> None:
    first = run("INCONCLUSIVE", 2)
    gate = first.gates[0]
    gate.verdict = changed(gate.verdict, notice=True)
    assert earlier_tries(run("PASS", 0), [first]) == []


def test_a_gate_that_does_not_pass_names_none() -> None:
    assert earlier_tries(run("FAIL", 0), [run("PASS", 1)]) == []
