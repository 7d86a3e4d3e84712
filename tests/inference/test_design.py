"""The log of an interview's draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.inference.design import DesignLog

NAN = float("nan")
COLUMNS = ("items", "scores", "propensities", "predictions", "rest", "variance", "down", "up")


def make(scores=(1.0, 0.5, 0.0)):
    scores = np.asarray(scores, dtype=float)
    rows: dict[str, Any] = {
        name: np.arange(scores.size).reshape(scores.shape) * 1.0 + 10 * k for k, name in enumerate(COLUMNS)
    }
    rows |= {"scores": scores, "propensities": np.full(scores.shape, 0.25), "predictions": np.full(scores.shape, 0.5)}
    return DesignLog(**rows, size=20)


def test_its_columns_are_all_but_the_size():
    assert DesignLog.columns() == COLUMNS
    assert len(make()) == 3
    assert len(make(np.zeros((4, 7)))) == 7


def test_an_index_or_slice_is_that_of_every_column():
    log = make(np.arange(12).reshape(3, 4) / 12)
    for index in (1, slice(0, 2), (slice(None), slice(1, 3)), (2, slice(None, 2))):
        part = log[index]
        assert part.size == 20
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(part, name), getattr(log, name)[index], strict=True)
    assert len(log[:, :0]) == 0


def test_one_draw_estimates_by_hand():
    log = make()
    np.testing.assert_allclose(log.before, [0.0, 1.0, 1.5])
    # score so far + predictions of the rest + (score - prediction) / propensity
    np.testing.assert_allclose(log.totals, [0 + 40 + 0.5 * 4, 1 + 41 + 0.0, 1.5 + 42 - 0.5 * 4])
    many = make([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(many.before, [[0.0, 1.0, 1.5], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(many[1].totals, many.totals[1])


@pytest.mark.parametrize("score", [0.0, 0.5, 1.0])
def test_missing_scores_are_replaced_in_a_copy(score):
    log = make([1.0, NAN, 0.0])
    filled = log.with_missing_as(score)
    assert filled.scores.tolist() == [1.0, score, 0.0]
    assert np.isnan(log.scores[1])
    for name in set(COLUMNS) - {"scores"}:
        assert getattr(filled, name) is getattr(log, name)
