"""What a gate may ask for, and how it reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import expected_accuracy
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import KINDS, Condition, undecided_interval
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

AT_LEAST = Condition("accuracy", "at_least", 0.6)
AT_MOST = Condition("accuracy", "at_most", 0.2)
ABILITY = Condition("ability", "at_least", -0.5)
PAIRED = Condition("accuracy", "not_worse_than", 0.02, "old")
RANK = Condition("accuracy", "rank_within", 3)
ABOVE = Condition("accuracy", "above", name="u")
GAIN = Condition("gain", "at_least", 0.1)
AREA = Condition("auc", "not_worse_than", 0.5, "old")
PART = Condition("ability.cross", "at_least", 0.3)


def make_bank(*, calibrated=True, **more):
    n = 20
    rng = np.random.default_rng(0)
    if not calibrated:
        return ItemBank.uncalibrated("b", [Item(f"i{i}") for i in range(n)])
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), rng.normal(size=n), **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": "acuracy"}, r"metric 'acuracy' is not known; did you mean 'accuracy'\? Or use ability, accuracy"),
        ({"metric": "speed"}, "metric 'speed' is not known; use ability, accuracy, auc"),
        ({"kind": "below"}, "condition 'below' is not known; use at_least, at_most, not_worse_than, rank_within"),
        ({"value": True}, r"accuracy\.at_least\(True\): expected a number"),
        ({"value": "0.6"}, r"accuracy\.at_least\('0\.6'\): expected a number"),
        ({"value": float("nan")}, "expected a number"),
        ({"value": float("inf")}, "expected a number"),
        ({"value": 1.01}, r"accuracy\.at_least\(1\.01\): an accuracy lies in \[0, 1\]"),
        ({"value": -0.01}, r"an accuracy lies in \[0, 1\]"),
        ({"value": 0.0}, r"accuracy\.at_least\(0\.0\): every accuracy is at least 0, so the gate cannot fail"),
        ({"metric": "auc", "value": 0}, "every auc is at least 0, so the gate cannot fail"),
        ({"metric": "ability", "value": float("nan")}, r"ability\.at_least\(nan\): expected a number"),
        ({"confidence": 0.49}, r"confidence is 0\.49, expected a number in \[0\.5, 1\)"),
        ({"confidence": 1.0}, r"confidence is 1\.0"),
        ({"confidence": 95}, "confidence is 95"),
        ({"confidence": "95%"}, "confidence is '95%'"),
        ({"probability": 0.5}, r"probability is 0\.5, expected a number in \(0\.5, 1\)"),
        ({"probability": 1.0}, r"probability is 1\.0"),
        ({"on_inconclusive": "skip"}, "on_inconclusive is 'skip', expected fail, warn or pass"),
        ({"on_inconclusive": True}, "on_inconclusive is True"),
        ({"method": "guess"}, "method is 'guess', expected 'draws' or 'like-questions' for accuracy.at_least"),
    ],
)
def test_thresholds_out_of_range(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(AT_LEAST, **change)


@pytest.mark.parametrize(
    ("condition", "change", "message"),
    [
        (PAIRED, {"value": 0.0}, r"margin is 0\.0, expected a share of the bank in \(0, 1\)"),
        (PAIRED, {"value": 1.0}, r"margin is 1\.0"),
        (PAIRED, {"value": -0.02}, r"margin is -0\.02"),
        (PAIRED, {"name": ""}, "not_worse_than: expected the name of a subject to compare with"),
        (PAIRED, {"metric": "gain"}, r"gain\.not_worse_than: gain has no such condition; use at_least"),
        (RANK, {"value": 0}, r"rank_within\(0\): expected a whole number of at least 1"),
        (RANK, {"value": 1.5}, r"rank_within\(1\.5\): expected a whole number"),
        (RANK, {"metric": "ability"}, "ability has no such condition"),
        (ABOVE, {"name": ""}, "above: expected the name of a subject to compare with"),
        (ABOVE, {"method": "like-questions"}, "method is"),
        (ABILITY, {"method": "like-questions"}, "method is"),
        (ABILITY, {"method": "likelihood-ratio"}, "method likelihood-ratio is gone: leave method out"),
        (GAIN, {"value": 1.0}, r"gain\.at_least\(1\.0\): a gain is a difference of accuracies, in \(-1, 1\)"),
        (GAIN, {"value": -1.0}, "a gain is a difference of accuracies"),
        (GAIN, {"kind": "above", "name": "u"}, r"gain\.above: gain has no such condition"),
        (AREA, {"value": 0.0}, r"margin is 0\.0, expected a number of levels above 0"),
        (AREA, {"value": -0.5}, "expected a number of levels above 0"),
        (AREA, {"name": ""}, "not_worse_than: expected the name of a subject"),
        (AREA, {"metric": "last_level"}, r"last_level\.not_worse_than: last_level has no such condition"),
        (
            AREA,
            {"kind": "rank_within"},
            r"auc\.rank_within: auc has no such condition; use at_least, at_most, not_worse_than",
        ),
    ],
)
def test_comparisons_out_of_range(condition, change, message):
    with pytest.raises(ConfigError, match=message):
        replace(condition, **change)


def test_what_lies_in_range_is_taken():
    for value in (0.01, 1, 1.0):
        assert replace(AT_LEAST, value=value).value == value
    assert replace(ABILITY, value=-30.0).value == -30.0
    assert replace(AT_LEAST, confidence=0.5).confidence == 0.5
    for value in (-0.99, 0, 0.99):
        assert replace(GAIN, value=value).value == value
    for value in (0.25, 1, 7.5):  # levels, and no share
        assert replace(AREA, value=value).value == value
    assert replace(RANK, value=1).value == 1
    assert replace(RANK, confidence=0.51).confidence == 0.51
    assert {AT_LEAST.kind, AT_MOST.kind, PAIRED.kind, RANK.kind, ABOVE.kind} == set(KINDS)


@pytest.mark.parametrize(
    ("condition", "label", "requirement"),
    [
        (AT_LEAST, "accuracy-at-least-0.6", ">= .60"),
        (replace(AT_LEAST, value=0.625), "accuracy-at-least-0.625", ">= .625"),
        (replace(AT_LEAST, value=1), "accuracy-at-least-1", ">= 1.00"),
        (ABILITY, "ability-at-least--0.5", ">= -.50"),
        (PAIRED, "accuracy-not-worse-than-0.02-old", ">= -.02"),
        (RANK, "accuracy-rank-within-3", "within the first 3"),
        (ABOVE, "accuracy-above-u", "above u"),
        (AREA, "auc-not-worse-than-0.5-old", ">= -.50"),
        (PART, "ability.cross-at-least-0.3", ">= .30"),
    ],
)
def test_how_it_reads(condition, label, requirement):
    assert (condition.label, condition.requirement) == (label, requirement)


def test_the_label_of_a_bank_keeps_the_baselines_name_and_that_of_a_study_fits_a_node_id():
    assert replace(PAIRED, name="runs/old 1.json").label == "accuracy-not-worse-than-0.02-runs/old 1.json"
    assert Condition("rank", "above", name="a::b/c d").label == "rank-above-a_b_c_d"


def test_which_are_decided_by_bets():
    assert all(c.by_draws for c in (AT_LEAST, ABILITY, PAIRED, RANK, ABOVE))
    assert not replace(AT_LEAST, method="like-questions").by_draws
    assert not any(c.by_rank for c in (AT_LEAST, ABILITY, PAIRED, RANK, ABOVE))
    assert Condition("rank", "above", name="u").by_rank


def test_kind_of_decision_by_metric():
    last = Condition("last_level", "at_least", 3)
    assert [c.measure.by_levels for c in (AT_LEAST, PART, GAIN, AREA, last)] == [False, False, False, True, True]
    assert [c.by_draws for c in (PART, GAIN, AREA, last)] == [False, True, False, False]
    assert [c.whole for c in (AT_LEAST, GAIN, AREA, RANK, ABOVE, PART)] == [False] * 5 + [True]
    assert [c.denials(make_bank()) for c in (AT_LEAST, PAIRED, AREA, RANK, ABOVE)] == [1] * 5


def test_quantity_names_metric_part_and_baseline():
    assert AT_LEAST.quantity == RANK.quantity == "accuracy"
    assert Condition("last_level", "at_least", 3).quantity == "last level"
    assert PAIRED.quantity == "accuracy less that of old"
    assert PART.quantity == "cross ability"


def test_levels_need_a_climb_and_parts_a_bank_that_has_them():
    bank = make_bank()
    AREA.check(bank, climbed=True)
    with pytest.raises(ConfigError, match="auc is of a task that is climbed"):
        AREA.check(bank)
    with pytest.raises(ConfigError, match=r"the bank 'b' has no part of ability 'cross'; it has none: set formats"):
        PART.check(bank)


def test_abilities_up_to_the_bound_are_judged():
    for value in (-8.0, 8.0):
        replace(ABILITY, value=value).check(make_bank())


def test_banks_on_which_it_means_nothing():
    plain, known = make_bank(calibrated=False), make_bank(subjects=("u", "v", "x"), accuracies=(0.4, 0.6, 0.7))
    AT_LEAST.check(plain)
    PAIRED.check(plain)
    for condition in (AT_LEAST, ABILITY, PAIRED, RANK, ABOVE):
        condition.check(known)
    with pytest.raises(ConfigError, match="the bank 'b' has no ability scale: gate on accuracy or calibrate it"):
        ABILITY.check(plain)
    for condition in (RANK, ABOVE):
        with pytest.raises(ConfigError, match="has no reference subjects to rank among"):
            condition.check(make_bank())
    with pytest.raises(ConfigError, match="has no reference subject 'w'; known are u, v, x"):
        replace(ABOVE, name="w").check(known)
    for least, value in (("0.025", 1e-300), ("0.025", 0.0249)):
        with pytest.raises(ConfigError, match=f"has 20 items, and thresholds below {least} do not differ from 0"):
            replace(AT_LEAST, value=value).check(known)
    replace(AT_LEAST, value=0.025).check(known)
    with pytest.raises(ConfigError, match=r"rank_within\(4\) holds for every model: the bank 'b' has 3 reference"):
        replace(RANK, value=4).check(known)
    for beyond in (-8.5, 50.0):
        with pytest.raises(ConfigError, match="abilities from -8 to 8 logits"):
            replace(ABILITY, value=beyond).check(known)


def test_what_the_draws_must_show():
    bank = make_bank()
    implied = float(expected_accuracy(bank, np.array([[-0.5]]))[0])
    assert AT_LEAST.claims(bank, {}) == (Claim(12.0, 0.95),)
    near: Any = pytest.approx(20 * implied)
    assert replace(ABILITY, confidence=0.8).claims(bank, {}) == (Claim(near, 0.8),)
    base = (np.arange(20) % 2).astype(float)
    (claim,) = PAIRED.claims(bank, {"old": Baseline("old", base)})
    near = pytest.approx(10 - 0.4)
    assert claim == Claim(near, 0.95, 0.02, (1.5, 3.0), rare=True)


@pytest.mark.parametrize("condition", [AT_LEAST, ABILITY, PAIRED, RANK, ABOVE, replace(PAIRED, on_inconclusive="warn")])
def test_it_survives_the_record(condition):
    data = condition.to_json()
    assert Condition(**data) == condition
    assert "method" not in data
    assert ("value" in data) == (condition.kind != "above")
    assert ABOVE.value == 0.0
    assert ("on_inconclusive" in data) == (condition.on_inconclusive != "fail")


@pytest.mark.parametrize(("corrected", "shown"), [(0.70, 0.70), (0.60, 0.65)])
def test_an_undecided_interval_has_the_corrected_upper_bound_and_reaches_the_requirement(corrected, shown):
    interval = Interval(0.5, 0.4, 0.6, 0.95, "exact uniform")

    def interval_at(confidence):
        assert confidence == pytest.approx(0.99)  # a fifth of the error rate
        return replace(interval, high=corrected)

    found = undecided_interval(interval, 5, interval_at, 0.65)
    assert (found.low, found.high, found.confidence) == (0.4, shown, 0.95)
