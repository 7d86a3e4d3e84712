"""The figures of a page as inline SVG, and their numbers, from the record of one interview.

The shape of a mark carries its meaning, and colour repeats it. Classes give colours, fonts and widths of lines, to
which a page's rules apply. Non-finite values of a damaged record count as absent.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, GateRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.markup import Markup, svg, tag
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank

Span = tuple[float, float]

#: Size of a figure and its margins: left, right, top, bottom.  On a phone the text grows to 17 units; it still fits.
WIDTH, _HEIGHT = 560.0, 300.0
_MARGINS = (44.0, 56.0, 30.0, 46.0)
LINE = 18.0  #: Distance of two lines of text.
SHARES = (0, 0.25, 0.5, 0.75, 1)  #: Ticks of an axis from 0 to 1.


class Frame:
    """Pair of axes, given by the lowest and highest values, with the positions of values, grid lines and labels."""

    def __init__(self, x: Span, y: Span, size: Span = (WIDTH, _HEIGHT), margins: Sequence[float] = _MARGINS) -> None:
        self.width, self.height = size
        self.left, self.right = margins[0], self.width - margins[1]
        self.top, self.bottom = margins[2], self.height - margins[3]
        self._x, self._y = x, y

    def x(self, value: float) -> float:
        """Return the horizontal position of a value, within the frame."""
        return self.left + (self.right - self.left) * position_in(value, self._x)

    def y(self, value: float) -> float:
        """Return the vertical position of a value, within the frame."""
        return self.bottom - (self.bottom - self.top) * position_in(value, self._y)

    def grid(self, ticks: Iterable[float], label: Callable[[float], str]) -> list[Markup]:
        """Return horizontal lines with their labels."""
        parts = []
        for tick in ticks:
            y = self.y(tick)
            parts.append(tag("line", class_="grid", x1=self.left, x2=self.right, y1=y, y2=y))
            parts.append(tag("text", label(tick), class_="end", x=self.left - 7, y=y + 4))
        return parts

    def below(self, ticks: Iterable[tuple[float, str]], name: str) -> list[Markup]:
        """Return the horizontal axis with its name, and labels at horizontal positions."""
        parts = [self.axis()]
        for x, label in ticks:
            parts.append(tag("line", class_="axis", x1=x, x2=x, y1=self.bottom, y2=self.bottom + 4))
            parts.append(tag("text", label, class_="mid", x=x, y=self.bottom + 18))
        middle = (self.left + self.right) / 2
        return [*parts, tag("text", name, class_="mid name", x=middle, y=self.height - 6)]

    def axis(self) -> Markup:
        """Return the line of the horizontal axis."""
        return tag("line", class_="axis", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom)

    def above(self, name: str) -> Markup:
        """Return the name of the vertical axis, at the top."""
        return tag("text", name, class_="name", x=0, y=14)

    def counts(self, n: int) -> list[tuple[float, str]]:
        """Return ticks at whole numbers from 1 to `n`, as positions and labels."""
        whole = [round(tick) for tick in ticks_in((1, max(n, 2)), 8) if tick == round(tick) and 1 <= tick <= n]
        whole = [1, *(tick for tick in whole if self.x(tick) - self.x(1) > 36)]
        return [(self.x(tick), str(tick)) for tick in whole]

    def picture(self, key: str, title: str, description: str, parts: Iterable[Markup]) -> Markup:
        """Return the drawing of all parts, see `svg`."""
        return svg(key, title, description, (self.width, self.height), *parts)


def position_in(value: float, span: Span) -> float:
    """Return the position of a value in a range, from 0 at its low end to 1 at its high end."""
    low, high = span
    return min(max((value - low) / (high - low), 0.0), 1.0)


def span_of(values: Iterable[float], least: float) -> Span:
    """Return the range of values with a margin, at least `least` wide."""
    sequence = list(values)
    low, high = min(sequence), max(sequence)
    margin = max(0.06 * (high - low), (least - (high - low)) / 2)
    return low - margin, high + margin


def ticks_in(span: Span, most: int = 6) -> list[float]:
    """Return round numbers within a range, about `most` of them or fewer."""
    low, high = span
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * n for n in (1, 2, 5, 10) if (high - low) / (power * n) <= most)
    return [n * step for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def minus(text: str) -> str:
    """Return the text of a number with a typographic minus sign."""
    return text.replace("-", "−")


def signed_label(value: float) -> str:
    """Return the label of a number that may be negative."""
    return minus(f"{round(value, 6) + 0.0:g}")


def share_label(value: float) -> str:
    """Return the label of an accuracy: 0, .25, 1."""
    return f"{value:.0f}" if value in (0, 1) else number(value, 2)


def path(points: Iterable[Span], class_: str) -> Markup:
    """Return a line through points."""
    return tag("path", class_=class_, d="M" + _joined(points))


def band(upper: Iterable[Span], lower: Sequence[Span]) -> Markup:
    """Return the area between two lines."""
    return tag("path", class_="band", d=f"M{_joined([*upper, *reversed(lower)])}Z")


def _joined(points: Iterable[Span]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def whisker(x: float, low: float, high: float, cap: float = 4.0) -> Markup:
    """Return a vertical interval with a cap of half-width `cap` at each end."""
    d = f"M{x - cap:.1f} {low:.1f}h{2 * cap:g}M{x:.1f} {low:.1f}V{high:.1f}M{x - cap:.1f} {high:.1f}h{2 * cap:g}"
    return tag("path", class_="whisker", d=d)


_POINTS = 120  #: Points of a curve; a page cannot separate more.
#: Largest difference of a recomputed ability from the recorded one, in logits, at which its standard error is used.
_TOLERANCE = 0.01
_BINS, _PER_BIN = 8, 6  #: Bins of a response curve, and fewest answers in each.


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


def ability_trace(interview: EvaluationRecord, bank: ItemBank | None) -> Trace | None:
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


def _standard_errors(interview: EvaluationRecord, before: list[float], bank: ItemBank) -> list[float] | None:
    """Return recomputed standard errors before each question, None if the recomputed abilities differ."""
    import numpy as np

    index = {name: n for n, name in enumerate(bank.ids)}
    items = [index.get(asked.item, -1) for asked in interview.by_item()]
    if bank.dimensions != 1 or bank.scale != interview.bank.scale or min(items) < 0:
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
    interview: EvaluationRecord, bank: ItemBank, items: list[int], sampled: list[int]
) -> list[tuple[float, float]] | None:
    """Return ability and standard error of the prior, and after each number of answers; None if they fail."""
    import numpy as np

    make_estimator = ESTIMATORS.get(interview.policy.estimator)
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


def accuracy_funnel(interview: EvaluationRecord) -> Funnel | None:
    """Return estimate and interval by the draws so far, None if the questions were not drawn at random."""
    import numpy as np

    confidence = words.confidence(interview)
    rows = []
    try:
        log = interview.draws()
        with np.errstate(all="ignore"):
            for n in sorted({round(n) for n in np.linspace(1, len(log), _POINTS)} - {0}):
                part = replace(log[:n], horizon=n if log.fixed else log.horizon)
                interval = interval_of_draws(part, confidence)
                rows.append((n, interval.estimate, interval.low, interval.high))
    except (AdaptiveEvalError, ValueError, TypeError, ArithmeticError):
        return None
    if not rows or not np.isfinite(rows).all():
        return None
    asked, *columns = zip(*rows, strict=True)
    return Funnel(list(asked), *([min(max(value, 0.0), 1.0) for value in column] for column in columns))


def thresholds(gates: Sequence[GateRecord], bank: ItemBank | None) -> list[Threshold]:
    """Return the accuracies that gates require; abilities need the bank."""
    required: dict[Threshold, None] = {}
    for gate in gates:
        recorded = gate.verdict.condition
        if recorded is None or recorded.kind == "not_worse_than":
            continue
        try:
            condition = recorded.condition()
            if threshold := condition.measure.threshold(condition, bank):
                required[Threshold(*threshold)] = None
        except AdaptiveEvalError:  # such as of a metric that is not here
            continue
    return list(required)


def difficulty_bins(interview: EvaluationRecord) -> list[Bin] | None:
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


def level_steps(accuracies: Sequence[float | None], asked: Sequence[int], confidence: float) -> list[Step]:
    """Return the accuracy of each level that was asked, with its own interval."""
    z = NormalDist().inv_cdf(confidence)
    return [
        Step(level, count, right, *_wilson(right, count, z))
        for level, (right, count) in enumerate(zip(accuracies, asked, strict=False), 1)
        if right is not None and count >= 1 and 0.0 <= right <= 1.0
    ]


def _wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return the interval of a share of `n` (Wilson 1927)."""
    share = min(max(share, 0.0), 1.0)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


