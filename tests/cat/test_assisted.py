"""Interviews that a bank's predictor assists: their draws and their estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.irt.prediction import Design, Predictor
from pytest_adaptive_eval.items.bank import ItemBank

N = 60
HALF = Design("estimate", 20, uniform=0.5, residual=0.5, shift=0.05, slope=1.0, noise=2.0, weight=0.3)
FORM = Design("form", 20, "form")


def make_bank(*designs, n=N, seed=3):
    rng = np.random.default_rng(seed)
    slopes, d = rng.lognormal(0, 0.3, n), rng.normal(size=n)
    predictor = Predictor(rng.normal(size=(5, n)) * 0.05, rng.normal(size=n), rng.permutation(n), designs)
    ids = [f"i{i}" for i in range(n)]
    return ItemBank("b", ids, (), slopes, d, predictor=predictor)


def answers(bank, theta, seed=1):
    p = bank.probability(np.atleast_2d(theta).T)
    return (np.random.default_rng(seed).random(p.shape) < p).astype(float)


def finish(bank, scores, policy="estimate", budget=20, seed=1, **changes):
    session = Session(bank, replace(POLICIES[policy], budget=budget, **changes), seed=seed, subjects=len(scores))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


@pytest.mark.parametrize("batch", [1, 7])
def test_the_last_items_are_uniform_draws_of_known_chance(batch):
    bank = make_bank(HALF)
    scores = answers(bank, [0.0, 1.0])
    session = finish(bank, scores, batch=batch)
    plain = finish(replace(bank, predictor=None), scores, batch=batch)
    log, before = session.log(), plain.log()
    chances = 1.0 / (N - np.arange(20))
    np.testing.assert_allclose(log.propensities[10:], chances[10:])
    assert not np.allclose(log.propensities[:10], chances[:10])
    if batch == 1:
        np.testing.assert_array_equal(log.items[:10], before.items[:10])  # as without a predictor
    assert len(np.unique(log.items)) == 20


def test_without_a_design_or_with_a_stop_at_an_error_the_interview_is_as_before():
    bank = make_bank()
    scores = answers(bank, [0.5])
    plain = finish(replace(bank, predictor=None), scores)
    for session in (finish(bank, scores), finish(make_bank(HALF), scores, assisted=False)):
        np.testing.assert_array_equal(session.log().items, plain.log().items)
        np.testing.assert_array_equal(session.projection(), plain.projection())
    at_error = replace(POLICIES["estimate"], budget=20, standard_error=0.01)
    assert Session(make_bank(HALF), at_error).assistance is None
    assert at_error.assisted_by(make_bank(HALF)) == {}


def test_the_form_is_the_same_for_every_subject_and_seed():
    bank = make_bank(FORM)
    scores = answers(bank, [-1.0, 1.0])
    one, other = finish(bank, scores, "form", seed=1), finish(bank, scores, "form", seed=2)
    for session in (one, other):
        for s in range(2):
            np.testing.assert_array_equal(session.log(s).items, bank.predictor.order[:20])
            assert np.isnan(session.log(s).propensities).all()
    assert one.stop == [StopReason.BUDGET] * 2
    session = Session(bank, POLICIES["form"])
    assert session.reason(int(session.ask().items[0, 0])) == "next of the bank's form"


def test_a_form_needs_a_bank_that_has_one_and_feeds_no_gate():
    with pytest.raises(ConfigError, match=r"the policy 'form' needs a form.*calibrate it"):
        Session(replace(make_bank(), predictor=None), POLICIES["form"])
    assert "chosen and not drawn" in POLICIES["form"].design_based
    assert replace(POLICIES["form"], floor=0.5).design_based == ""


@pytest.mark.slow
def test_the_difference_estimator_is_unbiased_by_wrong_predictions():
    bank = make_bank(replace(HALF, weight=1.0, uniform=0.5))
    truth = np.random.default_rng(5).random((1, N)).round()
    wrong = replace(bank, intercept=bank.intercept + 2.0)
    by_design = [finish(wrong, truth, seed=s).projection()[0][0] for s in range(300)]
    by_model = [
        finish(
            replace(wrong, predictor=replace(bank.predictor, designs=(replace(HALF, weight=0.0),))), truth, seed=s
        ).projection()[0][0]
        for s in range(60)
    ]
    spread = np.std(by_design) / len(by_design) ** 0.5
    assert abs(np.mean(by_design) - truth.mean()) < 3.5 * spread
    assert abs(np.mean(by_model) - truth.mean()) > 0.02


def test_everything_asked_is_the_accuracy_itself():
    for designs, policy in (((HALF,), "estimate"), ((FORM,), "form")):
        bank = make_bank(*designs)
        scores = answers(bank, [0.3, -0.3])
        accuracy, error = finish(bank, scores, policy, budget=N).projection()
        np.testing.assert_allclose(accuracy, scores.mean(axis=1), atol=1e-12)
        np.testing.assert_allclose(error, 0.0, atol=1e-6)


def test_missing_scores_are_left_out():
    bank = make_bank(HALF)
    scores = answers(bank, [0.0, 0.0])
    scores[1] = np.nan
    scores[0, ::3] = np.nan
    accuracy, error = finish(bank, scores).projection()
    assert ((accuracy >= 0) & (accuracy <= 1)).all()
    assert np.isfinite(error).all()
    assert (error > 0).all()


@pytest.mark.parametrize("selector", [*SELECTORS.values()], ids=lambda selector: selector.name)
@pytest.mark.parametrize("batch", [1, 8])
def test_no_selector_without_a_floor_draws_by_another(selector, batch):
    bank = make_bank(n=120)
    session = Session(bank, Policy(selector, floor=0.0, budget=50, batch=batch), subjects=2)
    reasons = set()
    while (proposal := session.ask()) is not None:
        reasons |= {session.reason(item) for item in proposal.items[0].tolist()}
        session.tell(np.take_along_axis(answers(bank, [0.0, 1.0]), proposal.items, axis=1))
    assert session.uniform_from == 50
    assert (selector.name == "random") == any("uniformly" in reason for reason in reasons)


def test_the_predictor_is_a_setting_of_what_it_assists():
    bank = make_bank(HALF, FORM)
    told = {"predictor": bank.predictor.hash}
    assert POLICIES["estimate"].assisted_by(bank) == POLICIES["form"].assisted_by(bank) == told
    assert POLICIES["decide"].assisted_by(bank) == {}
    plain = replace(bank, predictor=None)
    assert POLICIES["estimate"].assisted_by(plain) == {}
    assert "assisted True" in POLICIES["estimate"].key(bank)
    assert "assisted" not in POLICIES["estimate"].key(plain)
    assert bank.subset([1, 2, 3], "part").predictor is None
