"""Rows of foreign files: JSON lines, JSON, CSV, TSV and parquet, in bounded memory."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular, read_regular
from pytest_adaptive_eval.tables import FILE_LIMIT, csv_rows, read_lines

#: Endings of files whose rows are read; ``.gz`` may follow those of texts.
SUFFIXES = (".jsonl", ".csv", ".tsv", ".ndjson", ".json", ".parquet")
#: Upper limits of a parquet file: rows, and bytes of one column chunk unpacked.
_ROW_LIMIT, _CHUNK_LIMIT = 50_000_000, 2**28
#: Rows of a parquet file that are unpacked together; repeated texts are stored once and unpacked often.
_BATCH = 64


class Row(NamedTuple):
    """One record of a file.

    Args:
        where: File and line, or file and key, for messages.
        record: The record; empty where it is not an object.
        names: ``key``, ``value``, ``file``, ``folder``, ``line`` and, within another record, ``parent``, for
            expressions.
    """

    where: str
    record: Mapping[str, Any]
    names: Mapping[str, Any]


def read_records(path: Path, rows: str = "") -> Iterator[Row]:
    """Yield the records of a file.

    Args:
        path: Its suffix tells the form; ``.gz`` may follow.
        rows: Expression for the records within a JSON file, or within each record of another. By default they are the
            entries of a list, or of the only list of objects in an object, or the entries of an object by their keys.

    Raises:
        ResponsesError: Unreadable or larger than the limits; the message names file and line.
        ConfigError: The expression is malformed.
    """
    about = {"file": stem_of(path), "folder": path.absolute().parent.name}
    for row in _records(path, whole=bool(rows)):
        for each in _within(row, rows, about) if rows else (row,):
            yield each._replace(names={**about, **each.names})


def stem_of(path: Path) -> str:
    """Return a data file's name without its endings."""
    name = path.name.removesuffix(".gz")
    endings = (*SUFFIXES, ".arrow")
    return next((name[: -len(suffix)] for suffix in endings if name.lower().endswith(suffix)), name)


def _records(path: Path, *, whole: bool) -> Iterator[Row]:
    """Yield the records of a file; with `whole`, a JSON file is one record."""
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".json"):
        yield from _json_records(path, whole=whole)
        return
    if name.endswith((".jsonl", ".ndjson")):
        records = json_lines(path)
    elif name.endswith((".csv", ".tsv")):
        records = _table_rows(path, "\t" if name.endswith(".tsv") else ",")
    elif name.endswith(".parquet"):
        records = _parquet_rows(path)
    else:
        raise ResponsesError(f"{path}: its rows are not read; expected a file of {', '.join(SUFFIXES)}")
    for where, record in records:
        yield Row(where, record, {"line": where.rpartition(" ")[2], "value": record})


