"""Open files and folders of data sets, by a mapping that a preset declares or that is guessed."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.banks.licences import licence_of
from pytest_adaptive_eval.banks.rows import TableRecord, read_records, set_of, stem_of, suffix_of
from pytest_adaptive_eval.errors import DatasetError, ResponsesError
from pytest_adaptive_eval.extensions.importing.base import Dataset, ImportSettings
from pytest_adaptive_eval.extensions.importing.build import file_of
from pytest_adaptive_eval.extensions.importing.choices import as_text, is_missing
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.typed_tables import replaced

_SPLITS = ("test", "testmini", "validation", "valid", "val", "dev", "train", "fewshot", "few-shot")
_ABOUT = re.compile(r"(?i)read.?me|licen[cs]e|notice|citation|requirements|version|about")
_SPLIT = re.compile(rf"(?i)(?<![a-z])({'|'.join(_SPLITS)})(?![a-z])")


def data_files(folder: Path, depth: int = 4) -> list[Path]:
    """Return the data files below a folder, sorted, or its texts where there is none; links are not followed."""
    files: list[Path] = []
    texts: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name.startswith((".", "~$")):
            continue
        if path.is_dir() and depth:
            files += data_files(path, depth - 1)
        elif suffix_of(path) and path.name not in ("dataset_info.json", "state.json", "dataset_dict.json"):
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


def chosen_files(source: Path, pattern: str = "", split: str = "") -> tuple[list[Path], list[Path]]:
    """Return the files of a file or folder that count, and the data files that do not.

    Of each folder, the files without a split count, and the files of the first split that it has, in the order test,
    validation, dev, train.

    Args:
        split: The split that counts, also of the folder of a file, instead of the first.

    Raises:
        DatasetError: Data files are missing.
    """
    if not source.exists():
        raise DatasetError(f"nothing at {source}; give a file or folder, or hf:OWNER/NAME for the hub")
    if not source.is_dir():
        return ([source] if not split else _of_split(data_files(split_of(source)[1]), split, source)), []
    files = data_files(source)
    fitting = [path for path in files if path.relative_to(source).match(pattern)] if pattern else files
    if split:
        chosen = _of_split(fitting, split, source)
    elif pattern:
        chosen = fitting
    else:
        chosen = _of_first_splits(files)
    if not chosen:
        problem = f"no data file matches {pattern!r}" if pattern else "no data file"
        pickled = [path.name for path in source.iterdir() if path.suffix in (".pkl", ".pickle", ".pt")]
        also = f"; {pickled[0]} is a pickle, which can run any code and is never opened" if pickled else ""
        raise DatasetError(f"{source}: {problem}; expected .jsonl, .json, .csv, .tsv, .parquet or .arrow{also}")
    return chosen, [path for path in files if path not in chosen]


def _of_first_splits(files: Sequence[Path]) -> list[Path]:
    """Return the files without a split, and those of the first split in the folder that holds theirs."""
    splits = {path: split_of(path) for path in files}
    first: dict[Path, str] = {}
    for name, holder in sorted(splits.values(), key=lambda entry: _SPLITS.index(entry[0]) if entry[0] else 99):
        first.setdefault(holder, name)
    return [path for path, (name, holder) in splits.items() if name in ("", first[holder])]


def other_split(source: Path) -> str:
    """Return the first split for examples that the data have beside the one that counts; empty if there is none."""
    if not source.exists():
        return ""
    chosen, _ = chosen_files(source)
    counts = {split_of(file)[0] for file in chosen}
    there = {split_of(file)[0] for file in data_files(source if source.is_dir() else split_of(source)[1])}
    return (
        next((name for name in ("train", "dev", "validation") if name in there - counts), "") if counts - {""} else ""
    )


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


def _read(path: Path, mapping: ItemMapping) -> Iterator[TableRecord]:
    try:
        yield from read_records(path, mapping.rows, mapping.header, short_rows=True)
    except ResponsesError as error:
        raise DatasetError(str(error)) from None


_LABELS = re.compile(r"(?i)label|answer|solution|gold")
#: Names of ids of other records, and of fields by which labels are joined.
_REFERENCE = re.compile(r"(?i).+id")
_ID = re.compile(r"(?i)(?:.*[_ ])?(?:id|qid|uid|idx|index|key)")


def _by_id(rows: list[Any]) -> Sequence[Any] | Mapping[str, Any]:
    """Return labels by their id where each row has one and another field, else by position."""
    shared = set.intersection(*(set(row) if isinstance(row, dict) else set() for row in rows)) if rows else set()
    names = next((name for name in rows[0] if name in shared and _ID.fullmatch(name)), None) if shared else None
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


def label_files(folder: Path | None) -> str:
    """Return the end of an error that names files beside the data which may hold the answers; empty if none does."""
    paths = [path for path in folder.iterdir() if _LABELS.search(path.name)] if folder is not None else []
    inner = [file for path in paths if path.is_dir() for file in path.iterdir()]
    names = sorted(str(path.relative_to(str(folder))) for path in paths + inner if path.is_file())
    return f"; {' and '.join(names[:3])} beside the data may be such a file" if names else ""


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


#: Files beside the data, and records of each, in which what records refer to is looked up.
_FILES_BESIDE, _RECORDS_BESIDE = 20, 5000


def check_references(records: Sequence[TableRecord], mapping: ItemMapping, folder: Path) -> None:
    """Refuse records with an id of a text in another file of the folder, such as a rule or a passage.

    Raises:
        DatasetError: Names the field, the file, and the options that join them.
    """
    used = " ".join(str(value) for value in mapping.given().values())
    own = {file_of(record.where) for record in records}
    ids = {key for record in records for key in record.data if _REFERENCE.fullmatch(key) and key not in used}
    for key in sorted(ids):
        values = {as_text(record.data.get(key)) for record in records} - {""}
        if len(values) * 2 > len(records) or len(values) < 2:
            continue
        for file in [file for file in data_files(folder, 1) if str(file) not in own][:_FILES_BESIDE]:
            with contextlib.suppress(ResponsesError):
                rows = [record.data for record in islice(read_records(file), _RECORDS_BESIDE)]
                if field := _field_of_ids(rows, values):
                    text = max(rows[0], key=lambda name: len(as_text(rows[0][name])))
                    shown = f"$label.{as_path(text)}" if len(rows[0]) > 2 else "$label"
                    raise DatasetError(
                        f"{key!r} names records of {file.name} by {field!r}, which the questions may need; give "
                        f"--labels {file} --set labels_by={key} --set context='{shown}', or --set meta={key} where "
                        "they do not"
                    )


def _field_of_ids(rows: Sequence[Mapping[str, Any]], values: set[str]) -> str:
    """Return the field by whose distinct values rows have all of the ids; empty if there is none."""
    for name in rows[0] if rows and len(rows[0]) > 1 else ():
        ids = [as_text(row.get(name)) for row in rows]
        if values <= set(ids) and len(set(ids)) == len(ids):
            return name
    return ""


#: Levels above a file in which its images may lie.
_ABOVE = 2


def merged(defaults: ItemMapping, settings: ItemMapping) -> ItemMapping:
    """Return a mapping with the user's fields in place of its own."""
    return replaced(defaults, **{name: getattr(settings, name) for name in settings.given()})