_PANEL, _PANEL_MARGINS = (280.0, 140.0), (44.0, 42.0, 12.0, 26.0)  #: Size and margins of a history's panel.
_FAR = 3.0  #: Difficulties farther than this from all abilities shown do not stretch their axis, in logits.
_BAR, _BAR_MARGIN = 160.0, 4.0  #: Width of a bar in a table, and of its margins.
_LABEL = 150.0  #: Width of the labels of rows.


def _shape(kind: Kind, x: float, y: float, r: float) -> str:
    """Return the path of a mark: a disc, a triangle, a cross, or a ring."""
    if kind is Kind.WRONG:
        return f"M{x - r:.1f} {y - r:.1f}l{2 * r:.1f} {2 * r:.1f}m0 {-2 * r:.1f}l{-2 * r:.1f} {2 * r:.1f}"
    if kind is Kind.PARTLY:
        return f"M{x:.1f} {y - 1.2 * r:.1f}l{1.2 * r:.1f} {2.1 * r:.1f}h{-2.4 * r:.1f}z"
    return f"M{x - r:.1f} {y:.1f}a{r:.1f} {r:.1f} 0 1 0 {2 * r:.1f} 0a{r:.1f} {r:.1f} 0 1 0 {-2 * r:.1f} 0"


def mark(kind: Kind) -> Markup:
    """Return the sample of a mark for a legend."""
    shape = tag("path", class_=f"mark {kind.value}", d=_shape(kind, 6, 6, 3.6))
    return tag("svg", shape, class_="key", viewBox="0 0 12 12", aria_hidden="true")


