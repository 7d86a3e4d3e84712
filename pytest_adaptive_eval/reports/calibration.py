"""The reports of ``calibrate`` and ``backtest``: lines for a terminal, and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.reports.markup import Markup, clean_html, svg, tag
from pytest_adaptive_eval.reports.plots import Frame
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import clean_terminal, counted, number, wrap

_RELIABLE = 0.5  #: Share of an ability component's variance that must be true variance between subjects.
_COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#4a4a4a", "#00a6a6", "#a0522d")
#: Rules of a picture that stands alone.
_STYLE = Markup(
    "text{font:12px sans-serif}.head{font-size:14px}.end{text-anchor:end}.mid{text-anchor:middle}.grid{stroke:#ddd}"
)
_WIDTH, _BOTTOM = 680.0, 300.0  #: Width of that picture, and the bottom of its frame.


def _wrapped(lines: Iterable[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(clean_terminal(line), width, "  ", first="")]


def calibration_lines(report: Mapping[str, Any], tables: int, width: int = 80) -> list[str]:
    """Return the report of a calibration."""
    details, loss, slopes = report["details"], report["log_loss"], report["slopes"]
    n = report["items"]
    end = "given parameters"
    if "iterations" in details:
        end = "converged" if details["converged"] else "NOT converged"
        end = "interrupted" if details["interrupted"] else end
        end += f" after {counted(details['iterations'], 'iteration')}"
    lines = [
        f"{counted(report['subjects'], 'subject')}, {counted(n, 'item')}, {100 * report['observed']:.3g} % of the "
        "scores are there",
        f"model {details['model']}, {counted(details.get('dimensions', 1), 'dimension')}, engine {details['engine']}: "
        + end,
    ]
    if loss:
        lines.append(
            f"held-out log-loss {number(loss['bank'], 4)} nats a response (a Rasch fit {number(loss['rasch'], 4)}, "
            f"each subject's own mean {number(loss['mean accuracy'], 4)})"
        )
    lines.append(
        f"slopes: {100 * slopes['negative']:.3g} % negative, {100 * slopes['tiny']:.3g} % tiny; "
        f"{counted(report['extreme'], 'item')} right or wrong for everybody; {report['misfits']} unlike the model"
    )
    if tables:
        lines.append(f"conformal intervals: {counted(tables, 'table')}, one a policy and budget")
    lines += [f"warning: {text}" for text in report["warnings"]]
    lines += [f"REFUSED: {text}" for text in report["problems"]]
    if report["trusted"]:
        lines.append("the bank passed its checks")
    return _wrapped(lines, width)


def format_lines(parts: Sequence[str], report: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the report of a fit to responses in formats, see `multimodal.FormatScale`."""
    reliability = dict(zip(parts, report["reliability"], strict=True))
    lines = [
        f"in formats: {report['form'].upper()}-IRT, held-out ROC-AUC {number(report['auc'])}, "
        + ("converged" if report["converged"] else "NOT converged"),
        "share of the abilities' variance that is not error: "
        + ", ".join(f"{part} {number(value, 2)}" for part, value in reliability.items()),
    ]
    if weak := [part for part, value in reliability.items() if value < _RELIABLE]:
        lines.append(
            f"warning: these responses hardly tell subjects apart by {' and '.join(weak)}: gates on that part will "
            "be INCONCLUSIVE; add items that need it"
        )
    lines += [f"warning: only the sum of {a} and {b} is known" for a, b in report["confused"]]
    return _wrapped([*lines, *at_bound_lines(parts, report["at_bound"])], width)


