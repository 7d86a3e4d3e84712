"""Judged tables of VLMEvalKit: ``MODEL_DATASET_JUDGE_result.xlsx``, or the same as CSV or TSV."""

from __future__ import annotations

import csv
import math
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.files import LIMIT, Collected, files_of, lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["SUFFIXES", "is_judged", "read_vlmevalkit"]

SUFFIXES = (".xlsx", ".csv", ".tsv")

#: What the toolkit writes where the model, or the judge, gave no answer.
_FAILED = "failed to obtain answer"


def _sheet(path: Path, most: int | None) -> list[Sequence[Any]]:
    try:
        import openpyxl
    except ImportError:
        raise ResponsesError(
            f"{path}: openpyxl is needed to read it; pip install 'pytest-adaptive-eval[xlsx]', or save it as CSV"
        ) from None
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > LIMIT:
            raise ResponsesError(f"{path}: {size} bytes unpacked, at most {LIMIT} are read; split the table")
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles, which say nothing here
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            try:
                return list(islice(book.worksheets[0].iter_rows(values_only=True), most))
            finally:
                book.close()
    except (ResponsesError, OSError):
        raise
    except Exception as error:  # zip, XML and openpyxl have errors of their own
        raise ResponsesError(f"{path}: not a readable workbook ({error}); save it anew or as CSV") from None


