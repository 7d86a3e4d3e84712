"""The numbers behind the figures of a page, from the record of one interview.

A record may be damaged or forged: what is no finite number counts as absent, and
a figure whose numbers are absent is None.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.inference.sampling import hull, with_missing_bounded
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, InterviewRecord
from pytest_adaptive_eval.reports import words

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

__all__ = [
    "Bin",
    "Funnel",
    "Kind",
    "Step",
    "Threshold",
    "Trace",
    "ability_trace",
    "accuracy_funnel",
    "difficulty_bins",
    "kind_of",
    "level_steps",
    "real",
    "thresholds",
]

#: Points of a curve; more cannot be told apart on a page.
_POINTS = 120
#: An ability estimated anew must be that of the record, in logits, or the band would be of something else.
_SAME = 0.01
#: Bins of a response curve, and answers in each at least.
_BINS, _IN_BIN = 8, 6


class Kind(enum.StrEnum):
    """What became of a question, as a page tells it apart."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trace:
    """Ability along an interview of n questions.

    Parameters
    ----------
    before : list of float, length n + 1
        Ability as known when each question was chosen, then at the end; in logits.
    error : list of float, length n + 1, or None
        Its standard error, where the bank was at hand to tell.
    half : float or None
        Half of the two-sided interval at the end.
    z : float
        Standard errors to each side of the band.
    difficulty : list of float or None, length n
    kinds : list of Kind, length n
    """

    before: list[float]
    error: list[float] | None
    half: float | None
    z: float
    difficulty: list[float | None]
    kinds: list[Kind]


@dataclass(frozen=True, slots=True)
class Funnel:
    """Accuracy by the draws so far, after some of the questions: estimates and bounds of equal length."""

    asked: list[int]
    estimate: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True, slots=True)
class Threshold:
    """An accuracy that a gate asks for, and the gate's own words."""

    value: float
    label: str


class Step(NamedTuple):
    """A level of a climb: questions asked, share right, and its interval."""

    level: int
    asked: int
    right: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of like difficulty: how many, their range, share right with its interval, and predicted share."""

    count: int
    easiest: float
    hardest: float
    right: float
    low: float
    high: float
    predicted: float


def real(value: Any) -> float | None:
    """A finite number of sensible size as a float, anything else as None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e12 < value < 1e12:
        return None
    return float(value)


def kind_of(asked: Administration) -> Kind:
    """Right, partly right, wrong, or without a score."""
    score = real(asked.score)
    if score is None:
        return Kind.NONE
    return Kind.RIGHT if score >= 1.0 else Kind.WRONG if score <= 0.0 else Kind.PARTLY


def ability_trace(interview: InterviewRecord, bank: ItemBank | None) -> Trace | None:
    """The ability along the interview; None where there is none, or more than one dimension."""
    asked = interview.by_item()
    end = _single(interview.theta)
    before = [_single(a.theta_before) for a in asked]
    known = [value for value in (*before, end) if value is not None]
    if not asked or len(known) != len(asked) + 1:
        return None
    z = student_quantile(math.inf, words.confidence(interview))
    last = _single(interview.standard_error)
    error = _errors(interview, known[:-1], bank) if bank is not None and last is not None else None
    return Trace(
        before=known,
        error=None if error is None or last is None else [*error, last],
        half=None if last is None else z * last,
        z=z,
        difficulty=[real(a.difficulty) for a in asked],
        kinds=[kind_of(a) for a in asked],
    )


def _single(values: Any) -> float | None:
    return real(values[0]) if isinstance(values, list) and len(values) == 1 else None


