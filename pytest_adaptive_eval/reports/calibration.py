"""The reports of ``calibrate`` and ``backtest``: lines for a terminal, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

from pytest_adaptive_eval.text import clean_terminal, clean_xml, counted, number, wrap

__all__ = ["backtest_lines", "backtest_svg", "calibration_lines", "format_lines"]


def calibration_lines(report: Mapping[str, Any], tables: int, width: int = 80) -> list[str]:
    """The report of a calibration.

    Parameters
    ----------
    report : mapping
        See `Quality.to_json`.
    tables : int
        Conformal tables made.
    width : int
        Columns of a line.
    """
    about, loss, slopes = report["details"], report["log_loss"], report["slopes"]
    n = report["items"]
    lines = [
        f"{counted(report['subjects'], 'subject')}, {counted(n, 'item')}, {100 * report['observed']:.3g} % of the "
        "scores are there",
        f"model {about['model']}, {counted(about.get('dimensions', 1), 'dimension')}, engine {about['engine']}: "
        + _fitted(about),
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
    return [part for line in lines for part in wrap(clean_terminal(line), width, "  ", first="")]


#: Share of the abilities' variance that must not be error for a part to tell subjects apart.
_RELIABLE = 0.5


def format_lines(parts: Sequence[str], report: Mapping[str, Any], width: int = 80) -> list[str]:
    """What was fitted to responses in formats, see `multimodal.FormatScale`."""
    told = ", ".join(f"{part} {number(value, 2)}" for part, value in zip(parts, report["reliability"], strict=True))
    lines = [
        f"in formats: {report['form'].upper()}-IRT, held-out ROC-AUC {number(report['auc'])}, "
        + ("converged" if report["converged"] else "NOT converged"),
        f"share of the abilities' variance that is not error: {told}",
    ]
    weak = [part for part, value in zip(parts, report["reliability"], strict=True) if value < _RELIABLE]
    if weak:
        lines.append(
            f"warning: these responses hardly tell subjects apart by {' and '.join(weak)}: gates on that part will "
            "be INCONCLUSIVE; add items that need it"
        )
    lines += [f"warning: only the sum of {a} and {b} is known" for a, b in report["confused"]]
    return [part for line in lines for part in wrap(clean_terminal(line), width, "  ", first="")]


def _fitted(about: Mapping[str, Any]) -> str:
    if "iterations" not in about:
        return "given parameters"
    end = "interrupted" if about["interrupted"] else "converged" if about["converged"] else "NOT converged"
    return f"{end} after {counted(about['iterations'], 'iteration')}"


def backtest_lines(result: Mapping[str, Any], width: int = 80) -> list[str]:
    """The tables of a backtest.

    Parameters
    ----------
    result : mapping
        See `Backtest.to_json`.
    width : int
        Columns of a sentence; the tables need 79.
    """
    rows = [{**row, "policy": clean_terminal(row["policy"], 30)} for row in result["rows"]]
    wide = max([len(row["policy"]) for row in rows] + [6])
    several = "1 split" if result["splits"] == 1 else f"the mean of {result['splits']} splits"
    lines = [
        *wrap(
            f"{counted(result['items'], 'item')}, {several}; ranking: pairs in the right order, in percent; error: "
            "mean absolute error of the accuracy",
            width,
        ),
        "",
        f"{'policy':{wide}} {'budget':>7} {'items':>6} {'ranking':>8} {'s.e.':>5} {'Spearman':>9} {'error':>6}",
    ]
    lines += [
        f"{row['policy']:{wide}} {row['budget']:>7} {row['items']:>6} {_shown(row['ranking_accuracy'], 2):>8} "
        f"{_shown(row['ranking_accuracy_se'], 2):>5} {_shown(row['spearman']):>9} "
        f"{_shown(row['mean_absolute_error']):>6}"
        for row in rows
    ]
    lines += ["", *_intervals(rows, wide, width, 2 * result["confidence"] - 1)]
    lines.append("smallest budget tried that ranks so well:")
    for name, targets in result["smallest_budget"].items():
        reached = ", ".join(f"{target} % at {budget or 'none of them'}" for target, budget in targets.items())
        lines.append(f"  {clean_terminal(name, 30):{wide}} {reached}")
    return lines


def _intervals(rows: list[dict[str, Any]], wide: int, width: int, confidence: float) -> list[str]:
    """The table of coverage and width, where there are intervals."""
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


def _coverage(found: Mapping[str, float | None] | None) -> str:
    if found is None:
        return "-"
    size = _shown(found["width"], 2)
    return f"{_shown(found['coverage'])} {size + 'x' * (size != '-'):>5}"


def _shown(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else number(value, digits)


_COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8e5ea2", "#e08e0b", "#4a4a4a", "#00a6a6", "#a0522d")


def backtest_svg(result: Mapping[str, Any]) -> str:
    """Ranking accuracy by share of the bank asked, a line a policy, as a self-contained SVG."""
    rows = [row for row in result["rows"] if row["ranking_accuracy"] is not None]
    left, right, top, bottom = 60.0, 460.0, 30.0, 300.0
    points = {
        name: sorted(
            (100.0 * row["items"] / result["items"], row["ranking_accuracy"]) for row in rows if row["policy"] == name
        )
        for name in dict.fromkeys(row["policy"] for row in rows)
    }
    shares = sorted({share for line in points.values() for share, _ in line})
    lowest: float = min([value for line in points.values() for _, value in line], default=0.0)
    step = 5.0 if lowest >= 50.0 else 10.0
    low = min(95.0, step * (lowest // step))
    most = max(shares, default=100.0)

    def x(share: float) -> float:
        return left + (right - left) * share / most

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (100.0 - low)

    height = max(350, int(top) + 16 * len(points) + 10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="680" height="{height}" fill="white"/>',
        f'<text x="{left}" y="18" font-size="14">Ranking accuracy in percent, by share of the bank asked</text>',
    ]
    tick = low
    while tick <= 100.0:
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
        tick += step
    free = 0.0
    for share in shares:
        if x(share) >= free:  # labels that would overlap the one before are left out
            parts.append(f'<text x="{x(share):.1f}" y="{bottom + 18}" text-anchor="middle">{share:.2g} %</text>')
            free = x(share) + 36.0
    for place, (name, line) in enumerate(points.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        path = " ".join(f"{x(share):.1f},{y(value):.1f}" for share, value in line)
        dash = ' stroke-dasharray="5 3"' if place >= len(_COLOURS) else ""
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{x(share):.1f}" cy="{y(value):.1f}" r="3" fill="{colour}"/>' for share, value in line]
        label = escape(clean_xml(name, 40))
        parts.append(f'<text x="{right + 20}" y="{top + 16 * place + 8}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
