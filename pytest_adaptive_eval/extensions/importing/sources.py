"""Files of a data set: which of a folder count, their records, and a second file with the answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.licences import licence_of
from pytest_adaptive_eval.banks.rows import TableRecord, read_records, set_of, stem_of, suffix_of
from pytest_adaptive_eval.errors import DatasetError, ResponsesError
from pytest_adaptive_eval.extensions.importing.base import Dataset, ImportSettings
from pytest_adaptive_eval.extensions.importing.values import as_text, is_missing
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import replaced

_SPLITS = ("test", "testmini", "validation", "valid", "val", "dev", "train", "fewshot", "few-shot")
_SPLIT = re.compile(rf"(?i)(?<![a-z])({'|'.join(_SPLITS)})(?![a-z])")
_ABOUT = re.compile(r"(?i)read.?me|licen[cs]e|notice|citation|requirements|version|about")
_NO_DATA = ("dataset_info.json", "state.json", "dataset_dict.json")
#: Fields by which labels are joined.
_ID = re.compile(r"(?i)(?:.*[_ ])?(?:id|qid|uid|idx|index|key)")
#: Levels above a file in which its images may lie.
_ABOVE = 2


def data_files(folder: Path, depth: int = 4) -> list[Path]:
    """Return the data files below a folder, sorted, or its texts if there are none; links are not followed."""
    files: list[Path] = []
    texts: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith((".", "~$")):
            continue
        if path.is_dir() and depth:
            files += data_files(path, depth - 1)
        elif suffix_of(path) and path.name not in _NO_DATA:
            files.append(path)
        elif path.suffix.lower() == ".txt" and not _ABOUT.match(path.name):
            texts.append(path)
    return files or texts


def split_of(path: Path) -> tuple[str, Path]:
    """Return the split in the name of a file or its folder, empty if none, and the folder with the splits."""
    folder = path.parent
    if splits := _SPLIT.findall(stem_of(path).replace("_", " ")):
        return str(splits[-1]).lower(), folder
    return (folder.name.lower(), folder.parent) if _SPLIT.fullmatch(folder.name) else ("", folder)


def same_split(first: str, second: str) -> bool:
    """Return whether two names are of one split; a validation split has several."""
    names = [name.lower().replace("-", "") for name in (first, second)]
    return names[0] == names[1] or all(name in ("validation", "valid", "val") for name in names)


def splits_of(files: Sequence[Path]) -> list[str]:
    """Return the splits in the names of files, in the usual order."""
    return sorted({name for file in files if (name := split_of(file)[0])}, key=_SPLITS.index)


def chosen_files(source: Path, pattern: str = "", split: str = "") -> tuple[list[Path], list[Path]]:
    """Return the files of a file or folder that count, and the data files that do not.

    Args:
        pattern: Files of a folder that count.
        split: The split that counts, also of the folder of a file. Without it, the files without a split count, and
            those of the first split of each folder, in the order test, validation, dev, train.

    Raises:
        DatasetError: Data files are missing.
    """
    if not source.exists():
        raise DatasetError(f"nothing at {source}; give a file or folder, or hf:OWNER/NAME for the hub")
    if not source.is_dir():
        return ([source] if not split else _of_split(data_files(split_of(source)[1]), split, source)), []
    files = data_files(source)
    fitting = [path for path in files if path.relative_to(source).match(pattern)] if pattern else files
    chosen = fitting if pattern else _of_first_splits(files)
    if split:
        chosen = _of_split(fitting, split, source)
    if not chosen:
        raise _no_files(source, pattern)
    return chosen, [path for path in files if path not in chosen]


def _no_files(folder: Path, pattern: str) -> DatasetError:
    problem = f"no data file matches {pattern!r}" if pattern else "no data file"
    pickled = [path.name for path in folder.iterdir() if path.suffix in (".pkl", ".pickle", ".pt")]
    also = f"; {pickled[0]} is a pickle, which can run any code and is never opened" if pickled else ""
    return DatasetError(f"{folder}: {problem}; expected .jsonl, .json, .csv, .tsv, .parquet or .arrow{also}")


def _of_first_splits(files: Sequence[Path]) -> list[Path]:
    """Return the files without a split, and those of the first split in the folder that holds theirs."""
    splits = {path: split_of(path) for path in files}
    first: dict[Path, str] = {}
    for name, holder in sorted(splits.values(), key=lambda entry: _SPLITS.index(entry[0]) if entry[0] else 99):
        first.setdefault(holder, name)
    return [path for path, (name, holder) in splits.items() if name in ("", first[holder])]


def _of_split(files: Sequence[Path], split: str, source: Path) -> list[Path]:
    """Return the files of a split, of one data set where the source is a file."""
    chosen = [path for path in files if same_split(split_of(path)[0], split)]
    if not source.is_dir():
        chosen = [path for path in chosen if set_of(path) == set_of(source)] or chosen
    if not chosen:
        there = ", ".join(splits_of(files)) or "none"
        raise DatasetError(f"{source}: no file of the split {split!r}; the names of its files have {there}")
    return chosen


def other_split(source: Path, split: str = "") -> str:
    """Return the first split for examples that the data have beside the one that counts; empty if there is none."""
    if not source.exists():
        return ""
    counting = splits_of(chosen_files(source, "", split)[0])
    there = splits_of(data_files(source if source.is_dir() else split_of(source)[1]))
    free = [name for name in ("train", "dev", "validation") if name in there and name not in counting]
    return free[0] if free and counting else ""


def read_labels(path: Path) -> Sequence[Any] | Mapping[str, Any]:
    """Return the answers of a second file: a record or line each, or by id.

    Raises:
        DatasetError: The file is of another form.
    """
    try:
        records = list(read_records(path))
    except ResponsesError as error:
        raise DatasetError(str(error)) from None
    while records and is_missing(records[-1].names["value"]):
        records.pop()  # a blank line between others is an answer that is missing
    if records and all(record.names["key"] for record in records):
        return {str(record.names["key"]): record.names["value"] for record in records}
    return _by_id([record.names["value"] for record in records])


def _by_id(rows: list[Any]) -> Sequence[Any] | Mapping[str, Any]:
    """Return labels by their id where each row has one and another field, else by position."""
    shared = set.intersection(*(set(row) if isinstance(row, dict) else set() for row in rows)) if rows else set()
    names = [name for name in rows[0] if name in shared and _ID.fullmatch(name)] if shared else []
    if not names:
        return [_only_value(row) for row in rows]
    labels: dict[str, Any] = {}
    for row in rows:
        name = as_text(row[names[0]])
        if name in labels:
            raise DatasetError(f"the labels name {names[0]} {name!r:.60} more than once; keep one of each")
        labels[name] = _only_value({key: value for key, value in row.items() if key != names[0]})
    return labels


def _only_value(row: Any) -> Any:
    """Return the value of an object with one field; other values as they are."""
    return next(iter(row.values())) if isinstance(row, dict) and len(row) == 1 else row


def file_hashes(files: Sequence[Path], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, 16 hex digits, by its name within the source."""
    hashes = {}
    for path in files:
        try:
            with open_regular(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None
        hashes[_name_within(path, base)] = digest
    return hashes


def _name_within(path: Path, base: Path) -> str:
    return path.relative_to(base).as_posix() if base.is_dir() else path.name


def merged(defaults: ItemMapping, settings: ItemMapping) -> ItemMapping:
    """Return a mapping with the user's fields in place of its own."""
    return replaced(defaults, **{name: getattr(settings, name) for name in settings.given()})


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a file or folder that count, and what is known about them."""

    path: Path
    files: tuple[Path, ...]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]
    settings: ImportSettings

    def dataset(self, mapping: ItemMapping, files: Sequence[Path] = (), name: str = "") -> Dataset:
        """Return the records of some of the files, or of all, read by a mapping.

        Args:
            name: Begin of ids; the file's name when omitted.
        """
        settings, path = self.settings, self.path
        whole = merged(mapping, settings.mapping)
        folder = path if path.is_dir() else path.absolute().parent
        bases = (folder, *[*folder.absolute().parents][:_ABOVE])
        return Dataset(
            name or (path.name if path.is_dir() else set_of(path)),
            partial(_records, files or self.files, whole),
            whole,
            bases if settings.image_root is None else (settings.image_root,),
            settings.labels,
            settings.labels_by,
            self.facts,
            self.notes,
            tuple(_name_within(file, path) for file in files),
        )


def open_source(source: str, settings: ImportSettings, files: str = "", *, first: bool = True) -> Source:
    """Open files, or those of a folder that count.

    Args:
        files: Files that count where the user names none.
        first: Whether the first of several splits counts where the user names none.

    Raises:
        DatasetError: A file is missing, or there are several splits.
    """
    path = Path(source)
    of_folder = "" if settings.split or not path.is_dir() else files
    chosen, others = chosen_files(path, settings.files or of_folder, settings.split)
    there = splits_of([*chosen, *others])
    if len(there) > 1 and not (first or settings.split or settings.files):
        raise DatasetError(
            f"{source}: it has the splits {', '.join(there)}; give --set split={there[0]}, or another one"
        )
    for more in settings.paths:
        chosen += chosen_files(Path(more), settings.files, settings.split)[0]
    facts = {"source": path.name, "licence": licence_of(path), "files": file_hashes(chosen, path)}
    listed = ", ".join(file.name for file in others[:6])
    left_out = f"skipped {counted(len(others), 'other data file')}: {listed}; --set files=GLOB chooses"
    return Source(path, tuple(chosen), facts, (left_out,) if others else (), settings)


def _records(files: Sequence[Path], mapping: ItemMapping, limit: int | None = None) -> Iterator[TableRecord]:
    """Yield all records of files, or the first ones of each."""
    share = None if limit is None else max(2, limit // len(files))
    return chain.from_iterable(islice(_read(file, mapping), share) for file in files)


def _read(path: Path, mapping: ItemMapping) -> Iterator[TableRecord]:
    try:
        yield from read_records(path, mapping.rows, mapping.header, short_rows=True)
    except ResponsesError as error:
        raise DatasetError(str(error)) from None
