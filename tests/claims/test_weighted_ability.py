"""Abilities as all answers would give them, from random draws."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item


def bank(n: int = 150, dimensions: int = 2, seed: int = 0) -> ItemBank:
    rng = np.random.default_rng(seed)
    items = [Item(f"q{i}", "?", "yes") for i in range(n)]
    return ItemBank("b", [i.id for i in items], items, rng.uniform(0.3, 1.2, (n, dimensions)), rng.normal(size=n))


def log(of: ItemBank, right: np.ndarray, budget: int, seed: int = 0, selector: str = "information") -> DesignLog:
    session = Session(of, Policy(selector=SELECTORS[selector], floor=0.5, budget=budget, batch=8), seed=seed)
    while (proposal := session.ask()) is not None:
        session.tell(right[proposal.items])
    return session.log()


def all_answers(of: ItemBank, right: np.ndarray) -> np.ndarray:
    start = MAP().prior(1, of.dimensions)
    return np.asarray(MAP().estimate(right[None], of.discrimination[None], of.intercept[None], None, start).theta[0])


@pytest.mark.parametrize("dimensions", [1, 2, 4])
def test_with_every_answer_it_is_the_mode_and_has_no_error(dimensions: int) -> None:
    of = bank(dimensions=dimensions)
    right = (np.random.default_rng(1).random(150) < 0.6).astype(float)
    found = weighted_ability(of, log(of, right, 150))
    np.testing.assert_allclose(found.theta, all_answers(of, right), atol=1e-5)
    assert (found.standard_error == 0).all()


def test_uniform_draws_solve_the_sum_scaled_up() -> None:
    """One dimension, all items alike: the estimate follows from the share of right answers alone."""
    items = [Item(f"q{i}", "?", "yes") for i in range(200)]
    of = ItemBank("b", [i.id for i in items], items, np.ones(200), np.zeros(200))
    right = np.zeros(200)
    right[:120] = 1.0
    drawn = log(of, right, 80, selector="random")
    found = weighted_ability(of, drawn)
    # mean over t of (known residuals + (200 - t) r_t): residuals of alike items differ by their scores alone
    p = 1 / (1 + np.exp(-found.theta[0]))
    r = drawn.scores - p
    mean = float(np.mean(r.cumsum() - r + r * (200 - np.arange(80))))
    assert mean == pytest.approx(found.theta[0], abs=1e-5)
    assert found.theta[0] == pytest.approx(np.log(0.6 / 0.4), abs=3 * found.standard_error[0])


@pytest.mark.slow
def test_it_tends_to_the_same_whatever_was_preferred() -> None:
    of = bank(400)
    rng = np.random.default_rng(3)
    right = (rng.random(400) < np.where(np.arange(400) % 2, 0.9, 0.3)).astype(float)  # as no ability would answer
    truth = all_answers(of, right)
    for selector in ("information", "spread", "random"):
        found = np.array([weighted_ability(of, log(of, right, 120, seed, selector)).theta for seed in range(60)])
        assert (np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0) / np.sqrt(60) + 0.03).all()


def test_what_it_cannot_do_is_said() -> None:
    of = bank()
    right = np.ones(150)
    drawn = log(of, right, 20)
    for bad, counts in (
        (drawn[slice(0, 1)], "1 of 1"),
        (dataclasses.replace(drawn, propensities=np.full(20, np.nan)), "0 of 20"),
        (dataclasses.replace(drawn, scores=np.where(np.arange(20) == 3, np.nan, 1.0)), "19 of 20"),
    ):
        with pytest.raises(EstimationError, match=f"^{counts} draws have a propensity and a score; a weighted ability"):
            weighted_ability(of, bad)
