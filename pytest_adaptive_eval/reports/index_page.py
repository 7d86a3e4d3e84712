"""A page over many runs: a list with a filter, and a comparison of two runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag, unbroken
from pytest_adaptive_eval.reports.page import asset, page_head
from pytest_adaptive_eval.reports.view import views
from pytest_adaptive_eval.text import counted

#: Most runs of the list, scores that a comparison has in all, and characters of a name and a text.
RUNS, SCORES, NAME, TEXT = 500, 40_000, 80, 200
_CLASSES = {Outcome.PASS: "pass", Outcome.FAIL: "fail", Outcome.INCONCLUSIVE: "unsure", Outcome.ERROR: "fail"}


def write_index(path: Path, runs: Sequence[RunRecord], links: Mapping[str, str]) -> None:
    """Write the page over many runs, see `index_page`."""
    write_whole(path, [index_page(runs, links).encode("utf-8")], "the page of the runs")


def index_page(runs: Sequence[RunRecord], links: Mapping[str, str]) -> str:
    """Return a page over many runs, oldest first, with the administrations of runs whose items are to be compared."""
    style = asset("page.css") + asset("index.css")
    script = asset("index.js")
    newest = list(reversed(runs))[:RUNS]
    data = json.dumps(_data(newest)).replace("<", "\\u003c")
    rows = []
    for n, record in enumerate(newest):
        for row in _rows(n, record, links.get(record.run, "")):
            rows.append(row)
    heads = ("", "started", "evaluation", "subject", "result", "asked", "gates", "page")
    listed = tag(
        "section",
        tag("h2", counted(len(newest), "run")),
        tag("p", "Filter the list, or choose two runs to compare them.", class_="soft"),
        Markup(
            '<p><input id="filter" type="search" placeholder="name, subject or outcome" aria-label="filter"> '
            '<span id="shown" class="soft"></span></p>'
        ),
        _table(heads, rows, "runs"),
    )
    compared = Markup('<section id="comparison" hidden><h2>Comparison</h2><div id="compared"></div></section>')
    head = page_head("Runs", style, script)
    top = tag("header", tag("p", "adaptive-eval runs", class_="brand"), class_="top")
    main = tag("main", listed, compared, id="main")
    scripts = f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n'
    return f"{head}{top}\n{main}\n{scripts}</body>\n</html>\n"


def _table(heads: Sequence[str], rows: Sequence[Markup], name: str) -> Markup:
    # an empty element would close itself, which HTML does not know
    head = tag("tr", *(tag("th", text or "\u00a0") for text in heads))
    return tag("table", tag("thead", head), tag("tbody", *(rows or [tag("tr", tag("td", "none"))])), id=name)


def _cell(text: object, limit: int = NAME) -> Markup:
    return tag("td", unbroken(clean_html(text, limit)) or "\u00a0")


def _rows(number: int, record: RunRecord, link: str) -> list[Markup]:
    """Return the rows of a run, one for each evaluation; each has the box to choose it, since a filter hides rows."""
    box = Markup(
        f'<input type="checkbox" data-run="{number}" aria-label="compare run {escape(clean_html(record.run))}">'
    )
    page = ""
    if link:
        page = tag("a", "page", href=link)
    rows = []
    for row, view in enumerate(views(record)):
        outcomes = [gate.outcome for gate in view.gates]
        marks = []
        for outcome in Outcome:
            if outcome in outcomes:
                text = f"{outcomes.count(outcome)}\u00a0{outcome.value} "
                marks.append(tag("b", text, class_=_CLASSES[outcome]))
        if marks:
            verdicts = tag("td", *marks)
        else:
            verdicts = _cell("")
        result = view.result
        if view.record.void:
            result = f"void: {view.record.void}"
        cells = [_cell(record.started[:16].replace("T", "\u00a0")), _cell(view.record.name), _cell(view.subject)]
        cells += [_cell(result, TEXT), _cell(view.asked)]
        linked = page if row == 0 else ""
        rows.append(tag("tr", tag("td", box), *cells, verdicts, tag("td", linked or "\u00a0")))
    return rows


def _data(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """Return what the comparison of two runs needs, with the scores of the newest runs."""
    remaining = SCORES
    out = []
    for record in runs:
        evaluations = {}
        for view in views(record):
            asked = view.record.administrations
            scores = {}
            for a in asked:
                if a.score is not None:
                    scores[clean_html(a.item, NAME)] = a.score
            remaining -= len(scores)
            shown_scores = scores if remaining > 0 else {}
            evaluations[clean_html(view.record.name, NAME)] = {"result": view.result, "scores": shown_scores}
        gates = {}
        for gate in record.gates:
            gates[clean_html(gate.name, NAME)] = gate.outcome.value
        out.append(
            {
                "run": record.run,
                "started": record.started[:19].replace("T", " "),
                "evaluations": evaluations,
                "gates": gates,
            }
        )
    return out
