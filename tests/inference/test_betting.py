"""Bets: by hand, fair on every path, and right about as often as they say."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.betting import (
    DISTANCES,
    HALF,
    HAZARD,
    LIMIT,
    NEAREST,
    NEAREST_RARE,
    TWO_OUTCOMES,
    Claim,
    decide,
    excludes,
    interval_of_draws,
    log_wealth,
)
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.noise import noise_margin
from pytest_adaptive_eval.items.bank import ItemBank

NAN = float("nan")
#: Whether flips are rare, and the planned share of the bank.
KINDS = tuple(product((False, True), (0.0, 0.4, 0.8, 1.0)))


def uniform_log(scores, size):
    """Uniform draws, every score predicted as one half."""
    scores = np.asarray(scores, dtype=float)
    t = scores.shape[-1]
    left = np.broadcast_to(size - np.arange(t), scores.shape).astype(float)
    items = np.broadcast_to(np.arange(t), scores.shape)
    half = np.full(scores.shape, 0.5)
    return DesignLog(items, scores, 1 / left, half, left / 2, left**2 / 4, left / 2, left / 2, size)


def led(truth, policy, *, seeds=1, intercept=None, first=0, claims=()):
    """Interviews of subjects that all have the scores `truth`, on a bank that predicts as `intercept` says."""
    n = len(truth)
    rng = np.random.default_rng(n)
    intercept = rng.normal(size=n) if intercept is None else intercept
    bank = ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), intercept)
    session = Session(bank, policy, seed=range(first, first + seeds), subjects=seeds, claims=claims)
    while (proposal := session.ask()) is not None:
        session.tell(truth[proposal.items])
    return session.logs()


# -- one bet at a time ----------------------------------------------------------------------------


def test_two_draws_by_hand():
    """Of 4 items the first drawn is right and the second wrong; the claim is that 2 are right."""
    log = uniform_log([1.0, 0.0], 4)
    # X = 2 + .5 * 4 = 4 and 1 + 1.5 - .5 * 3 = 1; variances 4 and 9 / 4
    np.testing.assert_allclose(log.totals, [4.0, 1.0])
    gaps = [0.1, 0.2, 0.4, 0.6]  # of 4 items, .05 times a half, 1, 2 and 3
    # the largest loss and gain are 2 and 2 at first, then 1 and 2 on one side: Kelly's stake by them is more than by
    # the variances, and exact for a score of 0 or 1
    up = [(1 + 2 * g / (2 * 2), 1 - 1 * g / (1 * 2)) for g in gaps]
    down = [(1 - 2 * g / (2 * 2), 1 + 1 * g / (2 * 1)) for g in gaps]
    sides: tuple[tuple[Literal[1, -1], Any], ...] = ((1, up), (-1, down))
    for side, factors in sides:
        expected = [float(np.mean([a for a, _ in factors])), float(np.mean([a * b for a, b in factors]))]
        np.testing.assert_allclose(np.exp(log_wealth(log, Claim(2.0), side)), expected, rtol=1e-12)


def test_rare_losses_by_hand():
    """Kelly's stake f on a gain that is -L with chance v / (L * (L + a)) and else small, of mean a and variance v."""
    log = uniform_log([1.0], 4)
    claim = Claim(2.0, unit=0.05, distances=(1.0, 3.0), rare=True)
    worst = 2.0 - 2.0 + 2.0
    factors = []
    for gap in (0.2, 0.6):
        stake = gap * (1 + gap / worst) / (4.0 + gap * (gap + worst))
        factors.append(1 + stake * 2)
        # at the optimum the gain in log-wealth no longer changes with the stake
        loss_chance = 4.0 / (4.0 + (worst + gap) ** 2)
        win = (gap + loss_chance * worst) / (1 - loss_chance)
        slope = loss_chance * -worst / (1 - stake * worst) + (1 - loss_chance) * win / (1 + stake * win)
        assert slope == pytest.approx(0.0, abs=1e-12)
    assert np.exp(log_wealth(log, claim, 1)[0]) == pytest.approx(np.mean(factors))


def test_stakes_are_by_the_variance_where_it_is_small():
    log = replace(uniform_log([1.0], 4), variance=np.array([1.0]))  # of draws between -2 and 2: 4 at most
    factors = [1 + 2 * min(gap / 1.0, LIMIT / 2) for gap in (0.1, 0.2, 0.4, 0.6)]
    assert np.exp(log_wealth(log, Claim(2.0), 1)[0]) == pytest.approx(np.mean(factors))


