"""Correlations between evaluations over subjects: coefficients, intervals, and what they are made from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from climbs import bare, climb
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import norm, pearsonr, spearmanr

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.correlation import Correlation, Measure, correlate, measures, table

VALUES = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=4, max_size=15)


def of(first: list[float], second: list[float]) -> Correlation:
    return correlate({f"s{n}": x for n, x in enumerate(first)}, {f"s{n}": x for n, x in enumerate(second)})


def both(found: Correlation) -> tuple[Interval, Interval]:
    assert found.spearman is not None
    assert found.pearson is not None
    return found.spearman, found.pearson


def test_coefficients_and_intervals_by_hand() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [2.0, 1.0, 4.0, 3.0, 7.0, 5.0, 20.0]
    spearman, pearson = both(of(x, y))
    rho = 1 - 6 * (1 + 1 + 1 + 1 + 1 + 1 + 0) / (7 * 48)  # by squared differences of ranks
    assert spearman.estimate == pytest.approx(rho)
    z = norm.ppf(0.975)
    half = z * math.sqrt((1 + rho * rho / 2) / 4)
    assert (spearman.low, spearman.high) == pytest.approx(
        (math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half))
    )
    known = pearsonr(x, y)
    assert pearson.estimate == pytest.approx(known.statistic)
    interval = known.confidence_interval(0.95)
    assert (pearson.low, pearson.high) == pytest.approx((interval.low, interval.high))


@given(VALUES)
def test_coefficients_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = ([float(pair[k]) for pair in pairs] for k in (0, 1))
    assume(len(set(x)) > 1 < len(set(y)))
    spearman, pearson = both(of(x, y))
    assert spearman.estimate == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert pearson.estimate == pytest.approx(pearsonr(x, y).statistic, abs=1e-12)
    for one in (spearman, pearson):
        assert -1.0 <= one.low <= one.estimate <= one.high <= 1.0
        assert one.high - one.low > 0.0


@pytest.mark.slow
@given(VALUES)
def test_what_does_not_matter_changes_nothing(pairs: list[tuple[int, int]]) -> None:
    x, y = ([float(pair[k]) for pair in pairs] for k in (0, 1))
    assume(len(set(x)) > 1 < len(set(y)))
    spearman, pearson = both(of(x, y))
    for found in (of(y, x), of(x[::-1], y[::-1]), of([3e200 * value for value in x], y)):
        swapped = both(found)
        assert [swapped[0].estimate, swapped[0].low] == pytest.approx([spearman.estimate, spearman.low], abs=1e-12)
        assert [swapped[1].estimate, swapped[1].low] == pytest.approx([pearson.estimate, pearson.low], abs=1e-9)
    turned = both(of([-value for value in x], y))
    assert turned[0].estimate == pytest.approx(-spearman.estimate, abs=1e-12)
    assert turned[1].low == pytest.approx(-pearson.high, abs=1e-9)
    assert both(of([value**3 for value in x], y))[0].estimate == pytest.approx(spearman.estimate, abs=1e-12)


def test_few_subjects_in_one_order_are_not_certain() -> None:
    four, _ = both(of([1, 2, 3, 4], [1, 3, 4, 9]))
    assert four.estimate == pytest.approx(1.0)
    assert four.low < 0.0  # by chance once in 24
    widths = []
    for n in range(4, 30):
        for one in both(of([float(k) for k in range(n)], [2.0 * k for k in range(n)])):
            assert one.high == pytest.approx(1.0)
        widths.append(1.0 - one.low)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.01
    near, _ = both(of([1, 2, 3, 4], [1, 3, 3, 9]))
    assert near.low <= four.low + 1e-12


def test_what_has_no_correlation_says_why() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert correlate(first, {"a": 1.0, "b": 2.0, "c": 4.0, "x": 1.0}) == Correlation(
        3, why="it takes 4 subjects in common"
    )
    assert correlate(first, {}).subjects == 0
    same = dict.fromkeys(first, 0.5)
    assert correlate(first, same).why == "the second is the same for all of them"
    assert correlate(same, first).why == "the first is the same for all of them"
    told = correlate(same, first).to_json()
    assert (told["spearman"], told["pearson"], told["subjects"]) == (None, None, 4)


def test_sums_that_differ_by_rounding_are_the_same() -> None:
    low, high = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert low != high
    assert of([low, high, low, high], [1, 2, 3, 4]).why == "the first is the same for all of them"
    spearman, _ = both(of([low, high, 1, 2], [1, 2, 3, 4]))
    assert spearman.estimate == pytest.approx(spearmanr([1, 1, 2, 3], [1, 2, 3, 4]).statistic)


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(("n", "rho"), [(5, 0.0), (5, 0.9), (12, 0.0), (12, 0.9), (30, 0.5)])
def test_intervals_hold_what_they_should(n: int, rho: float) -> None:
    rng = np.random.default_rng(3)
    truth = (6 / math.pi * math.asin(rho / 2), rho)  # of normal values
    held = np.zeros(2)
    for _ in range(600):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho * rho) * rng.normal(size=n)
        held += [one.low <= t <= one.high for one, t in zip(both(of(list(x), list(y))), truth, strict=True)]
    assert (held / 600 > 0.92).all()


def test_the_newest_run_of_each_subject_counts() -> None:
    def who(name: str) -> dict[str, str]:
        return {"name": name}

    found = measures(
        [
            climb([10, 0], subject=who("a")),
            climb([10, 4, 0], subject=who("a"), seed=1),
            climb([7, 0], subject=who("b")),
            climb([10, 10, 10, 10], subject=who("b"), error="the model was gone"),
            climb([10, 10, 10, 10], subject=who("b"), stop=""),
            bare(accuracy={"estimate": 0.5}, subject=who("a")),
            bare(accuracy_model={"estimate": 0.25}, subject=who("b")),
            bare(subject=who("c")),
        ]
    )
    areas: Any = {"a": pytest.approx(1.4), "b": pytest.approx(0.7)}
    assert found == [
        Measure("addition", "auc", areas),
        Measure("addition", "last level", {"a": 2.0, "b": 1.0}),
        Measure("text", "accuracy", {"a": 0.5, "b": 0.25}),
    ]


def test_what_was_asked_otherwise_than_in_the_newest_run_is_left_out() -> None:
    subjects = [{"name": name} for name in "abc"]
    other = {"name": "text", "content_hash": "b2"}
    found = measures(
        [
            bare(accuracy={"estimate": 0.1}, subject=subjects[0]),
            bare(accuracy={"estimate": 0.2}, subject=subjects[0], bank=other),
            bare(accuracy={"estimate": 0.3}, subject=subjects[1]),
            climb([5, 0], subject=subjects[2], name="text"),
            bare(accuracy={"estimate": 0.4}, subject=subjects[0]),
            climb([5, 0], subject=subjects[0], cap=5),
            climb([6, 0], subject=subjects[0]),
            climb([7, 0], subject=subjects[1]),
        ]
    )
    assert [(one.name, one.metric, dict(one.values), one.elsewhere) for one in found if one.metric != "last level"] == [
        ("text", "accuracy", {"a": 0.4, "b": 0.3}, 1),
        ("addition", "auc", {"a": 0.6, "b": 0.7}, 0),
    ]


def test_areas_go_with_all_others_and_with_their_own_last_level() -> None:
    values = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.0}
    given_ = [
        Measure("x", "auc", values),
        Measure("x", "last level", values),
        Measure("y", "auc", {**values, "d": 0.0}),
        Measure("y", "last level", values),
        Measure("mmlu", "reference", values),
    ]
    found = table(given_)
    assert list(found) == [(0, 1), (0, 2), (2, 3), (0, 4), (2, 4)]
    assert both(found[0, 4])[0].estimate == pytest.approx(1.0)
    assert both(found[2, 4])[0].estimate == pytest.approx(-0.2)
