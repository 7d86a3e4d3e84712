"""Histories and comparisons as lines for a terminal or a log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.records.comparison import Comparison, Difference
from pytest_adaptive_eval.records.derived import copied_from
from pytest_adaptive_eval.records.drift import Alarm, Series
from pytest_adaptive_eval.records.repetitions import Envelope, area, ladder_of
from pytest_adaptive_eval.records.run_record import GateRecord, InterviewRecord, RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.text import clean_terminal, columns, counted, number, wrap

__all__ = ["aligned", "comparison_lines", "drift_lines", "drift_message", "envelope_lines", "history_lines"]

_NAME = 40
_HEADS = ("started", "run", "subject", "evaluation", "ability", "accuracy", "asked", "gates")
#: Of them, those whose text stands at the right.
_RIGHT = (4, 6)
#: Items named of those that changed.
_ITEMS = 8


def history_lines(rows: Sequence[tuple[RunRecord, InterviewRecord | StudyRecord]]) -> list[str]:
    """A table of interviews and studies, oldest first, with a column for copies where there are some."""
    table = [_HEADS, *(_row(record, one) for record, one in rows)]
    copies = [clean_terminal(copied_from(record), 60) for record, _ in rows]
    if any(copies):
        table = [(*row, copy) for row, copy in zip(table, ("copy", *copies), strict=True)]
    return aligned(table, _RIGHT)


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int], indent: str = "") -> list[str]:
    """Rows of cleaned text as a table, those columns to the right; columns are two spaces apart."""
    wide = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for n, (text, space) in enumerate(zip(row, wide, strict=True)):
            room = " " * (space - columns(text))
            cells.append(room + text if n in right else text + room)
        lines.append(indent + "  ".join(cells).rstrip())
    return lines


def _row(record: RunRecord, one: InterviewRecord | StudyRecord) -> tuple[str, ...]:
    if isinstance(one, StudyRecord):
        who, name, ability, asked = one.candidate, words.study_name(one), "-", f"{one.asked}/{one.size} {one.unit}"
        measured = "void" if one.error else _leading(one)
        held: Sequence[object] = record.studies
        gates = words.gates_by_study(record)
    else:
        who, name, ability = str(one.subject.get("name") or ""), words.bank_name(one), words.ability(one)
        measured, asked = "void" if words.void(one) else _measured(one), words.share(one)
        held, gates = record.interviews, words.gates_by_interview(record)[0]
    return (
        clean_terminal(record.started[:16].replace("T", " "), 16),
        clean_terminal(record.run, 40),
        clean_terminal(who or "-", _NAME, keep_end=True),
        clean_terminal(name, _NAME),
        ability,
        clean_terminal(measured, _NAME),
        clean_terminal(asked, _NAME),
        _verdicts(next(found for other, found in zip(held, gates, strict=True) if other is one)),
    )


def _verdicts(gates: Sequence[GateRecord]) -> str:
    """``2 PASS, 1 FAIL``."""
    found = [words.outcome(gate) for gate in gates]
    return ", ".join(f"{found.count(outcome)} {outcome.value}" for outcome in Outcome if outcome in found) or "-"


def _leading(study: StudyRecord) -> str:
    """The candidate's leading quantity, ``score 4.146 [4.024, 4.268]``."""
    for metric, rows in words.quantities(study).items():
        own = next((row for row in rows if row.get("subject") == study.candidate), {})
        if own.get("estimate") is not None:
            return f"{metric} {words.quantity(own)[0]}"
    return "-"


def _measured(interview: InterviewRecord) -> str:
    """The accuracy; of a climb its area and last level, ``1.7/2 [1.31, 2.12]``."""
    ladder, interval = ladder_of(interview), area(interview)
    if ladder is None:
        return words.accuracy(interview)
    return f"{ladder} [{number(interval.low, 2)}, {number(interval.high, 2)}]" if interval else str(ladder)


