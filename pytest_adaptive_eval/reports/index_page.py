"""The page of a history: each evaluation over its runs, the newest runs, and a comparison of two."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.figures import sample
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag, unbroken
from pytest_adaptive_eval.reports.page import GLYPHS, asset, page_head
from pytest_adaptive_eval.reports.trends import Trend, trend_caption, trend_plot, trends
from pytest_adaptive_eval.reports.view import views
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.drift import Alarm

#: Scores that a comparison has in all, and characters of a name and a text.
SCORES, NAME, TEXT = 40_000, 80, 200
_CLASSES = {Outcome.PASS: "pass", Outcome.FAIL: "fail", Outcome.INCONCLUSIVE: "unsure", Outcome.ERROR: "fail"}
_VERDICTS = 20  #: Newest runs of an evaluation whose verdicts are listed.
_TRENDS = 60  #: Most evaluations that are drawn.
_MODELS = 500  #: Most models of the filter.


def write_index(
    path: Path,
    runs: Sequence[RunRecord],
    links: Mapping[str, str],
    *,
    newest: Sequence[RunRecord] | None = None,
    alarms: Sequence[Alarm] = (),
    lasting: Sequence[Alarm] = (),
) -> None:
    """Write the page of a history, see `index_page`."""
    page = index_page(runs, links, newest=newest, alarms=alarms, lasting=lasting)
    write_whole(path, [page.encode("utf-8")], "the page of the runs")


def index_page(
    runs: Sequence[RunRecord],
    links: Mapping[str, str],
    *,
    newest: Sequence[RunRecord] | None = None,
    alarms: Sequence[Alarm] = (),
    lasting: Sequence[Alarm] = (),
) -> str:
    """Return the page of a history.

    Args:
        runs: All runs, oldest first; administrations are not needed.
        links: Address of the page of a run, by its id.
        newest: Runs that are listed and compared, oldest first, with the administrations that are to be compared; by
            default all.
        alarms: All alarms of the runs.
        lasting: Alarms that still last.
    """
    listed = list(reversed(runs if newest is None else newest))
    trends_of_runs = trends(runs)
    names = {record.run: [view.subject for view in views(record)] for record in listed}
    subjects = [point.subject for trend in trends_of_runs for point in trend.points]
    for models_of_run in names.values():
        subjects += models_of_run
    models = {name: n for n, name in enumerate(dict.fromkeys(filter(None, reversed(subjects))))}
    rows = []
    for n, record in enumerate(listed):
        rows += _rows(n, record, links.get(record.run, ""), models)
    style = asset("page.css") + asset("index.css")
    script = asset("page.js") + asset("index.js")
    data = json.dumps(_data(listed)).replace("<", "\\u003c")
    body = [
        _top(),
        tag(
            "main",
            _state(runs, lasting),
            *_trends(trends_of_runs, alarms, lasting, models),
            _list(rows, runs, listed),
            id="main",
        ),
        Markup(f'<script type="application/json" id="data">{data}</script>'),
        Markup(f"<script>{script}</script>"),
    ]
    return page_head("Runs", style, script) + "\n".join(body) + "\n</body>\n</html>\n"


def _top() -> Markup:
    theme = Markup('<button id="theme" type="button" hidden>Theme</button>')
    return tag("header", tag("p", "adaptive-eval history", class_="brand"), theme, class_="top")


def _state(runs: Sequence[RunRecord], lasting: Sequence[Alarm]) -> Markup:
    """Return the head: whether an alarm lasts, and the runs of the page."""
    title = "No alarm lasts"
    style_class = "pass"
    if lasting:
        names = ", ".join(dict.fromkeys(alarm.series.evaluation for alarm in lasting))
        title = f"{counted(len(lasting), 'alarm')} of a drop: {clean_html(names, TEXT)}"
        style_class = "fail"
    parts = [tag("h1", title, id="verdict")]
    if runs:
        first, last = runs[0], runs[-1]
        parts.append(tag("p", f"{counted(len(runs), 'run')} from {first.started[:10]} to {last.started[:10]}."))
    else:
        parts.append(tag("p", "The history has no run yet."))
    parts += [_alarm(alarm) for alarm in lasting]
    if lasting:
        parts.append(
            Markup('<p class="next"><b>Next:</b> see since when, and accept a level that is meant to stay</p>')
        )
        parts.append(Markup('<pre class="command"><code>adaptive-eval history --drift</code></pre>'))
    return tag("section", *parts, class_=f"verdict {style_class}", aria_labelledby="verdict")


def _alarm(alarm: Alarm) -> Markup:
    return tag("p", unbroken(clean_html(alarm.sentence, 600)), class_="alarm-text")


def _filter(models: Mapping[str, int]) -> Markup:
    options = [tag("option", "all models", value="")]
    for name, n in list(models.items())[:_MODELS]:
        options.append(tag("option", clean_html(name, NAME), value=n))
    return tag(
        "div",
        Markup(
            '<input id="filter" type="search" placeholder="name, subject or outcome" aria-label="Filter the runs" '
            'autocomplete="off" spellcheck="false">'
        ),
        tag("select", *options, id="model", aria_label="Model"),
        Markup('<p id="shown" role="status" aria-live="polite"></p>'),
        class_="find",
        role="search",
        aria_label="Runs",
    )


def _trends(
    trends: Sequence[Trend], alarms: Sequence[Alarm], lasting: Sequence[Alarm], models: Mapping[str, int]
) -> list[Markup]:
    """Return the filter, the legend, and a panel for each evaluation."""
    panels = [_panel(f"h{n}", trend, alarms, lasting, models) for n, trend in enumerate(trends[:_TRENDS])]
    if not panels:
        return [_filter(models)]
    names = {"point": "a run", "range": "its interval", "required": "required", "alarm": "raised an alarm"}
    keys = [tag("li", sample(name), meaning) for name, meaning in names.items()]
    omitted = []
    if len(trends) > _TRENDS:
        omitted = [tag("p", f"{counted(len(trends) - _TRENDS, 'more evaluation')} of older runs are not drawn.")]
    trends_section = tag(
        "section",
        tag("h2", "Evaluations", id="history-h"),
        tag("ul", *keys, class_="legend"),
        tag("div", *panels, class_="trends"),
        *omitted,
        aria_labelledby="history-h",
    )
    return [_filter(models), trends_section]


def _panel(
    key: str, trend: Trend, alarms: Sequence[Alarm], lasting: Sequence[Alarm], models: Mapping[str, int]
) -> Markup:
    raised = [alarm for alarm in alarms if alarm.series.evaluation in trend.names]
    alarmed = {alarm.series.points[alarm.at].run for alarm in raised}
    last = trend.points[-1]
    head = tag(
        "figcaption",
        tag("h3", clean_html(trend.evaluation or "unnamed", NAME)),
        tag("p", tag("b", clean_html(last.sentence, TEXT))),
        tag("p", trend_caption(trend)),
    )
    marks = []
    for point in trend.points[-_VERDICTS:]:
        for outcome in point.outcomes:
            title = clean_html(point.sentence, TEXT)
            number = models.get(point.subject)
            marks.append(tag("li", GLYPHS[outcome], class_=_CLASSES[outcome], title=title, data_m=number))
    verdicts = []
    if marks:
        label = f"Verdicts of the last {counted(min(len(trend.points), _VERDICTS), 'run')}, the newest at the right"
        verdicts = [tag("ol", *marks, class_="verdicts", aria_label=label)]
    sentences = [_alarm(alarm) for alarm in raised if alarm in lasting]
    ended = len(raised) - len(sentences)
    if ended:
        sentences.append(tag("p", f"{counted(ended, 'alarm')} ended", class_="soft small"))
    return tag("figure", head, trend_plot(trend, alarmed, models, key), *verdicts, *sentences)


def _list(rows: Sequence[Markup], runs: Sequence[RunRecord], listed: Sequence[RunRecord]) -> Markup:
    """Return the newest runs as a table, and the place of a comparison."""
    heads = ("", "started", "evaluation", "subject", "result", "asked", "gates", "page")
    text = "Choose two runs to compare them."
    if len(listed) < len(runs):
        text += " Older runs: adaptive-eval history."
    compared = Markup('<div id="comparison" hidden><h2>Comparison</h2><div id="compared"></div></div>')
    title = f"Newest {counted(len(listed), 'run')}"
    return tag("section", tag("h2", title), tag("p", text, class_="soft"), compared, _table(heads, rows, "runs"))


def _table(heads: Sequence[str], rows: Sequence[Markup], name: str) -> Markup:
    # an empty element would close itself, which HTML does not know
    head = tag("tr", *(tag("th", text or "\u00a0") for text in heads))
    return tag("table", tag("thead", head), tag("tbody", *(rows or [tag("tr", tag("td", "none"))])), id=name)


def _cell(text: object, limit: int = NAME) -> Markup:
    return tag("td", unbroken(clean_html(text, limit)) or "\u00a0")


def _rows(number: int, record: RunRecord, link: str, models: Mapping[str, int]) -> list[Markup]:
    """Return the rows of a run, one for each evaluation; each has the box to choose it, since a filter hides rows."""
    box = Markup(
        f'<input type="checkbox" data-run="{number}" aria-label="compare run {escape(clean_html(record.run))}">'
    )
    page = ""
    if link:
        page = tag("a", "page", href=link)
    rows = []
    for row, view in enumerate(views(record)):
        marks = []
        for outcome, text in words.outcome_counts([gate.outcome for gate in view.gates]):
            marks.append(tag("b", f"{text} ", class_=_CLASSES[outcome]))
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
        last = tag("td", linked or "\u00a0")
        rows.append(tag("tr", tag("td", box), *cells, verdicts, last, data_m=models.get(view.subject)))
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
