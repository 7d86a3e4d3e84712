"""The figures of a page with their titles, captions and legends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.plots import Kind, minus, span_of
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import counted, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series

PANELS = 24  #: Most panels of a history; more would be unreadable.
FEWEST = 3  #: Fewest runs of a panel; fewer stand in a table.
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


def interview_figures(
    key: str, interview: EvaluationRecord, gates: Sequence[GateRecord], bank: ItemBank | None
) -> tuple[list[Figure], list[str]]:
    """Return the figures that can be drawn, and a sentence for each that cannot."""
    figures, absent = [], []
    if not interview.administrations:
        return [], ["The record holds no questions, so there is nothing to draw."]
    levels = interview.levels
    steps = plots.level_steps(levels.accuracy, levels.asked, words.confidence(interview)) if levels else []
    if steps:
        figures.append(_levels_figure(steps, interview, f"{key}l"))
    if trace := plots.ability_trace(interview, bank):
        figures.append(_trace_figure(trace, words.percent(interview), f"{key}a"))
    elif not interview.bank.calibrated and not steps:
        absent.append("The bank is not calibrated: no ability to follow, and no curve of responses.")
    elif interview.bank.calibrated:
        absent.append("There is no trace of one ability: the bank has several dimensions, or the record lacks it.")
    if funnel := plots.accuracy_funnel(interview):
        figures.append(_funnel_figure(funnel, interview, plots.thresholds(gates, bank), f"{key}b"))
    elif not steps:
        absent.append("The questions were not drawn at random, so accuracy has no interval by the draws to follow.")
    if bins := plots.difficulty_bins(interview):
        counts = sorted({b.count for b in bins})
        count_range = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
        caption = (
            f"Answers in bins of rising difficulty, {count_range} in each. Predicted is the mean predicted score "
            f"before each question. Each interval is two-sided at {words.percent(interview)}, for its own bin."
        )
        legend = ((_sample("point"), "share right"), (_sample("forecast"), "predicted"))
        figures.append(Figure("Response by difficulty", caption, plots.response_plot(bins, f"{key}c"), legend))
    elif interview.bank.calibrated:
        absent.append("There are too few answers with a known difficulty for a curve of responses.")
    return figures, absent


def _sample(name: str) -> Markup:
    shapes = {
        "point": tag("circle", class_="point", cx=6, cy=6, r=4),
        "forecast": tag("rect", class_="forecast", x=2, y=2, width=8, height=8),
        "line": tag("line", class_="line", x1=0, x2=12, y1=6, y2=6),
        "required": tag("line", class_="required", x1=0, x2=12, y1=6, y2=6),
        "alarm": tag("path", class_="alarm", d="M6 1l5 10h-10z"),
        "now": tag("circle", class_="now", cx=6, cy=6, r=5),
    }
    return tag("svg", shapes[name], class_="key", viewBox="0 0 12 12", aria_hidden="true")


def history_legend() -> list[tuple[Markup, str]]:
    """Return the legend of a history."""
    names = {"point": "a run", "now": "this run", "alarm": "raised an alarm"}
    return [(_sample(name), meaning) for name, meaning in names.items()]


def _levels_figure(steps: Sequence[plots.Step], interview: EvaluationRecord, key: str) -> Figure:
    levels = interview.levels
    half = plottable(levels.half.estimate) if levels and levels.half and levels.crosses_half else None
    caption = (
        f"Accuracy at each level asked; each interval is two-sided at {words.percent(interview)}, for its own level. "
        "The area under it is the number of levels mastered."
    )
    legend = [(_sample("point"), "share right")]
    if half is not None:
        legend.append((_sample("required"), "crosses one half"))
    return Figure("Accuracy by level", caption, plots.levels_plot(steps, half, key), tuple(legend))


def _trace_figure(trace: plots.Trace, percent: str, key: str) -> Figure:
    picture, beyond = plots.trace_plot(trace, key)
    caption = f"Ability estimate when each question was chosen, with its two-sided {percent} interval"
    caption += ". " if trace.error else " at the end. "
    if any(value is not None for value in trace.difficulty):
        caption += "Marks are the questions, at their difficulty: at that ability half the answers are right."
    if beyond:
        lie = "lies beyond the picture and is" if beyond == 1 else "lie beyond the picture and are"
        caption += f" {beyond} {lie} drawn at its edge."
    legend = [(_sample("line"), "ability")]
    legend += [(plots.mark(kind), f"{KIND_WORDS[kind]} {n}") for kind in Kind if (n := trace.kinds.count(kind))]
    return Figure("Ability along the interview", caption, picture, tuple(legend))


def _funnel_figure(
    funnel: plots.Funnel, interview: EvaluationRecord, required: list[plots.Threshold], key: str
) -> Figure:
    interval = interview.accuracy
    decided = (interval.estimate, interval.low, interval.high) if interval else None
    caption = (
        f"Accuracy over the whole bank by the draws so far; each interval is two-sided at {words.percent(interview)} "
        "for its own number of questions (pointwise)."
    )
    if interval and interval.method == "anytime-valid":
        caption += " Gates decide by an anytime-valid test; its interval stands at the right edge."
    elif decided:
        caption += " Gates look once, at the end, at the interval at the right edge."
    legend = [(_sample("line"), "estimate"), *([(_sample("required"), "asked for by a gate")] if required else [])]
    if decided:
        legend.append((_sample("point"), "interval of the gates"))
    picture = plots.funnel_plot(funnel, required, decided, key)
    return Figure("Accuracy as questions are asked", caption, picture, tuple(legend))


def history_panels(run: str, series: Sequence[Series], alarms: Sequence[Alarm]) -> list[Panel]:
    """Return a panel per series of at least `FEWEST` runs, whole banks before their categories.

    Panels of one metric share their axis.
    """
    z = NormalDist().inv_cdf(0.95)
    enough = [entry for entry in series if _drawable(entry) and len(entry.points) >= FEWEST]
    drawn = sorted(enough, key=lambda entry: bool(entry.category))[:PANELS]
    ends: dict[str, list[float]] = {}
    for entry in drawn:
        bounds = [bound for point in entry.points for bound in point.bounds(z)]
        ends.setdefault(entry.metric, []).extend(bounds)
    spans = {metric: _span(metric, values) for metric, values in ends.items()}
    panels = []
    for n, entry in enumerate(drawn, 1):
        whole = find_metric(entry.metric).whole_bank
        raised = [alarm for alarm in alarms if alarm.series == entry]
        panels.append(
            Panel(
                title=clean_html(f"{entry.evaluation}: {entry.category or whole}", 120),
                about=clean_html(f"{entry.metric}, {counted(len(entry.points), 'run')} on {entry.bank}", 120),
                picture=plots.history_plot(entry, raised, run, spans[entry.metric], z, f"h{n}"),
                alarms=[clean_html(alarm.sentence, 600) for alarm in raised],
            )
        )
    return panels


def _span(metric: str, values: Sequence[float]) -> tuple[float, float]:
    """Return the range of an axis, within 0 and 1 for shares."""
    kind = find_metric(metric)
    low, high = span_of(values, kind.least_height)
    return (max(low, 0.0), min(high, 1.0)) if kind.is_share and low < 1.0 and high > 0.0 else (low, high)


def history_rows(run: str, series: Sequence[Series]) -> list[tuple[str, str, str, str]]:
    """Return title, metric, earlier results and this run's result of each series of fewer than `FEWEST` runs."""
    z = NormalDist().inv_cdf(0.95)
    rows = []
    for entry in series:
        if not _drawable(entry) or len(entry.points) >= FEWEST:
            continue
        whole = find_metric(entry.metric).whole_bank
        results = {True: "-", False: "-"}
        for point in entry.points:
            low, high = point.bounds(z)
            text = f"{number(point.value, 2)} ± {number(z * point.standard_error, 2)}"
            if point.low is not None:  # as everywhere else
                text = f"{number(point.value)} [{number(low)}, {number(high)}]"
            results[point.run == run] = text
        title = clean_html(f"{entry.evaluation}: {entry.category or whole}", 120)
        rows.append((title, clean_html(entry.metric, 60), minus(results[False]), minus(results[True])))
    return rows


def _drawable(series: Series) -> bool:
    numbers = [plottable(value) for point in series.points for value in (point.value, point.standard_error)]
    return bool(numbers) and None not in numbers
