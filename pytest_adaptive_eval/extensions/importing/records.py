"""Records of published data sets: JSON lines, JSON, nested JSON, CSV, TSV, parquet and arrow, in bounded memory."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import math
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.rows import SUFFIXES as ROW_SUFFIXES
from pytest_adaptive_eval.banks.rows import (
    check_parquet,
    column_names,
    lists_of_objects,
    load_json,
    rows_of_columns,
    stem_of,
    with_pyarrow,
)
from pytest_adaptive_eval.errors import DatasetError, ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.tables import csv_rows, read_lines

#: Endings of data files; ``.gz`` may follow.
SUFFIXES = (*ROW_SUFFIXES, ".arrow")
#: Upper limits: bytes of a file that is read whole, unpacked; brackets, commas and colons in it, each an object in
#: memory; bytes of a column chunk or an arrow batch; rows.
WHOLE_LIMIT, MARK_LIMIT, CHUNK_LIMIT, ROW_LIMIT = 96 << 20, 2_000_000, 128 << 20, 5_000_000
#: Bytes that a batch of rows may take unpacked, and columns of a table.
_BATCH_LIMIT, _COLUMN_LIMIT = 32 << 20, 10_000
#: Bytes of one record of JSON lines.
_LINE_LIMIT = 48 << 20
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".npy", ".npz", ".bin")
_MARKS = re.compile(rb"[\[{,:]")


class Record(NamedTuple):
    """One record of a data set, with its place for messages.

    Args:
        data: Fields; those of records around it are included where it has none of that name.
        names: ``key``, ``file``, ``folder``, ``set`` and ``line``, for expressions; ``refused`` is the reason why an
            importer cannot use the record.
    """

    where: str
    data: Mapping[str, Any]
    names: Mapping[str, Any]


_SPLIT_WORDS = r"test|testmini|validation|valid|val|dev|train|eval|all"
_GENERAL_NAME = re.compile(
    rf"(?i)({_SPLIT_WORDS}|data|task|samples?|questions?|items?|examples?|dataset|hf|arrow|tests|default|main|none|part|first|input_data|"
    r"jsonl?|csv|problems?|benchmark|\d+|of)"
)


def set_of(path: Path) -> str:
    """Return the name of the data set in a file: the file's name without its split, or that of a folder above."""
    for name in (stem_of(path), *(folder.name for folder in list(path.absolute().parents)[:4])):
        words = [word for word in re.split(r"[\s_.-]+", re.sub(r"(?i)-\d+-of-\d+|first\d+", "", name)) if word]
        without_split = [word for word in words if not re.fullmatch(_SPLIT_WORDS, word, re.IGNORECASE)]
        if without_split and not all(_GENERAL_NAME.fullmatch(word) for word in without_split):
            return "_".join(without_split)
    return stem_of(path)


def suffix_of(path: Path) -> str:
    """Return the ending that tells a data file's form, empty for other files."""
    name = path.name.lower().removesuffix(".gz")
    return next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")


def data_files(folder: Path, depth: int = 4) -> list[Path]:
    """Return the data files below a folder, sorted; links are not followed."""
    files: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith((".", "~$")):
            continue
        if path.is_dir() and depth:
            files += data_files(path, depth - 1)
        elif suffix_of(path) and path.name not in ("dataset_info.json", "state.json", "dataset_dict.json"):
            files.append(path)
    return files


def read_records(path: Path, rows: str = "", header: Sequence[str] = ()) -> Iterator[Record]:
    """Yield the records of a file.

    Args:
        path: Its ending tells the form; ``.gz`` may follow.
        rows: Place of the records in nested JSON, such as ``data[*].paragraphs[*].qas[*]`` or ``*.qa_pairs[*]``. Empty:
            the only list of objects, an object of objects by its keys, or what is nested in them.

    Raises:
        DatasetError: Unreadable, a pickle, or larger than the limits; the message names file and line.
    """
    about = {"file": stem_of(path), "folder": path.absolute().parent.name, "set": set_of(path)}
    try:
        for number, record in enumerate(_records(path, rows, header), 1):
            if number > ROW_LIMIT:
                raise DatasetError(f"{path}: more than {ROW_LIMIT} records; split the file")
            yield record._replace(data=without_nan(record.data), names={**about, **record.names})
    except ResponsesError as error:
        raise DatasetError(str(error)) from None
    except OSError as error:
        raise DatasetError(
            f"{path}: cannot be read: {error.strerror or error}; check the path and the rights"
        ) from None


def without_nan(value: Any) -> Any:
    """Return a value with None in place of each NaN in it, which tables and JSON hold where there is no value."""
    if not _has_nan(value):
        return value
    if isinstance(value, Mapping):
        return {key: without_nan(entry) for key, entry in value.items()}
    return [without_nan(entry) for entry in value] if isinstance(value, list) else None


