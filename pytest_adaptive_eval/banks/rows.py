"""Records of foreign files: JSON lines, JSON, CSV, TSV, .xlsx, parquet, arrow and texts, in bounded memory.

The content says the form, whatever the file is called; the name decides between forms that look alike.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.checks import unique_keys
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular, read_regular, reading, unpacked
from pytest_adaptive_eval.tables import FILE_LIMIT, read_lines, read_rows

#: Endings of data files; ``.gz`` may follow.
SUFFIXES = (".jsonl", ".csv", ".tsv", ".ndjson", ".json", ".parquet", ".arrow", ".xlsx")
#: Upper limits: bytes of a file that is read whole, unpacked; entries of JSON in it, each an object in memory; rows of
#: a parquet file, and bytes of one column chunk of it, unpacked.
WHOLE_LIMIT, _ENTRY_LIMIT, _ROW_LIMIT, _CHUNK_LIMIT = 96 << 20, 2_000_000, 50_000_000, 128 << 20
#: Bytes that a batch of rows may take unpacked; columns of a table; characters of one record of JSON lines.
_BATCH_LIMIT, _COLUMN_LIMIT, _LINE_LIMIT = 32 << 20, 10_000, 48 << 20
#: Upper limit of rows unpacked together; a text that repeats is stored once and unpacked often.
_BATCH = 64
#: Files that are not read, with the way to a form that is.
_OTHER_FORMS = {
    (
        ".tar",
        ".tgz",
        ".zip",
        ".7z",
        ".rar",
        ".bz2",
        ".xz",
    ): "is an archive; unpack it, and give the file or folder in it",
    (".yaml", ".yml"): "is YAML; write its records as JSON, as `yq -o=json` does",
    (".xml", ".html"): "is a text with marks; write its records as JSON lines",
}
#: Lists of plain values, within a list or one in a line.
_ARRAYS = re.compile(r'\s*\[\s*\[\s*(?:"|[-\d])|\s*\[\s*(?:"(?:\\.|[^"\\])*"|[-\d.]+)\s*,[^\n]*\]\s*\n\s*\[')
#: Records in all splits of a file below which these are no data sets.
_FEW = 20
#: Where an archive of tar has its mark, and a cell that is not the name of a column.
_TAR = slice(250, 270)
NO_NAME = re.compile(r"\A\s*-?[\d.,]+\s*\Z|[?？.]\s*\Z|.{60}|(?:\S+\s+){6}")
_NEVER_OPENED = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".npz", ".bin")
#: Sizes of compressed buffers in arrow data, each before a frame of zstandard or LZ4, or a frame to skip.
_COMPRESSED = re.compile(rb"\0\0\0(?:\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|[\x50-\x5f]\x2a\x4d\x18)", re.DOTALL)


class TableRecord(NamedTuple):
    """One record of a file.

    Args:
        where: File and line, row or key, for messages.
        data: Fields; plain ones of objects around it are included where it has none of that name. A value that is not
            an object is under ``value``.
        names: ``key``, ``value``, ``parent``, ``outer`` (the entry that encloses the record), ``file``, ``folder``,
            ``set`` and ``line``, for expressions; ``refused`` is the reason why an importer cannot use the record.
    """

    where: str
    data: Mapping[str, Any]
    names: Mapping[str, Any]


class SeveralRows(ResponsesError):
    """Records in several places, where one is needed.

    Args:
        places: Values of the setting ``rows``, the usual one first.
    """

    def __init__(self, path: Path, places: Sequence[str]) -> None:
        self.problem = f"{path}: it has the splits {', '.join(places)}"
        self.places = places
        super().__init__(f"{self.problem}; give --set rows={places[0]}, or another one")


def stem_of(path: Path) -> str:
    """Return a data file's name without its endings."""
    name = re.sub(r"(?i)\.gz\Z", "", path.name)
    for suffix in SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def suffix_of(path: Path) -> str:
    """Return the ending that says a data file's form; empty for other files."""
    name = path.name.lower().removesuffix(".gz")
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    return ""


SPLITS = "test|testmini|validation|valid|val|dev|train|eval|all"
_SPLIT_NAMES = SPLITS.split("|")
_GENERAL_NAME = re.compile(
    rf"(?i)({SPLITS}|data|task|samples?|questions?|items?|examples?|dataset|hf|arrow|tests|default|main|none|part|first|input_data|"
    r"jsonl?|csv|problems?|benchmark|\d+|of)"
)


