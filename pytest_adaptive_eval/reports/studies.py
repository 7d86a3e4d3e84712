"""What a page says of a study: its subjects in order, what was found, and what each kind has besides.

A record may be damaged or forged: what is no finite number, and no text where one is expected, counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.reports import plots, words
from pytest_adaptive_eval.reports.curves import real
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup, clean_html
from pytest_adaptive_eval.reports.tables import ROWS, Table, mapping, short
from pytest_adaptive_eval.text import clean_terminal, number

__all__ = ["study_view"]

#: Longest name and sentence.
_NAME, _SENTENCE = 80, 600


def study_view(key: str, study: StudyRecord) -> dict[str, Any]:
    """One study as the page's template takes it.

    Parameters
    ----------
    key : str
        Prefix of the ids in it, of letters and digits.
    study : StudyRecord
    """
    name = clean_terminal(words.study_name(study), _NAME)
    tables: list[Table] = []
    figures: list[Figure] = []
    if study.kind == "network":
        from pytest_adaptive_eval.reports.wiring import network_figures, network_tables

        tables, figures = network_tables(study), network_figures(study)
    else:
        from pytest_adaptive_eval.reports.panel import panel_figures, panel_tables

        tables = [_ranking(metric, rows, study.candidate) for metric, rows in words.quantities(study).items()]
        tables, figures = [*tables, *panel_tables(study)], panel_figures(key, study)
    return {
        "key": key,
        "title": f"{clean_terminal(study.candidate, _NAME, keep_end=True)} in {name}",
        "short": clean_terminal(study.name or name, 24),
        "void": clean_html(study.error, _SENTENCE),
        "facts": _facts(study),
        "notes": [clean_html(note, _SENTENCE) for note in study.notes],
        "made": [(name, clean_html(value, _SENTENCE)) for name, value in _made(study) if value],
        "tables": [table for table in tables if table.rows],
        "figures": figures,
    }


def _facts(study: StudyRecord) -> list[tuple[str, str, str]]:
    """Name, value, and what must be known of it."""
    facts = []
    for metric, rows in words.quantities(study).items():
        own = next((row for row in rows if row.get("subject") == study.candidate), {})
        value, _, rank = words.quantity(own)
        if value != "-":
            what = f"{metric[:1].upper()}{metric[1:]} of {short(study.candidate)}"
            facts.append((what, value, f"two-sided {words.sure(rows)}"))
        if rank != "-":
            facts.append(("Rank", rank, f"of {len(rows)}, two-sided {words.sure(rows)}"))
    unit = study.unit[:1].upper() + study.unit[1:]
    seconds = real(study.seconds)
    facts.append((unit, f"{study.asked} of {study.size}", f"after {seconds:.1f} s" if seconds else ""))
    if cost := words.study_cost(study):
        facts.append(("Cost", cost.partition(", ")[0], cost.partition(", ")[2]))
    return [(clean_html(name, 100), clean_html(value, 200), clean_html(more, 300)) for name, value, more in facts]


def _made(study: StudyRecord) -> list[tuple[str, str]]:
    """What it was held with."""
    settings = mapping(mapping(study.account).get("settings"))
    members = [f"{one.get('name')} {str(one.get('checkpoint') or '')[:12]}" for one in map(mapping, study.members)]
    loads = mapping(mapping(study.costs).get("loads"))
    return [
        ("evaluation", study.name),
        ("test", study.nodeid),
        ("models", ", ".join(members)),
        ("loads", ", ".join(f"{name} {n}" for name, n in loads.items())),
        ("settings", ", ".join(f"{name} {value}" for name, value in settings.items())),
    ]


def _ranking(metric: str, rows: Sequence[Mapping[str, Any]], candidate: str) -> Table:
    """The subjects, the highest first."""
    known = words.ranked(rows)[:ROWS]
    bounds = [v for row in known for n in ("low", "estimate", "high") if (v := real(row.get(n))) is not None]
    span = plots.span_of(bounds, 0.1) if bounds else (0.0, 1.0)
    out = []
    for place, row in enumerate(known, 1):
        low, estimate, high = (real(row.get(name)) for name in ("low", "estimate", "high"))
        bar: str | Markup = ""
        if low is not None and estimate is not None and high is not None:
            bar = plots.interval_bar(low, estimate, high, span)
        name = f"{place} {short(row.get('subject'))}" + (" (candidate)" if row.get("subject") == candidate else "")
        out.append((name, *words.quantity(row), bar))
    title = f"Ranking by {metric}"
    heads = ("subject", f"{metric}, {words.sure(rows)}", "standard error", "rank", "")
    return Table(title, heads, out, f"Bars from {number(span[0], 1)} to {number(span[1], 1)}." if bounds else "")
