"""Correlations between evaluations over subjects: coefficients, and what they are made from."""

from __future__ import annotations

from typing import Any

import pytest
from climbs import bare, climb
from hypothesis import assume, given
from hypothesis import strategies as st
from made import several
from scipy.stats import kendalltau, spearmanr

from pytest_adaptive_eval.records.correlation import Correlation, Measure, correlate, measures

VALUES = st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), min_size=4, max_size=15)


def of(first: list[float], second: list[float]) -> Correlation:
    return correlate({f"s{n}": x for n, x in enumerate(first)}, {f"s{n}": x for n, x in enumerate(second)})


@given(VALUES)
def test_coefficients_are_those_of_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = ([float(pair[k]) for pair in pairs] for k in (0, 1))
    assume(len(set(x)) > 1 < len(set(y)))
    found = of(x, y)
    kendall = kendalltau(x, y)
    assert found.subjects == len(pairs)
    assert found.spearman == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)
    assert (found.kendall, found.p_value) == pytest.approx((kendall.statistic, kendall.pvalue), abs=1e-12)


def test_few_subjects_in_one_order_are_not_certain() -> None:
    four = of([1, 2, 3, 4], [1, 3, 4, 9])
    assert (four.spearman, four.kendall) == pytest.approx((1.0, 1.0))
    assert four.p_value == pytest.approx(2 / 24), "one of two orders of the 24"


def test_what_has_no_correlation_has_none() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    assert correlate(first, {"a": 1.0, "b": 2.0, "c": 4.0, "x": 1.0}) == Correlation(3)
    assert correlate(first, {}) == Correlation(0)
    assert correlate(first, dict.fromkeys(first, 0.5)) == correlate(dict.fromkeys(first, 0.5), first) == Correlation(4)


def test_sums_that_differ_by_rounding_are_the_same() -> None:
    low, high = 0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1
    assert low != high
    assert of([low, high, low, high], [1, 2, 3, 4]) == Correlation(4)
    assert of([low, high, 1, 2], [1, 2, 3, 4]).spearman == pytest.approx(
        spearmanr([1, 1, 2, 3], [1, 2, 3, 4]).statistic
    )


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
        Measure("text", "accuracy", {"a": 0.5, "b": 0.25}),
    ]


def test_a_network_has_its_energy_and_the_area_of_each_node() -> None:
    rows = {"energy": [("pupil", 0.5)], "auc": [("sums", 3.0), ("paths", 1.0)], "last_level": [("sums", 4.0)]}
    metrics = {
        metric: [{"subject": subject, "estimate": value} for subject, value in values]
        for metric, values in rows.items()
    }
    found = measures([several("web", "t.toml::web", "network", "pupil", metrics=metrics)])
    assert [(one.metric, dict(one.values)) for one in found] == [
        ("energy", {"pupil": 0.5}),
        ("auc of sums", {"pupil": 3.0}),
        ("auc of paths", {"pupil": 1.0}),
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
    assert [(one.name, one.metric, dict(one.values)) for one in found] == [
        ("text", "accuracy", {"a": 0.4, "b": 0.3}),
        ("addition", "auc", {"a": 0.6, "b": 0.7}),
    ]


def test_models_side_by_side_are_subjects_of_one_evaluation_and_prompts_are_evaluations() -> None:
    def beside(subject: str, variant: str, accuracy: float) -> Any:
        named = {"name": f"text-{variant}", "group": "text", "variant": variant}
        return bare(accuracy={"estimate": accuracy}, subject={"name": subject}, **named)

    models = measures([beside("a", "a", 0.5), beside("b", "b", 0.25)])
    assert models == [Measure("text", "accuracy", {"a": 0.5, "b": 0.25})]
    prompts = measures([beside("a", "short", 0.5), beside("a", "long", 0.25)])
    assert [one.name for one in prompts] == ["text-short", "text-long"]