def set_of(path: Path) -> str:
    """Return the name of the data set in a file: the file's name without its split, or that of a folder above."""
    for name in (stem_of(path), *(folder.name for folder in list(path.absolute().parents)[:4])):
        words = [word for word in re.split(r"[\s_.-]+", re.sub(r"(?i)-\d+-of-\d+|first\d+", "", name)) if word]
        without_split = []
        for word in words:
            if not re.fullmatch(SPLITS, word, re.IGNORECASE):
                without_split.append(word)
        if without_split and not all(_GENERAL_NAME.fullmatch(word) for word in without_split):
            return "_".join(without_split)
    return stem_of(path)


def read_records(
    path: Path, rows: str = "", header: Sequence[str] = (), *, short_rows: bool = False
) -> Iterator[TableRecord]:
    """Yield the records of a file.

    Args:
        path: ``.gz`` may follow its ending.
        rows: Place of the records in nested data, such as ``data[*].paragraphs[*].qas[*]`` or ``*.qa_pairs[*]``. Empty:
            a list, the deepest list of objects, columns, or the entries of an object by their keys.
        header: Names of the columns of a table without a header.
        short_rows: Whether a row of a table with tabulators may lack empty cells at its end.

    Raises:
        ResponsesError: Unreadable, a pickle, or larger than the limits; the message names file and line.
    """
    about = {"file": stem_of(path), "folder": path.absolute().parent.name, "set": set_of(path)}
    with reading(path, ResponsesError):
        for record in _records(path, rows, header, short_rows=short_rows):
            yield record._replace(names={**about, **record.names})


def without_nan(value: Any) -> Any:
    """Return a value with None for each NaN, which tables have for missing values."""
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return list(map(without_nan, value))
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _records(path: Path, rows: str, header: Sequence[str], *, short_rows: bool) -> Iterator[TableRecord]:
    suffix = suffix_of(path)
    if path.name.lower().endswith(_NEVER_OPENED):
        raise ResponsesError(
            f"{path} is a pickle or an array file, which can run any code when opened, so it is never opened; write "
            "the data as JSON lines"
        )
    start = head(path, 1 << 20)
    refuse_other_form(path, start)
    is_table = suffix in (".csv", ".tsv", ".xlsx")
    is_lines = _are_json_lines(start, suffix)
    is_json = not is_lines and (suffix == ".json" or (not suffix and start.lstrip()[:1] in ("{", "[")))
    if _ARRAYS.match(start) or (is_json and header):
        yield from _array_records(path, rows, header)
        return
    if is_json:
        yield from _json_records(path, rows)
        return
    if is_lines:
        records = json_lines(path)
    elif suffix in (".parquet", ".arrow") or start.startswith(("PAR1", "ARROW1", "\ufffd" * 4)):
        records = _columnar(path)
    elif is_table or "\t" in start.partition("\n")[0]:
        records = _table(path, header, "" if is_table else "\t", short_rows=short_rows)
    else:
        records = _text_lines(path)
    for record in records:
        yield from within(record, rows) if rows else (record,)


def refuse_other_form(path: Path, start: str) -> None:
    """Raise a ResponsesError for an archive, YAML or XML, by its name or its first characters."""
    name = path.name.lower().removesuffix(".gz")
    forms = [how for endings, how in _OTHER_FORMS.items() if name.endswith(endings)]
    if "ustar" in start[_TAR]:
        forms += _OTHER_FORMS.values()
    if forms:
        raise ResponsesError(f"{path} {forms[0]}")


def arrays_of(path: Path, rows: str = "") -> Iterator[tuple[int, list[Any]]]:
    """Yield the number and the values of each record that is a list of values."""
    start = head(path)
    if _ARRAYS.match(start) and not re.match(r"\s*\[\s*\[", start):
        lists = (load_json(line, f"{path}, line {n}") for n, line in enumerate(read_lines(path), 1) if line.strip())
    else:
        lists = (record.names["value"] for record in _json_records(path, rows))
    for number, values in enumerate(lists, 1):
        if not isinstance(values, list):
            raise ResponsesError(
                f"{path}, record {number}: found {type(values).__name__}, expected a list as a header has names for"
            )
        yield number, values


