"""Tables in CSV, TSV and .xlsx, gzipped or not, read row by row in bounded memory.

A matrix has ids in its first row and column. Calibration reads all of its rows, and the replay of recorded answers
reads one.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular, open_text

#: Upper limit of bytes or characters read from one file or archive member, decompressed.  A small archive can expand to
#: fill the memory.
FILE_LIMIT = 2**31

#: Upper limit of characters in a line; a hundred thousand items take about 2 million.
_LINE_LIMIT = 64_000_000

_SEPARATORS = {",": "commas", "\t": "tabulators", ";": "semicolons"}

#: First header cells that name the content of the rows.
ITEM_WORDS = ("item", "items", "item_id", "question", "question_id")
SUBJECT_WORDS = ("subject", "subjects", "subject_id", "model", "models")

#: Columns allowed between ``subject`` and the items.  The run is the family.
_ABOUT = ("run", "step")

#: Cells that are no numbers, in lower case; "nan" is a number to Python.
_WORDS = {**dict.fromkeys(("", "na", "n/a", "none", "null"), math.nan), "true": 1.0, "false": 0.0}


def read_lines(path: Path) -> Iterator[str]:
    """Yield lines of a text file, gzipped or not, with their ends and without a byte-order mark.

    Raises:
        ResponsesError: Not UTF-8, a broken archive, or larger than the limits.
    """
    number = size = 0
    with open_text(path) as stream:
        try:
            while line := stream.readline(_LINE_LIMIT):
                number += 1
                size += len(line)
                if len(line) == _LINE_LIMIT or size > FILE_LIMIT:
                    raise ResponsesError(
                        f"{path}, line {number}: more than {_LINE_LIMIT} characters in a line or {FILE_LIMIT} in all; "
                        "split the file"
                    )
                yield line
        except UnicodeDecodeError as error:
            raise ResponsesError(
                f"{path}, after line {number}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
            ) from None
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ResponsesError(
                f"{path}, after line {number}: the archive is broken ({error}); copy it again"
            ) from None


def read_rows(path: Path, separator: str = "") -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the cells of each row that is not empty, of a CSV, a TSV or an .xlsx file.

    Args:
        separator: Of the cells; by default a tabulator in a file named ``.tsv``, else a comma. Quotes are ordinary
            characters in a table with tabulators whose first lines have unpaired ones.

    Raises:
        ResponsesError: Malformed; the message names the line.
    """
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".xlsx"):
        for number, cells in enumerate(_sheet(path), 1):
            if any(row := list(map(_cell, cells))):
                yield number, row
        return
    separator = separator or ("\t" if name.endswith(".tsv") else ",")
    csv.field_size_limit(_LINE_LIMIT)  # of the process; cells with pictures are as long as a line may be
    quoting: Any = csv.QUOTE_NONE
    if separator != "\t" or _is_quoted(path):
        quoting = csv.QUOTE_MINIMAL
    rows = csv.reader(read_lines(path), delimiter=separator, quoting=quoting, strict=True)
    try:
        for row in rows:
            if any(row):
                yield rows.line_num, row
    except csv.Error as error:
        raise ResponsesError(
            f"{path}, line {rows.line_num}: {error}; expected cells between {_SEPARATORS.get(separator, separator)}; "
            "save the table again"
        ) from None


def _is_quoted(path: Path) -> bool:
    """Return True if a table with tabulators has quoted cells, and its first 20 000 lines no unpaired quote."""
    sample = "".join(islice(read_lines(path), 20_000))
    opened = len(re.findall(r'(?:^|\t)"', sample, re.MULTILINE))
    return 0 < opened == len(re.findall(r'"(?:\t|\r?$)', sample, re.MULTILINE))


def _sheet(path: Path) -> list[list[Any]]:
    """Return the rows of the first sheet of a workbook."""
    try:
        import python_calamine
    except ImportError:
        raise ResponsesError(
            f"{path}: python-calamine is needed to read it; pip install 'pytest-adaptive-eval[xlsx]', or save it as CSV"
        ) from None
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > FILE_LIMIT:
            raise ResponsesError(f"{path}: {size} bytes unpacked, at most {FILE_LIMIT} are read; split the table")
        with open_regular(path) as file:
            book = python_calamine.load_workbook(file)
            return book.get_sheet_by_index(0).to_python(skip_empty_area=False)
    except (ResponsesError, OSError):
        raise
    except Exception as error:  # zip, XML and calamine have errors of their own
        raise ResponsesError(f"{path}: not a readable workbook ({error}); save it again or as CSV") from None


