"""Budgets of uniform draws: bets that learn from the answers how far predictions count."""

from dataclasses import replace
from itertools import permutations, product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.inference import tuning
from pytest_adaptive_eval.inference.betting import Claim, decide, interval_of_draws, log_wealth
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.sampling import is_exact, mean_of_draws
from pytest_adaptive_eval.inference.tuning import is_tunable, tuned


def predicted_log(scores, items, p, take_all=0):
    """Uniform draws of a bank whose predictions p (n,) do not change; scores and items have shape (..., t)."""
    scores, items, n = np.asarray(scores, float), np.asarray(items), len(p)
    place = np.arange(items.shape[-1])
    left, chosen = n - place, p[items]
    remaining = np.ones((*items.shape, n), bool)
    for k in place[1:]:
        remaining[..., k:, :] &= np.arange(n) != items[..., k - 1, None, None]
    rest = (p * remaining).sum(-1)
    return DesignLog(
        items,
        scores,
        np.broadcast_to(np.where(place < take_all, 1.0, 1 / left), items.shape),
        chosen,
        rest,
        (p * (1 - p) * remaining).sum(-1) * left,
        np.where(remaining, p, 0).max(-1) * left,
        (1 - np.where(remaining, p, 1).min(-1)) * left,
        n,
        take_all=take_all,
        horizon=len(place),
        fixed=True,
    )


def informed(seed, n=200, count=80, skill=1.0, subjects=(), take_all=0):
    """Draws from a bank whose predictions explain as much of the scores as `skill` says."""
    rng = np.random.default_rng(seed)
    p = 1 / (1 + np.exp(-2.5 * rng.normal(size=n)))
    truth = (rng.random((*subjects, n)) < skill * p + (1 - skill) * p.mean()).astype(float)
    items = rng.random((*subjects, n)).argsort(-1)[..., :count]
    return predicted_log(np.take_along_axis(truth, items, -1), items, p, take_all), truth


@pytest.mark.parametrize("take_all", [0, 5])
def test_tuned_predictions_are_those_of_a_loop(take_all):
    log, _ = informed(1, take_all=take_all)
    found, left = tuned(log), log.size - np.arange(80)
    average = log.rest / left
    for k in range(take_all, 80):
        products = squares = plain = residual = right = 0.0
        for j in range(take_all, k):
            mean = (right + 2 * average[j]) / (j - take_all + 2)
            x = log.predictions[j] - average[j]
            b = (found.log.predictions[j] - average[j]) / x
            residual += (log.scores[j] - mean - b * x) ** 2
            plain += (log.scores[j] - mean) ** 2
            products, squares, right = products + x * (log.scores[j] - mean), squares + x**2, right + log.scores[j]
        spread = max(average[k] * (1 - average[k]) - log.variance[k] / left[k] ** 2, 0.0)
        b = min(max(products / (squares + tuning.WORTH * spread), 0.0), 1.0)
        assert found.log.predictions[k] == pytest.approx(average[k] + b * (log.predictions[k] - average[k]))
        mean = (right + 2 * average[k]) / (k - take_all + 2)
        prior = tuning.WORTH * mean * (1 - mean)
        unexplained = (prior + residual) / (prior + plain)
        assert found.log.variance[k] == pytest.approx(unexplained * average[k] * (1 - average[k]) * left[k] ** 2)
    assert found.start >= take_all


def test_what_is_bet_on_a_draw_depends_on_earlier_answers_alone():
    log, _ = informed(2)
    first = tuned(log)
    second = tuned(replace(log, scores=np.where(np.arange(80) < 40, log.scores, 1 - log.scores)))
    np.testing.assert_array_equal(first.log.predictions[:41], second.log.predictions[:41])
    np.testing.assert_array_equal(first.log.variance[:41], second.log.variance[:41])
    assert not np.array_equal(first.log.predictions[41:], second.log.predictions[41:])


