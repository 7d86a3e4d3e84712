"""``adaptive-eval history --correlate``: correlations of evaluations, and of a user's scores, over past subjects."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED, spare
from pytest_adaptive_eval.cli.past_runs import history_patterns, open_history
from pytest_adaptive_eval.cli.screen import save, say, screen
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inputs import open_text

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.correlation import Measure

#: Column of a reference that names the subjects.
SUBJECT = "subject"


def correlate(options: argparse.Namespace) -> int:
    """Show how alike evaluations order the subjects; returns the exit code."""
    from pytest_adaptive_eval.records.correlation import CONFIDENCE, measures, table
    from pytest_adaptive_eval.reports.history import correlation_lines

    writes = {"--json": options.json}
    reference = Path(options.correlate) if options.correlate else None
    spare(writes, [reference])
    history = open_history(options.source, writes)
    patterns = history_patterns(options)
    own = [evaluation for record, evaluation in history.evaluations(**patterns) if not record.copied_from]
    measured = measures(sorted(own, key=lambda evaluation: not evaluation.is_interview))
    if not measured:
        raise ConfigError(f"nothing in {options.source} is like that and has an accuracy, area, energy or score")
    for measure in measured:
        if measure.elsewhere:
            screen.note(
                f"{measure.name}: {measure.elsewhere} left out, asked on another bank or levels than the newest run"
            )
    if reference is not None:
        subjects = {subject for measure in measured for subject in measure.values}
        measured += _reference(reference, subjects)
    pairs = table(measured)
    if not pairs:
        raise ConfigError(
            f"{options.source} has one evaluation and nothing to correlate it with: give --correlate FILE.csv with "
            "your own scores, or other patterns"
        )
    if options.json:
        rows = [{"first": i, "second": j, **correlation.to_json()} for (i, j), correlation in pairs.items()]
        save(
            options.json,
            {"confidence": CONFIDENCE, "measures": [asdict(measure) for measure in measured], "pairs": rows},
        )
    say(correlation_lines(measured, pairs))
    return PASSED


def _reference(path: Path, subjects: set[str]) -> list[Measure]:
    """Return the columns of a CSV that has scores of some subjects."""
    from pytest_adaptive_eval.records.correlation import Measure

    columns, names = _read_scores(path)
    if not names & subjects:
        history_names, file_names = (", ".join(sorted(group)[:3]) or "none" for group in (subjects, names))
        raise ConfigError(
            f"--correlate {path} has none of the subjects: the history has {history_names}; the file has {file_names}"
        )
    if unscored := sorted(subjects - names):
        screen.note(
            f"--correlate {path} has no scores of {', '.join(unscored[:5])}{', ...' if len(unscored) > 5 else ''}"
        )
    return [Measure(head, "reference", scores) for head, scores in columns.items()]


def _read_scores(path: Path) -> tuple[dict[str, dict[str, float]], set[str]]:
    """Return the scores of a CSV by column and subject, without empty cells, and its subjects."""
    names: set[str] = set()
    try:
        with open_text(path) as file:
            rows = csv.DictReader(file, strict=True)
            rows.fieldnames = heads = _headers(path, rows.fieldnames)
            columns: dict[str, dict[str, float]] = {head: {} for head in heads if head != SUBJECT}
            for row in rows:
                where = f"--correlate {path}:{rows.line_num}"
                if None in row or None in row.values():
                    raise ConfigError(f"{where}: expected {len(heads)} cells, as in the first line")
                subject = row[SUBJECT].strip()
                if subject in names:
                    raise ConfigError(f"{where}: duplicate subject {subject!r}; keep one row")
                names.add(subject)
                cells = {head: cell for head in columns if (cell := row[head].strip())}
                for head, cell in cells.items():
                    columns[head][subject] = _score(cell, f"{where}: {head}")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"--correlate {path} is not UTF-8 CSV: {error}") from None
    return columns, names


def _headers(path: Path, written: Sequence[str] | None) -> list[str]:
    """Return the names of the columns: one of the subjects, and at least one of scores."""
    heads = [(head or "").strip() for head in written or ()]
    if SUBJECT not in heads or len(heads) < 2 or "" in heads or len(set(heads)) < len(heads):
        raise ConfigError(
            f"--correlate {path}: expected a column {SUBJECT!r} and columns of scores, each with its own name; found "
            f"{', '.join(heads) or 'nothing':.200}"
        )
    return heads


def _score(cell: str, where: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"{where} is {cell[:40]!r}, expected a number, or nothing where there is none")
    return value
