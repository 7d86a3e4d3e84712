"""Modes that grow score by score are those of all scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.irt.chebyshev import nodes, weights_at
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.growing_map import RunningMAP


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.3, 6.0), st.sampled_from([MAP(), MAP(general_sd=4.0), MAP(mean=1.0, sd=0.5)]))
def test_modes_and_variances_are_those_of_all_scores(seed: int, steepest: float, method: MAP) -> None:
    rng = np.random.default_rng(seed)
    subjects, count = 4, 120
    a = rng.uniform(-0.2, 1.0, (subjects, count)) * steepest
    d = rng.normal(0, 1.5, (subjects, count))
    ability = rng.normal(0, 2.0, (subjects, 1))
    scores = (rng.random(a.shape) < 1 / (1 + np.exp(-ability * a - d))).astype(float)
    scores[0] = 1.0  # all right, and far from where it began
    scores[1, ::7] = np.nan
    scores[2, ::3] = 0.25
    running, exact = RunningMAP(method, np.full(subjects, steepest), count), method.prior(subjects, 1)
    steps = (1, 2, 3, 5, 20, 21, 22, 60, 70, 71, 72, 100, count)
    for k, more in zip((0, *steps), steps, strict=False):
        exact = method.estimate(scores[:, :more], a[:, :more, None], d[:, :more], None, exact)
        new = scores[:, k:more], a[:, k:more], d[:, k:more]
        for estimate in (running.with_more(*new), running.add(*new)):
            assert estimate.converged.all()
            np.testing.assert_allclose(estimate.theta, exact.theta, rtol=0, atol=1e-7)
            np.testing.assert_allclose(estimate.covariance, exact.covariance, rtol=1e-3)


def test_polynomials_pass_through_their_values() -> None:
    x = np.linspace(-1, 1, 7)
    np.testing.assert_allclose(weights_at(x, 12) @ np.exp(nodes(12)), np.exp(x), atol=1e-11)
    np.testing.assert_allclose(weights_at(nodes(12), 12), np.eye(12), atol=1e-14)
    np.testing.assert_allclose(weights_at(x, 1), 1.0)
