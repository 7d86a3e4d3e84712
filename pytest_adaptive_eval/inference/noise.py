"""Noise of decoding: how far answers to one and the same item vary, and what that adds to an accuracy's error.

A subject that samples its answers, or whose device adds in another order each time, has an expected score on an item,
of which an answer is a draw.  Items are then asked several times: as *samples*, whose mean is the item's score, and as
*repeats* after the interview, which serve to measure alone.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.text import number

__all__ = ["DecodingNoise", "allowed", "bound", "item_score", "noise_margin", "widened"]

#: No variance of a score in [0, 1] is larger.
LARGEST = 0.25
#: Confidence at which few measurements count as uncertain.
SURE = 0.95


def item_score(scores: Sequence[float | None]) -> float | None:
    """The mean of the scores of an item's samples; none where one of them has none."""
    known = [score for score in scores if score is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(scores) else None


def bound(scores: ArrayLike) -> NDArray[np.float64]:
    """How far answers to items of these scores may vary on average at most, shape (...) of (..., t).

    A score in [0, 1] that is expected to be m has variance m (1 - m) at most, of which the mean over items is largest
    when all are alike.  One right and one wrong answer more count as met, so that few answers do not seem certain.
    """
    given = np.asarray(scores, dtype=np.float64)
    scored = ~np.isnan(given)
    mean = (np.where(scored, given, 0.0).sum(axis=-1) + 1.0) / (scored.sum(axis=-1) + 2.0)
    return np.asarray(mean * (1.0 - mean))


def allowed(variances: ArrayLike) -> float:
    """The variance to allow for, given unbiased ones of the items measured.

    One more item counts as measured, with the largest variance there is, so that a few equal answers are no proof that
    none vary.  The mean is then enlarged as Student's quantile is over the normal one, with the degrees of freedom of a
    mean that scatters as these do (Satterthwaite 1946).
    """
    values = np.append(np.asarray(variances, dtype=np.float64), LARGEST)
    mean, scatter = float(values.mean()), float(values.var(ddof=1)) / len(values) if len(values) > 1 else math.inf
    freedom = max(2.0 * mean**2 / scatter, 1.0) if scatter > 0 else math.inf
    return mean * (student_quantile(freedom, SURE) / _normal_quantile()) ** 2


@functools.cache
def _normal_quantile() -> float:
    return student_quantile(math.inf, SURE)


@dataclass(frozen=True, slots=True)
class DecodingNoise:
    """What was measured.

    Parameters
    ----------
    variance : float or None
        Of an answer's score about what is expected of its item, on average over the items measured; None where none is.
    items, answers : int
        Measured, which takes two scored answers or more, and the scored answers to them.
    samples : int
        Answers that an item's score is the mean of.
    error : float or None
        Standard error that the luck of decoding gives the accuracy over the bank, see `inference.noise.widened`.
    allowed : float
        Variance of an item's score that decisions allow for, as `DesignLog.noise` has it: that of the mean of its
        samples, and more where it was measured on few items or none.
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
        """The noise of an interview.

        Parameters
        ----------
        answers : iterable of sequence of float
            Scores of the answers to each item, repeats among them.
        scores : sequence of float or None
            Of the items asked, see `item_score`.
        samples : int
            Answers that such a score is the mean of.
        size : int
            Items in the bank.
        """
        most = float(bound([math.nan if score is None else score for score in scores]))
        several = [given for given in answers if len(given) > 1]
        if not several:
            return cls(None, 0, 0, samples, None, most / samples)
        variances = [float(np.var(given, ddof=1)) for given in several]
        variance = math.fsum(variances) / len(several)
        error = math.sqrt(len(scores) * variance / samples) / size
        counted = sum(map(len, several))
        return cls(variance, len(several), counted, samples, error, min(allowed(variances), most) / samples)

    @property
    def sentence(self) -> str:
        """What a reader of any verdict must know of it."""
        if self.error is None:
            return "no item has two scored answers, so that bounds allow for all the noise that decoding may add"
        by = f"{self.answers} answers to {self.items} item{'s' * (self.items != 1)}"
        return (
            f"decoding noise {number(self.error, 4)} of the accuracy (standard error, by {by}): bounds and thresholds "
            "allow for it"
        )

    def to_json(self) -> dict[str, Any]:
        """For records."""
        return asdict(self)


def widened(found: Interval, log: DesignLog) -> Interval:
    """An interval of the mean score, made one of the accuracy to expect over decodings.

    The scores of the items asked are what one decoding made of them.  A draw
    is an unbiased estimate of the bank's expected sum, but for these known
    scores, which stand for their own expectations: both what is certain and
    what the bets are about are off by the sum of their deviations, and by
    nothing else, since whatever else a later answer may be by luck is part of
    the spread that the draws show.  That sum has mean 0 and the standard
    deviation ``log.doubt``, so that each bound moves by `noise_margin`.

    Parameters
    ----------
    found : Interval
    log : DesignLog
        With `noise` in the unit of its scores.
    """
    half = noise_margin(log, found.confidence) / log.size
    return replace(found, low=max(found.low - half, 0.0), high=min(found.high + half, 1.0)) if half else found


def noise_margin(log: DesignLog, confidence: float) -> Any:
    """Return how far a sum moves for the noise of decoding, see `widened`; an array along the log's leading axes.

    The normal quantile is that of an eighth of the error rate.  The draws and the noise share the error rate, and so do
    the two sides.  Where the whole bank was asked, only the noise decides, and this decoding may also have given the
    measured variance: PASS and FAIL at the threshold together are then rarer than one of them may be.
    """
    if not np.any(log.noise):
        return 0.0
    return student_quantile(math.inf, (7.0 + confidence) / 8.0) * log.doubt
