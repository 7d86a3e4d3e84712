"""Judged tables of VLMEvalKit: ``MODEL_DATASET_JUDGE_result.xlsx``, or the same as CSV or TSV."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, files_of
from pytest_adaptive_eval.banks.rows import read_records
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import Cells, read_rows

_SUFFIXES = (".xlsx", ".csv", ".tsv")

#: Text that the toolkit writes where the model, or the judge, gave no answer.
_FAILED = "failed to obtain answer"


def _header(path: Path) -> list[str]:
    """Return the names of the columns, in small letters."""
    _, names = next(read_rows(path), (0, list[str]()))
    return [_text(name).lower() for name in names]


def _is_judged(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES and {"index", "hit"} <= set(_header(path))


def _text(value: Any) -> str:
    """Return the text of a cell, the same whether a number went through CSV, a workbook or a data frame."""
    text = "" if value is None else str(value).strip()
    return text[:-2] if re.fullmatch(r"\d+\.0", text) else text


@dataclass(slots=True)
class _Table:
    """Hits by item, a list since circular questions have a row for each order of the choices; answers by row."""

    hits: dict[str, list[float]] = field(default_factory=dict)
    answers: dict[str, str] = field(default_factory=dict)


def _table(path: Path) -> _Table:
    if not {"index", "hit"} <= set(names := _header(path)):
        raise ResponsesError(
            f"{path}: the columns {', '.join(filter(None, names)) or 'none':.200}, expected index and hit as in a "
            "judged table; predictions alone have no hit: run the toolkit's evaluation and give the file that ends in "
            "_result"
        )
    table, cells = _Table(), Cells()
    first_lines: dict[str, str] = {}
    for where, data, _ in read_records(path):
        texts = dict.fromkeys(names, "") | {name.lower(): _text(cell) for name, cell in data.items()}
        index, item = texts["index"], texts.get("g_index", texts["index"])
        if not index or not item:
            raise ResponsesError(f"{where}: index or g_index is empty, expected the item's number")
        if first_lines.setdefault(index, where) != where:
            first = first_lines[index].rpartition(", ")[2]
            raise ResponsesError(f"{where}: index {index} stands in {first} already; keep one row")
        judge_text = f"{texts.get('log')} {texts.get('prediction')}".lower()
        try:
            hit = math.nan if _FAILED in judge_text else cells[texts["hit"]]
        except ValueError:
            raise ResponsesError(
                f"{where}, column 'hit': found {texts['hit']!r:.80}, expected 0, 1 or nothing"
            ) from None
        table.hits.setdefault(item, []).append(hit)
        if "answer" in texts:
            table.answers[index] = texts["answer"]
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


def _split_shared_ending(stems: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Split file names before the ending that all share, which begins with an underscore."""
    backwards = [stem[::-1] for stem in stems]
    ending = os.path.commonprefix(backwards)[::-1] if len(stems) > 1 else ""  # noqa: RUF071 -- by character, as meant
    while "_" in ending:
        ending = ending[ending.index("_") :]
        if all(len(stem) > len(ending) for stem in stems):
            return {stem: (stem.removesuffix(ending), ending[1:]) for stem in stems}
        ending = ending[1:]
    return {stem: (stem, "") for stem in stems}


def _subject_tables(path: Path, settings: ReadSettings) -> dict[str, Path]:
    dataset = settings.filter
    if not path.is_dir():
        model, _ = _split(path, dataset) or (path.stem, "")
        return {model: path}
    # The toolkit links the newest table next to the dated folders.  Of the two paths of one file, the longer has the
    # date.
    judged = sorted(filter(_is_judged, files_of(path)), key=lambda file: len(file.parts))
    tables = list({file.resolve(): file for file in judged}.values())
    if not tables:
        raise ResponsesError(
            f"{path}: no table with the columns index and hit (.xlsx, .csv, .tsv); predictions alone have no hit: run "
            "the toolkit's evaluation first"
        )
    by_subject: dict[str, dict[str, list[Path]]] = {}
    splits = {file: _split(file, dataset) for file in tables}
    others = {} if dataset else _split_shared_ending(sorted({f.stem for f, split in splits.items() if split is None}))
    names = {file: split or others[file.stem] for file, split in splits.items() if split or file.stem in others}
    for file, (model, kind) in names.items():
        if dataset is None or kind == dataset or kind.startswith(f"{dataset}_"):
            by_subject.setdefault(model, {}).setdefault(kind, []).append(file)
    if not by_subject:
        raise ResponsesError(f"{path}: no judged table of {dataset!r}; found {', '.join(f.name for f in tables)}")
    return _choose_tables(path, settings, by_subject)


def _choose_tables(
    path: Path, settings: ReadSettings, by_subject: Mapping[str, Mapping[str, list[Path]]]
) -> dict[str, Path]:
    """Return the newest table of each subject; refuse tables of several kinds or of different data sets."""
    dataset = settings.filter
    chosen: dict[str, Path] = {}
    first: tuple[str, str] | None = None
    for subject, kinds in sorted(by_subject.items()):
        if dataset is not None and dataset in kinds:
            kinds = {dataset: kinds[dataset]}
        if len(kinds) > 1:
            raise ResponsesError(
                f"{path}: {subject!r} has judged tables {', '.join(map(repr, sorted(kinds)))}; give filter the data "
                "set, or one of these names if several judges graded the same answers"
            )
        ((kind, candidates),) = kinds.items()
        files = sorted(candidates)
        chosen[subject] = files[-1]  # folder names begin with the date, so the last is the newest
        first_subject, first_kind = first = first or (subject, kind)
        if dataset is None and first_kind.partition("_")[0] != kind.partition("_")[0]:
            raise ResponsesError(
                f"{path}: {first_subject!r} has the table {first_kind!r} and {subject!r} has {kind!r}: tables of "
                "different data sets; give filter the one that is meant"
            )
        if len(files) > 1:
            settings.note(
                f"{path.name}: {len(files)} tables {files[-1].name}; the one in {files[-1].parent.name} counts"
            )
    return chosen


def read_vlmevalkit(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with judged tables of several models, or one table.

    An item's id is its ``index``, or ``g_index`` for circular questions, which are right only when all their rows are.
    The model is the name of a folder above the file, if the file's name begins with it. Otherwise it is the part of the
    file's name before the data set, or before the ending that all names share. The filter is the data set, needed when
    one folder has tables of several.
    """
    collected = Collected(str(path))
    first_answers: dict[str, tuple[str, Path]] = {}
    for subject, file in _subject_tables(path, settings).items():
        table = _table(file)
        for index, answer in table.answers.items():
            expected, first = first_answers.setdefault(index, (answer, file))
            if answer != expected:
                raise ResponsesError(
                    f"{file}: the answer to index {index} is {answer!r:.80}, in {first} it is {expected!r:.80}: tables "
                    "of different data sets; give filter the one that is meant, such as 'MMMU_DEV_VAL'"
                )
        for item, hits in table.hits.items():
            # 0 if any row is wrong, whatever the missing ones would have been
            missing = 0.0 not in hits and any(map(math.isnan, hits))
            collected.add(subject, item, math.nan if missing else 0.0 if 0.0 in hits else min(hits))
    return collected.responses()


REGISTERED = (
    ResponseReader(
        "vlmevalkit",
        "judged tables of VLMEvalKit (.xlsx, .csv, .tsv)",
        lambda path: path.suffix.lower() == ".xlsx" or _is_judged(path),  # workbooks have no other reader
        read_vlmevalkit,
        {"filter": "the data set"},
        generality=1,
    ),
)
