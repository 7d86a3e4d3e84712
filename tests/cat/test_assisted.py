"""Interviews that a bank's predictor assists: their draws, their estimate, and subjects unlike all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES
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
    plain = finish(replace(bank, predictor=None), scores, batch=batch, share=0.0)
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
    assert one.block == (6, 10)
    for session in (one, other):
        for s in range(2):
            log, chosen = session.log(s), np.r_[:6, 10:20]
            form = bank.predictor.order[~np.isin(bank.predictor.order, log.items[6:10])]
            np.testing.assert_array_equal(log.items[:6], bank.predictor.order[:6])
            np.testing.assert_array_equal(log.items[chosen], form[:16])
            assert np.isnan(log.propensities[chosen]).all()
            np.testing.assert_allclose(log.propensities[6:10], 1.0 / (N - np.arange(6, 10)))
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


def strange(bank):
    """Scores of a subject that is right on the hard items alone."""
    return (bank.difficulty > np.median(bank.difficulty)).astype(float)[None]


@pytest.mark.parametrize(("standard_error", "block", "own"), [(None, (30, 50), (30, 100)), (0.01, (0, 20), (0, 20))])
def test_the_own_block_of_a_refuted_subject_ends_with_its_adjacent_uniform_draws(standard_error, block, own):
    n = 300  # hard items that hardly depend on the ability: by the model, nobody is right on one in five of them
    bank = ItemBank("b", [f"i{i}" for i in range(n)], (), np.full(n, 0.1), np.full(n, -3.0))
    scores = np.array([[0.0], [1.0]]).repeat(n, axis=1)
    session = finish(bank, scores, budget=100, standard_error=standard_error)
    assert session.block == block
    items, answered = session.answers
    assert session.look(items[:, : block[1]], answered[:, : block[1]]).tolist() == [False, True]
    assert session.own_blocks() == [None, own]


@pytest.mark.slow
@pytest.mark.parametrize("predicted", [False, True])
def test_a_subject_unlike_the_others_is_named_and_rests_on_its_own_uniform_draws(predicted):
    bank = make_bank(*[Design("estimate", 100, residual=0.5)] * predicted, n=300)
    bank = replace(bank, predictor=bank.predictor if predicted else None, discrimination=2.0 * bank.discrimination)
    fitting = answers(bank, [0.0])
    session = finish(bank, np.concatenate([fitting, strange(bank), fitting]), budget=100)
    assert session.block == (30, 50)
    assert session.unlike.tolist() == [False, True, False]
    assert session.refutation(0) == ""
    assert "questions drawn uniformly to check it show [" in session.refutation(1)
    assert session.refutation(1).endswith("the estimate rests on the subject's own answers, 70 of them drawn uniformly")
    assert session.own_blocks() == [None, (30, 100), None]
    np.testing.assert_allclose(session.log(1).propensities[30:], 1.0 / (300 - np.arange(30, 100)))
    assert session.log(0).propensities[55] != pytest.approx(1.0 / (300 - 55))
    found = [finish(bank, strange(bank), budget=100, seed=s) for s in range(40)]
    estimates = [session.projection()[0][0] for session in found if session.unlike[0]]
    assert len(estimates) > 30
    assert abs(np.mean(estimates) - 0.5) < 0.03


@pytest.mark.parametrize("selector", [*SELECTORS.values()], ids=lambda selector: selector.name)
@pytest.mark.parametrize("batch", [1, 8])
def test_every_selector_without_a_floor_keeps_a_uniform_share(selector, batch):
    bank = make_bank(n=120)
    scores = answers(bank, [0.0, 1.0])
    session = finish(bank, scores, budget=50, selector=selector, batch=batch, floor=0.0, assisted=False)
    if selector.name == "random":
        assert session.block == (50, 50)
        return
    assert session.block == (15, 25)
    for s in range(2):
        np.testing.assert_allclose(session.log(s).propensities[15:25], 1.0 / (120 - np.arange(15, 25)))
        assert len(np.unique(session.log(s).items)) == 50


def test_the_share_begins_an_interview_that_may_end_early_and_a_floor_or_no_share_needs_none():
    bank = make_bank(n=120)
    policy = replace(POLICIES["estimate"], budget=50)
    assert Session(bank, policy).block == (15, 25)
    assert Session(bank, policy, take_all=range(10)).block == (22, 30)
    assert Session(bank, replace(policy, standard_error=0.5)).block == (0, 10)
    for plain in (replace(policy, floor=0.1), replace(policy, share=0.0), POLICIES["decide"], POLICIES["fixed-form"]):
        session = Session(bank, plain)
        assert session.block == (session.budget, session.budget)
        assert "share" not in plain.key(bank)


@pytest.mark.slow
def test_an_ordinary_subject_is_seldom_named():
    bank = make_bank(n=400)
    scores = answers(bank, np.random.default_rng(8).normal(size=400))
    session = finish(bank, scores, budget=100, assisted=False)
    assert sum(block is not None for block in session.own_blocks()) <= 12  # at most 2 in 100, and the binomial's tail


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