def test_a_claim_whose_answers_vary_more_than_predicted_ones_has_smaller_stakes():
    high = np.array([0.9])
    log = replace(uniform_log([1.0], 4), predictions=high, rest=4 * high, down=4 * high, up=4 * (1 - high))
    log = replace(log, variance=0.5 * 0.09 * 16 * np.ones(1))  # predictions explain half of it
    factors = [1 + 2 * max(min(gap / (0.5 * 0.25 * 16), LIMIT / 2), gap / 2 / 2) for gap in (0.1, 0.2, 0.4, 0.6)]
    assert np.exp(log_wealth(log, Claim(2.0), 1)[0]) == pytest.approx(np.mean(factors))


def test_a_stake_by_two_outcomes_is_limited():
    log = uniform_log([0.0], 4)
    # of a sum of 3.9, no draw can gain more than .1, which is no more than the assumed gaps
    assert np.exp(log_wealth(log, Claim(3.9), 1)[0]) == pytest.approx(1 - 3.9 * TWO_OUTCOMES / 3.9)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.floats(0.02, 0.98),
    st.sampled_from([0.001, 0.05, 0.3]),
    st.booleans(),
)
def test_evidence_grows_with_every_score(seed, kind, share, unit, fixed):
    """Which `Session.settled` rests on: a verdict that stands for missing scores of 0 and of 1 stands for all."""
    rng, n = np.random.default_rng(seed), 12
    m, weights = rng.random(n), rng.random(n) + 0.05
    scores = rng.choice([0.0, 0.5, 1.0, rng.random()], size=n)
    higher = np.where(rng.random(n) < 0.3, scores + (1 - scores) * rng.random(n), scores)
    left = np.tril(np.ones((n, n)), 0).T.astype(bool)  # the items of each draw's rest
    q = np.where(left, weights, 0.0) / np.where(left, weights, 0.0).sum(axis=1, keepdims=True)
    inverse = 1.0 / np.where(left, q, np.inf)
    columns = (np.arange(n), np.diagonal(q), m, left @ m, (m * (1 - m) * inverse).sum(axis=1))
    bounds = (m * inverse).max(axis=1), ((1 - m) * inverse).max(axis=1)
    rare, horizon = kind
    log = DesignLog(columns[0], scores, *columns[1:], *bounds, n, horizon=round(horizon * n), fixed=fixed)
    low, high = log, replace(log, scores=higher)
    claim = Claim(share * n, unit=unit, rare=rare)
    assert (log_wealth(high, claim, 1) >= log_wealth(low, claim, 1) - 1e-9).all()
    assert (log_wealth(high, claim, -1) <= log_wealth(low, claim, -1) + 1e-9).all()


def paired_log(scores, horizon, size=400):
    """Uniform draws where all answers are predicted to stay right, but for one in twenty."""
    log, left = uniform_log(scores, size), size - np.arange(np.shape(scores)[-1])
    sure = np.broadcast_to(0.95, log.scores.shape)
    columns = {"rest": sure * left, "variance": 0.05 * 0.95 * left**2, "down": sure * left, "up": (1 - sure) * left}
    return replace(log, predictions=sure, **columns, horizon=horizon)


def by_loop(log, claim, side):
    """The aimed bet of `log_wealth`, one draw after the other."""
    own, path = 0.0, []
    part = 1.0 if log.fixed else 0.5
    end = log.size - log.horizon
    for k, total in enumerate(log.totals):
        left, sd = log.size - k, np.sqrt(log.variance[k])
        expected = log.before[k] + log.rest[k]
        loss = claim.total - expected + log.down[k] if side > 0 else expected + log.up[k] - claim.total
        ahead = left * (left - end) / end
        ratio = np.sqrt(HAZARD * (max(-np.log(part) - claim.log_alpha - own, 0.0) + HALF) / ahead) if ahead > 0 else 0.0
        nearest = 0.0 if log.fixed else (NEAREST_RARE if claim.rare else NEAREST) * claim.unit * log.size
        ratio = max(min(ratio, 1.0), min(nearest / sd, 1.0) if ahead > 0 else 0.0)
        stake = ratio / (1 + ratio**2) / sd
        if claim.rare:  # the best one if the chance of the largest loss falls from p to p'
            largest = max(loss, sd)
            angle = np.arcsin(np.sqrt(sd**2 / (sd**2 + largest**2)))
            stake = (1 - np.sin(max(angle - ratio / 2, 0.0)) ** 2 / np.sin(angle) ** 2) / largest
        own += np.log1p(min(stake, LIMIT / max(loss, 1e-9)) * side * (total - claim.total))
        path.append(own)
    return np.array(path)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rare", [False, True])
