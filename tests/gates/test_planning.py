"""How many questions a gate takes: the formula's own rules, and simulated interviews."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.gain import gap_claims
from pytest_adaptive_eval.claims.paired import FLIPS, Baseline
from pytest_adaptive_eval.claims.projection import ability_at
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import (
    DEFAULT_CHANCE,
    PLANNING_MARGIN,
    default_budget,
    draw_variance,
    outlook_sentence,
    outlooks,
)
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

DECIDE = POLICIES["decide"]
UNIFORM = replace(DECIDE, selector=SELECTORS["random"], floor=0.0)


def plain_bank(n):
    return ItemBank.uncalibrated("u", [Item(str(i)) for i in range(n)])


def make_bank(n, seed=0):
    rng = np.random.default_rng(seed)
    return ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0.3, 0.3, n), rng.normal(size=n))


def test_the_default_budget_is_what_the_most_demanding_gate_needs():
    bank, gate = plain_bank(300), Condition("accuracy", "at_least", 0.5)
    least = default_budget([], bank, UNIFORM)
    assert least == 60
    budget = default_budget([gate, Condition("accuracy", "at_least", 0.97)], bank, UNIFORM)
    forecasts = outlooks(gate, bank, UNIFORM)
    assert min(ahead.chance(budget) for ahead in forecasts) >= DEFAULT_CHANCE
    assert min(ahead.chance(budget - 1) for ahead in forecasts) < DEFAULT_CHANCE
    assert default_budget([gate], plain_bank(40), UNIFORM) <= 40
    assert default_budget([gate], plain_bank(3000), UNIFORM) == 600  # a fifth is more than it needs


outlook = st.builds(
    Outlook,
    size=st.integers(20, 2000),
    gap=st.floats(0.005, 0.4),
    variance=st.floats(0.005, 0.5),
    confidence=st.floats(0.6, 0.99),
)


@given(outlook, st.integers(0, 10))
def test_more_questions_and_a_greater_distance_are_more_likely_to_decide(ahead, tenth):
    asked = ahead.size * tenth // 10
    one = ahead.chance(asked)
    assert 0 <= one <= 1
    assert one <= ahead.chance(min(asked + 5, ahead.size)) + 1e-9
    assert one <= replace(ahead, gap=1.5 * ahead.gap).chance(asked) + 1e-9
    if one >= 0.5:  # where the questions are too few, only luck decides, and there is more of it with more variance
        assert one <= replace(ahead, variance=0.5 * ahead.variance).chance(asked) + 1e-9
    assert one >= replace(ahead, confidence=0.995).chance(asked) - 1e-9
    assert ahead.chance(0) == 0.0
    assert ahead.chance(ahead.size) == 1.0


@pytest.mark.slow
@given(outlook, st.floats(0.01, 0.99))
def test_its_summaries_are_those_of_its_distribution(ahead, probability):
    steps = np.array([ahead.chance(n) for n in range(ahead.size + 1)])
    assert len(steps) == ahead.size + 1
    assert (steps[0], steps[-1]) == (0.0, 1.0)
    assert (np.diff(steps) >= -1e-9).all()
    assert ahead.expected == pytest.approx(float(np.diff(steps) @ np.arange(1, ahead.size + 1)))
    fewest = ahead.quantile(probability)
    assert ahead.chance(fewest) >= probability
    assert fewest == 0 or ahead.chance(fewest - 1) < probability


def test_what_was_won_already_is_ahead():
    fresh = Outlook(400, 0.1, 0.2)
    asked = replace(fresh, asked=50)
    for n in (0, 20, 50):
        assert asked.chance(n) == 0.0
    rich, ruined = replace(asked, log_wealth=2.0), replace(asked, log_wealth=-2.0)
    assert ruined.chance(150) < asked.chance(150) < rich.chance(150)
    assert replace(asked, log_wealth=4.0).chance(51) == 1.0
    assert ruined.quantile(0.5) > rich.quantile(0.5) >= 50


def test_no_distance_needs_the_whole_bank_but_for_false_verdicts():
    none = Outlook(300, 0.0, 0.2)
    assert 0.0 < none.chance(299) < 0.05
    assert 285 < none.expected < 300
    assert none.quantile(0.5) == 300
    near = Outlook(10_000, 1e-7, 0.25)
    assert near.chance(9000) == pytest.approx(none.chance(270), abs=0.01)


@pytest.mark.slow
def test_the_chance_of_a_verdict_is_that_of_simulated_bets():
    rng = np.random.default_rng(3)
    n, subjects = 400, 300
    log = draw_log(np.stack([rng.permutation(np.repeat([1.0, 0.0], [280, 120])) for _ in range(subjects)]))
    for gap in (0.15, 0.1, 0.05, 0.03, 0.02):
        found = decide(log, [Claim((0.7 - gap) * n)])
        within = np.where(found.outcome[:, 0] == 1, found.at[:, 0], n)
        ahead = Outlook(n, gap, 0.7 * 0.3)
        for asked in (50, 100, 200):
            assert ahead.chance(asked) == pytest.approx(float((within <= asked).mean()), abs=0.1)
        assert ahead.expected == pytest.approx(float(within.mean()), rel=0.15)


def draw_log(truths):
    """Uniform draws of every item, for each row of scores."""
    session = Session(
        plain_bank(truths.shape[1]), replace(UNIFORM, budget="100%", batch=50, stop="decision"), subjects=len(truths)
    )
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(truths, proposal.items, axis=1))
    return session.logs()


def test_the_variance_of_a_draw():
    plain = plain_bank(50)
    assert draw_variance(plain, UNIFORM, 0.3) == pytest.approx(0.21)
    assert draw_variance(plain, UNIFORM, 1.0) == pytest.approx(0.25 / 50)
    bank = make_bank(60)
    theta = np.array([[ability_at(bank, 0.7)]])
    w = irt.weight(irt.probability(theta, bank.discrimination, bank.intercept))[0]
    q = 0.5 * np.sqrt(w) / np.sqrt(w).sum() + 0.5 / 60
    uniform = draw_variance(bank, UNIFORM, 0.7)
    assert uniform == pytest.approx(w.sum() * 60 / 60**2)
    assert draw_variance(bank, DECIDE, 0.7) == pytest.approx((w / q).sum() / 60**2, rel=0.05)
    assert draw_variance(bank, DECIDE, 0.7) < uniform < 0.21
    whole = Baseline("old", (np.arange(50) % 3 > 0).astype(float))
    assert draw_variance(plain, UNIFORM, 0.5, whole) == pytest.approx(FLIPS * (1 - FLIPS))


def test_a_threshold_is_planned_from_both_sides():
    bank = plain_bank(200)
    both = outlooks(Condition("accuracy", "at_least", 0.7, confidence=0.9), bank, UNIFORM)
    assert [o.gap for o in both] == [PLANNING_MARGIN] * 2
    assert [o.variance for o in both] == pytest.approx([0.8 * 0.2, 0.6 * 0.4])
    assert {(o.size, o.confidence) for o in both} == {(200, 0.9)}
    (low,) = outlooks(Condition("accuracy", "at_least", 0.95), bank, UNIFORM)  # there is no room above
    assert low.variance == pytest.approx(0.85 * 0.15)
    near = outlooks(Condition("accuracy", "at_least", 0.7), bank, UNIFORM, margin=0.02)
    assert [o.gap for o in near] == [0.02] * 2
    assert near[0].expected > both[0].expected


def test_a_paired_gate_is_planned_for_an_equal_candidate():
    bank = plain_bank(200)
    whole = Baseline("old", (np.arange(200) % 3 > 0).astype(float))
    condition = Condition("accuracy", "not_worse_than", 0.02, "old")
    (ahead,) = outlooks(condition, bank, UNIFORM, whole)
    assert (ahead.size, ahead.gap) == (200, 0.02)
    session = Session(bank, replace(UNIFORM, budget=80, stop="budget"))
    while (proposal := session.ask()) is not None:
        session.tell(whole.scores[proposal.items])
    known = np.full(200, np.nan)
    known[session.log().items] = session.log().scores
    part = Baseline("old", known, session.log())
    (some,) = outlooks(condition, bank, UNIFORM, part)
    assert (some.size, part.draws) == (200, 80)
    text = outlook_sentence(condition, bank, UNIFORM, 150, "toy", part)
    chance = f"{100 * some.chance(80):.0f}% chance"
    assert f"{chance} of a verdict within 80 of 200 questions if it is as good as old and 5 % of " in text
    assert "; the baseline old holds answers to only 80 of 200 items, and no others can be compared: record it " in text
    assert text.endswith(
        f"needs budget = {some.quantile(0.5)}, and four in five budget = {some.quantile(0.8)}, in both runs"
    )
    assert "only" not in outlook_sentence(condition, bank, UNIFORM, 60, "toy", part)
    assert ahead.expected < outlooks(Condition("accuracy", "at_least", 0.65), bank, UNIFORM, margin=0.02)[0].expected


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("budget", "margin", "floor"), [(50, 0.1, 0.25), (150, 0.1, 0.25), (150, 0.05, 1.0)])
def test_the_promise_against_a_baseline_that_answered_some_items_is_kept(budget, margin, floor):
    bank = make_bank(400)
    rng = np.random.default_rng(1)
    condition = Condition("accuracy", "not_worse_than", margin, "old")
    policy = replace(DECIDE, budget=budget, floor=floor, stop="budget")
    promised, happened = [], []
    for seed in range(6):
        p = irt.probability(np.array([[0.5]]), bank.discrimination, bank.intercept)[0]
        answers = (rng.random(400) < p) * 1.0
        session = Session(bank, policy, seed=seed)
        while (proposal := session.ask()) is not None:
            session.tell(answers[proposal.items])
        known = np.full(400, np.nan)
        known[session.log().items] = session.log().scores
        old = Baseline("old", known, session.log())
        (ahead,) = outlooks(condition, bank, policy, old)
        promised.append(ahead.chance(budget))
        new = np.abs(answers - (rng.random((100, 400)) < FLIPS))
        following = Session(bank, policy, seed=0, subjects=100, baseline=old)
        while (proposal := following.ask()) is not None:
            following.tell(np.take_along_axis(new, proposal.items, axis=1))
        claim = condition.claims(bank, {"old": old})[0]
        happened.append(float((decide(following.logs(), [claim]).outcome[:, 0] == 1).mean()))
    # a bet that aims at a tight budget decides more often, and forecasts leave it out
    assert np.mean(promised) - 0.06 < np.mean(happened) < np.mean(promised) + 0.12


def format_bank(n, forms, calibrated=False):
    ids = [(f"q{i}@{form}", form) for i in range(n) for form in forms]
    items = [Item(name, formats=(form,)) for name, form in ids]
    about: dict[str, Any] = {
        "categories": [form for _, form in ids],
        "report": MappingProxyType({"formats": list(forms)}),
    }
    if not calibrated:
        return ItemBank.uncalibrated("f", items, ids=[name for name, _ in ids], **about)
    rng = np.random.default_rng(4)
    return ItemBank(
        "f", [name for name, _ in ids], items, rng.uniform(0.5, 1.5, len(ids)), rng.normal(size=len(ids)), **about
    )


def test_a_gain_is_planned_over_all_smaller_formats_and_over_one():
    bank = format_bank(50, ("image+text", "image", "text", "none"))
    condition = Condition("gain", "at_least", 0.2)
    holds, fails = outlooks(condition, bank, UNIFORM)
    assert (holds.size, holds.gap, holds.together, holds.confidence) == (200, pytest.approx(0.1 / 8), 3, 0.95)
    assert (fails.gap, fails.together, fails.confidence) == (holds.gap, 1, pytest.approx(1 - 0.05 / 3))
    assert holds.variance == pytest.approx(0.5 * 0.25 * 0.65 * 0.35)  # half of the pairs count, their scores by half
    assert fails.variance == pytest.approx(0.5 * 0.25 * 0.55 * 0.45)
    assert holds.chance(150) == pytest.approx(replace(holds, together=1).chance(150) ** 3)
    (above,) = outlooks(Condition("gain", "at_least", 0.95), bank, UNIFORM)  # there is no room above
    assert above.together == 1
    worst = min(holds.chance(190), fails.chance(190))
    assert outlook_sentence(condition, bank, UNIFORM, 190, "toy").startswith(
        f"toy: gain >= .20: {100 * worst:.0f}% chance of a verdict within 190 of 200 questions if the truth is 10 "
        "points away, "
    )


def test_the_sentence_warns_when_the_budget_is_small():
    bank = plain_bank(500)
    condition = Condition("accuracy", "at_least", 0.6)
    worst = max(outlooks(condition, bank, UNIFORM), key=lambda o: o.expected)
    enough, small = (outlook_sentence(condition, bank, UNIFORM, n, "toy") for n in (400, 20))
    assert enough == (
        f"toy: accuracy >= .60: {100 * worst.chance(400):.0f}% chance of a verdict within 400 of 500 questions if the "
        f"truth is 10 points away, {worst.expected:.0f} expected"
    )
    assert "WARNING" not in enough
    assert small.startswith(
        f"toy: accuracy >= .60: {100 * worst.chance(20):.0f}% chance of a verdict within 20 of 500 "
    )
    assert small.endswith(
        f". WARNING: less likely than not; an even chance needs budget = {worst.quantile(0.5)}, and four in five "
        f"budget = {worst.quantile(0.8)}"
    )


# -- against interviews ---------------------------------------------------------------------------


def mean_length(bank, policy, truths, gap):
    """Mean number of questions until a claim, `gap` below each truth, is decided."""
    n = len(bank)
    session = Session(bank, policy, seed=range(len(truths)), subjects=len(truths))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(truths, proposal.items, axis=1))
    lengths = []
    for s, truth in enumerate(truths):
        decisions = decide(session.log(s), [Claim(truth.sum() - gap * n)])
        assert decisions.outcome[0] != 0
        lengths.append(decisions.at[0])
    return float(np.mean(lengths))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("accuracy", "gap", "within"),
    [(0.6, 0.1, 0.15), (0.7, 0.1, 0.15), (0.6, 0.05, 0.15), (0.85, 0.1, 0.3)],  # an ability far from 0 is found first
)
def test_interviews_on_a_true_bank_take_as_long_as_expected(accuracy, gap, within):
    n, subjects = 500, 150
    bank = make_bank(n, 3)
    rng = np.random.default_rng(8)
    p = irt.probability(np.array([[ability_at(bank, accuracy)]]), bank.discrimination, bank.intercept)
    truths = (rng.random((subjects, n)) < p).astype(float)
    policy = Policy(budget="100%", batch=4, stop="decision")
    found = mean_length(bank, policy, truths, gap)
    expected = Outlook(n, gap, draw_variance(bank, policy, accuracy)).expected
    assert expected == pytest.approx(found, rel=within)


@pytest.mark.slow
def test_uniform_interviews_take_as_long_as_expected():
    n, subjects = 500, 150
    rng = np.random.default_rng(9)
    truths = np.stack([rng.permutation(np.r_[np.ones(350), np.zeros(150)]) for _ in range(subjects)])
    policy = replace(UNIFORM, budget="100%", batch=4, stop="decision")
    found = mean_length(plain_bank(n), policy, truths, 0.1)
    assert Outlook(n, 0.1, 0.7 * 0.3).expected == pytest.approx(found, rel=0.15)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("n", "forms", "calibrated"),
    [
        (300, ("image+text", "text"), False),
        (200, ("image+text", "image", "text", "none"), False),
        (150, ("image+text", "image", "none"), True),
    ],
)
@pytest.mark.parametrize("side", [1, -1])
def test_gains_take_as_long_as_expected(n, forms, calibrated, side):
    bank, subjects, gain = format_bank(n, forms, calibrated), 100, 0.2 + 0.1 * side
    selector = SELECTORS["information" if calibrated else "random"]
    policy = replace(DECIDE, selector=selector, budget="100%", stop="decision")
    accuracies = dict.fromkeys(forms, 0.5 - gain / 2 if side > 0 else 0.02) | {
        forms[0]: 0.5 + gain / 2,
        forms[1]: 0.5 - gain / 2,
    }
    rng, truths, kinds = np.random.default_rng(1), np.zeros((subjects, len(bank))), np.array(bank.categories)
    for form, accuracy in accuracies.items():
        places = np.flatnonzero(kinds == form)
        for truth in truths:
            truth[rng.choice(places, round(accuracy * len(places)), replace=False)] = 1.0
    session = Session(bank, policy, seed=range(subjects), subjects=subjects)
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(truths, proposal.items, axis=1))
    claims = gap_claims(bank, 0.2, 0.95)
    lengths = []
    for s in range(subjects):
        found = decide(session.log(s), claims)
        if side > 0:
            lengths.append(found.at.max() if (found.outcome == 1).all() else len(bank))
        else:
            lengths.append(min(found.at[found.outcome < 0], default=len(bank)))
    ahead = outlooks(Condition("gain", "at_least", 0.2), bank, policy)[0 if side > 0 else 1]
    assert ahead.expected == pytest.approx(float(np.mean(lengths)), rel=0.15)


def test_items_that_must_pass_are_no_draws_of_the_forecast():
    bank = plain_bank(500)
    condition = Condition("accuracy", "at_least", 0.6)
    worst = max(outlooks(condition, bank, UNIFORM), key=lambda o: o.expected)
    told = outlook_sentence(condition, bank, UNIFORM, 120, "toy", must_pass=40)
    assert told.startswith(
        f"toy: accuracy >= .60: {100 * worst.chance(80):.0f}% chance of a verdict within 120 of 500 "
    )
    assert f"{worst.expected + 40:.0f} expected, including 40 that must pass and come first" in told
    assert worst.chance(80) < worst.chance(120) - 0.05
    warned = outlook_sentence(condition, bank, UNIFORM, 60, "toy", must_pass=40)
    assert f"an even chance needs budget = {worst.quantile(0.5) + 40}, " in warned
