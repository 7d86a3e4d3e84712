"""``adaptive-eval history --correlate``: correlations of evaluations, and of a user's scores, over past subjects."""

from __future__ import annotations

import argparse
import math
from itertools import combinations
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED, spare
from pytest_adaptive_eval.cli.past_runs import history_patterns, open_history
from pytest_adaptive_eval.cli.screen import save, say
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.records.correlation import Measure, correlate, measures
from pytest_adaptive_eval.reports.history import correlation_lines
from pytest_adaptive_eval.tables import MatrixTable


def correlate_past(options: argparse.Namespace) -> int:
    """Show how alike evaluations order the subjects; returns the exit code."""
    reference = None
    if options.correlate:
        reference = Path(options.correlate)
    spare({"--json": options.json}, [reference])
    history = open_history(options.source, {"--json": options.json})
    runs = {record.run for record in history.runs}
    past = history.evaluations(**history_patterns(options))
    measured = measures(evaluation for record, evaluation in past if runs.isdisjoint(record.merged))
    if reference is not None:
        measured += _read_scores(reference)
    pairs = []
    for first, second in combinations(measured, 2):
        correlation = correlate(first.values, second.values)
        if correlation.subjects:
            pairs.append((first, second, correlation))
    if not pairs:
        raise ConfigError(
            f"{options.source} has too little to correlate, expected two quantities of the same subjects: give "
            "--correlate FILE.csv with scores of the subjects' names"
        )
    if options.json:
        save(options.json, [{"first": a._asdict(), "second": b._asdict(), **c._asdict()} for a, b, c in pairs])
    say(correlation_lines(pairs))
    return PASSED


def _read_scores(path: Path) -> list[Measure]:
    """Return the columns of a CSV of scores, whose first column names the subjects, without empty cells."""
    table = MatrixTable(path)
    columns: dict[str, dict[str, float]] = {head: {} for head in table.columns}
    for row in table:
        for head, cell in zip(table.columns, row.cells, strict=True):
            try:
                value = float(cell or "nan")
            except ValueError:
                raise ConfigError(f"{path}, line {row.line}: {head} is {cell!r:.40}, expected a number") from None
            if math.isfinite(value):
                columns[head][row.identity] = value
    return [Measure(head, "reference", values) for head, values in columns.items()]
