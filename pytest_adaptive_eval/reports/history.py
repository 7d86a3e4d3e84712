"""Histories, comparisons and correlations as lines for a terminal or a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_adaptive_eval.records.comparison import Comparison, Difference
from pytest_adaptive_eval.records.correlation import Correlation, Measure
from pytest_adaptive_eval.records.drift import FEWEST, Alarm, Series, lasting
from pytest_adaptive_eval.records.history import AcceptedLevel
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.view import views
from pytest_adaptive_eval.text import clean_terminal, columns, counted, number, wrap

_NAME = 40
_RESULT = 60  #: Longest result, such as an energy with bounds and what guessing has.
_HEADS = ("started", "run", "subject", "evaluation", "ability", "accuracy", "asked", "gates")
_RIGHT = (4, 6)  #: Columns that are aligned to the right.
_ITEMS = 8  #: Changed items that are named.


def history_lines(rows: Sequence[tuple[RunRecord, EvaluationRecord]]) -> list[str]:
    """Return a table of evaluations, oldest first, with a column of origins if some runs are derived."""
    table = [_HEADS, *(_row(record, evaluation) for record, evaluation in rows)]
    copies = [clean_terminal(record.copied_from, 60) for record, _ in rows]
    if any(copies):
        table = [(*row, copy) for row, copy in zip(table, ("copy", *copies), strict=True)]
    return aligned(table, _RIGHT)


def wrapped_lines(lines: Iterable[str], width: int) -> list[str]:
    """Return foreign lines for a terminal, each broken between words with its rest indented."""
    wrapped = []
    for line in lines:
        wrapped += wrap(clean_terminal(line), width, "  ", first="")
    return wrapped


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int], indent: str = "") -> list[str]:
    """Return rows of cleaned text as a table, with the columns `right` aligned to the right."""
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for n, (text, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - columns(text))
            cells.append(padding + text if n in right else text + padding)
        lines.append(indent + "  ".join(cells).rstrip())
    return lines


def _row(record: RunRecord, evaluation: EvaluationRecord) -> tuple[str, ...]:
    view = next(view for view in views(record) if view.record is evaluation)
    counts = []
    for _, text in words.outcome_counts([gate.outcome for gate in view.gates]):
        counts.append(text.replace("\u00a0", " "))
    return (
        clean_terminal(record.started[:16].replace("T", " "), 16),
        clean_terminal(record.run, 40),
        clean_terminal(view.subject or "-", _NAME, keep_end=True),
        clean_terminal(view.place, _NAME),
        view.ability,
        clean_terminal("void" if evaluation.void else view.leading, _RESULT),
        clean_terminal(view.asked, _NAME),
        ", ".join(counts) or "-",
    )


def comparison_lines(comparison: Comparison, width: int = 80) -> list[str]:
    """Return the changes from one interview to the other."""
    old, new = (clean_terminal(name or "unnamed", _NAME, keep_end=True) for name in comparison.subjects)
    lines = [f"{clean_terminal(comparison.evaluation, _NAME)}: {old} -> {new}"]
    if comparison.refused:
        return [*lines, *wrap(f"not compared: {clean_terminal(comparison.refused)}", width, "    ", "  ")]
    changes = {"accuracy": comparison.accuracy, "ability": comparison.ability, "auc": comparison.auc}
    parts = {f"ability.{name}": change for name, change in comparison.parts.items()}
    rows = [*changes.items(), *comparison.quantities.items(), *parts.items(), *comparison.categories.items()]
    table = []
    for name, change in rows:
        if change:
            table.append((clean_terminal(name, _NAME), _change(change)))
    if table:
        lines += aligned(table, [], "  ")
    if comparison.common:
        changes_by_direction = []
        for direction, items in (("worse", comparison.lost), ("better", comparison.gained)):
            if items:
                changes_by_direction.append(_items(direction, items))
        changed = "; ".join(changes_by_direction) or "all alike"
        text = f"{counted(comparison.common, 'item')} asked in both: {changed}"
        lines += wrap(text, width, "    ", "  ")
    return lines


def _change(change: Difference) -> str:
    low, high = change.interval()
    sign = "+" if change.change >= 0 else ""
    before_and_after = f"{number(change.before):>6} -> {number(change.after):>6}"
    return f"{before_and_after}  {sign}{number(change.change)} [{number(low)}, {number(high)}]"


def _items(direction: str, items: Sequence[str]) -> str:
    names = [clean_terminal(item, 60) for item in items[:_ITEMS]]
    if len(items) > _ITEMS:
        names.append("...")
    return f"{len(items)} {direction} ({', '.join(names)})"


def drift_lines(
    series: Sequence[Series], alarms: Sequence[Alarm], accepted: Sequence[AcceptedLevel] = (), width: int = 80
) -> list[str]:
    """Return the alarms, or that there is none, with the number of series and the accepted levels.

    An alarm that is over is shown with its dates.
    """
    runs = {point.run for entry in series for point in entry.points}
    lines = [f"{len(series)} series of {counted(len(runs), 'run')} watched"]
    levels = {level.series: level for level in accepted}  # of several, the last
    for entry in series:
        level = levels.get((entry.evaluation, entry.metric, entry.category))
        if level:
            lines.append(f"accepted level: {entry.quantity} from {level.started[:10]} on (run {level.run})")
    standing = lasting(alarms, series)
    for alarm in alarms:
        if alarm in standing:
            title = "ALARM"
        else:
            title = _over(alarm)
        lines.append(f"{title}: {alarm.sentence}")
    lines += _learning(series)
    wrapped = wrapped_lines(lines, width)
    if alarms:
        return wrapped
    return [*wrapped, drift_message(series)]


def _learning(series: Sequence[Series]) -> list[str]:
    """Return what series still learn, with their quantities."""
    learning: dict[str, list[str]] = {}
    for entry in series:
        learning.setdefault(entry.learning, []).append(entry.quantity)
    return [f"{state}: {', '.join(quantities)}" for state, quantities in learning.items() if state]


def _over(alarm: Alarm) -> str:
    """Return the dates of an alarm that does not last."""
    began = alarm.series.points[alarm.at].started[:10]
    if alarm.until is None:
        return f"alarm at {began}, of another bank"
    return f"alarm from {began} to {alarm.series.points[alarm.until].started[:10]}"


def drift_message(series: Sequence[Series]) -> str:
    """Return the sentence of a watch without an alarm: that there is none, or that none was possible."""
    if series and all(len(entry.points) < FEWEST for entry in series):
        return "unknown: no series has an earlier run to compare with"
    return "no alarm"


def correlation_lines(pairs: Sequence[tuple[Measure, Measure, Correlation]]) -> list[str]:
    """Return a table of correlations, a row per pair of measures."""
    rows = [["", "", "subjects", "Spearman", "Kendall", "p"]]
    for first, second, found in pairs:
        names = []
        for series in (first, second):
            names.append(f"{clean_terminal(series.name, _NAME)} ({series.metric})")
        numbers = (words.number_or_dash(value, 2) for value in (found.spearman, found.kendall))
        rows.append([*names, str(found.subjects), *numbers, words.number_or_dash(found.p_value)])
    return ["p: two-sided, of Kendall's tau, for subjects that are drawn independently", *aligned(rows, [2], "  ")]
