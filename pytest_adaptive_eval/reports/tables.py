"""Tables of the page's sections on studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_adaptive_eval.reports.markup import Markup
from pytest_adaptive_eval.text import clean_terminal

__all__ = ["ROWS", "Table", "mapping", "short"]

#: Rows of a table.
ROWS = 60


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page: the first cell of a row names it, numbers stand at the right."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str | Markup]]
    note: str = ""


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def short(name: Any, limit: int = 40) -> str:
    """A name for a cell or a label."""
    return clean_terminal(str(name or "unnamed"), limit, keep_end=True)
