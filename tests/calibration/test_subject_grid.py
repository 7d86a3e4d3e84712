"""Sums of the curvature by interpolation: those of all subjects, and fits by them."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.calibration import fit_map
from pytest_adaptive_eval.calibration.subject_grid import ERROR, curvature_at, subject_grid


def made(subjects=900, items=40, reach=1e-4, seed=0):
    """Abilities, their variances, and the moments of items."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=subjects)
    variance = 0.02 + 0.004 * theta**2 + reach * rng.uniform(-1, 1, subjects)
    slope, intercept = rng.lognormal(0, 0.4, items), rng.normal(size=items) * 1.5
    return theta, variance, np.stack([slope**2 + 0.01, slope * intercept, intercept**2 + 0.01])


@pytest.mark.parametrize(("reach", "spread"), [(0.0, 1.0), (1e-6, 1.0), (1e-3, 1.0), (1e-6, 1e-9)])
def test_sums_are_those_of_all_subjects(reach, spread):
    theta, variance, items = made(reach=reach)
    theta *= spread
    grid = subject_grid(theta, variance, items)
    assert grid is not None
    square = np.stack([theta**2 + variance, 2 * theta, np.ones_like(theta)], axis=1) @ items
    curvature = curvature_at(square, np)
    rng = np.random.default_rng(1)
    by_subject, by_item = rng.normal(size=(3, len(theta))), rng.normal(size=(2, items.shape[1]))
    most = 10 * ERROR
    found = grid.over_subjects(by_subject) - by_subject @ curvature
    assert (np.abs(found) <= most * np.abs(by_subject).sum(axis=1, keepdims=True)).all()
    found = grid.over_items(by_item) - by_item @ curvature.T
    assert (np.abs(found) <= most * np.abs(by_item).sum(axis=1, keepdims=True)).all()


def test_few_subjects_and_variances_without_an_order_have_no_grid():
    assert subject_grid(*made(subjects=100)) is None
    assert subject_grid(*made(reach=0.5)) is None
    theta, variance, items = made()
    assert subject_grid(np.zeros_like(theta), variance, items) is None
    assert subject_grid(theta, variance, 400 * items) is None


@pytest.mark.parametrize("model", ["1pl", "2pl"])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_are_those_without_a_grid(model, weighted, monkeypatch):
    rng = np.random.default_rng(2)
    slope, intercept, theta = rng.lognormal(0, 0.4, 60), rng.normal(size=60), rng.normal(size=(1200, 1))
    scores = (rng.random((1200, 60)) < 1 / (1 + np.exp(-(slope * theta + intercept)))).astype(float)
    weights = rng.uniform(0.2, 1.0, 1200) if weighted else None
    used: list[bool] = []

    def watched(*given):
        grid = subject_grid(*given)
        used.append(grid is not None)
        return grid

    engine = "pytest_adaptive_eval.calibration.engines.variational.subject_grid"
    monkeypatch.setattr(engine, watched)
    found = fit_map(scores, model=model, weights=weights)
    assert np.mean(used) > 0.8
    monkeypatch.setattr(engine, lambda *_: None)
    plain = fit_map(scores, model=model, weights=weights)
    assert found.iterations == plain.iterations
    for name in ("discrimination", "intercept", "covariance", "theta"):
        np.testing.assert_allclose(getattr(found, name), getattr(plain, name), rtol=0, atol=1e-8)
