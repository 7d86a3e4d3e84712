"""The page's view of a study: its subjects in order, its results, and the section of its kind.

A record may be damaged or forged: values that are no finite numbers, and no texts where texts are expected, count as
absent.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.plots import span_of
from pytest_adaptive_eval.reports.words import as_count, as_list, as_mapping, as_number, as_text, plottable
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
        tables: Returns the tables after the rankings of a study.
        figures: Returns the figures of a study; takes a prefix of their ids, of letters and digits, and the study.
        ranks_subjects: Whether a quantity has a row per subject, which the page ranks; otherwise its rows are the
            candidate's whole result and the result of each node.
    """

    name: str
    tables: Callable[[StudyRecord], list[Table]] = lambda _: []
    figures: Callable[[str, StudyRecord], list[Figure]] = lambda _key, _study: []
    ranks_subjects: bool = True


def short(name: Any, limit: int = 40, *, keep_end: bool = True) -> str:
    """Return a name or a text for a cell or a label, shortened in its middle or at its end."""
    return clean_terminal(str(name or "unnamed"), limit, keep_end=keep_end)


@cache
def section_of(kind: str) -> StudySection:
    """Return the section of a study kind: the registered one, else one with rankings alone."""
    return registered(None, "adaptive_eval.report_sections", StudySection).get(kind, StudySection(kind))


_NAME, _SENTENCE = 80, 600  #: Longest name and sentence.


def study_view(key: str, study: StudyRecord) -> dict[str, Any]:
    """Return one study as the page's template takes it."""
    name = clean_terminal(words.study_name(study), _NAME)
    section = section_of(study.kind)
    tables: list[Table] = []
    if section.ranks_subjects:
        tables = [_ranking(metric, rows, study.candidate) for metric, rows in words.quantities(study).items()]
    tables += section.tables(study)
    return {
        "key": key,
        "title": f"{clean_terminal(study.candidate, _NAME, keep_end=True)} in {name}",
        "short": clean_terminal(study.name or name, 24),
        "void": clean_html(study.error, _SENTENCE),
        "facts": _facts(study),
        "notes": [clean_html(note, _SENTENCE) for note in study.notes],
        "made": [(name, clean_html(value, _SENTENCE)) for name, value in _setup(study) if value],
        "tables": [table for table in tables if table.rows],
        "figures": section.figures(key, study),
    }


def _facts(study: StudyRecord) -> list[tuple[str, str, str]]:
    """Return name, value and remark of each fact."""
    facts = []
    for metric, rows in words.quantities(study).items():
        candidate_row = next((row for row in rows if row.get("subject") == study.candidate), {})
        value, _, rank = words.quantity(candidate_row)
        percent = words.quantity_percent(rows)
        if value != "-":
            title = f"{metric[:1].upper()}{metric[1:]} of {short(study.candidate)}"
            facts.append((title, value, f"two-sided {percent}"))
        if rank != "-":
            facts.append(("Rank", rank, f"of {len(rows)}, two-sided {percent}"))
    unit = study.unit[:1].upper() + study.unit[1:]
    seconds = plottable(study.seconds)
    facts.append((unit, f"{study.asked} of {study.size}", f"after {seconds:.1f} s" if seconds else ""))
    if cost := words.study_cost(study):
        facts.append(("Cost", cost.partition(", ")[0], cost.partition(", ")[2]))
    return [(clean_html(name, 100), clean_html(value, 200), clean_html(more, 300)) for name, value, more in facts]


def _setup(study: StudyRecord) -> list[tuple[str, str]]:
    settings = as_mapping(as_mapping(study.account).get("settings"))
    members = [f"{m.get('name')} {str(m.get('checkpoint') or '')[:12]}" for m in map(as_mapping, study.members)]
    loads = as_mapping(as_mapping(study.costs).get("loads"))
    return [
        ("evaluation", study.name),
        ("test", shlex.quote(study.nodeid)),
        ("models", ", ".join(members)),
        ("loads", ", ".join(f"{name} {n}" for name, n in loads.items())),
        ("settings", words.settings(settings)),
    ]


def interval_of(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Return low, estimate and high of an interval, None unless all are finite numbers."""
    low, estimate, high = (plottable(row.get(name)) for name in ("low", "estimate", "high"))
    return None if low is None or estimate is None or high is None else (low, estimate, high)


def _ranking(metric: str, rows: Sequence[Mapping[str, Any]], candidate: str) -> Table:
    ordered = words.ranked(rows)[:ROWS]
    bounds = [v for row in ordered for n in ("low", "estimate", "high") if (v := plottable(row.get(n))) is not None]
    span = span_of(bounds, 0.1) if bounds else (0.0, 1.0)
    lines: list[tuple[str | Markup, ...]] = []
    for rank, row in enumerate(ordered, 1):
        interval = interval_of(row)
        name = f"{rank} {short(row.get('subject'))}" + (" (candidate)" if row.get("subject") == candidate else "")
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
    head = (STUDIES_VERSION, *map(as_text, (record.run, record.started, study.name, study.kind, study.candidate)))
    tail = (as_count(study.asked), as_count(study.size), as_text(study.unit), as_text(study.error))
    by_node = not section_of(study.kind).ranks_subjects
    for metric, rows in words.quantities(study).items():
        for row in rows:
            subject, node = row.get("subject"), ""
            if by_node:
                subject, node = study.candidate, "" if subject == study.candidate else as_text(subject)
            rank = as_mapping(row.get("rank"))
            values = (
                *head,
                as_text(metric),
                as_text(subject),
                node,
                as_text(member(study, subject).get("checkpoint")),
                *(as_number(row.get(name)) for name in ("estimate", "low", "high", "confidence")),
                as_text(row.get("method")),
                as_number(row.get("error")),
                as_number(rank.get("mean")),
                as_count(rank.get("best")),
                as_count(rank.get("worst")),
                *tail,
            )
            yield dict(zip(STUDY_COLUMNS, values, strict=True))


def member(study: StudyRecord, name: Any) -> Mapping[str, Any]:
    """Return the recorded identity of a subject of a study; its name alone if there is none."""
    identities = (identity for identity in map(as_mapping, as_list(study.members)) if identity.get("name") == name)
    return next(identities, {"name": name})