def _array_records(path: Path, rows: str, header: Sequence[str]) -> Iterator[TableRecord]:
    """Yield records that are lists of values, under the names of a header or of the first list."""
    names = list(header)
    for number, values in arrays_of(path, rows):
        where = f"{path}, record {number}"
        if not names:
            names = list(map(str, values))
            if any(map(NO_NAME.search, names)):
                raise ResponsesError(f"{where}: its values have no names; give --set header=NAME,NAME, one for each")
            continue
        if len(values) != len(names):
            raise ResponsesError(f"{where}: {len(values)} values, expected {len(names)} as in the header")
        data = dict(zip(names, values, strict=True))
        yield TableRecord(where, data, {"line": number, "key": "", "value": data})


def _first_bytes(path: Path, count: int) -> bytes:
    """Return the first bytes of a file, unpacked where it is gzipped; raise ResponsesError for a broken archive."""
    with open_regular(path) as raw, unpacked(raw, path) as stream:
        try:
            data: bytes = stream.read(count)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ResponsesError(f"{path}: the archive is broken ({error}); copy it again") from None
    return data


def _are_json_lines(start: str, suffix: str) -> bool:
    """Return whether a file is named as JSON lines, or begins with an object in a line and more after it."""
    if suffix not in ("", ".json"):
        return suffix in (".jsonl", ".ndjson")
    first, _, rest = start.lstrip().partition("\n")
    try:
        return bool(rest.strip()) and isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def json_lines(path: Path) -> Iterator[TableRecord]:
    """Yield the object of each line of a JSON lines file."""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        if len(line) > _LINE_LIMIT:
            raise ResponsesError(f"{where}: {len(line)} characters, at most {_LINE_LIMIT} are read; split the file")
        _check_entries(line, where)
        data = load_json(line, where)
        if not isinstance(data, dict):
            raise ResponsesError(f"{where}: found {type(data).__name__}, expected one JSON object a line")
        yield TableRecord(where, data, {"line": number, "key": "", "value": data})


