"""Interviews in step have the items and estimates of sessions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.cat import block_draws
from pytest_adaptive_eval.cat.block_draws import BlockDraws
from pytest_adaptive_eval.cat.lockstep import Interviews, interview_in_step, servable, uniform_draws
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selection import BLOCK, View, propose
from pytest_adaptive_eval.cat.selectors import Information, MaximumInformation, Random, Spread, Variance
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.irt.estimation import EAP
from pytest_adaptive_eval.items.bank import ItemBank

POLICIES_OF_REPLAYS = {
    "variance": replace(POLICIES["estimate"], assisted=False),
    "spread": replace(POLICIES["decide"], batch=1),
    "batches": POLICIES["decide"],
    "variance, batches, floor": Policy(Variance(), 0.2, batch=7),
    "random": Policy(Random(), 0.3),
}


def make_bank(n: int, seed: int = 0, steepest: float = 2.5, guess: float = 0.0) -> ItemBank:
    rng = np.random.default_rng(seed)
    slopes = np.minimum(rng.lognormal(0, 0.4, n), steepest) * np.where(rng.random(n) < 0.05, -1.0, 1.0)
    return ItemBank("b", [f"i{i}" for i in range(n)], (), slopes, rng.normal(0.5, 1.3, n), np.full(n, guess))


def make_scores(bank: ItemBank, seed: int, subjects: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scores = (rng.random((subjects, len(bank))) < bank.probability(rng.normal(0, 1.5, (subjects, 1)))).astype(float)
    scores[rng.random(scores.shape) < 0.02] = np.nan
    return scores


def session_of(bank: ItemBank, policy: Policy, scores: np.ndarray, seeds: list[int]) -> Session:
    session = Session(bank, policy, seed=seeds, subjects=len(scores), designed=False)
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session


def in_step(bank: ItemBank, policy: Policy, scores: np.ndarray, count: int, counts: tuple[int, ...] = ()) -> Interviews:
    numbers = np.stack([np.random.default_rng(s).random(count) for s in range(len(scores))])
    return interview_in_step([bank], np.zeros(len(scores), dtype=int), policy, scores, numbers, counts)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES_OF_REPLAYS)
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**31), st.integers(161, 2000), st.floats(0.2, 6.0))
def test_interviews_are_those_of_sessions(name: str, seed: int, n: int, steepest: float) -> None:
    bank, policy = make_bank(n, seed, steepest), replace(POLICIES_OF_REPLAYS[name], budget=160)
    scores = make_scores(bank, seed)
    session, found = session_of(bank, policy, scores, [0, 1, 2]), in_step(bank, policy, scores, 160, (160,))
    np.testing.assert_array_equal(found.items, session.answers[0])
    np.testing.assert_allclose(found.theta, session.trace[:, :, 0], atol=1e-7)
    np.testing.assert_allclose(found.estimates[160].covariance, session.estimate.covariance, rtol=1e-3)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("name", ["variance", "spread"])
def test_subjects_of_several_banks_are_interviewed_as_if_alone(name: str) -> None:
    banks = [make_bank(700, seed, steepest) for seed, steepest in ((1, 2.5), (2, 1.0), (3, 4.0))]
    of = np.array([0, 2, 1, 2, 0])
    scores = np.concatenate([make_scores(banks[b], 10 + s, 1) for s, b in enumerate(of)])
    numbers = np.stack([np.random.default_rng(s).random(200) for s in range(5)])
    policy = POLICIES_OF_REPLAYS[name]
    together = interview_in_step(banks, of, policy, scores, numbers)
    for s, b in enumerate(of):
        alone = interview_in_step([banks[b]], np.array([0]), policy, scores[[s]], numbers[[s]])
        np.testing.assert_array_equal(together.items[s], alone.items[0])


def test_a_count_within_a_batch_has_the_estimate_of_an_interview_that_ends_there() -> None:
    bank, policy = make_bank(300), POLICIES["decide"]
    scores = make_scores(bank, 1)
    found = in_step(bank, policy, scores, 100, (3, 70, 100))
    for count in (3, 70, 100):
        session = session_of(bank, replace(policy, budget=count), scores, [0, 1, 2])
        np.testing.assert_allclose(found.estimates[count].theta, session.estimate.theta, atol=1e-8)
        np.testing.assert_allclose(found.estimates[count].covariance, session.estimate.covariance, rtol=1e-6)


def test_most_draws_are_made_without_rating_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    rated = []

    def propose_noted(*given, **named):
        rated.append(given)
        return propose(*given, **named)

    monkeypatch.setattr(block_draws, "propose", propose_noted)
    bank = make_bank(3000)
    in_step(bank, POLICIES_OF_REPLAYS["variance"], make_scores(bank, 0), 400)
    assert len(rated) < 0.03 * 400 * 3


def test_a_draw_that_the_sums_cannot_tell_rates_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    bank = make_bank(500)
    scores = make_scores(bank, 0)
    for name in ("variance, batches, floor", "spread"):
        sure = in_step(bank, POLICIES_OF_REPLAYS[name], scores, 60)
        with monkeypatch.context() as patch:
            patch.setattr(block_draws, "ABILITY_ERROR", 1.0)
            patch.setattr(block_draws, "SINGLE_ERROR", 1.0)
            never_sure = in_step(bank, POLICIES_OF_REPLAYS[name], scores, 60)
        np.testing.assert_array_equal(never_sure.items, sure.items)


def block_sums(bank: ItemBank, selector: Spread | Variance, view: View) -> np.ndarray:
    """Return the shares of the blocks in the ratings of all items not asked."""
    criteria = selector.criterion(view)[0]
    criteria[view.asked[0]] = 0.0
    sums = np.concatenate([criteria, np.zeros(-len(bank) % BLOCK)]).reshape(-1, BLOCK).sum(axis=1)
    return np.asarray(sums / sums.sum())


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.floats(-3, 3), st.floats(-0.99, 0.99), st.floats(0.0, 1.04))
def test_interpolated_sums_err_less_than_their_bound(seed: int, theta: float, step: float, shrinkage: float) -> None:
    bank = make_bank(510, seed)
    asked = np.random.default_rng(seed).permutation(510)[:120]
    for selector, variance in ((Spread(), 0.5), (Variance(), 0.06)):
        draws = BlockDraws([bank], np.array([0]), selector, 0.0, np.zeros((1, 121)))
        draws._renew(0, theta, variance)
        for item in asked:
            draws._remove(np.array([item]))
        near, less = np.array([theta + step * draws._radius[0]]), np.array([shrinkage * variance])
        assert not draws._renewed(near, less, 1000).any()
        error = float(np.max(draws._interpolation_error()))
        assert draws._centre[0] == theta
        exact = block_sums(bank, selector, View(bank, near[:, None], less[:, None, None], None, asked[None]))
        found = draws._at(np.array([0]), near, less)[0]
        np.testing.assert_allclose(found / found.sum(), exact, rtol=0, atol=2 * error + 1e-12)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**31),
    st.floats(-6, 6),
    st.floats(0.01, 4.0),
    st.integers(0, 99),
    st.integers(100, 3000),
    st.floats(0.5, 6.0),
)
def test_sums_in_single_precision_err_less_than_their_bound(
    seed: int, theta: float, variance: float, count: int, n: int, steepest: float
) -> None:
    bank, selector = make_bank(n, seed, steepest), Variance()
    asked = np.random.default_rng(seed).permutation(n)[:count]
    draws = BlockDraws([bank], np.array([0]), selector, 0.0, np.zeros((1, 100)))
    for item in asked:
        draws._remove(np.array([item]))
    at, near, power = np.array([theta]), np.array([variance]), selector.power(count)
    [sums], _ = draws._in_single_precision(np.array([0]), at, near, power)
    exact = block_sums(bank, selector, View(bank, at[:, None], near[:, None, None], None, asked[None]))
    bound = float(draws._single_error(at, power)[0])
    np.testing.assert_allclose((sums / sums.sum()).cumsum(), exact.cumsum(), rtol=0, atol=2 * bound)


def test_uniform_draws_are_those_of_the_selector() -> None:
    bank, before = make_bank(200), np.random.default_rng(1).permutation(200)[None, :40]
    numbers = np.random.default_rng(5).random((1, 150))
    found = uniform_draws(numbers, before, 200)
    view = View(bank, np.zeros((1, 1)), np.ones((1, 1, 1)), None, before)
    np.testing.assert_array_equal(found, propose(Random(), view, 150, 0.3, [np.random.default_rng(5)]).items)


def test_other_selectors_estimators_and_banks_need_sessions() -> None:
    bank, policy = make_bank(50), Policy(Spread(), 0.5)
    assert servable(bank, policy)
    assert not servable(bank, Policy(MaximumInformation(), 0.0))
    assert not servable(bank, Policy(Information(), 0.1))
    assert not servable(bank, replace(policy, estimator=EAP()))
    assert not servable(make_bank(50, guess=0.2), policy)
    assert not servable(replace(bank, calibrated=False), policy)
    flat = np.random.default_rng(0).normal(size=(50, 2))
    assert not servable(ItemBank("b", bank.ids, (), flat, bank.intercept), policy)
