"""Changes of a network's quantities over seeds."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest
from acting import Skilled, pool_of
from scipy import stats

from benchmarks.network_agents import CodedAgent, writer
from pytest_adaptive_eval.extensions.studies.network.ablation_kind import AS_WRITTEN, CONFIDENCE, over_seeds, quantities
from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.extensions.studies.network.network_run import hold_network
from pytest_adaptive_eval.extensions.studies.report_sections.ablation import AblationAccount, tables

FIRST = [1.0, 1.4, 0.9, 1.2, 1.1]
SECOND = [1.3, 1.5, 1.3, 1.1, 1.2]


def test_a_change_has_the_interval_of_paired_differences() -> None:
    interval = stats.ttest_rel(SECOND, FIRST).confidence_interval(0.95)
    found = over_seeds(np.subtract(SECOND, FIRST).tolist(), CONFIDENCE)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_equal_values_of_few_seeds_are_not_certain() -> None:
    assert over_seeds([0.9, 0.9], 0.95, error=0.05).low == pytest.approx(0.9 - stats.norm.ppf(0.95) * 0.05 / 2**0.5)
    assert over_seeds(FIRST, 0.95, error=0.01) == over_seeds(FIRST, 0.95)


def test_changes_of_quantities_that_both_have_are_shown() -> None:
    values = {
        AS_WRITTEN: {"energy": FIRST, "area of x": [1.0]},
        "more": {"energy": SECOND, "area of x": [1.0], "z": FIRST},
    }
    (table,) = tables(Mock(), AblationAccount(values))
    interval = over_seeds(np.subtract(SECOND, FIRST).tolist(), CONFIDENCE)
    assert table.rows == [("more", "energy", "1.120", "1.280", interval.in_words())]


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
        "energy", "area of addition", "error_rate of addition", "area of operations", "error_rate of operations",
    ]  # fmt: skip
    assert found["area of addition"] == pytest.approx([result["addition"].area for result in results])
    assert min(found["error_rate of operations"]) > 0.2
