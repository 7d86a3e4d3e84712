"""Judges and contestants from the same scores: recovery, bad judges, missing scores, errors, ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.extensions.studies.peers.reliability import fit_reliability, part_qualities
from pytest_adaptive_eval.extensions.studies.peers.scoring import paper_scores
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.inference.rank_correlation import rank_correlation

N = 12
SELF = np.arange(N)


def drawn(seed, *, rounds=40, n=N, quality=0.3, noise=0.7, answers=0.0, likings=0.0, whole=True):
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.0, quality, n)
    x = truth + rng.normal(0.0, answers, (rounds, n)) if answers else np.tile(truth, (rounds, 1))
    levels = 3.5 + rng.normal(0.0, 0.3, n)
    scores = levels[:, None] + x[:, None, :] + rng.normal(0.0, noise, (rounds, n, n)) + rng.normal(0, likings, (n, n))
    return truth, np.clip(np.rint(scores), 1.0, 5.0) if whole else scores, levels


def spoilt(seed, **more):
    """Judge 0 turns the true order round, 1 is constant, 2 gives itself fives."""
    truth, scores, _ = drawn(seed, **more)
    scores[:, 0] = 5.0 - 4.0 * np.argsort(np.argsort(truth)) / (len(truth) - 1)
    scores[:, 1] = 4.0
    scores[:, 2, 2] = 5.0
    return truth, np.rint(scores)


def test_what_was_put_in_is_found():
    truth, scores, levels = drawn(1, rounds=400, quality=0.5, noise=0.5, answers=0.4, whole=False)
    factor = np.linspace(0.6, 1.4, N)
    noisy = np.random.default_rng(2).normal(0.0, np.linspace(0.0, 1.0, N)[:, None], scores.shape)
    fit = fit_reliability(levels[:, None] + factor[:, None] * (scores - levels[:, None]) + noisy)
    assert fit.converged
    assert np.abs(fit.qualities - fit.qualities.mean() - truth + truth.mean()).max() < 4 * 0.4 / 20
    np.testing.assert_allclose(fit.scales, factor / factor.mean(), atol=0.1)
    np.testing.assert_allclose(fit.noises, np.hypot(0.5 * factor, np.linspace(0.0, 1.0, N)), atol=0.05)
    assert fit.spread == pytest.approx(0.4, abs=0.03)
    assert fit.likings.max() < 0.1
    at_mean = levels + factor * truth.mean()  # the level is what an average contestant is given
    np.testing.assert_allclose(fit.biases, at_mean - at_mean.mean(), atol=0.1)
    assert fit.weights[0] > 1.5 * fit.weights[-1]
    assert fit.weights.sum() == pytest.approx(1.0)


def test_bad_judges_do_not_move_the_ranking():
    gaps, above, held = [], [], []
    for seed in range(8):
        truth, scores = spoilt(seed)
        fit = fit_reliability(scores)
        oracle = scores[:, 3:].mean(axis=(0, 1))
        gaps.append(rank_correlation(oracle, truth) - rank_correlation(fit.qualities, truth))
        above.append(rank_correlation(fit.qualities, truth) > rank_correlation(paper_scores(scores).scores, truth))
        held.append(np.abs(fit.qualities - fit.qualities.mean() - truth + truth.mean()) <= 1.96 * fit.errors)
        assert fit.flags.reversed[0]
        assert fit.flags.constant[1]
        assert fit.flags.self_favouring[2]
        assert fit.weights[:2].max() < 0.01
        assert fit.flags.words(2) == ("self-favouring",)
    assert np.mean(gaps) < 0.02
    assert np.mean(above) >= 0.9
    assert np.mean(held) >= 0.9


def test_judges_who_favour_one_another_do_not_move_the_ranking():
    moved = []
    for seed in range(4):
        _, scores, _ = drawn(seed)
        honest = fit_reliability(scores)
        scores[:, :4, :4] = 5.0
        fit = fit_reliability(scores)
        change = fit.qualities - fit.qualities.mean() - honest.qualities + honest.qualities.mean()
        moved.append(np.abs(change / honest.errors).max())
        assert [fit.flags.words(i) for i in range(4)].count(()) == 0
        assert not fit.flags.partial[4:].any()
    assert np.max(moved) < 2.0


def test_honest_judges_are_rarely_flagged_and_intervals_hold():
    flagged, held = 0, []
    for seed in range(12):
        truth, scores, _ = drawn(100 + seed, answers=0.3, likings=0.15)
        fit = fit_reliability(scores)
        flagged += any(fit.flags.words(i) for i in range(N))
        held.append(np.abs(fit.qualities - fit.qualities.mean() - truth + truth.mean()) <= 1.96 * fit.errors)
    assert flagged <= 3
    assert np.mean(held) >= 0.9


def test_likings_keep_errors_from_shrinking():
    errors = {}
    for rounds in (20, 320):
        for likings in (0.0, 0.3):
            fit = fit_reliability(drawn(5, rounds=rounds, likings=likings)[1])
            errors[rounds, likings] = fit.errors.mean()
    assert errors[320, 0.0] < 0.45 * errors[20, 0.0]
    assert errors[320, 0.3] > 0.06  # .3 / sqrt(11) is .09, whatever the rounds


def test_scores_of_oneself_say_nothing_of_the_qualities():
    _, scores, _ = drawn(3)
    fit = fit_reliability(scores)
    scores[:, SELF, SELF] = np.random.default_rng(0).integers(1, 6, (40, N))
    again = fit_reliability(scores)
    np.testing.assert_array_equal(again.qualities, fit.qualities)
    np.testing.assert_array_equal(again.covariance, fit.covariance)


def test_the_order_of_models_and_rounds_changes_nothing():
    _, scores = spoilt(4)
    fit = fit_reliability(scores)
    order = np.random.default_rng(0).permutation(N)
    again = fit_reliability(scores[::-1][:, order][:, :, order])
    np.testing.assert_allclose(again.qualities, fit.qualities[order], atol=1e-6)
    np.testing.assert_allclose(again.errors, fit.errors[order], atol=1e-6)
    assert (again.flags.reversed == fit.flags.reversed[order]).all()


def test_a_judge_that_is_severe_on_a_round_moves_nobody():
    _, scores, _ = drawn(6, whole=False)
    moved = scores + np.random.default_rng(1).normal(0.0, 1.0, (40, N, 1))
    moved[:, SELF, SELF] = np.nan
    np.testing.assert_allclose(
        np.diff(fit_reliability(moved).qualities), np.diff(fit_reliability(scores).qualities), atol=1e-6
    )


# Missing scores


def test_missing_scores_cost_precision_and_no_more():
    truth, scores, _ = drawn(7)
    whole = fit_reliability(scores)
    some = scores.copy()
    some[np.random.default_rng(0).random(scores.shape) < 0.3] = np.nan
    fit = fit_reliability(some)
    assert fit.errors.mean() == pytest.approx(whole.errors.mean() / 0.7**0.5, rel=0.1)
    assert rank_correlation(fit.qualities, truth) > 0.9
    empty = np.concatenate([scores, np.full((5, N, N), np.nan)])
    np.testing.assert_allclose(fit_reliability(empty).qualities, whole.qualities, atol=1e-9)


def test_a_contestant_without_scores_is_not_known_and_a_judge_without_scores_has_no_say():
    _, scores, _ = drawn(8)
    scores[:, :, 3] = np.nan
    scores[:, 5] = np.nan
    fit = fit_reliability(scores)
    assert np.isnan(fit.qualities).tolist() == [j == 3 for j in range(N)]
    assert np.isnan(fit.errors).tolist() == [j == 3 for j in range(N)]
    assert fit.weights[5] == 0
    assert np.isnan(fit.biases[5])
    assert np.isnan(fit.flags.slopes[5])
    assert fit.flags.words(5) == ()
    ranks = fit.ranks()
    assert len(ranks[3].probabilities) == 0
    assert [len(rank.probabilities) for j, rank in enumerate(ranks) if j != 3] == [N - 1] * (N - 1)


@pytest.mark.parametrize("scores", [np.full((2, 4, 4), np.nan), np.ones((3, 2, 2)), np.eye(4)[None] + [[[np.nan]]]])
def test_nothing_to_compare_is_an_error(scores):
    with pytest.raises(EstimationError, match=r"compare"):
        fit_reliability(scores)


@pytest.mark.slow
@given(st.integers(3, 5), st.integers(1, 4), st.integers(0, 2**32), st.floats(0.0, 0.9))
def test_any_scores_give_finite_numbers(n, rounds, seed, missing):
    rng = np.random.default_rng(seed)
    scores = rng.integers(1, 6, (rounds, n, n)).astype(float)
    if seed % 3 == 0:
        scores[:] = 4.0
    scores[rng.random(scores.shape) < missing] = np.nan
    try:
        fit = fit_reliability(scores)
    except EstimationError:
        return
    known = np.isfinite(fit.qualities)
    assert [len(rank.probabilities) for rank in fit.ranks(draws=50)] == [known.sum() if found else 0 for found in known]
    assert np.isfinite(fit.covariance[np.ix_(known, known)]).all()
    assert (fit.errors[known] >= 0).all()
    for values in (fit.scales, fit.scale_errors, fit.noises, fit.likings, fit.weights):
        assert np.isfinite(values).all()
        assert (values >= 0).all()


def test_judges_who_all_say_the_same_find_nobody_better():
    fit = fit_reliability(np.full((10, 5, 5), 4.0))
    np.testing.assert_allclose(fit.qualities, 4.0, atol=1e-9)
    assert Measured(fit.qualities, fit.covariance).above(0, 1) == pytest.approx(0.5)
    assert not fit.flags.reversed.any()


# Ranks


def test_ranks_are_of_the_joint_errors():
    _, scores, _ = drawn(9)
    fit = fit_reliability(scores)
    ranks = fit.ranks()
    table = np.array([rank.probabilities for rank in ranks])
    np.testing.assert_allclose(table.sum(axis=0), 1.0)  # each rank is somebody's
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    best = int(np.argmax(fit.qualities))
    assert ranks[best].mean == min(rank.mean for rank in ranks)
    measured = Measured(fit.qualities, fit.covariance)
    for i, j in ((0, 1), (best, 3)):
        assert measured.above(i, j) + measured.above(j, i) == pytest.approx(1.0)
    interval = fit.interval(best)
    assert interval.high - interval.estimate == pytest.approx(1.959964 * fit.errors[best], rel=1e-5)
    np.testing.assert_array_equal(table, [rank.probabilities for rank in fit.ranks()])


def test_parts_of_the_rounds_tell_the_same_with_larger_errors():
    _, scores, _ = drawn(10, answers=0.2)
    fit = fit_reliability(scores)
    whole, errors = part_qualities(scores, fit)
    np.testing.assert_allclose(whole, fit.qualities, atol=0.02)
    np.testing.assert_allclose(errors, fit.errors, rtol=0.05)
    _, of_ten = part_qualities(scores[:10], fit)
    assert of_ten.mean() > 1.6 * errors.mean()
    assert np.isnan(part_qualities(scores[:0], fit)[0]).all()
