"""Recorded ladders: the area with its error, repetitions of one ladder, and the envelope of repetitions.

The area of a generated task up to its level cap is the same quantity for all seeds. Ladders of one task with one cap
and one policy are therefore repetitions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, Levels, area_bounds
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.types import Array


def ladder_of(interview: EvaluationRecord) -> Ladder | None:
    """Return the recorded accuracies by level, each as one score; None without a ladder."""
    levels = interview.levels
    if not levels:
        return None
    scores = tuple(np.array([math.nan if share is None else share], dtype=float) for share in levels.accuracy)
    try:
        return Ladder(scores, levels.cap, stop_at=interview.policy.settings.get("stop_at", 0.0))
    except EstimationError:  # no answer at all
        return None


def area(interview: EvaluationRecord) -> Interval | None:
    """Return the area of a ladder, in levels; None without a ladder, or without an accuracy at each level."""
    levels = interview.levels
    return levels.auc if levels and None not in levels.accuracy else None


def area_error(interview: EvaluationRecord) -> float | None:
    """Return the standard error of a ladder's area for comparing repetitions, above 0; None without an area.

    The record's interval includes the possible area of unadministered levels, which is the same in all repetitions.
    Half the interval of administered levels, for right and wrong answers, takes its place. It is scaled by the distance
    of the record's lower bound, which is smaller for fractional scores and larger for missing ones.
    """
    interval = area(interview)
    if interval is None or interview.levels is None:
        return None
    counts, means = (np.array(values, dtype=float) for values in (interview.levels.asked, interview.levels.accuracy))
    low, high = area_bounds(Levels(counts, means, 1.0), interval.confidence)
    below = float(means.sum()) - low
    scale = (interval.estimate - interval.low) / below if below > 0 else 1.0
    return scale * (high - low) / (2.0 * NormalDist().inv_cdf(interval.confidence))


def population(interview: EvaluationRecord) -> str:
    """Return a key of what was asked: a ladder's task, cap and policy, a bank's content hash, else the recorded key."""
    if not interview.is_interview:
        return interview.population
    if not interview.levels:
        return interview.bank.content_hash
    # guess floors are estimates of the package, and no setting
    settings = {name: value for name, value in interview.policy.settings.items() if name != "guess"}
    key = interview.bank.name, interview.levels.cap, interview.policy.selector or None, settings or None
    return json.dumps(key, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Repetition:
    """One repetition of a ladder, with one value a level, see `ladder_of`."""

    run: str
    started: str
    ladder: Ladder


@dataclass(frozen=True, slots=True)
class Envelope:
    """Repetitions of one subject on one task, with their lowest, mean and highest accuracy by level.

    A level that a repetition did not reach counts as 0, as in its area. The mean accuracies then add up to the mean
    area.

    Args:
        rounds: At least one, oldest first, all up to the same level cap.
    """

    evaluation: str
    subject: str
    checkpoint: str
    rounds: tuple[Repetition, ...]

    @property
    def _accuracies(self) -> Array:
        """Accuracies by repetition and level, up to the hardest administered level, shape (R, L)."""
        ladders = [repetition.ladder for repetition in self.rounds]
        accuracies = np.zeros((len(ladders), max(len(ladder.scores) for ladder in ladders)))
        for row, ladder in zip(accuracies, ladders, strict=True):
            row[: len(ladder.scores)] = ladder.accuracies
        return accuracies

    def bounds(self) -> tuple[Array, Array, Array]:
        """Return the lowest, mean and highest accuracy of each level; NaN for a level without a score."""
        accuracies = self._accuracies
        scored = ~np.isnan(accuracies)
        counts = scored.sum(axis=0)
        lowest = np.where(scored, accuracies, np.inf).min(axis=0)
        highest = np.where(scored, accuracies, -np.inf).max(axis=0)
        mean = np.nan_to_num(accuracies).sum(axis=0) / np.maximum(counts, 1)
        lowest, mean, highest = (np.where(counts > 0, values, np.nan) for values in (lowest, mean, highest))
        return lowest, mean, highest

    def reached(self) -> list[int]:
        """Return the number of repetitions that administered each level."""
        asked = [len(repetition.ladder.scores) for repetition in self.rounds]
        return [sum(level < n for n in asked) for level in range(max(asked))]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        rows = zip(*(_json_values(values) for values in self.bounds()), self.reached(), strict=True)
        return {
            "evaluation": self.evaluation,
            "subject": self.subject,
            "checkpoint": self.checkpoint,
            "cap": self.rounds[0].ladder.cap,
            "rounds": [
                {
                    "run": repetition.run,
                    "started": repetition.started,
                    "climb": str(repetition.ladder),
                    "area": repetition.ladder.area,
                    "last_level": repetition.ladder.last_level,
                    "accuracy": _json_values(repetition.ladder.accuracies),
                }
                for repetition in self.rounds
            ],
            "levels": [
                {"level": n, "lowest": low, "mean": mean, "highest": high, "rounds": rounds}
                for n, (low, mean, high, rounds) in enumerate(rows, 1)
            ],
        }


def _json_values(values: Sequence[float] | Array) -> list[float | None]:
    return [None if math.isnan(value) else value for value in np.asarray(values).tolist()]


def envelopes(rows: Iterable[tuple[RunRecord, EvaluationRecord]]) -> list[Envelope]:
    """Return the envelope of each subject's repetitions on each task, in the order of their first ones."""
    repetitions: dict[tuple[str, str, str, str], list[Repetition]] = {}
    for record, interview in rows:
        ladder = ladder_of(interview)
        if ladder is None or interview.error or not interview.stop:
            continue
        key = (interview.name, interview.subject.name, interview.subject.checkpoint, population(interview))
        repetitions.setdefault(key, []).append(Repetition(record.run, record.started, ladder))
    return [Envelope(*key[:3], tuple(rounds)) for key, rounds in repetitions.items()]