def test_half_of_the_wealth_aims_at_the_horizon(side, seed, rare):
    scores = (np.random.default_rng(seed).random(90) > 0.02 * seed).astype(float)
    log, claim = paired_log(scores, 70), Claim(370.0, unit=0.05 if rare else 0.02, rare=rare)
    others = log_wealth(replace(log, horizon=0), claim, side)
    expected = np.logaddexp(others, by_loop(log, claim, side)) - np.log(2)
    np.testing.assert_allclose(log_wealth(log, claim, side)[:70], expected[:70], rtol=1e-9)
    # after the horizon it bets no more, and it has no part in what is far or not planned
    aimed = np.exp(log_wealth(log, claim, side)) - np.exp(others) / 2
    np.testing.assert_allclose(aimed[69:], aimed[69], rtol=1e-9, atol=1e-15)
    for far in (0, 250, 400):
        np.testing.assert_array_equal(log_wealth(replace(log, horizon=far), claim, side), others)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("horizon", [70, 250])
def test_all_of_the_wealth_aims_at_a_budget_that_is_asked_in_full(side, horizon):
    scores = (np.random.default_rng(horizon).random(70) > 0.04).astype(float)
    log, claim = replace(paired_log(scores, horizon), fixed=True), Claim(370.0, rare=True)
    np.testing.assert_allclose(log_wealth(log, claim, side), by_loop(log, claim, side), rtol=1e-9)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("rare", [False, True])
def test_a_run_with_a_larger_budget_goes_on_with_the_bets_of_the_runs_before(side, rare):
    scores = (np.random.default_rng(9).random(90) > 0.03).astype(float)
    log, claim = paired_log(scores, 90), Claim(370.0, unit=0.02, rare=rare)
    path = log_wealth(replace(log, earlier=(30, 60)), claim, side)
    anew = log_wealth(replace(log, paths={}), claim, side)
    for horizon, earlier in ((30, ()), (60, (30,))):
        then = log_wealth(replace(log[:horizon], horizon=horizon, earlier=earlier, paths={}), claim, side)
        np.testing.assert_allclose(path[:horizon], then, rtol=1e-9)
        assert not np.allclose(anew[:horizon], then)


def test_bets_at_a_budget_are_narrower_than_bets_that_may_stop():
    truth = np.random.default_rng(3).permutation(np.repeat([1.0, 0.0], [300, 100]))
    logs = led(truth, Policy(budget=30, batch=8), seeds=20)
    planned, anytime = (
        [interval_of_draws(replace(logs[s], fixed=fixed, paths={})) for s in range(20)] for fixed in (True, False)
    )
    assert sum(i.high - i.low for i in planned) < 0.97 * sum(i.high - i.low for i in anytime)


def test_a_threshold_in_a_range_is_granted_above_it_and_denied_below_it():
    log = uniform_log(np.r_[np.ones(60), np.zeros(20)], 100)
    sides: tuple[tuple[float, Literal[1, -1]], ...] = ((70.0, 1), (85.0, -1))
    for total, side in sides:
        sure = log_wealth(log, Claim(total), side)
        ranged = log_wealth(log, Claim(total - 2.0 * side, slack=2.0), side)
        np.testing.assert_array_equal(ranged, sure)
        assert Claim(total - 2.0 * side, slack=2.0).required(side) == total


def test_a_stake_knows_nothing_of_later_scores():
    rng = np.random.default_rng(0)
    scores = (rng.random((30, 60)) > 0.05).astype(float)
    claim = Claim(370.0, unit=0.05, rare=True)
    for side in (1, -1):
        whole = log_wealth(paired_log(scores, 60), claim, side)
        for t in (1, 7, 59):
            np.testing.assert_allclose(log_wealth(paired_log(scores[:, :t], 60), claim, side), whole[:, :t], rtol=1e-9)
        np.testing.assert_allclose(log_wealth(paired_log(scores[3], 60), claim, side), whole[3], rtol=1e-9)


