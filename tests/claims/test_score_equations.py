"""Bounds of parts of ability by bets on the score equations."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.score_equations import ScoreEquations
from pytest_adaptive_eval.claims.weighted_ability import limits, weighted_ability
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.modalities import asked_in_formats

BANK = Path(__file__).parents[2] / "fixtures" / "banks" / "cross.bank"


@cache
def pairs() -> ItemBank:
    return asked_in_formats(read_bank(BANK))


@cache
def answers(kind: str) -> np.ndarray:
    rng, bank = np.random.default_rng(1), pairs()
    hardest = np.argsort(bank.probability(np.zeros((1, 4)))[0])[: len(bank) // 33]
    scores = (rng.random(len(bank)) < bank.probability(bank.in_formats.standings[5:6])[0]).astype(float)
    if kind == "hardest alone":
        scores = np.isin(np.arange(len(bank)), hardest).astype(float)
    if kind == "near-perfect":
        scores = (np.arange(len(bank)) % 200 != 0).astype(float)
    return scores


def log(scores: np.ndarray, budget: int | str, seed: int = 0, selector: str = "leverage") -> DesignLog:
    floor = 0.0 if selector == "random" else 0.5
    policy = Policy(selector=SELECTORS[selector], floor=floor, budget=budget, batch=8)
    session = Session(pairs(), policy, seed=seed)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    return session.log()


def truth(scores: np.ndarray) -> np.ndarray:
    return weighted_ability(pairs(), log(scores, "100%", selector="random")).theta


@pytest.mark.parametrize("kind", ["ordinary", "hardest alone", "near-perfect"])
def test_all_answers_fulfil_the_score_equations_within_the_limits(kind: str) -> None:
    bank, theta = pairs(), truth(answers(kind))
    low, high = limits(bank)
    residual = bank.discrimination.T @ (answers(kind) - bank.probability(theta[None])[0]) - theta
    inside = (low < theta) & (theta < high)
    np.testing.assert_allclose(residual[inside], 0.0, atol=1e-4)
    assert (residual[theta <= low] <= 0).all()
    assert (residual[theta >= high] >= 0).all()


@pytest.mark.parametrize("selector", ["leverage", "random", "information"])
def test_largest_losses_are_by_the_propensities_of_undrawn_items(selector: str) -> None:
    drawn = log(answers("ordinary"), 48, selector=selector)
    inverses = ScoreEquations(pairs(), drawn)._largest_inverses
    later = drawn.items[24:]
    # an item's propensity only grows until it is drawn, so its inverse at the block's start is a bound
    for block, items in ((0, drawn.items), (1, later)):
        own = 1.0 / drawn.propensities[-len(items) :]
        assert (inverses[block, items] >= own * (1 - 1e-9)).all()
    assert (inverses[1, drawn.items[:24]] == 0).all()
    if selector != "information":
        assert inverses[0, drawn.items[0]] == pytest.approx(1.0 / drawn.propensities[0])


def test_all_answers_leave_no_doubt_and_a_missing_one_does() -> None:
    scores = answers("ordinary")
    whole = log(scores, "100%", selector="random")
    own = truth(scores)
    for part in range(4):
        assert ScoreEquations(pairs(), whole).bound(part, 1, 0.95) == pytest.approx(own[part], abs=1e-6)
    lost = dataclasses.replace(whole, scores=np.where(np.arange(len(whole)) % 50 == 0, np.nan, whole.scores))
    equations = ScoreEquations(pairs(), lost)
    assert not equations.refuses(own[0] - 0.001, 0, 1, 0.95)
    assert not equations.refuses(own[0] + 0.001, 0, -1, 0.95)


def test_decoding_noise_moves_a_bound_outwards() -> None:
    drawn = log(answers("ordinary"), 150)
    noisy = dataclasses.replace(drawn, noise=0.05)
    quiet, wide = (ScoreEquations(pairs(), one).bound(0, 1, 0.95) for one in (drawn, noisy))
    assert wide < quiet - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ordinary", "hardest alone", "near-perfect"])
@pytest.mark.parametrize("budget", [55, 220])
def test_the_ability_by_all_answers_is_seldom_refused(kind: str, budget: int) -> None:
    theta, runs = truth(answers(kind)), 60
    low, high = limits(pairs())
    refused = np.zeros((2, 4))
    for seed in range(runs):
        equations = ScoreEquations(pairs(), log(answers(kind), budget, seed))
        for part, own in enumerate(theta):
            refused[0, part] += equations.refuses(min(own + 0.01, high[part]), part, 1, 0.95)
            refused[1, part] += equations.refuses(max(own - 0.01, low[part]), part, -1, 0.95)
    assert (refused / runs <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5).all()


def test_a_part_one_standard_deviation_away_is_decided() -> None:
    scores = answers("ordinary")
    theta, decided = truth(scores), np.zeros(2)
    for seed in range(4):
        equations = ScoreEquations(pairs(), log(scores, "30%", seed))
        decided += [equations.refuses(theta[3] - 1.0, 3, 1, 0.95), equations.refuses(theta[3] + 1.0, 3, -1, 0.95)]
    assert (decided >= 2).all()
