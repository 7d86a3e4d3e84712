"""Files of a data set: which of a folder count, their records, and a second file with the answers."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.licences import licence_of
from pytest_adaptive_eval.banks.rows import (
    NO_NAME,
    SeveralRows,
    TableRecord,
    arrays_of,
    read_records,
    set_of,
    stem_of,
    suffix_of,
)
from pytest_adaptive_eval.errors import DatasetError, ResponsesError
from pytest_adaptive_eval.extensions.importing.base import Dataset, ImportSettings, merged
from pytest_adaptive_eval.extensions.importing.choices import LETTERS
from pytest_adaptive_eval.extensions.importing.grading import count_words
from pytest_adaptive_eval.extensions.importing.undecided import Advice, Undecided
from pytest_adaptive_eval.extensions.importing.values import as_text, fields_of, is_missing
from pytest_adaptive_eval.inputs import open_regular, reading
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.tables import read_rows
from pytest_adaptive_eval.text import counted

_SPLITS = ("test", "testmini", "validation", "valid", "val", "dev", "train", "fewshot", "few-shot")
_SPLIT = re.compile(rf"(?i)(?<![a-z])({'|'.join(_SPLITS)})(?![a-z])")
_SAME = {"valid": "validation", "val": "validation", "few-shot": "fewshot"}
_NO_DATA = ("dataset_info.json", "state.json", "dataset_dict.json")
#: Fields by which labels are joined.
_ID = re.compile(r"(?i)(?:.*[_ ])?(?:id|qid|uid|idx|index|key)")
#: Endings of files with a label in each line; and rows by which columns are named.
_LABEL_FILES, _HEADED = (".lst", ".txt", ".labels"), 200
#: Bytes of a file beside the data that may be joined to them.
_JOINED_LIMIT = 32 << 20
#: Levels below a folder in which its data are, and levels above a file in which its images may be.
_BELOW, _ABOVE = 5, 2


def data_files(folder: Path) -> list[Path]:
    """Return the data files below a folder, sorted; links are not followed."""
    files = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "~$")) for part in parts)
        is_data = suffix_of(path) and path.name not in _NO_DATA and not path.is_symlink() and not path.is_dir()
        if len(parts) <= _BELOW and is_data and not hidden:
            files.append(path)
    return files


def split_of(path: Path) -> tuple[str, Path]:
    """Return the split in the name of a file or its folder, empty if none, and the folder with the splits."""
    folder = path.parent
    if splits := _SPLIT.findall(stem_of(path).replace("_", " ")):
        return _split_name(splits[-1]), folder
    if _SPLIT.fullmatch(folder.name):
        return (_split_name(folder.name), folder.parent)
    return ("", folder)


def _split_name(name: str) -> str:
    """Return one name for a split that has several."""
    return _SAME.get(name.lower(), name.lower())


def splits_of(files: Iterable[Path]) -> list[str]:
    """Return the splits in the names of files, in the usual order."""
    return sorted({split_of(file)[0] for file in files} - {""}, key=_SPLITS.index)


def chosen_files(source: Path, pattern: str, split: str) -> tuple[list[Path], list[Path]]:
    """Return the files of a file or folder that count, and the data files that do not.

    Args:
        pattern: Files of a folder that count.
        split: The split that counts. Without it, files without a split and files of each folder's first split count, in
            the order test, validation, dev, train.

    Raises:
        DatasetError: Data files are missing.
    """
    if not source.exists():
        raise DatasetError(f"nothing at {source}; give a file or folder, or hf:OWNER/NAME for the hub")
    if source.is_dir():
        files, base = (data_files(source), source)
    else:
        files, base = ([source], source.parent)
    chosen = []
    for path in files:
        if path.relative_to(base).match(pattern or "*"):
            chosen.append(path)
    there = splits_of(chosen)
    if split:
        chosen = [path for path in chosen if split_of(path)[0] == _split_name(split)]
    elif not pattern:
        chosen = _of_first_splits(chosen)
    if not chosen:
        if split:
            lacking = f"of the split {split!r}; the names of its files have {', '.join(there) or 'none'}"
        else:
            lacking = f"matches {pattern!r}"
        raise DatasetError(
            f"{source}: no data file {lacking if split or pattern else 'is there'}; expected .jsonl, .json, .csv, "
            ".tsv, .parquet or .arrow (a pickle, which can run any code, is never opened)"
        )
    return chosen, [path for path in files if path not in chosen]


def _of_first_splits(files: Sequence[Path]) -> list[Path]:
    """Return the files without a split, and the files of the first split in each folder."""
    splits = {path: split_of(path) for path in files}
    first: dict[Path, str] = {}
    for name in reversed(_SPLITS):
        first |= {holder: split for split, holder in splits.values() if split == name}
    return [path for path, (name, holder) in splits.items() if name in ("", first.get(holder))]


def read_labels(path: Path) -> Sequence[Any] | Mapping[str, Any]:
    """Return the answers of a second file: a record or line each, or records by id.

    Raises:
        DatasetError: The file is of another form, or an id is there twice.
    """
    records = list(_read(path, ItemMapping()))
    while records and is_missing(records[-1].names["value"]):
        records.pop()  # a blank line between others is an answer that is missing
    rows = [record.names["value"] for record in records]
    keys = [record.names["key"] for record in records]
    if records:
        fields = [name for name in records[0].data if all(name in record.data for record in records)]
    else:
        fields = []
    name = next(filter(_ID.fullmatch, fields), "")
    if name and not all(keys):
        keys = [as_text(row[name]) for row in rows]
    if not all(keys):
        return rows
    if len(set(keys)) < len(keys):
        raise DatasetError(f"{path}: the labels have a value of {name} more than once; keep one of each")
    return dict(zip(keys, rows, strict=True))


def file_hashes(files: Sequence[Path], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, 16 hex digits, by its name within the source."""
    hashes = {}
    for path in files:
        with reading(path, DatasetError), open_regular(path) as file:
            hashes[_name_within(path, base)] = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return hashes