def _cell(value: Any) -> str:
    """Return the text of a workbook's cell, of a whole number as CSV has it."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if value is None:
        return ""
    return str(value)


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


class MatrixRow(NamedTuple):
    """One row of a matrix.

    Args:
        identity: Id in the first column, without surrounding spaces.
        family: Value of the column ``run``; the id if there is none.
        cells: One per column of the matrix.
    """

    line: int
    identity: str
    family: str
    cells: list[str]


class MatrixTable:
    """Table of scores with ids in its first row and column; iteration yields a `MatrixRow` per row.

    Args:
        path: ``.csv`` or ``.csv.gz``; a byte-order mark is allowed.

    Attributes:
        corner: First cell of the header.
        columns: Ids in the header.
        unnamed: Number of columns that have neither an id nor a value.

    Raises:
        ResponsesError: Malformed table; the message names the line and the column.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = read_rows(path)
        _, header = next(self._rows, (0, []))
        self._names = [name.strip() for name in header]
        check_faults(_header_faults(path, self._names), error=ResponsesError)
        self.corner = self._names[0]
        about: tuple[str, ...] = ()
        if self.corner.lower() in SUBJECT_WORDS:
            about = tuple(takewhile(_ABOUT.__contains__, map(str.lower, self._names[1:])))
        if "run" in about:
            self._run_column = 1 + about.index("run")
        else:
            self._run_column = 0
        columns = range(1 + len(about), len(self._names))
        self._score_columns = [j for j in columns if self._names[j]]
        self._unnamed = [j for j in columns if not self._names[j]]
        self.columns = tuple(self._names[j] for j in self._score_columns)
        self.unnamed = len(self._unnamed)
        if not self.columns:
            raise ResponsesError(f"{path}, line 1: no column of scores after {self.corner!r}; expected at least one id")

    def __iter__(self) -> Iterator[MatrixRow]:
        first_lines: dict[str, int] = {}
        for line, row in self._rows:
            row_id = self._checked_id(f"{self.path}, line {line}", row)
            if first_lines.setdefault(row_id, line) != line:
                raise ResponsesError(
                    f"{self.path}, line {line}: duplicate {row_id!r}, also in line {first_lines[row_id]}; rename or "
                    "drop one"
                )
            if self._unnamed:
                cells = [row[j] for j in self._score_columns]
            else:
                cells = row[self._score_columns[0] :]
            yield MatrixRow(line, row_id, row[self._run_column].strip() or row_id, cells)
        if not first_lines:
            raise ResponsesError(f"{self.path}: a header and no rows; expected a row for each item or subject")

    def bad_cell(self, row: MatrixRow, cells: Cells) -> ResponsesError:
        """Return the error for the first cell of a row that is not a score."""
        # Searched only after a failure: rows without a fault are converted as a whole.
        name = text = ""
        for column, cell in zip(self.columns, row.cells, strict=True):
            try:
                cells[cell]
            except ValueError:
                name, text = column, cell
                break
        return ResponsesError(
            f"{self.path}, line {row.line}, column {name!r}: found {text!r:.80}, expected a score in [0, 1]; if it is "
            "missing, leave the cell empty or write NA, nan, None or null"
        )

    def _checked_id(self, where: str, row: list[str]) -> str:
        """Return the id of a row after checking its length and its cells in columns without a name."""
        if len(row) == len(self._names) + 1 and not row[-1].strip():
            row.pop()  # rows that end with a comma
        check_faults(self._row_faults(where, row), error=ResponsesError)
        return row[0].strip()

    def _row_faults(self, where: str, row: Sequence[str]) -> Iterator[str]:
        identity = row[0].strip()
        if len(row) != len(self._names):
            yield f"{where} ({identity!r}): {len(row)} cells, expected {len(self._names)} as in the header"
        if not identity:
            yield f"{where}: the first cell is empty, expected an id"
        for j in self._unnamed:
            if row[j].strip():
                yield f"{where}, column {j + 1}: {row[j]!r} under an empty header; name the column"


def _header_faults(path: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield why the names of columns do not make a matrix."""
    if not names:
        yield f"{path}: empty; expected a header with ids and a row for each item or subject"
    if len(names) == 1:
        separator = next((mark for mark in ("\t", ";", "|") if mark in names[0]), None)
        if separator:
            fix = f", not by {separator!r}: write the file with commas"
        else:
            fix = ""
        yield (
            f"{path}, line 1: one column, {names[0]!r:.80}; expected ids in the first and scores in more, separated by "
            f"commas{fix}"
        )
    words = {name.lower() for name in names}
    if "score" in words and words & set(SUBJECT_WORDS) and words & set(ITEM_WORDS):
        fix = "pivot the table to one row per subject and one column per item"
        if "format" in words:
            fix = "these are responses in formats: calibrate with --formats m2 or m3, or give a matrix of one format"
        yield f"{path}, line 1: {','.join(names)!r:.80} heads one row per answer, not a matrix; {fix}"
    first: dict[str, int] = {}
    for position, name in enumerate(names[1:], 2):
        if name and first.setdefault(name, position) != position:
            yield f"{path}, line 1: {name!r} heads columns {first[name]} and {position}; make the names unique"