def trace_plot(trace: Trace, key: str) -> tuple[Markup, int]:
    """Draw abilities and difficulties along the interview.  Return how many lie beyond the axis, drawn at its edge."""
    n = len(trace.kinds)
    end, half = trace.before[-1], trace.half or 0.0
    difficulties = [value for value in trace.difficulty if value is not None]
    least, most = min(*trace.bound(-1), end - half), max(*trace.bound(1), end + half)
    near = [value for value in difficulties if least - _FAR <= value <= most + _FAR]
    span = span_of([least, most, *near], 2.0)
    frame = Frame((0.5, n + 1.5), span)
    # an ability holds from the choice of one question to that of the next
    edges = [frame.x(k + 0.5) for k in range(n + 2)]

    def steps(values: Sequence[float]) -> list[Span]:
        return [(edges[k + side], frame.y(value)) for k, value in enumerate(values) for side in (0, 1)]

    parts = [frame.above("logits"), *frame.grid(ticks_in(span), signed_label)]
    if trace.error:
        parts.append(band(steps(trace.bound(1)), steps(trace.bound(-1))))
    parts += _trace_marks(trace, frame)
    parts.append(path(steps(trace.before), "line"))
    if trace.half is not None:
        parts.append(whisker(edges[-1], frame.y(end - half), frame.y(end + half)))
    parts.append(tag("circle", class_="point", cx=edges[-1], cy=frame.y(end), r=3.5))
    parts.append(tag("text", minus(number(end, 2)), class_="value", x=edges[-1] + 9, y=frame.y(end) + 4))
    parts += frame.below(frame.counts(n), "question")
    right, wrong = trace.kinds.count(Kind.RIGHT), trace.kinds.count(Kind.WRONG)
    description = (
        f"From {number(trace.before[0], 2)} before question 1 to {number(end, 2)} logits after question {n}. "
        f"{right} questions right, {wrong} wrong, {n - right - wrong} partly right or without a score."
    )
    beyond = sum(not span[0] <= value <= span[1] for value in difficulties)
    return frame.picture(key, "Ability and difficulty by question", description, parts), beyond


