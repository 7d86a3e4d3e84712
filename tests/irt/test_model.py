"""Response functions against closed forms, in the tails, and as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from pytest_adaptive_eval.irt import model as irt

THETA = st.floats(-30, 30)
SLOPE = st.floats(0, 20)
GUESS = st.floats(0, 0.9)


def one(value: float) -> np.ndarray:
    return np.array([[value]])


@pytest.mark.parametrize("n", [5, 2000])  # a call of expit, and the fast form
@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("guessing", [False, True])
def test_probability_is_its_formula(n: int, dimensions: int, guessing: bool) -> None:
    rng = np.random.default_rng(1)
    theta, A = rng.normal(size=(4, dimensions)), rng.random((n, dimensions)) * 3
    d, c = rng.normal(size=n) * 3, rng.random(n) * 0.4
    expected = expit(theta @ A.T + d)
    if guessing:
        expected = c + (1 - c) * expected
    np.testing.assert_allclose(irt.probability(theta, A, d, c if guessing else None), expected, rtol=0, atol=1e-14)
    own = np.broadcast_to(A, (4, n, dimensions)), np.broadcast_to(d, (4, n)), np.broadcast_to(c, (4, n))
    np.testing.assert_allclose(irt.probability(theta, *own[:2], own[2] if guessing else None), expected, atol=1e-14)


@pytest.mark.parametrize("n", [3, 3000])
def test_far_abilities_have_limits_and_no_warning(n: int) -> None:
    A, d = np.full((n, 1), 50.0), np.linspace(-40, 40, n)
    for theta, limit in ((30.0, 1.0), (-30.0, 0.0)):
        p = irt.probability(one(theta), A, d)
        assert (p == limit).all() or np.allclose(p, limit, atol=1e-12)
        information = irt.information(p, A)
        assert np.isfinite(information).all()
        assert (information >= 0).all()
        c = np.zeros(n)  # a floor of zero in the form with guessing
        assert np.isfinite(irt.weight(p, c)).all()


def test_probability_leaves_its_arguments_alone() -> None:
    theta, A, d, c = one(0.3), np.ones((3, 1)), np.zeros(3), np.full(3, 0.2)
    irt.information(irt.probability(theta, A, d, c), A, c)
    assert (theta, A[0, 0], d[0], c[0]) == (0.3, 1.0, 0.0, 0.2)


@given(THETA, SLOPE, st.floats(-10, 10), GUESS)
def test_information_is_at_least_zero_and_at_most_that_without_guessing(
    theta: float, a: float, b: float, guess: float
) -> None:
    A, d, c = one(a), np.array([-a * b]), np.array([guess])
    with_guess = irt.information(irt.probability(one(theta), A, d, c), A, c)[0, 0]
    without = irt.information(irt.probability(one(theta), A, d), A)[0, 0]
    assert 0 <= with_guess <= without * (1 + 1e-6) + 1e-9
    assert without <= a * a / 4 + 1e-12


@given(st.floats(-4, 4), st.floats(0.1, 4), st.floats(-3, 3), st.floats(0, 0.5))
def test_information_is_the_expected_squared_slope_of_the_log_likelihood(
    theta: float, a: float, b: float, guess: float
) -> None:
    A, d, c, h = one(a), np.array([-a * b]), np.array([guess]), 1e-5
    p = irt.probability(one(theta), A, d, c)
    slope = []
    for score in (0.0, 1.0):
        up, down = (irt.log_likelihood(one(score), irt.logits(one(theta + s), A, d), c)[0] for s in (h, -h))
        slope.append((up - down) / (2 * h))
    expected = (1 - p[0, 0]) * slope[0] ** 2 + p[0, 0] * slope[1] ** 2
    assert irt.information(p, A, c)[0, 0] == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_largest_information_lies_at_the_difficulty_without_guessing_and_above_it_with() -> None:
    grid = np.linspace(-3, 3, 6001)[:, None]
    A, d = one(1.7), np.array([-1.7 * 0.5])
    assert grid[irt.information(irt.probability(grid, A, d), A)[:, 0].argmax(), 0] == pytest.approx(0.5, abs=1e-3)
    c = np.array([0.25])  # Lord 1980, eq. 10-4: b + log((1 + sqrt(1 + 8c)) / 2) / a
    best = grid[irt.information(irt.probability(grid, A, d, c), A, c)[:, 0].argmax(), 0]
    assert best == pytest.approx(0.5 + np.log((1 + np.sqrt(3)) / 2) / 1.7, abs=1e-3)


def test_multidimensional_information_is_the_gain_in_determinant() -> None:
    rng = np.random.default_rng(2)
    A, d, theta = rng.random((6, 3)), rng.normal(size=6), rng.normal(size=(2, 3))
    root = rng.normal(size=(2, 3, 3))
    precision = root @ root.swapaxes(1, 2) + np.eye(3)
    p = irt.probability(theta, A, d)
    got = irt.information(p, A, covariance=np.linalg.inv(precision).astype(float))
    trace = irt.information(p, A)
    for s in range(2):
        for i in range(6):
            w = p[s, i] * (1 - p[s, i])
            grown = np.linalg.det(precision[s] + w * np.outer(A[i], A[i])) / np.linalg.det(precision[s])
            assert got[s, i] == pytest.approx(grown - 1)
            assert trace[s, i] == pytest.approx(w * (A[i] ** 2).sum())


def test_log_likelihood_is_exact_where_probabilities_round_to_zero_or_one() -> None:
    z = np.array([[40.0, -40.0, 800.0]])
    assert irt.log_likelihood(np.array([[0.0, 1.0, 1.0]]), z)[0] == pytest.approx(-80.0, rel=1e-12)
    c = np.array([0.0, 0.25, 0.0])
    expected = -40.0 + np.log(0.25 + 0.75 * expit(-40.0))
    assert irt.log_likelihood(np.array([[0.0, 1.0, 1.0]]), z, c)[0] == pytest.approx(expected, rel=1e-12)
    wrong = irt.log_likelihood(np.zeros((1, 3)), np.array([[40.0, 40.0, 0.0]]), c)[0]
    assert wrong == pytest.approx(-40.0 + np.log(0.75) - 40.0 + np.log(0.5), rel=1e-12)


def test_log_likelihood_skips_unscored_and_weighs_fractions() -> None:
    z = np.array([[0.4, -1.0]])
    p = expit(z)
    for c in (None, np.zeros(2)):
        assert irt.log_likelihood(np.array([[np.nan, np.nan]]), z, c)[0] == 0.0
        half = irt.log_likelihood(np.array([[0.3, np.nan]]), z, c)[0]
        assert half == pytest.approx(0.3 * np.log(p[0, 0]) + 0.7 * np.log(1 - p[0, 0]))