def at_bound_lines(parts: Sequence[str], at_bound: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a warning about the parts that lie at their bounds, none if there are none."""
    from pytest_adaptive_eval.irt.multimodal import parts_at_bound

    kinds = parts_at_bound(parts, at_bound)
    if not kinds:
        return []
    of = {"ability": "subjects"}
    names = [
        f"{kind} {part} ({100 * share:.0f} % of the {of.get(kind, 'items')})"
        for kind, shares in kinds.items()
        for part, share in shares.items()
    ]
    return [
        f"warning: at a bound of their range, and so without a meaning of their own: {', '.join(names)}; judge items "
        "and models by their gain"
    ]


def ability_lines(
    subjects: Sequence[str], parts: Sequence[str], abilities: Sequence[Sequence[float]], width: int = 80
) -> list[str]:
    """Return a table of abilities by part, the largest sum first."""
    order = sorted(range(len(subjects)), key=lambda n: -sum(abilities[n]))
    rows = [["subject", *parts]]
    rows += [[clean_terminal(subjects[n], 40), *(number(value, 2) for value in abilities[n])] for n in order]
    return [*_wrapped(["abilities by part, the largest sum first"], width), *aligned(rows, range(1, len(rows[0])))]


def backtest_lines(result: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the tables of a backtest."""
    rows = [{**row, "policy": clean_terminal(row["policy"], 30)} for row in result["rows"]]
    wide = max([len(row["policy"]) for row in rows] + [6])
    splits = "1 split" if result["splits"] == 1 else f"the mean of {result['splits']} splits"
    lines = [
        *wrap(
            f"{counted(result['items'], 'item')}, {splits}; ranking: pairs in the right order, in percent; error: "
            "mean absolute error of the accuracy",
            width,
        ),
        "",
        f"{'policy':{wide}} {'budget':>7} {'items':>6} {'ranking':>8} {'s.e.':>5} {'1.96 SD':>8} {'Spearman':>9} "
        f"{'error':>6}",
    ]
    lines += [
        f"{row['policy']:{wide}} {row['budget']:>7} {row['items']:>6} {number_or_dash(row['ranking_accuracy'], 2):>8} "
        f"{number_or_dash(row['ranking_accuracy_se'], 2):>5} {number_or_dash(row['ranking_accuracy_spread'], 2):>8} "
        f"{number_or_dash(row['spearman']):>9} {number_or_dash(row['mean_absolute_error']):>6}"
        for row in rows
    ]
    lines += ["", *_intervals(rows, wide, width, 2 * result["confidence"] - 1)]
    lines.append("smallest budget tried that ranks so well:")
    for name, targets in result["smallest_budget"].items():
        reached = ", ".join(f"{target} % at {budget or 'none of them'}" for target, budget in targets.items())
        lines.append(f"  {clean_terminal(name, 30):{wide}} {reached}")
    return lines


def _intervals(rows: list[dict[str, Any]], wide: int, width: int, confidence: float) -> list[str]:
    """Return the table of coverage and width, without any intervals an empty list."""
    methods = list(dict.fromkeys(method for row in rows for method in row["intervals"]))
    if not methods:
        return []
    lines = [
        *wrap(
            f"intervals at {100 * confidence:.4g} %: share that holds the truth, and half-width over that of as many "
            "uniform draws",
            width,
        ),
        "",
        f"{'policy':{wide}} {'budget':>7}" + "".join(f" {method:>12}" for method in methods),
    ]
    for row in rows:
        if row["intervals"]:
            cells = [_coverage(row["intervals"].get(method)) for method in methods]
            lines.append(f"{row['policy']:{wide}} {row['budget']:>7}" + "".join(f" {cell:>12}" for cell in cells))
    return [*lines, ""]


def _coverage(interval: Mapping[str, float | None] | None) -> str:
    if interval is None:
        return "-"
    size = number_or_dash(interval["width"], 2)
    return f"{number_or_dash(interval['coverage'])} {size + 'x' * (size != '-'):>5}"


def backtest_svg(result: Mapping[str, Any]) -> str:
    """Draw the ranking accuracy by share of the bank asked, a line per policy, as a self-contained SVG."""
    points: dict[str, list[_Point]] = {}
    lowest, shares = 100.0, set[float]()
    for row in result["rows"]:
        if (accuracy := row["ranking_accuracy"]) is not None:
            share = 100.0 * row["items"] / result["items"]
            points.setdefault(row["policy"], []).append((share, accuracy, 0.0))
            lowest = min(lowest, accuracy)
            shares.add(share)
    step = 5.0 if lowest >= 50.0 else 10.0
    low = min(95.0, step * (lowest // step))
    ticks = [low + n * step for n in range(round((100.0 - low) / step) + 1)]
    title = "Ranking accuracy in percent, by share of the bank asked"
    panel, height = _panel(title, points, ticks, max(shares, default=100.0))
    return _lines_svg(title, points, [panel], height)


def format_backtest_svg(result: Mapping[str, Any]) -> str:
    """Draw the rank correlations and the shares of low-quality items by share of the pairs asked, as an SVG.

    As Figures 4 and 5 of the paper of M3-IRT: means, with the standard deviation over the subjects left out.
    """
    panels, height = list[Markup](), 0.0
    names: dict[str, list[_Point]] = {}
    for quantity, title in (
        ("together_all", "Rank correlation with the mean of all formats, by share of the pairs asked"),
        ("gamma", "Share of low-quality items, by share of the pairs asked"),
    ):
        points: dict[str, list[_Point]] = {}
        for row in result["rows"]:
            if row[quantity] is not None:
                share = 100.0 * row["calls"] / result["pairs"]
                points.setdefault(row["policy"], []).append((share, row[quantity], row[f"{quantity}_sd"]))
        if not points:
            continue
        values = [value for line in points.values() for _, value, _ in line]
        low = min(0.0, 0.2 * (min(values) // 0.2))
        ticks = [low + 0.2 * n for n in range(round((1.0 - low) / 0.2) + 1)]
        panel, size = _panel(title, points, ticks, max(share for line in points.values() for share, *_ in line))
        panels.append(tag("g", panel, transform=f"translate(0 {height:g})"))
        names, height = {**names, **points}, height + size
    return _lines_svg("Backtest in formats", names, panels, height)


_Point = tuple[float, float, float]  #: Share of the bank in percent, value, and its standard deviation.


def _panel(title: str, points: Mapping[str, list[_Point]], ticks: Sequence[float], most: float) -> tuple[Markup, float]:
    """Draw a line per policy over the share asked, up to `most` percent; return the panel and its height."""
    height = max(350, 40 + 16 * len(points))
    frame = Frame((0.0, most), (ticks[0], ticks[-1]), (_WIDTH, height), (60, 220, 30, height - _BOTTOM))
    parts = [tag("text", title, class_="head", x=frame.left, y=18), *frame.grid(ticks, lambda tick: f"{tick:.3g}")]
    free = 0.0
    for x, share in sorted({(frame.x(share), share) for line in points.values() for share, *_ in line}):
        if x >= free:  # a label that would overlap the previous one is left out
            parts.append(tag("text", f"{share:.2g} %", class_="mid", x=x, y=frame.bottom + 18))
            free = x + 36.0
    for n, (name, line) in enumerate(points.items()):
        parts += _policy_line(frame, n, name, sorted(line))
    return Markup("".join(parts)), height


def _lines_svg(title: str, names: Iterable[str], panels: Sequence[Markup], height: float) -> str:
    parts = [tag("style", _STYLE), tag("rect", width=_WIDTH, height=height, fill="white"), *panels]
    description = f"Lines of {', '.join(names)}"
    picture = svg("backtest", title, description, (_WIDTH, height), *parts, xmlns="http://www.w3.org/2000/svg")
    return f"{picture}\n"


def _policy_line(frame: Frame, n: int, name: str, points: Sequence[_Point]) -> list[Markup]:
    """Return the line, the points with their standard deviations, and the label of policy number `n`."""
    colour = _COLOURS[n % len(_COLOURS)]
    positions = [(frame.x(share), frame.y(value)) for share, value, _ in points]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in positions)
    dashes = "5 3" if n // len(_COLOURS) % 2 else None
    label = tag("text", clean_html(name, 40), x=frame.right + 20, y=frame.top + 16 * n + 8, fill=colour)
    line = tag("polyline", points=path, fill="none", stroke=colour, stroke_width=2, stroke_dasharray=dashes)
    spreads = [
        tag("line", x1=x, x2=x, y1=frame.y(value - sd), y2=frame.y(value + sd), stroke=colour, stroke_opacity=0.4)
        for (x, _), (_, value, sd) in zip(positions, points, strict=True)
        if sd > 0
    ]
    return [line, *spreads, *(tag("circle", cx=x, cy=y, r=3, fill=colour) for x, y in positions), label]
