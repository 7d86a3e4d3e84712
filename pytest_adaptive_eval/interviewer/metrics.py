"""What AutoJudger's paper measures of an interview besides its ranking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["difficulty_distance", "relative_cost", "semantic_distance", "spread"]

Array = NDArray[np.float64]


def semantic_distance(points: NDArray[Any]) -> float:
    """Mean Euclidean distance between two of the questions asked, from their embeddings (t, d); NaN of fewer than two.

    Large where an interview covers much ground.
    """
    if len(points) < 2:
        return float("nan")
    x = np.asarray(points, dtype=np.float64)
    i, j = np.triu_indices(len(x), 1)
    return float(np.sqrt(((x[i] - x[j]) ** 2).sum(axis=1)).mean())


def difficulty_distance(difficulty: Array, ability: Array) -> float:
    r"""Mean \|b - theta\| of the questions asked and the abilities, in logits, that each was chosen for."""
    return float(np.nanmean(np.abs(np.asarray(difficulty) - np.asarray(ability))))


def spread(values: Sequence[float]) -> float:
    """1.96 standard deviations over runs, as the paper prints behind its means."""
    return float(1.96 * np.std(np.asarray(values, dtype=np.float64), ddof=1)) if len(values) > 1 else 0.0


def relative_cost(
    share: float, model: float, step: float, *, first: float = 0.0, firsts: int = 0, items: int | None = None
) -> float:
    """Cost of an interview over that of asking the whole bank, R(alpha) of the paper's appendix H.

    Parameters
    ----------
    share : float
        alpha, the share of the bank that is asked.
    model : float
        What an answer costs the subject, in any unit.
    step : float
        What choosing a question costs the interviewer, in the same.
    first : float
        One-time cost of the embeddings and the first summary.
    firsts : int
        beta, first items, which nobody chooses.
    items : int, optional
        Size of the bank; when omitted, the paper's simple form alpha (1 +
        step / model), without first items.
    """
    cost = share * (1.0 + step / model)
    if items is not None:
        cost += (first - firsts * step) / (items * model)
    return cost
