"""Read logs of Inspect: ``.eval`` archives, and logs written or dumped as JSON."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, named, score
from pytest_adaptive_eval.banks.rows import head, load_file, load_json
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.tables import FILE_LIMIT

__all__ = ["REGISTERED", "read_inspect"]

#: Scores of the letter grades of Inspect's own metrics.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}

_ZSTANDARD = 93  # the method's number in zip archives

#: Bytes read at a time.  Decompression multiplies size by at most some thousands, so small pieces bound the memory.
_PIECE = 4096

_BEGINNING = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"(?:status|eval)"\s*:')


def _is_log(path: Path) -> bool:
    """Return whether the name and the first bytes of a file are those of a log."""
    return path.suffix == ".eval" or (path.suffix == ".json" and _BEGINNING.match(head(path)) is not None)


@dataclass(frozen=True, slots=True)
class _Log:
    path: Path
    model: str
    task: str
    arguments: Mapping[str, Any]
    created: float
    samples: Sequence[tuple[str, str, Mapping[str, Any]]]
    """File and sample for messages, item id, and value by scorer; None where the sample has an error."""


def _zip_module() -> Any:
    """Return the module that reads zip archives: before Python 3.14 the backport, which supports zstandard."""
    if sys.version_info < (3, 14):
        try:
            return importlib.import_module("backports.zstd.zipfile")
        except ImportError:
            pass
    return zipfile


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> Any:
    info = archive.getinfo(name)
    if info.file_size > FILE_LIMIT:
        raise ResponsesError(
            f"{path}: {name} claims {info.file_size} bytes, at most {FILE_LIMIT} are read; split the log"
        )
    if info.compress_type == _ZSTANDARD and sys.version_info < (3, 14) and _zip_module() is zipfile:
        raise ResponsesError(
            f"{path}: compressed with zstandard, which Python reads from 3.14 on; install it with: pip install "
            f"'pytest-adaptive-eval[inspect]', or dump the log: inspect log dump {path.name} > {path.stem}.json"
        )
    content = bytearray()
    try:
        with archive.open(info) as file:
            while piece := file.read(_PIECE):
                content += piece
    except Exception as error:  # each decompressor raises errors of its own
        raise ResponsesError(f"{path}: {name} cannot be unpacked ({error}); copy the log anew") from None
    return load_json(bytes(content), f"{path}: {name}")


def _read(path: Path) -> _Log:
    """Read one log."""
    if path.suffix == ".json":
        header = load_file(path)
        samples = header.get("samples") if isinstance(header, dict) else None
    else:
        header, samples = _unpack(path)
    about = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(about, dict) or not {"model", "task"} <= about.keys():
        raise ResponsesError(f"{path}: no eval.model and eval.task; expected a log of Inspect")
    if not isinstance(samples, list) or not samples:
        raise ResponsesError(f"{path}: no samples, only a header; give the log with its samples")
    arguments = about.get("model_args")
    return _Log(
        path,
        named(about["model"], "eval.model", str(path)),
        named(about["task"], "eval.task", str(path)),
        arguments if isinstance(arguments, dict) else {},
        _time(about.get("created")),
        [_sample(f"{path}: sample {number}", sample) for number, sample in enumerate(samples, 1)],
    )


def _unpack(path: Path) -> tuple[Any, Any]:
    with open_regular(path) as file:
        try:
            archive = _zip_module().ZipFile(file)
        except Exception as error:  # a damaged directory of an archive raises more than the module documents
            raise ResponsesError(f"{path}: not a zip archive, as logs of Inspect are ({error}); copy it anew") from None
        names = set(archive.namelist())
        if "_journal/start.json" in names and not {"header.json", "summaries.json"} <= names:
            raise ResponsesError(
                f"{path}: the run has not ended; finish it with: inspect eval-retry {path.name}, or move it elsewhere"
            )
        if missing := {"header.json", "summaries.json"} - names:
            raise ResponsesError(f"{path}: no {min(missing)} in it; expected a log of Inspect")
        return _member(archive, path, "header.json"), _member(archive, path, "summaries.json")


def _time(created: object) -> float:
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return -math.inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _sample(where: str, sample: object) -> tuple[str, str, Mapping[str, Any]]:
    if not isinstance(sample, dict):
        raise ResponsesError(f"{where}: found {type(sample).__name__}, expected an object with id and scores")
    item = named(sample.get("id"), "id", where)
    where = f"{where} (id {item!r}, epoch {sample.get('epoch')})"
    scores = sample.get("scores") or {}
    if not isinstance(scores, dict):
        raise ResponsesError(f"{where}: scores is {scores!r:.80}, expected an object by scorer")
    values: dict[str, Any] = {}
    for scorer, score_object in scores.items():
        value = score_object.get("value") if isinstance(score_object, dict) else score_object
        if isinstance(value, dict):  # a scorer of several values
            values |= {f"{scorer}/{part}": each for part, each in value.items()}
        else:
            values[scorer] = value
    return where, item, dict.fromkeys(values) if sample.get("error") else values


def _subjects(logs: Sequence[_Log]) -> list[str]:
    """Return the subject's name of each log: the model, with the arguments in which logs of that model differ.

    All local checkpoints run as ``hf/local`` and differ only in ``model_path``.
    """
    names = []
    for log in logs:
        same_model = [other.arguments for other in logs if other.model == log.model]
        differing = [
            key
            for key in sorted(set().union(*same_model))
            if any(arguments.get(key) != log.arguments.get(key) for arguments in same_model)
        ]
        arguments_text = ",".join(f"{key}={_plain(log.arguments[key])}" for key in differing if key in log.arguments)
        names.append(f"{log.model}({arguments_text})" if differing else log.model)
    return names


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def read_inspect(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder of logs, or one log.

    An item's id is ``TASK:ID``.  Its score is the mean over the epochs with a score.
    With several logs of one subject and task, each item's score is from the newest log
    that has one.  A sample with an error is missing.  A sample stopped by a limit keeps
    its score.  The metric is the scorer, ``SCORER/PART`` for one with several values.
    """
    log_paths = [file for file in files_of(path) if _is_log(file)] if path.is_dir() else [path]
    logs = [_read(file) for file in log_paths]
    if not logs:
        raise ResponsesError(f"{path}: no log; expected .eval archives or JSON logs of Inspect")
    by_task: dict[str, dict[str, list[_Log]]] = {}
    for subject, log in sorted(zip(_subjects(logs), logs, strict=True), key=lambda pair: (pair[0], -pair[1].created)):
        by_task.setdefault(log.task, {}).setdefault(subject, []).append(log)
    collected = Collected(str(path))
    for task, by_subject in sorted(by_task.items()):
        where = f"{path}: task {task!r}"
        scorers = set().union(*(_scorers(log) for newest_first in by_subject.values() for log in newest_first))
        if not scorers:
            raise ResponsesError(f"{where}: no sample has a score; score the logs first: inspect score")
        scorer = choose("metric", scorers, settings.metric, f"{where}, scorers")
        for subject, newest_first in by_subject.items():
            if not any(scorer in _scorers(log) for log in newest_first):
                raise ResponsesError(
                    f"{newest_first[0].path}: scorer {scorer!r} is missing; score the log: inspect score"
                )
            if (count := len(newest_first)) > 1:
                settings.note(
                    f"{path.name}: {count} logs of {subject} on {task!r}; for each item the newest score counts"
                )
            _collect(collected, subject, task, scorer, newest_first)
    return collected.responses()


def _scorers(log: _Log) -> set[str]:
    """Return the names of all scorers in a log."""
    return {name for _, _, values in log.samples for name in values}


def _collect(collected: Collected, subject: str, task: str, scorer: str, newest_first: Sequence[_Log]) -> None:
    """Collect the scores of one subject on one task."""
    scored_before: set[str] = set()
    for log in newest_first:
        scored: set[str] = set()
        for where, item, values in log.samples:
            value = values.get(scorer)
            grade = _GRADES.get(value) if isinstance(value, str) else None
            number = score(value, f"{where}, scorer {scorer!r}") if grade is None else grade
            if item not in scored_before:
                collected.add(subject, f"{task}:{item}", number)
                if not math.isnan(number):
                    scored.add(item)
        scored_before |= scored


REGISTERED = (
    ResponseReader("inspect", ".eval or JSON logs of Inspect", _is_log, read_inspect, {"metric": "the scorer"}),
)
