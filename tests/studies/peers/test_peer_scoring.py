"""AutoBench's rule: figures of its paper, Algorithm 1 step by step, and what must hold of any judgments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import kendalltau

from pytest_adaptive_eval.extensions.studies.peers.scoring import accepts, agreement, paper_scores, weighted_median

#: Table 3 of the paper, in its order: score, MMLU-Pro and GPQA.
TABLE = np.array(
    [
        (3.80, 11.71, 3.91),
        (3.58, 7.58, 3.36),
        (3.73, 24.39, 3.80),
        (3.77, 25.05, 3.02),
        (3.80, 36.52, 5.48),
        (3.91, 43.38, 9.62),
        (3.85, 29.60, 1.23),
        (3.85, 7.72, 4.59),
        (3.95, 66.76, 44.42),
        (4.17, 73.14, 71.50),
        (3.77, 14.70, 19.20),
        (3.91, 33.58, 10.96),
    ]
)
RANKS = st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0])
SHAPE = st.tuples(st.integers(1, 6), st.integers(1, 5)).map(lambda s: (s[0], s[1], s[1]))
JUDGMENTS = SHAPE.flatmap(lambda shape: arrays(np.float64, shape, elements=RANKS))


def test_table_3_agrees_with_the_benchmarks_as_it_should():
    mmlu, gpqa = agreement(TABLE[:, 0], TABLE[:, 1]), agreement(TABLE[:, 0], TABLE[:, 2])
    assert (round(mmlu.spearman, 3), round(gpqa.spearman, 3)) == (0.764, 0.641)
    assert (round(mmlu.kendall, 3), round(gpqa.kendall, 3)) == (0.625, 0.532)


def test_tau_is_that_of_scipy_and_nothing_agrees_with_a_constant():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 5, (2, 9))
        assert agreement(x, y).kendall == pytest.approx(kendalltau(x, y).statistic, nan_ok=True)
    assert math.isnan(agreement([1, 1, 1], [1, 2, 3]).kendall)


def test_weights_of_table_3_are_its_scores_over_their_sum():
    scores = TABLE[:, 0]
    found = paper_scores(np.tile(scores, (1, 12, 1)))  # a round in which all judges gave these scores
    np.testing.assert_allclose(found.scores, scores)
    np.testing.assert_allclose(found.weights[-1], scores / scores.sum())
    assert found.effective_judges == pytest.approx(11.98, abs=0.005)


def test_a_rejected_first_iteration_leaves_scores_at_0_and_weights_alike():
    judgments = np.full((3, 2, 2), np.nan)
    judgments[1] = [[4.0, 2.0], [2.0, 2.0]]
    found = paper_scores(judgments, [False, True, False])
    np.testing.assert_array_equal(paper_scores(judgments[:1], [False]).scores, [0.0, 0.0])
    np.testing.assert_array_equal(found.weights[1], [0.5, 0.5])
    np.testing.assert_allclose(found.scores, [1.5, 1.0])  # ((2 - 1) 0 + r) / 2 with r = (3, 2): diluted
    np.testing.assert_allclose(found.weights[2], [0.6, 0.4])
    np.testing.assert_array_equal(found.weights[3], found.weights[2])
    assert np.isnan(found.rounds[[0, 2]]).all()
    np.testing.assert_allclose(found.changes, [0.0, 0.2, 0.0])
    held = np.array([[[4.0, 2.0], [2.0, 2.0]], np.full((2, 2), np.nan), np.full((2, 2), 5.0)])
    found = paper_scores(held, [True, False, True])
    np.testing.assert_allclose(found.scores, [(3 + 3 + 5) / 3, (2 + 2 + 5) / 3])  # the rejected one as the mean so far


def by_hand(judgments, accepted):
    """Algorithm 1, line by line."""
    n = judgments.shape[1]
    c, w = [0.0] * n, [1.0 / n] * n
    for t, matrix in enumerate(judgments, 1):
        if accepted[t - 1]:
            r = [sum(w[i] * matrix[i][j] for i in range(n)) for j in range(n)]
            c = [((t - 1) * c[j] + r[j]) / t for j in range(n)]
            w = [value / sum(c) for value in c]
    return c, w


@given(JUDGMENTS, st.data())
def test_it_is_algorithm_1(judgments, data):
    accepted = data.draw(st.lists(st.booleans(), min_size=len(judgments), max_size=len(judgments)))
    found = paper_scores(judgments, accepted)
    c, w = by_hand(judgments, accepted)
    np.testing.assert_allclose(found.scores, c)
    np.testing.assert_allclose(found.weights[-1], w)
    np.testing.assert_allclose(found.weights.sum(axis=-1), 1.0)
    stacked = paper_scores(np.stack([judgments, judgments[::-1]]), np.stack([accepted, accepted[::-1]]))
    np.testing.assert_array_equal(stacked.scores[0], found.scores)
    np.testing.assert_array_equal(stacked.changes[0], found.changes)


def test_the_diagonal_counts():
    judgments = np.full((1, 3, 3), 3.0)
    judgments[0, 0, 0] = 5.0
    assert paper_scores(judgments).scores.tolist() == pytest.approx([11 / 3, 3.0, 3.0])


def test_missing_scores_leave_their_weight_to_the_others():
    judgments = np.array([[[5.0, np.nan], [3.0, np.nan]], [[1.0, 4.0], [np.nan, 4.0]]])
    found = paper_scores(judgments)
    np.testing.assert_allclose(found.weights[1], [1.0, 0.0])  # nobody scored the second, whose mean is still 0
    np.testing.assert_allclose(found.scores, [2.5, 2.0])


def test_a_single_judge_is_the_mean_of_its_row():
    judgments = np.random.default_rng(0).integers(1, 6, (7, 4, 4)).astype(float)
    found = paper_scores(judgments, judge=2)
    np.testing.assert_allclose(found.scores, judgments[:, 2].mean(axis=0))
    np.testing.assert_allclose(found.weights[-1], found.scores / found.scores.sum())


# Votes


@given(st.lists(RANKS, min_size=1, max_size=8))
def test_with_equal_weights_the_median_is_the_ordinary_one(votes):
    assert weighted_median(votes, np.ones(len(votes))) == np.median(votes)


@given(st.lists(st.tuples(RANKS, st.integers(0, 4)), min_size=1, max_size=8))
def test_a_weight_is_a_number_of_votes(pairs):
    votes, weights = zip(*pairs, strict=True)
    repeated = np.repeat(votes, weights)
    if len(repeated):
        assert weighted_median(votes, weights) == np.median(repeated)
    else:
        assert math.isnan(weighted_median(votes, weights))


@pytest.mark.parametrize(
    ("votes", "weights", "accepted"),
    [
        ([4, 3, 3.5], [1, 1, 1], True),  # a mean of just 3.5
        ([4, 3, 3], [1, 1, 1], False),
        ([5, 5, 5, 2, 2, 2, 2], [1] * 7, False),  # the median is 2
        ([5, 5, 3, 1], [0.4, 0.1, 0.4, 0.1], True),
        ([5, 1, 1], [0.7, 0.1, 0.2], True),
        ([np.nan, 4, 4], [0.8, 0.1, 0.1], True),
        ([np.nan, np.nan], [0.5, 0.5], False),
        ([5, 5], [0, 0], False),
    ],
)
def test_a_task_must_reach_mean_and_median(votes, weights, accepted):
    assert accepts(votes, weights) is accepted