def open_files(
    source: str, settings: ImportSettings, files: str = "", mapping: ItemMapping | None = None, name: str = ""
) -> list[Dataset]:
    """Open a file, or the files of a folder that count: a data set for each form.

    Args:
        name: Begin of ids; the file's name when omitted.

    Raises:
        DatasetError: The file is missing.
    """
    path = Path(source)
    whole_split = "" if settings.split or not path.is_dir() else files
    chosen, others = chosen_files(path, settings.files or whole_split, settings.split)
    whole = merged(mapping or ItemMapping(), settings.mapping)
    facts: dict[str, Any] = {"source": path.name, "licence": licence_of(path), "files": file_hashes(chosen, path)}
    names_of_others = ", ".join(file.name for file in others[:6])
    left_out = f"skipped {counted(len(others), 'other data file')}: {names_of_others}; --set files=GLOB chooses"
    forms = _forms(chosen, whole) if len(chosen) > 1 else [chosen]
    names = [tuple(file.relative_to(path).as_posix() for file in form) if len(forms) > 1 else () for form in forms]

    folder = path if path.is_dir() else path.absolute().parent
    bases = (folder, *[*folder.absolute().parents][:_ABOVE])
    if settings.image_root is not None:
        bases = (settings.image_root,)

    def records(form: Sequence[Path], limit: int | None = None) -> Iterator[TableRecord]:
        share = None if limit is None else max(2, limit // len(form))
        return chain.from_iterable(islice(_read(file, whole), share) for file in form)

    return [
        Dataset(
            name or (path.name if path.is_dir() else set_of(path)),
            partial(records, form),
            whole,
            bases,
            folder,
            settings.labels,
            settings.labels_by,
            facts,
            (left_out,) if others and not number else (),
            names[number],
        )
        for number, form in enumerate(forms)
    ]


def _forms(files: Sequence[Path], mapping: ItemMapping) -> list[list[Path]]:
    """Return the files in groups whose first records share most of their fields."""
    groups: list[tuple[set[str], list[Path]]] = []
    for file in files:
        try:
            first = next(_read(file, mapping)).data
            # the same names may hold a text and a chat
            kinds = {name: type(value) if isinstance(value, list | dict) else None for name, value in first.items()}
            fields = {f"{name}:{kind}" for name, kind in kinds.items()}
        except (DatasetError, StopIteration):
            fields = {str(file)}  # alone, so that the error is told of it
        for shared, group in groups:
            if len(shared & fields) * 2 > len(shared | fields):
                group.append(file)
                break
        else:
            groups.append((fields, [file]))
    return [group for _, group in groups]
