"""Correlations between evaluations as lines for a terminal or a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.correlation import Correlation, Measure
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.text import clean_terminal, number

__all__ = ["correlation_lines"]

_NAME = 40


def correlation_lines(measured: Sequence[Measure], pairs: Mapping[tuple[int, int], Correlation]) -> list[str]:
    """A matrix, and each pair with its intervals.

    Parameters
    ----------
    measured : sequence of Measure
    pairs : mapping of pairs of places to Correlation
        See `records.correlation.table`.
    """
    names = [f"{clean_terminal(one.name, _NAME)} ({one.metric})" for one in measured]
    shown = [n for n, one in enumerate(measured) if one.metric != "last level"]
    lines = []
    if len(shown) > 1:
        numbers = {place: str(n) for n, place in enumerate(shown, 1)}
        heads = ["", "", "subjects", *numbers.values()]
        rows = [
            [numbers[i], names[i], str(len(measured[i].values)), *(_cell(pairs, i, j) for j in shown)] for i in shown
        ]
        lines += ["Spearman above the diagonal, Pearson below"]
        lines += [*aligned([heads, *rows], [0, *range(2, len(heads))], "  "), ""]
    table = [["", "", "subjects", "Spearman", "Pearson", ""]]
    for (i, j), found in sorted(pairs.items(), key=lambda pair: measured[pair[0][1]].metric != "last level"):
        intervals = (_told(found.spearman), _told(found.pearson))
        table.append([names[i], names[j], str(found.subjects), *intervals, found.why])
    lines += ["with 95 % intervals, for subjects that are drawn independently", *aligned(table, [2], "  ")]
    return lines


def _cell(pairs: Mapping[tuple[int, int], Correlation], row: int, column: int) -> str:
    if row == column:
        return ""
    found = pairs[min(row, column), max(row, column)]
    interval = found.spearman if row < column else found.pearson
    return number(interval.estimate, 2) if interval else "-"


def _told(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    low, high = (number(bound, 2) for bound in (interval.low, interval.high))
    return f"{number(interval.estimate, 2)} [{low}, {high}]"
