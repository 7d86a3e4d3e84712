"""The reports of ``calibrate`` and ``backtest``: lines for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.reports.history import aligned, wrapped_lines
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import clean_terminal, counted, number, wrap

_RELIABLE = 0.5  #: Share of an ability component's variance that must be true variance between subjects.


def calibration_lines(report: Mapping[str, Any], tables: int, width: int = 80) -> list[str]:
    """Return the report of a calibration."""
    details = report["details"]
    loss = report["log_loss"]
    slopes = report["slopes"]
    n = report["items"]
    end = "given parameters"
    if "iterations" in details:
        if details["interrupted"]:
            end = "interrupted"
        else:
            end = _convergence(details["converged"])
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
        lines.append(f"conformal intervals: {counted(tables, 'table')}, one per policy and budget")
    for text in report["warnings"]:
        lines.append(f"warning: {text}")
    for text in report["problems"]:
        lines.append(f"REFUSED: {text}")
    if report["trusted"]:
        lines.append("the bank passed its checks")
    return wrapped_lines(lines, width)


def _convergence(converged: bool) -> str:
    if converged:
        return "converged"
    return "NOT converged"


def format_lines(parts: Sequence[str], report: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the report of a fit to responses in formats, see `multimodal.FormatScale`."""
    reliability = dict(zip(parts, report["reliability"], strict=True))
    tried = ", ".join(f"{bound} {number(auc)}" for bound, auc in report["bounds"].items())
    shares = ", ".join(f"{part} {number(value, 2)}" for part, value in reliability.items())
    lines = [
        f"in formats: {report['form'].upper()}-IRT, parts from 0 to q = {report['bound']:g}, held-out ROC-AUC "
        f"{number(report['auc'])}, {_convergence(report['converged'])}",
        f"held-out ROC-AUC by q: {tried}",
        f"share of the abilities' variance that is not error: {shares}",
    ]
    weak = [part for part, value in reliability.items() if value < _RELIABLE]
    if weak:
        lines.append(
            f"warning: these responses hardly distinguish subjects by {' and '.join(weak)}: gates on that part will "
            "be INCONCLUSIVE, or refused at a bound; add items that need it"
        )
    for a, b in report["confused"]:
        lines.append(f"warning: only the sum of {a} and {b} is known")
    lines += at_bound_lines(parts, report["at_bound"])
    return wrapped_lines(lines, width)


def at_bound_lines(parts: Sequence[str], at_bound: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a warning about the parts that lie at their bounds, none if there are none."""
    from pytest_adaptive_eval.irt.multimodal import parts_at_bound

    kinds = parts_at_bound(parts, at_bound)
    if not kinds:
        return []
    of = {"ability": "subjects"}
    names = []
    for kind, shares in kinds.items():
        for part, share in shares.items():
            names.append(f"{kind} {part} ({100 * share:.0f} % of the {of.get(kind, 'items')})")
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
    for n in order:
        cells = [number(value, 2) for value in abilities[n]]
        rows.append([clean_terminal(subjects[n], 40), *cells])
    title = wrapped_lines(["abilities by part, the largest sum first"], width)
    return [*title, *aligned(rows, range(1, len(rows[0])))]


def backtest_lines(result: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the tables of a backtest."""
    rows = []
    for row in result["rows"]:
        rows.append({**row, "policy": clean_terminal(row["policy"], 30)})
    wide = max([len("policy"), *(len(row["policy"]) for row in rows)])
    if result["splits"] == 1:
        splits = "1 split"
    else:
        splits = f"the mean of {result['splits']} splits"
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
    for row in rows:
        ranking = number_or_dash(row["ranking_accuracy"], 2)
        error = number_or_dash(row["ranking_accuracy_se"], 2)
        spread = number_or_dash(row["ranking_accuracy_spread"], 2)
        spearman = number_or_dash(row["spearman"])
        absolute_error = number_or_dash(row["mean_absolute_error"])
        lines.append(
            f"{row['policy']:{wide}} {row['budget']:>7} {row['items']:>6} {ranking:>8} {error:>5} {spread:>8} "
            f"{spearman:>9} {absolute_error:>6}"
        )
    two_sided = 2 * result["confidence"] - 1
    lines += ["", *_intervals(rows, wide, width, two_sided)]
    lines.append("smallest budget tried that ranks so well:")
    for name, targets in result["smallest_budget"].items():
        reached = [f"{target} % at {budget or 'none of them'}" for target, budget in targets.items()]
        lines.append(f"  {clean_terminal(name, 30):{wide}} {', '.join(reached)}")
    return lines


def _intervals(rows: list[dict[str, Any]], wide: int, width: int, confidence: float) -> list[str]:
    """Return the table of coverage and width, without any intervals an empty list."""
    methods: dict[str, None] = {}
    for row in rows:
        methods |= dict.fromkeys(row["intervals"])
    if not methods:
        return []
    heads = [f" {method:>12}" for method in methods]
    lines = [
        *wrap(
            f"intervals at {100 * confidence:.4g} %: share that holds the truth, and half-width over that of as many "
            "uniform draws",
            width,
        ),
        "",
        f"{'policy':{wide}} {'budget':>7}{''.join(heads)}",
    ]
    for row in rows:
        intervals = row["intervals"]
        if intervals:
            cells = [f" {_coverage(intervals.get(method)):>12}" for method in methods]
            lines.append(f"{row['policy']:{wide}} {row['budget']:>7}{''.join(cells)}")
    return [*lines, ""]


def _coverage(interval: Mapping[str, float | None] | None) -> str:
    if interval is None:
        return "-"
    ratio = number_or_dash(interval["width"], 2)
    if ratio != "-":
        ratio += "x"
    return f"{number_or_dash(interval['coverage'])} {ratio:>5}"