def _has_nan(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_nan, value.values()))
    return any(map(_has_nan, value)) if isinstance(value, list) else isinstance(value, float) and math.isnan(value)


def size_of(value: Any, depth: int = 4) -> int:
    """Return the number of characters and bytes in a value."""
    if isinstance(value, str | bytes):
        return len(value)
    if depth and isinstance(value, Mapping):
        return sum(size_of(entry, depth - 1) for entry in value.values())
    if depth and isinstance(value, list | tuple):
        return sum(size_of(entry, depth - 1) for entry in value)
    return 8


def _records(path: Path, rows: str, header: Sequence[str]) -> Iterator[Record]:
    suffix = suffix_of(path)
    if suffix in (".jsonl", ".ndjson"):
        yield from _nested(_json_lines(path), rows) if rows else _json_lines(path)
    elif suffix == ".json":
        yield from _json_records(path, rows)
    elif suffix in (".csv", ".tsv"):
        yield from _table(path, "\t" if suffix == ".tsv" else ",", header)
    elif suffix == ".parquet":
        yield from _parquet(path)
    elif suffix == ".arrow":
        yield from _arrow(path)
    elif path.name.lower().endswith(_PICKLES):
        raise DatasetError(
            f"{path} is a pickle or an array file, which can run any code when opened, so it is never opened; write "
            "the data as JSON lines"
        )
    else:
        raise DatasetError(f"{path}: its form is not known; expected a file of {', '.join(SUFFIXES)}, or a folder")


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        if len(line) > _LINE_LIMIT:
            raise DatasetError(f"{where}: {len(line)} characters, at most {_LINE_LIMIT} are read; split the file")
        _check_marks(line.encode("utf-8", "replace"), where)
        data = load_json(line, where)
        if not isinstance(data, dict):
            raise DatasetError(f"{where}: found {type(data).__name__}, expected one JSON object a line")
        yield Record(where, data, {"line": number, "key": ""})


def read_bounded(path: Path, limit: int = WHOLE_LIMIT) -> bytes:
    """Return the bytes of a file, unpacked where its name ends with ``.gz``.

    Raises:
        DatasetError: More bytes than the limit, or a broken archive.
    """
    packed = path.name.lower().endswith(".gz")
    with open_regular(path) as raw, gzip.open(raw) if packed else contextlib.nullcontext(raw) as stream:
        try:
            data: bytes = stream.read(limit + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DatasetError(f"{path}: the archive is broken ({error}); copy it anew") from None
    if len(data) > limit:
        raise DatasetError(f"{path}: more than {limit} bytes unpacked, which are read whole; write it as JSON lines")
    return data


def _check_marks(data: bytes, where: str) -> None:
    """Refuse JSON that would take too much memory: each entry is an object."""
    if len(data) > MARK_LIMIT and sum(data.count(mark) for mark in (b"[", b"{", b",")) > MARK_LIMIT:
        raise DatasetError(f"{where}: more than {MARK_LIMIT} values; write it as JSON lines, a record each")


def _json_records(path: Path, rows: str) -> Iterator[Record]:
    data = read_bounded(path)
    _check_marks(data, str(path))
    try:
        text = data.decode("utf-8-sig")
        del data  # the parsed values come on top of the text
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start}); save it as UTF-8") from None
    try:
        parsed = load_json(text, str(path))
    except ResponsesError:
        first = text.lstrip().partition("\n")[0].strip()
        if not (first.startswith("{") and first.endswith("}")):
            raise
        yield from _json_lines(path)
        return
    if not rows:
        parsed = rows_of_columns(parsed) or parsed
    start = [Record(str(path), parsed if isinstance(parsed, dict) else {"": parsed}, {"line": 1, "key": ""})]
    if isinstance(parsed, list) and not rows:
        rows = "[*]"
    yield from _nested(iter(start), rows or _found_rows(parsed, path), parsed)


def _found_rows(parsed: Any, path: Path) -> str:
    """Return the place of the records in an object: the deepest list of objects, by way of the largest."""
    steps, (step, inner) = "", _largest(parsed)
    while step:
        steps += f"{'.' if steps and step != '[*]' else ''}{step}"
        step, inner = _largest(inner)
    if not steps and not (isinstance(parsed, dict) and parsed):
        raise DatasetError(f"{path}: found {type(parsed).__name__}, expected records in a list or an object")
    return steps