def test_items_that_are_asked_first_count_in_the_horizon_and_move_no_bet():
    scores = np.ones(60)
    first = replace(paired_log(scores, 60), take_all=10)
    claim = Claim(370.0, unit=0.05, rare=True)
    np.testing.assert_allclose(log_wealth(first, claim, 1)[:10], 0.0, atol=1e-12)
    np.testing.assert_allclose(
        log_wealth(first, claim, 1)[10:], log_wealth(first.draws, replace(claim, total=360.0, unit=0.05 * 400 / 390), 1)
    )


def test_no_draw_takes_more_than_the_limit():
    log = replace(uniform_log([0.0, 0.0], 4), variance=np.full(2, 1e-6))  # whoever bets is quite sure
    # X = 0 and 1.5 - 1.5 = 0, the worst that could come
    np.testing.assert_allclose(log_wealth(log, Claim(2.0), 1), np.log(1 - LIMIT) * np.array([1, 2]), rtol=1e-9)
    right = replace(uniform_log([1.0], 4), variance=np.full(1, 1e-6))  # a gain of 2 where 2 could have been lost
    np.testing.assert_allclose(log_wealth(right, Claim(2.0), 1), np.log(1 + LIMIT), rtol=1e-9)


def test_what_the_scores_settle_is_certain():
    log = uniform_log([1.0, 1.0, 0.0, 1.0, 0.0], 6)
    for total in (1, 2, 3, 4, 5, 6):
        grant, deny = (np.isinf(log_wealth(log, Claim(float(total)), side)) for side in (1, -1))
        known = np.array([1, 2, 2, 3, 3])
        np.testing.assert_array_equal(grant, known >= total)
        np.testing.assert_array_equal(deny, known + np.array([5, 4, 3, 2, 1]) < total)
    assert decide(log, [Claim(3.0), Claim(4.0), Claim(5.0)]).outcome.tolist() == [1, 0, -1]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.95])
def test_the_whole_bank_settles_every_claim(share):
    truth = (np.random.default_rng(3).random(40) < share).astype(float)
    log = led(truth, Policy(budget="100%"), seeds=3)
    totals = np.arange(0.5, 40.0)
    outcome = decide(log, [Claim(float(total)) for total in totals]).outcome
    np.testing.assert_array_equal(outcome, np.broadcast_to(np.where(truth.sum() >= totals, 1, -1), outcome.shape))
    exact = decide(log, [Claim(float(truth.sum()))]).outcome
    assert exact.tolist() == [[1]] * 3


def test_what_cannot_be_judged_is_refused():
    log = uniform_log([1.0, NAN], 4)
    with pytest.raises(EstimationError, match="scores contain NaN"):
        log_wealth(log, Claim(2.0), 1)
    silent = replace(uniform_log([1.0], 4), propensities=np.array([NAN]))
    with pytest.raises(EstimationError, match="expected items drawn at random"):
        log_wealth(silent, Claim(2.0), 1)


# -- the guarantee --------------------------------------------------------------------------------


def every_path(truth, *, batch=1):
    """Each order of drawing all but one of the items, with its chance; draws and predictions adapt to the scores."""
    n = len(truth)
    chances, rows = [], []
    base = np.array([0.15, 0.6, 0.35, 0.9, 0.5])[:n]
    for order in permutations(range(n), n - 1):
        chance = 1.0
        columns: dict[str, list[Any]] = {name: [] for name in DesignLog.columns()}
        for k, item in enumerate(order):
            seen = list(order[: k - k % batch])  # of a batch, all is predicted before its first answer
            left = [i for i in range(n) if i not in order[:k]]
            lift = truth[seen].sum() - 0.5 * len(seen)
            m = np.clip(base + 0.2 * lift, 0.02, 0.98)
            weights = np.where(np.arange(n) % 2 == (lift > 0), 1.0, 0.3)
            q = np.zeros(n)
            q[left] = weights[left] / weights[left].sum()
            values = {
                "items": item,
                "scores": truth[item],
                "propensities": q[item],
                "predictions": m[item],
                "rest": m[left].sum(),
                "variance": (m[left] * (1 - m[left]) / q[left]).sum(),
                "down": (m[left] / q[left]).max(),
                "up": ((1 - m[left]) / q[left]).max(),
            }
            for name, value in values.items():
                columns[name].append(value)
            chance *= q[item]
        chances.append(chance)
        rows.append(columns)
    arrays: dict[str, Any] = {name: np.array([row[name] for row in rows]) for name in DesignLog.columns()}
    return np.array(chances), DesignLog(**arrays, size=n)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("levels", [(0.0, 1.0), (0.0, 0.3, 1.0)])
