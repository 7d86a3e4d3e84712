"""The fast engine: recovery, its objective and gradient, its conventions, and the hard cases."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import expit

from pytest_adaptive_eval.calibration import Fit, fit_map
from pytest_adaptive_eval.calibration.curvature import curvature_at
from pytest_adaptive_eval.calibration.engines.variational import VARIANCE_FLOOR, _State
from pytest_adaptive_eval.errors import EstimationError


def planted(subjects, items, seed, *, guess=0.0, slope_sd=0.35):
    """Slopes, difficulties, abilities, chances and answers of a unidimensional bank."""
    rng = np.random.default_rng(seed)
    a, b, theta = rng.lognormal(0, slope_sd, items), rng.normal(size=items), rng.normal(size=subjects)
    p = guess + (1 - guess) * expit(a * (theta[:, None] - b))
    return a, b, theta, p, (rng.random(p.shape) < p).astype(float)


def two_dimensional(subjects, items, seed):
    """Chances and answers where one half of the items needs one ability and the other another."""
    rng = np.random.default_rng(seed)
    A = rng.lognormal(0, 0.35, (items, 2))
    A[: items // 2, 1] *= 0.1
    A[items // 2 :, 0] *= 0.1
    p = expit(rng.normal(size=(subjects, 2)) @ A.T + rng.normal(size=items))
    return p, (rng.random(p.shape) < p).astype(float)


def holes(scores, share, seed=7):
    """The scores with all but a share of them missing, and where they are missing."""
    missing = np.random.default_rng(seed).random(scores.shape) >= share
    return np.where(missing, np.nan, scores), missing


def loss(fit: Fit, p, where=...):
    """Expected log-loss of predictions, in nats; of the truth itself when `fit` is None."""
    q = p if fit is None else fit.probability()
    return float(-(p * np.log(q) + (1 - p) * np.log1p(-q))[where].mean())


def correlation(x, y):
    return np.corrcoef(np.ravel(x), np.ravel(y))[0, 1]


def same(one: Fit, other: Fit, atol=0.0):
    assert one.model == other.model
    for field in fields(Fit)[1:]:
        np.testing.assert_allclose(getattr(one, field.name), getattr(other, field.name), atol=atol, rtol=0)


# Recovery


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_planted_is_recovered(seed):
    a, b, theta, _, scores = planted(500, 1000, seed)
    found = fit_map(scores)
    assert found.converged
    assert not found.interrupted
    assert found.gradient < 5e-4
    assert found.change < 1e-3
    assert correlation(-found.intercept / found.discrimination[:, 0], b) >= 0.98
    assert correlation(found.discrimination, a) >= 0.9
    assert correlation(found.theta, theta) >= 0.99
    assert not found.guess.any()
    # the scale is that of the population, not only the order
    assert found.theta.mean() == pytest.approx(0, abs=0.05)
    assert found.theta.std() == pytest.approx(1, abs=0.05)
    assert found.discrimination.mean() == pytest.approx(a.mean(), rel=0.06)


@pytest.mark.slow
def test_a_tenth_of_the_responses_loses_little():
    _, _, _, p, scores = planted(2000, 800, 1)
    some, missing = holes(scores, 0.1)
    found = fit_map(some)
    assert found.converged
    assert found.gradient < 5e-4
    assert loss(found, p, missing) <= 1.02 * loss(fit_map(scores), p, missing)


def test_few_responses_lose_less_than_by_maximum_likelihood():
    subjects, items = 500, 1000
    _, _, _, p, scores = planted(subjects, items, 1)
    some, missing = holes(scores, 0.1)
    found = fit_map(some)
    assert found.converged
    # a maximum-likelihood fit predicts worse than the truth by half a nat a parameter, over the number of responses
    expected = (2 * items + subjects) / 2 / (~missing).sum()
    assert 0 < loss(found, p, missing) - loss(None, p, missing) < 0.85 * expected


def test_missing_responses_are_not_wrong_ones():
    _, b, _, _, scores = planted(400, 80, 2)
    some, missing = holes(scores, 0.5)
    found = fit_map(some)
    assert correlation(-found.intercept / found.discrimination[:, 0], b) > 0.95
    assert found.probability()[missing].mean() == pytest.approx(scores[missing].mean(), abs=0.03)


def test_one_slope_for_all():
    rng = np.random.default_rng(3)
    b, theta = rng.normal(size=100), rng.normal(size=800)
    p = expit(1.4 * (theta[:, None] - b))
    found = fit_map(rng.random(p.shape) < p, model="1pl")
    assert found.converged
    assert found.model == "1pl"
    assert np.ptp(found.discrimination) == 0
    assert found.discrimination[0, 0] == pytest.approx(1.4, rel=0.07)
    assert correlation(-found.intercept / found.discrimination[:, 0], b) > 0.99


def test_guess_floors_are_found_roughly():
    rng = np.random.default_rng(4)
    items = 60
    guess = np.where(np.arange(items) < items // 2, 0.05, 0.35)
    a, b, theta = rng.lognormal(0.3, 0.3, items), rng.normal(size=items), rng.normal(size=2000)
    p = guess + (1 - guess) * expit(a * (theta[:, None] - b))
    scores = (rng.random(p.shape) < p).astype(float)
    found = fit_map(scores, model="3pl")
    assert found.converged
    assert ((found.guess >= 0) & (found.guess < 1)).all()
    # in order, and not all at their prior's mode of .2, though the high ones come out low
    assert correlation(found.guess, guess) > 0.75
    assert found.guess[: items // 2].mean() < 0.08
    assert found.guess[items // 2 :].mean() > 0.13
    assert correlation(-found.intercept / found.discrimination[:, 0], b) > 0.92
    assert loss(found, p) < loss(fit_map(scores), p)


def test_two_abilities_need_two_dimensions():
    p, scores = two_dimensional(400, 120, 1)
    some, missing = holes(scores, 0.9)
    one, two, four = (fit_map(some, model="mirt", dimensions=D) for D in (1, 2, 4))
    assert one.converged
    assert two.converged
    truth = loss(None, p, missing)
    assert loss(two, p, missing) - truth < 0.3 * (loss(one, p, missing) - truth)
    # of four the two that are needed stay, and the others shrink to nothing by themselves
    strength = np.sqrt((four.discrimination**2).mean(axis=0))
    assert (strength[:2] > 0.5).all()
    assert (strength[2:] < 0.03).all()
    assert loss(four, p, missing) == pytest.approx(loss(two, p, missing), abs=1e-3)
    assert fit_map(some, model="mirt", limit=1).discrimination.shape == (120, 4)


def test_dimensions_without_use_shrink():
    _, _, _, p, scores = planted(400, 120, 3)
    some, missing = holes(scores, 0.9)
    one, three = fit_map(some), fit_map(some, model="mirt", dimensions=3)
    strength = np.sqrt((three.discrimination**2).mean(axis=0))
    assert (strength[1:] < 0.03 * strength[0]).all()
    assert loss(three, p, missing) == pytest.approx(loss(one, p, missing), abs=1e-3)


def test_items_that_better_subjects_fail_have_negative_slopes():
    _, _, theta, _, scores = planted(400, 100, 5)
    scores[:, :10] = 1 - scores[:, :10]
    found = fit_map(scores)
    assert (found.discrimination[:10] < 0).all()
    assert (found.discrimination[10:] > 0).all()
    assert correlation(found.theta, theta) > 0.95


@pytest.mark.parametrize("model", ["1pl", "2pl", "3pl", "mirt"])
def test_items_that_all_got_right_or_wrong_stay_finite(model):
    _, _, _, _, scores = planted(60, 30, 4)
    scores[:, 0], scores[:, 1] = 1.0, 0.0
    scores[0], scores[1] = 1.0, 0.0
    found = fit_map(scores, model=model)
    for field in fields(Fit):
        if isinstance(values := getattr(found, field.name), np.ndarray):
            assert np.isfinite(values).all(), field.name
    assert np.abs(found.intercept).max() < 10
    assert found.intercept[0] > 1
    assert found.intercept[1] < -1
    assert found.probability()[2:, 0].mean() > 0.9
    assert found.probability()[2:, 1].mean() < 0.1


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("constant", [0.0, 1.0, 0.5])
def test_responses_that_are_all_alike(constant):
    found = fit_map(np.full((20, 5), constant))
    assert np.isfinite(found.discrimination).all()
    assert np.isfinite(found.intercept).all()
    np.testing.assert_allclose(found.probability(), constant, atol=0.15)


def test_fractions_say_more_than_single_answers():
    a, b, theta, p, scores = planted(200, 60, 6)
    graded = fit_map(np.random.default_rng(1).binomial(20, p) / 20)
    assert graded.converged
    assert correlation(graded.theta, theta) > 0.99
    assert correlation(graded.discrimination, a) > 0.95
    assert correlation(-graded.intercept / graded.discrimination[:, 0], b) > 0.99
    assert loss(graded, p) < loss(fit_map(scores), p)


# The objective


def objective(B, C, theta, V, scores, mean, cov):
    """The bound on the likelihood of the responses with the tightest xi, less what the priors charge.

    Jaakkola & Jordan's bound at its best is (r - 1/2) E z - log(2 cosh(sqrt(E z^2) / 2)).
    """
    phi = np.c_[theta, np.ones(len(theta))]
    seen = ~np.isnan(scores)
    logit = phi @ B.T
    phi_moments = phi[:, :, None] * phi[:, None]
    phi_moments[:, :-1, :-1] += V
    item_moments = B[:, :, None] * B[:, None] + C
    half = np.sqrt(np.einsum("sij,nij->sn", phi_moments, item_moments)) / 2
    likelihood = np.where(seen, (np.nan_to_num(scores) - 0.5) * logit - np.logaddexp(half, -half), 0.0).sum()
    subjects = 0.5 * (np.linalg.slogdet(V)[1].sum() - np.trace(V, axis1=1, axis2=2).sum() - (theta**2).sum())
    inverse, off = np.linalg.inv(cov), B - mean
    charge = np.einsum("ni,ij,nj->", off, inverse, off) + np.einsum("nij,ij->", C, inverse)
    return likelihood + subjects - 0.5 * charge


def blocks(state):
    """B, C, theta and V of a state, with items and subjects as the first axis."""
    return tuple(np.moveaxis(array, -1, 0) for array in (state.B, state.C, state.theta, state.V))


def slopes(B, *rest, step=1e-5):
    """Numerical derivative of `objective` by every item's (A, d)."""
    found = np.empty(B.shape)
    for place in np.ndindex(*B.shape):
        up, down = B.copy(), B.copy()
        up[place] += step
        down[place] -= step
        found[place] = (objective(up, *rest) - objective(down, *rest)) / (2 * step)
    return found