def test_predictions_count_sooner_the_better_they_are_and_never_where_they_are_wrong():
    starts = [tuned(informed(3, skill=skill, subjects=(60,))[0]).start for skill in (1.0, 0.6, 0.0)]
    means = [start.mean() for start in starts]
    assert means[0] < 30 < means[1] < means[2]
    assert (starts[2] == 80).mean() > 0.9


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("helpful", "earlier"), [(0.0, ()), (2.6, ()), (3.0, ()), (0.0, (2,)), (2.6, (1, 3))])
def test_the_wealth_is_fair_over_all_orders_of_all_banks(monkeypatch, side, helpful, earlier):
    monkeypatch.setattr(tuning, "HELPFUL", helpful)  # never, from some draw on that the answers determine, and at once
    monkeypatch.setattr(tuning, "WORTH", 0.5)
    n, count = 5, 4
    items = np.array(list(permutations(range(n), count)))
    p = np.array([0.9, 0.8, 0.6, 0.2, 0.1])
    for truth in product([0.0, 1.0], repeat=n):
        right = sum(truth)
        log = replace(predicted_log(np.array(truth)[items], items, p), earlier=earlier)
        for total in range(1, n + 1):
            if (right >= total) == (side > 0):
                continue  # the claim of that side is true
            wealth = np.exp(log_wealth(log, Claim(float(total), 0.7), side)[:, -1])
            assert wealth.mean() <= 1 + 1e-6
            if right == total - (side > 0):
                assert wealth.mean() > 0.8, "nothing is given away at the claim but cut stakes"


@given(st.integers(10, 60), st.data())
def test_without_help_the_bets_are_the_exact_test(size, data):
    drawn = data.draw(st.integers(1, size - 1))
    right = data.draw(st.integers(0, drawn))
    total = data.draw(st.integers(0, size))
    family = data.draw(st.integers(1, 3))
    log = uniform_draws(np.r_[np.ones(right), np.zeros(drawn - right)], size)
    low = interval_of_draws(log, 0.95).low * size
    high = interval_of_draws(log, 1 - 0.05 / family).high * size
    expected = 1 if low >= total - 1e-6 else -1 if high < total - 1e-6 else 0
    assert decide(log, [Claim(float(total))], family).outcome[0] == expected


@pytest.mark.slow
def test_good_predictions_make_a_budgets_interval_narrower_and_wrong_ones_no_wider():
    def widths(skill):
        logs, truth = informed(4, skill=skill, subjects=(60,))
        found = [interval_of_draws(logs[s]) for s in range(60)]
        exact = [interval_of_draws(uniform_draws(logs.scores[s], 200)) for s in range(60)]
        errors = [mean_of_draws(logs[s]) - truth[s].mean() for s in range(60)]
        plain = [logs.scores[s].mean() - truth[s].mean() for s in range(60)]
        assert {i.method for i in found} <= {"exact uniform", "bets at the budget"}
        ratio = np.median([i.high - i.low for i in found]) / np.median([i.high - i.low for i in exact])
        return ratio, np.std(errors) / np.std(plain)

    assert max(widths(1.0)) < 0.88
    width, error = widths(0.0)
    assert width < 1.01
    assert error < 1.05


def test_only_right_and_wrong_answers_to_a_budgets_uniform_draws_are_tuned():
    log, _ = informed(5)
    assert is_tunable(log)
    assert is_tunable(replace(log, scores=np.where(log.items % 9 == 0, np.nan, log.scores)))
    assert not is_tunable(replace(log, fixed=False))
    assert not is_tunable(replace(log, scores=log.scores / 2))
    assert not is_tunable(replace(log, propensities=log.propensities * np.linspace(0.9, 1.1, 80)))
    partly = replace(log, high=np.full(80, 0.5))
    assert is_tunable(partly)
    assert not is_tunable(replace(partly, scores=np.where(log.items % 9 == 0, np.nan, log.scores)))
    assert not is_exact(log)
    assert is_exact(replace(log, predictions=np.full(80, 0.5), rest=0.5 * (200 - np.arange(80))))


@pytest.mark.slow
@pytest.mark.parametrize("skill", [1.0, 0.4, -0.5])
@pytest.mark.parametrize("count", [20, 90])
def test_budgets_err_at_most_at_their_rate(skill, count):
    logs, truth = informed(6, count=count, skill=skill, subjects=(1200,))
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1200)
    sums = truth.sum(-1, keepdims=True)
    claim = Claim(0.0)
    sides: tuple[tuple[Literal[1, -1], Any], ...] = ((1, sums + 1.0), (-1, sums))
    for side, total in sides:
        assert (log_wealth(logs, claim, side, side * total)[:, -1] >= -claim.log_alpha).mean() <= most