def _largest(here: Any) -> tuple[str, Any]:
    """Return the step to the records within a value, and a sample of them; no step where it is itself a record."""
    if isinstance(here, list):
        return ("[*]", next((entry for entry in here if isinstance(entry, dict)), None))
    if not isinstance(here, dict):
        return "", None
    if not _QUESTION_KEYS.isdisjoint(re.sub(r"[^a-z]", "", key.lower()) for key in here if isinstance(key, str)):
        return "", None
    values = list(here.values())
    # two or more objects with a key in common, by the first 50
    if len(values) > 1 and all(isinstance(each, dict) for each in values) and set.intersection(*map(set, values[:50])):
        return "*", values[0]
    lists = {key: value for key, value in lists_of_objects(here).items() if not _LEAF.fullmatch(key)}
    if lists:
        key = max(lists, key=lambda name: len(lists[name]))
        return f'"{key}"' if re.search(r"[^\w-]", key) else key, lists[key]
    # the only object with several entries in a small object
    inner = [(key, value) for key, value in here.items() if isinstance(value, dict) and len(value) > 1]
    return inner[0] if len(inner) == 1 and len(here) <= 3 else ("", None)


#: Lists of objects that belong to one record.
_LEAF = re.compile(
    r"(?i)(answers?|choices|options|messages|conversations?|validated_answers|.*annotations?|"
    r"references|context|input|turns|tools|plausible_answers|labels?)"
)
#: Fields of a record that is a question.
_QUESTION_KEYS = frozenset(
    {"question", "input", "prompt", "query", "problem", "instruction", "messages", "questiontext", "stem"}
)


def _nested(records: Iterator[Record], rows: str, whole: Any = None) -> Iterator[Record]:
    """Yield the records at a place in each record, with the plain fields of what is around them."""
    steps = re.findall(r'"[^"]+"|\[\*\]|[^.\[\]"]+', rows)
    if rows and "".join(steps) != rows.replace(".", ""):
        raise DatasetError(f"rows {rows!r:.80} is not understood; expected names, [*] and *, joined by points")
    for record in records:
        value: Any = whole if whole is not None else record.data
        yield from _descend(record._replace(data={}), value, steps)


def _descend(record: Record, value: Any, steps: Sequence[str]) -> Iterator[Record]:
    if not steps:
        fields = value if isinstance(value, Mapping) else {"value": value}
        yield record._replace(data={**record.data, **fields})
        return
    step, rest = steps[0], steps[1:]
    if step == "[*]":
        if not isinstance(value, list):
            raise DatasetError(f"{record.where}: found {type(value).__name__} at rows, expected a list")
        for number, entry in enumerate(value, 1):
            names = {**record.names, "line": number}
            yield from _descend(record._replace(where=f"{record.where}, record {number}", names=names), entry, rest)
        return
    if not isinstance(value, Mapping):
        raise DatasetError(f"{record.where}: found {type(value).__name__} at rows, expected an object with {step!r}")
    if step == "*":
        for number, (key, entry) in enumerate(value.items(), 1):
            names = {**record.names, "line": number, "key": key}
            inner = record._replace(where=f"{record.where}, key {key!r:.60}", names=names)
            yield from _descend(inner, entry, rest)
        return
    name = step.strip('"')
    if name not in value:
        if record.data:
            return  # an optional list of one of the records
        raise DatasetError(f"{record.where}: nothing at rows {name!r}; it has {', '.join(map(repr, list(value)[:8]))}")
    outer = {
        key: entry for key, entry in value.items() if key != name and not (isinstance(entry, list) and len(entry) > 50)
    }
    yield from _descend(record._replace(data={**record.data, **outer}), value[name], rest)


def _table(path: Path, separator: str, header: Sequence[str]) -> Iterator[Record]:
    """Yield the rows of a table; an empty cell is missing.  A quote is no mark in TSV that has unpaired ones."""
    lines = read_lines(path)
    quoting: Any = csv.QUOTE_MINIMAL
    if separator != ",":  # by the first lines: whether quotes begin and end cells
        sample = "".join(islice(read_lines(path), 200))
        opened = len(re.findall(r'(?:^|\t)"', sample, re.MULTILINE))
        closed = len(re.findall(r'"(?:\t|\r?$)', sample, re.MULTILINE))
        quoting = csv.QUOTE_MINIMAL if 0 < opened == closed else csv.QUOTE_NONE
    reader = csv_rows(lines, delimiter=separator, quoting=quoting)
    names = list(header)
    number = 0
    try:
        for cells in reader:
            if not any(cells):
                continue
            where = f"{path}, line {reader.line_num}"
            if len(cells) > _COLUMN_LIMIT:
                raise DatasetError(
                    f"{where}: {len(cells)} cells, at most {_COLUMN_LIMIT} are read; check the separator"
                )
            if not names and not (names := _unnamed_columns(cells)):
                names = column_names(cells, where)
                continue
            if len(cells) > len(names) and any(cells[len(names) :]):
                raise DatasetError(f"{where}: {len(cells)} cells, expected {len(names)} as in the header")
            number += 1
            data = {name: cell for name, cell in zip(names, cells, strict=False) if cell != ""}
            yield Record(where, data, {"line": number, "key": ""})
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: {error}; save the table anew") from None


