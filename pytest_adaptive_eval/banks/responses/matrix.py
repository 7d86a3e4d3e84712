"""Matrices in CSV, gzipped or not, and the families of their subjects."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.responses.files import lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import FormatResponses, Responses

__all__ = ["ITEM_WORDS", "ORIENTATIONS", "SUBJECT_WORDS", "Cells", "read_matrix", "rows_of", "with_families"]

ORIENTATIONS = ("items-by-subjects", "subjects-by-items")

#: First header cells that name the content of the rows.
ITEM_WORDS = ("item", "items", "item_id", "question", "question_id")
SUBJECT_WORDS = ("subject", "subjects", "subject_id", "model", "models")

#: Columns allowed between ``subject`` and the items, as in files for replaying.  The run is the family.
_ABOUT = ("run", "step")

#: Cells that are no numbers, in lower case; "nan" is a number to Python.
_WORDS = {**dict.fromkeys(("", "na", "n/a", "none", "null"), math.nan), "true": 1.0, "false": 0.0}


class Cells(dict[str, float]):
    """Cache from the text of a cell to its score.  Tables have few different cells, so most need only a look-up."""

    def __missing__(self, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = _WORDS.get(text.strip().lower(), -1.0)
        if not (0.0 <= value <= 1.0 or math.isnan(value)) or "_" in text:  # Python reads "1_0" as ten
            raise ValueError(text)
        if len(self) < 10_000:
            self[text] = value
        return value

    def row(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of a row, NaN where missing.

        Raises
        ------
        ValueError
            A cell is not a score.
        """
        together = "".join(texts)
        # The common case, four times faster: every cell is one character, 0 or 1.
        if len(together) == len(texts) and "" not in texts and not together.strip("01"):
            return np.frombuffer(together.encode("ascii"), np.uint8).astype(np.float64) - 48.0
        return np.fromiter(map(self.__getitem__, texts), np.float64, len(texts))