def test_wealth_is_fair_over_all_draws_of_all_banks(batch, levels):
    n = 5 if len(levels) == 2 else 4
    for scores in product(levels, repeat=n):
        truth = np.array(scores)
        chances, log = every_path(truth, batch=batch)
        assert chances.sum() == pytest.approx(1.0)
        total = truth.sum()
        np.testing.assert_allclose(chances @ log.totals, total, atol=1e-9)
        sides: tuple[tuple[Literal[1, -1], float], ...] = ((1, total + 1e-6), (-1, total))
        # the smallest threshold that is missed, and the largest that is reached: nothing is won on average
        for (rare, horizon), (side, at) in product(KINDS, sides):
            planned = replace(log, horizon=round(horizon * n))
            wealth = np.exp(log_wealth(planned, Claim(at, unit=0.2, rare=rare), side))
            np.testing.assert_allclose(chances @ wealth, 1.0, atol=1e-4)
        farther: tuple[tuple[Literal[1, -1], float], ...] = ((1, total + 0.4), (-1, total - 0.4))
        # thresholds farther off: money is lost
        for (rare, horizon), (side, at) in product(KINDS, farther):
            planned = replace(log, horizon=round(horizon * n))
            wealth = np.exp(log_wealth(planned, Claim(at, unit=0.2, rare=rare), side))
            mean = chances @ wealth
            assert (mean <= 1 + 1e-9).all()
            assert (np.diff(mean) <= 1e-9).all()


def test_no_bank_is_misjudged_too_often_by_whoever_looks_after_each_answer():
    for scores in product((0.0, 1.0), repeat=5):
        truth = np.array(scores)
        chances, log = every_path(truth)
        for confidence, (side, at) in product((0.6, 0.8, 0.95), ((1, truth.sum() + 1e-6), (-1, truth.sum()))):
            decided = decide(log, [Claim(at, confidence, unit=0.2)]).outcome[:, 0] == side
            assert chances[decided].sum() <= 1 - confidence + 1e-9


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12),
    st.floats(0, 1),
    st.sampled_from([0.001, 0.05, 1.0]),
    st.sampled_from(KINDS),
    st.sampled_from([1, -1]),
    st.integers(0, 5),
)
def test_nobody_is_ever_ruined(scores, share, unit, kind, side, seed):
    n = 12
    rng = np.random.default_rng(seed)
    m, weights = rng.random(n), rng.random(n) + 0.01
    rows = []
    for k, score in enumerate(scores):
        q = weights[k:] / weights[k:].sum()
        p = m[k:]
        rows.append((k, score, q[0], p[0], p.sum(), (p * (1 - p) / q).sum(), (p / q).max(), ((1 - p) / q).max()))
    rare, horizon = kind
    columns = dict(zip(DesignLog.columns(), np.array(rows).T, strict=True))
    log = DesignLog(**columns, size=n, horizon=round(horizon * n))
    wealth = log_wealth(log, Claim(share * n, unit=unit, rare=rare), side)
    steps = np.arange(1, len(scores) + 1)
    assert not np.isnan(wealth).any()
    assert (wealth >= steps * np.log(1 - LIMIT) - np.log(len(DISTANCES)) - 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.55, 0.9])
def test_a_misleading_bank_errs_no_more_often_than_it_may(share):
    """The bank predicts the contrary of every answer, and one looks after each."""
    rng = np.random.default_rng(17)
    truth = (rng.random(100) < share).astype(float)
    seeds = 600
    policy = Policy(SELECTORS["spread"], floor=0.5, budget=70, batch=5, stop="decision")

    def decided(total, side):
        claim = Claim(total, 0.9)
        log = led(truth, policy, seeds=seeds, intercept=np.where(truth > 0.5, -2.0, 2.0), claims=[claim])
        return (decide(log, [claim]).outcome[:, 0] == side).mean()

    most = 0.1 + 3 * np.sqrt(0.1 * 0.9 / seeds)
    assert decided(truth.sum() + 1e-6, 1) <= most
    assert decided(truth.sum(), -1) <= most
    # and it still finds out what is clear
    for total, outcome in ((truth.sum() - 25, 1), (truth.sum() + 25, -1)):
        if 0 < total < 100:
            assert decided(total, outcome) > 0.5