def _trace_marks(trace: Trace, frame: Frame) -> list[Markup]:
    radius = min(3.6, max(1.4, 3.6 * math.sqrt(90 / len(trace.kinds))))
    shapes: dict[Kind, str] = dict.fromkeys(Kind, "")
    for k, (kind, difficulty) in enumerate(zip(trace.kinds, trace.difficulty, strict=True), 1):
        if difficulty is not None:
            shapes[kind] += _shape(kind, frame.x(k), frame.y(difficulty), radius)
    return [tag("path", class_=f"mark {kind.value}", d=d) for kind, d in shapes.items() if d]


def funnel_plot(
    funnel: Funnel, required: Sequence[Threshold], decided: tuple[float, float, float] | None, key: str
) -> Markup:
    """Draw the accuracy by the draws so far, with its interval at each number of questions."""
    n = funnel.asked[-1]
    frame = Frame((min(1, n - 1), n), (0.0, 1.0))
    high, estimate, low = (
        [(frame.x(k), frame.y(value)) for k, value in zip(funnel.asked, values, strict=True)]
        for values in (funnel.high, funnel.estimate, funnel.low)
    )
    parts = [frame.above("accuracy"), *frame.grid(SHARES, share_label), band(high, low), path(estimate, "line")]
    ordered = sorted(required, key=lambda threshold: -threshold.value)
    lines = [frame.y(threshold.value) for threshold in ordered]
    above = [-math.inf, *lines][: len(lines)]  # a label that would cover the line above its own stands below its own
    label_heights = [y - 5 if y - over > LINE else y + LINE for y, over in zip(lines, above, strict=True)]
    heights = _spaced(label_heights, frame.bottom - 5)
    for threshold, y, label_y in zip(ordered, lines, heights, strict=True):
        parts.append(tag("line", class_="required", x1=frame.left, x2=frame.right, y1=y, y2=y))
        label = threshold.label.replace(">=", "≥")
        parts.append(tag("text", label, class_="end halo", x=frame.right - 4, y=label_y))
    last, label_x = funnel.estimate[-1], frame.right + 8
    if decided is not None:
        last, decided_low, decided_high = decided
        label_x = frame.right + 19
        parts.append(whisker(frame.right + 10, frame.y(decided_low), frame.y(decided_high)))
        parts.append(tag("circle", class_="point", cx=frame.right + 10, cy=frame.y(last), r=3.5))
    parts.append(tag("text", number(last, 2), class_="value", x=label_x, y=frame.y(last) + 4))
    parts += frame.below(frame.counts(n), "questions asked")
    description = (
        f"After {n} questions {number(funnel.estimate[-1])}, interval {number(funnel.low[-1])} to "
        f"{number(funnel.high[-1])}. " + " ".join(f"A gate asks for {threshold.label}." for threshold in required)
    )
    return frame.picture(key, "Accuracy by the number of questions asked", description, parts)


def _spaced(heights: Sequence[float], lowest: float) -> list[float]:
    """Return heights of labels, from the top down, moved so that none covers another."""
    spaced: list[float] = []
    for height in heights:
        spaced.append(max(height, spaced[-1] + LINE) if spaced else height)
    for n in reversed(range(len(spaced))):
        spaced[n] = min(spaced[n], lowest)
        lowest = spaced[n] - LINE
    return spaced


