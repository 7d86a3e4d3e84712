"""Correlations between evaluations as lines for a terminal or a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.correlation import Correlation, Measure
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.text import clean_terminal, number

_NAME = 40


def correlation_lines(measures: Sequence[Measure], pairs: Mapping[tuple[int, int], Correlation]) -> list[str]:
    """Return the correlation matrix, and each pair with its intervals.

    Args:
        pairs: See `records.correlation.table`.
    """
    names = [f"{clean_terminal(measure.name, _NAME)} ({measure.metric})" for measure in measures]
    in_matrix = [n for n, measure in enumerate(measures) if measure.metric != "last level"]
    lines = []
    if len(in_matrix) > 1:
        numbers = {n: str(column) for column, n in enumerate(in_matrix, 1)}
        heads = ["", "", "subjects", *numbers.values()]
        rows = [
            [numbers[i], names[i], str(len(measures[i].values)), *(_cell(pairs, i, j) for j in in_matrix)]
            for i in in_matrix
        ]
        lines += ["Spearman above the diagonal, Pearson below"]
        lines += [*aligned([heads, *rows], [0, *range(2, len(heads))], "  "), ""]
    table = [["", "", "subjects", "Spearman", "Kendall", "Pearson", ""]]
    for (i, j), pair in sorted(pairs.items(), key=lambda entry: measures[entry[0][1]].metric != "last level"):
        intervals = tuple(map(_bounded, (pair.spearman, pair.kendall, pair.pearson)))
        table.append([names[i], names[j], str(pair.subjects), *intervals, pair.why])
    lines += ["with 95 % intervals, for subjects that are drawn independently", *aligned(table, [2], "  ")]
    return lines


def _cell(pairs: Mapping[tuple[int, int], Correlation], row: int, column: int) -> str:
    if row == column:
        return ""
    pair = pairs[min(row, column), max(row, column)]
    interval = pair.spearman if row < column else pair.pearson
    return number(interval.estimate, 2) if interval else "-"


def _bounded(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    estimate, low, high = (number(value, 2) for value in (interval.estimate, interval.low, interval.high))
    return f"{estimate} [{low}, {high}]"