def _name_within(path: Path, base: Path) -> str:
    if base.is_dir():
        return path.relative_to(base).as_posix()
    return path.name


def open_source(source: str, settings: ImportSettings, files: str = "", *, first: bool = True) -> Dataset:
    """Open files, or the counted files of a folder, with the user's mapping.

    Args:
        files: Files that count where the user names none.
        first: Whether the first of several splits counts where the user names none.

    Raises:
        DatasetError: A file is missing, or there are several splits.
    """
    path = Path(source)
    if settings.split or not path.is_dir():
        of_folder = ""
    else:
        of_folder = files
    chosen, others = chosen_files(path, settings.files or of_folder, settings.split)
    there = splits_of([*chosen, *others])
    if len(there) > 1 and not (first or settings.split or settings.files):
        splits = [Advice({"split": name}) for name in there]
        raise Undecided(f"{source}: it has the splits {', '.join(there)}", *splits)
    for more in settings.paths:
        chosen += chosen_files(Path(more), settings.files, settings.split)[0]
    if path.is_dir():
        folder = path
    else:
        folder = path.absolute().parent
    bases = (folder, *[*folder.absolute().parents][:_ABOVE])
    listed = ", ".join(file.name for file in others[:6])
    left_out = f"skipped {counted(len(others), 'other data file')}: {listed}; --set files=GLOB chooses"
    return Dataset(
        path.name if path.is_dir() else set_of(path),
        partial(_records, chosen),
        merged(ItemMapping(), settings),
        settings,
        (Path(settings.image_root),) if settings.image_root else bases,
        {"source": path.name, "licence": licence_of(path), "files": file_hashes(chosen, path)},
        (left_out,) if others else (),
        tuple(map(str, chosen)),
    )


