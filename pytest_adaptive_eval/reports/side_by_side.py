"""Tables of models or prompts that one evaluation asked side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_adaptive_eval.records.pairs import CONFIDENCE
from pytest_adaptive_eval.records.parts import Pair
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.history import aligned
from pytest_adaptive_eval.text import clean_terminal, counted, number

_NAME = 60  #: Columns of a name.
VARIANTS = ("model or prompt", "accuracy", "asked")  #: Heads of the table of results.
PAIRS = ("better", "than", "by", "interval (* excludes 0)", "basis")  #: Heads of the table of differences.


class SideBySide(NamedTuple):
    """One evaluation of several models or prompts: cells of `VARIANTS` and of `PAIRS`."""

    name: str
    variants: list[list[str]]
    pairs: list[list[str]]


def side_by_side(record: RunRecord) -> list[SideBySide]:
    """Return the evaluations of several models or prompts, in order."""
    variants: dict[str, list[list[str]]] = {}
    for interview in record.interviews:
        if interview.group:
            row = [interview.variant, words.accuracy(interview), words.share(interview)]
            variants.setdefault(interview.group, []).append(row)
    tables = []
    for name, rows in variants.items():
        pairs = []
        for pair in record.differences:
            if pair.evaluation == name:
                better, other, difference, interval, star, basis = pair_cells(pair)
                starred = " ".join(filter(None, [interval, star]))
                pairs.append([better, other, difference, starred, basis])
        tables.append(SideBySide(name, rows, pairs))
    return tables


def side_by_side_lines(record: RunRecord) -> list[str]:
    """Return the tables as lines of a terminal."""
    lines: list[str] = []
    for table in side_by_side(record):
        rows = []
        for row in table.variants:
            rows.append([clean_terminal(cell, _NAME) for cell in row])
        lines += [f"side by side: {clean_terminal(table.name, _NAME)}"]
        for line in aligned([list(VARIANTS), *rows], [], "  "):
            lines.append(f"  {line}")
        if table.pairs:
            for line in aligned([list(PAIRS), *table.pairs], [2], "  "):
                lines.append(f"  {line}")
    return lines


def pair_lines(pairs: Sequence[Pair]) -> list[str]:
    """Return the table of all pairs of subjects, by evaluation."""
    compared = sum(pair.interval is not None for pair in pairs)
    lines = [f"{counted(compared, 'pair')}; all intervals together hold with {100 * CONFIDENCE:g} %, * excludes 0"]
    for name in dict.fromkeys(pair.evaluation for pair in pairs):
        rows = [["better", "than", "accuracy", "", "", ""]]
        for pair in pairs:
            if pair.evaluation == name:
                rows.append(pair_cells(pair))
        lines += ["", clean_terminal(name, _NAME), *aligned(rows, [2], "  ")]
    return lines


def pair_cells(pair: Pair) -> list[str]:
    """Return better, other, difference, interval, a star where it excludes 0, and basis."""
    names = []
    for name in pair.subjects:
        names.append(clean_terminal(name, _NAME, keep_end=True))
    if pair.interval is None:
        return [*names, "", "", "", f"not compared: {clean_terminal(pair.refused)}"]
    if pair.shared:
        basis = f"paired on {counted(pair.shared, 'item')}"
    else:
        basis = "each by its own draws"
    interval = pair.interval
    sign = "+" if interval.estimate >= 0 else ""
    return [*names, f"{sign}{number(interval.estimate)}", interval.bounds_in_words(), "*" * pair.decided, basis]
