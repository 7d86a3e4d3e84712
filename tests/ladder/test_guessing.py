"""Ladders that are not distinguishable from guessing."""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.guessing import guessed_levels
from pytest_adaptive_eval.ladder.policy import Climb, levelled
from pytest_adaptive_eval.ladder.result import Ladder

LEVELS, QUERIES = 40, 20


def climbed(accuracy: float, seed: int, guess: tuple[float, ...] = (0.15,) * LEVELS) -> Session:
    """A climb of a subject with the same accuracy at every level."""
    bank = ItemBank.uncalibrated(
        "task", [Item(f"t-{n // QUERIES + 1}-{n % QUERIES}", "?") for n in range(LEVELS * QUERIES)]
    )
    policy = Policy(selector=Climb(QUERIES, guess=guess), floor=0.0, budget="100%", batch=QUERIES, stop="level")
    session = Session(bank, policy, seed=seed)
    rng = np.random.default_rng(seed)
    while (proposal := session.ask()) is not None:
        session.tell((rng.random(proposal.items.shape) < accuracy).astype(float))
    return session


def test_few_levels_or_answers_decide_nothing() -> None:
    nothing = np.zeros(10)
    assert guessed_levels([nothing, nothing], [0.2, 0.2]) == 0
    assert guessed_levels([np.zeros(9)] * 3, [0.2] * 3) == 0
    assert guessed_levels([nothing] * 3, [0.2] * 3) == 3


def test_missing_answers_are_not_counted() -> None:
    level = np.array([np.nan] * 5 + [0.0] * 5)
    assert guessed_levels([level] * 5, [0.2] * 5) == 0
    assert guessed_levels([level] * 6, [0.2] * 6) == 6


def test_the_bound_is_that_of_the_binomial_distribution() -> None:
    # mean 4.5 and standard deviation 1.956 of 30 guesses: the bound is 7.72
    for right, expected in ((7, 3), (8, 0)):
        answers = np.array([1.0] * right + [0.0] * (30 - right))
        assert guessed_levels(list(answers.reshape(3, 10)), [0.15] * 3) == expected


def test_a_guesser_ends_after_few_levels_and_a_subject_that_knows_goes_on() -> None:
    guessers = [climbed(0.1, seed) for seed in range(10)]
    assert {session.stop[0] for session in guessers} <= {StopReason.GUESSING, StopReason.LEVEL}
    assert max(session.asked for session in guessers) <= 5 * QUERIES
    assert all(climbed(0.6, seed).asked == LEVELS * QUERIES for seed in range(5))


def test_without_a_floor_nobody_guesses() -> None:
    assert climbed(0.3, 1, ()).asked == LEVELS * QUERIES


def test_levels_alike_bound_the_levels_above_them_more_closely() -> None:
    scores = (np.array([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),) * 4
    alone, alike = (Ladder(scores, 40, alike=n) for n in (1, 3))
    assert alike.area == alone.area
    assert alike.interval().high < alone.interval().high


def test_the_last_level_is_above_the_rate_that_ends_the_ladder() -> None:
    scores = tuple(np.array([1.0] * right + [0.0] * (10 - right)) for right in (10, 6, 4, 1))
    assert Ladder(scores, 4).last_level == 4
    halved = Climb(10, 0.5).ladder(scores, 4)
    assert halved.last_level == 2 == Climb(10, 0.5).last(halved, 0.95).estimate
    assert str(halved) == "2.1/2"


def test_guess_floors_travel() -> None:
    climb = Climb(5, guess=(0.2, 0.1))
    assert levelled(climb.name, {**climb.to_json()}) == climb
    assert "guess" not in Climb(5).to_json()
