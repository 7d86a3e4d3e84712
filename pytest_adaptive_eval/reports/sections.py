"""Sections of the page: what an evaluation of a kind shows of its results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import QuantityRecord
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.registry import evaluation_services
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup
from pytest_adaptive_eval.reports.plots import span_of
from pytest_adaptive_eval.reports.view import ReportView
from pytest_adaptive_eval.reports.words import plottable
from pytest_adaptive_eval.text import clean_terminal, number

_NUMBER = re.compile(r"[-+−~]?\.?\d")  #: Number at the start of a cell.
ROWS = 60  #: Most rows of a table.


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a page: the first cell of a row names it, columns of numbers are aligned to the right."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, or nothing."""
        columns = zip(*self.rows, strict=True)
        numeric = []
        for column in columns:
            numeric.append(all(cell in ("", "-") or _NUMBER.match(cell) for cell in column))
        if numeric:
            return [False, *numeric[1:]]
        return [True] * len(self.heads)

    @property
    def filled(self) -> Table:
        """The table without columns that have no value in any row."""
        cells_by_column = list(zip(*self.rows, strict=True))
        kept = [n for n, cells in enumerate(cells_by_column) if n == 0 or {*cells} - {"", "-"}]
        heads = [self.heads[n] for n in kept]
        return replace(self, heads=heads, rows=[[row[n] for n in kept] for row in self.rows])

    @property
    def worded(self) -> bool:
        """Whether the table is too wide for a phone, which then shows each row as a paragraph."""
        return len(self.heads) > 4


class _Written(msgspec.Struct):
    """Settings that an account of any kind may repeat."""

    settings: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Section:
    """Parts of the page of one kind of evaluation.

    Args:
        account: Type of the part of the account in its records that the section reads.
        tables: Returns the tables after the rankings of an evaluation, from its record and account.
        figures: Returns the figures; takes a prefix of their ids, of letters and digits, and the account.
        ranks_subjects: Whether a quantity has a row per subject, which the page ranks; otherwise its rows are the
            candidate's whole result and the result of each node.
    """

    account: type[Any] = dict
    tables: Callable[[EvaluationRecord, Any], list[Table]] = lambda _record, _account: []
    figures: Callable[[str, Any], list[Figure]] = lambda _key, _account: []
    ranks_subjects: bool = True

    def parts(self, key: str, view: ReportView) -> dict[str, Any]:
        """Return tables, figures, facts, notes and the setting of one evaluation as the page's template takes them."""
        evaluation = view.record
        candidate = evaluation.subject.name
        tables: list[Table] = []
        if self.ranks_subjects:
            for metric, rows in evaluation.metrics.items():
                tables.append(_ranking(metric, rows, candidate))
        figures: list[Figure] = []
        notes = list(evaluation.notes)
        settings = ""
        if evaluation.account:
            try:
                settings = words.settings(msgspec.convert(evaluation.account, _Written).settings)
                account = msgspec.convert(evaluation.account, self.account)
            except msgspec.ValidationError as error:
                notes.append(f"the record's results are damaged, and some are not shown: {error}")
            else:
                tables += self.tables(evaluation, account)
                figures = self.figures(key, account)
        members = []
        for member in evaluation.members:
            members.append(f"{member.name} {member.checkpoint[:12]}")
        loads = [f"{name} {n}" for name, n in evaluation.costs.loads.items()]
        return {
            "facts": _facts(view),
            "notes": notes,
            "made": {"models": ", ".join(members), "loads": ", ".join(loads), "settings": settings},
            "tables": [table for table in tables if table.rows],
            "figures": figures,
        }


def short(name: str | None, limit: int = 40, *, keep_end: bool = True) -> str:
    """Return a name or a text for a cell or a label, shortened in its middle or at its end."""
    return clean_terminal(name or "unnamed", limit, keep_end=keep_end)


def section_of(kind: str) -> Section:
    """Return the section that a registered kind makes, else one with rankings alone."""
    service = evaluation_services().get(kind)
    if service is None:
        return Section()
    make = service.load().section
    if make is None:
        return Section()
    section: Section = make()
    return section


def _facts(view: ReportView) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each fact."""
    facts = []
    evaluation = view.record
    for metric, row in evaluation.of_subject():
        rows = evaluation.metrics[metric]
        value, _, rank = words.quantity(row)
        percent = words.quantity_percent(rows)
        if value != "-":
            title = f"{metric[:1].upper()}{metric[1:]} of {short(evaluation.subject.name)}"
            value, _, guessed = value.partition(" (")
            remarks = []
            if row.low is not None:
                remarks.append(f"two-sided {percent}")
            if guessed:
                remarks.append(guessed.rstrip(")"))
            facts.append((title, value, ", ".join(remarks)))
        if rank != "-":
            facts.append(("Rank", rank, f"of {len(rows)}, two-sided {percent}"))
    unit = evaluation.unit[:1].upper() + evaluation.unit[1:]
    seconds = plottable(evaluation.seconds)
    duration = ""
    if seconds:
        duration = f"after {seconds:.1f} s"
    facts.append((unit, f"{evaluation.asked} of {evaluation.size}", duration))
    if view.cost:
        total, _, more = view.cost.partition("; ")[0].partition(", ")  # a table has the roles
        facts.append(("Cost", total, more))
    return facts


def interval_of(row: Interval | QuantityRecord | None) -> tuple[float, float, float] | None:
    """Return low, estimate and high of an interval, None unless an axis can hold them."""
    if row is None:
        return None
    low, estimate, high = map(plottable, (row.low, row.estimate, row.high))
    if low is None or estimate is None or high is None:
        return None
    return (low, estimate, high)


def _ranking(metric: str, rows: Sequence[QuantityRecord], candidate: str) -> Table:
    ordered = words.ranked(rows)[:ROWS]
    title = f"Ranks by {metric}"
    names = []
    for rank, row in enumerate(ordered, 1):
        name = f"{rank} {short(row.subject)}"
        if row.subject == candidate:
            name += " (candidate)"
        names.append(name)
    if all(row.low is None for row in ordered):  # of a rule that has no errors
        values = [words.quantity(row)[0] for row in ordered]
        return Table(title, ("subject", metric), list(zip(names, values, strict=True)))
    bounds = []
    for row in ordered:
        for value in map(plottable, (row.low, row.estimate, row.high)):
            if value is not None:
                bounds.append(value)
    span = (0.0, 1.0)
    note = ""
    if bounds:
        span = span_of(bounds, 0.1)
        note = f"Bars from {number(span[0], 1)} to {number(span[1], 1)}."
    lines = []
    for name, row in zip(names, ordered, strict=True):
        interval = interval_of(row)
        bar = Markup()
        if interval:
            bar = plots.interval_bar(*interval, span)
        lines.append((name, *words.quantity(row), bar))
    heads = ("subject", f"{metric}, {words.quantity_percent(rows)}", "standard error", "rank", "")
    return Table(title, heads, lines, note)
