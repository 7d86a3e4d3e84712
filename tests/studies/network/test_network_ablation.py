"""Changes of a network's quantities over seeds."""

from __future__ import annotations

import numpy as np
import pytest
from acting import Skilled, pool_of
from scipy import stats

from benchmarks.network_agents import CodedAgent, writer
from pytest_adaptive_eval.extensions.studies.network.ablation_kind import (
    contrasts,
    mean_over_seeds,
    quantities,
    welch_p_value,
)
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network

FIRST = np.array([1.0, 1.4, 0.9, 1.2, 1.1])
SECOND = np.array([1.3, 1.5, 1.3, np.nan, 1.2])


def test_a_change_has_the_interval_of_paired_differences_and_the_p_value_of_welch() -> None:
    (change,) = contrasts("more", {"energy": FIRST}, {"energy": SECOND, "area of x": SECOND})
    both = np.isfinite(SECOND)
    interval = stats.ttest_rel(SECOND[both], FIRST[both]).confidence_interval(0.95)
    assert change.change is not None
    assert (change.change.low, change.change.high) == pytest.approx((interval.low, interval.high))
    assert change.p_value == pytest.approx(stats.ttest_ind(FIRST[both], SECOND[both], equal_var=False).pvalue)
    assert (change.seeds, change.before) == (4, pytest.approx(FIRST[both].mean()))


def test_values_that_tell_nothing() -> None:
    assert mean_over_seeds(np.array([1.0, np.nan]), 0.95) is None
    assert np.isnan(welch_p_value(np.ones(3), np.ones(3)))
    assert np.isnan(welch_p_value(np.ones(1), np.ones(3)))


def test_quantities_of_a_network() -> None:
    data = {"interviewer": "ann", "node": [{"task": "addition", "levels": 2}, {"task": "operations", "levels": 2}]}
    results = [
        hold_network(
            read_network({**data, "seed": seed}, "sue"),
            pool_of(Skilled("sue", {1: 1.0, 2: 0.5}), CodedAgent("ann", writer(broken=0.5))),
        )
        for seed in range(2)
    ]
    found = quantities(results)
    assert list(found) == [
        "energy", "area of addition", "error rate of addition", "area of operations", "error rate of operations",
    ]  # fmt: skip
    assert found["area of addition"] == pytest.approx([result["addition"].area for result in results])
    assert (found["error rate of operations"] > 0.2).all()