def load_json(text: str | bytes, where: str) -> Any:
    """Parse JSON.  NaN, which tools write for no value, is None."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ResponsesError(f"{where}: not JSON ({error}); copy or write the file again") from None


def _check_entries(text: str, where: str) -> None:
    """Refuse JSON that would take too much memory: each entry is an object."""
    if len(text) > _ENTRY_LIMIT and sum(map(text.count, "[{,")) > _ENTRY_LIMIT:
        raise ResponsesError(f"{where}: more than {_ENTRY_LIMIT} values; write it as JSON lines, a record each")


def _constant(name: str) -> float | None:
    if name == "NaN":
        return None
    return float(name)


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys, parse_constant=_constant)


def load_file(path: Path) -> Any:
    """Parse a JSON file of a bounded size."""
    if (size := path.stat().st_size) > FILE_LIMIT:
        raise ResponsesError(f"{path}: {size} bytes, at most {FILE_LIMIT} are read; split the file")
    return load_json(read_regular(path), str(path))


def head(path: Path, size: int = 65_536) -> str:
    """Return the first `size` bytes of a file, unpacked, as text."""
    return _first_bytes(path, size).decode("utf-8-sig", "replace")


def first_keys(path: Path) -> frozenset[str]:
    """Return the keys of the first object of a JSON lines file; empty for any other."""
    if suffix_of(path) != ".jsonl":
        return frozenset()
    try:
        return frozenset(key for row in itertools.islice(json_lines(path), 1) for key in row.data)
    except ResponsesError:  # the reader that is named in the settings gives the error
        return frozenset()


def read_bounded(path: Path) -> bytes:
    """Return the bytes of a file, unpacked where it is gzipped; refuse more than `WHOLE_LIMIT`, or a broken archive."""
    data = _first_bytes(path, WHOLE_LIMIT + 1)
    if len(data) > WHOLE_LIMIT:
        raise ResponsesError(
            f"{path}: more than {WHOLE_LIMIT} bytes unpacked, which are read whole; write it as JSON lines"
        )
    return data


def _json_records(path: Path, rows: str) -> Iterator[TableRecord]:
    try:
        text = read_bounded(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ResponsesError(
            f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8"
        ) from None
    _check_entries(text, str(path))
    parsed = _by_rows(load_json(text, str(path)))
    whole = TableRecord(str(path), {}, {"line": 1, "key": "", "value": parsed})
    yield from within(whole, rows or ("[*]" if isinstance(parsed, list) else _found_rows(parsed, path)))


def _by_rows(parsed: Any) -> Any:
    """Return records of a table that has an object for each column, as pandas writes it; other data unchanged."""
    if isinstance(parsed, Mapping):
        columns = list(parsed.values())
    else:
        columns = []
    if not columns or not all(isinstance(column, Mapping) for column in columns):
        return parsed
    numbers = list(map(str, range(len(columns[0]))))
    if len(numbers) < 2 or any(list(column) != numbers for column in columns):
        return parsed
    return [
        dict(zip(parsed, cells, strict=True)) for cells in zip(*(column.values() for column in columns), strict=True)
    ]


def _found_rows(parsed: Any, path: Path) -> str:
    """Return the place of the records in an object: its largest list, the lists of one kind, or its entries."""
    if not isinstance(parsed, dict) or not parsed:
        raise ResponsesError(f"{path}: found {type(parsed).__name__}, expected records in a list or an object")
    lists = {}
    splits = {}
    for key, value in parsed.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lists[key] = value
        if isinstance(value, list) and value and key in _SPLIT_NAMES and isinstance(value[0], dict | list):
            splits[key] = value
    count = sum(map(len, splits.values()))
    if len(splits) > 1 and count < _FEW:
        raise ResponsesError(
            f"{path}: the splits {', '.join(splits)} have {count} records, as where some are examples for the others; "
            "write a line of JSON for each question, with its examples and its answer, or give --set rows=NAME"
        )
    if len(splits) > 1:
        raise SeveralRows(path, sorted(splits, key=_SPLIT_NAMES.index))
    if len(lists) > 1 and set.intersection(*(set(value[0]) for value in lists.values())):
        return "*.[*]"
    if lists:
        return f'"{max(lists, key=lambda name: len(lists[name]))}"'
    tables = [key for key, value in parsed.items() if _is_table(value)]
    if len(tables) == 1 < len(parsed):
        return json.dumps(tables[0])
    return "*"


def _is_table(value: Any) -> bool:
    """Return whether a value is an object of objects with the same keys."""
    if not isinstance(value, Mapping) or len(value) < 2:
        return False
    keys = [tuple(entry) if isinstance(entry, Mapping) else () for entry in value.values()]
    return bool(keys[0]) and len(set(keys)) == 1


#: Steps of a place: a quoted name, all entries, one entry, a comma, or a name.
_STEP = re.compile(r'"[^"]+"|\[\*\]|\[\d+\]|,|[^.\[\]",]+')


def within(record: TableRecord, rows: str) -> Iterator[TableRecord]:
    """Yield the records at a place in a record, with the plain fields of what is around them."""
    steps = _STEP.findall(rows)
    if "".join(steps) != rows.replace(".", ""):
        raise ResponsesError(f"rows {rows!r:.80} is not understood; expected names, [*], [0] and *, joined by points")
    if "," in steps:
        lists = steps.index(",") - 1
        outer: Iterable[TableRecord] = (record,)
        if lists:
            outer = within(record, "".join(steps[:lists]))
        for each in outer:
            yield from _side_by_side(each, [step.strip('"') for step in steps[lists:] if step != ","])
        return
    value = record.names["value"]
    yield from _descend(record._replace(data={}, names={**record.names, "parent": value}), value, steps, "")


def _side_by_side(record: TableRecord, keys: Sequence[str]) -> Iterator[TableRecord]:
    """Yield the entries of lists of one length, each under the name of its list."""
    value = record.names["value"]
    fields = record.data
    if isinstance(value, Mapping):
        fields = {**value, **fields}
    lists = [fields[key] for key in keys if isinstance(fields.get(key), list)]
    if len(lists) < len(keys) or len(set(map(len, lists))) > 1:
        raise ResponsesError(f"{record.where}: {', '.join(keys)} at rows are not lists of one length")
    for number, entries in enumerate(zip(*lists, strict=True), 1):
        data = {**fields, **dict(zip(keys, entries, strict=True))}
        names = {**record.names, "value": data, "parent": fields}
        yield TableRecord(f"{record.where}, record {number}", data, names)


def _descend(record: TableRecord, value: Any, steps: Sequence[str], last: str) -> Iterator[TableRecord]:
    """Yield the records at the end of steps from a value, which the step `last` reached.

    The entries of a list are its records, but for plain values in a list of lists. So are the entries of an object that
    a name reached.
    """
    is_name = last[-1:] not in "*]"
    holds_records = isinstance(value, list) and (is_name or isinstance(next(iter(value), None), list | Mapping))
    if not steps and holds_records and last not in ("", "*"):
        steps = ["[*]"]
    elif not steps and isinstance(value, Mapping) and is_name:
        steps = ["*"]
    if not steps:
        if isinstance(value, Mapping):
            fields = value
        else:
            fields = {"value": value}
        yield record._replace(data={**record.data, **fields}, names={**record.names, "value": value})
    elif steps[0] in ("[*]", "*"):
        yield from _each_entry(record, value, steps)
    else:
        part = _part(record, value, steps[0])
        if part is not None:
            yield from _descend(*part, steps[1:], steps[0])


def _each_entry(record: TableRecord, value: Any, steps: Sequence[str]) -> Iterator[TableRecord]:
    """Yield the records within each entry of a list, or of an object with its keys."""
    step = steps[0]
    rest = steps[1:]
    if isinstance(value, list):
        # an object of each entry of a list has the records
        rest = steps if step == "*" else rest
        entries = ((f"record {number}", record.names["key"], entry) for number, entry in enumerate(value, 1))
    elif isinstance(value, Mapping) and step == "*":
        are_lists = rest[:1] == ["[*]"]  # other entries are about the lists
        named_entries = {key: entry for key, entry in value.items() if not are_lists or isinstance(entry, list)}
        entries = ((f"key {key!r:.60}", key, entry) for key, entry in named_entries.items())
    else:
        word = "a list" if step == "[*]" else "an object"
        raise ResponsesError(f"{record.where}: found {type(value).__name__} at rows, expected {word}")
    for number, (label, key, entry) in enumerate(entries, 1):
        names = {**record.names, "line": number, "key": key}
        if rest:
            names["outer"] = entry
        inner = record._replace(where=f"{record.where}, {label}", names=names)
        yield from _descend(inner, entry, rest, "[*]" if isinstance(value, list) else step)


def _part(record: TableRecord, value: Any, step: str) -> tuple[TableRecord, Any] | None:
    """Return the part of a value with a name or a number, and the record with the plain fields around it.

    None stands for an optional part of one of several records.
    """
    if step[0] == "[" and isinstance(value, list):
        part = value[int(step[1:-1]) :][:1]
        if part:
            return (record, part[0])
        return None
    name = step.strip('"')
    if isinstance(value, Mapping):
        fields = value
    else:
        fields = {}
    inner = fields.get(name)
    if isinstance(inner, list | Mapping) and inner:
        outer_fields = {}
        for key, entry in fields.items():
            is_split = isinstance(entry, list) and key in _SPLIT_NAMES
            if key != name and not (is_split or _is_long(entry)):
                outer_fields[key] = entry
        return record._replace(data={**record.data, **outer_fields}), inner
    if record.data or inner == []:
        return None
    keys = ", ".join(map(repr, list(fields)[:8])) or type(value).__name__
    raise ResponsesError(f"{record.where}: nothing at rows {name!r:.80}; expected a list or an object; it has {keys}")


def _is_long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 50


def _table(path: Path, header: Sequence[str], separator: str = "", *, short_rows: bool) -> Iterator[TableRecord]:
    """Yield the rows of a table; an empty cell is missing."""
    separator = separator or _separator(path)
    names = list(header)
    for line, cells in read_rows(path, separator):
        where = f"{path}, line {line}"
        if len(cells) > _COLUMN_LIMIT:
            raise ResponsesError(f"{where}: {len(cells)} cells, at most {_COLUMN_LIMIT} are read; check the separator")
        if not names:
            names = _column_names(cells, where)
            continue
        short = len(cells) < len(names) and not (short_rows and separator == "\t")
        if short or any(cells[len(names) :]):
            raise ResponsesError(f"{where}: {len(cells)} cells, expected {len(names)} as in the header")
        data = {}
        for name, cell in zip(names, cells, strict=False):
            if cell != "":
                data[name] = cell
        yield TableRecord(where, data, {"line": line, "key": "", "value": data})


#: What separates the cells of a table by its ending, the usual mark first.
_SEPARATORS = {".csv": ",\t;", ".tsv": "\t;"}


def _separator(path: Path) -> str:
    """Return what separates the cells of a table, as its name or its first line says; empty for a workbook."""
    marks = _SEPARATORS.get(suffix_of(path), "")
    if not marks:
        return ""
    first = next(read_lines(path), "")
    return next((mark for mark in marks if mark in first), marks[0])


def _column_names(cells: list[str], where: str) -> list[str]:
    """Return the names in a table's header; refuse duplicates."""
    names = []
    for number, cell in enumerate(cells, 1):
        names.append(cell.strip() or f"column {number}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ResponsesError(f"{where}: {twice!r:.60} is the name of two columns; rename one of them")
    return names


def _text_lines(path: Path) -> Iterator[TableRecord]:
    """Yield a record per line of a text, with the line as its value."""
    for number, line in enumerate(read_lines(path), 1):
        value = line.rstrip("\r\n")
        yield TableRecord(f"{path}, line {number}", {"value": value}, {"line": number, "key": "", "value": value})


def _columnar(path: Path) -> Iterator[TableRecord]:
    """Yield the rows of a parquet file, or of an arrow stream or file, such as ``datasets`` saves to disk."""
    try:
        import pyarrow
    except ImportError:
        raise ResponsesError(
            f"{path}: pyarrow is needed to read it; pip install 'pytest-adaptive-eval[parquet]', or save it as JSON "
            "lines"
        ) from None
    is_parquet = suffix_of(path) == ".parquet" or _first_bytes(path, 4) == b"PAR1"
    form, batches_of = ("parquet", _parquet_batches) if is_parquet else ("arrow", _arrow_batches)
    try:
        with open_regular(path) as file:
            metadata, batches = batches_of(path, file)
            yield from _batches(path, batches, metadata)
    except (pyarrow.ArrowException, ValueError, OverflowError, OSError, MemoryError) as error:
        raise ResponsesError(f"{path}: not a readable {form} file ({error!s:.200}); copy it again") from None


def _parquet_batches(path: Path, file: Any) -> tuple[Any, Iterator[Any]]:
    """Return the metadata and the batches of a parquet file, each of a bounded size."""
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file)
    about = table.metadata
    chunks = (about.row_group(g).column(c) for g in range(about.num_row_groups) for c in range(about.num_columns))
    largest = max((chunk.total_uncompressed_size for chunk in chunks), default=0)
    if about.num_rows > _ROW_LIMIT or largest > _CHUNK_LIMIT:
        raise ResponsesError(
            f"{path}: declares {about.num_rows} rows and {largest} bytes in a column chunk, at most {_ROW_LIMIT} "
            f"and {_CHUNK_LIMIT} are read; split the file"
        )
    size = max(1, min(_BATCH, _BATCH_LIMIT // max(1, largest)))
    return table.schema_arrow.metadata, table.iter_batches(batch_size=size, use_threads=False)


def _arrow_batches(path: Path, _file: Any) -> tuple[Any, Iterator[Any]]:
    """Return the metadata and slices of the batches of an arrow file or stream."""
    from pyarrow.ipc import open_file, open_stream

    data = read_bounded(path)
    if _COMPRESSED.search(data):
        raise ResponsesError(f"{path}: its buffers are compressed, and their sizes unknown; write it as parquet")
    is_file = data.startswith(b"ARROW1")
    reader = (open_file if is_file else open_stream)(io.BytesIO(data))
    if is_file:
        batches = map(reader.get_batch, range(reader.num_record_batches))
    else:
        batches = reader
    return reader.schema.metadata, (part for batch in batches for part in _slices(batch))


def _slices(batch: Any) -> Iterator[Any]:
    """Yield the rows of a batch, few at a time, and one where a value is stored once for many rows."""
    if any(str(column.type).startswith("dictionary") for column in batch.columns):
        size = 1
    else:
        size = _BATCH
    return map(batch.slice, range(0, batch.num_rows, size), itertools.repeat(size))


def _class_names(metadata: Any) -> dict[str, list[str]]:
    """Return the names of the classes of each column, which Hugging Face data sets store beside their numbers."""
    try:
        features = json.loads((metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        return {name: list(map(str, about["names"])) for name, about in features.items() if "names" in about}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def class_name(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a class, None for a number that has none, such as -1 of a hidden label."""
    if isinstance(value, int):
        if 0 <= value < len(names):
            return names[value]
        return None
    return value


def _batches(path: Path, batches: Iterator[Any], metadata: Any) -> Iterator[TableRecord]:
    """Yield the rows of batches, with the names of classes in place of their numbers."""
    number = 0
    classes = _class_names(metadata)
    for batch in batches:
        if batch.num_columns == 0:
            raise ResponsesError(f"{path}: it has no columns; expected questions and answers")
        for row in batch.to_pylist():
            number += 1
            data = without_nan({key: class_name(v, classes[key]) if key in classes else v for key, v in row.items()})
            yield TableRecord(f"{path}, row {number}", data, {"line": number, "key": "", "value": data})
