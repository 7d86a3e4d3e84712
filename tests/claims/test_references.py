"""Thresholds of gates that recorded subjects give, with complete and with missing scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.claims.references import named_threshold, place_threshold
from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.bank import ItemBank

SIZE = 100


def bank_of(*ranges):
    names = tuple(f"m{n}" for n in range(len(ranges)))
    ids = [f"q{n}" for n in range(SIZE)]
    accuracies = tuple((low + high) / 2 for low, high in ranges)
    more: dict[str, Any] = {"subjects": names, "accuracies": accuracies, "accuracy_ranges": ranges}
    return ItemBank("b", ids, (), np.ones(SIZE), np.zeros(SIZE), **more)


def test_places_are_counted_from_the_best():
    bank = bank_of((0.4, 0.4), (0.8, 0.8), (0.6, 0.6), (0.6, 0.6))
    assert [place_threshold(bank, k).high for k in (1, 2, 3, 4)] == [0.8, 0.6, 0.6, 0.4]
    assert place_threshold(bank, 1).subject == named_threshold(bank, "m1").subject == "m1"
    assert place_threshold(bank, 4).requirement == ">= .400"
    claim = named_threshold(bank, "m2").claim(SIZE, 0.9)
    assert (claim.total, claim.slack, claim.confidence) == (pytest.approx(60.0), 0.0, 0.9)


def test_missing_scores_widen_a_threshold_and_a_sixth_of_them_is_refused_by_name():
    bank = bank_of((0.40, 0.40), (0.60, 0.64), (0.60, 0.66), (0.9, 0.9))
    threshold = named_threshold(bank, "m1")
    assert (threshold.low, threshold.high, threshold.requirement) == (0.60, 0.64, ">= .600 to .640")
    claim = threshold.claim(SIZE, 0.95)
    assert (claim.required(1), claim.required(-1)) == pytest.approx((64.0, 60.0))
    for refused in (lambda: named_threshold(bank, "m2"), lambda: place_threshold(bank, 2)):
        with pytest.raises(ConfigError, match=r"'m2' has no score on 6\.0% of the bank 'b', and a subject that lacks "):
            refused()
    assert place_threshold(bank, 1).high == 0.9
    assert place_threshold(bank, 4).high == 0.40, "whoever is incomplete is above it"


@given(st.lists(st.tuples(st.integers(1, 95), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8), st.data())
def test_the_place_of_the_true_accuracies_lies_within_the_threshold(subjects, data):
    k = data.draw(st.integers(1, len(subjects)))
    bank = bank_of(*((right / 100, (right + missing) / 100) for right, missing, _ in subjects))
    true = sorted(((right + min(of, missing)) / 100 for right, missing, of in subjects), reverse=True)
    threshold = place_threshold(bank, k)
    assert threshold.low <= true[k - 1] <= threshold.high


def test_a_threshold_that_every_model_reaches_is_refused():
    with pytest.raises(ConfigError, match=r"the accuracy of 'm1' is \.000, which every model reaches"):
        place_threshold(bank_of((0.4, 0.4), (0.0, 0.0)), 2)


@pytest.mark.parametrize(
    "ranges", [((0.4, 0.4),), ((0.5, 0.4), (0.2, 0.2)), ((0.4, 1.1), (0.2, 0.2)), ((0.4, float("nan")), (0.2, 0.2))]
)
def test_ranges_that_hold_no_accuracy_are_refused(ranges):
    ids = [f"q{n}" for n in range(SIZE)]
    more: dict[str, Any] = {"subjects": ("a", "b"), "accuracies": (0.4, 0.2), "accuracy_ranges": ranges}
    with pytest.raises(BankError, match="alibrate the bank again"):
        ItemBank("b", ids, (), np.ones(SIZE), np.zeros(SIZE), **more)