def rows_of(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not empty."""
    rows = csv.reader(lines(path), strict=True)
    try:
        for row in rows:
            if any(row):
                yield rows.line_num, row
    except csv.Error as error:
        raise ResponsesError(f"{path}, line {rows.line_num}: {error}; expected comma-separated values") from None


def _header(path: Path, header: list[str]) -> list[str]:
    """Return the names of the columns, including empty ones."""
    if len(header) == 1:
        other = next((mark for mark in ("\t", ";", "|") if mark in header[0]), None)
        raise ResponsesError(
            f"{path}, line 1: one column, {header[0]!r:.80}; expected ids in the first and scores in more, separated "
            f"by commas{f', not by {other!r}: write the file with commas' if other else ''}"
        )
    names = [name.strip() for name in header]
    words = {name.lower() for name in names}
    if "score" in words and words & set(SUBJECT_WORDS) and words & set(ITEM_WORDS):
        fix = "pivot the table to one row per subject and one column per item"
        if "format" in words:
            fix = "these are responses in formats: calibrate with --formats m2 or m3, or give a matrix of one format"
        raise ResponsesError(f"{path}, line 1: {','.join(names)!r:.80} heads one row per answer, not a matrix; {fix}")
    first: dict[str, int] = {}
    for position, name in enumerate(names[1:], 2):
        if name and first.setdefault(name, position) != position:
            raise ResponsesError(
                f"{path}, line 1: {name!r} heads columns {first[name]} and {position}; give each a name of its own"
            )
    return names


def _oriented(path: Path, orientation: str | None, corner: str, shape: tuple[int, int]) -> str:
    word = corner.lower()
    if word in ITEM_WORDS or word in SUBJECT_WORDS:
        declared = ORIENTATIONS[word in SUBJECT_WORDS]
        if orientation not in (None, declared):
            raise ResponsesError(
                f"{path}, line 1: the first header cell, {corner!r}, says {declared}, and the orientation given is "
                f"{orientation}: leave it out, or mend the header"
            )
        return declared
    if orientation is not None:
        return orientation
    rows, columns = shape
    raise ResponsesError(
        f"{path}: {rows} rows and {columns} columns, and the first header cell, {corner!r}, does not say which are the "
        f"items. Give orientation 'items-by-subjects' ({columns} subjects, {rows} items) or 'subjects-by-items' "
        f"({rows} subjects, {columns} items), or head the first column 'item' or 'subject'"
    )


def read_matrix(path: Path, orientation: str | None, note: Callable[[str], object]) -> Responses:
    """Read a table of scores with ids in its first row and column.

    Parameters
    ----------
    path : Path
        ``.csv`` or ``.csv.gz``; a byte-order mark is allowed.
    orientation : {'items-by-subjects', 'subjects-by-items'} or None
        Content of the rows and the columns.  None uses the first header cell.
    note : callable
        Called with a sentence about each omission.

    Raises
    ------
    ResponsesError
        Malformed table; the message names the line and the column.
    """
    rows = rows_of(path)
    _, header = next(rows, (0, []))
    if not header:
        raise ResponsesError(f"{path}: empty; expected a header with ids and a row for each item or subject")
    names = _header(path, header)
    about: tuple[str, ...] = ()
    if names[0].lower() in SUBJECT_WORDS:
        about = tuple(takewhile(_ABOUT.__contains__, map(str.lower, names[1:])))
    blank = [j for j, name in enumerate(names) if j > len(about) and not name]
    score_columns = [j for j, name in enumerate(names) if j > len(about) and name]
    if not score_columns:
        raise ResponsesError(f"{path}, line 1: no column of scores after {names[0]!r}; expected at least one id")
    run = 1 + about.index("run") if "run" in about else 0
    cells, first_lines, scores, families = Cells(), dict[str, int](), list[NDArray[np.float64]](), list[str]()
    for number, row in rows:
        where = f"{path}, line {number}"
        identity = _checked_id(where, row, names, blank)
        if first_lines.setdefault(identity, number) != number:
            raise ResponsesError(
                f"{where}: {identity!r} stands in line {first_lines[identity]} already; rename or drop one"
            )
        values = [row[j] for j in score_columns] if blank else row[1 + len(about) :]
        try:
            scores.append(cells.row(values))
        except ValueError:
            raise _bad_cell(where, [names[j] for j in score_columns], values, cells) from None
        families.append(row[run].strip() or identity)
    if not scores:
        raise ResponsesError(f"{path}: a header and no rows; expected a row for each item or subject")
    if blank:
        note(f"{path.name}: {len(blank)} columns without a name and without values are left out")
    columns = tuple(names[j] for j in score_columns)
    table = np.stack(scores)
    scores.clear()  # the rows are a second copy, of up to hundreds of megabytes
    if _oriented(path, orientation, names[0], table.shape) == "items-by-subjects":
        return Responses(columns, tuple(first_lines), np.ascontiguousarray(table.T), source=str(path))
    return Responses(tuple(first_lines), columns, table, tuple(families), str(path))


def _checked_id(where: str, row: list[str], names: Sequence[str], blank: Sequence[int]) -> str:
    """Return the id of a row after checking its length and its cells in columns without a name."""
    if len(row) == len(names) + 1 and not row[-1].strip():
        row.pop()  # rows that end with a comma
    identity = row[0].strip()
    if len(row) != len(names):
        raise ResponsesError(f"{where} ({identity!r}): {len(row)} cells, expected {len(names)} as in the header")
    if not identity:
        raise ResponsesError(f"{where}: the first cell is empty, expected an id")
    for j in blank:
        if row[j].strip():
            raise ResponsesError(f"{where}, column {j + 1}: {row[j]!r} under an empty header; name the column")
    return identity


def _bad_cell(where: str, names: Sequence[str], values: Sequence[str], cells: Cells) -> ResponsesError:
    """Return the error for the first cell of a row that is no score."""
    # Searched only after a failure: rows without a fault are converted as a whole.
    cell = "", ""
    for cell in zip(names, values, strict=True):
        try:
            cells[cell[1]]
        except ValueError:
            break
    return ResponsesError(
        f"{where}, column {cell[0]!r}: found {cell[1]!r:.80}, expected a score in [0, 1], or for a missing one an "
        "empty cell, NA, nan, None or null"
    )


Matrix = TypeVar("Matrix", Responses, FormatResponses)


def with_families(responses: Matrix, path: Path) -> Matrix:
    """Return a copy of the responses with the families of a two-column CSV.

    Parameters
    ----------
    responses : Responses or FormatResponses
    path : Path
        CSV with the header ``subject,family`` and a row for each subject.  A subject with
        an empty family has a family of its own.  Subjects without responses are ignored.

    Raises
    ------
    ResponsesError
        Wrong columns, a duplicate subject, or a subject of the responses without a row.
    """
    rows = rows_of(path)
    _, header = next(rows, (0, []))
    words = [word.strip().lower() for word in header]
    if len(words) != 2 or words[0] not in SUBJECT_WORDS or words[1] not in ("family", "families", "run"):
        raise ResponsesError(f"{path}, line 1: found {','.join(header)!r:.80}, expected 'subject,family'")
    families: dict[str, str] = {}
    for number, row in rows:
        if len(row) != 2 or not row[0].strip():
            raise ResponsesError(
                f"{path}, line {number}: found {','.join(row)!r:.80}, expected a subject and its family"
            )
        subject = row[0].strip()
        if subject in families:
            raise ResponsesError(f"{path}, line {number}: the subject {subject!r} stands twice; keep one row")
        families[subject] = row[1].strip() or subject
    if missing := [subject for subject in responses.subjects if subject not in families]:
        raise ResponsesError(
            f"{path}: no family for {len(missing)} of {len(responses.subjects)} subjects of {responses.source}, the "
            f"first {missing[0]!r}; add a row for each, with an empty family where it stands alone"
        )
    return replace(responses, families=tuple(families[subject] for subject in responses.subjects))
