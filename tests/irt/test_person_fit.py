"""Person fit: closed forms, the distribution under the model in adaptive interviews, and what is found."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, pearson3

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.person_fit import PersonFit, lz_star, refitted
from pytest_adaptive_eval.items.bank import ItemBank

SUBJECTS = 600


@cache
def bank(dimensions=1):
    rng = np.random.default_rng(1)
    n = 600
    A = np.hstack([rng.lognormal(0, 0.3, (n, 1)), rng.normal(0, 0.6, (n, dimensions - 1))])
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, A, rng.normal(0, 1.3, n))


def fitting(dimensions=1, seed=2):
    """Probabilities and answers of subjects like the calibration's to the whole bank."""
    rng = np.random.default_rng(seed)
    of = bank(dimensions)
    p = irt.probability(rng.normal(0, 1, (SUBJECTS, dimensions)), of.discrimination, of.intercept)
    return p, (rng.random(p.shape) < p).astype(float)


def fit_of(answers, policy="decide", budget=80, dimensions=1):
    """Fit after interviews of subjects whose answers to the whole bank are given."""
    of = bank(dimensions)
    session = Session(of, replace(POLICIES[policy], budget=budget), seed=5, subjects=len(answers))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(answers, proposal.items, axis=1))
    items, scores = session.answers
    A, d = of.discrimination[items], of.intercept[items]
    return lz_star(scores, irt.probability(session.estimate.theta, A, d), A)


def test_two_kinds_of_items_by_hand():
    # two items of p = .8 and two of p = .5, slope 1: B = sum pq w / sum pq with w = log 4 and 0
    p = np.array([[0.8, 0.8, 0.5, 0.5]])
    scores = np.array([[1.0, 0.0, 1.0, 0.0]])
    easy, B = math.log(4), 0.32 * math.log(4) / 0.82
    numerator = (easy - B) * (1 - 1.6) - B * 0.0
    variance = 0.32 * (easy - B) ** 2 + 0.5 * B**2
    third = 0.32 * (1 - 1.6) * (easy - B) ** 3
    fit = lz_star(scores, p, np.ones((1, 4, 1)))
    assert fit.statistic[0] == pytest.approx(numerator / math.sqrt(variance))
    assert fit.skewness[0] == pytest.approx(third / variance**1.5)
    assert fit.scored.tolist() == [4]


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 3), st.booleans())
def test_it_is_snijders_formula_with_the_prior_of_a_map(seed, sd, guessing):
    rng = np.random.default_rng(seed)
    t = 25
    A, d = rng.lognormal(0, 0.3, (1, t, 1)), rng.normal(0, 1, (1, t))
    c = np.full((1, t), 0.2) if guessing else None
    scores = (rng.random((1, t)) < 0.6).astype(float)
    estimate = MAP(sd=sd).estimate(scores, A, d, c, MAP(sd=sd).prior(1, 1))
    p = irt.probability(estimate.theta, A, d, c)[0]
    floor = np.zeros(t) if c is None else c[0]
    slope = A[0, :, 0] * (p - floor) * (1 - p) / (1 - floor)
    w, r = np.log(p / (1 - p)), slope / (p * (1 - p))
    c_n, r_0 = (slope @ w) / (slope @ r), -estimate.theta[0, 0] / sd**2
    expected = ((scores[0] - p) @ w + c_n * r_0) / np.sqrt(p * (1 - p) @ (w - c_n * r) ** 2)
    assert lz_star(scores, p[None], A, c).statistic[0] == pytest.approx(expected, abs=1e-4)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_neither_order_nor_basis_nor_unscored_answers_matter(seed, dimensions):
    rng = np.random.default_rng(seed)
    t = 15
    scores, p = rng.random((2, t)).round(), rng.uniform(0.05, 0.95, (2, t))
    A = rng.normal(0, 1, (2, t, dimensions))
    statistic = lz_star(scores, p, A).statistic
    order = rng.permutation(t)
    assert lz_star(scores[:, order], p[:, order], A[:, order]).statistic == pytest.approx(statistic)
    turn = rng.normal(0, 1, (dimensions, dimensions)) + 3 * np.eye(dimensions)
    assert lz_star(scores, p, A @ turn).statistic == pytest.approx(statistic, abs=1e-5)
    assert lz_star(1 - scores, 1 - p, -A).statistic == pytest.approx(statistic)
    more = [
        np.concatenate([x, y], axis=1) for x, y in ((scores, np.full((2, 3), np.nan)), (p, p[:, :3]), (A, A[:, :3]))
    ]
    padded = lz_star(*more)
    assert padded.statistic == pytest.approx(statistic)
    assert padded.scored.tolist() == [t, t]
    alone = lz_star(scores[1:], p[1:], A[1:])
    assert alone.statistic[0] == pytest.approx(statistic[1])


