"""Ranking accuracy and rank correlation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from pytest_adaptive_eval.inference.rank_correlation import kendall_tau, rank_correlation, ranking_accuracy

#: Few values, so that ties are frequent.
LISTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12)


def test_known_rankings():
    assert ranking_accuracy([0.1, 0.2, 0.3], [1, 2, 3]) == 100
    assert ranking_accuracy([0.3, 0.2, 0.1], [1, 2, 3]) == 0
    # 17 subjects with one neighbouring pair exchanged: one of 136 pairs
    swapped = np.arange(17.0)
    swapped[[3, 4]] = swapped[[4, 3]]
    for ties in ("half", "autojudger"):
        assert ranking_accuracy(swapped, np.arange(17), ties=ties) == pytest.approx(100 * 135 / 136)


def test_ties():
    assert ranking_accuracy([1, 1, 2], [1, 2, 3]) == pytest.approx(100 * 2.5 / 3)
    assert ranking_accuracy([1, 1, 2], [1, 2, 3], ties="autojudger") == 100
    # a pair that the truth holds equal cannot be ranked wrongly
    assert ranking_accuracy([2, 1, 3], [1, 1, 2]) == 100
    assert ranking_accuracy([2, 1, 0], [1, 1, 2]) == 0
    assert ranking_accuracy([2, 1, 0], [1, 1, 2], ties="autojudger") == pytest.approx(100 / 3)
    assert ranking_accuracy([5, 5, 5], [1, 2, 3]) == 50


@given(LISTS)
def test_accuracy_counts_pairs(pairs):
    estimate, truth = zip(*pairs, strict=True)
    judged, inversions = [], 0
    for (e, t), (f, u) in itertools.combinations(pairs, 2):
        inversions += (e - f) * (t - u) < 0
        if t != u:
            judged.append(0.5 if e == f else float((e < f) == (t < u)))
    count = len(pairs) * (len(pairs) - 1) / 2
    assert ranking_accuracy(estimate, truth, ties="autojudger") == pytest.approx(100 * (1 - inversions / count))
    if judged:
        assert ranking_accuracy(estimate, truth) == pytest.approx(100 * np.mean(judged))
        assert ranking_accuracy([-e for e in estimate], truth) == pytest.approx(100 - 100 * np.mean(judged))
        assert ranking_accuracy(np.exp(estimate), truth) == ranking_accuracy(estimate, truth)
    else:
        with pytest.raises(ValueError, match="all truths are equal"):
            ranking_accuracy(estimate, truth)


@pytest.mark.parametrize(("estimate", "truth"), [([1], [1]), ([], []), ([1, 1], [2, 2])])
def test_what_has_no_order_is_refused(estimate, truth):
    with pytest.raises(ValueError, match="all truths are equal"):
        ranking_accuracy(estimate, truth)


@pytest.mark.parametrize(("estimate", "truth"), [([1, 2], [1, 2, 3]), ([[1, 2]], [[1, 2]])])
def test_shapes_that_differ_are_refused(estimate, truth):
    with pytest.raises(ValueError, match="expected two lists of one length"):
        ranking_accuracy(estimate, truth)


@given(LISTS)
def test_correlation_is_spearmans(pairs):
    estimate, truth = zip(*pairs, strict=True)
    got = rank_correlation(estimate, truth)
    if len(set(estimate)) == 1 or len(set(truth)) == 1:
        assert math.isnan(got)
    else:
        assert got == pytest.approx(spearmanr(estimate, truth).statistic, abs=1e-12)
        assert rank_correlation(truth, estimate) == pytest.approx(got, abs=1e-12)


@given(LISTS)
def test_tau_is_kendalls(pairs):
    estimate, truth = zip(*pairs, strict=True)
    assert kendall_tau(estimate, truth) == pytest.approx(kendalltau(estimate, truth).statistic, nan_ok=True)


def test_a_missing_value_leaves_no_correlation():
    assert math.isnan(rank_correlation([1.0, math.nan, 2.0], [1, 2, 3]))
    assert math.isnan(kendall_tau([1.0, math.nan, 2.0], [1, 2, 3]))


def test_estimates_that_differ_by_rounding_are_tied():
    assert ranking_accuracy([0.1 + 0.2, 0.3, 0.5], [1, 2, 3]) == pytest.approx(100 * 2.5 / 3)
    assert rank_correlation([0.1 + 0.2, 0.3, 0.5], [1, 2, 3]) == rank_correlation([1, 1, 2], [1, 2, 3])
    assert kendall_tau([0.1 + 0.2, 0.3, 0.5], [1, 2, 3]) == kendall_tau([1, 1, 2], [1, 2, 3])
