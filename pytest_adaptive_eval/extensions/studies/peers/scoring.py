"""AutoBench's rule: votes on tasks, running mean of judgments, weights from scores.

The rule is Algorithm 1 of AutoBench (Loi et al. 2025), unchanged. Judges' scores of themselves count. A rejected
iteration counts as one with the mean so far, which is 0 before the first accepted one. Weights are normalised scores,
so they differ little and favour good contestants, not good judges.
`pytest_adaptive_eval.extensions.studies.peers.reliability` is the other rule.

The algorithm does not define missing scores. Here the weights of the present scores are normalised to 1, and a
contestant without any score keeps its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.inference.rank_correlation import kendall_tau, rank_correlation
from pytest_adaptive_eval.types import Array

#: Iterations, and attempts at a task in each.
ROUNDS = 40
RETRIES = 3
#: Thresholds of the weighted mean and median of the votes on a task.
MEAN = 3.5
MEDIAN = 3.0
#: Tolerance for sums of the same weights in another order.
_ROUNDING = 1e-9


def weighted_median(values: ArrayLike, weights: ArrayLike) -> float:
    """Return the weighted median of the values that are not NaN.

    With equal weights it is the ordinary median. It is NaN if no value has a weight.
    """
    v = np.asarray(values, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64)
    valid = np.isfinite(v) & (w > 0)
    if not valid.any():
        return float("nan")
    order = np.argsort(v[valid], kind="stable")
    v = v[valid][order]
    below = w[valid][order].cumsum()
    below /= below[-1]
    at = int(np.searchsorted(below, 0.5 - _ROUNDING))
    if abs(below[at] - 0.5) < _ROUNDING:
        return float((v[at] + v[at + 1]) / 2.0)
    return float(v[at])


def accepts(votes: ArrayLike, weights: ArrayLike, *, mean: float = MEAN, median: float = MEDIAN) -> bool:
    """Return whether a task's votes reach both thresholds.

    Args:
        votes: Shape (n,). NaN where missing. A task without votes is rejected.
        weights: Shape (n,).
    """
    v = np.asarray(votes, dtype=np.float64)
    w = np.asarray(weights, dtype=np.float64)
    total = float(w[np.isfinite(v)].sum())
    if total <= 0:
        return False
    average = float((np.nan_to_num(v) * w).sum()) / total
    return average >= mean - _ROUNDING and weighted_median(v, w) >= median - _ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class PaperScores:
    """Scores and weights by the rule.

    Args:
        scores: Shape (..., n). Mean c after the last iteration.
        weights: Shape (..., T + 1, n). Weights w before the first iteration and after each.
        rounds: Shape (..., T, n). Score r of each iteration; NaN if it was rejected or the contestant has no score.
    """

    scores: Array
    weights: Array
    rounds: Array

    def __post_init__(self) -> None:
        for values in (self.scores, self.weights, self.rounds):
            values.setflags(write=False)

    @property
    def changes(self) -> Array:
        """L1 norm of the change of the weights in each iteration, shape (..., T)."""
        return np.asarray(np.abs(np.diff(self.weights, axis=-2)).sum(axis=-1))

    @property
    def effective_judges(self) -> float | Array:
        """Inverse sum of the squared last weights, which is n for equal weights."""
        return np.asarray(1.0 / (self.weights[..., -1, :] ** 2).sum(axis=-1))[()]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data of one panel."""
        return {
            "scores": self.scores.tolist(),
            "weights": self.weights[-1].tolist(),
            "changes": self.changes.tolist(),
            "effective_judges": float(self.effective_judges),
        }


def paper_scores(judgments: ArrayLike, accepted: ArrayLike | None = None, *, judge: int | None = None) -> PaperScores:
    """Compute scores and weights by Algorithm 1.

    Args:
        judgments: Shape (..., T, n, n). Scores by iteration, judge and contestant, NaN where missing. Panels of one
            size may be stacked.
        accepted: Shape (..., T). Whether the iteration's task was accepted; default all.
        judge: The only judge whose scores count: the single-judge ablation. Weights are still computed.
    """
    scores = np.asarray(judgments, dtype=np.float64)
    *stack, iterations, n, _ = scores.shape
    if accepted is None:
        accepted = True
    counts = np.broadcast_to(accepted, scores.shape[:-2])
    present = np.isfinite(scores)
    values = np.where(present, scores, 0.0)

    c = np.zeros((*stack, n))
    weights = np.full((*stack, iterations + 1, n), 1.0 / n)
    rounds = np.full((*stack, iterations, n), np.nan)
    for t in range(iterations):
        w = weights[..., t, :]
        judging = w[..., None]
        if judge is not None:
            judging = np.broadcast_to(np.eye(n)[judge], w.shape)[..., None]
        total = (judging * present[..., t, :, :]).sum(axis=-2)
        scored = (total > 0) & counts[..., t, None]
        r = (judging * values[..., t, :, :]).sum(axis=-2) / np.where(total > 0, total, 1.0)
        rounds[..., t, :] = np.where(scored, r, np.nan)
        c = np.where(scored, (t * c + r) / (t + 1), c)
        whole = c.sum(axis=-1, keepdims=True)
        weights[..., t + 1, :] = np.where(whole > 0, c / np.where(whole > 0, whole, 1.0), w)
    return PaperScores(c, weights, rounds)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rank correlations of scores with reference scores, with ties; NaN if either is constant.

    Args:
        kendall: tau-b.
    """

    spearman: float
    kendall: float


def agreement(scores: ArrayLike, reference: ArrayLike) -> Agreement:
    """Return the agreement of scores with reference scores of the same subjects, shape (n,) each."""
    x = np.asarray(scores, dtype=np.float64)
    y = np.asarray(reference, dtype=np.float64)
    return Agreement(rank_correlation(x, y), kendall_tau(x, y))
