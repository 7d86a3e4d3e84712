"""The numbers behind the figures of a page, from the record of one interview.

A record may be damaged or forged: values that are no finite numbers count as absent, and a figure without its numbers
is None.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.inference.sampling import merge_missing_bounds, with_missing_bounded
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, InterviewRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.values import as_list, as_mapping, plottable

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

#: Points of a curve; a page cannot separate more.
_POINTS = 120
#: Largest difference of a recomputed ability from the recorded one, in logits, at which its standard error is used.
_TOLERANCE = 0.01
#: Bins of a response curve, and fewest answers in each.
_BINS, _PER_BIN = 8, 6


class Kind(enum.StrEnum):
    """Result of a question, as a page distinguishes them."""

    RIGHT = "right"
    PARTLY = "partly"
    WRONG = "wrong"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Trace:
    """Ability along an interview of n questions.

    Args:
        before: Ability when each question was chosen, then at the end; in logits.
        error: Its standard error; None without the bank.
        half: Half of the two-sided interval at the end.
        z: Standard errors to each side of the band.
    """

    before: list[float]
    error: list[float] | None
    half: float | None
    z: float
    difficulty: list[float | None]
    kinds: list[Kind]

    def bound(self, side: int) -> list[float]:
        """Return the lower (-1) or upper (1) edge of the band; the ability itself without standard errors."""
        if not self.error:
            return self.before
        return [ability + side * self.z * error for ability, error in zip(self.before, self.error, strict=False)]


@dataclass(frozen=True, slots=True)
class Funnel:
    """Accuracy by the draws so far at several numbers of questions: estimates and bounds of equal length."""

    asked: list[int]
    estimate: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Accuracy that a gate requires, with the gate's label."""

    value: float
    label: str


