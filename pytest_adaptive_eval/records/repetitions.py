"""What records tell of climbs: the area with its error, which climbs are rounds of one, and the envelope over rounds.

A generated task asks what it asked before, or other questions of the same kind:
the area up to its level cap is the same quantity whatever the seed.  Climbs of one
task to one cap, asked in the same way, are therefore rounds of one another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, Levels, area_bounds
from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord

__all__ = ["Envelope", "Round", "area", "area_error", "envelopes", "ladder_of", "population"]

Array = NDArray[np.float64]


def ladder_of(interview: InterviewRecord) -> Ladder | None:
    """The accuracies by level that a record tells, each as if it were one score; None where none was climbed."""
    found = interview.levels
    if not found:
        return None
    scores = tuple(np.array([math.nan if share is None else share], dtype=float) for share in found["accuracy"])
    try:
        return Ladder(scores, int(found["cap"]))
    except EstimationError:  # not one answer
        return None


def area(interview: InterviewRecord) -> Interval | None:
    """The area of a climb, in levels; None where it was not climbed, or its answers cannot tell it."""
    found = interview.levels or {}
    told = found.get("auc")
    if not told or None in found["accuracy"]:
        return None
    return Interval(**told)


def area_error(interview: InterviewRecord) -> float | None:
    """Standard error of a climb's area, for comparing rounds; never 0, and None where there is no area.

    The record's interval reaches up to what levels may hold that were not asked,
    which no two rounds differ by.  Half the interval of the levels that were asked
    is taken instead, as it is of right and wrong answers.  As far as the record's
    lower bound is nearer to the area than theirs is, as where scores are
    fractions, or farther, as where scores are missing, it is made to fit.
    """
    interval = area(interview)
    if interval is None or interview.levels is None:
        return None
    counts, means = (np.array(interview.levels[name], dtype=float) for name in ("asked", "accuracy"))
    low, high = area_bounds(Levels(counts, means, 1.0), interval.confidence)
    below = float(means.sum()) - low
    fit = (interval.estimate - interval.low) / below if below > 0 else 1.0
    return fit * (high - low) / (2.0 * NormalDist().inv_cdf(interval.confidence))


def population(interview: InterviewRecord) -> str:
    """What an interview asked: climbs of one task to one cap in one way are alike, whatever the seed.

    Other interviews are alike on banks with the same content.
    """
    if not interview.levels:
        return str(interview.bank.get("content_hash", ""))
    policy = interview.policy
    about = interview.bank.get("name"), interview.levels["cap"], policy.get("selector"), policy.get("settings")
    return json.dumps(about, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Round:
    """One climb.

    Parameters
    ----------
    run, started : str
        Id, and start in ISO 8601, UTC.
    ladder : Ladder
        One value a level, see `ladder_of`.
    """

    run: str
    started: str
    ladder: Ladder


@dataclass(frozen=True, slots=True)
class Envelope:
    """Rounds of one subject on one task: the accuracy by level that they had at least, on average and at most.

    A level that a round did not reach counts as 0 there, as it does in the
    round's area, so that the mean accuracies add up to the mean area.

    Parameters
    ----------
    evaluation, subject, checkpoint : str
    rounds : tuple of Round
        At least one, oldest first, all up to the same level cap.
    """

    evaluation: str
    subject: str
    checkpoint: str
    rounds: tuple[Round, ...]

    @property
    def _accuracies(self) -> Array:
        """By round and level, up to the hardest level that was asked."""
        out = np.zeros((len(self.rounds), max(len(one.ladder.scores) for one in self.rounds)))
        for row, one in zip(out, self.rounds, strict=True):
            row[: len(one.ladder.scores)] = one.ladder.accuracies
        return out

    def bounds(self) -> tuple[Array, Array, Array]:
        """Lowest, mean and highest accuracy of each level; NaN where no round has a score on it."""
        given = self._accuracies
        known = ~np.isnan(given)
        some = known.any(axis=0)
        lowest = np.where(some, np.where(known, given, np.inf).min(axis=0), np.nan)
        highest = np.where(some, np.where(known, given, -np.inf).max(axis=0), np.nan)
        mean = np.where(some, np.nan_to_num(given).sum(axis=0) / np.maximum(known.sum(axis=0), 1), np.nan)
        return lowest, mean, highest

    def reached(self) -> list[int]:
        """Rounds that asked each level."""
        asked = [len(one.ladder.scores) for one in self.rounds]
        return [sum(level < n for n in asked) for level in range(max(asked))]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        rows = zip(*(_told(values) for values in self.bounds()), self.reached(), strict=True)
        return {
            "evaluation": self.evaluation,
            "subject": self.subject,
            "checkpoint": self.checkpoint,
            "cap": self.rounds[0].ladder.cap,
            "rounds": [
                {
                    "run": one.run,
                    "started": one.started,
                    "climb": str(one.ladder),
                    "area": one.ladder.area,
                    "last_level": one.ladder.last_level,
                    "accuracy": _told(one.ladder.accuracies),
                }
                for one in self.rounds
            ],
            "levels": [
                {"level": n, "lowest": low, "mean": mean, "highest": high, "rounds": rounds}
                for n, (low, mean, high, rounds) in enumerate(rows, 1)
            ],
        }


def _told(values: Sequence[float] | Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in np.asarray(values).tolist()]


def envelopes(rows: Iterable[tuple[RunRecord, InterviewRecord]]) -> list[Envelope]:
    """The envelope of each subject's rounds on each task, in the order of their first rounds.

    Parameters
    ----------
    rows : iterable of (RunRecord, InterviewRecord)
        Oldest first; interviews that are void or climbed nothing are left out.
    """
    found: dict[tuple[str, str, str, str], list[Round]] = {}
    for record, interview in rows:
        ladder = ladder_of(interview)
        if ladder is None or interview.error or not interview.stop:
            continue
        who, weights = (str(interview.subject.get(name, "")) for name in ("name", "checkpoint"))
        key = (interview.name, who, weights, population(interview))
        found.setdefault(key, []).append(Round(record.run, record.started, ladder))
    return [Envelope(*key[:3], tuple(rounds)) for key, rounds in found.items()]