@pytest.mark.parametrize("dimensions", [1, 3])
@pytest.mark.parametrize("share", [1.0, 0.6])
def test_the_gradient_is_the_derivative_of_the_bound(dimensions, share):
    scores = holes(planted(40, 12, 8)[-1], share)[0]
    scores[3] *= 0.4
    state = _State(scores, "mirt", dimensions, None, None)
    state._tighten()
    for i in range(12):
        expected = slopes(*blocks(state), scores, state.mean, state.cov)
        responses = (~np.isnan(scores)).sum() / scores.shape[1]
        _, gradient = state.step(learn=i > 3, standardise=i < 9)
        assert gradient == pytest.approx(np.sqrt((expected**2).mean()) / responses, rel=1e-5)


def test_the_gradient_of_one_slope_is_the_derivative_of_the_bound():
    scores = planted(40, 12, 8)[-1]
    state = _State(scores, "1pl", 1, None, None)
    state._tighten()
    for i in range(12):
        wide = np.diag([1e12, state.cov[1, 1]])  # the slope they share has no prior
        expected = slopes(*blocks(state), scores, state.mean, wide)
        expected[:, 0] = expected[:, 0].mean()
        _, gradient = state.step(learn=i > 3, standardise=i < 9)
        assert gradient == pytest.approx(np.sqrt((expected**2).mean()) / len(scores), rel=1e-5)