def _within(row: Row, rows: str, about: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the records that an expression reaches in a record."""
    names = {**about, **row.names, "parent": row.names["value"]}
    records = parse_expression(rows, "rows")(names["value"], names)
    if isinstance(records, list) and records and all(isinstance(entry, list) for entry in records):
        records = [entry for entries in records for entry in entries]
    if not isinstance(records, list | Mapping) or not records:
        keys = ", ".join(map(repr, list(row.record)[:8])) or type(names["value"]).__name__
        raise ResponsesError(f"{row.where}: nothing at rows {rows!r:.80}; expected a list or an object; it has {keys}")
    for entry in _entries(row.where, records):
        yield entry._replace(names={**names, **entry.names})


def _entries(where: str, records: Any) -> Iterator[Row]:
    """Yield the entries of a list, or of an object by their keys."""
    pairs = records.items() if isinstance(records, Mapping) else enumerate(records, 1)
    for number, (key, entry) in enumerate(pairs, 1):
        at = f"key {key!r:.60}" if isinstance(key, str) else f"record {key}"
        names = {"key": str(key), "value": entry, "line": str(number)}
        yield Row(f"{where}, {at}", entry if isinstance(entry, Mapping) else {}, names)


def _json_records(path: Path, *, whole: bool) -> Iterator[Row]:
    """Yield the records of a JSON file, or of JSON lines under that name."""
    try:
        data = load_file(path)
    except ResponsesError:
        if not first_keys(path, named=False):
            raise
        for where, record in json_lines(path):
            yield Row(where, record, {"line": where.rpartition(" ")[2], "value": record})
        return
    if whole:
        yield Row(str(path), data if isinstance(data, dict) else {}, {"value": data, "line": "1"})
    else:
        yield from _found_records(data, str(path))


def _found_records(data: Any, where: str) -> Iterator[Row]:
    """Yield the records of parsed JSON: a list, columns, an only list of objects, or an object by its keys."""
    if isinstance(data, list):
        yield from _entries(where, data)
        return
    if not isinstance(data, dict) or not data:
        raise ResponsesError(f"{where}: found {type(data).__name__}, expected records in a list or an object")
    objects = lists_of_objects(data)
    if by_row := rows_of_columns(data):
        yield from _entries(where, by_row)
    elif len(objects) == 1:
        key, records = next(iter(objects.items()))
        for row in _entries(f"{where}, {key}", records):
            yield row._replace(names={**row.names, "parent": data})
    elif _are_columns(values := list(data.values())):
        keys = list(values[0])
        yield from _entries(where, {key: {name: column[key] for name, column in data.items()} for key in keys})
    else:
        yield from _entries(where, data)


def lists_of_objects(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the entries of an object that are lists and begin with an object."""
    lists = {key: value for key, value in data.items() if isinstance(value, list) and value}
    return {key: value for key, value in lists.items() if isinstance(value[0], dict)}


def rows_of_columns(data: Any) -> list[dict[str, Any]]:
    """Return the rows of an object with lists of plain values, of one length, as columns; none for other values."""
    if not isinstance(data, dict) or len(data) < 2 or not all(isinstance(value, list) for value in data.values()):
        return []
    if lists_of_objects(data) or len({len(value) for value in data.values()}) > 1:
        return []
    return [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]


def _are_columns(values: list[Any]) -> bool:
    """Return whether values are columns of a data frame: objects with the same numbers as keys, and plain values."""
    if not all(isinstance(value, dict) for value in values):
        return False
    first = list(values[0])
    return (
        len(values) > 1
        and bool(first)
        and first[0].isdecimal()
        and all(list(value) == first for value in values)
        and not any(isinstance(value[first[0]], dict) for value in values)
    )


def _table_rows(path: Path, separator: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a table with a header; an empty cell is missing."""
    reader = csv_rows(read_lines(path), delimiter=separator, strict=separator == ",")
    header: list[str] = []
    try:
        for cells in reader:
            if not any(cells):
                continue
            where = f"{path}, line {reader.line_num}"
            if not header:
                header = column_names(cells, where)
                continue
            if len(cells) != len(header):
                raise ResponsesError(f"{where}: {len(cells)} cells, expected {len(header)} as in the header")
            yield where, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
    except csv.Error as error:
        raise ResponsesError(f"{path}, line {reader.line_num}: {error}; save the table anew") from None


def column_names(cells: list[str], where: str) -> list[str]:
    """Return the names in a table's header; refuse a name that stands twice."""
    names = [cell.strip() or f"column {number}" for number, cell in enumerate(cells, 1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ResponsesError(f"{where}: {twice!r:.60} heads two columns; give each a name of its own")
    return names


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a parquet file."""
    with open_regular(path) as file, with_pyarrow(path, "parquet") as pyarrow:
        table = pyarrow.parquet.ParquetFile(file)
        check_parquet(path, table.metadata, _ROW_LIMIT, _CHUNK_LIMIT)
        batches = table.iter_batches(batch_size=_BATCH, use_threads=False)
        records = chain.from_iterable(batch.to_pylist() for batch in batches)
        for number, record in enumerate(records, 1):
            yield f"{path}, row {number}", record


@contextlib.contextmanager
def with_pyarrow(path: Path, form: str) -> Iterator[Any]:
    """Import pyarrow for a block that reads a file of a form, and turn its errors into one that names the file."""
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise ResponsesError(
            f"{path}: pyarrow is needed to read it; pip install 'pytest-adaptive-eval[parquet]', or save it as JSON "
            "lines"
        ) from None
    try:
        yield pyarrow
    except (pyarrow.ArrowException, ValueError, OverflowError, OSError, MemoryError) as error:
        raise ResponsesError(f"{path}: not a readable {form} file ({error!s:.200}); copy it anew") from None


def check_parquet(path: Path, about: Any, row_limit: int, chunk_limit: int) -> int:
    """Return the bytes of the largest column chunk, unpacked; refuse a file that declares more than the limits."""
    chunks = (
        about.row_group(group).column(column).total_uncompressed_size
        for group in range(about.num_row_groups)
        for column in range(about.num_columns)
    )
    largest = max(chunks, default=0)
    if about.num_rows > row_limit or largest > chunk_limit:
        raise ResponsesError(
            f"{path}: declares {about.num_rows} rows and {largest} bytes in a column chunk, at most {row_limit} and "
            f"{chunk_limit} are read; split the file"
        )
    return largest


def head(path: Path, size: int = 65_536) -> str:
    """Return the first `size` bytes of a file as text."""
    with open_regular(path) as file:
        return file.read(size).decode("utf-8-sig", "replace")


def load_json(text: str | bytes, where: str) -> Any:
    """Parse JSON.  NaN and Infinity are accepted, since the tools write them."""
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise ResponsesError(f"{where}: not JSON ({error}); copy or write the file anew") from None


def load_file(path: Path) -> Any:
    """Parse a JSON file of a bounded size."""
    if (size := path.stat().st_size) > FILE_LIMIT:
        raise ResponsesError(f"{path}: {size} bytes, at most {FILE_LIMIT} are read; split the file")
    return load_json(read_regular(path), str(path))


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield file and line for messages, and the object, for each line of a JSON lines file."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        data = load_json(line, where)
        if not isinstance(data, dict):
            raise ResponsesError(f"{where}: found {type(data).__name__}, expected one JSON object a line")
        yield where, data


def first_keys(path: Path, *, named: bool = True) -> frozenset[str]:
    """Return the keys of the first object of a JSON lines file, if any; with `named`, of a ``.jsonl`` file alone."""
    if named and not path.name.removesuffix(".gz").lower().endswith(".jsonl"):
        return frozenset()
    try:
        first = next((line for line in read_lines(path) if line.strip()), "null")
        data = load_json(first, str(path))
    except ResponsesError:  # the reader that is named in the settings gives the error
        return frozenset()
    return frozenset(data) if isinstance(data, dict) else frozenset()
