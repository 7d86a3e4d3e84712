"""Distances between the questions of an interview, and between their difficulties and the ability."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.types import Array

FARTHEST = 10.0  #: Largest distance of a difficulty from an ability that counts, in logits.


def semantic_distance(points: NDArray[Any]) -> float:
    """Return the mean Euclidean distance between two questions, from embeddings (t, d); NaN for fewer than two.

    It is large for an interview with diverse questions.
    """
    count = len(points)
    if count < 2:
        return float("nan")
    x = np.asarray(points, dtype=np.float64)
    norms = np.square(x).sum(axis=1)
    squared = np.maximum(norms[:, None] + norms - 2.0 * (x @ x.T), 0.0)
    np.fill_diagonal(squared, 0.0)
    return float(np.sqrt(squared).sum() / (count * (count - 1)))


def difficulty_distance(difficulty: Array, ability: Array) -> float:
    r"""Return the mean \|b - theta\| of difficulties and the abilities at their choice, in logits; NaN without any.

    A distance counts as at most `FARTHEST`, because an item whose slope is near 0 has a difficulty without limits.
    """
    distances = np.minimum(np.abs(np.asarray(difficulty) - np.asarray(ability)), FARTHEST)
    measured = ~np.isnan(distances)
    if measured.any():
        return float(distances[measured].mean())
    return float("nan")