def of_files(dataset: Dataset, mapping: ItemMapping, files: Sequence[str]) -> Dataset:
    """Return the part of a data set in some of its files, which another mapping reads."""
    whole = merged(mapping, dataset.settings)
    return replace(dataset, read=partial(_records, list(map(Path, files))), mapping=whole, files=tuple(files))


def _records(files: Sequence[Path], mapping: ItemMapping, limit: int | None = None) -> Iterator[TableRecord]:
    """Yield all records of files, or the first ones of each."""
    if limit is None:
        share = None
    else:
        share = max(2, limit // len(files))
    return chain.from_iterable(islice(_read(file, mapping), share) for file in files)


def _read(path: Path, mapping: ItemMapping) -> Iterator[TableRecord]:
    try:
        yield from read_records(path, mapping.rows, mapping.header, short_rows=True)
    except SeveralRows as error:
        raise Undecided(error.problem, *(Advice({"rows": name}) for name in error.places)) from None
    except ResponsesError as error:
        raise DatasetError(str(error)) from None


def _files_beside(source: str) -> list[Path]:
    """Return the data files, and files of labels, in the folder of a file."""
    path = Path(source)
    if not path.is_file():
        return []
    others = []
    for other in sorted(path.parent.iterdir()):
        is_data = suffix_of(other) or other.suffix in _LABEL_FILES
        if is_data and other.is_file() and not other.is_symlink() and other != path:
            others.append(other)
    return others


@functools.lru_cache(4)
def _labels_beside(path: Path) -> Sequence[Any] | Mapping[str, Any]:
    """Return the records of a file that may be joined; none of a large file, or one that cannot be read."""
    if path.stat().st_size > _JOINED_LIMIT:
        return ()
    try:
        return read_labels(path)
    except DatasetError:
        return ()


def first_records(source: str, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the files beside a source with their first record, or the record of a name where it has one."""
    for path in _files_beside(source):
        records = _labels_beside(path)
        if name:
            record = fields_of(records).get(name)
        elif isinstance(records, Mapping):
            record = next(iter(records.values()), None)
        else:
            record = next(iter(records), None)
        if record is not None:
            yield str(path), record


def guessed_header(source: str, place: str = "") -> list[Advice]:
    """Return the setting that names the columns of a table whose first line is a record like the others.

    The last column whose values differ is the answer, and of the others the one with most question marks, or else the
    longest texts, is the question.  If only the last one has texts of several words, it is the question, and the one
    before it the answer.

    Args:
        place: Place of the rows in nested data.
    """
    path = Path(source)
    ending = suffix_of(path)
    if ending in (".csv", ".tsv", ""):
        records: Iterator[tuple[int, list[Any]]] = read_rows(path, "" if ending else "\t")
    else:
        records = arrays_of(path, place)
    try:
        with reading(path, DatasetError):
            rows = [list(map(as_text, cells)) for _, cells in islice(records, _HEADED)]
    except (DatasetError, ResponsesError, UnicodeDecodeError):
        return []
    first = next(iter(rows), [])
    count = len(first)
    is_record = any(map(NO_NAME.search, first))
    if not is_record or count < 2 or any(len(cells) != count for cells in rows):
        return []
    columns = list(zip(*rows, strict=True))
    varied = [n for n, column in enumerate(columns) if len(set(column)) > 1]
    if len(varied) < 2:
        return []
    *others, answer = varied
    phrases = [n for n, column in enumerate(columns) if sum(count_words(cell) > 1 for cell in column) * 2 > len(rows)]
    if phrases == [answer]:
        question = answer
        answer = others[-1]
        others[-1] = question
    else:
        question = max(others, key=lambda n: (sum("?" in cell for cell in columns[n]), sum(map(len, columns[n]))))
    others.remove(question)
    names = {question: "question", answer: "answer"}
    if all(re.fullmatch(r"[A-J]", cell.strip()) for cell in columns[answer]):
        names |= dict(zip(others, LETTERS, strict=False))
    header = ",".join(names.get(n, f"column{n + 1}") for n in range(count))
    return [Advice({"header": header}, "where the first line is a record")]
