"""Tables of a backtest in formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.reports.words import number_or_dash
from pytest_adaptive_eval.text import clean_terminal, counted, number, wrap

#: Heads of the columns of tests, by quantity.
_TESTED = {"together_all": "rho, all", "together_fullest": "rho, full", "gamma": "gamma"}
#: Columns of a backtest after its policy, budget and calls, with their heads.
_COLUMNS = {
    "together_all": "together: all", "together_all_sd": "s.d.", "together_fullest": "full", "alone_all": "alone: all",
    "alone_fullest": "full", "gamma": "gamma", "gamma_of_random": "x random",
}  # fmt: skip


def format_backtest_lines(result: Mapping[str, Any], width: int = 80) -> list[str]:
    """Return the tables of a backtest in formats.

    Args:
        result: See `FormatBacktest.to_json`.
        width: Columns of a sentence; the tables need 100.
    """
    low = result["low_quality"]
    if low:
        quality = f"{number(low)} of the items are known to be of low quality"
    else:
        quality = "no item is known to be bad"
    lines = wrap(
        f"{counted(result['subjects'], 'subject')}, {result['left_out']} left out one at a time, {result['pairs']} "
        f"pairs of an item and a format, a call each; {quality}. Rank correlations with the mean over all formats and "
        f"in the full one, of the other items: together, by the raw means of everybody on the pairs that the one left "
        f"out was asked, mean and s.d.; alone, by each one's own interview. The two truths correlate by "
        f"{number_or_dash(result['truths_agree'])}",
        width,
    )
    table = [["policy", "budget", "calls", *_COLUMNS.values()]]
    for row in result["rows"]:
        values = [number_or_dash(row[key]) for key in _COLUMNS]
        table.append([row["policy"], clean_terminal(row["budget"], 10), str(row["calls"]), *values])
    lines += ["", *aligned(table, range(2, len(table[0])))]
    if result["tests"]:
        lines += ["", *_tests(result["tests"], width)]
    lines += _fit_lines(result["fits"], width)
    if result["seconds"]:
        times = ", ".join(f"{name} {s['mean']:.1f} (most {s['most']:.1f})" for name, s in result["seconds"].items())
        lines += ["", *wrap(f"seconds of processor time a fit: {times}", width)]
    return lines


def _fit_lines(fits: Mapping[str, Mapping[str, Any]], width: int) -> list[str]:
    lines = [""] if fits else []
    for name, fit in fits.items():
        parts = [counted(fit["fits"], "fit")]
        if fit["q"]:
            parts.append("q " + ", ".join(f"{q} ({count})" for q, count in fit["q"].items()))
            parts.append(f"{fit['at_edge']} at the smallest or largest q tried")
        parts.append(f"{fit['unsettled']} did not settle" + (": raise limit" if fit["unsettled"] else ""))
        lines += wrap(f"{clean_terminal(name, 20)}: {'; '.join(parts)}", width)
    return lines


def _tests(tests: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return a table for each quantity: W and p against each comparator, a row per contender and budget."""
    against = list(dict.fromkeys(test["against"] for test in tests))
    lines = wrap(
        "Wilcoxon's signed-rank test over those left out, one-sided: W and p of a policy being better than each other",
        width,
    )
    for quantity, head in _TESTED.items():
        cells: dict[tuple[str, str], dict[str, str]] = {}
        for test in tests:
            if test["of"] == quantity:
                key = (test["policy"], clean_terminal(test["budget"], 10))
                cells.setdefault(key, {})[test["against"]] = f"{test['w']:g} {test['p']:.2g}"
        if cells:
            rows = [[head, "budget", *against]]
            rows += [[*key, *(row.get(name, "-") for name in against)] for key, row in cells.items()]
            lines += ["", *aligned(rows, range(2, len(rows[0])))]
    return lines
