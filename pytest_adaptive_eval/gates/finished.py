"""Intervals on questions like the questions of a bank, after all of its items were asked."""

from __future__ import annotations

from pytest_adaptive_eval.gates.bets import map_interval
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.types import Array

#: Questions that stand for those like the ones asked, per question asked: so many that the asked ones are no share.
_LIKE = 10_000


def interval_on_like_questions(scores: Array, baseline: Array | None = None, confidence: float = 0.95) -> Interval:
    """Return the interval of the accuracy, or of the paired difference, on questions like those asked.

    The questions count as drawn at random from many more. Bounds of an accuracy by scores of 0 and 1 are exact (Clopper
    and Pearson 1934); others are by bets, see `inference.betting`.

    Args:
        scores: Shape (n,). In [0, 1]; a missing score widens the interval.
        baseline: Shape (n,). Scores of the baseline on the same questions, none of them missing.
        confidence: Of each one-sided bound.
    """
    if baseline is None:
        values = scores
    else:
        values = (1.0 + scores - baseline) / 2.0
    interval = interval_of_draws(uniform_draws(values, _LIKE * len(values)), confidence)
    if baseline is None:
        return interval
    return map_interval(interval, lambda half: 2.0 * half - 1.0)
