"""AutoJudger as a policy: the loop, its switches, what it tells, and that it keeps to the rules of a session."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.interview_metrics import relative_cost
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay, replay_each
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selection import SelectorSession, StatefulSelector, View
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.backtests.backtest import Split, backtest
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS, AutoJudgerMaker, Contender
from pytest_adaptive_eval.extensions.papers.judger_results import spread
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import outlooks
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger
from pytest_adaptive_eval.interviewer.closeness import difficulty_distance, semantic_distance
from pytest_adaptive_eval.interviewer.first import by_cluster
from pytest_adaptive_eval.interviewer.interviewer import Choice
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses

N = 120
POINTS = np.random.default_rng(7).normal(size=(N, 6))
B = np.random.default_rng(8).normal(size=N) * 1.5


def bank_of(n=N, calibrated=True, texts=True, slope=1.0, **more):
    ids = [f"q{i}" for i in range(n)]
    items = [
        Item(i, "?", category=("all", f"topic {k % 6}"), images=("p.png",), meta=more.get("meta", lambda k: {})(k))
        for k, i in enumerate(ids)
    ]
    d = -slope * B[:n] if calibrated else np.zeros(n)
    a = np.full(n, slope) if calibrated else np.zeros(n)
    return ItemBank("b", ids, items if texts else (), a, d, calibrated=calibrated)


BANK = bank_of()


def answers(subjects=1, seed=0):
    rng = np.random.default_rng(seed)
    theta = np.linspace(-1.5, 1.5, subjects)[:, None]
    return (rng.random((subjects, N)) < 1 / (1 + np.exp(-(theta - B)))).astype(float)


class Spy:
    """An interviewer that takes the last candidate and remembers what it was shown."""

    name = "spy"

    def __init__(self, index=-1, fallback=""):
        self.index, self.fallback = index, fallback
        self.seen, self.sorted = [], []

    def categorise(self, items, existing, difficulties):
        self.sorted.append(([item.id for item in items], list(existing)))
        return [(f"kind {int(item.id[1:]) % 3}", "every") for item in items]

    def choose(self, candidates, memory, ability):
        self.seen.append((tuple(candidates), memory, ability))
        index = len(candidates) - 1 if self.index < 0 else self.index
        return Choice(index, f"took {candidates[min(index, len(candidates) - 1)].item.id}", self.fallback)

    def account(self):
        return {"name": self.name, "calls": len(self.seen)}

    def close(self):
        self.closed = True


def judge(**settings):
    settings.setdefault("restarts", 3)
    return AutoJudger(settings.pop("embeddings", POINTS), **settings)


def interview(selector, scores=None, bank=BANK, floor=0.0, budget=30, seed=1, **more):
    return replay(
        bank,
        Policy(selector, floor, budget=budget, **more),
        answers() if scores is None else scores,
        seed=seed,
    )


# The loop


def test_it_is_what_a_session_takes():
    spy = Spy()
    selector = judge(interviewer=spy)
    assert isinstance(selector, StatefulSelector)
    opened = selector.open(BANK, [np.random.SeedSequence(0)])
    assert isinstance(opened, SelectorSession)
    opened.close()
    assert spy.closed


def test_every_choice_is_of_the_candidates_that_the_paper_describes():
    """In the window of the present ability, the five farthest of all asked so far."""
    spy = Spy()
    session = interview(judge(interviewer=spy))
    items = session.answers[0][0]
    assert len(set(items.tolist())) == 30
    assert len(spy.seen) == 20  # the first ten are part of the budget, and nobody chooses them
    for t, (offered, memory, ability) in enumerate(spy.seen, 10):
        theta = session.trace[0, t - 1, 0]
        assert ability == pytest.approx(theta)
        p = 1 / (1 + np.exp(-(theta - B)))
        away = np.sqrt(((POINTS[:, None] - POINTS[items[:t]]) ** 2).sum(axis=2)).min(axis=1)
        pool = [i for i in np.flatnonzero((p >= 0.2) & (p <= 0.8)) if i not in items[:t]]
        farthest = sorted(pool, key=lambda i: -away[i])[:5]
        assert [one.position for one in offered] == farthest
        for one in offered:
            assert one.probability == pytest.approx(p[one.position])
            assert one.distance == pytest.approx(away[one.position], rel=1e-4)
            assert one.difficulty == pytest.approx(B[one.position])
            assert one.item.id == f"q{one.position}"
        assert memory.asked == t
        assert memory.count("every") == t
        assert items[t] == farthest[-1]  # as the spy chose
    assert session.account["chosen"] == 20


def test_first_items_are_the_same_for_all_and_what_follows_is_not():
    items = interview(judge(), answers(4), seed=3).answers[0]
    assert items[:, :10].tolist() == [by_cluster(POINTS, 10, restarts=3).tolist()] * 4
    assert len({tuple(row) for row in items.tolist()}) == 4


@pytest.mark.parametrize("first", ["difficulty", "random", "none"])
def test_other_first_items(first):
    session = interview(judge(first=first), answers(3), budget=12, seed=5)
    items = session.answers[0]
    if first == "difficulty":
        np.testing.assert_allclose(B[items[0, :10]], np.sort(B)[6::12])
    else:
        assert len({tuple(row[:10]) for row in items.tolist()}) > 1
    assert session.account["chosen"] == 3 * (12 if first == "none" else 2)


def test_a_small_bank_is_asked_whole():
    bank = bank_of(7)
    session = interview(judge(embeddings=POINTS[:7]), answers()[:, :7], bank=bank, budget=7)
    assert sorted(session.answers[0][0].tolist()) == list(range(7))


def test_a_subject_does_not_depend_on_the_others():
    scores = answers(4, seed=2)
    for settings_ in ({}, {"retrieval": "random"}, {"first": "random"}, {"agent": False}):
        both = interview(judge(**settings_), scores, seed=[5, 6, 7, 8], floor=0.2)
        alone = [interview(judge(**settings_), scores[[s]], seed=[5 + s], floor=0.2) for s in range(4)]
        assert both.answers[0].tolist() == [one.answers[0][0].tolist() for one in alone]


def test_all_right_does_not_run_away():
    session = interview(judge(), np.ones((1, N)), budget=60)
    assert 0 < session.estimate.theta[0, 0] < 6
    assert len(set(session.answers[0][0].tolist())) == 60
    assert session.account["widened"] > 0  # the hardest are used up


def test_no_scores_at_all():
    session = interview(judge(), np.full((2, N), np.nan))
    assert session.account["memory"][0][0]["accuracy"] is None


@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 0.3]), st.booleans(), st.integers(0, 12))
@settings(max_examples=25)
def test_nothing_is_asked_twice(seed, batch, floor, agent, count):
    session = interview(
        judge(agent=agent, count=count), answers(2, seed), floor=floor, seed=seed, batch=batch, budget=50
    )
    assert all(len(set(row)) == 50 for row in session.answers[0].tolist())


# Under a uniform floor, and in batches


def test_under_a_floor_it_hears_what_was_asked_and_claims_only_its_own():
    spy = Spy()
    session = Session(BANK, Policy(judge(interviewer=spy), 0.5, budget=60), seed=4)
    own = uniform = 0
    while (proposal := session.ask()) is not None:
        item = int(proposal.items[0, 0])
        reason = session.reason(item)
        if session.asked >= 10:
            offered = spy.seen[-1][0]
            if item == offered[-1].position:
                own += 1
                assert reason == f"took q{item}"
                assert proposal.propensities[0, 0] > 0.5
            elif item not in [one.position for one in offered]:
                uniform += 1
                assert reason == "drawn uniformly, as 50% of the questions are"
                assert proposal.propensities[0, 0] == pytest.approx(0.5 / (N - session.asked))
        session.tell([[1.0]])
    assert own > 10 < uniform
    asked = session.answers[0][0]
    last = spy.seen[-1]
    assert last[1].asked == 59
    away = np.sqrt(((POINTS[last[0][0].position] - POINTS[asked[:59]]) ** 2).sum(axis=1)).min()
    assert last[0][0].distance == pytest.approx(away, rel=1e-4)


def test_a_floor_makes_it_fit_for_gates():
    assert not Policy(judge(), 0.1).design_based
    assert "gives items no certain propensity" in Policy(judge(), 0.0).design_based


def test_a_batch_takes_the_choice_the_other_candidates_and_then_what_is_farthest():
    spy = Spy(index=2)
    session = Session(BANK, Policy(judge(interviewer=spy, count=0), 0.0, budget=9, batch=1), seed=0)
    session.tell([[1.0]] if session.ask() else None)
    proposal = session.ask(8)
    offered = [one.position for one in spy.seen[-1][0]]
    batch = proposal.items[0].tolist()
    assert batch[:5] == [offered[2], *offered[:2], *offered[3:]]
    theta = session.estimate.theta[0, 0]
    asked = session.answers[0][0]
    away = ((POINTS - POINTS[asked[0]]) ** 2).sum(axis=1)
    pool = np.flatnonzero(np.abs(theta - B) <= np.log(4))
    rest = sorted(set(pool) - set(offered) - set(asked), key=lambda i: -away[i])
    assert batch[5:] == rest[:3]
    assert session.reason(batch[0]) == f"took q{batch[0]}"
    assert "number 1 of the candidates by retrieval (farthest)" in session.reason(batch[1])


def test_outside_the_window_comes_last_by_difficulty():
    selector = judge(count=0, window=(0.45, 0.55))
    opened = selector.open(BANK, [np.random.SeedSequence(0)])
    theta = np.zeros((1, 1))
    view = View(BANK, theta, np.ones((1, 1, 1)), np.full((1, N), 0.5), np.empty((1, 0), dtype=np.int64))
    ratings = opened.criterion(view)[0]
    p = 1 / (1 + np.exp(B))
    inside = (p >= 0.45) & (p <= 0.55)
    assert ratings[inside].min() > ratings[~inside].max()
    order = np.flatnonzero(~inside)[np.argsort(-ratings[~inside])]
    assert (np.diff(np.abs(B[order])) >= 0).all()
    ratings[:] = 0
    assert opened.criterion(view).any()  # a fresh array, and the interviewer is not asked again
    assert opened.account()["chosen"] == 1


def test_a_batch_across_the_first_items():
    session = Session(BANK, Policy(judge(count=5), 0.0, budget=8, batch=8), seed=0)
    items = session.ask().items[0].tolist()
    assert len(set(items)) == 8
    assert all("one of the first 5 questions" in session.reason(i) for i in items[:5])
    assert session.reason(items[5]) != session.reason(items[0])


# Switches


def test_without_an_agent_questions_are_drawn_by_proximity():
    spy = Spy()
    selector = judge(agent=False, interviewer=spy, count=0)
    assert selector.mode == "proportional"
    session = Session(BANK, Policy(selector, 0.0, budget=5), seed=2)
    proposal = session.ask()
    inside = np.abs(B) <= np.log(4)
    weight = np.where(inside, 1 / (1 + np.abs(B)), 0)
    item = int(proposal.items[0, 0])
    assert proposal.propensities[0, 0] == pytest.approx(weight[item] / weight.sum())
    assert "nearer ones more often" in session.reason(item)
    while session.ask() is not None:
        session.tell([[1.0]])
    assert not spy.seen
    assert not spy.sorted
    assert session.account["interviewer"] is None


def test_without_an_agent_first_items_still_come_first():
    session = Session(BANK, Policy(judge(agent=False, count=5), 0.0, budget=8, batch=8), seed=2)
    items = session.ask().items[0].tolist()
    assert set(items[:5]) == set(judge(count=5).open(BANK, [np.random.SeedSequence(0)])._first[0].tolist())


def test_switches_of_what_the_interviewer_sees():
    for settings_, check in (
        ({"memory": False}, lambda c, m, a: m.rows == () and a is not None),
        ({"visual": False}, lambda c, m, a: all(one.item.images == () for one in c)),
        ({}, lambda c, m, a: all(one.item.images == ("p.png",) for one in c) and m.rows),
        ({"difficulty": "none"}, lambda c, m, a: a is None and all(x.difficulty is x.probability is None for x in c)),
        ({"candidates": 7}, lambda c, m, a: len(c) == 7),
        ({"candidates": 500}, lambda c, m, a: len(c) > 30),
    ):
        spy = Spy()
        interview(judge(interviewer=spy, **settings_), budget=15)
        assert len(spy.seen) == 5
        assert all(check(*seen) for seen in spy.seen), settings_


def test_other_retrievals():
    spy = Spy()
    session = interview(judge(interviewer=spy, retrieval="nearest-difficulty"))
    items = session.answers[0][0]
    for t, (offered, _, ability) in enumerate(spy.seen, 10):
        left = sorted(set(range(N)) - set(items[:t].tolist()), key=lambda i: abs(B[i] - ability))
        assert [one.position for one in offered] == left[:5]
    drawn = [Spy(), Spy()]
    for spy, seed in zip(drawn, (1, 2), strict=True):
        interview(judge(interviewer=spy, retrieval="random"), seed=seed)
    assert [o[0].position for o, _, _ in drawn[0].seen] != [o[0].position for o, _, _ in drawn[1].seen]
    assert all(0.2 <= one.probability <= 0.8 for offered, _, _ in drawn[0].seen for one in offered)


def test_categories_are_asked_once_for_each_question_and_the_first_ten_together():
    spy = Spy()
    session = interview(judge(interviewer=spy), answers(2), budget=14)
    calls = [ids for ids, _ in spy.sorted]
    assert len(calls[0]) == 10
    assert sum(map(len, calls)) == len({name for ids in calls for name in ids})
    assert spy.sorted[0][1] == []
    assert set(spy.sorted[1][1]) <= {"kind 0", "kind 1", "kind 2", "every"}
    assert session.account["interviewer"] == {"name": "spy", "calls": 8}


def test_categories_of_a_bank_without_texts():
    bank = replace(bank_of(texts=False), categories=[f"part {k % 4}" for k in range(N)])
    session = interview(judge(), bank=bank)
    counts = {row["name"]: row["count"] for row in session.account["memory"][0]}
    assert counts.keys() == {"part 0", "part 1", "part 2", "part 3"}
    assert sum(counts.values()) == 30
    assert max(counts.values()) - min(counts.values()) <= 3  # balanced
    groups = interview(judge(), bank=bank_of(texts=False)).account["memory"][0]
    assert all(row["name"].startswith("group ") for row in groups)


# The profile


def test_an_interviewer_with_categories_of_its_own_sees_their_abilities():
    spy = Spy()
    session = interview(judge(interviewer=spy, profile=True))
    assert len(spy.seen) == 20
    for _, memory, _ in spy.seen:
        assert {row.name for row in memory.rows} == {"kind 0", "kind 1", "kind 2", "every"}
        assert all(0 < row.standard_error < 4 for row in memory.rows)
    assert len(set(session.answers[0][0].tolist())) == 30
    assert all(row["ability"] is not None for row in session.account["memory"][0])
    plain = Spy()
    account = interview(judge(interviewer=plain)).account
    assert not any(memory.profiled for _, memory, _ in plain.seen)
    assert all(row["ability"] is None for row in account["memory"][0])


def test_the_window_is_that_of_the_ability_in_the_category():
    """Half of the categories are all right and half all wrong, so one window cannot suit both."""
    bank = replace(bank_of(texts=False), categories=["strong" if k % 2 else "weak" for k in range(N)])
    scores = np.array([[float(k % 2) for k in range(N)]])
    session = interview(judge(profile=True, count=4), scores, bank=bank, budget=40)
    rows = {row["name"]: row for row in session.account["memory"][0]}
    assert rows["strong"]["ability"] - rows["weak"]["ability"] > 1.5
    items = session.answers[0][0][20:]
    assert B[items[items % 2 == 1]].mean() > B[items[items % 2 == 0]].mean() + 1.0
    assert abs(rows["strong"]["count"] - rows["weak"]["count"]) <= 12


def test_candidates_are_of_one_category_by_code_and_the_reason_names_it():
    bank = replace(bank_of(texts=False), categories=[f"part {k % 4}" for k in range(N)])
    opened = judge(profile=True, count=4).open(bank, [np.random.SeedSequence(0)])
    first = np.array([[0, 4, 8, 12]])  # all of part 0
    opened.record_scores(first, np.array([[1.0, 0.0, 1.0, 0.0]]))
    view = View(bank, np.zeros((1, 1)), np.ones((1, 1, 1)), None, first)
    ratings = opened.criterion(view)[0]
    chosen = int(ratings.argmax())
    candidates = np.flatnonzero(ratings > 2.0)
    assert {bank.categories[k] for k in candidates} == {"part 1"}  # none was asked of parts 1 to 3: the first of them
    assert "; the ability in part 1 is the least certain, " in opened.reason(0, chosen)


def test_a_question_that_nobody_sorted_has_the_category_of_the_closest_one():
    spy = Spy()
    opened = judge(profile=True, interviewer=spy, count=2).open(BANK, [np.random.SeedSequence(0)])
    asked = np.array([[3, 4]])
    opened.record_scores(asked, np.array([[1.0, 0.0]]))
    opened._sort()
    membership = opened._profile(0).membership
    for item in range(N):
        closest = min((3, 4), key=lambda k: ((POINTS[item] - POINTS[k]) ** 2).sum())
        assert membership[item].tolist() == membership[closest].tolist()


@pytest.mark.parametrize(
    ("bank", "reason"),
    [(bank_of(calibrated=False), "the bank is not calibrated"), (None, "the bank has 2 ability dimensions")],
)
def test_without_an_ability_there_is_no_profile_and_the_record_says_so(bank, reason):
    if bank is None:
        bank = replace(BANK, discrimination=np.ones((N, 2)))
    account = interview(judge(profile=True), bank=bank, budget=14).account
    assert f"abilities by category are not estimated: {reason}" in account["notes"]
    assert all(row["ability"] is None for row in account["memory"][0])


@pytest.mark.parametrize("setting", [{"agent": False}, {"memory": False}, {"difficulty": "none"}])
def test_a_profile_needs_agent_memory_and_difficulties(setting):
    with pytest.raises(ConfigError, match=r"profile is true with .* expected True, True and 'irt'"):
        judge(profile=True, **setting)


def test_fallbacks_are_counted():
    assert interview(judge(interviewer=Spy(0, "no JSON")), budget=14).account["fallbacks"] == 4
    account = interview(judge(interviewer=Spy(99)), budget=14).account
    assert (account["fallbacks"], account["chosen"]) == (4, 4)


def test_the_windows_state_is_told():
    uncalibrated = bank_of(calibrated=False)
    for settings_, bank, text in (
        ({}, BANK, "0.2 to 0.8"),
        ({"window": None}, BANK, "off"),
        ({}, uncalibrated, "off: the bank is not calibrated"),
        ({"difficulty": "none"}, BANK, "off: difficulties are not used"),
    ):
        session = interview(judge(**settings_), bank=bank)
        assert session.account["window"] == text
        assert len(set(session.answers[0][0].tolist())) == 30
        json.dumps(session.account, allow_nan=False)
    session = Session(uncalibrated, Policy(judge(agent=False, count=0), 0.0, budget=3), seed=0)
    assert "since the bank is not calibrated" in session.reason(int(session.ask().items[0, 0]))


def test_an_interviewer_of_one_dimension_or_more():
    bank = ItemBank("m", BANK.ids, (), np.random.default_rng(0).normal(size=(N, 3)), -B, model="mirt")
    spy = Spy()
    session = interview(judge(interviewer=spy), bank=bank)
    assert all(ability is None for _, _, ability in spy.seen)
    assert len(set(session.answers[0][0].tolist())) == 30
    guess = replace(BANK, guess=np.full(N, 0.25))
    p = [one.probability for offered, _, _ in _seen(guess) for one in offered]
    assert min(p) >= 0.25
    assert max(p) <= 0.8


def _seen(bank):
    spy = Spy()
    interview(judge(interviewer=spy), bank=bank)
    return spy.seen


# Settings


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"first": "best"}, "first is 'best', expected one of cluster, difficulty, random, none"),
        ({"retrieval": "near"}, "retrieval is 'near', expected one of farthest, nearest-difficulty, random"),
        ({"difficulty": "yes"}, "difficulty is 'yes'"),
        ({"candidates": 0}, "candidates is 0, expected a whole number of at least 1"),
        ({"count": -1}, "count is -1, expected a whole number of at least 0"),
        ({"restarts": True}, "restarts is True"),
        ({"window": (0.8, 0.2)}, "window is (0.8, 0.2), expected two chances"),
        ({"embeddings": np.ones((3, 2))}, "embeddings of shape (3, 2) for the 120 items"),
        ({"embeddings": np.full((N, 2), np.nan)}, "expected a row of finite numbers per item"),
        ({"embeddings": lambda bank: np.ones(len(bank))}, "embeddings of shape (120,)"),
    ],
)
def test_wrong_settings(settings_, message):
    with pytest.raises(ConfigError) as caught:
        judge(**settings_).open(BANK, [np.random.SeedSequence(0)])
    assert message in str(caught.value)


class Factors:
    name = "factors"

    def embed(self, bank):
        return POINTS.astype(np.float32)


def test_embeddings_in_three_forms():
    found = [
        interview(judge(embeddings=given)).answers[0].tolist()
        for given in (POINTS.astype(np.float32), Factors(), lambda bank: Factors().embed(bank))
    ]
    assert found[0] == found[1] == found[2]


def test_its_key_holds_all_that_decides():
    variants: list[dict[str, Any]] = [
        {},
        {"first": "none"},
        {"count": 5},
        {"restarts": 4},
        {"responses": answers(9)},
        {"window": None},
        {"window": (0.1, 0.9)},
        {"retrieval": "random"},
        {"candidates": 7},
        {"agent": False},
        {"visual": False},
        {"memory": False},
        {"difficulty": "none"},
        {"seed": 1},
        {"interviewer": Spy()},
        {"embeddings": POINTS + 1},
        {"embeddings": Factors()},
    ]
    keys = [Policy(judge(**settings_), 0.0).key(BANK) for settings_ in variants]
    assert len(set(keys)) == len(keys)
    assert keys[0] == Policy(judge(embeddings=POINTS.copy()), 0.0).key(BANK)
    for settings_ in variants:
        json.dumps(Policy(judge(**settings_)).to_json())


def test_plans_know_it_by_its_proximity():
    view = View(BANK, np.zeros((1, 1)), np.ones((1, 1, 1)), np.full((1, N), 0.5), np.empty((1, 0), dtype=np.int64))
    np.testing.assert_allclose(judge().criterion(view)[0], 1 / (1 + np.abs(B)))
    assert (judge(difficulty="none").criterion(view) == 1).all()
    (ahead, *_) = outlooks(Condition("accuracy", "at_least", 0.5), BANK, Policy(judge(), 0.5))
    assert 0 < ahead.variance < 10


# Metrics


@pytest.mark.parametrize(("model", "cost"), [(6.04, 0.194), (13.85, 0.107), (139.97, 0.047)])
def test_the_papers_relative_cost(model, cost):
    """R(.04) of table 4: 23.25 TFLOPs a step of the interviewer beside an answer of 6.04, 13.85 and 139.97."""
    assert round(relative_cost(0.04, model, 23.25), 3) == cost
    exact = relative_cost(0.04, model, 23.25, first=27.6, firsts=10, items=3127)
    by_hand = ((0.04 * 3127 - 10) * (model + 23.25) + 10 * model + 27.6) / (3127 * model)
    assert exact == pytest.approx(by_hand)
    assert exact < relative_cost(0.04, model, 23.25)


def test_the_account_has_the_distances_of_the_paper():
    session = interview(judge(), answers(2), budget=14)
    account, (items, _) = session.account, session.answers
    for s in range(2):
        points = POINTS[items[s]]
        pairs = [np.linalg.norm(points[i] - points[j]) for i in range(14) for j in range(i)]
        assert account["semantic_distance"][s] == pytest.approx(np.mean(pairs), abs=1e-5)
        gaps = np.abs(BANK.difficulty[items[s, 10:]] - session.trace[s, 9:-1, 0])
        assert account["difficulty_distance"][s] == pytest.approx(gaps.mean(), abs=1e-5)


def test_distances_that_are_not_defined_are_none():
    account = interview(judge(difficulty="none"), answers(1), budget=1).account
    assert (account["semantic_distance"], account["difficulty_distance"]) == ([None], [None])


def test_distances_and_spread():
    assert semantic_distance(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]])) == pytest.approx(10 / 3)
    assert np.isnan(semantic_distance(np.ones((1, 3))))
    assert difficulty_distance(np.array([1.0, np.nan, -1.0]), np.array([0.0, 0.0, 2.0])) == 2.0
    assert difficulty_distance(np.array([1.0, -1e9, np.inf]), np.zeros(3)) == 7.0  # the slope is nearly 0
    assert np.isnan(difficulty_distance(np.array([np.nan]), np.array([0.0])))
    assert spread([1.0, 3.0]) == pytest.approx(1.96 * np.sqrt(2))
    assert spread([1.0]) == 0.0


# Backtests


def responses(subjects=40, seed=3):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(subjects, 1)) * 1.5
    scores = (rng.random((subjects, N)) < 1 / (1 + np.exp(-(theta - B)))).astype(float)
    return Responses(tuple(f"m{s}" for s in range(subjects)), tuple(f"q{i}" for i in range(N)), scores)


def autojudger(name: str, model: str = "1pl", **settings: Any) -> Contender:
    """Return AutoJudger with some settings."""
    maker = AutoJudgerMaker({"restarts": 2, **settings})
    if settings.get("difficulty") == "none":
        return Contender(name, "none", maker, "mean", "")
    return Contender(name, model, maker, "ability" if model == "1pl" else "projection", "")


@pytest.mark.slow
def test_every_switch_is_backtested_and_learns_nothing_of_the_test_subjects(monkeypatch):
    import pytest_adaptive_eval.extensions.backtests.backtest as module

    made = responses()
    split = Split(np.arange(30), np.arange(30, 40))
    keys: list[str] = []

    def spy(bank, policies, scores, **given):
        keys.extend(policy.key(bank) + repr(bank.intercept.tolist()) for policy in policies)
        return replay_each(bank, policies, scores, **given)

    monkeypatch.setattr(module, "replay_each", spy)
    switches: list[dict[str, Any]] = [
        *({}, {"agent": False}, {"memory": False}, {"difficulty": "none"}, {"retrieval": "nearest-difficulty"}),
        *({"retrieval": "random"}, {"candidates": 7}, {"first": "difficulty"}, {"first": "random"}, {"first": "none"}),
    ]
    contenders = [autojudger(f"{switch}", **switch) for switch in switches]
    found = backtest(made, split, contenders, ["15%"], recipe=Recipe())
    for (name, _), cell in found.cells.items():
        assert 50 < cell.ranking[0] <= 100, name
    poisoned = made.scores.copy()
    poisoned[30:] = 1.0 - poisoned[30:]
    backtest(replace(made, scores=poisoned), split, contenders, ["15%"], recipe=Recipe())
    half = len(keys) // 2
    assert keys[:half] == keys[half:]
    assert len(set(keys[:half])) == half == len(contenders)


def test_conformal_intervals_of_an_interview():
    split = Split(np.arange(30), np.arange(30, 40))
    contender = autojudger("autojudger-2pl", "2pl")
    found = backtest(responses(), split, [contender], ["20%"], recipe=Recipe(), intervals=True, confidence=0.9)
    (cell,) = found.cells.values()
    assert cell.intervals.keys() == {"model-based", "conformal"}


@pytest.mark.slow
def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made = responses(24)
    rows = [",".join(["subject", *made.items])]
    rows += [",".join([name, *(f"{x:.0f}" for x in own)]) for name, own in zip(made.subjects, made.scores, strict=True)]
    Path("r.csv").write_text("\n".join(rows) + "\n")
    names = "autojudger,nearest-difficulty,random"
    command = ["backtest", "r.csv", "--splits", "2", "--jobs", "1", "--budget", "15%", "--json", "t.json"]
    assert main([*command, "--policy", names]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in names.split(","))
    assert [row["policy"] for row in json.loads(Path("t.json").read_text())["rows"]] == names.split(",")
    assert main(["backtest", "--policy", "autojudger-2", "r.csv"]) == 4
    assert "known are estimate, " in capsys.readouterr().err


def test_the_published_matrices():
    """The whole policy on MMMU: far better than chance, and its abilities never at a bound."""
    folder = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "autojudger"
    path = folder / "MMMU_DEV_VAL.csv.gz"
    if not path.is_file():
        pytest.skip(f"the public response matrices are not there: {path} (ADAPTIVE_EVAL_DATA names their folder)")
    from pytest_adaptive_eval.banks.responses import read_responses

    found = read_responses(path, orientation="items-by-subjects")
    place = {name: s for s, name in enumerate(found.subjects)}
    split = Split(
        *(
            np.array([place[name] for name in json.loads((folder / f"{which}_models.json").read_text())])
            for which in ("train", "test")
        )
    )
    cell = backtest(found, split, [CONTENDERS["autojudger"]], ["5%"], recipe=Recipe()).cells["autojudger", "5%"]
    assert cell.ranking[0] > 75
