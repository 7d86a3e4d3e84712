"""Abilities by dimension: closed forms, shrinkage, and errors that hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from pytest_adaptive_eval.irt.estimation import MAP, WIDE
from pytest_adaptive_eval.irt.profile import SPREADS, Profile, estimate_profile


def profile_of(scores, groups, size, d=None, c=None) -> Profile:
    scores = np.asarray(scores, dtype=float)
    k = len(scores)
    d = np.zeros(k) if d is None else d
    membership = np.eye(size)[np.asarray(groups, dtype=int)].reshape(k, size)
    return estimate_profile(scores, np.ones(k), d, c, membership)


def test_without_answers_it_is_the_prior():
    found = profile_of([], [], 2)
    spreads = np.array(SPREADS)
    assert found.ability == pytest.approx([0.0, 0.0])
    assert found.standard_error == pytest.approx(np.sqrt(WIDE**2 + np.mean(spreads**2)) * np.ones(2))
    assert found.spread == pytest.approx(spreads.mean())


def test_a_dimension_that_was_not_asked_has_the_whole_ability_and_a_larger_error():
    found = profile_of([1, 1, 0, 1], [0, 0, 0, 0], 2)
    assert found.ability[1] == pytest.approx(found.whole)
    assert found.standard_error[1] > found.standard_error[0]


def test_equal_answers_in_all_dimensions_give_the_ability_without_dimensions():
    scores = np.tile([1.0, 0.0, 1.0, 1.0], 3)
    alone = MAP(sd=WIDE).estimate(scores[None], np.ones((1, 12, 1)), np.zeros((1, 12)), None, MAP().prior(1, 1))
    found = profile_of(scores, np.repeat([0, 1, 2], 4), 3)
    assert found.ability == pytest.approx(alone.theta[0, 0], abs=0.05)
    assert np.ptp(found.ability) < 1e-6


def test_the_spread_is_learned_from_the_answers():
    groups = np.repeat([0, 1, 2, 3], 30)
    alike = profile_of(np.tile([1.0, 0.0], 60), groups, 4)
    apart = profile_of(np.repeat([1.0, 0.0, 1.0, 0.0], 30), groups, 4)
    assert alike.spread < 0.5 < 1.1 < apart.spread
    assert apart.ability[0] > 2 > -2 > apart.ability[1]


def test_missing_scores_have_no_effect():
    some = profile_of([1, 0, 1], [0, 1, 0], 2)
    more = profile_of([1, 0, np.nan, 1, np.nan], [0, 1, 0, 0, 1], 2)
    assert more.ability == pytest.approx(some.ability)
    assert more.standard_error == pytest.approx(some.standard_error)


def test_a_question_of_two_dimensions_informs_both():
    membership = np.array([[0.5, 0.5, 0.0]] * 6)
    found = estimate_profile(np.ones(6), np.ones(6), np.zeros(6), None, membership)
    assert found.ability[0] == pytest.approx(found.ability[1])
    assert found.ability[0] > found.ability[2]
    assert found.standard_error[0] < found.standard_error[2]


def test_guessing_lowers_what_right_answers_say():
    d = np.zeros(8)
    plain = profile_of([1, 1, 1, 1, 0, 1, 1, 0], [0, 1] * 4, 2, d)
    guessed = profile_of([1, 1, 1, 1, 0, 1, 1, 0], [0, 1] * 4, 2, d, np.full(8, 0.25))
    assert guessed.whole < plain.whole


def test_errors_cover_the_abilities_of_simulated_subjects():
    rng = np.random.default_rng(5)
    groups = np.arange(80) % 5
    inside = []
    for _ in range(60):
        truth = rng.normal(0.0, 1.0) + rng.normal(0.0, 0.7, 5)
        d = rng.normal(0.0, 1.0, 80)
        scores = (rng.random(80) < expit(truth[groups] + d)).astype(float)
        found = profile_of(scores, groups, 5, d)
        inside.append(np.abs(found.ability - truth) <= 1.96 * found.standard_error)
    assert 0.90 <= np.mean(inside) <= 0.985
