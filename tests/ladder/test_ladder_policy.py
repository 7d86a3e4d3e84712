"""Ways to ask a bank of levels: what they ask next, when they end, and what their answers say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import StatefulSelector
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb, by_level, levelled
from pytest_adaptive_eval.ladder.result import Ladder

NAN = np.nan


def bank(levels: int, queries: int) -> ItemBank:
    return ItemBank.uncalibrated(
        "task", [Item(f"t-{n // queries + 1}-{n % queries}", "?") for n in range(levels * queries)]
    )


def interview(way: Climb | AdaptiveClimb, accuracy: Any, seed: int = 0) -> Session:
    policy = Policy(selector=way, floor=0.0, budget="100%", batch=way.batch, stop="level")
    session = Session(bank(len(accuracy), way.queries), policy, seed=seed)
    rng = np.random.default_rng(seed)
    while (proposal := session.ask()) is not None:
        level = proposal.items[0] // way.queries
        session.tell((rng.random(len(level)) < np.asarray(accuracy)[level])[None].astype(float))
    return session


def result(session: Session) -> SessionResult:
    return SessionResult.of("task", session, statuses={"ok": session.asked})


def test_scores_by_level() -> None:
    levels = by_level(np.array([4, 0, 5, 9]), np.array([0.4, 0.0, NAN, 0.9]), 4)
    np.testing.assert_equal(levels, [[0.0], [0.4, NAN], [0.9]])
    assert by_level(np.empty(0, dtype=int), np.empty(0), 4) == []


def test_a_climb_asks_in_order_and_ends_where_it_fails() -> None:
    session = interview(Climb(4), [1.0, 1.0, 0.0, 1.0])
    np.testing.assert_equal(session.answers[0][0], np.arange(12))
    assert session.stop == [StopReason.LEVEL]
    assert interview(Climb(4), [1.0, 1.0]).stop == [StopReason.EXHAUSTED]


def test_a_level_is_failed_at_the_rate() -> None:
    way = Climb(4, 0.5)
    assert way.side(np.array([1.0, 1.0, 0.0])) == 0
    assert way.side(np.array([1.0, 1.0, 0.0, 0.0])) == -1
    assert way.side(np.array([1.0, 1.0, 1.0, 0.0])) == 1
    assert way.side(np.array([1.0, 1.0, NAN, 0.0])) == 1
    assert way.side(np.full(4, NAN)) == -1


def test_settled_levels_are_left_early() -> None:
    session = interview(Climb(30, 0.5, settle=True), [1.0, 1.0, 1.0, 0.0, 1.0])
    items = session.answers[0][0]
    counts = np.bincount(items // 30, minlength=5)
    assert session.stop == [StopReason.LEVEL]
    assert (counts[:4] >= 5).all()
    assert (counts[:4] < 15).all()
    assert counts[4] == 0
    found = result(session)
    last = found.climb.last(found.ladder, 0.95)
    assert (last.low, last.estimate, last.high) == (3, 3, 3)
    assert not found.last_level.at_least(4)
    assert found.last_level.at_least(3)
    with pytest.raises(
        ConfigError, match='auc needs all questions of each level, and stop = "decision" leaves some out'
    ):
        found.auc.at_least(1.0)


def test_denials_of_an_area_are_corrected_for_the_gates_of_the_run_and_grants_are_not() -> None:
    found = result(interview(Climb(20), [1.0, 0.7, 0.5, 0.2, 0.0], 2))
    shown = found.climb.area(found.ladder, 0.95)
    for family, denied in ((0, Outcome.FAIL), (1, Outcome.FAIL), (50, Outcome.INCONCLUSIVE)):
        metric = replace(found, family=family).auc
        assert metric.at_least(shown.low).outcome is Outcome.PASS
        assert metric.at_least(shown.low + 1e-6).outcome is Outcome.INCONCLUSIVE
        assert metric.at_least(shown.high).outcome is Outcome.INCONCLUSIVE
        assert metric.at_least(shown.high + 1e-6).outcome is denied
        assert metric.at_least(4.9).outcome is Outcome.FAIL


def test_questions_that_a_baseline_was_asked_count_though_one_has_no_score() -> None:
    found = result(interview(Climb(10), [1.0, 0.6, 0.0]))
    known = np.full(30, NAN)
    known[found.log.items] = found.log.scores
    known[3] = NAN
    asked = Baseline("old", known, found.log, climbed=True)
    verdict = replace(found, baselines={"old": asked}).auc.not_worse_than("old", margin=1.0)
    assert verdict.outcome in (Outcome.PASS, Outcome.INCONCLUSIVE)
    assert verdict.interval is not None
    assert verdict.interval.low <= 0.0 <= verdict.interval.high
    elsewhere = Baseline("old", known, climbed=True)
    with pytest.raises(BaselineError, match="the baseline 'old' answered no level of this task"):
        replace(found, baselines={"old": elsewhere}).auc.not_worse_than("old", margin=1.0)


@pytest.mark.slow
def test_settling_errs_as_seldom_as_it_says() -> None:
    wrong = 0
    for seed in range(200):
        found = result(interview(Climb(40, 0.5, settle=True), [0.9, 0.7, 0.5, 0.3], seed))
        wrong += bool(found.last_level.at_least(3))  # the accuracy of level 3 is not above one half
    assert wrong <= 16  # 5 % of 200 and two standard errors


def test_the_area_is_asked_where_it_pays_and_known_as_well_as_wanted() -> None:
    accuracy = [1.0, 1.0, 0.9, 0.5, 0.1, 0.0, 0.0, 0.0]
    session = interview(AdaptiveClimb(60, 0.8), accuracy, 3)
    assert session.stop == [StopReason.WIDTH]
    counts = np.bincount(session.answers[0][0] // 60, minlength=8)
    assert counts.min() >= 2
    assert counts[2:5].min() > counts[[0, 7]].max()
    found = result(session)
    interval = found.climb.area(found.ladder, 0.95)
    assert interval.high - interval.low <= 0.8 + 1e-9
    assert found.auc.at_least(interval.low - 0.01)
    assert not found.auc.at_least(interval.high + 0.01)
    with pytest.raises(ConfigError, match="last_level needs a climb"):
        found.last_level.at_least(3)


def test_a_level_whose_questions_are_asked_gives_way() -> None:
    session = interview(AdaptiveClimb(4, 0.01), [1.0, 0.5, 0.0], 1)
    assert session.asked == 12
    assert session.stop == [StopReason.EXHAUSTED]


@given(st.integers(1, 6), st.integers(2, 7), st.integers(0, 10_000), st.sampled_from(["plain", "settle", "width"]))
def test_every_question_comes_once(levels: int, queries: int, seed: int, kind: str) -> None:
    way = AdaptiveClimb(queries, 0.8) if kind == "width" else Climb(queries, 0.3, settle=kind == "settle")
    accuracy = np.sort(np.random.default_rng(seed).random(levels))[::-1]
    session = interview(way, accuracy, seed)
    items = session.answers[0][0]
    assert len(set(items.tolist())) == len(items)
    if kind != "width":  # in order, but for what fills up the last batch
        assert (np.diff(items[: len(items) - way.batch]) > 0).all()


def test_reasons() -> None:
    session = Session(bank(3, 4), Policy(selector=Climb(4), floor=0.0, budget="100%", batch=4, stop="level"))
    proposal = session.ask()
    assert proposal is not None
    assert session.reason(int(proposal.items[0, 0])) == "the next of its level"
    way = AdaptiveClimb(20, 0.5)
    session = Session(bank(2, 20), Policy(selector=way, floor=0.0, budget="100%", batch=4, stop="level"))
    proposal = session.ask()
    assert proposal is not None
    assert session.reason(int(proposal.items[0, 0])) == "one of the first of its level"
    session.tell(np.array([[1.0, 1.0, 0.0, 1.0]]))
    proposal = session.ask()
    assert proposal is not None
    item = int(proposal.items[0, 0])
    assert session.reason(item) == f"one more answer at level {item // 20 + 1} narrows the area most"


@pytest.mark.parametrize("way", [Climb(7, 0.25, settle=True), AdaptiveClimb(9, 0.7, 0.1)])
def test_settings_travel(way: Climb | AdaptiveClimb) -> None:
    assert isinstance(way, StatefulSelector)
    assert levelled(way.name, way.to_json()) == way
    found = result(interview(way, [1.0, 0.5, 0.0]))
    again = SessionResult.restored(found.to_json(), found.bank)
    assert again.climb == way
    np.testing.assert_equal(again.ladder.accuracies, found.ladder.accuracies)


def test_only_levels_asked_in_full_are_compared() -> None:
    assert Climb().paired
    assert not Climb(settle=True).paired
    assert not AdaptiveClimb().paired
    ladder = Ladder((np.ones(3),), 2)
    assert Climb(3).last(ladder, 0.95).low == 1
    with pytest.raises(ConfigError, match="has no levels"):
        Policy(stop="level")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Climb(0), "queries is 0"),
        (lambda: Climb(5, 1.0), "expected an accuracy in"),
        (lambda: AdaptiveClimb(5, 0.0), "width is 0.0, expected a number of levels above 0"),
    ],
)
def test_mistakes(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