class Step(NamedTuple):
    """Level of a ladder: questions asked, share right, and its interval."""

    level: int
    asked: int
    right: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions of similar difficulty: number, range, share right with its interval, and predicted share."""

    count: int
    easiest: float
    hardest: float
    right: float
    low: float
    high: float
    predicted: float


def kind_of(asked: Administration) -> Kind:
    """Return the result of one administration."""
    score = plottable(asked.score)
    if score is None:
        return Kind.NONE
    return Kind.RIGHT if score >= 1.0 else Kind.WRONG if score <= 0.0 else Kind.PARTLY


def ability_trace(interview: InterviewRecord, bank: ItemBank | None) -> Trace | None:
    """Return the ability along the interview, None without exactly one dimension."""
    asked = interview.by_item()
    abilities = [_single(value) for value in (*(a.theta_before for a in asked), interview.theta)]
    before = [value for value in abilities if value is not None]
    if not asked or len(before) != len(abilities):
        return None
    z = NormalDist().inv_cdf(words.confidence(interview))
    last = _single(interview.standard_error)
    error = None
    if bank is not None and last is not None and (errors := _standard_errors(interview, before[:-1], bank)):
        error = [*errors, last]
    return Trace(
        before=before,
        error=error,
        half=None if last is None else z * last,
        z=z,
        difficulty=[plottable(a.difficulty) for a in asked],
        kinds=[kind_of(a) for a in asked],
    )


def _single(values: Any) -> float | None:
    return plottable(values[0]) if isinstance(values, list) and len(values) == 1 else None


def _standard_errors(interview: InterviewRecord, before: list[float], bank: ItemBank) -> list[float] | None:
    """Return recomputed standard errors before each question, None if the recomputed abilities differ."""
    import numpy as np

    index = {name: n for n, name in enumerate(bank.ids)}
    items = [index.get(asked.item, -1) for asked in interview.by_item()]
    if bank.dimensions != 1 or bank.scale != interview.bank.get("scale") or min(items) < 0:
        return None
    starts = [n for n in range(1, len(before)) if before[n] != before[n - 1]]
    sampled = sorted({starts[round(n)] for n in np.linspace(0, len(starts) - 1, _POINTS)}) if starts else []
    estimates = _recomputed(interview, bank, items, sampled)
    if estimates is None:
        return None
    abilities, errors = zip(*estimates, strict=True)
    differences = np.subtract(abilities[1:], [before[n] for n in sampled])
    if not np.isfinite(errors).all() or (np.abs(differences) > _TOLERANCE).any():
        return None
    batch_starts = np.zeros(len(before), dtype=int)
    batch_starts[starts] = starts
    batch = np.maximum.accumulate(batch_starts)  # first question of each question's batch
    return [float(v) for v in np.interp(batch, [0, *sampled], errors)]


def _recomputed(
    interview: InterviewRecord, bank: ItemBank, items: list[int], sampled: list[int]
) -> list[tuple[float, float]] | None:
    """Return ability and standard error of the prior, and after each number of answers; None if they fail."""
    import numpy as np

    make_estimator = ESTIMATORS.get(str(interview.policy.get("estimator")))
    if make_estimator is None:
        return None
    scores = np.array([[plottable(asked.score) for asked in interview.by_item()]], dtype=float)  # None becomes NaN
    A, d = bank.discrimination[items][None], bank.intercept[items][None]
    c = None if bank.asymptote is None else bank.asymptote[items][None]
    estimator = make_estimator()
    estimates = [estimator.prior(1, 1)]
    try:
        for n in sampled:
            guess = None if c is None else c[:, :n]
            estimates.append(estimator.estimate(scores[:, :n], A[:, :n], d[:, :n], guess, estimates[-1]))
    except (ValueError, ArithmeticError):
        return None
    return [(float(estimate.theta[0, 0]), float(estimate.standard_error[0, 0])) for estimate in estimates]


def accuracy_funnel(interview: InterviewRecord) -> Funnel | None:
    """Return estimate and interval by the draws so far, None if the questions were not drawn at random."""
    import numpy as np

    confidence = words.confidence(interview)
    rows = []
    try:
        log = interview.draws()
        with np.errstate(all="ignore"):
            for n in sorted({round(n) for n in np.linspace(1, len(log), _POINTS)} - {0}):
                interval = merge_missing_bounds(*with_missing_bounded(log[:n], confidence))
                rows.append((n, interval.estimate, interval.low, interval.high))
    except (AdaptiveEvalError, ValueError, TypeError, ArithmeticError):
        return None
    if not rows or not np.isfinite(rows).all():
        return None
    asked, *columns = zip(*rows, strict=True)
    return Funnel(list(asked), *([min(max(value, 0.0), 1.0) for value in column] for column in columns))


def thresholds(gates: Sequence[GateRecord], bank: ItemBank | None) -> list[Threshold]:
    """Return the accuracies that gates require; those of abilities need the bank."""
    parameters = {parameter.name for parameter in fields(Condition)}
    required: dict[Threshold, None] = {}
    for gate in gates:
        settings = as_mapping(gate.verdict.get("condition"))
        if settings.get("kind") != "at_least":
            continue
        try:
            condition = Condition(**{name: value for name, value in settings.items() if name in parameters})
            if threshold := condition.measure.threshold(condition, bank):
                required[Threshold(*threshold)] = None
        except (AdaptiveEvalError, TypeError, ValueError):
            continue
    return list(required)


def difficulty_bins(interview: InterviewRecord) -> list[Bin] | None:
    """Return the share right by difficulty, in bins of equally many answers; None with too few answers."""
    measured = [
        [plottable(value) for value in (asked.difficulty, asked.score, asked.predicted)]
        for asked in interview.by_item()
    ]
    rows = sorted([value for value in row if value is not None] for row in measured if None not in row)
    count = min(_BINS, len(rows) // _PER_BIN)
    if count < 2:
        return None
    z = NormalDist().inv_cdf(words.confidence(interview))
    bins = []
    for start, stop in itertools.pairwise(round(n * len(rows) / count) for n in range(count + 1)):
        n, members = stop - start, rows[start:stop]
        right, predicted = (sum(row[k] for row in members) / n for k in (1, 2))
        bins.append(Bin(n, members[0][0], members[-1][0], right, *_wilson(right, n, z), predicted))
    return bins


def level_steps(interview: InterviewRecord) -> list[Step]:
    """Return the accuracy by level of a ladder, each with its own interval; an empty list without levels."""
    levels = as_mapping(interview.levels)
    z = NormalDist().inv_cdf(words.confidence(interview))
    steps = []
    counts = zip(as_list(levels.get("accuracy")), as_list(levels.get("asked")), strict=False)
    for level, (accuracy, count) in enumerate(counts, 1):
        right, asked = plottable(accuracy), plottable(count)
        if right is not None and asked is not None and asked >= 1 and 0.0 <= right <= 1.0:
            steps.append(Step(level, int(asked), right, *_wilson(right, int(asked), z)))
    return steps


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return the interval of a share of `n` (Wilson 1927)."""
    share = min(max(share, 0.0), 1.0)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)
