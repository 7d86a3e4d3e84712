"""Predictions about an ability: the regression of the dense model, and the hash of what determines them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.irt.prediction import ABILITY_SD, LEAST_VARIANCE, Curves, Design, Evidence, Predictor

N = 30
DESIGN = Design("estimate", 6, residual=0.5, shift=0.2, slope=1.0, noise=2.0)


def made(seed=1, n=N, subjects=2, dimensions=1):
    rng = np.random.default_rng(seed)
    predictor = Predictor(rng.normal(size=(4, n)) * 0.1, rng.normal(size=n), rng.permutation(n))
    p = rng.uniform(0.05, 0.95, (subjects, n))
    curves = Curves(rng.normal(size=(subjects, dimensions)), p, rng.normal(size=(subjects, dimensions, n)) * 0.2)
    return predictor, curves, rng


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("design", [DESIGN, replace(DESIGN, shift=0.0), replace(DESIGN, residual=0.0)])
@pytest.mark.parametrize("count", [3, 7])
def test_predictions_are_the_regression_of_the_dense_model(design, count, dimensions):
    predictor, curves, rng = made(dimensions=dimensions)
    items = np.stack([rng.permutation(N)[:count] for _ in range(2)])
    scores = (rng.random((2, count)) < 0.5).astype(float)
    scores[1, 2] = np.nan  # as if not asked
    found, variance = predictor.predict(design, curves, items, scores)
    for s in range(2):
        known = ~np.isnan(scores[s])
        own = design.shift * np.stack([np.ones(N), design.slope * predictor.level])
        Z = np.concatenate([ABILITY_SD * curves.slopes[s], own, np.sqrt(design.residual) * predictor.residuals])
        noise = design.noise * np.maximum(curves.probability[s] * (1 - curves.probability[s]), LEAST_VARIANCE)
        covariance = Z.T @ Z + np.diag(noise)
        at = items[s][known]
        slope = np.linalg.solve(covariance[np.ix_(at, at)], covariance[at]).T
        mean = curves.probability[s] - curves.theta[s] @ curves.slopes[s]  # at the prior's ability
        rest = np.setdiff1d(np.arange(N), at)
        expected = mean + slope @ (scores[s][known] - mean[at])
        np.testing.assert_allclose(found[s, rest], np.clip(expected, 0, 1)[rest], atol=1e-9)
        left = covariance - slope @ covariance[at]
        assert variance[s] == pytest.approx(left[np.ix_(rest, rest)].sum() / N**2)


@pytest.mark.parametrize("count", [0, 3, 7])
def test_shared_sums_predict_as_each_design_alone(count, monkeypatch):
    predictor, curves, rng = made(subjects=5)
    items = np.stack([rng.permutation(N)[:count] for _ in range(5)])
    scores = (rng.random((5, count)) < 0.5).astype(float)
    designs = [DESIGN, replace(DESIGN, shift=0.0), replace(DESIGN, slope=0.0)]
    designs += [replace(design, residual=0.0) for design in designs]
    alone = [predictor.predict(design, curves, items, scores) for design in designs]
    monkeypatch.setattr("pytest_adaptive_eval.irt.prediction.CELLS", 1)  # one subject after the other
    shared = Evidence(predictor, designs, curves, items, scores)
    for design, expected in zip(designs, alone, strict=True):
        for found, value in zip(shared.predict(design), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=0, atol=1e-12)


def test_without_answers_it_predicts_the_prior():
    predictor, curves, _ = made()
    found, _ = predictor.predict(DESIGN, curves, np.empty((2, 0), dtype=int), np.empty((2, 0)))
    expected = curves.probability - np.einsum("sd,sdn->sn", curves.theta, curves.slopes)
    np.testing.assert_allclose(found, np.clip(expected, 0, 1))


def test_the_hash_tells_every_part():
    predictor, _, _ = made()
    others = [
        replace(predictor, residuals=predictor.residuals * 2),
        replace(predictor, level=predictor.level + 1),
        replace(predictor, order=predictor.order[::-1].copy()),
        replace(predictor, designs=(DESIGN,)),
        replace(predictor, designs=(replace(DESIGN, weight=0.5),)),
    ]
    assert len({predictor.hash, *(other.hash for other in others)}) == 6
    assert replace(predictor).hash == predictor.hash


def test_the_design_nearest_by_ratio_is_taken():
    predictor, _, _ = made()
    designs = (Design("estimate", 10), Design("estimate", 100), Design("form", 10, "form"))
    known = replace(predictor, designs=designs)
    assert [known.design("estimate", count).count for count in (1, 30, 33, 400)] == [10, 10, 100, 100]
    assert known.design("form", 90) == designs[2]
    assert predictor.design("form", 90) is None


@pytest.mark.parametrize(
    "change",
    [{"selector": "random"}, {"uniform": 1.1}, {"weight": -0.1}, {"noise": 0.0}, {"shift": float("nan")}, {"count": 0}],
)
def test_malformed_designs_are_refused(change):
    with pytest.raises(ValueError, match="design"):
        replace(DESIGN, **change)


def test_designs_read_back():
    for design in (DESIGN, replace(DESIGN, error=0.0125)):
        assert repr(Design.from_json(design.to_json())) == repr(design)


def test_malformed_predictors_are_refused():
    predictor, _, _ = made()
    with pytest.raises(ValueError, match="residuals"):
        replace(predictor, residuals=predictor.residuals[:, 1:])
    with pytest.raises(ValueError, match="does not have each item once"):
        replace(predictor, order=np.zeros(N, dtype=int))
