"""Estimators: closed forms, gradients, monotony, recovery and coverage, and the hard cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit

from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import (
    EAP,
    ESTIMATORS,
    MAP,
    MLE,
    Estimate,
    Estimator,
    PseudoItems,
    _derivatives,
    sandwich_error,
)

ALL = (MAP(), EAP(), MLE())


def run(estimator: Estimator, scores, a, d, c=None) -> Estimate:
    """Estimate of one subject, or of several with two-dimensional scores, in one dimension."""
    scores = np.atleast_2d(np.asarray(scores, dtype=float))
    shape = scores.shape
    A, d = np.broadcast_to(np.asarray(a, float), shape)[..., None], np.broadcast_to(np.asarray(d, float), shape)
    c = None if c is None else np.broadcast_to(np.asarray(c, float), shape)
    return estimator.estimate(scores, A, d, c, estimator.prior(len(scores), 1))


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.name)
def test_conformance(estimator: Estimator) -> None:
    assert isinstance(estimator, Estimator)
    assert ESTIMATORS[estimator.name] is type(estimator)
    rng = np.random.default_rng(0)
    for dimensions in (1, 2):
        A, d = rng.random((3, 20, dimensions)) + 0.2, rng.normal(size=(3, 20))
        scores = (rng.random((3, 20)) < 0.5).astype(float)
        scores[0, 3] = np.nan
        before = scores.copy()
        for c in (None, np.full((3, 20), 0.2)):
            start = estimator.prior(3, dimensions)
            got = estimator.estimate(scores, A, d, c, start)
            assert got.theta.shape == got.standard_error.shape == (3, dimensions)
            assert got.covariance.shape == (3, dimensions, dimensions)
            assert (np.linalg.eigvalsh(got.covariance) > 0).all()
            assert got.converged.shape == (3,)
            assert got.converged.dtype == bool
            assert (got.standard_error < start.standard_error).all()
        np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("estimator", ALL, ids=lambda e: e.name)
@pytest.mark.parametrize("guess", [None, 0.2])
def test_unscored_answers_say_nothing(estimator: Estimator, guess: float | None) -> None:
    rng = np.random.default_rng(3)
    a, d, r = rng.random(12) + 0.5, rng.normal(size=12), np.array([1.0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1])
    holes = r.copy()
    holes[[2, 7]] = np.nan
    kept = ~np.isnan(holes)
    full, part = run(estimator, holes, a, d, guess), run(estimator, r[kept], a[kept], d[kept], guess)
    assert full.theta[0, 0] == pytest.approx(part.theta[0, 0], abs=1e-6)
    assert full.standard_error[0, 0] == pytest.approx(part.standard_error[0, 0], rel=1e-6)
    nothing = run(estimator, np.full(12, np.nan), a, d, guess)
    assert nothing.standard_error[0, 0] == pytest.approx(estimator.prior(1, 1).standard_error[0, 0], rel=1e-4)


def test_map_is_the_root_of_the_score_equation() -> None:
    rng = np.random.default_rng(4)
    for sd in (0.5, 1.0, 30.0):
        a, d = rng.random(25) * 3, rng.normal(size=25)
        r = rng.random(25).round(2)  # fractions
        root = brentq(lambda t: (a * (r - expit(a * t + d))).sum() - (t - 0.2) / sd**2, -40, 40, xtol=1e-13)  # noqa: B023
        got = run(MAP(mean=0.2, sd=sd), r, a, d)
        assert got.theta[0, 0] == pytest.approx(root, abs=1e-7)
        p = expit(a * root + d)
        assert got.standard_error[0, 0] == pytest.approx(1 / np.sqrt((a * a * p * (1 - p)).sum() + sd**-2), rel=1e-4)
        assert got.converged.all()


@pytest.mark.parametrize("score", [0.0, 1.0])
@pytest.mark.parametrize("guess", [None, 0.25])
def test_all_right_and_all_wrong(score: float, guess: float | None) -> None:
    sign = 2 * score - 1
    scores, a, d = np.full(10, score), np.full(10, 1.5), np.zeros(10)
    for estimator in (MAP(), EAP()):
        got = run(estimator, scores, a, d, guess)
        assert 0 < sign * got.theta[0, 0] < 3
        assert got.converged.all()
    got = run(MLE(), scores, a, d, guess)
    assert got.theta[0, 0] == pytest.approx(6.0 * sign, abs=0.6)
    if guess is None:
        assert got.theta[0, 0] == pytest.approx(6.0 * sign)
        assert not got.converged.any()


@pytest.mark.parametrize("slope", [5.0, 20.0, 100.0])
def test_map_converges_on_steep_and_contradictory_items(slope: float) -> None:
    rng = np.random.default_rng(5)
    b = rng.normal(size=(200, 8)) * 2
    r = (rng.random((200, 8)) < 0.5).astype(float)
    got = run(MAP(sd=3.0), r, np.full((200, 8), slope), -slope * b)
    assert got.converged.all()
    p = expit(slope * (got.theta - b))
    gradient = (slope * (r - p)).sum(axis=1) - got.theta[:, 0] / 9
    information = (slope**2 * p * (1 - p)).sum(axis=1) + 1 / 9
    assert np.abs(gradient / information).max() < 1e-6


def test_map_says_when_it_has_not_arrived() -> None:
    assert not run(MAP(iterations=1), [1, 1, 1], [1, 1, 1], [0, 0, 0]).converged.any()


def test_map_finds_a_distant_mode_under_a_wide_prior() -> None:
    got = run(MAP(sd=1e3), np.ones(5), np.full(5, 0.5), np.zeros(5))
    t = got.theta[0, 0]
    assert got.converged.all()
    assert 5 * 0.5 * (1 - expit(0.5 * t)) == pytest.approx(t / 1e6, rel=1e-4)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.integers(0, 3), st.floats(0, 1))
def test_map_is_monotone_in_the_scores(scores: list[float], i: int, other: float) -> None:
    a, d = [0.5, 1.0, 2.0, 0.0], [-1.0, 0.0, 1.0, 0.0]
    changed = list(scores)
    changed[i] = other
    low, high = sorted([scores, changed], key=lambda s: s[i])
    assert run(MAP(), low, a, d).theta[0, 0] <= run(MAP(), high, a, d).theta[0, 0] + 1e-7


@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0, 0.4), st.floats(0, 1))
def test_gradient_is_the_finite_difference(x: float, y: float, guess: float, score: float) -> None:
    A, d, c = np.array([[[0.7, 0.2], [0.0, 1.4]]]), np.array([[0.3, -0.5]]), np.full((1, 2), guess)
    r, theta = np.array([[score, np.float64(1.0)]]), np.array([[x, y]])

    def height(t: np.ndarray) -> float:
        return float(irt.log_likelihood(r, irt.logits(t, A, d), c)[0])

    for guesses in (c, None) if guess == 0 else (c,):
        gradient, _ = _derivatives(theta, r, A, d, guesses)
        for k in range(2):
            h = np.eye(2)[k] * 1e-5
            assert gradient[0, k] == pytest.approx((height(theta + h) - height(theta - h)) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("guess", [None, 0.25])
def test_eap_is_the_integral(guess: float | None) -> None:
    a, d, r = np.array([1.0, 2.0, 0.5]), np.array([0.0, -1.0, 1.0]), np.array([1.0, 0.0, 0.4])
    floor = guess or 0.0

    def density(t: float) -> float:
        p = floor + (1 - floor) * expit(a * t + d)
        return float(np.exp(-0.5 * ((t - 0.3) / 1.5) ** 2) * np.prod(p**r * (1 - p) ** (1 - r)))

    mass, first, second = (quad(lambda t, k=k: t**k * density(t), -20, 20)[0] for k in range(3))
    got = run(EAP(mean=0.3, sd=1.5), r, a, d, guess)
    assert got.theta[0, 0] == pytest.approx(first / mass, abs=1e-4)
    assert got.covariance[0, 0, 0] == pytest.approx(second / mass - (first / mass) ** 2, rel=1e-3)


def test_eap_agrees_with_map_when_the_posterior_is_far_narrower_than_the_grid() -> None:
    rng = np.random.default_rng(6)
    a, d = np.full(4000, 3.0), rng.normal(size=4000)
    r = (rng.random(4000) < expit(a * 0.4137 + d)).astype(float)
    eap, mode = run(EAP(), r, a, d), run(MAP(), r, a, d)
    assert mode.standard_error[0, 0] < 0.03
    assert eap.theta[0, 0] == pytest.approx(mode.theta[0, 0], abs=2e-3)
    assert eap.standard_error[0, 0] == pytest.approx(mode.standard_error[0, 0], rel=0.02)


def test_eap_in_two_dimensions_is_the_product_of_one_dimensional_ones() -> None:
    A = np.array([[[1.2, 0.0], [0.0, 0.8], [2.0, 0.0]]])
    d, r = np.array([[0.1, -0.4, 0.5]]), np.array([[1.0, 0.0, 0.0]])
    both = EAP().estimate(r, A, d, None, EAP().prior(1, 2))
    first = run(EAP(), r[:, [0, 2]], [1.2, 2.0], d[:, [0, 2]])
    second = run(EAP(), r[:, [1]], [0.8], d[:, [1]])
    np.testing.assert_allclose(both.theta[0], [first.theta[0, 0], second.theta[0, 0]], atol=1e-3)
    assert both.covariance[0, 0, 1] == pytest.approx(0, abs=1e-6)


def test_mle_is_the_root_of_the_score_equation_and_knows_what_it_cannot_tell() -> None:
    rng = np.random.default_rng(7)
    a, d, r = rng.random(30) + 0.5, rng.normal(size=30), (rng.random(30) < 0.6).astype(float)
    root = brentq(lambda t: (a * (r - expit(a * t + d))).sum(), -6, 6)
    got = run(MLE(), r, a, d)
    assert got.theta[0, 0] == pytest.approx(root, abs=1e-5)
    assert got.converged.all()
    only_first = np.zeros((1, 30, 2))
    only_first[0, :, 0] = a
    got = MLE().estimate(r[None], only_first, d[None], None, MLE().prior(1, 2))
    assert got.theta[0, 0] == pytest.approx(root, abs=1e-5)
    assert not got.converged.any()


@pytest.mark.parametrize("count", [1, 5])
def test_pseudo_items_are_the_root_of_the_score_with_them(count: int) -> None:
    rng = np.random.default_rng(10)
    for slope in (None, 1.0):  # any slopes, and Rasch
        a = rng.normal(1, 0.5, 25) if slope is None else np.full(25, slope)  # some negative
        d, r = rng.normal(size=25), rng.random(25).round(2)

        def score(t: float, a: np.ndarray = a, d: np.ndarray = d, r: np.ndarray = r) -> float:
            return float((a * (r - expit(a * t + d))).sum() + count * (0.5 - expit(t)))

        got = run(PseudoItems(count), r, a, d)
        root = brentq(score, -30, 30, xtol=1e-13)
        assert got.theta[0, 0] == pytest.approx(root, abs=1e-9)
        p, q = expit(a * root + d), expit(root)
        information = (a * a * p * (1 - p)).sum() + count * q * (1 - q)
        assert got.standard_error[0, 0] == pytest.approx(1 / np.sqrt(information), rel=1e-9)
        assert got.converged.all()
        # the same as so many answers of one half
        more = np.full(count, 0.5), np.ones(count), np.zeros(count)
        mle = run(MLE(), np.r_[r, more[0]], np.r_[a, more[1]], np.r_[d, more[2]])
        assert got.theta[0, 0] == pytest.approx(mle.theta[0, 0], abs=1e-5)


def test_pseudo_items_keep_all_right_and_all_wrong_finite() -> None:
    for sign, score in ((1, 1.0), (-1, 0.0)):
        # of ten Rasch items at 0 all right, with five pseudo-items half right: 12.5 of 15
        got = run(PseudoItems(), np.full(10, score), np.ones(10), np.zeros(10))
        assert got.theta[0, 0] == pytest.approx(sign * np.log(12.5 / 2.5), abs=1e-9)
        assert got.converged.all()
    out = run(PseudoItems(bound=1.0), np.ones(10), np.ones(10), np.zeros(10))
    assert out.theta[0, 0] == pytest.approx(1.0)
    assert not out.converged.any()


def test_bisection_without_a_prior_runs_to_its_bound() -> None:
    bisection = ESTIMATORS["bisection"]()
    assert np.isfinite(bisection.prior(2, 1).covariance).all()
    for sign, score in ((1, 1.0), (-1, 0.0)):
        got = run(bisection, np.full(10, score), np.ones(10), np.zeros(10))
        assert got.theta[0, 0] == pytest.approx(30.0 * sign)
        assert np.isfinite(got.covariance).all()
        assert not got.converged.any()
    half = run(bisection, np.r_[np.ones(5), np.zeros(5)], np.ones(10), np.full(10, -1.0))
    assert half.theta[0, 0] == pytest.approx(1.0, abs=1e-9)


def test_pseudo_items_alone_are_the_prior() -> None:
    for count in (2, 5):
        estimator = PseudoItems(count)
        assert isinstance(estimator, Estimator)
        assert ESTIMATORS[estimator.name] is PseudoItems
        nothing, prior = run(estimator, np.full(3, np.nan), np.ones(3), np.zeros(3)), estimator.prior(1, 1)
        assert nothing.theta[0, 0] == pytest.approx(prior.theta[0, 0], abs=1e-9) == 0
        assert nothing.standard_error[0, 0] == pytest.approx(prior.standard_error[0, 0], rel=1e-9)
        assert prior.standard_error[0, 0] == pytest.approx(np.sqrt(4 / count))


def test_pseudo_items_take_each_subject_by_itself_and_leave_out_the_unscored() -> None:
    rng = np.random.default_rng(11)
    a, d, r = rng.random((30, 12)) * 2, rng.normal(size=(30, 12)), (rng.random((30, 12)) < 0.5).astype(float)
    r[rng.random(r.shape) < 0.2] = np.nan
    together = run(PseudoItems(), r, a, d)
    for s in range(30):
        kept = ~np.isnan(r[s])
        alone = run(PseudoItems(), r[s, kept], a[s, kept], d[s, kept])
        assert alone.theta[0, 0] == pytest.approx(together.theta[s, 0], abs=1e-12)
        assert alone.covariance[0, 0, 0] == pytest.approx(together.covariance[s, 0, 0], rel=1e-9)


def test_mle_leaves_the_flat_lower_bound_when_right_answers_follow() -> None:
    a, d, c = np.full((1, 21), 5.0), np.zeros((1, 21)), np.full((1, 21), 0.25)
    stuck = run(MLE(), [0.0], a[:, :1], d[:, :1], c[:, :1])
    assert stuck.theta[0, 0] == -6
    assert not stuck.converged.any()
    scores = np.r_[0.0, np.ones(20)][None]
    got = MLE().estimate(scores, a[..., None], d, c, stuck)
    assert got.theta[0, 0] > 0.5
    assert got.converged.all()


@given(st.integers(0, 2**32 - 1), st.floats(0.3, 6.0), st.sampled_from([0.5, 1.0, 4.0]))
def test_one_subject_is_estimated_as_one_of_many(seed: int, steep: float, sd: float) -> None:
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 60))
    A, d = rng.normal(0.3, steep, (1, k, 1)), rng.normal(0.0, 2.0 * steep, (1, k))
    scores = np.where(rng.random((1, k)) < 0.1, np.nan, (rng.random((1, k)) < rng.random()).astype(float))
    estimator = MAP(sd=sd)
    alone = estimator.estimate(scores, A, d, None, estimator.prior(1, 1))
    both_scores, both_slopes, both_intercepts = (np.repeat(x, 2, axis=0) for x in (scores, A, d))
    among = estimator.estimate(both_scores, both_slopes, both_intercepts, None, estimator.prior(2, 1))
    assert alone.theta[0] == pytest.approx(among.theta[0], abs=1e-9)
    assert alone.covariance[0] == pytest.approx(among.covariance[0], rel=1e-9)
    assert alone.converged[0] == among.converged[0]


def test_subjects_do_not_depend_on_each_other() -> None:
    rng = np.random.default_rng(8)
    a, d, r = rng.random((40, 15)) * 3, rng.normal(size=(40, 15)), (rng.random((40, 15)) < 0.5).astype(float)
    for c in (None, rng.random((40, 15)) * 0.3):
        together = run(MAP(), r, a, d, c)
        for s in range(40):
            alone = run(MAP(), r[s], a[s], d[s], None if c is None else c[s])
            assert alone.theta[0, 0] == pytest.approx(together.theta[s, 0], abs=1e-13)
            assert alone.covariance[0, 0, 0] == pytest.approx(together.covariance[s, 0, 0], rel=1e-12)


@pytest.mark.parametrize("guess", [None, 0.2])
def test_recovery_and_coverage(guess: float | None) -> None:
    rng = np.random.default_rng(9)
    subjects, k = 2000, 60
    theta = rng.normal(size=(subjects, 1))
    a, d = rng.lognormal(0, 0.3, (subjects, k)), rng.normal(size=(subjects, k))
    c = None if guess is None else np.full((subjects, k), guess)
    p = irt.probability(theta, a[..., None], d, c)
    got = run(MAP(), rng.random((subjects, k)) < p, a, d, c)
    inside = np.abs(got.theta - theta) <= 2 * got.standard_error
    assert inside.mean() == pytest.approx(0.955, abs=0.015)  # three standard errors of the simulation
    assert np.corrcoef(got.theta[:, 0], theta[:, 0])[0, 1] > (0.93 if guess else 0.95)
    bias = (got.theta - theta).mean()
    assert abs(bias) < 0.03


@pytest.mark.parametrize(("guess", "within"), [(0.0, 0.06), (0.25, 0.14)])
def test_sandwich_errors_are_those_of_new_items_and_answers(guess: float, within: float) -> None:
    """Over new samples of items and answers of a model that the bank misfits, estimates vary by them."""
    rng = np.random.default_rng(5)
    subjects, items = 3000, 60
    a = rng.choice([0.5, 1.0, 2.5], (subjects, items))
    d = rng.normal(size=(subjects, items))
    p = guess + (1 - guess) / (1 + np.exp(-(0.7 + d)))  # of slope 1, whatever the bank says
    scores = (rng.random((subjects, items)) < p).astype(float)
    c = np.full((subjects, items), guess) if guess else None
    estimator = MAP()
    estimate = estimator.estimate(scores, a[..., None], d * a, c, estimator.prior(subjects, 1))
    errors = sandwich_error(estimate, scores, a[..., None], d * a, c)
    assert errors.shape == (subjects, 1)
    spread = float(estimate.theta.std())
    assert float(np.sqrt((errors**2).mean())) == pytest.approx(spread, rel=within)


def test_missing_scores_do_not_count_for_sandwich_errors() -> None:
    estimator = MAP()
    scores, a, d = np.array([[1.0, 0.0, np.nan]]), np.ones((1, 3, 1)), np.zeros((1, 3))
    estimate = estimator.estimate(scores, a, d, None, estimator.prior(1, 1))
    whole = sandwich_error(estimate, scores, a, d, None)
    np.testing.assert_allclose(whole, sandwich_error(estimate, scores[:, :2], a[:, :2], d[:, :2], None))
