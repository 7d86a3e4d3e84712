"""The parts that a study kind adds to reports."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_adaptive_eval.records.run_record import StudyRecord
from pytest_adaptive_eval.registry import registered
from pytest_adaptive_eval.reports.figures import Figure
from pytest_adaptive_eval.reports.markup import Markup
from pytest_adaptive_eval.text import clean_terminal

#: Number at the start of a cell.
_NUMBER = re.compile(r"[-+−~]?\.?\d")
#: Most rows of a table.
ROWS = 60


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a page: the first cell of a row names it, columns of numbers are aligned to the right."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, or nothing."""
        columns = zip(*self.rows, strict=True)
        numeric = [all(cell in ("", "-") or _NUMBER.match(cell) for cell in column) for column in columns]
        return [False, *numeric[1:]] if numeric else [True] * len(self.heads)


def _no_tables(study: StudyRecord) -> list[Table]:  # noqa: ARG001
    return []


def _no_figures(key: str, study: StudyRecord) -> list[Figure]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True)
class StudySection:
    """Report parts of one study kind.

    Args:
        name: The study kind.
        tables: Returns the tables after the rankings of a study.
        figures: Returns the figures of a study; takes a prefix of their ids, of letters and digits, and the study.
        ranks_subjects: Whether a quantity has a row per subject, which the page ranks; otherwise its rows are the
            candidate's whole result and the result of each node.
    """

    name: str
    tables: Callable[[StudyRecord], list[Table]] = _no_tables
    figures: Callable[[str, StudyRecord], list[Figure]] = _no_figures
    ranks_subjects: bool = True


def short(name: Any, limit: int = 40, *, keep_end: bool = True) -> str:
    """Return a name or a text for a cell or a label, shortened in its middle or at its end."""
    return clean_terminal(str(name or "unnamed"), limit, keep_end=keep_end)


@cache
def section_of(kind: str) -> StudySection:
    """Return the section of a study kind: the registered one, else one with rankings alone."""
    return registered(None, "adaptive_eval.report_sections", StudySection).get(kind, StudySection(kind))