def response_plot(bins: Sequence[Bin], key: str) -> Markup:
    """Draw the share right and the predicted share in bins of rising difficulty, equally wide."""
    frame = Frame((0, len(bins)), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    centres = [frame.x(k + 0.5) for k in range(len(bins))]
    parts.append(path([(x, frame.y(b.predicted)) for x, b in zip(centres, bins, strict=True)], "predicted"))
    for x, b in zip(centres, bins, strict=True):
        parts.append(whisker(x, frame.y(b.low), frame.y(b.high)))
        parts.append(tag("circle", class_="point", cx=x, cy=frame.y(b.right), r=4.5))
        parts.append(tag("rect", class_="forecast", x=x - 4, y=frame.y(b.predicted) - 4, width=8, height=8))
    inner = [(easier.hardest + harder.easiest) / 2 for easier, harder in itertools.pairwise(bins)]
    edges = [bins[0].easiest, *inner, bins[-1].hardest]
    ticks = [(frame.x(k), _difficulty_label(value)) for k, value in enumerate(edges)]
    parts += frame.below(ticks, "difficulty, logits")
    description = "; ".join(
        f"difficulty {b.easiest:.2f} to {b.hardest:.2f}: {number(b.right, 2)} right of {b.count}, "
        f"{number(b.predicted, 2)} predicted"
        for b in bins
    )
    return frame.picture(key, "Share right by difficulty", description, parts)


def _difficulty_label(value: float) -> str:
    """Return a difficulty, without digits beyond 10: items that hardly discriminate reach the thousands."""
    return signed_label(round(value, 1)) if abs(value) < 10 else ">10" if value > 0 else "<−10"


def levels_plot(steps: Sequence[Step], half: float | None, key: str) -> Markup:
    """Draw the accuracy by level of a ladder, and the level at which it crosses one half."""
    frame = Frame((steps[0].level - 0.5, steps[-1].level + 0.5), (0.0, 1.0))
    parts = [frame.above("share right"), *frame.grid(SHARES, share_label)]
    if half is not None:
        parts.append(tag("line", class_="required", x1=frame.x(half), x2=frame.x(half), y1=frame.top, y2=frame.bottom))
    parts.append(path([(frame.x(step.level), frame.y(step.right)) for step in steps], "line"))
    for step in steps:
        parts.append(whisker(frame.x(step.level), frame.y(step.low), frame.y(step.high)))
        parts.append(tag("circle", class_="point", cx=frame.x(step.level), cy=frame.y(step.right), r=4))
    every = max(1, math.ceil(len(steps) / 12))
    parts += frame.below([(frame.x(step.level), str(step.level)) for step in steps[::every]], "level")
    description = "; ".join(f"level {step.level}: {number(step.right, 2)} right of {step.asked}" for step in steps)
    return frame.picture(key, "Share right by level", description, parts)


def series_plot(values: Sequence[float], name: str, unit: str, key: str) -> Markup:
    """Draw values of at least 0 by their number, from 1."""
    n = len(values)
    highest = max(*values, 1e-3)
    frame = Frame((1, n), (0.0, highest * 1.06))
    parts = [frame.above(name), *frame.grid(ticks_in((0.0, highest), 4), lambda tick: f"{tick:g}")]
    parts.append(path([(frame.x(k), frame.y(value)) for k, value in enumerate(values, 1)], "line"))
    parts += frame.below(frame.counts(n), unit)
    description = (
        f"{n} {unit}s, the first {number(values[0])}, the highest {number(max(values))}, the last {number(values[-1])}."
    )
    return frame.picture(key, f"{name} by {unit}", description, parts)


def mirrored_bars(edges: Sequence[float], above: Sequence[float], below: Sequence[float], title: str) -> Markup:
    """Draw two distributions over the bins between `edges`, as shares of each: one above a line, the other below."""
    line, height = 26.0, 22.0
    shares = [[count / (sum(counts) or 1.0) for count in counts] for counts in (above, below)]
    most, step = max(*shares[0], *shares[1]) or 1.0, _BAR / len(above)
    parts = [tag("line", class_="axis", x1=0, x2=_BAR, y1=line, y2=line)]
    for class_, distribution in zip(("others", "low"), shares, strict=True):
        for n, share in enumerate(distribution):
            if share:
                bar = height * share / most
                y = line - bar if class_ == "others" else line
                parts.append(tag("rect", class_=class_, x=n * step + 0.5, y=y, width=step - 1, height=bar))
    for x, anchor, value in ((0.0, "start", edges[0]), (_BAR, "end", edges[-1])):
        parts.append(tag("text", minus(f"{value:.3g}"), class_=anchor, x=x, y=2 * line + 9))
    size = f"0 0 {_BAR:g} {2 * line + 12:g}"
    return tag("svg", tag("title", title), *parts, role="img", class_="bar mirrored", viewBox=size)


def interval_bar(
    low: float, estimate: float, high: float, span: Span = (0.0, 1.0), target: float | None = None
) -> Markup:
    """Draw an interval on a scale, as a decoration of its numbers."""
    middle = 9.0

    def x(value: float) -> float:
        return _BAR_MARGIN + (_BAR - 2 * _BAR_MARGIN) * position_in(value, span)

    parts = [
        tag("line", class_="track", x1=x(span[0]), x2=x(span[1]), y1=middle, y2=middle),
        tag("rect", class_="range", x=x(low), y=middle - 3, width=max(x(high) - x(low), 1.0), height=6, rx=3),
        tag("circle", class_="point", cx=x(estimate), cy=middle, r=4),
    ]
    height = 2 * middle
    if target is not None:
        height += 14
        label_x = min(max(x(target), 22.0), _BAR - 22)
        parts += [
            tag("line", class_="target", x1=x(target), x2=x(target), y1=1, y2=17),
            tag("text", f"≥ {number(target, 2)}", class_="mid asked", x=label_x, y=height - 3),
        ]
        if label_x > 50:
            parts.append(tag("text", _end_label(span[0]), x=4, y=height - 3))
        if label_x < _BAR - 50:
            parts.append(tag("text", _end_label(span[1]), class_="end", x=_BAR - 4, y=height - 3))
    return tag("svg", *parts, class_="bar", viewBox=f"0 0 {_BAR:g} {height:g}", aria_hidden="true")


def _end_label(value: float) -> str:
    return signed_label(round(value, 1 if abs(value) < 10 else 0))


def history_plot(series: Series, alarms: Sequence[Alarm], run: str, span: Span, z: float, key: str) -> Markup:
    """Draw a series over its runs, with its alarms."""
    n = len(series.points)
    frame = Frame((-0.5, n - 0.5), span, _PANEL, _PANEL_MARGINS)
    parts = frame.grid(ticks_in(span, 5), share_label if find_metric(series.metric).is_share else signed_label)
    for alarm in alarms:
        since = frame.x(alarm.since - 0.5)
        parts.append(tag("line", class_="change", x1=since, x2=since, y1=frame.top, y2=frame.bottom))
        over = frame.right if alarm.until is None else frame.x(alarm.until)
        for level, start, stop in ((alarm.before, frame.left, since), (alarm.after, since, over)):
            parts.append(tag("line", class_="level", x1=start, x2=stop, y1=frame.y(level), y2=frame.y(level)))
    positions = [(frame.x(k), frame.y(point.value)) for k, point in enumerate(series.points)]
    parts.append(path(positions, "line faint"))
    raised = {alarm.at for alarm in alarms}
    for k, (point, (x, y)) in enumerate(zip(series.points, positions, strict=True)):
        low, high = point.bounds(z)
        parts.append(whisker(x, frame.y(low), frame.y(high), cap=0.0))
        if k in raised:
            parts.append(tag("path", class_="alarm", d=f"M{x:.1f} {y - 6:.1f}l6 11h-12z"))
        else:
            parts.append(tag("circle", class_="point", cx=x, cy=y, r=3))
        if point.run == run:
            parts.append(tag("circle", class_="now", cx=x, cy=y, r=8))
    if current := [k for k, point in enumerate(series.points) if point.run == run]:
        x, y = positions[current[-1]]
        label = minus(number(series.points[current[-1]].value, 2))
        parts.append(tag("text", label, class_="value", x=x + 12, y=y + 4))
    parts += [frame.axis(), *_dates(series, frame)]
    description = f"{n} runs, the last at {number(series.points[-1].value)}. "
    description += " ".join(alarm.sentence for alarm in alarms)
    return frame.picture(key, f"{series.metric} by run", description, parts)


def _dates(series: Series, frame: Frame) -> list[Markup]:
    """Return the days of the first and the last run, or their times on one day."""
    first, last = (series.points[k].started for k in (0, -1))
    characters = slice(11, 16) if first[:10] == last[:10] else slice(10)  # of 2031-05-06T07:08:09Z
    labels = [tag("text", first[characters], x=frame.left, y=frame.height - 8)]
    if len(series.points) > 1:
        labels.append(tag("text", last[characters], class_="end", x=frame.right, y=frame.height - 8))
    return labels


def stacked_bars(key: str, rows: Sequence[tuple[str, Sequence[float], bool]], parts: Sequence[str]) -> Markup:
    """Draw amounts in parts, a bar per row."""
    most = max((sum(amounts) for _, amounts, _ in rows), default=0.0) or 1.0
    width = WIDTH - _LABEL - 50.0
    drawn = []
    for n, (name, amounts, highlighted) in enumerate(rows):
        top, x = n * LINE + 2.0, _LABEL
        drawn.append(tag("text", name, class_="end halo" if highlighted else "end", x=_LABEL - 8, y=top + 11))
        for k, amount in enumerate(amounts):
            bar = width * amount / most
            drawn.append(tag("rect", class_=f"part p{k}", x=x, y=top, width=bar, height=LINE - 5))
            x += bar
        if highlighted:
            drawn.append(tag("text", number(sum(amounts), 2), class_="value", x=x + 6, y=top + 11))
    description = "; ".join(f"{name} {number(sum(amounts), 2)}" for name, amounts, _ in rows)
    return svg(key, f"Abilities in {', '.join(parts)}", description, (WIDTH, len(rows) * LINE + 4), *drawn)


def heatmap(names: Sequence[str], cells: Sequence[Sequence[float | None]], key: str) -> Markup:
    """Draw a square of judgments from 1 to 5, whose columns have the numbers of the rows."""
    n, top = len(names), 24.0
    side = min((WIDTH - _LABEL) / n, 44.0)
    parts = []
    for i, (name, row) in enumerate(zip(names, cells, strict=True)):
        y = top + i * side
        parts.append(tag("text", name, class_="end", x=_LABEL - 8, y=y + side / 2 + 4))
        parts.append(tag("text", str(i + 1), class_="mid", x=_LABEL + (i + 0.5) * side, y=top - 8))
        for j, judgment in enumerate(row):
            parts += _heat_cell(_LABEL + j * side, y, side, judgment)
    judgments = [[judgment for judgment in row if judgment is not None] for row in cells]
    description = "; ".join(
        f"{name} gives {number(sum(row) / len(row), 1)} on average"
        for name, row in zip(names, judgments, strict=True)
        if row
    )
    return svg(key, "Mean judgment by judge and contestant", description, (WIDTH, top + n * side + 4), *parts)


def _heat_cell(x: float, y: float, side: float, judgment: float | None) -> list[Markup]:
    shade = 0.0 if judgment is None else 0.06 + 0.84 * position_in(judgment, (1.0, 5.0))
    inside = {"x": x + 1, "y": y + 1, "width": side - 2, "height": side - 2}
    parts = [tag("rect", class_="heat", fill_opacity=f"{shade:.2f}", **inside)]
    if side >= 26:
        label = "–" if judgment is None else number(judgment, 1)
        class_ = "mid on" if shade > 0.75 else "mid over"
        parts.append(tag("text", label, class_=class_, x=x + side / 2, y=y + side / 2 + 4))
    return parts
