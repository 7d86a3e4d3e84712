"""Reliance of uniform draws on a bank's predictions, learned from the answers before each draw.

The prediction of a drawn item becomes ``m + b (p - m)``, with the bank's prediction p and the mean m of these
predictions over the items not yet drawn. The reliance b is the regression of the earlier scores on p, with `WORTH`
draws without any relation added (power tuning, Angelopoulos, Duchi & Zrnic 2023). It starts at 0 and is fixed before
the draw, so estimates stay unbiased and bets valid. A bank whose predictions are wrong costs little.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.types import Array, Ints

WORTH = 8.0  #: Weight, in draws, of the prior: no relation, and scores that predictions do not explain.
#: Draws rely on predictions once these leave at most ``HELPFUL - FEW / planned draws`` of the scores' variance.
HELPFUL, FEW = 0.9, 4.0


class Tuned(NamedTuple):
    """Draws with tuned predictions.

    Args:
        log: Its predictions, variance and bounds are tuned; `rest` and the other columns are the same. The variance is
            the share that predictions left of the squares of score - mean in the draws before, times that of the mean
            prediction.
        start: Shape (...,). Number of administrations before the first draw that relies on predictions; t if none does.
    """

    log: DesignLog
    start: Ints


def is_tunable(log: DesignLog) -> bool:
    """Return whether the draws are a budget's, uniform, of scores of 0 and 1, also where one is missing."""
    if not log.fixed:
        return False
    limits = np.stack([log.with_missing_as(score).draws.scores for score in (0.0, 1.0)])
    return bool(np.isin(limits, (0.0, 1.0)).all()) and log.uniform


def tuned(log: DesignLog) -> Tuned:
    """Return draws with tuned predictions.

    Args:
        log: Tunable, see `is_tunable`, with every missing score filled.
    """
    order = np.arange(len(log))
    remaining = log.size - order
    drawn = order >= log.take_all
    scores = np.where(drawn, log.scores, 0.0)
    average = log.rest / remaining
    answered = np.maximum(order - log.take_all, 0)
    mean = (_before(scores) + 2.0 * average) / (answered + 2.0)
    deviation = np.where(drawn, log.predictions - average, 0.0)
    # of the predictions over the items not yet drawn
    spread = np.maximum(average * (1.0 - average) - log.variance / remaining**2, 0.0)
    related = _before(deviation * (log.scores - mean))
    reliance = np.clip(related / np.maximum(_before(deviation**2) + WORTH * spread, 1e-12), 0.0, 1.0)
    prior = WORTH * mean * (1.0 - mean)
    plain = np.where(drawn, (log.scores - mean) ** 2, 0.0)
    residual = np.where(drawn, (log.scores - mean - reliance * deviation) ** 2, 0.0)
    unexplained = (prior + _before(residual)) / (prior + _before(plain))
    helpful = drawn & (unexplained < HELPFUL - FEW / max(log.horizon - log.take_all, 1))
    mean_down = remaining * average
    mean_up = remaining * (1.0 - average)
    tuned_log = replace(
        log,
        predictions=average + reliance * deviation,
        variance=unexplained * average * (1.0 - average) * remaining**2,
        down=mean_down + reliance * (log.down - mean_down),
        up=mean_up + reliance * (log.up - mean_up),
    )
    start = np.where(helpful.any(axis=-1), helpful.argmax(axis=-1), len(log))
    return Tuned(tuned_log, start)


def _before(values: Array) -> Array:
    """Return the sum of the values before each draw."""
    return np.asarray(values.cumsum(axis=-1) - values)
