"""Gates on a loss of ability: the same claim as on the accuracy, in logits, and baselines without an ability."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import ability_at, accuracy_at
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

N = 120


def bank(guess: float = 0.0) -> ItemBank:
    rng = np.random.default_rng(0)
    ids = [f"q{i}" for i in range(N)]
    items = [Item(name, "?", "1") for name in ids]
    return ItemBank("good", ids, items, rng.lognormal(0, 0.3, N), rng.normal(0, 1, N), np.full(N, guess))


def answers(right: int, seed: int = 1) -> np.ndarray:
    scores = np.zeros(N)
    scores[np.random.default_rng(seed).permutation(N)[:right]] = 1.0
    return scores


def loss(margin: float, name: str = "old", metric: str = "ability") -> Condition:
    return Condition(metric, "not_worse_than", margin, name)


def judged(condition: Condition, old: Baseline, scores: np.ndarray, **more: Any) -> Verdict:
    """The verdict of a whole run of the candidate with these scores."""
    claims = condition.claims(bank(), {"old": old})
    session = Session(bank(), replace(POLICIES["decide"], budget="70%"), seed=1, claims=claims, baseline=old)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    result = SessionResult.of("eval", session, statuses={}, planned=(condition,), baselines={"old": old}, **more)
    return result.judge(condition)


@given(st.integers(1, N - 1), st.floats(0.01, 2.0))
def test_it_is_the_claim_on_the_accuracy_at_the_lower_ability(right: int, margin: float) -> None:
    old = Baseline("old", answers(right))
    ability = ability_at(bank(), right / N)
    (claim,) = loss(margin).claims(bank(), {"old": old})
    assert claim.total / N == pytest.approx(accuracy_at(bank(), ability - margin), abs=1e-6)
    points = right / N - claim.total / N
    (same,) = loss(min(points, 0.999), metric="accuracy").claims(bank(), {"old": old})
    assert (claim.total, claim.assumed, claim.rare) == (pytest.approx(same.total), pytest.approx(same.assumed), True)


def test_a_candidate_as_good_passes_and_a_worse_one_fails_in_logits() -> None:
    base = answers(80)
    old = Baseline("old", base)
    verdict = judged(loss(0.5), old, base)
    assert verdict.outcome is Outcome.PASS
    assert verdict.metric == "ability less that of old"
    assert verdict.requirement == ">= -.50"
    assert verdict.interval is not None
    assert -0.5 <= verdict.interval.low <= verdict.interval.estimate <= 0.2
    worse = base.copy()
    worse[np.flatnonzero(base)[:40]] = 0.0
    verdict = judged(loss(0.5), old, worse)
    assert verdict.outcome is Outcome.FAIL
    assert verdict.interval is not None
    assert verdict.interval.high <= -0.5 + 1e-6


def test_a_partial_baseline_is_refused_with_the_reason() -> None:
    session = Session(bank(), POLICIES["decide"], seed=1)
    while (proposal := session.ask()) is not None:
        session.tell(answers(80)[proposal.items])
    log = session.log()
    known = np.full(N, np.nan)
    known[log.items] = log.scores
    partial = Baseline("old", known, log)
    with pytest.raises(BaselineError, match=rf"scores on {len(log)} of {N} items, expected all.*budget = \"100%\""):
        loss(0.3).claims(bank(), {"old": partial})


@pytest.mark.parametrize(
    ("right", "margin", "guess", "said"),
    [
        (N, 0.3, 0.0, "has the accuracy 1.000, which no ability within 8 logits of 0 has"),
        (0, 0.3, 0.0, "has the accuracy .000, which no ability"),
        (15, 0.3, 0.25, "has the accuracy .125, which no ability"),
        (60, 9.0, 0.0, "margin is 9, and the baseline 'old' has the ability"),
    ],
)
def test_a_baseline_beyond_the_scale_is_refused(right: int, margin: float, guess: float, said: str) -> None:
    with pytest.raises(BaselineError, match=re.escape(said)):
        loss(margin).claims(bank(guess), {"old": Baseline("old", answers(right))})


@pytest.mark.parametrize("margin", [0.0, -0.1, 16.0])
def test_a_margin_is_a_loss_on_the_scale(margin: float) -> None:
    with pytest.raises(ConfigError, match=rf"margin is {margin}, expected a loss above 0"):
        loss(margin)


def test_the_forecast_is_that_of_the_accuracy_with_the_same_loss() -> None:
    old = Baseline("old", answers(80))
    points = 80 / N - accuracy_at(bank(), ability_at(bank(), 80 / N) - 0.4)
    (own,) = outlooks(loss(0.4), bank(), POLICIES["decide"], old)
    (same,) = outlooks(loss(points, metric="accuracy"), bank(), POLICIES["decide"], old)
    assert own.expected == pytest.approx(same.expected, rel=1e-3)
    assert outlooks(loss(0.4), bank(), POLICIES["decide"], None)  # before the baseline is known


@pytest.mark.slow
def test_errors_are_as_seldom_as_stated_for_all_kinds_of_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import ability_losses

    rng = np.random.default_rng(11)
    base = ability_losses.sheets(ability_losses.chances(0.8), 80, 1, rng)[0]
    old = Baseline("old", base)
    runs = 300
    for name in ("good", "shuffled"):
        of = ability_losses.banks()[name]
        for draw in ability_losses.candidates(base, 5, runs, rng).values():
            for side, sign in ((Outcome.PASS, 1), (Outcome.FAIL, -1)):
                condition = ability_losses.ability_loss(of, base, 0.05, side)
                session = ability_losses.interview(of, ability_losses.DECIDE, draw(), rng, condition, baseline=old)
                rate = (ability_losses.outcomes(session, condition, old) == sign).mean()
                assert rate <= 0.05 + 3.0 * (0.05 * 0.95 / runs) ** 0.5
