"""Read matrices of scores in CSV, gzipped or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import ITEM_WORDS, SUBJECT_WORDS, Cells, MatrixTable
from pytest_adaptive_eval.types import Array

ORIENTATIONS = ("items-by-subjects", "subjects-by-items")


def read_matrix(path: Path, settings: ReadSettings) -> Responses:
    """Read a table of scores with ids in its first row and column; the first cell or the settings orient it."""
    table = MatrixTable(path)
    cells = Cells()
    identities = list[str]()
    families = list[str]()
    scores = list[Array]()
    for row in table:
        try:
            scores.append(_row_scores(row.cells, cells))
        except ValueError:
            raise table.bad_cell(row, cells) from None
        identities.append(row.identity)
        families.append(row.family)
    if table.unnamed:
        settings.note(f"{path.name}: {table.unnamed} columns without a name and without values are left out")
    matrix = np.stack(scores)
    scores.clear()  # the rows are a second copy, of up to hundreds of megabytes
    if _orientation(path, settings.orientation, table.corner, matrix.shape) == "items-by-subjects":
        return Responses(table.columns, tuple(identities), np.ascontiguousarray(matrix.T), source=str(path))
    return Responses(tuple(identities), table.columns, matrix, tuple(families), str(path))


def _row_scores(texts: Sequence[str], cells: Cells) -> Array:
    """Return the scores of a row, NaN where missing."""
    joined = "".join(texts)
    # The common case, four times faster: every cell is one character, 0 or 1.
    if len(joined) == len(texts) and "" not in texts and not joined.strip("01"):
        return np.frombuffer(joined.encode("ascii"), np.uint8).astype(np.float64) - 48.0
    return np.fromiter(map(cells.__getitem__, texts), np.float64, len(texts))


def _orientation(path: Path, requested: str | None, corner: str, shape: tuple[int, ...]) -> str:
    """Return the orientation that the first header cell names, or else the requested one."""
    word = corner.lower()
    if word in ITEM_WORDS or word in SUBJECT_WORDS:
        declared = ORIENTATIONS[word in SUBJECT_WORDS]
        if requested not in (None, declared):
            raise ResponsesError(
                f"{path}, line 1: the first header cell, {corner!r}, says {declared}, and the orientation given is "
                f"{requested}: remove it, or correct the header"
            )
        return declared
    if requested is not None:
        return requested
    rows, columns = shape
    raise ResponsesError(
        f"{path}: {rows} rows and {columns} columns, and the first header cell, {corner!r}, does not say which are the "
        f"items. Give orientation 'items-by-subjects' ({columns} subjects, {rows} items) or 'subjects-by-items' "
        f"({rows} subjects, {columns} items), or head the first column 'item' or 'subject'"
    )


REGISTERED = (
    ResponseReader(
        "csv",
        "a matrix in CSV, gzipped or not",
        lambda path: path.name.removesuffix(".gz").lower().endswith(".csv"),
        read_matrix,
        {"orientation": "the content of rows and columns"},
        folders=False,
        generality=2,
    ),
)
