"""What records tell of climbs: areas with their errors, and what repeats."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from climbs import bare, climb, climb_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import norm

from pytest_adaptive_eval.ladder.result import Ladder
from pytest_adaptive_eval.ladder.schedule import Schedule
from pytest_adaptive_eval.records.repetitions import area, area_error, ladder_of, population
from pytest_adaptive_eval.records.run_record import EvaluationRecord

Z = norm.ppf(0.95)
#: Scores of up to eight levels, ten each.
SCORES = st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=10, max_size=10), min_size=1, max_size=8)


def error(interview: EvaluationRecord) -> float:
    found = area_error(interview)
    assert found is not None
    return found


def test_a_record_tells_its_area_and_last_level() -> None:
    one = climb([10, 7, 0])
    assert str(ladder_of(one)) == "1.7/2"
    found = area(one)
    assert found is not None
    assert (found.estimate, found.method) == (pytest.approx(1.7), "by levels")
    again = EvaluationRecord.from_json(json.loads(json.dumps(one.to_json())))
    assert str(ladder_of(again)) == "1.7/2"
    assert area(again) == found


def test_no_climb_and_no_area() -> None:
    assert (ladder_of(bare()), area(bare()), area_error(bare())) == (None, None, None)
    settled = climb([10, 7, 0])
    assert settled.levels is not None
    settled.levels.auc = None
    assert str(ladder_of(settled)) == "1.7/2"
    assert (area(settled), area_error(settled)) == (None, None)
    unscored = climb_of([[1.0] * 10, [math.nan] * 10], 4)
    assert str(ladder_of(unscored)) == "1/1"
    assert (area(unscored), area_error(unscored)) == (None, None)
    unasked = climb([10])
    assert unasked.levels is not None
    unasked.levels.asked, unasked.levels.accuracy, unasked.levels.auc = [], [], None
    assert ladder_of(unasked) is None


def test_of_right_and_wrong_answers_at_all_levels_the_error_is_half_of_the_interval() -> None:
    one = climb([10, 6, 3, 1])
    found = area(one)
    assert found is not None
    assert error(one) == pytest.approx((found.high - found.low) / (2 * Z))


def test_levels_that_were_not_asked_add_no_error() -> None:
    for cap in (4, 12, 20):
        assert error(climb([9, 4, 0], cap=cap)) == pytest.approx(error(climb([9, 4, 0], cap=3)))


@given(SCORES)
def test_every_climb_has_an_error_above_nought(scores: list[list[float]]) -> None:
    assert 0.0 < error(climb_of(scores, 10)) < len(scores)


def test_the_error_of_levels_that_a_schedule_asked_is_about_half_of_its_interval() -> None:
    scores = [[1.0] * 4, [1.0] * 12 + [0.0] * 3, [1.0] * 10 + [0.0] * 12, [1.0] + [0.0] * 9, [0.0] * 6]
    one = climb_of(scores, 5, policy={"selector": "adaptive-climb"})
    found = Schedule(5, 1.0).interval(scores)
    assert one.levels is not None
    one.levels.auc = found
    assert error(one) == pytest.approx((found.high - found.low) / (2 * Z), rel=0.1)


def test_missing_scores_add_to_the_error() -> None:
    whole = [[1.0] * 8 + [0.0] * 2, [1.0] * 4 + [0.0] * 6, [0.0] * 10]
    gaps = [[*level[:9], math.nan] for level in whole]
    assert error(climb_of(gaps, 3)) > 1.2 * error(climb_of(whole, 3))


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("parts", [1, 8])
@pytest.mark.parametrize("middle", [0.0, 3.0])
def test_the_error_is_the_spread_of_repeated_climbs(parts: int, middle: float) -> None:
    rng = np.random.default_rng(5)
    rates = expit((middle - np.arange(1, 9)) / 0.8)
    areas, errors = [], []
    for _ in range(300):
        scores: list[list[float]] = []
        for rate in rates:
            scores.append((rng.binomial(parts, rate, 50) / parts).tolist())
            if not any(scores[-1]):
                break
        one = climb_of(scores, 8)
        areas.append(Ladder(tuple(map(np.array, scores)), 8).area)
        errors.append(error(one))
    assert 0.8 < np.sqrt(np.mean(np.square(errors))) / np.std(areas) < 1.35


def test_climbs_are_alike_whatever_the_seed_and_unlike_when_asked_otherwise() -> None:
    first = population(climb([10, 0]))
    assert population(climb([3, 0, 0], seed=5)) == first
    other: list[dict[str, Any]] = [{"cap": 5}, {"queries": 12}, {"policy": {"selector": "adaptive-climb"}}]
    for changes in other:
        assert population(climb([10, 0], **changes)) != first
    assert population(climb([10, 0], bank={"name": "counting", "content_hash": "b0"})) != first
    assert population(bare()) == "b1"
