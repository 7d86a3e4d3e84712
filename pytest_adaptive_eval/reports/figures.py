"""The figures of a page with their titles, captions and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.plots import Kind, span_of
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.drift import Alarm, Series

RUNS = 100  #: Newest runs of a series that are drawn.
PANELS = 24  #: Most panels of a history; more would be unreadable.
FEWEST = 2  #: Fewest runs of a panel.
_LINES = 12  #: Most subjects of a figure.
#: Results of a question, in words.
KIND_WORDS = {Kind.RIGHT: "right", Kind.PARTLY: "partly right", Kind.WRONG: "wrong", Kind.NONE: "no score"}


@dataclass(frozen=True, slots=True)
class Figure:
    """Picture with its title, caption and legend."""

    title: str
    caption: str
    picture: Markup
    legend: tuple[tuple[Markup, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One series of a history."""

    title: str
    about: str
    picture: Markup
    alarms: list[str]


def interview_figures(key: str, interview: EvaluationRecord) -> list[Figure]:
    """Return the figures that can be drawn: accuracy by level, and predicted against observed scores."""
    figures = []
    levels = interview.levels
    percent = words.percent(interview)
    shares = []
    if levels:
        shares = plots.level_shares(levels.accuracy, levels.asked, words.confidence(interview))
    if levels and shares:
        half = None
        if levels.half and levels.crosses_half:
            half = plottable(levels.half.estimate)
        caption = (
            f"Each interval is two-sided at {percent}, for its own level. The area under the line is the number of "
            "levels mastered."
        )
        legend = [(sample("point"), "share right")]
        if half is not None:
            legend.append((sample("required"), "crosses one half"))
        picture = plots.levels_plot(shares, half, f"{key}l")
        figures.append(Figure("Accuracy by level", caption, picture, tuple(legend)))
    bins, edges = plots.difficulty_bins(interview)
    if bins:
        caption = (
            f"Answers in {len(bins)} bins of rising difficulty. Predicted is the mean predicted score before each "
            f"question. Each interval is two-sided at {percent}, for its own bin."
        )
        legend = [(sample("point"), "share right"), (sample("forecast"), "predicted")]
        picture = plots.bins_plot(bins, edges, f"{key}c")
        figures.append(Figure("Answers and the bank's predictions", caption, picture, tuple(legend)))
    return figures


def level_figures(evaluations: Sequence[EvaluationRecord]) -> list[Figure]:
    """Return a figure of the accuracy by level for each evaluation that several subjects have, as in a sweep."""
    by_name: dict[str, list[tuple[str, list[plots.Share]]]] = {}
    for interview in evaluations:
        levels = interview.levels
        if levels is None:
            continue
        shares = plots.level_shares(levels.accuracy, levels.asked, words.confidence(interview))
        if shares:
            by_name.setdefault(interview.evaluation_name, []).append((interview.subject.name, shares))
    figures: list[Figure] = []
    for name, subjects in by_name.items():
        drawn = subjects[:_LINES]
        if len(drawn) < 2:
            continue
        numbers = ", ".join(f"{n} is {subject or 'unnamed'}" for n, (subject, _) in enumerate(drawn, 1))
        if len(subjects) > _LINES:
            more = f"; {len(subjects) - _LINES} more are not drawn"
        else:
            more = ""
        caption = clean_html(f"Accuracy at each level asked: {numbers}{more}.", 1200)
        picture = plots.levels_of_subjects([shares for _, shares in drawn], f"s{len(figures)}l")
        figures.append(Figure(clean_html(f"{name}: accuracy by level", 120), caption, picture))
    return figures


def sample(name: str) -> Markup:
    """Return the small drawing of a mark for a legend."""
    shapes = {
        "point": tag("circle", class_="point", cx=6, cy=6, r=4),
        "forecast": tag("rect", class_="forecast", x=2, y=2, width=8, height=8),
        "range": tag("rect", class_="range", x=0, y=3, width=12, height=6),
        "required": tag("line", class_="required", x1=0, x2=12, y1=6, y2=6),
        "alarm": tag("path", class_="alarm", d="M6 1l5 10h-10z"),
        "now": tag("circle", class_="now", cx=6, cy=6, r=5),
    }
    return tag("svg", shapes[name], class_="key", viewBox="0 0 12 12", aria_hidden="true")


def history_legend() -> list[tuple[Markup, str]]:
    """Return the legend of a history."""
    names = {"point": "a run", "now": "this run", "alarm": "raised an alarm"}
    return [(sample(name), meaning) for name, meaning in names.items()]


def history_panels(run: str, series: Sequence[Series], alarms: Sequence[Alarm]) -> list[Panel]:
    """Return a panel per series of at least `FEWEST` runs, whole banks before their categories.

    Panels of one metric share their axis.
    """
    z = NormalDist().inv_cdf(0.95)
    enough = [entry for entry in series if len(entry.points) >= FEWEST and _drawable(_newest(entry, [])[0])]
    drawn = sorted(enough, key=lambda entry: bool(entry.category))[:PANELS]
    spans = _spans([_newest(entry, [])[0] for entry in drawn], z)
    panels = []
    for n, entry in enumerate(drawn, 1):
        whole = find_metric(entry.metric).whole_bank
        newest, raised = _newest(entry, [alarm for alarm in alarms if alarm.series == entry])
        title = f"{entry.evaluation}: {entry.category or whole}"
        about = f"{entry.metric}, {counted(len(entry.points), 'run')} on {entry.bank}"
        picture = plots.history_plot(newest, raised, run, spans[entry.metric], z, f"h{n}")
        sentences = [clean_html(alarm.sentence, 600) for alarm in raised]
        panels.append(Panel(clean_html(title, 120), clean_html(about, 120), picture, sentences))
    return panels


def _newest(series: Series, alarms: Sequence[Alarm]) -> tuple[Series, list[Alarm]]:
    """Return the newest runs of a series, and the alarms that they raised."""
    before = max(len(series.points) - RUNS, 0)
    newest = replace(series, points=series.points[before:])
    moved = []
    for alarm in alarms:
        until = alarm.until
        if until is not None:
            until -= before
        if alarm.at >= before:
            since = max(alarm.since - before, 0)
            moved.append(replace(alarm, series=newest, at=alarm.at - before, since=since, until=until))
    return newest, moved


def _spans(series: Sequence[Series], z: float) -> dict[str, tuple[float, float]]:
    """Return the range of the axis of each metric."""
    ends: dict[str, list[float]] = {}
    for entry in series:
        bounds = ends.setdefault(entry.metric, [])
        for point in entry.points:
            bounds += point.bounds(z)
    return {metric: _span(metric, values) for metric, values in ends.items()}


def _span(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis, within 0 and 1 for shares."""
    kind = find_metric(metric)
    low, high = span_of(values, kind.least_height)
    if kind.is_share and low < 1.0 and high > 0.0:
        return (max(low, 0.0), min(high, 1.0))
    return (low, high)


def _drawable(series: Series) -> bool:
    numbers = []
    for point in series.points:
        for value in (point.value, point.standard_error):
            numbers.append(plottable(value))
    return bool(numbers) and None not in numbers
