"""Conformal intervals: their coverage by enumeration, what they refuse, and their scale."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.conformal import (
    FURTHER,
    REGRESSED,
    Conformal,
    combined,
    conformal_scale,
    subjects_needed,
    uniform_half_width,
)
from pytest_adaptive_eval.inference.interval import Interval

ERRORS = st.lists(st.floats(-3, 3), min_size=3, max_size=40)
CONFIDENCES = (0.6, 0.75, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9999, 0.99995)


def table(errors, below=0.0, above=0.0):
    return Conformal("policy", tuple(sorted(errors)), below, above)


def misses(errors, confidence):
    """Each subject in turn as the new one: how many are outside of the interval that the others give."""
    missed = 0
    for s, error in enumerate(errors):
        # far from 0 and 1, where nothing is cut off; the scale may differ, as it is known of each subject
        accuracy, scale = 0.5, 0.01 * (1 + s % 3)
        interval = table(errors[:s] + errors[s + 1 :]).interval(accuracy, scale, confidence)
        missed += not interval.low - 1e-12 <= accuracy + scale * error <= interval.high + 1e-12
    return missed


@given(ERRORS, st.sampled_from([0.6, 0.75, 0.8, 0.9, 0.95]))
def test_intervals_cover_as_often_as_they_say(errors, confidence):
    """Any of N + 1 exchangeable subjects may be the new one, so that these N + 1 cases are the whole distribution."""
    assume(len(errors) > subjects_needed(confidence))
    assert misses(errors, confidence) <= math.floor(len(errors) * 2 * (1 - confidence) + 1e-9)


@pytest.mark.parametrize(("confidence", "missed"), [(0.9, 8), (0.95, 4), (0.975, 2)])
def test_no_interval_is_wider_than_it_needs_to_be(confidence, missed):
    errors = np.random.default_rng(1).normal(size=40).tolist()  # no two alike
    assert misses(errors, confidence) == missed == round(40 * 2 * (1 - confidence))


def with_projections(errors, projected, below=0.0, above=0.0):
    order = np.argsort(errors, kind="stable")
    pairs = (tuple(np.asarray(values, dtype=float)[order].tolist()) for values in (errors, projected))
    errors, projected = pairs
    return Conformal("policy", errors, below, above, weak=1.0, strong=0.0, projected=projected)


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.2, 0.8)), min_size=6, max_size=30), st.sampled_from([0.8, 0.9]))
def test_they_cover_as_often_with_regression_to_the_mean(pairs, confidence):
    """The line goes through all N + 1 subjects, whoever is the new one, so that nothing is lost by fitting it."""
    assume(len(pairs) > subjects_needed(confidence))
    missed = 0
    for s, (error, projection) in enumerate(pairs):
        errors, projected = zip(*(pairs[:s] + pairs[s + 1 :]), strict=True)
        found = with_projections(errors, projected).interval(projection, 0.01, confidence)
        low, high = (found.low - projection) / 0.01, (found.high - projection) / 0.01
        # the interval holds its projection too, and may be wider for it
        missed += not min(low, 0.0) - 1e-9 <= error <= max(high, 0.0) + 1e-9
    assert missed <= math.floor(len(pairs) * 2 * (1 - confidence) + 1e-9)


@pytest.mark.parametrize("projection", [0.1, 0.5, 0.8])
def test_the_errors_in_reach_are_those_that_a_search_finds(projection):
    rng = np.random.default_rng(3)
    projected = rng.uniform(0.3, 0.7, 30)
    errors = rng.normal(size=30) - 6.0 * (projected - 0.5)
    found = with_projections(errors, projected).interval(projection, 0.01, 0.95)
    places = np.append(projected, projection)
    inside = []
    for z in np.linspace(-8, 8, 3201):
        both = np.append(errors, z)
        slope, level = np.polyfit(places - places.mean(), both, 1)
        own = np.abs(both - REGRESSED * (level + slope * (places - places.mean())))
        if (own[:-1] < own[-1]).sum() < math.ceil(31 * 0.9):
            inside.append(z)
    assert np.diff(inside).max() < 0.006  # one interval
    low, high = min(0.0, inside[0]), max(0.0, inside[-1])
    assert found.low == pytest.approx(projection + 0.01 * low, abs=1e-4)
    assert found.high == pytest.approx(projection + 0.01 * high, abs=1e-4)


def test_regression_to_the_mean_moves_the_interval_and_narrows_it():
    rng = np.random.default_rng(4)
    projected = rng.normal(0.5, 0.1, 200)
    errors = rng.normal(size=200) - 15.0 * (projected - 0.5)
    line, plain = with_projections(errors, projected), table(errors)
    middle, strong = line.interval(0.5, 0.01), line.interval(0.6, 0.01)
    assert middle.high - middle.low < 0.85 * (plain.interval(0.5, 0.01).high - plain.interval(0.5, 0.01).low)
    assert (strong.low + strong.high) / 2 == pytest.approx(0.6 - 0.01 * REGRESSED * 1.5, abs=0.002)
    alike = with_projections(errors, np.full(200, 0.5))
    assert alike.interval(0.5, 0.01) == plain.interval(0.5, 0.01)


def test_extrapolation_reaches_further_beyond_the_outer_subjects():
    projected = np.linspace(0.4, 0.6, 41)
    far = with_projections(np.tile([-1.0, 1.0], 21)[:41], projected, below=-5.0, above=4.0)
    for projection, low, high in ((0.5, 1.0, 1.0), (0.59, 1.0, FURTHER), (0.41, FURTHER, 1.0)):
        found = far.interval(projection, 0.01)
        assert found.low == pytest.approx(projection - 0.05 * low)
        assert found.high == pytest.approx(projection + 0.04 * high)


def test_bounds_are_an_order_statistic():
    errors = [-1.9, *np.linspace(-1, 1.2, 18)]
    interval = table(errors).interval(0.6, 0.1, 0.95)  # the 18th of 19 sizes
    assert interval.high == pytest.approx(0.6 + 0.1 * 1.2)
    assert interval.low == pytest.approx(0.6 - 0.1 * 1.2)
    assert (interval.estimate, interval.confidence, interval.method) == (0.6, 0.95, "conformal")


def test_no_bound_is_nearer_than_the_errors_of_extrapolation():
    errors = np.linspace(-1, 1, 39)
    plain = table(errors).interval(0.6, 0.1)
    far = table(errors, -1.5, 2.5).interval(0.6, 0.1)
    assert (far.low, far.high) == (pytest.approx(0.45), pytest.approx(0.85))
    one = table(errors, -0.1, 2.5).interval(0.6, 0.1)
    assert (one.low, one.high) == (plain.low, far.high)
    assert table(errors, 0.3, -0.3).interval(0.6, 0.1) == plain  # all errors to one side take nothing away


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_fewer_subjects_than_needed_are_refused(confidence):
    both = 2 * Fraction(str(confidence)) - 1
    needed = subjects_needed(confidence)
    assert needed == math.ceil(both / (1 - both))
    errors = np.linspace(-1, 2, needed + 1)[1:]
    interval = table(errors).interval(0.5, 0.01, confidence)
    assert interval.high == pytest.approx(0.52)
    assert interval.low == pytest.approx(0.48)
    with pytest.raises(
        EstimationError,
        match=f"{needed - 1} calibration subjects of different families .* at least {needed} are needed",
    ):
        table(errors[1:]).interval(0.5, 0.01, confidence)


@given(
    st.lists(st.tuples(st.floats(-3, 3), st.floats(0.2, 0.8), st.integers(1, 4)), min_size=9, max_size=25),
    st.sampled_from([0.8, 0.9, 0.95]),
    st.floats(0.1, 0.9),
)
def test_a_family_counts_once_however_many_are_of_it(subjects, confidence, projection):
    once = with_projections([e for e, _, _ in subjects], [p for _, p, _ in subjects])
    many = [(e, p, k) for e, p, k in subjects for _ in range(k)]
    many.sort(key=lambda subject: subject[0])
    errors, projected, sizes = zip(*many, strict=True)
    families = replace(once, errors=errors, projected=projected, sizes=sizes)
    assert families.families == len(subjects)
    one, other = (t.interval(projection, 0.01, confidence) for t in (once, families))
    assert (other.low, other.high) == (pytest.approx(one.low, abs=1e-6), pytest.approx(one.high, abs=1e-6))
    assert Conformal.from_json(json.loads(json.dumps(families.to_json()))).interval(
        projection, 0.01, confidence
    ).high == pytest.approx(one.high, abs=1e-4)


def test_a_large_family_is_no_crowd():
    """Sixty checkpoints of one run that all err by 0, and eight others: no more is known than of nine."""
    errors = sorted([0.0] * 60 + [float(e) for e in range(1, 9)])
    sizes = tuple(60 if e == 0.0 else 1 for e in errors)
    found = Conformal("policy", tuple(errors), sizes=sizes)
    assert found.interval(0.5, 0.01, 0.95).high == pytest.approx(0.58)
    with pytest.raises(EstimationError, match="9 calibration subjects of different families"):
        found.interval(0.5, 0.01, 0.975)


@pytest.mark.parametrize("sizes", [(1,), (0, 1), (1, 1.5)])
def test_what_are_no_sizes_of_families(sizes):
    with pytest.raises(ValueError, match="sizes"):
        Conformal("policy", (0.0, 1.0), sizes=sizes)


@pytest.mark.parametrize(("confidence", "needed"), [(0.9, 4), (0.95, 9), (0.975, 19)])
def test_needed_subjects_of_the_usual_confidences(confidence, needed):
    assert subjects_needed(confidence) == needed


@given(ERRORS, st.floats(-0.1, 1.1), st.floats(0, 0.5), st.floats(-1, 1), st.floats(-1, 1))
def test_intervals_grow_with_confidence_and_hold_their_estimate(errors, accuracy, scale, below, above):
    last = None
    for confidence in CONFIDENCES:
        if len(errors) < subjects_needed(confidence):
            break
        now = table(errors, below, above).interval(accuracy, scale, confidence)
        assert 0 <= now.low <= now.estimate <= now.high <= 1
        assert now.estimate == min(max(accuracy, 0), 1)
        if last is not None:
            assert now.low <= last.low
            assert last.high <= now.high
        last = now


@pytest.mark.parametrize(("accuracy", "estimate"), [(-0.02, 0.0), (1.03, 1.0)])
def test_projections_outside_are_cut_off(accuracy, estimate):
    interval = table([-0.5] * 10 + [0.5] * 10).interval(accuracy, 0.2, 0.95)
    assert interval.estimate == estimate
    # the other end is counted from the projection, not from where it was cut off
    if estimate == 0:
        assert (interval.low, interval.high) == (0.0, pytest.approx(accuracy + 0.1))
    else:
        assert (interval.low, interval.high) == (pytest.approx(accuracy - 0.1), 1.0)


@given(ERRORS, st.floats(-3, 0), st.floats(0, 3))
def test_json_gives_the_same_intervals(errors, below, above):
    one = table(errors, below, above)
    other = Conformal.from_json(json.loads(json.dumps(one.to_json())))
    assert other.policy == one.policy
    np.testing.assert_allclose(other.errors, one.errors, rtol=5e-6)
    assert Conformal.from_json(other.to_json()) == other
    first, second = (c.interval(0.5, 0.1, 0.75) for c in (one, other))
    assert (first.low, first.high) == pytest.approx((second.low, second.high), abs=1e-5)


def test_errors_are_read_back_in_order():
    data = {"policy": "p", "errors": [0.5, -1.0, 0.0], "below": -2.0, "above": 1.0, "weak": 0.7, "strong": 0.2}
    assert Conformal.from_json(data) == Conformal("p", (-1.0, 0.0, 0.5), -2.0, 1.0, 0.7, 0.2)


def test_projections_stay_with_their_errors():
    data = {**table([]).to_json(), "errors": [0.5, -1.0, 0.0], "projected": [0.2, 0.9, 0.4]}
    read = Conformal.from_json(data)
    assert dict(zip(read.errors, read.projected, strict=True)) == {-1.0: 0.9, 0.0: 0.4, 0.5: 0.2}
    assert Conformal.from_json(read.to_json()) == read
    for wrong, message in (([0.2, 0.9], "2 projected for 3 errors"), ([0.2, math.nan, 0.4], "projections are finite")):
        with pytest.raises(ValueError, match=message):
            Conformal.from_json({**data, "projected": wrong})


def test_extrapolation_widens_only_the_side_that_a_subject_seems_to_be_of():
    one = Conformal("p", tuple(np.linspace(-1, 1, 39)), below=-4.0, above=3.0, weak=0.6, strong=0.4)
    both, strong, weak = (one.interval(accuracy, 0.05, 0.975) for accuracy in (0.5, 0.61, 0.39))
    assert (both.low, both.high) == pytest.approx((0.5 - 0.05 * 4, 0.5 + 0.05 * 3))
    assert (strong.low, strong.high) == pytest.approx((0.61 - 0.05, 0.61 + 0.05 * 3))
    assert (weak.low, weak.high) == pytest.approx((0.39 - 0.05 * 4, 0.39 + 0.05))


# The scale


def test_the_scale_is_the_larger_of_two():
    # of 100 uniform draws out of 400 at .8: sqrt(.16 / 100 * .75), and half of that
    uniform = 0.5 * math.sqrt(0.8 * 0.2 / 100 * 0.75)
    assert conformal_scale([0.8], [0.001], [100], 400)[0] == pytest.approx(uniform)
    assert conformal_scale([0.8], [0.3], [100], 400)[0] == 0.3


def test_the_scale_stays_open_at_the_ends_and_closes_when_all_is_asked():
    for end in (0.0, 1.0, -0.1, 1.1):
        assert conformal_scale([end], [0.0], [24], 1000)[0] == pytest.approx(0.5 * math.sqrt(0.01 / 24 * 0.976))
    assert conformal_scale([0.5], [0.0], [400], 400)[0] == 0
    assert np.isfinite(conformal_scale([0.5], [0.1], [0], 400)[0])


@given(st.floats(0, 1), st.integers(1, 300), st.integers(1, 99))
def test_the_scale_falls_with_the_number_of_items(accuracy, asked, more):
    fewer, later = conformal_scale([accuracy, accuracy], [0.0, 0.0], [asked, asked + more], 400)
    assert later < fewer


# Two intervals

INTERVALS = st.tuples(*[st.floats(0, 1)] * 3).map(sorted).map(lambda x: Interval(x[1], x[0], x[2], 0.975, "m"))


@given(INTERVALS, INTERVALS)
def test_combined_intervals_hold_what_both_hold(one, other):
    got = combined(one, other)
    if got is None:
        assert one.high < other.low or other.high < one.low
        return
    for point in (one.low, one.estimate, one.high, other.low, other.estimate, other.high):
        both = one.low <= point <= one.high and other.low <= point <= other.high
        assert both == (got.low <= point <= got.high)
    assert got.low <= got.estimate <= got.high
    assert got.method == "combined"
    # what misses the combined one misses one of the two: at most twice .025
    assert got.confidence == pytest.approx(0.95)
    again = combined(other, one)
    assert (again.low, again.high) == (got.low, got.high)


def test_the_estimate_is_that_of_the_narrower_one():
    wide, narrow = Interval(0.5, 0.2, 0.8, 0.975, "m"), Interval(0.7, 0.65, 0.85, 0.975, "m")
    near: Any = pytest.approx(0.95)
    for pair in ((wide, narrow), (narrow, wide)):
        assert combined(*pair) == Interval(0.7, 0.65, 0.8, near, "combined")
    moved = Interval(0.84, 0.65, 0.85, 0.975, "m")
    assert combined(wide, moved) == Interval(0.8, 0.65, 0.8, near, "combined")


@pytest.mark.parametrize(("confidence", "factor"), [(0.95, 1.19), (0.975, 1.14)])
def test_what_combining_costs(confidence, factor):
    assert norm.ppf(0.5 + confidence / 2) / norm.ppf(confidence) == pytest.approx(factor, abs=0.005)


def test_extrapolation_moves_no_bound_further_than_uniform_draws():
    errors = np.linspace(-1, 1, 40)
    plain, far = table(errors).interval(0.6, 0.02), table(errors, -20, 30).interval(0.6, 0.02)
    furthest = float(uniform_half_width(0.6, 50, 400))
    assert furthest == pytest.approx(1.6449 * np.sqrt(0.24 / 50 * (1 - 50 / 400)), rel=1e-4)
    capped = table(errors, -20, 30).interval(0.6, 0.02, furthest=furthest)
    assert (far.low, far.high) == (pytest.approx(0.2), pytest.approx(1.0))
    assert (capped.low, capped.high) == (pytest.approx(0.6 - furthest), pytest.approx(0.6 + furthest))
    # what cross-fitting demands stays, however wide
    assert table(errors, -20, 30).interval(0.6, 0.02, furthest=0.001) == plain
