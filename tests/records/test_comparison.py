"""Comparing two interviews: what compares, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from climbs import climb
from made import made
from scipy.stats import norm

from pytest_adaptive_eval.records.comparison import Difference, compare
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord

DECODING = {"temperature": 0}


def interview(scores: dict[str, float | None] | None = None, **changes: Any) -> EvaluationRecord:
    values: dict[str, Any] = {
        "name": "text",
        "nodeid": "t",
        "subject": {"name": "old", "decoding": DECODING},
        "bank": {"content_hash": "b", "scale": "s"},
        "policy": {},
        "asked": 2,
        "scored": 2,
        "size": 10,
        "statuses": {"ok": 2},
        "stop": "BUDGET",
        "stop_sentence": "",
        "theta": [1.0],
        "standard_error": [0.3],
        "accuracy": {"estimate": 0.8, "low": 0.7, "high": 0.9},
        "accuracy_error": 0.03,
        "accuracy_model": None,
        "categories": [{"category": "sums", "accuracy": {"estimate": 0.5}, "standard_error": 0.1}],
        "administrations": [Administration(n, i, "h", score=s) for n, (i, s) in enumerate((scores or {}).items(), 1)],
    }
    return made(EvaluationRecord, **{**values, **changes})


def test_changes_with_their_errors_and_the_items_that_changed() -> None:
    old = interview({"a": 1.0, "b": 0.0, "c": 1.0, "d": None, "e": 1.0})
    new = interview(
        {"c": 0.5, "b": 1.0, "a": 1.0, "d": 1.0, "z": 0.0},
        subject={"name": "new", "decoding": DECODING},
        theta=[0.4],
        standard_error=[0.4],
        accuracy={"estimate": 0.7},
        accuracy_error=0.04,
        categories=[
            {"category": "sums", "accuracy": {"estimate": 0.25}, "standard_error": 0.1},
            {"category": "more", "accuracy": {"estimate": 0.25}, "standard_error": 0.1},
        ],
    )
    found = compare(old, new)
    assert (found.refused, found.subjects) == ("", ("old", "new"))
    assert found.ability is not None
    assert found.accuracy is not None
    assert found.ability.change == pytest.approx(-0.6)
    assert found.ability.standard_error == pytest.approx(0.5)
    assert found.accuracy.standard_error == pytest.approx(0.05)
    assert found.accuracy.interval() == pytest.approx((-0.1 - norm.ppf(0.975) * 0.05, -0.1 + norm.ppf(0.975) * 0.05))
    assert found.categories is not None
    assert list(found.categories) == ["sums"]
    assert (found.common, found.lost, found.gained) == (3, ("c",), ("b",))
    data = found.to_json()
    assert data["accuracy"]["low"] < data["accuracy"]["change"] < data["accuracy"]["high"]
    assert data["categories"]["sums"]["before"] == 0.5


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"bank": {"content_hash": "b2", "scale": "s"}}, "the bank changed between the two (hash b, then b2)"),
        (
            {"subject": {"name": "new", "decoding": {"temperature": 1}}},
            "the decoding settings changed between the two (hash ",
        ),
        ({"error": "no answers"}, "the second evaluation is void: no answers"),
        ({"stop": ""}, "the second evaluation is void: it did not finish"),
    ],
)
def test_what_was_asked_in_another_way_does_not_compare(changes: dict[str, Any], why: str) -> None:
    found = compare(interview(), interview(**changes))
    assert found.refused.startswith(why)
    assert found.ability is found.accuracy is None


def test_interviews_that_asked_common_items_otherwise_do_not_compare() -> None:
    before, after = (interview({"a": 1.0, "b": 0.0, "c": 1.0}) for _ in range(2))
    after.administrations[0].request = "another"
    found = compare(before, after)
    assert found.refused.startswith("the test asks 1 of 3 common items otherwise, such as ")
    assert found.refused.endswith(": the prompts changed between the two")


def test_abilities_on_two_scales_or_of_several_dimensions_do_not_compare() -> None:
    assert compare(interview(), interview(bank={"content_hash": "b", "scale": "s2"})).ability is None
    assert compare(interview(theta=[1.0, 2.0]), interview(theta=[1.0, 2.0])).ability is None
    without = compare(interview(), interview(accuracy=None, accuracy_error=None))
    assert without.accuracy is None
    assert without.ability is not None


def test_parts_of_ability_compare_one_by_one() -> None:
    bank = {"content_hash": "b", "scale": "s", "parts": ["base", "cross"]}
    old = interview(bank=bank, theta=[0.5, -0.5], standard_error=[0.3, 0.6])
    new = interview(bank=bank, theta=[0.75, 1.0], standard_error=[0.4, 0.8])
    found = compare(old, new)
    assert found.ability is None
    assert found.parts is not None
    changes = {name: (change.change, change.standard_error) for name, change in found.parts.items()}
    assert changes == {"base": (0.25, pytest.approx(0.5)), "cross": (1.5, pytest.approx(1.0))}
    assert found.to_json()["parts"]["cross"]["before"] == -0.5
    partly = interview(bank=bank, theta=[0.75, 1.0], standard_error=[0.4, None])
    assert list(compare(old, partly).parts or {}) == ["base"]
    for other in (interview(bank=bank), interview(bank=bank, theta=None), interview(bank=bank, standard_error=[0.1])):
        assert compare(old, other).parts == {}
    another = interview(bank={**bank, "scale": "s2"}, theta=[0.75, 1.0], standard_error=[0.4, 0.8])
    assert compare(old, another).parts == {}
    assert compare(interview(), interview()).parts == {}


def test_the_interval_of_a_change_covers() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        before, after = rng.normal(0.6, 0.04), rng.normal(0.5, 0.03)
        low, high = Difference(before, after, float(np.hypot(0.04, 0.03))).interval(0.9)
        hits += low <= -0.1 <= high
    assert 0.88 < hits / 2000 < 0.92


def test_areas_of_climbs_compare_whatever_their_seeds() -> None:
    found = compare(climb([10, 9, 1, 0]), climb([10, 2, 0], seed=3))
    assert found.refused == ""
    assert found.auc is not None
    assert found.auc.change == pytest.approx(-0.8)
    low, high = found.auc.interval()
    assert low < -0.8 < high < -0.1
    assert found.to_json()["auc"]["after"] == pytest.approx(1.2)
    assert found.accuracy is None


def test_climbs_of_another_kind_do_not_compare() -> None:
    way = "the task's levels, or the way they were climbed, changed between the two"
    for changes in ({"cap": 5}, {"queries": 12}, {"policy": {"selector": "adaptive-climb"}}):
        assert compare(climb([10, 7]), climb([10, 7], **changes)).refused == way
    changed = climb([10, 7])
    changed.bank.content_hash = "another generator"
    assert compare(climb([10, 7]), changed).refused.startswith("the bank changed between the two")
