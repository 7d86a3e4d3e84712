"""Files of a data set: which of a folder count, the labels in a second file, source, licence and hashes."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.rows import stem_of
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.choices import as_text
from pytest_adaptive_eval.extensions.importing.records import (
    data_files,
    read_bounded,
    read_records,
    set_of,
    suffix_of,
    without_nan,
)
from pytest_adaptive_eval.inputs import open_regular

_SPLITS = ("test", "testmini", "validation", "valid", "val", "dev", "train", "fewshot", "few-shot")
_SPLIT = re.compile(rf"(?i)(?<![a-z])({'|'.join(_SPLITS)})(?![a-z])")


def split_of(path: Path) -> tuple[str, Path]:
    """Return the split that the name of a file or its folder tells, empty if none, and the folder with the splits."""
    folder = path.parent
    for name, holder in ((stem_of(path), folder), (folder.name, folder.parent)):
        if splits := _SPLIT.findall(name.replace("_", " ")):
            return str(splits[-1]).lower(), holder
    return "", folder


def same_split(first: str, second: str) -> bool:
    """Return whether two names are of one split; a validation split has several."""
    names = [name.lower().replace("-", "") for name in (first, second)]
    return names[0] == names[1] or all(name in ("validation", "valid", "val") for name in names)


def chosen_files(source: Path, pattern: str = "", split: str = "") -> tuple[list[Path], list[Path]]:
    """Return the files of a file or folder that count, and the data files that do not.

    Of each folder, the files without a split count, and those of the first split that it has, in the order test,
    validation, dev, train.

    Args:
        pattern: Glob of the files that count, relative to the folder.
        split: The split that counts, also of the folder of a file, instead of the first.

    Raises:
        DatasetError: There is no data file.
    """
    if not source.exists():
        raise DatasetError(f"there is nothing at {source}; give a file or folder, or hf:OWNER/NAME for the hub")
    if not source.is_dir():
        return ([source] if not split else _of_split(data_files(split_of(source)[1]), split, source)), []
    files = data_files(source)
    fitting = [path for path in files if path.relative_to(source).match(pattern)] if pattern else files
    chosen = _of_split(fitting, split, source) if split else fitting if pattern else _first_splits(files)
    if not chosen:
        problem = f"no data file matches {pattern!r}" if pattern else "there is no data file"
        pickled = [path.name for path in source.iterdir() if path.suffix in (".pkl", ".pickle", ".pt")]
        also = f"; {pickled[0]} is a pickle, which can run any code and is never opened" if pickled else ""
        raise DatasetError(f"{source}: {problem}; expected .jsonl, .json, .csv, .tsv, .parquet or .arrow{also}")
    return chosen, [path for path in files if path not in chosen]


def _of_split(files: Sequence[Path], split: str, source: Path) -> list[Path]:
    """Return the files of a split, of one data set where the source is a file."""
    splits = {path: split_of(path)[0] for path in files}
    chosen = [path for path, name in splits.items() if same_split(name, split)]
    if not source.is_dir():
        chosen = [path for path in chosen if set_of(path) == set_of(source)] or chosen
    if not chosen:
        splits_read = ", ".join(sorted({name for name in splits.values() if name})) or "none"
        raise DatasetError(f"{source}: no file of the split {split!r}; the names of its files tell {splits_read}")
    return chosen


def _first_splits(files: Sequence[Path]) -> list[Path]:
    """Return the files without a split, and those of the first split in the folder that holds theirs."""
    splits = {path: split_of(path) for path in files}
    first: dict[Path, str] = {}
    for split, holder in sorted(splits.values(), key=lambda entry: _SPLITS.index(entry[0]) if entry[0] else 99):
        first.setdefault(holder, split)
    return [path for path, (split, holder) in splits.items() if split in ("", first[holder])]


def read_labels(path: Path) -> Sequence[Any] | Mapping[str, Any]:
    """Return the answers of a second file: a line each, or by id.

    Raises:
        DatasetError: The file is of another form.
    """
    suffix = suffix_of(path)
    if suffix == ".json":
        data = without_nan(json.loads(read_bounded(path)))
        if isinstance(data, dict):
            return {str(key): value for key, value in data.items()}
        if isinstance(data, list):
            return _by_id(data)
        raise DatasetError(f"{path}: found {type(data).__name__}, expected labels in a list or by id")
    if suffix:
        return _by_id([dict(record.data) for record in read_records(path)])
    try:
        lines = read_bounded(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DatasetError(f"{path}: not UTF-8 text; expected a label a line") from None
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.strip() for line in lines]  # a blank line is an answer that is missing


def _by_id(rows: list[Any]) -> Sequence[Any] | Mapping[str, Any]:
    """Return labels by their id where each row has one and another field, else by position."""
    shared = set.intersection(*(set(row) if isinstance(row, dict) else set() for row in rows)) if rows else set()
    names = next((name for name in ("id", "question_id", "qid", "index", "uid") if name in shared), None)
    if names is None:
        return [next(iter(row.values()), None) if isinstance(row, dict) and len(row) == 1 else row for row in rows]
    repeated = next((name for name, count in Counter(as_text(row[names]) for row in rows).items() if count > 1), None)
    if repeated is not None:
        raise DatasetError(f"the labels name {names} {repeated!r:.60} more than once; keep one of each")
    rest = [{key: value for key, value in row.items() if key != names} for row in rows]
    return {
        as_text(row[names]): next(iter(other.values())) if len(other) == 1 else other
        for row, other in zip(rows, rest, strict=True)
    }


def file_hashes(files: Sequence[Path], base: Path) -> dict[str, str]:
    """Return the SHA-256 of each file, 16 hex digits, by its name within the source."""
    hashes = {}
    for path in files:
        try:
            with open_regular(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        except OSError as error:
            raise DatasetError(f"{path}: cannot be read: {error.strerror or error}; check the path") from None
        hashes[path.relative_to(base).as_posix() if base.is_dir() else path.name] = digest
    return hashes