def test_a_good_bank_decides_sooner_than_none():
    rng = np.random.default_rng(4)
    truth = (rng.random(400) < 0.7).astype(float)
    told = np.where(truth > 0.5, 2.0, -2.0)
    at = {}
    for name, policy, intercept in (
        ("good", Policy(budget="100%", batch=8, stop="decision"), told),
        ("none", Policy(SELECTORS["random"], 0.0, "100%", batch=8, stop="decision"), np.zeros(400)),
    ):
        decisions = decide(led(truth, policy, seeds=30, intercept=intercept), [Claim(240.0)])
        assert (decisions.outcome == 1).all()
        at[name] = decisions.at.mean()
    assert at["good"] < 0.6 * at["none"]


@pytest.mark.slow
@pytest.mark.parametrize("side", [1, -1])
def test_draws_that_lean_to_the_verdict_bring_it_sooner(side):
    """On a bank that knows each item's chance, with thresholds 15 and 10 points off: draws told of the claim and not.

    The first of about ten batches is hedged, and cannot lean.
    """
    rng = np.random.default_rng(5)
    ability = rng.normal(1.2, 2.0, 400)
    truth = (rng.random(400) < 1 / (1 + np.exp(-ability))).astype(float)
    at = {"told": 0.0, "untold": 0.0}
    for items in (60, 40):
        claim = Claim(truth.sum() - items * side)
        for name, claims in (("told", [claim]), ("untold", [])):
            policy = Policy(budget="100%", batch=8, stop="decision")
            found = decide(led(truth, policy, seeds=400, intercept=ability, claims=claims), [claim])
            assert (found.outcome == side).mean() > 0.99
            at[name] += found.at.mean()
    assert at["told"] < 0.96 * at["untold"]


def test_uniform_draws_stay_uniform_whatever_is_to_be_decided():
    truth = (np.arange(60) % 3 > 0).astype(float)
    for selector, uniform in (("random", True), ("spread", False)):
        policy = Policy(SELECTORS[selector], floor=0.5, budget=30, stop="decision")
        log = led(truth, policy, claims=[Claim(truth.sum() + 1e-6, 0.999)])
        assert np.allclose(log.propensities, 1 / (60 - np.arange(len(log)))) == uniform


# -- several claims -------------------------------------------------------------------------------


def holm(log, claims, family):
    """Holm's procedure after each answer, written out for one interview."""
    t, m = len(log), len(claims)
    wrong, right = log.with_missing_as(0.0), log.with_missing_as(1.0)
    grant = [log_wealth(c.view(wrong), c, 1) for c in claims]
    deny = [np.maximum.accumulate(log_wealth(c.view(right), c, -1)) for c in claims]
    outcome, at = [0] * m, [0] * m
    for k in range(t):
        number = max(family, m)
        denied = []
        for i in sorted(range(m), key=lambda i: -(deny[i][k] + claims[i].log_alpha)):
            # p <= alpha / number
            if deny[i][k] + claims[i].log_alpha < np.log(number) - 1e-9:
                break
            denied.append(i)
            number -= 1
        for i, claim in enumerate(claims):
            granted = grant[i][k] >= np.log(1 / (1 - claim.confidence)) - 1e-9
            if outcome[i] == 0 and (granted or i in denied):
                # an answer that both grants and denies cannot be told from its order: denying comes first
                outcome[i], at[i] = (-1 if i in denied else 1), k + 1
    return outcome, at


@given(
    st.integers(0, 10_000),
    st.lists(st.floats(0.05, 0.95), min_size=1, max_size=4),
    st.integers(0, 9),
    st.booleans(),
)
def test_several_claims_are_decided_as_one_by_one_after_each_answer(seed, shares, family, holes):
    rng = np.random.default_rng(seed)
    scores = (rng.random(45) < rng.random()).astype(float)
    if holes:
        scores[rng.random(45) < 0.1] = NAN
    log = uniform_log(scores, 60)
    claims = [Claim(share * 60, 0.8 + 0.05 * (i % 3)) for i, share in enumerate(shares)]
    decisions = decide(log, claims, family)
    outcome, at = holm(log, claims, family)
    assert decisions.outcome.tolist() == outcome
    assert decisions.at.tolist() == at


