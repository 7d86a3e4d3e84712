"""Draws by sums over blocks of items are those by the ratings of all items."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.cat import block_draws
from pytest_adaptive_eval.cat.block_draws import FEWEST, BlockDraws, smooth_selector
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selection import BLOCK, View, propose
from pytest_adaptive_eval.cat.selectors import MaximumInformation, Random, Spread, Variance
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.items.bank import ItemBank


def make_bank(n: int, seed: int = 0, steepest: float = 2.5, guess: float = 0.0) -> ItemBank:
    rng = np.random.default_rng(seed)
    slopes = np.minimum(rng.lognormal(0, 0.4, n), steepest) * np.where(rng.random(n) < 0.05, -1.0, 1.0)
    return ItemBank("b", [f"i{i}" for i in range(n)], (), slopes, rng.normal(0.5, 1.3, n), np.full(n, guess))


def interview(bank: ItemBank, policy: Policy, *, subjects: int = 3, seed: int = 0, batch: int | None = None) -> Session:
    rng = np.random.default_rng(seed)
    session = Session(bank, policy, seed=seed, subjects=subjects, designed=False)
    abilities = rng.normal(0, 1.5, (subjects, 1))
    scores = (rng.random((subjects, len(bank))) < bank.probability(abilities)).astype(float)
    scores[rng.random(scores.shape) < 0.02] = np.nan
    while (proposal := session.ask(batch)) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


POLICIES_OF_REPLAYS = {
    "variance": replace(POLICIES["estimate"], assisted=False),
    "spread": replace(POLICIES["decide"], batch=1),
    "batches": POLICIES["decide"],
    "uniform": Policy(Random(), 0.0),
    "random": Policy(Random(), 0.3),
}


@pytest.mark.parametrize("name", POLICIES_OF_REPLAYS)
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**31), st.integers(FEWEST, 4 * FEWEST), st.floats(0.2, 6.0))
def test_interviews_are_those_that_rate_all_items(name: str, seed: int, n: int, steepest: float) -> None:
    bank, policy = make_bank(n, seed, steepest), replace(POLICIES_OF_REPLAYS[name], budget=160)
    quick = interview(bank, policy, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pytest_adaptive_eval.cat.session.smooth_selector", lambda *_: None)
        exact = interview(bank, policy, seed=seed)
    np.testing.assert_array_equal(quick.answers[0], exact.answers[0])


def test_most_draws_are_made_without_rating_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    rated = []

    def propose_noted(selector, view, *rest, **named):
        rated.append(len(view.theta))
        return propose(selector, view, *rest, **named)

    monkeypatch.setattr("pytest_adaptive_eval.cat.session.propose", propose_noted)
    monkeypatch.setattr(block_draws, "propose", propose_noted)
    interview(make_bank(3000), replace(POLICIES_OF_REPLAYS["spread"], budget=200), subjects=4)
    assert sum(rated) < 0.05 * 200 * 4


def test_a_draw_that_the_sums_cannot_tell_rates_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_draws, "ABILITY_ERROR", 1.0)
    bank, policy = make_bank(FEWEST), replace(POLICIES_OF_REPLAYS["spread"], budget=30)
    never_sure = interview(bank, policy, batch=3)
    monkeypatch.undo()
    np.testing.assert_array_equal(never_sure.answers[0], interview(bank, policy, batch=3).answers[0])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(-3, 3), st.floats(-0.99, 0.99), st.floats(0.53, 1.04))
def test_interpolated_sums_err_less_than_their_bound(seed: int, theta: float, step: float, shrinkage: float) -> None:
    bank = make_bank(FEWEST, seed)
    for selector, variance in ((Spread(), 0.5), (Variance(), 0.06)):
        draws = BlockDraws(bank, selector, 0.0, 1)
        asked = np.random.default_rng(seed).permutation(FEWEST)[None, :120]
        draws._renew(0, asked[0], theta, variance)
        near = theta + step * draws._radius
        view = View(bank, np.array([[near]]), np.array([[[shrinkage * variance]]]), None, asked)
        draws._known[:] = 120
        [error] = draws._update(np.array([0]), view)
        assert draws._centre[0] == theta
        criteria = selector.criterion(view)[0]
        criteria[asked[0]] = 0.0
        exact = criteria.reshape(-1, BLOCK).sum(axis=1)
        found = draws._at(np.array([0]), view)[0]
        np.testing.assert_allclose(found / found.sum(), exact / exact.sum(), rtol=0, atol=2 * error + 1e-12)


def test_other_selectors_and_banks_rate_all_items() -> None:
    bank = make_bank(FEWEST)
    assert smooth_selector(Spread(), bank) == Spread()
    assert smooth_selector(MaximumInformation(), bank) is None
    assert smooth_selector(Spread(), make_bank(FEWEST - 1)) is None
    assert smooth_selector(Spread(), make_bank(FEWEST, guess=0.2)) is None
    flat = np.random.default_rng(0).normal(size=(FEWEST, 2))
    assert smooth_selector(Spread(), ItemBank("b", bank.ids, (), flat, bank.intercept)) is None
