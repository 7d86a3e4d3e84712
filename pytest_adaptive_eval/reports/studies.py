"""The page's view of a study: its subjects in order, its results, and the section of its kind."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import QuantityRecord
from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.plots import span_of
from pytest_adaptive_eval.reports.view import View
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
        numeric = [all(cell in ("", "-") or _NUMBER.match(cell) for cell in column) for column in columns]
        return [False, *numeric[1:]] if numeric else [True] * len(self.heads)


@dataclass(frozen=True, slots=True)
class StudySection:
    """Report parts of one study kind.

    Args:
        account: Type of the account of its studies, as far as the section reads it.
        tables: Returns the tables after the rankings of a study, from its account.
        figures: Returns the figures of a study; takes a prefix of their ids, of letters and digits, and the account.
        ranks_subjects: Whether a quantity has a row per subject, which the page ranks; otherwise its rows are the
            candidate's whole result and the result of each node.
    """

    name: str
    account: type[Any] = dict
    tables: Callable[[StudyRecord, Any], list[Table]] = lambda _study, _account: []
    figures: Callable[[str, Any], list[Figure]] = lambda _key, _account: []
    ranks_subjects: bool = True


def short(name: str | None, limit: int = 40, *, keep_end: bool = True) -> str:
    """Return a name or a text for a cell or a label, shortened in its middle or at its end."""
    return clean_terminal(name or "unnamed", limit, keep_end=keep_end)


@cache
def section_of(kind: str) -> StudySection:
    """Return the section of a study kind: the registered one, else one with rankings alone."""
    return registered(None, "adaptive_eval.report_sections", StudySection).get(kind, StudySection(kind))


_NAME, _SENTENCE = 80, 600  #: Longest name and sentence.


class _Written(msgspec.Struct):
    """Settings that an account of any kind may repeat."""

    settings: dict[str, Any] = {}


def study_view(key: str, view: View, study: StudyRecord) -> dict[str, Any]:
    """Return one study as the page's template takes it."""
    name = clean_terminal(view.place, _NAME)
    section = section_of(study.kind)
    tables: list[Table] = []
    if section.ranks_subjects:
        tables = [_ranking(metric, rows, study.candidate) for metric, rows in study.metrics.items()]
    figures: list[Figure] = []
    notes, settings = list(study.notes), ""
    if study.account:
        try:
            settings = words.settings(msgspec.convert(study.account, _Written).settings)
            account = msgspec.convert(study.account, section.account)
        except msgspec.ValidationError as error:
            notes.append(f"the record's results are damaged, and some are not shown: {error}")
        else:
            tables += section.tables(study, account)
            figures = section.figures(key, account)
    return {
        "key": key,
        "title": f"{clean_terminal(study.candidate, _NAME, keep_end=True)} in {name}",
        "short": clean_terminal(study.name or name, 24),
        "void": clean_html(study.void, _SENTENCE),
        "facts": _facts(view, study),
        "notes": [clean_html(note, _SENTENCE) for note in notes],
        "made": [(name, clean_html(value, _SENTENCE)) for name, value in _setup(study, settings) if value],
        "tables": [table for table in tables if table.rows],
        "figures": figures,
    }


def _facts(view: View, study: StudyRecord) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each fact."""
    facts = []
    for metric, row in study.candidate_rows():
        rows = study.metrics[metric]
        value, _, rank = words.quantity(row)
        percent = words.quantity_percent(rows)
        if value != "-":
            title = f"{metric[:1].upper()}{metric[1:]} of {short(study.candidate)}"
            facts.append((title, value, f"two-sided {percent}"))
        if rank != "-":
            facts.append(("Rank", rank, f"of {len(rows)}, two-sided {percent}"))
    unit = study.unit[:1].upper() + study.unit[1:]
    seconds = plottable(study.seconds)
    facts.append((unit, f"{study.asked} of {study.size}", f"after {seconds:.1f} s" if seconds else ""))
    if view.cost:
        facts.append(("Cost", view.cost.partition(", ")[0], view.cost.partition(", ")[2]))
    return [(clean_html(name, 100), clean_html(value, 200), clean_html(more, 300)) for name, value, more in facts]


def _setup(study: StudyRecord, settings: str) -> list[tuple[str, str]]:
    members = [f"{member.name} {member.checkpoint[:12]}" for member in study.members]
    return [
        ("evaluation", study.name),
        ("test", shlex.quote(study.nodeid)),
        ("models", ", ".join(members)),
        ("loads", ", ".join(f"{name} {n}" for name, n in study.costs.loads.items())),
        ("settings", settings),
    ]


def interval_of(row: Interval | QuantityRecord | None) -> tuple[float, float, float] | None:
    """Return low, estimate and high of an interval, None unless an axis can hold them."""
    low, estimate, high = map(plottable, (row.low, row.estimate, row.high)) if row else (None, None, None)
    return None if low is None or estimate is None or high is None else (low, estimate, high)


def _ranking(metric: str, rows: Sequence[QuantityRecord], candidate: str) -> Table:
    ordered = words.ranked(rows)[:ROWS]
    bounds = [v for row in ordered for n in (row.low, row.estimate, row.high) if (v := plottable(n)) is not None]
    span = span_of(bounds, 0.1) if bounds else (0.0, 1.0)
    lines: list[tuple[str | Markup, ...]] = []
    for rank, row in enumerate(ordered, 1):
        interval = interval_of(row)
        name = f"{rank} {short(row.subject)}" + (" (candidate)" if row.subject == candidate else "")
        lines.append((name, *words.quantity(row), plots.interval_bar(*interval, span) if interval else ""))
    heads = ("subject", f"{metric}, {words.quantity_percent(rows)}", "standard error", "rank", "")
    note = f"Bars from {number(span[0], 1)} to {number(span[1], 1)}." if bounds else ""
    return Table(f"Ranking by {metric}", heads, lines, note)


STUDIES_VERSION = 1  #: Version of the columns; a changed or removed column raises it, a new one does not.
#: The columns, in order.
STUDY_COLUMNS = (
    "schema_version",
    "run",
    "started",
    "evaluation",
    "kind",
    "candidate",
    "metric",
    "subject",
    "node",
    "checkpoint",
    "estimate",
    "low",
    "high",
    "confidence",
    "method",
    "standard_error",
    "rank",
    "rank_best",
    "rank_worst",
    "asked",
    "size",
    "unit",
    "void",
)


def study_rows(record: RunRecord, study: StudyRecord) -> Iterator[dict[str, Any]]:
    """Yield a mapping of `STUDY_COLUMNS` for each subject of each quantity.

    In a network all quantities are the interviewee's: ``subject`` is the interviewee, and ``node`` is the node, empty
    for the whole network.
    """
    head = (STUDIES_VERSION, record.run, record.started, study.name, study.kind, study.candidate)
    tail = (study.asked, study.size, study.unit, study.error)
    by_node = not section_of(study.kind).ranks_subjects
    for metric, rows in study.metrics.items():
        for row in rows:
            subject, node = row.subject, ""
            if by_node:
                subject, node = study.candidate, "" if subject == study.candidate else subject
            rank = (row.rank.mean, row.rank.best, row.rank.worst) if row.rank else (None, None, None)
            interval = (row.estimate, row.low, row.high, row.confidence, row.method, row.error)
            values = (*head, metric, subject, node, study.member(subject).checkpoint, *interval, *rank, *tail)
            yield dict(zip(STUDY_COLUMNS, values, strict=True))
