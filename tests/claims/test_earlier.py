"""Predictions from earlier answers: what each answer of the candidate changes, and error rates with any of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.earlier import GUESS_WORTH, RAREST, EarlierAnswers
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.earlier import EarlierRun
from pytest_adaptive_eval.records.parts import PredictionRecord

NAN = float("nan")
NONE = np.empty((1, 0))
EVEN = np.ones((1, 5))
UNIFORM = replace(POLICIES["decide"], selector=SELECTORS["random"], floor=0.0)


def plain(n: int) -> ItemBank:
    return ItemBank("b", [str(k) for k in range(n)], (), np.zeros((n, 1)), np.zeros(n), calibrated=False)


def calibrated(n: int, seed: int = 1) -> ItemBank:
    rng = np.random.default_rng(seed)
    return ItemBank("b", [str(k) for k in range(n)], (), rng.lognormal(0, 0.4, (n, 1)), rng.normal(0.8, 1.5, n))


def test_kept_and_lost_answers_start_at_90_percent_and_have_a_posterior_each() -> None:
    earlier = EarlierAnswers("main", np.array([1.0, 1.0, 1.0, 0.0, 0.0]))
    before = earlier.predicted(EVEN, NONE.astype(int), NONE)
    np.testing.assert_allclose(before, [[0.9, 0.9, 0.9, 0.1, 0.1]])
    after = earlier.predicted(EVEN, np.array([[0, 3]]), np.array([[1.0, 1.0]]))
    kept, lost = GUESS_WORTH * 0.1 / (GUESS_WORTH + 1), (1 + GUESS_WORTH * 0.1) / (GUESS_WORTH + 1)
    np.testing.assert_allclose(after, [[1 - kept] * 3 + [lost] * 2])


def test_items_without_an_earlier_score_have_the_bank_s_prediction() -> None:
    earlier = EarlierAnswers("main", np.array([1.0, NAN, 0.0, NAN, NAN]))
    bank = np.array([[0.5, 0.6, 0.5, 0.2, 0.7]])
    for items, scores in (([[]], [[]]), ([[0, 1, 2]], [[1.0, 0.0, 0.0]]), ([[1, 3]], [[1.0, NAN]])):
        found = earlier.predicted(EVEN, np.array(items, dtype=int), np.array(scores), bank)
        np.testing.assert_allclose(found[0, [1, 3, 4]], bank[0, [1, 3, 4]])
        assert found[0, 0] > 0.5 > found[0, 2]


@pytest.mark.parametrize("truth", ["earlier", "bank"])
def test_the_predictor_that_the_answers_favour_gets_the_weight(truth: str) -> None:
    rng = np.random.default_rng(2)
    n = 200
    bank = np.where(rng.random(n) < 0.5, 0.85, 0.15)[None]
    before = np.round(rng.random(n))
    scores = before if truth == "earlier" else np.round(bank[0])
    earlier = EarlierAnswers("main", before)
    items = np.arange(60)[None]
    found = earlier.predicted(np.ones((1, n)), items, scores[None, :60], bank)
    aim = np.where(before == 1, 1.0, 0.0) if truth == "earlier" else bank[0]
    assert np.abs(found - aim).mean() < 0.05


def test_one_right_score_of_a_bank_that_is_right_costs_an_earlier_run_little() -> None:
    """The bank has odds of e^3 against each other model before the first answer."""
    n = 100
    bank = np.full((1, n), 0.6)
    found = EarlierAnswers("main", np.ones(n)).predicted(np.ones((1, n)), NONE.astype(int), NONE, bank)
    others = [0.9, *(1 / (1 + np.exp(-np.log(1.5) - k)) for k in (1.0, 2.0, 3.0, 4.0))]
    expected = (np.exp(3.0) * 0.6 + sum(others)) / (np.exp(3.0) + len(others))
    np.testing.assert_allclose(found, expected)


def test_predictions_stay_inside_and_a_missing_answer_says_nothing() -> None:
    earlier = EarlierAnswers("main", np.array([1.0, 0.0, 0.25, NAN, 1.0]))
    bank = np.array([[1.0, 0.0, 0.5, 0.5, 0.5]])
    items, scores = np.array([[0, 1, 4]]), np.array([[1.0, 0.0, NAN]])
    found = earlier.predicted(EVEN, items, scores, bank)
    assert (found >= RAREST).all()
    assert (found <= 1 - RAREST).all()
    np.testing.assert_allclose(found, earlier.predicted(EVEN, items[:, :2], scores[:, :2], bank))


@pytest.mark.parametrize("bank", [plain(60), calibrated(60)], ids=["plain", "calibrated"])
def test_recorded_propensities_are_those_of_the_draws(bank: ItemBank) -> None:
    """Of many first draws each item is as frequent as its propensity says, and unsure items are drawn more often."""
    scores = (np.arange(60) < 40).astype(float)
    earlier = np.where(np.arange(60) % 3 == 0, NAN, scores)
    policy = (POLICIES["decide"] if bank.calibrated else UNIFORM).by_predictions
    runs = 6000
    session = Session(bank, policy, seed=3, subjects=runs, earlier=EarlierAnswers("main", earlier))
    proposal = session.ask(1)
    assert proposal is not None
    items, propensities = proposal.items[:, 0], proposal.propensities[:, 0]
    chance = np.zeros(60)
    chance[items] = propensities
    assert chance.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.bincount(items, minlength=60) / runs, chance, atol=5 * (0.03 / runs) ** 0.5)
    if not bank.calibrated:
        assert chance[np.isnan(earlier)].min() > chance[~np.isnan(earlier)].max()


def test_without_earlier_answers_and_after_forgetting_them_the_bank_predicts() -> None:
    bank = calibrated(80)
    scores = (np.random.default_rng(5).random(80) < 0.7).astype(float)
    claim = Claim(scores.sum() - 8)
    forgetful = Session(bank, POLICIES["decide"], seed=4, claims=[claim], earlier=EarlierAnswers("main", 1 - scores))
    forgetful.forget_earlier()
    usual = Session(bank, POLICIES["decide"], seed=4, claims=[claim])
    while (proposal := usual.ask()) is not None:
        other = forgetful.ask()
        assert other is not None
        np.testing.assert_array_equal(other.items, proposal.items)
        np.testing.assert_allclose(other.design, proposal.design)
        usual.tell(scores[proposal.items])
        forgetful.tell(scores[other.items])


@pytest.mark.slow
@pytest.mark.parametrize("policy", [POLICIES["decide"], UNIFORM], ids=["decide", "random"])
def test_own_answers_of_the_same_seed_keep_the_error_rate(policy: Policy) -> None:
    """The first run asked what the second one would with the same stream; the bank is far off."""
    bank = replace(calibrated(300), intercept=calibrated(300).intercept + 1.5)
    chance = bank.probability(np.full((1, 1), -1.5))[0]
    candidate = (np.random.default_rng(6).random(300) < chance).astype(float)
    claim = Claim(candidate.sum() + 1.0)
    runs, false = 400, 0
    for seed in range(runs):
        first = Session(bank, replace(policy, budget=60), seed=seed, claims=[claim])
        while (proposal := first.ask()) is not None:
            first.tell(candidate[proposal.items])
        known = np.full(300, NAN)
        known[first.log().items] = first.log().scores
        run = EarlierRun.of(PredictionRecord("main"), {str(n): known[n] for n in np.flatnonzero(~np.isnan(known))})
        session = Session(
            bank,
            replace(policy, budget="50%"),
            seed=run.stream(seed),
            claims=[claim],
            earlier=EarlierAnswers("main", known),
        )
        while (proposal := session.ask()) is not None:
            session.tell(candidate[proposal.items])
        false += int(decide(session.log(), [claim]).outcome[0] == 1)
    assert false / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
