"""Each evaluation of a history over its runs, as the data of a line and as a drawing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import QuantityRecord
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.reports.markup import Markup, tag
from pytest_adaptive_eval.reports.plots import Frame, Span, path, share_label, signed_label, span_of, ticks_in
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import clean_terminal, counted, number

MOST = 240  #: Most points of a line; with more runs, each point is the mean of several in a row.
_NAMES, _NAME = 4, 14  #: Checkpoints named below a line, and characters of a name.
_DOT = 60  #: Most points that are drawn as dots, which show a run's name and values.


class TrendPoint(NamedTuple):
    """One run of an evaluation, with its interval, its outcomes and the values that its gates require."""

    run: str
    started: str
    subject: str
    low: float
    value: float
    high: float
    outcomes: tuple[Outcome, ...] = ()
    required: tuple[float, ...] = ()
    population: str = ""

    @property
    def sentence(self) -> str:
        """``step-4000, 2031-05-06: .612 [.551, .671], FAIL``."""
        verdicts = "".join(f", {outcome.value}" for outcome in self.outcomes)
        interval = f"{number(self.value)} [{number(self.low)}, {number(self.high)}]"
        return f"{self.subject or 'unnamed'}, {self.started[:10]}: {interval}{verdicts}"


class Trend(NamedTuple):
    """One quantity of an evaluation over its runs, oldest first; `names` are the names it had in them."""

    evaluation: str
    metric: str
    points: Sequence[TrendPoint]
    names: frozenset[str] = frozenset()


def trends(runs: Iterable[RunRecord]) -> list[Trend]:
    """Return each evaluation that has a result, the one of the newest run first.

    Args:
        runs: Oldest first.
    """
    points: dict[tuple[str, str], list[TrendPoint]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    for record in runs:
        if record.copied_from:
            continue
        for evaluation, gates in record.judged()[0]:
            metric, values = _leading(evaluation)
            if values is not None and not evaluation.void:
                key = (evaluation.series or evaluation.name, metric)
                points.setdefault(key, []).append(_point(record, evaluation, gates, metric, values))
                names.setdefault(key, set()).add(evaluation.name)
    all_trends = [Trend(*key, series, frozenset(names[key])) for key, series in points.items()]
    return sorted(all_trends, key=lambda trend: trend.points[-1].started, reverse=True)


def _leading(evaluation: EvaluationRecord) -> tuple[str, tuple[float, float, float] | None]:
    """Return the quantity that stands for an evaluation, with low, value and high; None without a result."""
    named: list[tuple[str, Interval | QuantityRecord | None]]
    if evaluation.levels is not None:
        named = [("auc", evaluation.levels.auc)]
    elif evaluation.bank:
        named = [("accuracy", evaluation.projection)]
    else:
        named = [*evaluation.of_subject()]
    for metric, row in named:
        if row is not None:
            low, value, high = map(plottable, (row.low, row.estimate, row.high))
            if low is not None and value is not None and high is not None:
                return metric, (low, value, high)
    return "", None


def _point(
    record: RunRecord,
    evaluation: EvaluationRecord,
    gates: Sequence[GateRecord],
    metric: str,
    values: tuple[float, float, float],
) -> TrendPoint:
    required = []
    for gate in gates:
        condition = gate.verdict.condition
        value = plottable(condition.get("value"))
        if condition.get("metric") == metric and condition.get("kind") == "at_least" and value is not None:
            required.append(value)
    return TrendPoint(
        record.run,
        record.started,
        evaluation.subject.name,
        *values,
        tuple(gate.outcome for gate in gates),
        tuple(required),
        evaluation.population or evaluation.bank.content_hash,
    )


class _Bin(NamedTuple):
    """Runs in a row that share a point of a line."""

    points: Sequence[TrendPoint]

    def mean(self, name: str) -> float:
        values = [getattr(point, name) for point in self.points]
        return float(sum(values)) / len(values)


def _bins(points: Sequence[TrendPoint]) -> list[_Bin]:
    size = -(-len(points) // MOST)
    return [_Bin(points[start : start + size]) for start in range(0, len(points), size)]


def trend_caption(trend: Trend) -> str:
    """Return ``accuracy, 60 runs; 90 % intervals``, and how many runs share a point."""
    bins = _bins(trend.points)
    text = f"{trend.metric}, {counted(len(trend.points), 'run')}"
    if len(bins) < len(trend.points):
        text += f", each point the mean of {len(bins[0].points)} in a row"
    return text


def trend_plot(trend: Trend, alarmed: Collection[str], models: Mapping[str, int], key: str) -> Markup:
    """Draw an evaluation over its runs: interval band, line, required values, alarms and names of checkpoints.

    Args:
        alarmed: Ids of the runs that raised an alarm.
        models: Number of each model, by which the page's filter finds its dots.
    """
    bins = _bins(trend.points)
    frame = Frame((-0.5, len(bins) - 0.5), _span(trend), (560.0, 240.0), (44.0, 16.0, 12.0, 46.0))
    label_of = signed_label
    metric = registered_metric(trend.metric)
    if metric is not None and metric.is_share:
        label_of = share_label
    parts = frame.grid(ticks_in(_span(trend), 5), label_of)
    for start, stop in _segments(bins):
        parts += _line(frame, bins, range(start, stop))
    parts += _required(frame, bins)
    for n, entry in enumerate(bins):
        x, y = frame.x(n), frame.y(entry.mean("value"))
        if any(point.run in alarmed for point in entry.points):
            parts.append(tag("path", class_="alarm", d=f"M{x:.1f} {y - 7:.1f}l7 12h-14z"))
        elif len(bins) <= _DOT:
            (point,) = entry.points
            title = tag("title", point.sentence)
            parts.append(tag("circle", title, class_="point", cx=x, cy=y, r=3, data_m=models.get(point.subject)))
    parts += [frame.axis(), *_checkpoints(frame, bins)]
    description = f"{trend_caption(trend)}; the last: {trend.points[-1].sentence}"
    return frame.picture(key, f"{trend.metric} of {trend.evaluation} by run", description, parts)


def _span(trend: Trend) -> Span:
    """Return the range of the axis: of all bounds and required values, within 0 and 1 for shares."""
    values: list[float] = []
    for point in trend.points:
        values += (point.low, point.high, *point.required)
    metric = registered_metric(trend.metric)
    if metric is None:
        return span_of(values, 1.0)
    low, high = span_of(values, metric.least_height)
    if metric.is_share:
        return max(low, 0.0), min(high, 1.0)
    return low, high


def _segments(bins: Sequence[_Bin]) -> list[tuple[int, int]]:
    """Return the places between which all runs asked the same bank: a line ends where another begins."""
    starts = [0]
    for n in range(1, len(bins)):
        if bins[n].points[0].population != bins[n - 1].points[0].population:
            starts.append(n)
    return list(zip(starts, [*starts[1:], len(bins)], strict=True))


def _line(frame: Frame, bins: Sequence[_Bin], indices: range) -> list[Markup]:
    """Return the band of the intervals, and the line of the values."""
    upper = [(frame.x(n), frame.y(bins[n].mean("high"))) for n in indices]
    lower = [(frame.x(n), frame.y(bins[n].mean("low"))) for n in reversed(indices)]
    middle = [(frame.x(n), frame.y(bins[n].mean("value"))) for n in indices]
    if len(indices) == 1:  # a run without neighbours has no area
        (x, top), (_, bottom) = upper[0], lower[0]
        return [tag("line", class_="whisker", x1=x, x2=x, y1=top, y2=bottom)]
    return [path([*upper, *lower], "band"), path(middle, "line")]


def _required(frame: Frame, bins: Sequence[_Bin]) -> list[Markup]:
    """Return a dashed line for each required value, from its first run to its last."""
    runs_by_value: dict[float, list[int]] = {}
    for n, entry in enumerate(bins):
        for point in entry.points:
            for value in point.required:
                runs_by_value.setdefault(value, []).append(n)
    lines = []
    for value, runs in runs_by_value.items():
        y = frame.y(value)
        ends = {"x1": frame.x(runs[0] - 0.5), "x2": frame.x(runs[-1] + 0.5)}
        lines.append(tag("line", class_="required", y1=y, y2=y, **ends))
    return lines


def _checkpoints(frame: Frame, bins: Sequence[_Bin]) -> list[Markup]:
    """Return the names and days of a few checkpoints, the first and the last among them."""
    last = len(bins) - 1
    count = min(_NAMES, len(bins))
    labelled = {round(k * last / max(count - 1, 1)) for k in range(count)}
    parts = []
    for n in sorted(labelled):
        point = bins[n].points[-1]
        anchor, x = "", frame.left
        if last:
            anchor = {0: "", last: "end"}.get(n, "mid")
            x = {0: frame.left, last: frame.right}.get(n, frame.x(n))
        name = clean_terminal(point.subject or "unnamed", _NAME, keep_end=True)
        parts.append(tag("text", name, class_=f"{anchor} asked", x=x, y=frame.bottom + 18))
        parts.append(tag("text", point.started[:10], class_=anchor, x=x, y=frame.bottom + 35))
    return parts