def _errors(interview: InterviewRecord, before: list[float], bank: ItemBank) -> list[float] | None:
    """Standard errors before each question, estimated anew; None where that gives other abilities."""
    import numpy as np

    asked = interview.by_item()
    make = ESTIMATORS.get(str(interview.policy.get("estimator")))
    place = {name: n for n, name in enumerate(bank.ids)}
    items = [place.get(a.item, -1) for a in asked]
    if make is None or bank.dimensions != 1 or bank.scale != interview.bank.get("scale") or min(items) < 0:
        return None
    scores = np.array([[np.nan if (score := real(a.score)) is None else score for a in asked]])
    A, d = bank.discrimination[items][None], bank.intercept[items][None]
    c = None if bank.asymptote is None else bank.asymptote[items][None]
    starts = [n for n in range(1, len(before)) if before[n] != before[n - 1]]
    some = sorted({starts[round(n)] for n in np.linspace(0, len(starts) - 1, _POINTS)}) if starts else []
    estimator = make()
    estimate = estimator.prior(1, 1)
    places, found = [0], [float(estimate.standard_error[0, 0])]
    try:
        for n in some:
            estimate = estimator.estimate(scores[:, :n], A[:, :n], d[:, :n], None if c is None else c[:, :n], estimate)
            if abs(float(estimate.theta[0, 0]) - before[n]) > _SAME:
                return None
            places.append(n)
            found.append(float(estimate.standard_error[0, 0]))
    except (ValueError, ArithmeticError):
        return None
    begins = np.zeros(len(before), dtype=int)
    begins[starts] = starts
    batch = np.maximum.accumulate(begins)  # where the batch of each question began
    return [float(v) for v in np.interp(batch, places, found)] if np.isfinite(found).all() else None


def accuracy_funnel(interview: InterviewRecord) -> Funnel | None:
    """Estimate and interval by the draws so far; None where the questions were not drawn at random."""
    import numpy as np

    confidence = words.confidence(interview)
    rows = []
    try:
        log = interview.draws()
        with np.errstate(all="ignore"):
            for n in sorted({round(n) for n in np.linspace(1, len(log), _POINTS)} - {0}):
                found = hull(*with_missing_bounded(log[:n], confidence))
                rows.append((n, found.estimate, found.low, found.high))
    except (AdaptiveEvalError, ValueError, TypeError, ArithmeticError):
        return None
    if not rows or not np.isfinite(rows).all():
        return None
    asked, estimate, low, high = zip(*rows, strict=True)
    return Funnel(list(asked), *([min(max(v, 0.0), 1.0) for v in column] for column in (estimate, low, high)))


def thresholds(gates: Sequence[GateRecord], bank: ItemBank | None) -> list[Threshold]:
    """Accuracies that gates ask for; that of an ability only where the bank is at hand to tell it."""
    found = []
    known = {f.name for f in fields(Condition)}
    for gate in gates:
        given = gate.verdict.get("condition")
        if not isinstance(given, dict) or given.get("kind") != "at_least":
            continue
        try:
            condition = Condition(**{name: value for name, value in given.items() if name in known})
            if condition.metric == "accuracy":
                found.append(Threshold(condition.value, condition.requirement))
            elif condition.metric == "ability" and bank is not None:
                found.append(Threshold(condition.target(bank), f"{condition.metric} {condition.requirement}"))
        except (AdaptiveEvalError, TypeError, ValueError):
            continue
    return list(dict.fromkeys(found))


def difficulty_bins(interview: InterviewRecord) -> list[Bin] | None:
    """Share right by difficulty, in bins of as many answers each; None with too few answers."""
    rows = []
    for asked in interview.by_item():
        values = [real(value) for value in (asked.difficulty, asked.score, asked.predicted)]
        if None not in values:
            rows.append(tuple(value for value in values if value is not None))
    count = min(_BINS, len(rows) // _IN_BIN)
    if count < 2:
        return None
    rows.sort()
    z = student_quantile(math.inf, words.confidence(interview))
    edges = [round(n * len(rows) / count) for n in range(count + 1)]
    bins = []
    for start, stop in itertools.pairwise(edges):
        n, part = stop - start, rows[start:stop]
        right, predicted = (sum(row[k] for row in part) / n for k in (1, 2))
        low, high = _wilson(right, n, z)
        bins.append(Bin(n, part[0][0], part[-1][0], right, low, high, predicted))
    return bins


def level_steps(interview: InterviewRecord) -> list[Step]:
    """Accuracy by level of a climb, each with its own interval; empty for anything else."""
    found = interview.levels if isinstance(interview.levels, Mapping) else {}
    accuracies, counts = found.get("accuracy"), found.get("asked")
    if not isinstance(accuracies, list) or not isinstance(counts, list):
        return []
    z = student_quantile(math.inf, words.confidence(interview))
    steps = []
    for level, (given, count) in enumerate(zip(accuracies, counts, strict=False), 1):
        right, asked = real(given), real(count)
        if right is not None and asked is not None and asked >= 1 and 0.0 <= right <= 1.0:
            steps.append(Step(level, int(asked), right, *_wilson(right, int(asked), z)))
    return steps


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Interval of a share among `n` (Wilson 1927)."""
    share = min(max(share, 0.0), 1.0)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)
