"""Scores by values of the answers: closed forms, unbiased estimates, bounds of bets, and claims with the other sign."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.claims.answer_scores import (
    AnswerClaim,
    AnswerScores,
    MirroredClaim,
    PairedAnswerClaim,
)
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError
from pytest_adaptive_eval.inference.betting import Claim, decide, log_wealth
from pytest_adaptive_eval.inference.design import uniform_draws

SECONDS = np.array([[0.5, 2.0], [1.0, 3.0], [np.inf, 1.0], [np.nan, 1.0]])


def all_right(k, name="v"):
    return AnswerScores(name, k=k)


def any_right(k):
    return AnswerScores("v", k=k, opposite=True, complement=True)


def scored(scores, values):
    log = replace(uniform_draws(np.ones(len(values)), 9), answers={"v": np.asarray(values, dtype=float)})
    return scores.of(log)


def test_share_within_a_bound_has_the_bound_and_not_a_time_out():
    assert scored(AnswerScores("v", within=2.0), SECONDS).tolist() == pytest.approx(
        [1.0, 0.5, 0.5, math.nan], nan_ok=True
    )


def test_values_are_cut_at_the_cap_and_divided_by_it():
    assert scored(AnswerScores("v", cap=2.0), SECONDS).tolist() == pytest.approx(
        [0.625, 0.75, 0.75, math.nan], nan_ok=True
    )
    assert scored(AnswerScores("v", cap=2.0, opposite=True), SECONDS)[:3].tolist() == pytest.approx([0.375, 0.25, 0.25])


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=7), st.data())
def test_pass_estimates_are_shares_of_the_subsets_of_samples(samples, data):
    k = data.draw(st.integers(1, len(samples)))
    subsets = list(itertools.combinations([score == 1.0 for score in samples], k))
    assert scored(all_right(k), [samples])[0] == pytest.approx(sum(map(all, subsets)) / len(subsets))
    assert scored(any_right(k), [samples])[0] == pytest.approx(sum(map(any, subsets)) / len(subsets))


def distribution(n, p):
    return [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]


def outcomes(n):
    return [[1.0] * c + [0.0] * (n - c) for c in range(n + 1)]


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 3), (5, 3), (8, 2)])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.7, 1.0])
def test_pass_estimates_are_unbiased_and_vary_no_more_than_their_bound(n, k, p):
    weights = np.array(distribution(n, p))
    for rule, truth in ((all_right(k), p**k), (any_right(k), 1 - (1 - p) ** k)):
        estimates = scored(rule, outcomes(n))
        assert weights @ estimates == pytest.approx(truth)
        variance = weights @ (estimates - truth) ** 2
        assert variance <= k / n * min(truth * (1 - truth), k * p * (1 - p)) + 1e-12


def test_noise_of_decoding_falls_with_samples_that_agree():
    scores = all_right(2)
    log = replace(uniform_draws(np.ones(400), 900), noise=0.1)
    agree = np.repeat(np.arange(400) % 2, 4).reshape(400, 4).astype(float)
    differ = np.tile([0.0, 1.0, 0.0, 1.0], (400, 1))
    noise = [float(scores.view(replace(log, answers={"v": values})).noise) for values in (agree, differ)]
    assert noise[0] < 0.01 < 0.06 < noise[1] <= 2 / 4 * 0.25
    assert float(scores.view(replace(log, noise=0.0, answers={"v": differ})).noise) == 0.0


def test_one_draw_estimates_of_unequal_draws_are_unbiased_and_bounded():
    q = np.array([0.1, 0.2, 0.3, 0.4])
    seconds = np.array([1.0, 5.0, 2.0, 9.0])
    reach = 1.0 / q.min()
    claim = AnswerClaim(2.0, scores=AnswerScores("seconds", within=2.0))
    totals = []
    for item in range(4):
        log = replace(
            uniform_draws(np.ones(1), 4),
            propensities=q[[item]],
            down=np.array([reach / 2]),
            up=np.array([reach / 2]),
            answers={"seconds": seconds[[item]][:, None]},
        )
        view = claim.view(log)
        totals.append(float(view.totals[0]))
        expected = float(view.rest[0])
        assert expected - view.down[0] <= totals[-1] <= expected + view.up[0]
    assert q @ totals == pytest.approx(2.0)


def test_answers_without_a_value_count_against_both_verdicts():
    seconds = np.full((60, 1), 1.0)
    seconds[:20] = np.nan
    log = replace(uniform_draws(np.zeros(60), 60), answers={"seconds": seconds})
    scores = AnswerScores("seconds", within=2.0)
    totals = {20.0: 1, 40.0: 1, 50.0: 0, 60.0: 0}
    for total, outcome in totals.items():
        assert decide(log, [AnswerClaim(total, scores=scores)]).outcome.tolist() == [outcome]
    assert decide(log, [AnswerClaim(1.0, scores=AnswerScores("steps", within=2.0))]).outcome.tolist() == [0]


@given(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=1, max_size=30), st.floats(5, 35))
def test_an_upper_limit_is_won_as_a_lower_one_is_lost(scores, total):
    log = replace(uniform_draws(np.array(scores), 40), fixed=False, horizon=0)
    upper = Claim(total)
    mirrored = MirroredClaim.of(upper, 40)
    wealth = log_wealth(mirrored.view(log), mirrored, 1)
    other = log_wealth(log, upper, -1)
    open_draws = np.isfinite(wealth) & np.isfinite(other)
    assert wealth[open_draws] == pytest.approx(other[open_draws])
    assert mirrored.sought == total


def test_upper_limits_of_a_whole_bank_are_decided_by_its_sum():
    log = uniform_draws(np.r_[np.ones(10), np.zeros(30)], 40)
    for total, outcome in ((9.0, -1), (10.0, 1), (11.0, 1)):
        assert decide(log, [MirroredClaim.of(Claim(total), 40)]).outcome.tolist() == [outcome]


def test_a_loss_against_a_baseline_is_that_of_the_same_values():
    rule = AnswerScores("seconds", within=2.0)
    before = replace(uniform_draws(np.ones(40), 40), answers={"seconds": np.full((40, 1), 1.0)})
    baseline = Baseline("old", np.ones(40), before)
    now = np.full((40, 1), 1.0)
    now[:4] = 3.0
    log = replace(uniform_draws(np.zeros(40), 40), answers={"seconds": now})
    for margin, outcome in ((0.05, -1), (0.11, 1)):
        claim = PairedAnswerClaim.against(baseline, margin, 0.95, rule)
        assert decide(log, [claim]).outcome.tolist() == [outcome]
    with pytest.raises(BaselineError, match="the baseline 'old' has no answer with a value of steps"):
        PairedAnswerClaim.against(baseline, 0.11, 0.95, AnswerScores("steps", within=2.0))