def _rows(path: Path, most: int | None = None) -> list[tuple[int, Sequence[Any]]]:
    """Rows of a table, at most some of them, with their line numbers."""
    if path.suffix.lower() == ".xlsx":
        return list(enumerate(_sheet(path, most), 1))
    rows = csv.reader(lines(path), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    try:
        return [(rows.line_num, row) for row in islice(rows, most)]
    except csv.Error as error:
        raise ResponsesError(f"{path}, line {rows.line_num}: {error}; save it anew without pictures") from None


def _names(row: Sequence[Any]) -> list[str]:
    return [_text(name).lower() for name in row]


def is_judged(path: Path) -> bool:
    """Whether a table has the columns index and hit."""
    return path.suffix.lower() in SUFFIXES and any({"index", "hit"} <= set(_names(row)) for _, row in _rows(path, 1))


def _text(value: Any) -> str:
    """Text of a cell, the same whether a number went through CSV, a workbook or a data frame."""
    text = "" if value is None else str(value).strip()
    return text[:-2] if re.fullmatch(r"\d+\.0", text) else text


@dataclass(slots=True)
class _Table:
    """Hits by item, a list since circular questions have a row for each order of the choices; answers by row."""

    hits: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


def _score(hits: Sequence[float]) -> float:
    """One wrong row makes an item wrong, whatever the missing ones would have been."""
    if 0.0 in hits:
        return 0.0
    return math.nan if any(map(math.isnan, hits)) else min(hits)


def _hit(value: Any, where: str) -> float:
    text = _text(value).lower()
    if text in ("", "nan", "none", "na"):
        return math.nan
    try:
        number = {"true": 1.0, "false": 0.0}[text] if text in ("true", "false") else float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise ResponsesError(f"{where}, column 'hit': found {value!r:.80}, expected 0, 1 or nothing")
    return number


def _table(path: Path) -> _Table:
    rows = _rows(path)
    names = _names(rows[0][1]) if rows else []
    at = {name: position for position, name in enumerate(names) if name}
    if not {"index", "hit"} <= at.keys():
        raise ResponsesError(
            f"{path}: the columns {', '.join(at) or 'none':.200}, expected index and hit as in a judged table; "
            "predictions alone have no hit: run the toolkit's evaluation and give the file that ends in _result"
        )
    table = _Table()
    first_lines: dict[str, int] = {}
    for number, row in rows[1:]:
        if not any(map(_text, row)):
            continue
        where = f"{path}, line {number}"
        if len(row) < len(names):
            raise ResponsesError(f"{where}: {len(row)} cells, expected {len(names)} as in the header")
        index = _text(row[at["index"]])
        item = _text(row[at["g_index"]]) if "g_index" in at else index
        if not index or not item:
            raise ResponsesError(f"{where}: index or g_index is empty, expected the item's number")
        if first_lines.setdefault(index, number) != number:
            raise ResponsesError(f"{where}: index {index} stands in line {first_lines[index]} already; keep one row")
        judge_text = " ".join(_text(row[at[name]]) for name in ("log", "prediction") if name in at).lower()
        hit = math.nan if _FAILED in judge_text else _hit(row[at["hit"]], where)
        table.hits.setdefault(item, []).append(hit)
        if "answer" in at:
            table.answers[index] = _text(row[at["answer"]])
    if not table.hits:
        raise ResponsesError(f"{path}: a header and no rows; run the toolkit's evaluation again")
    return table


def _split(path: Path, dataset: str | None) -> tuple[str, str] | None:
    """Return the model and the rest of a file's name, or None if neither folder nor `dataset` separates them."""
    for folder in path.absolute().parents[:3]:
        if path.stem.startswith(f"{folder.name}_"):
            return folder.name, path.stem[len(folder.name) + 1 :]
    if dataset and (match := re.fullmatch(rf"(.+?)_({re.escape(dataset)}(?:_.*)?)", path.stem)):
        return match[1], match[2]
    return None


def _flat(stems: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Split file names before the ending that all share, which begins with an underscore."""
    backwards = [stem[::-1] for stem in stems]
    ending = os.path.commonprefix(backwards)[::-1] if len(stems) > 1 else ""  # noqa: RUF071 -- by character, as meant
    while "_" in ending:
        ending = ending[ending.index("_") :]
        if all(len(stem) > len(ending) for stem in stems):
            return {stem: (stem.removesuffix(ending), ending[1:]) for stem in stems}
        ending = ending[1:]
    return {stem: (stem, "") for stem in stems}


def _subjects(path: Path, dataset: str | None, note: Callable[[str], object]) -> dict[str, Path]:
    """Return the judged table of each subject."""
    if not path.is_dir():
        model, _ = _split(path, dataset) or (path.stem, "")
        return {model: path}
    # The toolkit links the newest table next to the dated folders.  Of the two paths of one file, the longer has the
    # date.
    judged = sorted(filter(is_judged, files_of(path)), key=lambda file: len(file.parts))
    tables = {file.resolve(): file for file in judged}
    if not tables:
        raise ResponsesError(
            f"{path}: no table with the columns index and hit (.xlsx, .csv, .tsv); predictions alone have no hit: run "
            "the toolkit's evaluation first"
        )
    splits = {file: _split(file, dataset) for file in tables.values()}
    rest = sorted({file.stem for file, split in splits.items() if split is None})
    by_name = {} if dataset else _flat(rest)
    of_subject: dict[str, dict[str, list[Path]]] = {}
    for file, split in splits.items():
        if split is None and not dataset:
            split = by_name[file.stem]
        if split and (dataset is None or split[1] == dataset or split[1].startswith(f"{dataset}_")):
            of_subject.setdefault(split[0], {}).setdefault(split[1], []).append(file)
    if not of_subject:
        raise ResponsesError(
            f"{path}: no judged table of {dataset!r}; found {', '.join(f.name for f in tables.values())}"
        )
    return _choose_tables(path, dataset, of_subject, note)


def _choose_tables(
    path: Path,
    dataset: str | None,
    of_subject: dict[str, dict[str, list[Path]]],
    note: Callable[[str], object],
) -> dict[str, Path]:
    """Return the newest table of each subject; refuse tables of several kinds or of different data sets."""
    chosen: dict[str, Path] = {}
    first: tuple[str, str] | None = None
    for subject, kinds in sorted(of_subject.items()):
        if dataset in kinds:
            kinds = {dataset: kinds[dataset]}
        if len(kinds) > 1:
            raise ResponsesError(
                f"{path}: {subject!r} has judged tables {', '.join(map(repr, sorted(kinds)))}; give filter the data "
                "set, or one of these names if several judges graded the same answers"
            )
        ((kind, candidates),) = kinds.items()
        files = sorted(candidates)
        chosen[subject] = files[-1]  # folder names begin with the date, so the last is the newest
        other, of_other = first = first or (subject, kind)
        if dataset is None and of_other.partition("_")[0] != kind.partition("_")[0]:
            raise ResponsesError(
                f"{path}: {other!r} has the table {of_other!r} and {subject!r} has {kind!r}: tables of different data "
                "sets; give filter the one that is meant"
            )
        if len(files) > 1:
            note(f"{path.name}: {len(files)} tables {files[-1].name}; the one in {files[-1].parent.name} counts")
    return chosen


def read_vlmevalkit(path: Path, dataset: str | None, note: Callable[[str], object]) -> Responses:
    """Read a folder with judged tables of several models, or one table.

    An item's id is its ``index``, or ``g_index`` for circular questions, which are
    right only when all their rows are.  The model is the name of a folder above the
    file, if the file's name begins with it.  Otherwise it is the part of the file's
    name before the data set, or before the ending that all names share.

    Parameters
    ----------
    path : Path
    dataset : str or None
        Needed when one folder has tables of several data sets.
    note : callable
        Called with a sentence about each omission.

    Raises
    ------
    ResponsesError
        Malformed or ambiguous tables; the message names the file and the line.
    """
    collected = Collected(str(path))
    first_answers: dict[str, tuple[str, Path]] = {}
    for subject, file in _subjects(path, dataset, note).items():
        table = _table(file)
        for index, answer in table.answers.items():
            expected, first = first_answers.setdefault(index, (answer, file))
            if answer != expected:
                raise ResponsesError(
                    f"{file}: the answer to index {index} is {answer!r:.80}, in {first} it is {expected!r:.80}: tables "
                    "of different data sets; give filter the one that is meant, such as 'MMMU_DEV_VAL'"
                )
        for item, hits in table.hits.items():
            collected.add(subject, item, _score(hits))
    return collected.responses()