def test_a_denial_is_corrected_for_the_number_of_claims_and_a_grant_is_not():
    wrong, right = uniform_log([0.0] * 60, 1000), uniform_log([1.0] * 60, 1000)
    claim = Claim(400.0)
    alone = decide(wrong, [claim]).at[0]
    wealth = log_wealth(wrong, claim, -1)
    for family in (1, 2, 5, 20):
        at = decide(wrong, [claim], family).at[0]
        assert wealth[at - 1] >= np.log(family * 20)
        assert at == 1 or wealth[at - 2] < np.log(family * 20)
        assert decide(right, [claim], family).at[0] == decide(right, [claim]).at[0]
    assert alone < decide(wrong, [claim], 20).at[0]
    # Holm: the second smallest p-value is compared with a larger bound than Bonferroni's
    both = decide(wrong, [claim, Claim(900.0)])
    assert both.outcome.tolist() == [-1, -1]
    assert both.at[0] == alone
    assert both.at[1] < alone


def test_noise_of_decoding_moves_thresholds_by_the_error_rate_of_each_decision():
    claim = Claim(40.0)
    wrong, right = (replace(uniform_log([score] * 60, 100), noise=0.25) for score in (0.0, 1.0))

    def first(log, side, alpha):
        wealth = log_wealth(log, claim, side, noise_margin(log, 1 - alpha))
        return int((wealth >= -np.log(alpha)).argmax()) + 1

    for family in (1, 2, 20):
        assert decide(right, [claim], family).at.tolist() == [first(right, 1, 0.05)]
        assert decide(wrong, [claim], family).at.tolist() == [first(wrong, -1, 0.05 / family)]
    assert first(wrong, -1, 0.05 / 20) > first(wrong, -1, 0.05)


def test_a_denial_counts_at_its_best_moment_when_the_next_is_judged():
    """The second of two denials, for which less evidence does, need not have it at the moment of the first."""
    rng = np.random.default_rng(884)
    scores = (rng.random(45) < rng.random()).astype(float)
    log, claims = uniform_log(scores, 60), [Claim(0.5 * 60, 0.8), Claim(0.6 * 60, 0.85)]
    low, high = (log_wealth(log, claim, -1) + claim.log_alpha for claim in claims)
    assert decide(log, claims).at.tolist() == [16, 16]
    assert high[:15].max() < np.log(2) <= high[15]
    assert low[15] < 0 <= low[:15].max() < np.log(2)


def test_what_was_decided_once_stays():
    log = uniform_log([1.0] * 30 + [0.0] * 60, 1000)
    first = decide(log[:30], [Claim(500.0)])
    assert (first.outcome[0], decide(log, [Claim(500.0)]).outcome[0]) == (1, 1)
    assert first.at[0] == decide(log, [Claim(500.0)]).at[0] < 30


def test_missing_scores_count_against_either_decision():
    scores = np.array([1.0] * 20 + [NAN] * 4 + [0.0] * 4)
    log = uniform_log(scores, 200)
    for total in (60.0, 100.0, 150.0):
        claim = Claim(total, 0.8)
        grant = log_wealth(log.with_missing_as(0.0), claim, 1) + claim.log_alpha >= 0
        deny = log_wealth(log.with_missing_as(1.0), claim, -1) + claim.log_alpha >= 0
        expected = 1 if grant.any() else -1 if deny.any() else 0
        assert decide(log, [claim]).outcome[0] == expected
    nothing = uniform_log([NAN] * 60, 200)
    assert decide(nothing, [Claim(1.0), Claim(199.0)]).outcome.tolist() == [0, 0]
    # what is missing can settle nothing either: of 6 items 1 was right, 1 wrong, 3 are missing
    assert decide(uniform_log([1.0, 0.0, NAN, NAN, NAN], 6), [Claim(2.0), Claim(5.0)]).outcome.tolist() == [0, 0]


def test_nothing_asked_or_nothing_claimed_decides_nothing():
    log = uniform_log([1.0] * 5, 10)
    assert decide(log[:0], [Claim(1.0)]).outcome.tolist() == [0]
    assert decide(log, []).outcome.shape == (0,)
    many = uniform_log(np.ones((3, 5)), 10)
    assert decide(many[:, :0], [Claim(1.0)]).at.tolist() == [[0]] * 3


