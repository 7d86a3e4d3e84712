"""The marginal 2PL fit."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.calibration import fit
from pytest_adaptive_eval.errors import EstimationError


def simulate(subjects, items, seed):
    rng = np.random.default_rng(seed)
    a, b, theta = rng.lognormal(0, 0.35, items), rng.normal(size=items), rng.normal(size=subjects)
    p = 1 / (1 + np.exp(-a * (theta[:, None] - b)))
    return a, b, theta, (rng.random(p.shape) < p).astype(float)


def test_what_was_planted_is_recovered():
    a, b, theta, responses = simulate(600, 120, 1)
    found = fit(responses)
    assert found.converged
    difficulty = -found.intercept / found.discrimination
    assert np.corrcoef(difficulty, b)[0, 1] > 0.98
    assert np.corrcoef(found.discrimination, a)[0, 1] > 0.9
    assert np.corrcoef(found.theta, theta)[0, 1] > 0.97
    assert np.sqrt(np.mean((found.theta - theta) ** 2)) < 0.25


def test_missing_answers_say_nothing():
    _, b, _, responses = simulate(400, 80, 2)
    holes = np.where(np.random.default_rng(3).random(responses.shape) < 0.5, np.nan, responses)
    found = fit(holes)
    assert found.converged
    assert np.corrcoef(-found.intercept / found.discrimination, b)[0, 1] > 0.93


def test_items_that_all_got_right_or_wrong_stay_finite():
    _, _, _, responses = simulate(40, 20, 4)
    responses[:, 0], responses[:, 1] = 1.0, 0.0
    found = fit(responses)
    assert np.isfinite(found.intercept).all()
    assert np.isfinite(found.discrimination).all()
    assert found.intercept[0] > found.intercept[2:].max() - 1e-9 or found.intercept[0] > 2
    assert found.intercept[1] < 0


def test_the_optimum_is_a_stationary_point_of_the_penalised_likelihood():
    _, _, _, responses = simulate(60, 5, 5)
    found = fit(responses, tolerance=1e-9)
    grid = np.linspace(-5, 5, 41)
    prior = np.exp(-0.5 * grid**2)

    def objective(log_a, d):
        p = 1 / (1 + np.exp(-(np.exp(log_a) * grid[:, None] + d)))
        likelihood = np.exp(responses @ np.log(p.T) + (1 - responses) @ np.log(1 - p.T)) @ prior
        return np.log(likelihood).sum() - 0.5 * (log_a**2).sum() / 0.5**2 - 0.5 * (d**2).sum() / 2.0**2

    log_a, d = np.log(found.discrimination), found.intercept
    for i in range(5):
        for which in (0, 1):
            step = np.zeros((2, 5))
            step[which, i] = 1e-4
            slope = (objective(log_a + step[0], d + step[1]) - objective(log_a - step[0], d - step[1])) / 2e-4
            assert abs(slope) < 1e-3


def test_a_limit_reached_is_told():
    _, _, _, responses = simulate(30, 10, 6)
    found = fit(responses, limit=2)
    assert (found.converged, found.iterations) == (False, 2)
    assert found.change > 1e-4


@pytest.mark.parametrize("bad", [[[0.0, 1.0]], [0.0, 1.0], [[0.0, 2.0], [1.0, 0.0]]])
def test_what_cannot_be_fitted_is_refused(bad):
    with pytest.raises(EstimationError):
        fit(bad)
