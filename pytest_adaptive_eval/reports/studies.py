"""The page's view of a study: its subjects in order, its results, and the section of its kind.

A record may be damaged or forged: values that are no finite numbers, and no texts where texts are expected, count as
absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.axes import span_of
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.sections import ROWS, Table, section_of, short
from pytest_adaptive_eval.reports.values import as_mapping, plottable
from pytest_adaptive_eval.text import clean_terminal, number

#: Longest name and sentence.
_NAME, _SENTENCE = 80, 600


def study_view(key: str, study: StudyRecord) -> dict[str, Any]:
    """Return one study as the page's template takes it.

    Args:
        key: Prefix of the ids in it, of letters and digits.
    """
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
    """Return name and value of each setting."""
    settings = as_mapping(as_mapping(study.account).get("settings"))
    members = [f"{m.get('name')} {str(m.get('checkpoint') or '')[:12]}" for m in map(as_mapping, study.members)]
    loads = as_mapping(as_mapping(study.costs).get("loads"))
    return [
        ("evaluation", study.name),
        ("test", study.nodeid),
        ("models", ", ".join(members)),
        ("loads", ", ".join(f"{name} {n}" for name, n in loads.items())),
        ("settings", words.settings(settings)),
    ]


def interval_of(row: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """Return low, estimate and high of an interval, None unless all are finite numbers."""
    low, estimate, high = (plottable(row.get(name)) for name in ("low", "estimate", "high"))
    return None if low is None or estimate is None or high is None else (low, estimate, high)


def _ranking(metric: str, rows: Sequence[Mapping[str, Any]], candidate: str) -> Table:
    """Return the table of subjects, the highest first."""
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
