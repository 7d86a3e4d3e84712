"""Details of the Open LLM Leaderboard and of lighteval: ``MODEL/TIME/details_TASK_TIME.parquet``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.expressions import hash_of
from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, files_of
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import TableRecord, read_records
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

_TIME = r"\d{4}-\d\d-\d\dT[\d.:_-]+"
_DETAILS = re.compile(rf"details_(?P<task>.+?)(?:_(?P<time>{_TIME}))?\.parquet")
#: Columns that are numbers and no metrics.
_OTHER = frozenset({"gold", "gold_index", "padded", "truncated", "num_asked_few_shots", "num_effective_few_shots"})


def _is_details(path: Path) -> bool:
    return _DETAILS.fullmatch(path.name) is not None


def read_leaderboard(path: Path, settings: ReadSettings) -> Responses:
    """Read a file of details, a model's folder, or a folder of models.

    The subject is the folder above the time. An item's id is ``TASK:HASH`` of its example. Of a task that was run twice
    the newest counts.
    """
    files = [file for file in files_of(path) if _is_details(file)] if path.is_dir() else [path]
    newest: dict[tuple[str, str], Path] = {}
    named = [(_DETAILS.fullmatch(file.name), file) for file in files]
    for match, file in sorted(named, key=lambda pair: ((pair[0] and pair[0]["time"]) or "", str(pair[1]))):
        # the nearest folder that is no time, with the one above where that is its owner
        folders = [part for part in file.absolute().parent.parts if not re.fullmatch(_TIME, part)]
        subject = folders[-1].removeprefix("details_").removesuffix("-details").replace("__", "/", 1)
        newest[match["task"] if match else file.stem, subject] = file
    if not newest:
        raise ResponsesError(f"{path}: no details_TASK_TIME.parquet; expected details of the Open LLM Leaderboard")
    if older := len(files) - len(newest):
        settings.note(f"{path.name}: {older} older files of tasks that were run again are left out")
    collected = Collected(str(path))
    for (task, subject), file in sorted(newest.items()):
        _read_file(collected, file, task, subject, settings)
    return collected.responses()


def _read_file(collected: Collected, file: Path, task: str, subject: str, settings: ReadSettings) -> None:
    answers = []
    for row in read_records(file):
        record = row.data
        gold = record.get("gold_index", record.get("gold"))
        first = gold[0] if isinstance(gold, list) and gold else gold
        fields = {
            "question": record.get("full_prompt") or record.get("example"),
            "choices": record.get("choices"),
            # the number of a choice, or a text
            "target": first if isinstance(first, int) else record.get("gold", gold),
        }
        predictions = record.get("predictions")
        reply = predictions[0] if isinstance(predictions, list) and predictions else None
        item, question = f"{task}:{_hash(row)}", as_question(fields, file)
        answers.append(Answer(row.where, subject, item, _metrics(record), question, reply))
    collected.add_answers(answers, settings.metric, str(file))


def _metrics(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a row by metric, from an object of them or from columns."""
    nested = record.get("metrics")
    values = nested if isinstance(nested, Mapping) else record
    plain = {name.removeprefix("metrics."): value for name, value in values.items()}
    return {
        name: value
        for name, value in plain.items()
        if isinstance(value, int | float) and name not in _OTHER and 0 <= value <= 1 and not name.endswith("_stderr")
    }


def _hash(row: TableRecord) -> str:
    """Return the hash of an example, or its text's."""
    hashes = row.data.get("hash", row.data.get("hashes"))
    for key in ("hash_examples", "example", "hash_full_prompts", "full_prompt"):
        if isinstance(hashes, Mapping) and isinstance(hashes.get(key), str) and hashes[key]:
            return str(hashes[key])
    text = row.data.get("example") or row.data.get("full_prompt")
    if not isinstance(text, str) or not text:
        raise ResponsesError(f"{row.where}: no hash, example or full_prompt, by which models are joined")
    return hash_of(text)


REGISTERED = (
    ResponseReader(
        "leaderboard",
        "details_*.parquet of the Open LLM Leaderboard",
        _is_details,
        read_leaderboard,
        {"metric": "the metric"},
    ),
)
