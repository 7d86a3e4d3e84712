"""AutoBench's rule to the letter: votes on tasks, running mean of judgments, weights from scores.

The rule is Algorithm 1 of AutoBench (Loi et al. 2025).  Its properties are kept, whether they help or not: judges'
scores of themselves count, a rejected iteration counts as one that found the mean so far (it divides by the iteration's
index), which before the first accepted one is 0, and weights are nothing but normalised scores, so that
they differ little and go to good contestants, not to good judges.  `pytest_adaptive_eval.studies.peers.reliability` is
the other rule.

The algorithm does not say what a missing score does.  Here the weights of those who gave one are made to
add up to 1; a contestant whom nobody scored keeps its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.inference.rank_correlation import rank_correlation

__all__ = [
    "MEAN",
    "MEDIAN",
    "RETRIES",
    "ROUNDS",
    "Agreement",
    "PaperScores",
    "accepts",
    "agreement",
    "paper_scores",
    "weighted_median",
]

Array = NDArray[np.float64]

#: Iterations, and attempts at a task in each, after which the iteration is skipped.
ROUNDS = 40
RETRIES = 3
#: Weighted mean and median of the votes that a task must reach.
MEAN = 3.5
MEDIAN = 3.0
#: Sums of weights nearer than this are equal: they are sums of the same numbers in another order.
_ROUNDING = 1e-9


def weighted_median(values: ArrayLike, weights: ArrayLike) -> float:
    """The value that half of the weight lies below; halfway to the next where exactly half does; NaNs are left out.

    With equal weights it is the ordinary median.  NaN where there is no value with a weight.
    """
    v, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    given = np.isfinite(v) & (w > 0)
    if not given.any():
        return float("nan")
    order = np.argsort(v[given], kind="stable")
    v, below = v[given][order], w[given][order].cumsum()
    below /= below[-1]
    at = int(np.searchsorted(below, 0.5 - _ROUNDING))
    return float((v[at] + v[at + 1]) / 2.0 if abs(below[at] - 0.5) < _ROUNDING else v[at])


def accepts(votes: ArrayLike, weights: ArrayLike, *, mean: float = MEAN, median: float = MEDIAN) -> bool:
    """Whether a task's votes reach both thresholds.

    Parameters
    ----------
    votes : array_like, shape (n,)
        NaN where there is none; with no vote at all a task is rejected.
    weights : array_like, shape (n,)
    mean, median : float
    """
    v, w = np.asarray(votes, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    total = float(w[np.isfinite(v)].sum())
    if total <= 0:
        return False
    average = float((np.nan_to_num(v) * w).sum()) / total
    return average >= mean - _ROUNDING and weighted_median(v, w) >= median - _ROUNDING


@dataclass(frozen=True, slots=True, eq=False)
class PaperScores:
    """What the rule makes of judgments.

    Parameters
    ----------
    scores : array, shape (..., n)
        c of the last iteration.
    weights : array, shape (..., T + 1, n)
        w before the first iteration and after each.
    rounds : array, shape (..., T, n)
        r of each iteration, NaN where it was rejected or nobody scored the contestant.
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
        """1 / sum of the squares of the last weights: n when they are all equal."""
        return np.asarray(1.0 / (self.weights[..., -1, :] ** 2).sum(axis=-1))[()]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data, of one panel."""
        return {
            "scores": self.scores.tolist(),
            "weights": self.weights[-1].tolist(),
            "changes": self.changes.tolist(),
            "effective_judges": float(self.effective_judges),
        }


def paper_scores(judgments: ArrayLike, accepted: ArrayLike | None = None, *, judge: int | None = None) -> PaperScores:
    """Scores and weights by Algorithm 1.

    Parameters
    ----------
    judgments : array_like, shape (..., T, n, n)
        Score of each iteration by judge (row) and contestant (column), NaN where missing; panels of one size
        may be stacked in front.
    accepted : array_like of bool, shape (..., T), optional
        Whether the iteration's task was accepted; all of them by default.
    judge : int, optional
        The only one whose scores count: the single-judge ablation.  Weights are still told.

    Raises
    ------
    ValueError
        The judgments are no stack of square matrices.
    """
    given = np.asarray(judgments, dtype=np.float64)
    if given.ndim < 3 or given.shape[-1] != given.shape[-2] or not given.shape[-1]:
        raise ValueError(f"judgments of shape {given.shape}, expected (..., T, n, n)")
    *stack, iterations, n, _ = given.shape
    held = np.ones((*stack, iterations), bool) if accepted is None else np.broadcast_to(accepted, given.shape[:-2])
    known = np.isfinite(given)
    values = np.where(known, given, 0.0)
    alone = None if judge is None else np.eye(n)[judge]

    c = np.zeros((*stack, n))
    weights = np.full((*stack, iterations + 1, n), 1.0 / n)
    rounds = np.full((*stack, iterations, n), np.nan)
    for t in range(iterations):
        w = weights[..., t, :]
        judging = (w if alone is None else np.broadcast_to(alone, w.shape))[..., None]
        total = (judging * known[..., t, :, :]).sum(axis=-2)
        some = (total > 0) & held[..., t, None]
        r = (judging * values[..., t, :, :]).sum(axis=-2) / np.where(total > 0, total, 1.0)
        rounds[..., t, :] = np.where(some, r, np.nan)
        c = np.where(some, (t * c + r) / (t + 1), c)
        whole = c.sum(axis=-1, keepdims=True)
        weights[..., t + 1, :] = np.where(whole > 0, c / np.where(whole > 0, whole, 1.0), w)
    return PaperScores(c, weights, rounds)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Rank correlations of scores with reference scores, ties counted; NaN where either is constant.

    Parameters
    ----------
    spearman : float
    kendall : float
        tau-b.
    """

    spearman: float
    kendall: float


def agreement(scores: ArrayLike, reference: ArrayLike) -> Agreement:
    """How scores agree with those of another benchmark, over subjects in one order, shape (n,) each."""
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(reference, dtype=np.float64)
    signs = [np.sign(np.subtract.outer(values, values)) for values in (x, y)]
    pairs = float(np.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum()))  # each twice
    tau = float((signs[0] * signs[1]).sum()) / pairs if pairs > 0 else float("nan")
    return Agreement(rank_correlation(x, y), tau)
