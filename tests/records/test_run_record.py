"""Records: plain JSON, nothing lost, nothing made up."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made import made

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import PolicyRecord, plain
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord, RunRecord

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_plain_is_strict_json_that_survives_a_round_trip(value):
    data = plain(value)
    text = json.dumps(data, allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert json.loads(text) == data


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("inf"), None),
        ("\ud800x", "?x"),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (np.array([1.0, np.nan]), [1.0, None]),
        ((1, "é"), [1, "é"]),
        ({1: {2}}, {"1": [2]}),
    ],
)
def test_plain_by_example(value, expected):
    assert plain(value) == expected


def run_record():
    asked = Administration(1, "q1", "abc", theta_before=[0.0], theta_after=[0.5], score=0.5, extra={"later": [1]})
    interview = made(
        EvaluationRecord,
        "e", "t.py::t", {"name": "s"}, {"name": "b"}, {"seed": 1}, 1, 1, 9, {"ok": 1}, "BUDGET", "the budget is spent",
        [0.5], [0.9], None, None, administrations=[asked],
    )  # fmt: skip
    gate = made(GateRecord, "g", "t.py::g", "e", {"outcome": "PASS"}, "t.py", 3)
    return RunRecord("r", "2026-01-01", evaluations=[interview], gates=[gate], extra={"unknown": {"x": 1}})


def test_a_run_reads_back_with_what_it_does_not_know():
    data = json.loads(json.dumps(run_record().to_json()))
    back = RunRecord.from_json(data)
    assert back.to_json() == data
    assert back.extra == {"unknown": {"x": 1}}
    assert back.interviews[0].administrations[0].extra == {"later": [1]}
    assert back.gates[0].outcome.value == "PASS"


@pytest.mark.parametrize(
    ("policy", "sure"),
    [
        ({"selector": "variance", "floor": 0.0}, False),
        ({"selector": "spread", "floor": 0.05}, False),
        ({"selector": "spread", "floor": 0.5}, True),
        ({"selector": "random", "floor": 0.0}, True),
        ({}, True),
    ],
)
def test_draws_that_left_items_no_sure_chance_have_no_propensities(policy, sure):
    interview = run_record().interviews[0]
    interview.policy = made(PolicyRecord, **policy)
    interview.administrations[0].propensity = 0.2
    assert interview.draws().propensities.tolist() == pytest.approx([0.2 if sure else np.nan], nan_ok=True)


def test_a_score_that_is_missing_stays_missing():
    entry = Administration(1, "q1", "abc", status="timeout")
    assert Administration.from_json(entry.to_json()).score is None


@pytest.mark.parametrize("version", [0, 2, "3", None, True])
def test_another_schema_is_refused(version):
    with pytest.raises(UsageError, match="schema_version"):
        RunRecord.from_json({**run_record().to_json(), "schema_version": version})


@pytest.mark.parametrize(
    ("outcomes", "status", "promoted"),
    [
        (["PASS"], 0, True),
        (["PASS", "INCONCLUSIVE"], 0, True),  # let through, or the run would not have passed
        (["PASS"], 1, False),
        (["PASS"], None, False),
        (["INCONCLUSIVE"], 0, False),
        (["PASS", "FAIL"], 0, False),
        (["PASS", "ERROR"], 0, False),
        (["PASS", "notice"], 0, False),
        ([], 0, False),
    ],
)
def test_only_a_run_whose_every_gate_could_judge_promotes(
    outcomes: list[str], status: int | None, promoted: bool
) -> None:
    gates = [
        made(GateRecord, "g", "g", "", {"outcome": "INCONCLUSIVE", "notice": True} if o == "notice" else {"outcome": o})
        for o in outcomes
    ]
    assert RunRecord("r", "s", exit_status=status, gates=gates).promote is promoted


def test_numbers_of_numpy_are_numbers_and_others_are_named() -> None:
    interval = Interval(np.float64(0.5), np.float64(0.25), 1.0, 0.9, "m")
    written = GateRecord("g", "t.py::g", "e", Verdict(Outcome.PASS, interval=interval)).to_json()
    assert GateRecord.from_json(written).to_json()["verdict"]["interval"]["low"] == 0.25
    written["verdict"]["interval"]["low"] = "a"
    with pytest.raises(TypeError, match=r"verdict\.interval\.low"):
        GateRecord.from_json(written)


@pytest.mark.parametrize(
    ("repeated", "same", "difference", "warned"),
    [(20, 20, 0.0, False), (20, 8, 3.0, True), (20, 15, 1.5, False), (4, 0, 2.0, False), (0, 0, 0.0, False)],
)
def test_a_judge_that_disagrees_with_itself_is_a_warning(repeated, same, difference, warned):
    counts = {"answers": 40, "repeated": repeated, "same": same, "difference": difference}
    interview = made(
        EvaluationRecord,
        **{"name": "essays", "nodeid": "t::essays", "subject": {"name": "s"}, "asked": 40, "size": 40},
        judge="sol",
        judged=counts,
        stop="BUDGET",
    )
    record = RunRecord("r", "2031-01-01T00:00:00+00:00", evaluations=[interview])
    record.warn()
    found = [text for text in record.warnings if "disagrees with itself" in text]
    assert bool(found) is warned
    if warned:
        assert "essays: the judge sol disagrees with itself: 12 of 20 answers got another score" in found[0]