_HEADER_WORDS = re.compile(
    r"(?i)(.*(question|prompt|answer|input|target|label|image|option|choice|text|query|problem|category|solution|sentence|"
    r"premise|hypothesis|index|split|source|subject|goal|context|passage|output|ideal|hint|gold|type|level|task|url|body|name).*|"
    r"[a-j]|id|.*_id|key|no|equation)"
)
_NUMBER = re.compile(r"-?[\d.,]+")


def _unnamed_columns(cells: Sequence[str]) -> list[str]:
    """Return the names of the columns of a table without a header, by its first row; none if that is a header.

    A row that ends with the letter of a choice is one of MMLU's, and a sentence with one more cell is a question with
    its answer. Numbers head no column.
    """
    filled = [cell.strip() for cell in cells if cell.strip()]
    named = sum(bool(_HEADER_WORDS.fullmatch(cell)) and len(cell.split()) <= 5 for cell in filled)
    few_named = named * 2 < len(filled)
    letters = [chr(ord("A") + number) for number in range(len(cells) - 2)]
    if few_named and 2 <= len(letters) <= 10 and cells[-1].strip() in letters and len(cells[0].split()) > 1:
        return ["question", *letters, "answer"]
    # more than four words, or characters of a script that has no spaces for as many
    sentence = len(cells[0].split()) > 4 or sum(ord(letter) >= 0x2E80 for letter in cells[0]) > 8
    if named < 2 and len(cells) == 2 and sentence:
        return ["question", "answer"]
    if (few_named and any(map(_NUMBER.fullmatch, filled))) or (
        len(set(filled)) < len(filled) or any(len(cell) > 200 for cell in filled)
    ):
        return [f"column {number}" for number in range(1, len(cells) + 1)]
    return []


def _parquet(path: Path) -> Iterator[Record]:
    with open_regular(path) as file, with_pyarrow(path, "parquet") as pyarrow:
        table = pyarrow.parquet.ParquetFile(file)
        largest = check_parquet(path, table.metadata, ROW_LIMIT, CHUNK_LIMIT)
        # a text that repeats is stored once, and unpacked for each row
        rows = max(1, min(64, _BATCH_LIMIT // max(1, largest)))
        batches = table.iter_batches(batch_size=rows, use_threads=False)
        yield from _batches(path, batches, _class_names(table.schema_arrow.metadata))


def _arrow(path: Path) -> Iterator[Record]:
    """Yield the rows of an arrow stream or file, such as ``datasets`` saves to disk."""
    data = read_bounded(path)
    with with_pyarrow(path, "arrow") as pyarrow:
        stream = io.BytesIO(data[8:] if data[:6] == b"ARROW1" else data)
        for message in pyarrow.ipc.MessageReader.open_stream(stream):
            if message.type == "record batch" and _has_compression(message.metadata.to_pybytes()):
                raise DatasetError(f"{path}: its buffers are compressed, and their sizes unknown; write it as parquet")
        if data[:6] == b"ARROW1":
            reader = pyarrow.ipc.open_file(io.BytesIO(data))
            batches: Iterator[Any] = (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            reader = pyarrow.ipc.open_stream(io.BytesIO(data))
            batches = iter(reader)
        names = _class_names(reader.schema.metadata)
        yield from _batches(path, chain.from_iterable(map(_slices, batches)), names)


def _slices(batch: Any) -> Iterator[Any]:
    rows = 1 if any(str(column.type).startswith("dictionary") for column in batch.columns) else 64
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _has_compression(metadata: bytes) -> bool:
    """Return whether the flatbuffer of a record batch has a compression (Arrow's Message.fbs, fields 2 and 3)."""

    def field(table: int, number: int) -> int:
        """Return the position of a field's value, 0 if it is left out."""
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        (size,) = struct.unpack_from("<H", metadata, vtable)
        slot = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", metadata, vtable + slot) if slot < size else (0,)
        return table + int(offset) if offset else 0

    try:
        (root,) = struct.unpack_from("<I", metadata, 0)
        header = field(root, 2)
        batch = header + struct.unpack_from("<I", metadata, header)[0]
        return field(batch, 3) != 0
    except struct.error:
        return True


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
        return names[value] if 0 <= value < len(names) else None
    return value


def _batches(path: Path, batches: Iterator[Any], names: Mapping[str, Sequence[str]]) -> Iterator[Record]:
    """Yield the rows of batches, with the names of classes in place of their numbers; a number without name is none."""
    number = 0
    for batch in batches:
        if batch.num_columns == 0:
            raise DatasetError(f"{path}: it has no columns; expected questions and answers")
        for data in batch.to_pylist():
            number += 1
            for name, classes in names.items():
                data[name] = class_name(data.get(name), classes)
            yield Record(f"{path}, row {number}", data, {"line": number, "key": ""})
