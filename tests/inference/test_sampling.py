"""Design-based intervals: exact where they can be, unbiased and of the promised coverage where they cannot."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom, t

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.noise import noise_margin
from pytest_adaptive_eval.inference.sampling import (
    approximate_interval,
    is_exact,
    mean_of_draws,
    sampling_error,
    standard_error,
)
from pytest_adaptive_eval.items.bank import ItemBank


def uniform_log(scores, size):
    drawn = len(scores)
    left = size - np.arange(drawn)
    half = np.full(drawn, 0.5)
    reach = left * 0.5
    columns = (np.arange(drawn), np.array(scores, float), 1 / left, half, left * 0.5, left**2 * 0.25, reach, reach)
    return DesignLog(*columns, size, horizon=drawn, fixed=True)


def test_the_error_of_new_items_and_answers_is_the_spread_over_the_root_of_their_number():
    scores = np.array([1.0] * 30 + [0.0] * 10 + [np.nan])
    mean, spread = 30.5 / 41, (30.5 * 10.5 / 41**2) ** 0.5
    assert mean == pytest.approx(0.744, abs=1e-3)
    assert sampling_error(scores) == pytest.approx(spread / 40**0.5)
    assert sampling_error(np.full(100, 0.5)) == pytest.approx((0.25 / 101) ** 0.5 / 10)
    assert sampling_error(np.ones(20)) > 0.0  # right answers alone make nothing certain


@given(st.integers(2, 60), st.data())
def test_exact_bounds_are_the_hypergeometric_ones(size, data):
    drawn = data.draw(st.integers(1, size - 1))
    right = data.draw(st.integers(0, drawn))
    interval = interval_of_draws(uniform_log([1.0] * right + [0.0] * (drawn - right), size), 0.95)
    totals = np.arange(right, size - (drawn - right) + 1)
    low = next(k for k in totals if hypergeom.sf(right - 1, size, k, drawn) > 0.05 - 1e-10)
    high = next(k for k in totals[::-1] if hypergeom.cdf(right, size, k, drawn) > 0.05 - 1e-10)
    assert (interval.low * size, interval.high * size) == pytest.approx((low, high))
    assert interval.method == "exact uniform"


@given(st.lists(st.sampled_from([0.0, 0.3, 1.0, np.nan]), min_size=1, max_size=30), st.integers(0, 20))
def test_uniform_draws_are_predicted_by_the_mean_so_far(scores, more):
    log = uniform_draws(np.array(scores), len(scores) + more)
    earlier = [0.0, 1.0]
    for k, score in enumerate(scores):
        left = log.size - k
        assert log.predictions[k] == pytest.approx(np.mean(earlier))
        assert log.variance[k] == pytest.approx(np.var(earlier) * left**2)
        assert (log.rest[k], log.down[k]) == pytest.approx((np.mean(earlier) * left,) * 2)
        assert log.up[k] == pytest.approx((1 - np.mean(earlier)) * left)
        earlier.append(0.5 if np.isnan(score) else score)
    assert log.uniform
    assert (log.fixed, log.horizon) == (True, len(scores))


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(("size", "alpha"), [(4, Fraction(1, 4)), (12, Fraction(1, 20)), (30, Fraction(1, 4))])
def test_the_lower_exact_bound_is_the_least_total_that_integers_do_not_exclude(size, alpha):
    def at_least(right, drawn, total):
        ways = sum(comb(total, k) * comb(size - total, drawn - k) for k in range(right, drawn + 1))
        return Fraction(ways, comb(size, drawn))

    for drawn in range(1, size):
        for right in range(drawn + 1):
            log = uniform_log([1.0] * right + [0.0] * (drawn - right), size)
            least = next(total for total in range(size + 1) if at_least(right, drawn, total) >= alpha or right == 0)
            assert round(interval_of_draws(log, 1.0 - float(alpha)).low * size) == least


@pytest.mark.parametrize("total", [0, 1, 7, 20, 33, 40])
def test_each_exact_bound_errs_at_most_alpha_in_all_samples(total):
    size, drawn = 40, 12
    right = np.arange(max(0, drawn - (size - total)), min(drawn, total) + 1)
    mass = hypergeom.pmf(right, size, total, drawn)
    bounds = [interval_of_draws(uniform_log([1.0] * r + [0.0] * (drawn - r), size)) for r in right.tolist()]
    assert sum(m for m, b in zip(mass, bounds, strict=True) if b.low * size > total + 1e-9) <= 0.05 + 1e-9
    assert sum(m for m, b in zip(mass, bounds, strict=True) if b.high * size < total - 1e-9) <= 0.05 + 1e-9


def test_everything_asked_leaves_nothing_open():
    interval = interval_of_draws(uniform_log([1.0, 0.0, 1.0, 1.0], 4))
    assert (interval.estimate, interval.low, interval.high) == (0.75, 0.75, 0.75)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=15))
def test_fractional_scores_stay_within_what_is_certain(scores):
    size = 30
    interval = interval_of_draws(uniform_log(scores, size))
    least, most = sum(scores) / size, (sum(scores) + size - len(scores)) / size
    assert least - 1e-12 <= interval.low <= interval.estimate <= interval.high <= most + 1e-12


def weighted_logs(truth, selector, floor, budget, seeds, perturb=0.0):
    rng = np.random.default_rng(7)
    n = len(truth)
    intercept = np.where(truth > 0.5, 1.0, -1.0) + rng.normal(0, 1.0 + perturb, n)
    bank = ItemBank("b", [f"i{i}" for i in range(n)], [None] * n, rng.lognormal(0, 0.3, n), intercept)
    session = Session(bank, Policy(SELECTORS[selector], floor, budget), seed=3, subjects=seeds)
    while (proposal := session.ask()) is not None:
        session.tell(truth[proposal.items])
    return [session.log(s) for s in range(seeds)]


@pytest.mark.slow
@pytest.mark.parametrize("selector", ["spread", "information"])
@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
def test_weighted_bounds_cover_at_their_confidence(selector, share):
    rng = np.random.default_rng(11)
    truth = (rng.random(300) < share).astype(float)
    seeds = 400
    intervals = [interval_of_draws(log) for log in weighted_logs(truth, selector, 0.25, 60, seeds)]
    mean = truth.mean()
    slack = 3 * np.sqrt(0.05 * 0.95 / seeds)
    assert np.mean([i.low > mean for i in intervals]) <= 0.05 + slack
    assert np.mean([i.high < mean for i in intervals]) <= 0.05 + slack
    centre = np.mean([i.estimate for i in intervals])
    spread = np.std([i.estimate for i in intervals]) / np.sqrt(seeds)
    assert abs(centre - mean) < 4 * spread
    assert max(i.high - i.low for i in intervals) < 0.5


def test_weighted_draws_are_judged_by_bets():
    truth = (np.random.default_rng(4).random(300) < 0.5).astype(float)
    (log,) = weighted_logs(truth, "spread", 0.25, 40, 1)
    assert (log.horizon, log.fixed, interval_of_draws(log).method) == (40, True, "bets at the budget")
    assert interval_of_draws(replace(log, fixed=False)).method == "anytime-valid"
    assert interval_of_draws(log[:30]).method == "bets at the budget", "it ended early, for whatever reason"


def test_uniform_draws_whose_number_was_not_planned_are_judged_by_bets():
    log = uniform_log([1.0] * 30 + [0.0] * 10, 300)
    assert is_exact(log)
    assert not is_exact(replace(log, fixed=False))
    assert not is_exact(log[:39]), "it ended early, for whatever reason"
    assert not is_exact(replace(log, scores=np.full(40, 0.5)))
    assert is_exact(replace(log, scores=np.r_[np.nan, log.scores[1:]]))


@pytest.mark.parametrize("foreseen", [1e-3, 1.0, 1e3])
def test_the_standard_error_is_that_of_the_draws_and_of_the_decodings(foreseen):
    truth = (np.random.default_rng(4).random(300) < 0.5).astype(float)
    (log,) = weighted_logs(truth, "spread", 0.25, 40, 1)
    log = replace(log, variance=foreseen * log.variance)
    weights = 1 / np.maximum(log.variance, (0.1 * (300 - np.arange(40))) ** 2)
    weights /= weights.sum()
    empirical = (weights**2 * (log.totals - weights @ log.totals) ** 2).sum() / (1 - (weights**2).sum())
    by_draws = max(empirical, (weights**2 * log.variance).sum())
    assert standard_error(log) == pytest.approx(np.sqrt(by_draws) / 300)
    assert standard_error(replace(log, noise=0.09)) == pytest.approx(np.sqrt(by_draws + 40 * 0.09) / 300)
    assert mean_of_draws(log) == pytest.approx(weights @ log.totals / 300)


def test_the_mean_of_the_draws_lies_within_what_the_known_scores_allow():
    truth = (np.random.default_rng(4).random(300) < 0.5).astype(float)
    (log,) = weighted_logs(truth, "spread", 0.25, 40, 1)
    far = replace(log, propensities=log.propensities / 50)
    assert mean_of_draws(replace(far, scores=np.ones(40))) == 1.0
    assert mean_of_draws(replace(far, scores=np.zeros(40))) == 0.0
    half = np.r_[np.ones(39), 0.0]
    assert mean_of_draws(replace(far, scores=half)) == pytest.approx(299 / 300)
    assert mean_of_draws(replace(far, scores=1 - half)) == pytest.approx(1 / 300)
    missing = np.r_[np.zeros(39), np.nan]  # the limits count it as wrong below and as right above
    assert mean_of_draws(replace(far, scores=missing)) == 0.0
    assert mean_of_draws(replace(far, scores=1 - missing)) == 1.0


def test_noise_widens_an_interval_by_its_bound_within_0_and_1():
    log = replace(uniform_log([1.0] * 30 + [0.0] * 20, 100), noise=0.16)
    plain, wide = interval_of_draws(replace(log, noise=0.0), 0.9), interval_of_draws(log, 0.9)
    rate = np.log(80.0)  # at an eighth of the error rate
    half = (np.sqrt(2.0 * rate * 50 * 0.16) + rate / 3.0) / 100
    assert (plain.low - wide.low, wide.high - plain.high) == pytest.approx((half, half), rel=1e-6)
    assert wide.estimate == plain.estimate
    assert noise_margin(log, 0.9) == pytest.approx(100 * half, rel=1e-6)
    for score, end in ((0.0, "low"), (1.0, "high")):
        edge = replace(uniform_log([score] * 50, 100), noise=0.16)
        assert getattr(interval_of_draws(edge, 0.9), end) == score


@pytest.mark.slow
@pytest.mark.parametrize("asked", [2, 4, 8, 12])
def test_few_draws_by_a_bank_that_is_upside_down_mislead_no_bound(asked):
    """Approximate intervals of so few draws erred in a tenth to a fifth of such interviews."""
    truth = np.repeat([1.0, 0.0], 50)
    bank = ItemBank("b", [str(i) for i in range(100)], (), np.full((100, 1), 1.3), np.linspace(-4.0, 4.0, 100))
    session = Session(bank, Policy(SELECTORS["spread"], 0.5, budget=asked, batch=8), seed=4, subjects=400)
    while (proposal := session.ask()) is not None:
        session.tell(truth[proposal.items])
    found = [interval_of_draws(session.log(s)) for s in range(400)]
    assert {i.method for i in found} == {"bets at the budget"}
    assert np.mean([i.low > 0.5 + 1e-9 for i in found]) <= 0.05
    assert np.mean([i.high < 0.5 - 1e-9 for i in found]) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("n", "asked"), [(60, 12), (200, 10), (200, 40)])
def test_a_bank_that_is_sure_and_wrong_misleads_no_bound(n, asked):
    """A tenth of the items is lost that the bank takes for sure: most interviews meet none of it, and must not PASS."""
    rng = np.random.default_rng(1)
    bank = ItemBank("b", [str(i) for i in range(n)], (), np.full((n, 1), 1.5), 4.5 + 1.5 * rng.standard_normal(n))
    scores = np.ones(n)
    scores[rng.choice(n, n // 10, replace=False)] = 0.0
    policy = Policy(SELECTORS["spread"], 0.5, budget=asked, batch=8)
    session = Session(bank, policy, seed=2, subjects=600)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    found = [interval_of_draws(session.log(s)) for s in range(600)]
    assert np.mean([i.low > scores.mean() + 1e-9 for i in found]) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)
    assert np.mean([i.high < scores.mean() - 1e-9 for i in found]) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 600)


def test_missing_scores_are_bounded_from_both_sides():
    log = uniform_log([1.0, np.nan, 0.0], 10)
    wrong, right = (interval_of_draws(log.with_missing_as(score), 0.9) for score in (0.0, 1.0))
    whole = interval_of_draws(log, 0.9)
    assert (whole.low, whole.high, whole.confidence, whole.method) == (wrong.low, right.high, 0.9, "exact uniform")
    assert whole.estimate == pytest.approx((1 / 3 + 2 / 3) / 2)


def test_the_mean_of_draws_by_hand():
    # one-draw estimates of the total of 4 items: 0 + 2.2 + (1 - .5) * 4 = 4.2, and 1 + 1.5 + (0 - .5) * 3 = 1
    log = replace(uniform_log([1.0, 0.0], 4), rest=np.array([2.2, 1.5]), fixed=False)
    weights = np.array([1 / 4.0, 1 / 2.25])
    expected = float(weights @ np.array([4.2, 1.0]) / weights.sum())
    assert mean_of_draws(log) == pytest.approx(expected / 4)
    assert mean_of_draws(replace(log, scores=np.array([1.0, np.nan]))) == pytest.approx(
        min(float(weights @ np.array([4.2, 1.0 + 1.5 + 0.0]) / weights.sum()), 4.0) / 4
    )


def test_the_mean_of_uniform_draws_without_predictions_is_their_share():
    assert mean_of_draws(uniform_log([1.0, 0.0, 1.0], 40)) == pytest.approx(2 / 3)
    assert mean_of_draws(uniform_log([1.0, np.nan], 4)) == pytest.approx(0.75)
    assert mean_of_draws(uniform_log([0.0, 0.0, 1.0], 3)) == pytest.approx(1 / 3)


def test_approximate_bounds_lie_a_quantile_of_student_away():
    log = replace(uniform_log([1.0, 0.0] * 20, 400), rest=np.linspace(190.0, 210.0, 40))
    found = approximate_interval(log, 0.95)
    half = t.ppf(0.95, 39) * standard_error(log)
    assert found.estimate == mean_of_draws(log)
    assert (found.low, found.high) == pytest.approx((found.estimate - half, found.estimate + half), rel=1e-3)
    assert (found.confidence, found.method) == (0.95, "approximate")


def test_missing_scores_widen_approximate_bounds_and_none_leaves_the_scale():
    scores = np.array([1.0, 0.0] * 20)
    log = replace(uniform_log(scores, 400), rest=np.linspace(190.0, 210.0, 40))
    whole = approximate_interval(log)
    scores[[3, 4]] = np.nan
    lacking = approximate_interval(replace(log, scores=scores))
    assert lacking.low < whole.low - 0.01
    assert lacking.high > whole.high + 0.01
    few = approximate_interval(uniform_log([1.0, 0.0], 400), 0.99)
    assert (few.low, few.high) == (0.0, 1.0)


@pytest.mark.parametrize("kind", ["good", "shuffled"])
def test_approximate_intervals_cover_nearly_as_often_as_stated(kind):
    rng = np.random.default_rng(5)
    slope, easiness, n = rng.lognormal(0.0, 0.3, 300), rng.normal(0.0, 1.2, 300), 300
    used = easiness if kind == "good" else rng.permutation(easiness)
    bank = ItemBank("b", [str(i) for i in range(n)], (), slope, slope * used)
    scores = (rng.random((400, n)) < 1 / (1 + np.exp(-slope * (0.6 + easiness)))).astype(float)
    session = Session(bank, Policy(budget=40, batch=8), seed=1, subjects=400)
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    found = [approximate_interval(session.log(s), 0.975) for s in range(400)]
    covered = np.mean([i.low <= truth <= i.high for i, truth in zip(found, scores.mean(axis=1), strict=True)])
    assert 0.925 <= covered <= 0.985


def test_deterministic_draws_have_no_interval():
    log = uniform_log([1.0, 0.0], 10)
    silent = replace(log, propensities=np.full(2, np.nan))
    with pytest.raises(EstimationError, match="expected items drawn at random"):
        interval_of_draws(silent)
    with pytest.raises(EstimationError, match="no item was administered"):
        interval_of_draws(uniform_log([], 10))


def test_two_draws_are_unbiased_over_every_path():
    truth, size = np.array([1.0, 0.0, 1.0, 1.0]), 4
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    m = np.array([0.9, 0.2, 0.5, 0.7])
    expected = 0.0
    for i, j in product(range(size), repeat=2):
        if i == j:
            continue
        q1, q2 = weights[i], weights[j] / (1 - weights[i])
        first = m.sum() + (truth[i] - m[i]) / q1
        second = truth[i] + m.sum() - m[i] + (truth[j] - m[j]) / q2
        expected += q1 * q2 * (first + second) / 2
    assert expected == pytest.approx(truth.sum())


@pytest.mark.parametrize("calibrated", [True, False])
def test_estimates_rest_on_the_draws_before_the_first_one_that_was_not_awaited(calibrated):
    truth = np.ones(300)
    (log,) = weighted_logs(truth, "spread", 0.25, 40, 1) if calibrated else [uniform_log(truth[:40], 300)]
    lacking = replace(log, scores=np.where(np.arange(40) == 30, np.nan, log.scores), fixed=False, awaited=30)
    assert mean_of_draws(lacking) == pytest.approx(mean_of_draws(replace(log[:30], fixed=False)))
    assert standard_error(lacking) == standard_error(replace(log[:30], fixed=False))
    interval = interval_of_draws(lacking)
    unknown = interval_of_draws(replace(lacking, awaited=None))
    assert (interval.low, interval.high) == (unknown.low, unknown.high), "the interval allows for either"
    assert interval.estimate >= unknown.estimate
    assert replace(lacking, awaited=0).estimated is not None, "without a draw before it all count"