def envelope_lines(found: Envelope, width: int = 80) -> list[str]:
    """The accuracy by level over the rounds of one subject."""
    rounds = found.rounds
    who = clean_terminal(found.subject or "unnamed", _NAME, keep_end=True)
    days = " to ".join(dict.fromkeys(clean_terminal(rounds[k].started[:10], 10) for k in (0, -1)))
    lines = [f"{clean_terminal(found.evaluation, _NAME)}, {who}: {counted(len(rounds), 'round')}, {days}"]
    lines += wrap(", ".join(str(one.ladder) for one in rounds), width, "    ", "  ")
    table = [["level", "lowest", "mean", "highest", "rounds"]]
    for n, (*shares, reached) in enumerate(zip(*found.bounds(), found.reached(), strict=True), 1):
        table.append([str(n), *("-" if math.isnan(share) else number(share) for share in shares), str(reached)])
    areas = [one.ladder.area for one in rounds]
    table.append(["area", *map(number, (min(areas), sum(areas) / len(areas), max(areas))), str(len(areas))])
    return [*lines, *aligned(table, range(5), "  ")]


def comparison_lines(found: Comparison, width: int = 80) -> list[str]:
    """What changed from one interview to the other."""
    old, new = (clean_terminal(name or "unnamed", _NAME, keep_end=True) for name in found.subjects)
    lines = [f"{clean_terminal(found.evaluation, _NAME)}: {old} -> {new}"]
    if found.refused:
        return [*lines, *wrap(f"not compared: {clean_terminal(found.refused)}", width, "    ", "  ")]
    whole = (("accuracy", found.accuracy), ("ability", found.ability), ("auc", found.auc))
    rows = [(name, change) for name, change in whole if change]
    rows += [(clean_terminal(f"ability.{name}", _NAME), change) for name, change in (found.parts or {}).items()]
    rows += [(clean_terminal(name, _NAME), change) for name, change in (found.categories or {}).items()]
    wide = max([columns(name) for name, _ in rows], default=0)
    lines += [f"  {name}{' ' * (wide - columns(name))}  {_change(change)}" for name, change in rows]
    if found.common:
        parts = [f"{counted(found.common, 'item')} asked in both"]
        parts += [_items(what, items) for what, items in (("worse", found.lost), ("better", found.gained)) if items]
        lines += wrap(": ".join([parts[0], "; ".join(parts[1:]) or "all alike"]), width, "    ", "  ")
    return lines


def _change(change: Difference) -> str:
    low, high = change.interval()
    sign = "+" if change.change >= 0 else ""
    return (
        f"{number(change.before):>6} -> {number(change.after):>6}  {sign}{number(change.change)} "
        f"[{number(low)}, {number(high)}]"
    )


def _items(what: str, items: Sequence[str]) -> str:
    named = ", ".join(clean_terminal(item, 60) for item in items[:_ITEMS])
    return f"{len(items)} {what} ({named}{', ...' if len(items) > _ITEMS else ''})"


def drift_lines(series: Sequence[Series], alarms: Sequence[Alarm], newest: Iterable[str], width: int = 80) -> list[str]:
    """Alarms, or that there is none, with what was watched.

    Parameters
    ----------
    series, alarms : sequence
    newest : iterable of str
        Ids of the runs whose alarms are news; older ones are told as such.
    width : int
    """
    news = set(newest)
    runs = {point.run for one in series for point in one.points}
    lines = wrap(f"{len(series)} series of {counted(len(runs), 'run')} watched", width, "  ", "")
    for alarm in alarms:
        point = alarm.series.points[alarm.at]
        head = "ALARM" if point.run in news else f"alarm at {point.started[:10]}"
        lines += wrap(clean_terminal(f"{head}: {alarm.sentence}"), width, "  ", "")
    learning: dict[str, list[str]] = {}
    for one in series:
        if one.learning:
            learning.setdefault(one.learning, []).append(one.quantity)
    for state, quantities in learning.items():
        lines += wrap(clean_terminal(f"{state}: {', '.join(quantities)}"), width, "  ", "")
    if not alarms:
        lines.append(drift_message(series))
    return lines


def drift_message(series: Sequence[Series]) -> str:
    """Return what a watch without an alarm found: that there is none, or that there could be none."""
    if series and all(one.learning for one in series):
        return "no run could alarm: every series still learns its level"
    return "no alarm"
