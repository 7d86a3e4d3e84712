"""The first questions, and the clusters and factors they come from."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_adaptive_eval.inference.clusters import clusters, residual_factors, response_factors
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.interviewer import first
from pytest_adaptive_eval.interviewer.first import by_cluster, by_difficulty


def blobs(kinds=6, each=20, seed=0, spread=0.05):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(kinds, 5)) * 3
    return np.repeat(centres, each, axis=0) + spread * rng.normal(size=(kinds * each, 5))


def test_one_item_of_each_kind_the_nearest_to_its_centre():
    points = blobs()
    found = by_cluster(points, 6)
    assert sorted(i // 20 for i in found) == [0, 1, 2, 3, 4, 5]
    for i in found:
        kind = points[i // 20 * 20 : i // 20 * 20 + 20]
        away = ((kind - kind.mean(axis=0)) ** 2).sum(axis=1)
        assert away[i % 20] == away.min()


def test_without_responses_the_tightest_restart_is_kept():
    points = blobs(12, 8, 3)
    tightest = min(range(30), key=lambda seed: clusters(points, 12, seed).inertia)
    assert by_cluster(points, 12, restarts=30).tolist() == clusters(points, 12, tightest).items.tolist()


def test_with_responses_the_restart_that_ranks_best_is_kept():
    rng = np.random.default_rng(2)
    ability = rng.normal(size=40)
    scores = (rng.random((40, 60)) < 1 / (1 + np.exp(-ability[:, None] + rng.normal(size=60)))).astype(float)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    points = rng.normal(size=(60, 3))
    truth = np.nanmean(scores, axis=1)

    def ranks(items):
        return ranking_accuracy(np.nanmean(scores[:, items], axis=1), truth)

    every = [ranks(clusters(points, 8, seed).items) for seed in range(20)]
    chosen = by_cluster(points, 8, restarts=20, responses=scores)
    assert ranks(chosen) == max(every) > np.median(every)
    assert by_cluster(points, 8, restarts=20).tolist() != chosen.tolist()


def test_a_seed_gives_its_own_items_and_always_the_same():
    points = np.random.default_rng(1).normal(size=(200, 4))
    assert by_cluster(points, 5, restarts=1, seed=3).tolist() == by_cluster(points, 5, restarts=1, seed=3).tolist()
    assert len({tuple(by_cluster(points, 5, restarts=1, seed=seed)) for seed in range(6)}) > 1


@pytest.mark.parametrize("points", [np.zeros((7, 2)), np.repeat(np.eye(2), 4, axis=0)])
def test_points_that_coincide_are_filled_up(points):
    found = by_cluster(points, 5, restarts=2)
    assert len(set(found.tolist())) == 5


def test_of_many_points_some_are_enough(monkeypatch):
    points = blobs(4, 100)
    monkeypatch.setattr(first, "POINTS", 80)
    assert sorted(i // 100 for i in by_cluster(points, 4)) == [0, 1, 2, 3]


def test_difficulties_are_spread_evenly():
    b = np.random.default_rng(5).permutation(np.linspace(-3, 3, 100))
    found = by_difficulty(b, 10)
    np.testing.assert_allclose(b[found], np.sort(b)[5::10])
    b[b > 0] = np.nan
    assert (b[by_difficulty(b, 10)] <= 0).all()
    assert len(set(by_difficulty(np.full(20, np.nan), 10).tolist())) == 10


def test_labels_and_items_agree():
    points = blobs(5, 9)
    found = clusters(points, 5, 1)
    assert found.label[found.items].tolist() == list(range(len(found.items)))
    centre = np.array([points[found.label == k].mean(axis=0) for k in range(len(found.items))])
    assert found.inertia == pytest.approx(((points - centre[found.label]) ** 2).sum(), rel=1e-6)


def test_residual_factors_tell_contents_apart_whatever_the_difficulty():
    """Subjects are better at one of two subjects than at the other; items of all difficulties."""
    rng = np.random.default_rng(4)
    general, special = rng.normal(size=(2, 150))
    kind = np.repeat([1.0, -1.0], 40)
    b = rng.normal(size=80) * 1.5
    p = 1 / (1 + np.exp(-(general[:, None] + 1.5 * special[:, None] * kind - b)))
    scores = (rng.random(p.shape) < p).astype(float)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    found = residual_factors(scores, 1)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0)
    side = np.sign(found[:, 0])
    assert abs((side * kind).mean()) > 0.9
    difficulty = np.abs(np.corrcoef(response_factors(scores, 1)[:, -1], b)[0, 1])
    assert difficulty > 0.9  # which the plain factors hold as well


def test_an_item_that_nobody_answered_is_nowhere():
    scores = np.random.default_rng(0).integers(0, 2, (12, 6)).astype(float)
    scores[:, 2] = np.nan
    assert np.isfinite(residual_factors(scores)).all()
    assert np.isfinite(response_factors(scores)).all()
    assert (residual_factors(np.ones((4, 5))) == 0).all()
