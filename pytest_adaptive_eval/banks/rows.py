"""Rows of foreign files: JSON lines, JSON, CSV, TSV and parquet, in bounded memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.expressions import parse_expression
from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular, read_regular
from pytest_adaptive_eval.tables import FILE_LIMIT, csv_rows, read_lines

__all__ = ["SUFFIXES", "Row", "first_keys", "head", "json_lines", "load_file", "load_json", "read_records"]

#: Endings of files whose rows are read; the first three may be gzipped.
SUFFIXES = (".jsonl", ".csv", ".tsv", ".ndjson", ".json", ".parquet")
#: Upper limits of a parquet file: rows, and bytes of one column chunk unpacked.
_ROW_LIMIT, _CHUNK_LIMIT = 50_000_000, 2**28
#: Rows of a parquet file that are unpacked together; repeated texts are stored once and unpacked often.
_BATCH = 64


class Row(NamedTuple):
    """One record of a file.

    Parameters
    ----------
    where : str
        File and line, or file and key, for messages.
    record : mapping
        The record; empty where it is not an object.
    names : mapping
        ``key``, ``value``, ``file``, ``folder``, ``line`` and, within another record, ``parent``, for expressions.
    """

    where: str
    record: Mapping[str, Any]
    names: Mapping[str, Any]


def read_records(path: Path, rows: str = "") -> Iterator[Row]:
    """Yield the records of a file.

    Parameters
    ----------
    path : Path
        Its suffix tells the form; ``.gz`` may follow.
    rows : str
        Expression for the records within a JSON file, or within each record of another.  By default they are the
        entries of a list, or of the only list of objects in an object, or the entries of an object by their keys.

    Raises
    ------
    ResponsesError
        Unreadable or larger than the limits; the message names file and line.
    ConfigError
        The expression is malformed.
    """
    about = {"file": _stem(path), "folder": path.absolute().parent.name}
    for row in _records(path, whole=bool(rows)):
        found = _within(row, rows, about) if rows else (row,)
        for each in found:
            yield each._replace(names={**about, **each.names})


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return next((name[: -len(suffix)] for suffix in SUFFIXES if name.lower().endswith(suffix)), name)


def _records(path: Path, *, whole: bool) -> Iterator[Row]:
    """Yield the records of a file; with `whole`, a JSON file is one record."""
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".json"):
        yield from _json_records(path, whole=whole)
        return
    if name.endswith((".jsonl", ".ndjson")):
        places = json_lines(path)
    elif name.endswith((".csv", ".tsv")):
        places = _table_rows(path, "\t" if name.endswith(".tsv") else ",")
    elif name.endswith(".parquet"):
        places = _parquet_rows(path)
    else:
        raise ResponsesError(f"{path}: its rows are not read; expected a file of {', '.join(SUFFIXES)}")
    for where, record in places:
        yield Row(where, record, {"line": where.rpartition(" ")[2], "value": record})


def _within(row: Row, rows: str, about: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the records that an expression reaches in a record."""
    names = {**about, **row.names, "parent": row.names["value"]}
    found = parse_expression(rows, "rows")(names["value"], names)
    if isinstance(found, list) and found and all(isinstance(entry, list) for entry in found):
        found = [entry for entries in found for entry in entries]
    if not isinstance(found, list | Mapping) or not found:
        keys = ", ".join(map(repr, list(row.record)[:8])) or type(names["value"]).__name__
        raise ResponsesError(f"{row.where}: nothing at rows {rows!r:.80}; expected a list or an object; it has {keys}")
    for entry in _entries(row.where, found):
        yield entry._replace(names={**names, **entry.names})


def _entries(where: str, records: Any) -> Iterator[Row]:
    """Yield the entries of a list, or of an object by their keys."""
    pairs = records.items() if isinstance(records, Mapping) else enumerate(records, 1)
    for place, (key, entry) in enumerate(pairs, 1):
        at = f"key {key!r:.60}" if isinstance(key, str) else f"record {key}"
        names = {"key": str(key), "value": entry, "line": str(place)}
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
    values = list(data.values())
    lists = {key: value for key, value in data.items() if isinstance(value, list) and value}
    objects = {key: value for key, value in lists.items() if isinstance(value[0], dict)}
    if len(lists) == len(data) > 1 and len({len(value) for value in values}) == 1 and not objects:
        yield from _entries(where, [dict(zip(lists, cells, strict=True)) for cells in zip(*values, strict=True)])
    elif len(objects) == 1:
        key, records = next(iter(objects.items()))
        for row in _entries(f"{where}, {key}", records):
            yield row._replace(names={**row.names, "parent": data})
    elif all(isinstance(value, dict) for value in values) and _is_columns(values):
        keys = list(values[0])
        yield from _entries(where, {key: {name: column[key] for name, column in data.items()} for key in keys})
    else:
        yield from _entries(where, data)


def _is_columns(values: list[dict[str, Any]]) -> bool:
    """Return whether objects are the columns of a data frame: the same numbers as keys, and plain values."""
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
                header = _header(cells, where)
                continue
            if len(cells) != len(header):
                raise ResponsesError(f"{where}: {len(cells)} cells, expected {len(header)} as in the header")
            yield where, {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
    except csv.Error as error:
        raise ResponsesError(f"{path}, line {reader.line_num}: {error}; save the table anew") from None


def _header(cells: list[str], where: str) -> list[str]:
    names = [cell.strip() or f"column {place}" for place, cell in enumerate(cells, 1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ResponsesError(f"{where}: {twice!r:.60} heads two columns; give each a name of its own")
    return names


def _parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ResponsesError(
            f"{path}: pyarrow is needed to read it; pip install 'pytest-adaptive-eval[parquet]', or save it as JSON "
            "lines"
        ) from None
    try:
        with open_regular(path) as file:
            table = parquet.ParquetFile(file)
            _check_parquet(path, table.metadata)
            number = 0
            for batch in table.iter_batches(batch_size=_BATCH, use_threads=False):
                for record in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", record
    except (ArrowException, ValueError, OverflowError) as error:
        raise ResponsesError(f"{path}: not a readable parquet file ({error!s:.200}); copy it anew") from None


def _check_parquet(path: Path, about: Any) -> None:
    """Refuse a file whose declared sizes are above the limits."""
    chunks = (
        about.row_group(group).column(column).total_uncompressed_size
        for group in range(about.num_row_groups)
        for column in range(about.num_columns)
    )
    largest = max(chunks, default=0)
    if about.num_rows > _ROW_LIMIT or largest > _CHUNK_LIMIT:
        raise ResponsesError(
            f"{path}: {about.num_rows} rows and {largest} bytes in a column chunk, at most {_ROW_LIMIT} and "
            f"{_CHUNK_LIMIT} are read; split the file"
        )


# --- JSON ------------------------------------------------------------------------------------------------------------


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
    """Return the keys of the first object of a JSON lines file; none if the file has another suffix or content.

    Parameters
    ----------
    path : Path
    named : bool
        Whether the suffix must be ``.jsonl``.
    """
    if named and not path.name.removesuffix(".gz").lower().endswith(".jsonl"):
        return frozenset()
    try:
        first = next((line for line in read_lines(path) if line.strip()), "null")
        data = load_json(first, str(path))
    except ResponsesError:  # the reader that is named in the settings gives the error
        return frozenset()
    return frozenset(data) if isinstance(data, dict) else frozenset()
