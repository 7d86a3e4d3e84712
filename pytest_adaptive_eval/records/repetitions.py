"""Recorded ladders: the area with its error, and which ladders repeat each other.

The area of a generated task up to its level cap is the same quantity for all seeds. Ladders of one task with one cap
and one policy are therefore repetitions.
"""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import numpy as np

from pytest_adaptive_eval.errors import EstimationError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.ladder.result import Ladder, Levels, area_bounds
from pytest_adaptive_eval.records.run_record import EvaluationRecord


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
    if levels and None not in levels.accuracy:
        return levels.auc
    return None


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
    if below > 0:
        scale = (interval.estimate - interval.low) / below
    else:
        scale = 1.0
    return scale * (high - low) / (2.0 * NormalDist().inv_cdf(interval.confidence))


def content_of(evaluation: EvaluationRecord) -> str:
    """Return a key of the questions: a bank's content hash, else the recorded key."""
    return evaluation.bank.content_hash or evaluation.population


def population(interview: EvaluationRecord) -> str:
    """Return a key of what was measured: a ladder's task, cap and policy, else that of the questions."""
    if not interview.levels:
        return content_of(interview)
    # guess floors are estimates of the package, and no setting
    settings = {}
    for name, value in interview.policy.settings.items():
        if name != "guess":
            settings[name] = value
    key = interview.bank.name, interview.levels.cap, interview.policy.selector or None, settings or None
    return json.dumps(key, sort_keys=True)
