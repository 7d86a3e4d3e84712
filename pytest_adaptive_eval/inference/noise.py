"""Decoding noise: the variance of answers to the same item, and its part in an accuracy's error.

A subject that samples its answers, or whose device sums in another order each time, has an expected score on an item,
and an answer is a draw around it. Items are then administered several times: as *samples*, whose mean is the item's
score, and as *repeats* after the interview, which serve this measurement alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.types import Array

LARGEST = 0.5  #: Largest unbiased variance of two or more scores in [0, 1].
SURE = 0.95  #: Confidence of the bound of a measured variance.
ONE_WAY = 0.001  #: Level of the sign test of `one_way_changes`.


def item_score(scores: Sequence[float | None]) -> float | None:
    """Return the mean of the scores of an item's samples; None if one of them is missing."""
    present = [score for score in scores if score is not None]
    if present and len(present) == len(scores):
        return math.fsum(present) / len(present)
    return None


def variance_bound(scores: ArrayLike) -> Array:
    """Return the largest possible mean variance of answers to items of these scores, shape (...) of (..., t).

    A score in [0, 1] with mean m has variance m (1 - m) at most, whose mean over items is largest when all are alike.
    One right and one wrong answer are added; few answers then do not seem certain.
    """
    values = np.asarray(scores, dtype=np.float64)
    scored = ~np.isnan(values)
    mean = (np.where(scored, values, 0.0).sum(axis=-1) + 1.0) / (scored.sum(axis=-1) + 2.0)
    return np.asarray(mean * (1.0 - mean))


def allowed_variance(variances: ArrayLike) -> float:
    """Return the variance to allow for, from unbiased variances of the measured items; infinite without any.

    Each is `LARGEST` at most, in whose units their sum y has the expected value ``y + l + sqrt(l^2 + 2 y l)`` at most,
    with a probability of `SURE` and ``l = -log(1 - SURE)`` (Chernoff's bound for values in [0, 1]).
    """
    values = np.asarray(variances, dtype=np.float64)
    total = float(values.sum()) / LARGEST
    unsure = -math.log1p(-SURE)
    most = total + unsure + math.sqrt(unsure**2 + 2.0 * total * unsure)
    if len(values):
        return LARGEST * most / len(values)
    return math.inf


@dataclass(frozen=True, slots=True)
class DecodingNoise:
    """Measured decoding noise of an interview.

    Args:
        variance: Mean variance of an answer's score about its item's expected score, over the measured items; None
            without any.
        items, answers: Items with two scored answers or more, and the scored answers to them.
        samples: Answers per item score.
        error: Standard error that decoding adds to the accuracy over the bank, see `inference.noise.widen_for_noise`.
        allowed: Variance of an item's score that decisions allow for, as in `DesignLog.noise`: that of the mean of its
            samples, and more if it was measured on few items or none.
    """

    variance: float | None
    items: int
    answers: int
    samples: int
    error: float | None
    allowed: float

    @classmethod
    def of(
        cls, answers: Iterable[Sequence[float]], scores: Sequence[float | None], samples: int, size: int
    ) -> DecodingNoise:
        """Return the noise of an interview.

        Args:
            answers: Scores of the answers to each item, repeats among them.
            scores: Scores of the administered items, see `item_score`.
            samples: Answers per such score.
            size: Items in the bank.
        """
        most = float(variance_bound([math.nan if score is None else score for score in scores]))
        several = []
        for item_answers in answers:
            if len(item_answers) > 1:
                several.append(item_answers)
        if not several:
            return cls(None, 0, 0, samples, None, most / samples)
        variances = [float(np.var(item_answers, ddof=1)) for item_answers in several]
        variance = math.fsum(variances) / len(several)
        error = math.sqrt(len(scores) * variance / samples) / size
        counted = sum(map(len, several))
        return cls(variance, len(several), counted, samples, error, min(allowed_variance(variances), most) / samples)

    @property
    def sentence(self) -> str:
        """Sentence for the notes of every verdict."""
        if self.error is None:
            return "no item has two scored answers, so bounds allow for the largest possible decoding noise"
        by = f"{self.answers} answers to {self.items} item{'s' * (self.items != 1)}"
        return (
            f"decoding noise {number(self.error, 4)} of the accuracy (standard error, by {by}): bounds and thresholds "
            "allow for it"
        )


def one_way_changes(changes: Mapping[str, float]) -> list[str]:
    """Return the items whose score changed the way that most changes go, if noise hardly goes one way so often.

    Of n changed scores as many or more go one way with a probability of at most `ONE_WAY` if the first and the second
    answer come from the same subject, in which case either order of the two is equally likely (sign test).

    Args:
        changes: Score of an item's repeated answer less that of its first one.

    Returns:
        The items; empty where the changes may be noise.
    """
    fell, rose = ([item for item, change in changes.items() if side * change > 0.0] for side in (-1, 1))
    most = max(fell, rose, key=len)
    n = len(fell) + len(rose)
    ways = sum(math.comb(n, k) for k in range(len(most), n + 1))
    if ways <= ONE_WAY * 2**n:
        return most
    return []


def widen_for_noise(interval: Interval, log: DesignLog) -> Interval:
    """Return an interval of the expected accuracy over decodings, from one of the mean score.

    The scores of the administered items are from one decoding. A draw is an unbiased estimate of the bank's expected
    sum, except that these scores replace their own expectations. The certain limits and the bets are therefore off by
    the sum of these deviations, and by nothing else: the noise of later answers is part of the variance that the draws
    show. That sum has mean 0 and the standard deviation ``log.decoding_sd``, so each bound moves by `noise_margin`.

    Args:
        log: Its `noise` is in the unit of its scores.
    """
    half = noise_margin(log, interval.confidence) / log.size
    if not half:
        return interval
    return replace(interval, low=max(interval.low - half, 0.0), high=min(interval.high + half, 1.0))


def noise_margin(log: DesignLog, confidence: float) -> Any:
    """Return the distance by which decoding noise moves a sum, see `widen_for_noise`, along the log's leading axes.

    With ``l = log 8 / alpha`` it is ``sqrt(2 l) sd + l / 3``, Bernstein's bound of independent scores in [0, 1] at an
    eighth of the error rate. The draws and the noise share the error rate, and so do the two sides. If the whole bank
    was administered, only the noise decides, and this decoding may also be the source of the measured variance: PASS
    and FAIL at the threshold together are then rarer than one of them may be.
    """
    if not np.any(log.noise):
        return 0.0
    rate = math.log(8.0 / (1.0 - confidence))
    return np.sign(log.noise) * (math.sqrt(2.0 * rate) * log.decoding_sd + rate / 3.0)