def test_skewness_is_taken_out_as_pearsons_third_type_has_it():
    for skewness in (-0.6, -0.2, 0.0, 0.4):
        for statistic in (-3.0, -2.0, 0.0, 1.5):
            fit = PersonFit(np.array([statistic]), np.array([skewness]), np.array([9]))
            exact = norm.ppf(pearson3.cdf(statistic, skewness))
            assert fit.normal[0] == pytest.approx(exact, abs=0.03)
            assert fit.p_value[0] == pytest.approx(norm.cdf(fit.normal[0]))
            for level in (0.01, 0.05):
                assert fit.flag(level)[0] == (fit.p_value[0] < level)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("policy", "dimensions", "budget", "shift"),
    [
        ("decide", 1, 40, 0.1),
        ("decide", 1, 120, 0.05),
        ("decide", 3, 80, 0.15),
        ("estimate", 1, 40, 0.35),
        ("estimate", 1, 80, 0.2),
    ],
)
def test_subjects_that_fit_are_seldom_flagged(policy, dimensions, budget, shift):
    fit = fit_of(fitting(dimensions)[1], policy, budget, dimensions)
    assert fit.statistic.mean() == pytest.approx(shift, abs=3 / math.sqrt(SUBJECTS))
    assert 0.85 < fit.statistic.std() < 1.1
    assert fit.flag().mean() <= 0.01 + 3 * math.sqrt(0.01 * 0.99 / SUBJECTS)
    assert fit.flag(0.05).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SUBJECTS)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("policy", "least"), [("decide", 0.9), ("estimate", 0.6)])
def test_guessing_and_permuted_difficulties_are_found(policy, least):
    rng = np.random.default_rng(9)
    guesses = (rng.random((200, 600)) < 0.25).astype(float)
    permuted = rng.permuted(fitting()[1][:200], axis=1)
    for answers in (guesses, permuted):
        assert fit_of(answers, policy).flag().mean() > least


@pytest.mark.slow
def test_hard_items_right_and_easy_ones_wrong_are_found():
    rng = np.random.default_rng(10)
    p, _ = fitting()
    order = np.argsort(bank().difficulty)
    turned = np.empty_like(p)
    turned[:, order] = p[:, order[::-1]]
    answers = (rng.random(p.shape) < turned).astype(float)[:200]
    assert fit_of(answers, budget=40).flag().mean() > 0.9
    assert fit_of(answers, "estimate", 120).flag().mean() > 0.9


def test_fractions_flag_less():
    p, _ = fitting()
    fit = fit_of(np.random.default_rng(3).beta(2 * p, 2 * (1 - p)))
    assert fit.statistic.std() < 0.8
    assert not fit.flag().any()


def test_answers_that_cannot_tell_are_not_flagged():
    alike = lz_star(np.array([[1.0, 0.0, 0.0]]), np.full((1, 3), 0.7), np.ones((1, 3, 1)))
    unscored = lz_star(np.full((1, 2), np.nan), np.full((1, 2), 0.5), np.ones((1, 2, 1)))
    empty = lz_star(np.empty((1, 0)), np.empty((1, 0)), np.empty((1, 0, 1)))
    for fit in (alike, unscored, empty):
        assert np.isnan(fit.statistic[0])
        assert np.isnan(fit.p_value[0])
        assert fit.flag().tolist() == [False]
    assert unscored.scored.tolist() == [0]


def test_certain_predictions_stay_finite():
    fit = lz_star(np.array([[1.0, 0.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.3, 0.8]]), np.ones((1, 4, 1)))
    assert np.isfinite(fit.statistic[0])
    wrong = lz_star(np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.3, 0.8]]), np.ones((1, 4, 1)))
    assert wrong.flag()[0]


def test_ordinary_answers_keep_the_models_predictions():
    p, answers = fitting()
    items = np.tile(np.arange(0, 600, 4), (SUBJECTS, 1))
    found = refitted(p, items, np.take_along_axis(answers, items, axis=1))
    assert np.abs(found - p).mean() < 0.02
    sure = np.full((1, 100), 0.999)  # where the model is surer, it stays as sure
    assert refitted(sure, np.arange(50)[None], np.ones((1, 50))).max() > 0.99


def test_before_any_answer_predictions_are_mixed_by_their_prior_odds():
    p = np.array([[0.1, 0.5, 0.8]])
    weights = np.exp([0.0, -2.0, -2.0, 0.0, -2.0])
    slope = (weights * [1.0, 0.5, 0.25, 0.0, -0.8]).sum() / weights.sum()
    found = refitted(p, np.empty((1, 0), dtype=int), np.empty((1, 0)))
    np.testing.assert_allclose(found, 0.5 + slope * (p - 0.5))


def test_equal_predictions_have_even_odds_with_the_models():
    p = np.array([[0.5, 0.5, 0.5, 0.9]])
    answered = refitted(p, np.arange(3)[None], np.ones((1, 3)))
    mean, centre = 3.5 / 4.0, 2.0 / 4.0
    slopes = np.array([1.0, 0.5, 0.25, 0.0, -0.8])
    constants = np.where(slopes == 1.0, 0.0, mean - slopes * centre)
    weights = np.exp([0.0, -2.0, -2.0, 0.0, -2.0]) * np.clip(constants + slopes * 0.5, 0.01, 0.99) ** 3
    weights /= weights.sum()
    np.testing.assert_allclose(answered[0, 3], (weights * (constants + slopes * 0.9)).sum())


@pytest.mark.parametrize("kind", ["guessing", "reversed"])
def test_predictions_follow_a_strange_subject(kind):
    p, answers = fitting()
    truth = (np.random.default_rng(0).random(p.shape) < 0.25).astype(float) if kind == "guessing" else 1.0 - answers
    items = np.tile(np.arange(0, 600, 4), (SUBJECTS, 1))
    scores = np.take_along_axis(truth, items, axis=1)
    scores[:, ::10] = np.nan
    found = refitted(p, items, scores)
    others = np.setdiff1d(np.arange(600), items[0])
    error, before = (((x - truth)[:, others] ** 2).mean() for x in (found, p))
    assert error < (0.195 if kind == "guessing" else 0.6 * before)
    assert before > 0.3
    assert found.min() >= min(p.min(), 0.01)
    assert found.max() <= max(p.max(), 0.99)
