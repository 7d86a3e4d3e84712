"""Read logs of Inspect: ``.eval`` archives, and logs written or dumped as JSON."""

from __future__ import annotations

import importlib
import json
import math
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.files import (
    LIMIT,
    Collected,
    choose,
    files_of,
    head,
    load_file,
    load_json,
    named,
    score,
)
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["is_log", "read_inspect"]

#: Scores of the letter grades of Inspect's own metrics.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}

_ZSTANDARD = 93  # the method's number in zip archives

#: Bytes read at a time.  Decompression multiplies size by at most some thousands, so small pieces bound the memory.
_PIECE = 4096

_BEGINNING = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"(?:status|eval)"\s*:')


def is_log(path: Path) -> bool:
    """Return whether a file's name and beginning are those of a log."""
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


def _need_zstandard(path: Path) -> None:
    if sys.version_info < (3, 14) and _zip_module() is zipfile:
        raise ResponsesError(
            f"{path}: compressed with zstandard, which Python reads from 3.14 on; install it with: pip install "
            f"'pytest-adaptive-eval[inspect]', or dump the log: inspect log dump {path.name} > {path.stem}.json"
        )


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> Any:
    info = archive.getinfo(name)
    if info.file_size > LIMIT:
        raise ResponsesError(f"{path}: {name} claims {info.file_size} bytes, at most {LIMIT} are read; split the log")
    if info.compress_type == _ZSTANDARD:
        _need_zstandard(path)
    content = bytearray()
    try:
        with archive.open(info) as file:
            while piece := file.read(_PIECE):
                content += piece
    except Exception as error:  # each decompressor raises errors of its own
        raise ResponsesError(f"{path}: {name} cannot be unpacked ({error}); copy the log anew") from None
    return load_json(bytes(content), f"{path}: {name}")


def _read(path: Path) -> _Log:
    if path.suffix == ".json":
        header = load_file(path)
        samples = header.get("samples") if isinstance(header, dict) else None
    else:
        header, samples = _unpack(path)
    about = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(about, dict) or "model" not in about or "task" not in about:
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


def _value(value: Any, where: str) -> float:
    return _GRADES[value] if isinstance(value, str) and value in _GRADES else score(value, where)


def _subjects(logs: Sequence[_Log]) -> list[str]:
    """Return the subject's name of each log: the model, with the arguments in which logs of that model differ.

    All local checkpoints run as ``hf/local`` and differ only in ``model_path``.
    """
    names = []
    for log in logs:
        others = [other.arguments for other in logs if other.model == log.model]
        keys = sorted({key for arguments in others for key in arguments})
        differ = [key for key in keys if any(other.get(key) != log.arguments.get(key) for other in others)]
        about = ",".join(f"{key}={_plain(log.arguments[key])}" for key in differ if key in log.arguments)
        names.append(f"{log.model}({about})" if differ else log.model)
    return names


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def read_inspect(path: Path, metric: str | None, note: Callable[[str], object]) -> Responses:
    """Read a folder of logs, or one log.

    An item's id is ``TASK:ID``.  Its score is the mean over the epochs with a score.
    With several logs of one subject and task, each item's score is from the newest log
    that has one.  A sample with an error is missing.  A sample stopped by a limit keeps
    its score.

    Parameters
    ----------
    path : Path
    metric : str or None
        The scorer, ``SCORER/PART`` for one with several values.  Needed for a task
        with several; several names separated by commas are tried in order.
    note : callable
        Called with a sentence about each omission.

    Raises
    ------
    ResponsesError
        Malformed log; the message names the log and the sample.
    """
    log_paths = [file for file in files_of(path) if is_log(file)] if path.is_dir() else [path]
    logs = [_read(file) for file in log_paths]
    if not logs:
        raise ResponsesError(f"{path}: no log; expected .eval archives or JSON logs of Inspect")
    collected = Collected(str(path))
    subjects = _subjects(logs)
    for task in sorted({log.task for log in logs}):
        by_subject: dict[str, list[_Log]] = {}
        for subject, log in sorted(zip(subjects, logs, strict=True), key=lambda pair: (pair[0], -pair[1].created)):
            if log.task == task:
                by_subject.setdefault(subject, []).append(log)
        scorers = {name for logs_of in by_subject.values() for log in logs_of for name in _scorers(log)}
        where = f"{path}: task {task!r}"
        if not scorers:
            raise ResponsesError(f"{where}: no sample has a score; score the logs first: inspect score")
        scorer = choose("metric", scorers, metric, f"{where}, scorers")
        for subject, newest_first in by_subject.items():
            if not any(scorer in _scorers(log) for log in newest_first):
                raise ResponsesError(
                    f"{newest_first[0].path}: scorer {scorer!r} is missing; score the log: inspect score"
                )
            if (count := len(newest_first)) > 1:
                note(f"{path.name}: {count} logs of {subject} on {task!r}; for each item the newest score counts")
            _collect(collected, subject, task, scorer, newest_first)
    return collected.responses()


def _scorers(log: _Log) -> set[str]:
    """Return the names of all scorers in a log."""
    return {name for _, _, values in log.samples for name in values}


def _collect(collected: Collected, subject: str, task: str, scorer: str, newest_first: Iterable[_Log]) -> None:
    done: set[str] = set()
    for log in newest_first:
        scored: set[str] = set()
        for where, item, values in log.samples:
            value = _value(values.get(scorer), f"{where}, scorer {scorer!r}")
            if item not in done:
                collected.add(subject, f"{task}:{item}", value)
                if not math.isnan(value):
                    scored.add(item)
        done |= scored