def test_many_interviews_are_decided_as_one_by_one():
    truth = (np.random.default_rng(1).random(80) < 0.6).astype(float)
    truth[::17] = NAN
    log = led(truth, Policy(budget=40, batch=4), seeds=12)
    claims = [Claim(24.0), Claim(48.0, 0.9), Claim(64.0), Claim(40.0, rare=True)]
    together = decide(log, claims, 6)
    assert together.outcome.shape == together.at.shape == (12, 4)
    assert len(np.unique(together.outcome)) > 1
    for s in range(12):
        alone = decide(log[s], claims, 6)
        np.testing.assert_array_equal(together.outcome[s], alone.outcome)
        np.testing.assert_array_equal(together.at[s], alone.at)


# -- the interval ---------------------------------------------------------------------------------


def contradicted(log, interval, confidence):
    """Whether the draws speak both for and against what lies in the interval, whose ends then changed places."""
    middle = Claim(log.size * (interval.low + interval.high) / 2, confidence)
    sides: tuple[Literal[1, -1], ...] = (1, -1)
    return all(
        log_wealth(log.with_missing_as(float(side < 0)), middle, side).max() >= -middle.log_alpha for side in sides
    )


@given(st.integers(0, 10_000), st.sampled_from([0.6, 0.9, 0.95]), st.booleans(), st.booleans(), st.booleans())
def test_the_interval_holds_what_no_bet_refuted(seed, confidence, holes, fractions, planned):
    rng = np.random.default_rng(seed)
    truth = rng.random(60) if fractions else (rng.random(60) < rng.random()).astype(float)
    if holes:
        truth[rng.random(60) < 0.1] = NAN
    log = led(truth, Policy(budget=30, batch=3, stop="budget" if planned else "decision"), first=seed)[0]
    interval = interval_of_draws(log, confidence)
    low, high = interval.low * 60, interval.high * 60
    assert np.nansum(log.scores) - 1e-9 <= low
    assert high <= log.with_missing_as(1.0).scores.sum() + 30 + 1e-9
    assert (interval.confidence, interval.method) == (confidence, "bets at the budget" if planned else "anytime-valid")
    assert interval.low <= interval.estimate <= interval.high
    if not contradicted(log, interval, confidence):
        for total, outcome in ((low - 0.01, 1), (low + 0.01, 0), (high - 0.01, 0), (high + 0.01, -1)):
            if 0 < total < 60 and (outcome or low + 0.02 < high):
                assert decide(log, [Claim(total, confidence)]).outcome[0] == outcome


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.booleans(), st.floats(0.0, 1.0))
def test_an_accuracy_outside_the_interval_is_excluded(seed, fractions, accuracy):
    rng = np.random.default_rng(seed)
    log = uniform_draws(rng.random(20) if fractions else (rng.random(20) < 0.6).astype(float), 80)
    interval = interval_of_draws(log, 0.9)
    inside = interval.low <= accuracy <= interval.high
    if min(abs(accuracy - interval.low), abs(accuracy - interval.high)) > 1e-4 and not contradicted(log, interval, 0.9):
        assert excludes(log, accuracy, 0.9) != inside


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.floats(0.5, 0.98), st.floats(0.5, 0.98))
def test_more_confidence_is_a_wider_interval_and_a_later_decision(seed, one, other):
    less, more = sorted((one, other))
    rng = np.random.default_rng(seed)
    log = led((rng.random(50) < 0.6).astype(float), Policy(budget=25), first=seed)[0]
    narrow, wide = (interval_of_draws(log, confidence) for confidence in (less, more))
    if not contradicted(log, narrow, less):
        assert wide.low <= narrow.low + 1e-4
        assert narrow.high <= wide.high + 1e-4
    for total in (20.0, 30.0, 40.0):
        early, late = (decide(log, [Claim(total, confidence)]) for confidence in (less, more))
        if late.outcome[0]:
            assert early.outcome[0]
            assert early.at[0] <= late.at[0]


@pytest.mark.slow
def test_the_interval_covers_at_every_moment():
    rng = np.random.default_rng(9)
    truth = rng.choice([0.0, 0.25, 1.0], size=80, p=[0.3, 0.2, 0.5])
    log = led(truth, Policy(budget=60, batch=4), seeds=120)
    missed = 0
    for s in range(120):
        moments = [interval_of_draws(log[s][:t], 0.95) for t in (5, 12, 20, 30, 45, 60)]
        missed += any(not i.low - 1e-9 <= truth.mean() <= i.high + 1e-9 for i in moments)
        width = [i.high - i.low for i in moments]
        assert width == sorted(width, reverse=True)
    assert missed / 120 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 120)
