"""Judged tables of VLMEvalKit: ``MODEL_DATASET_JUDGE_result.xlsx``, or the same as CSV or TSV."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, files_of, score
from pytest_adaptive_eval.banks.rows import read_records
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import read_rows

_SUFFIXES = (".xlsx", ".csv", ".tsv")
#: Text that the toolkit writes where the model, or the judge, gave no answer.
_FAILED = "failed to obtain answer"


def _is_judged(path: Path) -> bool:
    if path.suffix.lower() not in _SUFFIXES:
        return False
    _, names = next(read_rows(path), (0, list[str]()))
    return {"index", "hit"} <= {_text(name).lower() for name in names}


def _text(value: Any) -> str:
    """Return the text of a cell, the same whether a number went through CSV, a workbook or a data frame."""
    if value is None:
        text = ""
    else:
        text = str(value).strip()
    if re.fullmatch(r"\d+\.0", text):
        return text[:-2]
    return text


def _model(path: Path, dataset: str | None) -> str:
    """Return the folder whose name begins a file's name, else the file's name before the data set, else all of it."""
    for folder in path.absolute().parents[:3]:
        if path.stem.startswith(f"{folder.name}_"):
            return folder.name
    if dataset:
        return path.stem.partition(f"_{dataset}")[0]
    return path.stem


def _newest_tables(path: Path, settings: ReadSettings) -> dict[str, Path]:
    """Return the newest table of each subject; refuse tables of several kinds."""
    dataset = settings.filter
    files = [
        file
        for file in (files_of(path) if path.is_dir() else [path])
        if _is_judged(file) and (not dataset or dataset in file.stem)
    ]
    if not files:
        raise ResponsesError(
            f"{path}: no judged table of {dataset or 'any data set'}, with the columns index and hit: run the "
            "toolkit's evaluation, and give what ends in _result"
        )
    # The toolkit links the newest table next to the dated folders.  Of the two paths of one file, the longer has the
    # date.
    tables = {file.resolve(): file for file in sorted(files, key=lambda file: len(file.parts))}
    newest: dict[str, Path] = {}
    for file in sorted(tables.values()):  # folder names begin with the date, so the last is the newest
        model = _model(file, dataset)
        before = newest.get(model, file)
        newest[model] = file
        if before.stem != file.stem:
            raise ResponsesError(
                f"{path}: {model!r} has judged tables {before.stem!r} and {file.stem!r}; give filter the data set, or "
                "one of these names if several judges graded the same answers"
            )
        if before != file:
            settings.note(f"{path.name}: several tables {file.name}; the one in {file.parent.name} counts")
    return newest


def read_vlmevalkit(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with judged tables of several models, or one table.

    An item's id is its ``index``, or ``g_index`` for circular questions, which are right only when all their rows are.
    The model is the name of a folder above the file, if the file's name begins with it. Otherwise it is the part of the
    file's name before the data set, which is the filter.
    """
    collected = Collected(str(path), texts=settings.texts)
    answers: dict[str, str] = {}
    for subject, file in _newest_tables(path, settings).items():
        hits: dict[str, dict[str, float]] = {}
        for row in read_records(file):
            texts = {name.lower(): _text(cell) for name, cell in row.data.items()}
            index = texts.get("index", "")
            row_scores = hits.setdefault(texts.get("g_index") or index, {})
            if not index or index in row_scores:
                raise ResponsesError(f"{row.where}: index is {index!r:.40}, expected another one in each row")
            failed = _FAILED in f"{texts.get('log')} {texts.get('prediction')}".lower()
            if failed:
                row_scores[index] = math.nan
            else:
                row_scores[index] = score(texts.get("hit"), f"{row.where}, column 'hit'")
            answer = texts.get("answer", "")
            expected = answers.setdefault(index, answer)
            if answer != expected:
                raise ResponsesError(
                    f"{row.where}: the answer to index {index} is {answer!r:.80}, in another table {expected!r:.80}: "
                    "they are of different data sets; give filter the one that is meant, such as 'MMMU_DEV_VAL'"
                )
        for item, scores in hits.items():
            # 0 if any row is wrong, whatever the missing ones would have been
            values = list(scores.values())
            collected.add(subject, item, 0.0 if 0.0 in values else sum(values) / len(values))
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