@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_fit_is_a_maximum_of_the_bound(dimensions):
    scores = holes(two_dimensional(200, 16, 9)[1], 0.9)[0]
    found = fit_map(scores, model="mirt", dimensions=dimensions, tolerance=1e-7, limit=20_000)
    assert found.converged
    B, C = np.c_[found.discrimination, found.intercept], found.covariance
    moments = B[:, :, None] * B[:, None] + C
    mean = B.mean(axis=0)
    # the prior as `Fit` implies it, and the subjects' covariances as the bound at its best has them
    cov = moments.mean(axis=0) - np.outer(mean, mean) + VARIANCE_FLOOR * np.eye(dimensions + 1)
    theta, V = found.theta, np.zeros((200, dimensions, dimensions))
    for _ in range(200):
        phi = np.c_[theta, np.ones(200)]
        second = phi[:, :, None] * phi[:, None]
        second[:, :-1, :-1] += V
        xi = np.sqrt(np.einsum("sij,nij->sn", second, moments))
        curvature = np.where(np.isnan(scores), 0.0, np.tanh(xi / 2) / (2 * xi))
        V = np.linalg.inv(np.eye(dimensions) + np.einsum("sn,nij->sij", curvature, moments[:, :-1, :-1]))
    at = (C, theta, V, scores, mean, cov)
    top = objective(B, *at)
    rng = np.random.default_rng(1)
    assert np.abs(slopes(B, *at, step=1e-4)).max() < 1e-4
    for _ in range(20):
        assert objective(B + 0.05 * rng.normal(size=B.shape), *at) < top
        assert objective(B, C, theta + 0.05 * rng.normal(size=theta.shape), *at[2:]) < top


