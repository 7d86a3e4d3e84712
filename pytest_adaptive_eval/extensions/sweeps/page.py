"""The page of a sweep: the matrix of verdicts, estimates along training steps, best checkpoints and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from pytest_adaptive_eval.extensions.sweeps.cells import Cell, CellEnd
from pytest_adaptive_eval.extensions.sweeps.matrix import GLYPHS, Curve, Entry, Matrix
from pytest_adaptive_eval.gates.condition import registered_metric
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.pairs import CONFIDENCE, Pair
from pytest_adaptive_eval.reports.markup import Markup, clean_html, tag
from pytest_adaptive_eval.reports.page import asset, page_head
from pytest_adaptive_eval.reports.plots import Frame, path, share_label, signed_label, span_of, ticks_in, whisker
from pytest_adaptive_eval.text import counted, number

#: Most pictures of estimates along training steps, and most lines of one that have intervals.
PANELS = 48
PAIRS = 300  #: Most rows of the table of pairs.
_WITH_INTERVALS = 3
_SIZE, _MARGINS = (300.0, 180.0), (40.0, 16.0, 12.0, 42.0)
_WORDS = {
    "PASS": "passed", "FAIL": "failed", "INCONCLUSIVE": "undecided", "ERROR": "without a verdict",
    "none": "without a gate", "waiting": "not ended",
}  # fmt: skip
_CLASSES = {"PASS": "pass", "FAIL": "fail", "INCONCLUSIVE": "inconclusive", "ERROR": "error", "waiting": "later"}
_STYLE = """
.matrix { overflow: auto; width: fit-content; max-width: 100%; max-height: 85vh; }
.matrix { margin-top: 1rem; border: 1px solid var(--rule); border-radius: 6px; }
.matrix table { margin: 0; width: auto; font-size: .84rem; border-collapse: separate; border-spacing: 0; }
.matrix td { padding: .2rem .55rem; text-align: right; white-space: nowrap; background: var(--tint, transparent); }
.matrix td b { color: var(--tone, var(--soft)); margin-right: .3em; }
.matrix td.error b { background: var(--fail); color: var(--page); padding: 0 .35em; border-radius: 3px; }
.matrix th { padding: .25rem .7rem; white-space: nowrap; background: var(--page); }
.matrix thead th { position: sticky; top: 0; z-index: 1; vertical-align: bottom; text-align: right; }
.matrix thead.tall th + th { writing-mode: vertical-rl; text-align: left; max-height: 12rem; padding: .6rem .3rem; }
.matrix tbody th, .matrix thead th:first-child { position: sticky; left: 0; text-align: left; }
.matrix thead th:first-child { z-index: 2; }
.cost { display: flex; flex-wrap: wrap; gap: .6rem 2.4rem; margin-top: 1rem; }
.cost dt { font-size: .84rem; color: var(--soft); }
.cost dd { font-size: 1.2rem; font-weight: 600; }
.legend b { color: var(--tone, var(--soft)); }
"""


def write_sweep_page(
    path: Path,
    title: str,
    cells: Sequence[Cell],
    ends: Mapping[str, CellEnd],
    gpus: int = 0,
    pairs: Sequence[Pair] = (),
) -> None:
    """Write the page, replacing an earlier one in one step; see `sweep_page`.

    Raises:
        UsageError: The file cannot be written.
    """
    page = sweep_page(title, cells, ends, gpus, pairs, links=True)
    write_whole(path, [page.encode("utf-8")], "the page of the sweep")


def sweep_page(
    title: str,
    cells: Sequence[Cell],
    ends: Mapping[str, CellEnd],
    gpus: int = 0,
    pairs: Sequence[Pair] = (),
    *,
    links: bool = False,
) -> str:
    """Return the page of a sweep, which needs no network and no script.

    Args:
        pairs: All pairs of checkpoints, see `records.pairs`.
        links: Link each cell's output, by its path from the folder of the sweep.
    """
    matrix = Matrix(cells, ends, gpus)
    style = asset("page.css") + _STYLE
    head = page_head(escape(clean_html(title, 200)), style, "")
    sections = [_verdict(title, matrix), _matrix(matrix, links=links), _best(matrix), _pairs(pairs), _curves(matrix)]
    sections.append(_failures(matrix, cells))
    top = tag("header", tag("p", "adaptive-eval sweep", class_="brand"), class_="top")
    main = tag("main", *filter(None, sections), id="main")
    return f"{head}{top}\n{main}\n</body>\n</html>\n"


def _verdict(title: str, matrix: Matrix) -> Markup:
    states = matrix.states
    total = sum(states.values())
    bad = states["FAIL"] + states["ERROR"]
    look = "fail" if bad else "open" if states["waiting"] or states["INCONCLUSIVE"] else "pass"
    grid = (
        f"{counted(len(matrix.checkpoints), 'checkpoint')} on {counted(len(matrix.evaluations), 'file')} of evaluations"
    )
    counts = [tag("li", tag("b", str(states[state])), words) for state, words in _WORDS.items() if states[state]]
    head = tag(
        "div",
        tag("div", tag("h1", title), tag("p", f"{grid}, {counted(total, 'cell')}", class_="who")),
        tag("ul", *counts, class_="counts"),
        class_="head",
    )
    return tag("section", head, _cost(matrix), class_=f"verdict {look}")


def _cost(matrix: Matrix) -> Markup:
    cost = matrix.cost()
    time = f"{cost.seconds:.1f} s" if cost.seconds < 120 else f"{cost.seconds / 60:.0f} min"
    time = time if cost.seconds < 7200 else f"{cost.seconds / 3600:.1f} h"
    facts = [("questions", f"{cost.questions:,}"), ("time of cells", time)]
    facts += [("calls", f"{cost.calls:,.0f}")] if cost.calls else []
    facts += [("tokens", f"{cost.tokens:,.0f}")] if cost.tokens else []
    facts += [("FLOPs", f"{cost.flops:.2g}")] if cost.flops else []
    facts += [("GPU hours", f"{cost.gpu_seconds / 3600:.3g}")] if cost.gpu_seconds else []
    facts += [("processes that died", str(cost.lost))] if cost.lost else []
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in facts), class_="cost")


def _section(title: str, caption: str, *parts: Markup) -> Markup:
    return tag("section", tag("h2", title), tag("p", caption, class_="soft small"), *parts)


def _matrix(matrix: Matrix, *, links: bool) -> Markup:
    tall = len(matrix.evaluations) > 8
    heads = [tag("th", "checkpoint", scope="col")]
    heads += [tag("th", clean_html(evaluation.name, 60), scope="col") for evaluation in matrix.evaluations]
    rows = [
        tag(
            "tr",
            tag("th", clean_html(checkpoint.name, 60), scope="row"),
            *(_cell(matrix.entry(checkpoint, evaluation), links=links) for evaluation in matrix.evaluations),
        )
        for checkpoint in matrix.checkpoints
    ]
    table = tag("table", tag("thead", tag("tr", *heads), class_="tall" if tall else None), tag("tbody", *rows))
    states = {matrix.entry(c, e).state for c in matrix.checkpoints for e in matrix.evaluations}
    legend = [
        tag("li", tag("b", GLYPHS[state]), f" {words}", class_=_CLASSES.get(state))
        for state, words in _WORDS.items()
        if state in states
    ]
    caption = (
        "The worst verdict of each cell's gates, and the estimate of its first evaluation: ability in logits on a "
        "calibrated bank, else accuracy; the mean where there are several seeds."
    )
    shown = tag("div", table, class_="matrix", tabindex="0")
    return _section("Checkpoints and evaluations", caption, tag("ul", *legend, class_="legend"), shown)


def _cell(entry: Entry, *, links: bool) -> Markup:
    glyph, facts = tag("b", GLYPHS[entry.state]), clean_html(entry.facts, 240) or None
    inner: Markup | str = (text := entry.text.replace("-", "−"))
    if links and text and len(entry.cells) == 1:
        inner = tag("a", text, href=f"cells/{entry.cells[0][0].key}/output.txt")
    return tag("td", glyph, inner, class_=_CLASSES.get(entry.state), title=facts)


def _best(matrix: Matrix) -> Markup | None:
    best = matrix.best()
    if not best:
        return None
    rows = [
        tag(
            "tr",
            tag("th", clean_html(entry.evaluation, 80), scope="row"),
            tag("td", tag("b", clean_html(entry.checkpoint, 80))),
            tag("td", entry.reason),
        )
        for entry in best
    ]
    heads = [tag("th", name, scope="col") for name in ("evaluation", "best checkpoint", "because")]
    caption = (
        "The best of many looks better than it is: its estimate is the highest partly by luck of the draw. Gate it "
        "again with another seed before promoting it."
    )
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return _section("Best checkpoint", caption, table)


def _pairs(pairs: Sequence[Pair]) -> Markup | None:
    """Return the table of all pairs of checkpoints; those that do not compare are left out."""
    known = [(pair, pair.interval) for pair in pairs if pair.interval is not None]
    if not known:
        return None
    heads = [tag("th", name, scope="col") for name in ("evaluation", "better", "than", "accuracy", "interval", "by")]
    rows = []
    for pair, interval in known[:PAIRS]:
        better, worse = (clean_html(name, 80) for name in pair.subjects)
        shift = f"{'+' if interval.estimate >= 0 else ''}{number(interval.estimate)}".replace("-", "−")
        bounds = interval.bounds_in_words().replace("-", "−")
        by = f"the same {counted(pair.shared, 'item')}" if pair.shared else "each its own draws"
        cells = [clean_html(pair.evaluation, 80), better, worse, tag("b", shift) if pair.decided else shift, bounds, by]
        rows.append(tag("tr", *(tag("td", cell) for cell in cells)))
    caption = (
        f"Differences of accuracy. All {counted(len(known), 'interval')} hold together with {100 * CONFIDENCE:g} %. "
        "A bold difference has an interval without 0."
    )
    omitted = len(known) - len(rows)
    caption += f" {counted(omitted, 'further pair')}: adaptive-eval history --compare record.json" * (omitted > 0)
    table = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows))
    return _section("All pairs of checkpoints", caption, tag("div", table, class_="matrix", tabindex="0"))


def _curves(matrix: Matrix) -> Markup | None:
    panels: dict[tuple[str, str], list[Curve]] = {}
    spans: dict[str, tuple[float, float]] = {}
    for curve in matrix.curves():
        panels.setdefault((curve.evaluation, curve.measure), []).append(curve)
        values = [bound for point in curve.points for bound in (point.low, point.high)]
        low, high = spans.get(curve.measure, (min(values), max(values)))
        spans[curve.measure] = min(low, *values), max(high, *values)
    if not panels:
        return None
    drawn = [
        _panel(curves, span_of(spans[curves[0].measure], 0.1), f"c{n}")
        for n, curves in enumerate(list(panels.values())[:PANELS])
    ]
    caption = "Each interval is two-sided at 90 % for its own checkpoint; pictures of one measure share their axis. "
    caption += "Each training run has a line, which shows its name under the pointer."
    omitted = len(panels) - len(drawn)
    caption += f" {counted(omitted, 'further picture')} left out." if omitted > 0 else ""
    return _section("Along training steps", caption, tag("div", *drawn, class_="panels"))


def _panel(curves: Sequence[Curve], span: tuple[float, float], key: str) -> Markup:
    """Return the picture of one evaluation, with intervals if it has few lines."""
    steps = [point.step for curve in curves for point in curve.points]
    margin = 0.04 * (max(steps) - min(steps))
    frame = Frame((min(steps) - margin, max(steps) + margin), span, _SIZE, _MARGINS)
    measure, evaluation = curves[0].measure, clean_html(curves[0].evaluation, 80)
    metric = registered_metric(measure)
    parts = frame.grid(ticks_in(span, 5), share_label if metric is not None and metric.is_share else signed_label)
    for curve in curves:
        positions = [(frame.x(point.step), frame.y(point.estimate)) for point in curve.points]
        drawn = [tag("title", clean_html(curve.training_run, 80)), path(positions, "line faint")]
        for point, (x, y) in zip(curve.points, positions, strict=True):
            if len(curves) <= _WITH_INTERVALS:
                drawn.append(whisker(x, frame.y(point.low), frame.y(point.high), cap=0.0))
            drawn.append(tag("circle", class_="point", cx=x, cy=y, r=2.5))
        parts.append(tag("g", *drawn))
    ticks = [tick for tick in ticks_in((min(steps), max(steps)), 5) if tick == round(tick)]
    parts += frame.below([(frame.x(tick), f"{tick:g}" if tick < 1e6 else f"{tick:.3g}") for tick in ticks], "step")
    last = curves[-1].points[-1]
    runs = clean_html(curves[0].training_run, 60) if len(curves) == 1 else counted(len(curves), "training run")
    about = f"{runs}; {last.checkpoint} is at {last.estimate:.2f}"
    picture = frame.picture(key, f"{measure} of {evaluation}", clean_html(about, 200), parts)
    return tag("figure", tag("h3", evaluation), tag("p", f"{measure}, {runs}", class_="soft small"), picture)


def _failures(matrix: Matrix, cells: Sequence[Cell]) -> Markup | None:
    failed = [(cell, end) for cell in cells if (end := matrix.ends.get(cell.key)) and not end.died and not end.finished]
    if not failed:
        return None
    rows = [
        tag("li", tag("b", clean_html(cell.name, 160)), f": {clean_html(end.reason, 400)}")
        for cell, end in failed[:100]
    ]
    title = f"{counted(len(failed), 'cell')} without a verdict"
    return tag("section", tag("h2", title), tag("ul", *rows, class_="notes"))
