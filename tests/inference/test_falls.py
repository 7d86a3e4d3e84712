"""The evidence of a fall: closed forms, its rate under levels that never fall, and its power."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from pytest_adaptive_eval.inference.falls import ASSUMED, evidence_of_fall

HORIZON = 10
VALUES = st.lists(st.tuples(st.floats(-4, 4), st.floats(0.3, 3)), min_size=2, max_size=HORIZON)


def ratio_of_fall(values: np.ndarray, errors: np.ndarray, since: int) -> float:
    """Logarithm of the likelihood ratio of a fall, of all differences of the values."""
    n = len(values)
    differences = np.eye(n)[1:] - np.eye(n)[:-1]
    fall = np.where(np.arange(n) >= since, -ASSUMED * errors[since - 1], 0.0)
    covariance = differences @ np.diag(errors**2) @ differences.T
    seen = differences @ values
    fell = multivariate_normal.logpdf(seen, differences @ fall, covariance)
    return float(fell - multivariate_normal.logpdf(seen, np.zeros(n - 1), covariance))


@given(VALUES)
def test_evidence_is_the_mean_likelihood_ratio_of_the_falls(rows: list[tuple[float, float]]) -> None:
    values, errors = np.array(rows).T
    found = evidence_of_fall(values.tolist(), errors.tolist(), HORIZON)
    ratios = [ratio_of_fall(values, errors, since) for since in range(1, len(values))]
    to_come = [0.0] * (HORIZON - len(values))
    expected = np.logaddexp.reduce([*ratios, *to_come]) - math.log(HORIZON - 1)
    assert found.logarithm[-1] == pytest.approx(expected, abs=1e-6)
    assert ratios[found.since[-1] - 1] == pytest.approx(max(ratios), abs=1e-6)


@given(VALUES, st.sampled_from([0.25, 8.0]), st.floats(-3, 3))
def test_neither_unit_nor_origin_nor_later_values_matter(
    rows: list[tuple[float, float]], scale: float, origin: float
) -> None:
    values, errors = np.array(rows).T
    plain = evidence_of_fall(values.tolist(), errors.tolist(), HORIZON)
    moved = evidence_of_fall((scale * values + origin).tolist(), (scale * errors).tolist(), HORIZON)
    assert moved.logarithm == pytest.approx(plain.logarithm, abs=1e-6)
    first = evidence_of_fall(values[:-1].tolist(), errors[:-1].tolist(), HORIZON)
    assert first.logarithm == plain.logarithm[:-1]


def test_one_measurement_says_nothing_and_the_horizon_ends_it() -> None:
    assert evidence_of_fall([], [], HORIZON) == ([], [])
    assert evidence_of_fall([5.0], [1.0], HORIZON) == ([pytest.approx(0.0)], [0])
    assert len(evidence_of_fall([1.0] * 12, [1.0] * 12, HORIZON).logarithm) == HORIZON


def reached(levels: np.ndarray, histories: int, alpha: float, seed: int) -> np.ndarray:
    """First number of measurements at which the evidence reaches 1 / alpha; 99 for never."""
    rng = np.random.default_rng(seed)
    errors = [1.0] * len(levels)
    at = []
    for _ in range(histories):
        found = evidence_of_fall((levels + rng.standard_normal(len(levels))).tolist(), errors, HORIZON)
        over = np.flatnonzero(np.array(found.logarithm) >= -math.log(alpha))
        at.append(over[0] + 1 if len(over) else 99)
    return np.array(at)


@pytest.mark.slow
@pytest.mark.parametrize("levels", [np.zeros(10), np.linspace(0, 3, 10), np.r_[np.zeros(5), np.full(5, 6.0)]])
def test_levels_that_never_fall_reach_it_as_seldom_as_stated(levels: np.ndarray) -> None:
    histories, alpha = 4000, 0.05
    share = float((reached(levels, histories, alpha, 3) < 99).mean())
    assert share <= alpha + 3.0 * math.sqrt(alpha * (1 - alpha) / histories)
    if not levels.any():
        assert share > alpha / 10  # it is not void


def test_large_falls_are_found_soon_and_slow_declines_too() -> None:
    four = np.r_[np.zeros(4), np.full(6, -4.0)]
    assert (reached(four, 300, 0.01, 1) <= 4 + 3).mean() >= 0.8
    three = np.r_[np.zeros(4), np.full(6, -3.0)]
    assert (reached(three, 300, 0.01, 2) <= 4 + 8).mean() >= 0.8
    assert (reached(-0.5 * np.arange(10.0), 300, 0.01, 3) < 99).mean() >= 0.75