@pytest.mark.parametrize("model", ["2pl", "mirt"])
def test_no_step_lowers_the_bound(model):
    scores = planted(60, 25, 10)[-1]
    state = _State(scores, model, 3 if model == "mirt" else 1, None, None)
    heights = []
    for _ in range(40):
        state.step(learn=False, standardise=False)
        B, C, theta, V = blocks(state)
        here = objective(B, C, theta, V, scores, state.mean, state.cov)
        heights.append(here + 0.5 * np.linalg.slogdet(C)[1].sum())
    assert (np.diff(heights) > -1e-9).all()


def test_standardising_changes_no_logit():
    state = _State(planted(60, 25, 10)[-1], "mirt", 3, None, None)
    for _ in range(3):
        state.step(learn=False, standardise=False)

    def logits():
        square = (state.twice * state._subject_moments()).T @ state._item_moments()
        return np.r_[np.c_[state.theta.T, np.ones(60)] @ state.B, square]

    before = logits()
    state._standardise()
    np.testing.assert_allclose(logits(), before, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(state.theta.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(state.theta, bias=True) + state.V.mean(axis=2), np.eye(3), atol=1e-10)


@pytest.mark.parametrize("most", [0.0, 1.0, 30.0, 31.0, 64.0, 65.0, 400.0, 401.0, 1e4])
def test_the_curvature_is_that_of_the_hyperbolic_tangent(most):
    squares = np.r_[np.geomspace(1e-4, max(most, 1e-4), 5000), most]
    xi = np.sqrt(squares)
    expected = np.where(squares > 0, np.tanh(xi / 2) / (2 * np.maximum(xi, 1e-9)), 0.25)
    np.testing.assert_allclose(curvature_at(squares.copy(), np), expected, rtol=1e-5 if most == 0 else 1e-11)


def test_covariances_shrink_with_the_number_of_subjects():
    scores = planted(1600, 40, 11)[-1]
    few, many = fit_map(scores[:400]), fit_map(scores)
    for fit in (few, many):
        np.testing.assert_allclose(fit.covariance, fit.covariance.swapaxes(1, 2), atol=1e-15)
        assert (np.linalg.eigvalsh(fit.covariance) > 0).all()
    ratio = np.median(few.covariance[:, [0, 1], [0, 1]] / many.covariance[:, [0, 1], [0, 1]], axis=0)
    np.testing.assert_allclose(ratio, 4, rtol=0.25)


# Conventions


def test_dimensions_are_principal_ones_of_positive_mean():
    _, scores = two_dimensional(300, 60, 12)
    for responses in (scores, 1 - scores):
        found = fit_map(responses, model="mirt", dimensions=3)
        product = found.discrimination.T @ found.discrimination
        np.testing.assert_allclose(product - np.diag(product.diagonal()), 0, atol=1e-9 * product[0, 0])
        assert (np.diff(product.diagonal()) < 0).all()
        assert (found.discrimination.mean(axis=0) > 0).all()
        z = found.theta @ found.discrimination.T + found.intercept
        np.testing.assert_allclose(found.probability(), expit(z), atol=1e-12)


@pytest.mark.parametrize(("model", "dimensions"), [("1pl", 1), ("2pl", 1), ("3pl", 1), ("mirt", 2)])
def test_the_order_of_subjects_and_items_does_not_matter(model, dimensions):
    scores = holes(two_dimensional(120, 40, 13)[1], 0.8)[0]
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(120), rng.permutation(40)
    one = fit_map(scores, model=model, dimensions=dimensions, limit=60)
    other = fit_map(scores[rows][:, columns], model=model, dimensions=dimensions, limit=60)
    moved = {name: getattr(one, name)[columns] for name in ("discrimination", "intercept", "guess", "covariance")}
    same(replace(one, theta=one.theta[rows], **moved), other, 1e-7)


def test_right_and_wrong_exchanged_turn_the_scale_round():
    scores = planted(120, 40, 14)[-1]
    one, other = fit_map(scores, limit=40), fit_map(1 - scores, limit=40)
    np.testing.assert_allclose(other.discrimination, one.discrimination, atol=1e-8)
    np.testing.assert_allclose(other.intercept, -one.intercept, atol=1e-8)
    np.testing.assert_allclose(other.theta, -one.theta, atol=1e-8)


def test_the_same_responses_give_the_same_fit_and_stay_as_they_are():
    scores = holes(planted(80, 30, 15)[-1], 0.8)[0]
    before = scores.copy()
    same(fit_map(scores, model="mirt"), fit_map(scores.tolist(), model="mirt"))
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize(("model", "dimensions"), [("1pl", 1), ("2pl", 1), ("3pl", 1), ("mirt", 3)])
def test_torch_gives_what_numpy_gives(model, dimensions):
    pytest.importorskip("torch", reason="fits by VI need torch (extra hf)")
    for share in (1.0, 0.7):
        scores = holes(two_dimensional(60, 25, 16)[1], share)[0]
        one = fit_map(scores, model=model, dimensions=dimensions, limit=30)
        other = fit_map(scores, model=model, dimensions=dimensions, limit=30, device="cpu")
        same(one, other, 1e-8)
        again = fit_map(scores, model=model, dimensions=dimensions, limit=5, device="cpu", start=other)
        same(fit_map(scores, model=model, dimensions=dimensions, limit=5, start=one), again, 1e-8)


@pytest.mark.parametrize(("model", "dimensions"), [("1pl", 1), ("2pl", 1), ("mirt", 2)])
def test_single_precision_gives_the_same_fit(model, dimensions, monkeypatch):
    scores = two_dimensional(60, 80, 18)[1]
    double = fit_map(scores, model=model, dimensions=dimensions)
    monkeypatch.setattr("pytest_adaptive_eval.calibration.engines.variational.LARGE", scores.size - 1)
    single = fit_map(scores, model=model, dimensions=dimensions)
    assert single.converged
    assert abs(single.iterations - double.iterations) <= 1
    np.testing.assert_allclose(single.probability(), double.probability(), atol=1e-4)
    np.testing.assert_allclose(single.covariance, double.covariance, atol=1e-3)
    assert not np.array_equal(single.theta, double.theta)


# Beginning and end


@pytest.mark.parametrize(("model", "dimensions"), [("1pl", 1), ("2pl", 1), ("3pl", 1), ("mirt", 2)])
def test_a_start_saves_iterations_and_leads_to_the_same_fit(model, dimensions):
    scores = two_dimensional(300, 60, 17)[1]
    cold = fit_map(scores, model=model, dimensions=dimensions, tolerance=1e-4)
    warm = fit_map(scores, model=model, dimensions=dimensions, tolerance=1e-4, start=cold)
    assert cold.converged
    assert warm.converged
    assert warm.iterations < 0.8 * cold.iterations
    np.testing.assert_allclose(warm.probability(), cold.probability(), atol=2e-3)
    other = fit_map(scores[:290], model=model, dimensions=dimensions, tolerance=1e-4, start=cold)
    fresh = fit_map(scores[:290], model=model, dimensions=dimensions, tolerance=1e-4)
    assert other.iterations < fresh.iterations
    np.testing.assert_allclose(other.probability(), fresh.probability(), atol=5e-3)


def test_a_limit_reached_is_told():
    told = []
    found = fit_map(planted(30, 10, 18)[-1], limit=3, progress=lambda i, change: told.append((i, change)))
    assert (found.converged, found.interrupted, found.iterations) == (False, False, 3)
    assert [i for i, _ in told] == [1, 2, 3]
    assert told[-1][1] == found.change > 1e-3


def test_an_interrupt_from_outside_leaves_the_last_state():
    scores = planted(60, 20, 19)[-1]

    def stop(iteration, change):
        if iteration == 4:
            raise KeyboardInterrupt

    found = fit_map(scores, progress=stop)
    assert found.interrupted
    assert not found.converged
    same(replace(found, interrupted=False), fit_map(scores, limit=4))


def test_an_interrupt_within_a_step_leaves_the_state_before_it(monkeypatch):
    scores = planted(60, 20, 19)[-1]
    expected = fit_map(scores, limit=2)
    turn, calls = _State._standardise, []

    def stop(state):
        turn(state)
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(_State, "_standardise", stop)
    found = fit_map(scores)
    assert found.interrupted
    same(replace(found, interrupted=False), expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "2pl", "dimensions": 2}, "2 dimensions with model '2pl'"),
        ({"model": "mirt", "dimensions": 0}, "0 dimensions"),
        ({"model": "mirt", "dimensions": 8}, "more subjects than dimensions"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(EstimationError, match=message):
        fit_map(np.eye(8), **settings)
