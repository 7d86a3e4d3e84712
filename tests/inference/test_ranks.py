"""Predictive distributions and ranks: closed forms, what must hold of any, and that stated probabilities come true."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.conformal import Conformal
from pytest_adaptive_eval.inference.ranks import (
    DRAWS,
    Predictive,
    RankDistribution,
    rank_distribution,
    rank_probability,
)

#: Few values, so that ties are frequent.
GRID = st.integers(0, 6).map(lambda i: i / 6)
PREDICTIVES = st.lists(GRID, min_size=1, max_size=12).map(lambda draws: Predictive(np.array(draws)))
REFERENCES = st.lists(GRID, min_size=1, max_size=10)


def table(errors):
    return Conformal("policy", tuple(sorted(errors)))


# Predictive distributions


def test_draws_are_sorted_cut_and_kept():
    draws = Predictive(np.array([0.4, -0.2, 1.3])).draws
    assert draws.tolist() == [0.0, 0.4, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        draws[0] = 0.5


def test_a_normal_is_one():
    some = Predictive.normal(0.5, 0.04)
    assert some.draws.mean() == pytest.approx(0.5)
    assert some.draws.std() == pytest.approx(0.04, rel=1e-3)
    for reference in (0.38, 0.47, 0.5, 0.55):
        assert rank_probability(some, [reference], 1) == pytest.approx(norm.sf(reference, 0.5, 0.04), abs=1 / DRAWS)
    assert set(Predictive.normal(0.3, 0.0).draws.tolist()) == {0.3}


@pytest.mark.parametrize("n", [2, 19, 60, DRAWS - 1, 3 * DRAWS])
def test_every_gap_between_replayed_errors_is_equally_likely(n):
    errors = np.sort(np.random.default_rng(n).standard_t(4, size=n))
    some = Predictive.replayed(table(errors), 0.5, 0.001)
    for k in {1, 2, n // 2, n - 1, n} - {0}:
        at = 0.5 + 0.001 * errors[k - 1]
        assert 1.0 - rank_probability(some, [at], 1) == pytest.approx(k / (n + 1), abs=1.01 / DRAWS)


def test_the_tails_of_replayed_errors_are_exponential():
    errors = np.arange(-10.0, 11.0)  # the mean excess of the outer five over the sixth is 3
    some = Predictive.replayed(table(errors), 0.5, 0.01)
    for beyond in (1.0, 3.0, 9.0):
        expected = math.exp(-beyond / 3.0) / 22
        for side in (-1, 1):
            tail = 1.0 - rank_probability(some, [0.5 - 0.01 * (10 + beyond)], 1)
            if side == 1:
                tail = rank_probability(some, [0.5 + 0.01 * (10 + beyond)], 1)
            assert tail == pytest.approx(expected, abs=1 / DRAWS)


def test_errors_that_are_all_alike_and_a_scale_of_0_leave_one_value():
    assert set(Predictive.replayed(table([1.0] * 5), 0.5, 0.1).draws.tolist()) == {0.6}
    assert set(Predictive.replayed(table([-1.0, 2.0]), 0.5, 0.0).draws.tolist()) == {0.5}


def test_errors_that_go_with_the_projection_are_placed_at_the_candidates():
    rng = np.random.default_rng(3)
    projected = rng.uniform(0.3, 0.7, 400)
    noise = rng.normal(size=400)
    errors = 1.0 - 8.0 * (projected - 0.5) + 0.5 * noise
    order = errors.argsort()
    known = Conformal("policy", tuple(errors[order]), projected=tuple(projected[order]))
    for accuracy, at in ((0.35, 0.35), (0.5, 0.5), (0.66, 0.66), (0.95, 0.7), (0.1, 0.3)):  # level beyond .3 and .7
        error = (Predictive.replayed(known, accuracy, 0.01).draws - accuracy) / 0.01
        assert error.mean() == pytest.approx(1.0 - 8.0 * (at - 0.5), abs=0.1)
        assert error.std() == pytest.approx(0.5, rel=0.1)
    alike = Conformal("policy", (-1.0, 0.5, 2.0), projected=(0.4, 0.4, 0.4))
    plain = Predictive.replayed(table([-1.0, 0.5, 2.0]), 0.7, 0.1)
    np.testing.assert_array_equal(Predictive.replayed(alike, 0.7, 0.1).draws, plain.draws)


def test_a_line_through_few_errors_is_not_trusted_more_than_it_foretells():
    """Each residual is what the line through the others misses the error by, but for its level."""
    errors, projected = (-1.0, 0.0, 2.0), (0.5, 0.4, 0.9)
    beside = np.array(projected) - 0.6
    expected = []
    for i in range(3):
        others = [j for j in range(3) if j != i]
        slope = beside[others] @ (np.array(errors) - 1 / 3)[others] / (beside[others] @ beside[others])
        expected.append(errors[i] - 1 / 3 - slope * beside[i])
    draws = Predictive.replayed(Conformal("policy", errors, projected=projected), 0.6, 0.01).draws
    middle = np.interp(np.array([0.25, 0.5, 0.75]), (np.arange(DRAWS) + 0.5) / DRAWS, draws)
    np.testing.assert_allclose(middle, 0.6 + 0.01 * (1 / 3 + np.sort(expected)), atol=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Predictive(np.array([])), "0 draws"),
        (lambda: Predictive(np.array([0.5, math.nan])), "2 draws .* all must be finite"),
        (lambda: Predictive.normal(math.nan, 0.1), "an accuracy of nan"),
        (lambda: Predictive.normal(0.5, -0.1), "an error of -0.1"),
        (lambda: Predictive.normal(0.5, math.inf), "an error of inf"),
        (lambda: Predictive.replayed(table([0.1]), 0.5, 0.1), "1 replayed errors"),
        (lambda: Predictive.replayed(table([0.1, 0.2]), 0.5, -1.0), "an error of -1.0"),
        (lambda: Predictive.replayed(table([0.1, math.inf]), 0.5, 1.0), "must be finite"),
        (lambda: rank_probability(Predictive(np.array([0.5])), [], 1), "0 accuracies"),
        (lambda: rank_distribution(Predictive(np.array([0.5])), []), "0 accuracies"),
        (lambda: rank_probability(Predictive(np.array([0.5])), [0.1, math.nan], 1), "2 accuracies"),
        (lambda: rank_probability(Predictive(np.array([0.5])), [math.nan], 1), "1 accuracies"),
    ],
)
def test_numbers_from_which_nothing_follows(make, message):
    with pytest.raises(EstimationError, match=message):
        make()


# Ranks


def test_ranks_counted_by_hand():
    some = Predictive(np.array([0.2, 0.4, 0.6, 0.95]))
    references = [0.9, 0.1, 0.5]
    assert rank_distribution(some, references).probabilities.tolist() == [0.25, 0.25, 0.5, 0.0]
    assert [rank_probability(some, references, k) for k in (1, 2, 3, 4, 9)] == [0.25, 0.5, 1.0, 1.0, 1.0]
    assert rank_distribution(some, references).mean == 0.25 + 0.5 + 1.5
    assert [rank_probability(some, [a], 1) for a in (0.0, 0.3, 0.5, 0.99)] == [1.0, 0.75, 0.5, 0.0]


def test_tied_subjects_stand_in_any_order():
    some = Predictive(np.array([0.5]))
    assert rank_probability(some, [0.5], 1) == 0.5
    assert rank_probability(some, [0.1 + 0.2 + 0.2], 1) == 0.5  # one unit in the last place beside it
    np.testing.assert_allclose(rank_distribution(some, [0.5, 0.9, 0.5, 0.1]).probabilities, [0, 1 / 3, 1 / 3, 1 / 3, 0])


def test_intervals_of_the_rank():
    ranks = RankDistribution(np.array([0.04, 0.06, 0.6, 0.2, 0.06, 0.04]))
    assert ranks.interval(0.95) == (2, 5)
    assert ranks.interval(0.97) == (1, 6)
    assert ranks.interval(0.9 + 1e-6) == (2, 4 + 1)
    assert ranks.interval(0.6) == (3, 3)
    assert RankDistribution(np.array([0.25, 0.5, 0.25])).interval(0.75) == (2, 2)
    assert RankDistribution(np.array([0.0, 0.0, 1.0])).interval(0.999) == (3, 3)


@given(PREDICTIVES, REFERENCES)
def test_probabilities_of_ranks_are_a_distribution(some, references):
    ranks = rank_distribution(some, references)
    assert len(ranks.probabilities) == len(references) + 1
    assert (ranks.probabilities >= 0).all()
    assert ranks.probabilities.sum() == pytest.approx(1.0)
    first_k = [rank_probability(some, references, k) for k in range(1, len(references) + 2)]
    np.testing.assert_allclose(ranks.probabilities.cumsum(), first_k, atol=1e-12)
    assert first_k == sorted(first_k)
    assert first_k[-1] == 1.0
    best, worst = ranks.interval(0.9)
    assert 1 <= best <= worst <= len(references) + 1
    assert ranks.probabilities[: best - 1].sum() <= 0.1 + 1e-9
    assert ranks.probabilities[worst:].sum() <= 0.1 + 1e-9


@given(PREDICTIVES, REFERENCES)
def test_the_mean_rank_counts_the_references_that_are_likely_better(some, references):
    expected = 1.0 + sum(1.0 - rank_probability(some, [a], 1) for a in references)
    assert rank_distribution(some, references).mean == pytest.approx(expected)


@given(PREDICTIVES, REFERENCES, st.integers(1, 6), st.integers(1, 11), st.randoms())
def test_a_better_candidate_stands_higher_and_the_order_of_references_is_no_matter(some, references, steps, k, random):
    better = Predictive(some.draws + steps / 6)
    assert rank_probability(better, references, k) >= rank_probability(some, references, k)
    assert rank_distribution(better, references).mean <= rank_distribution(some, references).mean + 1e-12
    shuffled = random.sample(references, len(references))
    assert rank_probability(some, shuffled, k) == rank_probability(some, references, k)


# Stated probabilities come true


def stated_and_seen(seed, make, *, shrunken):
    """What is stated of 17 new subjects among 60 known ones, and whether it is so; 120 times.

    The errors are skewed, biased, and twice as large as is said. They have nothing to do with the estimate if that is
    `shrunken`, else with the truth.
    """
    rng = np.random.default_rng(seed)
    stated, seen = [], []
    for _ in range(120):
        scale = rng.uniform(0.02, 0.06, size=77)
        errors = (rng.gamma(2.0, size=77) - 2.0) * 1.5 + 0.4
        first = rng.beta(4, 3, size=77)
        estimates = first if shrunken else first - scale * errors
        truth = first + scale * errors if shrunken else first
        known, order = truth[:60], errors[:60].argsort()
        kept = Conformal("policy", tuple(errors[order]), projected=tuple(estimates[order]))
        for s in range(60, 77):
            some = make(kept, estimates[s], scale[s], known)
            better = (known > truth[s]).sum()
            for k in (3, 10, 20, 30):
                stated.append(rank_probability(some, known, k))
                seen.append(better < k)
            stated.append(rank_probability(some, [known[0]], 1))
            seen.append(truth[s] > known[0])
    return np.array(stated), np.array(seen)


def replayed(kept, estimate, scale, known):
    return Predictive.replayed(kept, estimate, scale)


def level(kept, estimate, scale, known):
    return Predictive.replayed(replace(kept, projected=()), estimate, scale)


def trusting(kept, estimate, scale, known):
    return Predictive.normal(estimate, scale)


def unreliability(stated, seen):
    """Mean distance between what is stated and what is seen, over tenths."""
    tenth = np.minimum((10 * stated).astype(int), 9)
    weight = np.bincount(tenth, minlength=10)
    return float(np.abs(np.bincount(tenth, stated - seen, 10)).sum() / weight.sum())


def brier(stated, seen):
    return float(((stated - seen) ** 2).mean())


@pytest.mark.slow
@pytest.mark.parametrize(("shrunken", "right", "wrong"), [(True, replayed, trusting), (False, replayed, level)])
def test_what_is_stated_comes_true(shrunken, right, wrong):
    stated, seen = stated_and_seen(1, right, shrunken=shrunken)
    assert unreliability(stated, seen) < 0.012
    for low in np.arange(10) / 10:
        here = (stated >= low) & (stated <= low + 0.1)
        assert abs(stated[here].mean() - seen[here].mean()) < 0.08
    assert brier(stated, seen) < 0.5 * seen.var()  # it says something
    other, _ = stated_and_seen(1, wrong, shrunken=shrunken)
    assert unreliability(other, seen) > 0.018
    assert brier(stated, seen) < brier(other, seen)
