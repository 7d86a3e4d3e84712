"""Distances that are kept up and not computed anew, the window, and the best few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.interviewer.retrieval import Distances, best, proximity, within
from pytest_adaptive_eval.items.bank import ItemBank

seeds = st.integers(0, 10_000)


@given(seeds, st.integers(1, 4), st.integers(1, 30), st.integers(1, 6), st.integers(1, 3))
def test_distances_are_those_to_all_questions(seed, subjects, n, d, k):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    distances = Distances(points, subjects)
    assert np.isinf(distances.nearest).all()
    asked = rng.integers(0, n, (subjects, 3 * k))
    for t in range(3):
        distances.record_items(asked[:, t * k : (t + 1) * k])
    for s in range(subjects):
        expected = ((points[:, None] - points[asked[s]]) ** 2).sum(axis=2).min(axis=1)
        np.testing.assert_allclose(distances.nearest[s], expected, atol=2e-6 * (points**2).sum(axis=1).max())
    assert (distances.nearest >= 0).all()
    assert distances.nearest.dtype == np.float64


def test_each_question_is_looked_at_once():
    """The work of a step does not grow with the questions asked: old ones are not touched again."""
    points = np.random.default_rng(1).normal(size=(50, 4))
    distances = Distances(points, 1)
    distances.record_items(np.array([[3]]))
    distances.nearest[:] = 0.25  # as if it had been less
    distances.record_items(np.array([[7]]))
    assert distances.nearest.max() == 0.25


def bank_of(a, d):
    return ItemBank("b", [f"q{i}" for i in range(len(d))], (), a, d)


def test_proximity_is_of_difficulty_and_ability():
    bank = bank_of(np.array([1.0, 2.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0]))  # b = -1, -.5, 1, none
    z = 0.5 * bank.discrimination[:, 0] + bank.intercept
    np.testing.assert_allclose(proximity(bank, z[None]), [[1 / 2.5, 1 / 2, 1 / 1.5, 0.0]])
    wide = bank_of(np.array([[3.0, 4.0]]), np.array([2.5]))
    np.testing.assert_allclose(proximity(wide, np.array([[2.5]])), [[1 / 1.5]])  # .5 from an even chance


probabilities = st.lists(st.floats(0, 1), min_size=2, max_size=20)


@given(probabilities, st.data())
def test_a_window_is_never_empty_and_offers_nothing_twice(p, data):
    p = np.array([p])
    asked = np.array([data.draw(st.lists(st.booleans(), min_size=p.size, max_size=p.size))])
    asked[0, data.draw(st.integers(0, p.size - 1))] = False
    inside, widened = within(p, (0.2, 0.8), ~asked)
    assert inside.any()
    assert not (inside & asked).any()
    plain = (p >= 0.2) & (p <= 0.8) & ~asked
    assert (widened[0] > 0) == (not plain.any())
    if plain.any():
        assert (inside == plain).all()
    if widened[0]:  # no item left is strictly better than one that is let in
        outside = np.abs(p - 0.5)[~inside & ~asked]
        assert not len(outside) or np.abs(p - 0.5)[inside].max() <= outside.min() + 1e-12


def test_a_window_widens_for_those_who_need_it_alone():
    p = np.array([[0.5, 0.9, 0.99], [0.85, 0.95, 0.99], [1.0, 1.0, 0.0]])
    inside, widened = within(p, (0.2, 0.8), np.ones((3, 3), dtype=bool))
    assert widened.tolist() == [0, 1, 20]
    assert inside.tolist() == [[True, False, False], [True, False, False], [True, True, True]]
    assert within(p, None, p < 0.9)[0].tolist() == (p < 0.9).tolist()


@given(seeds, st.integers(1, 7))
def test_the_best_are_the_best(seed, count):
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 4, (2, 9)).astype(np.float64)
    key[0, 0] = np.inf
    inside = rng.random((2, 9)) < 0.6
    for s, found in enumerate(best(key, inside, count)):
        ranked = sorted(np.flatnonzero(inside[s]), key=lambda i: (-key[s, i], i))
        assert found.tolist() == ranked[:count]


@pytest.mark.parametrize("rows", [1, 3])
def test_max_min_takes_the_farthest(rows):
    points = np.array([[0.0], [1.0], [2.0], [10.0], [6.0]])
    distances = Distances(points, rows)
    distances.record_items(np.zeros((rows, 1), dtype=np.int64))
    assert best(distances.nearest, np.ones((rows, 5), dtype=bool), 2)[0].tolist() == [3, 4]
    distances.record_items(np.full((rows, 1), 3))
    assert best(distances.nearest, np.ones((rows, 5), dtype=bool), 2)[-1].tolist() == [4, 2]
