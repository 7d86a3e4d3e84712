"""Logs of Inspect: ``.eval`` archives, and logs written or dumped as JSON."""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, named, score
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import head, load_file, load_json
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses
from pytest_adaptive_eval.tables import FILE_LIMIT

_ZSTANDARD = 93  # the method's number in zip archives

#: Bytes read at a time.  Decompression multiplies size by at most some thousands, so small pieces bound the memory.
_PIECE = 4096
#: A member may be this much larger than its compressed size, and at least so many bytes: logs shrink by tens at most.
_RATIO, _LEAST = 200, 2**26

_BEGINNING = re.compile(
    r'\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"(?:status|eval)|status"\s*:\s*"\w+"\s*,\s*"eval)"\s*:', re.ASCII
)


class UnusableLog(ResponsesError):
    """A log without scores, which a folder of logs may hold beside others."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of a log.

    Args:
        values: Value by scorer; None where the sample has an error.
        data: The sample in the log, or its summary.
    """

    where: str
    item: str
    epoch: str
    values: Mapping[str, Any]
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Log:
    """Model, task and samples of one log; `created` is its time in seconds, `sandbox` whether samples run tools."""

    path: Path
    model: str
    task: str
    arguments: Mapping[str, Any]
    created: float
    sandbox: bool
    samples: Sequence[Sample]


def is_log(path: Path) -> bool:
    """Return whether the name and the first bytes of a file look like a log."""
    return path.suffix == ".eval" or (path.suffix == ".json" and _BEGINNING.match(head(path)) is not None)


def read_log(path: Path) -> Log:
    """Read one log.

    Raises:
        UnusableLog: It has no samples or too few, or none of them has a score; the message names the errors in it.
    """
    if path.suffix == ".json":
        header = load_file(path)
        samples = header.get("samples") if isinstance(header, dict) else None
    else:
        with open_regular(path) as file:
            archive = _open(path, file)
            header, samples = (_member(archive, path, name) for name in ("header.json", "summaries.json"))
    about = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(about, dict) or not {"model", "task"} <= about.keys():
        raise ResponsesError(f"{path}: no eval.model and eval.task; expected a log of Inspect")
    if not isinstance(samples, list) or not samples:
        status, problem = header.get("status"), _error_text(header.get("error"))
        raise UnusableLog(
            f"{path}: no samples, only a header (status {status!r:.40}{f', {problem}' if problem else ''}); give the "
            "log with its samples"
        )
    _check_whole(path, header, about, len(samples))
    read = [_sample(f"{path}: sample {number}", sample) for number, sample in enumerate(samples, 1)]
    _check_scored(path, read)
    arguments = about.get("model_args")
    return Log(
        path,
        named(about["model"], "eval.model", str(path)),
        named(about["task"], "eval.task", str(path)),
        arguments if isinstance(arguments, dict) else {},
        _seconds(about.get("created")),
        bool(about.get("sandbox")),
        read,
    )


def _check_scored(path: Path, read: Sequence[Sample]) -> None:
    """Refuse a log without a score, with the errors of its samples."""
    if all(value is None for sample in read for value in sample.values.values()):
        none = f"{path}: none of its samples ({len(read)}) has a score"
        errors = Counter(text for sample in read if (text := _error_text(sample.data.get("error"))))
        if not errors:
            raise UnusableLog(f"{none}; score the log: inspect score")
        texts = "; ".join(f"{text} ({count})" for text, count in errors.most_common(3))
        raise UnusableLog(f"{none}; {errors.total()} ended by an error: {texts}; run them again: inspect eval-retry")


def _seconds(created: Any) -> float:
    """Return a log's time in seconds; one that names none is the oldest."""
    try:
        moment = datetime.fromisoformat(str(created))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except ValueError:
        return -math.inf


def _check_whole(path: Path, header: Mapping[str, Any], about: Mapping[str, Any], count: int) -> None:
    """Refuse the log of a run that broke off before its last sample."""
    dataset, config = about.get("dataset"), about.get("config")
    ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
    epochs = config.get("epochs") if isinstance(config, dict) else None
    planned = len(ids) * (epochs if isinstance(epochs, int) else 1) if isinstance(ids, list) else 0
    if header.get("status") in ("started", "cancelled", "error") and count < planned:
        problem = _error_text(header.get("error"))
        raise UnusableLog(
            f"{path}: {count} of {planned} planned samples (status {header['status']!r}"
            f"{f', {problem}' if problem else ''}); finish the run with: inspect eval-retry {path.name}"
        )


def _error_text(error: Any) -> str:
    """Return the message of an error in one line; empty where there is none."""
    message = error.get("message") if isinstance(error, dict) else error
    return " ".join(str(message).split())[:160] if message else ""


def _sample(where: str, sample: object) -> Sample:
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
    failed = bool(sample.get("error"))
    return Sample(where, item, str(sample.get("epoch")), dict.fromkeys(values) if failed else values, sample)


def _zip_module() -> Any:
    """Return the module that reads zip archives: before Python 3.14 the backport, which supports zstandard."""
    if sys.version_info < (3, 14):
        try:
            return importlib.import_module("backports.zstd.zipfile")
        except ImportError:
            pass
    return zipfile


def _open(path: Path, file: Any) -> Any:
    try:
        archive = _zip_module().ZipFile(file)
    except Exception as error:  # a damaged directory of an archive raises more than the module documents
        raise ResponsesError(f"{path}: not a zip archive, as logs of Inspect are ({error}); copy it again") from None
    names = set(archive.namelist())
    if "_journal/start.json" in names and not {"header.json", "summaries.json"} <= names:
        raise UnusableLog(
            f"{path}: the run has not ended; finish it with: inspect eval-retry {path.name}, or move it elsewhere"
        )
    if missing := {"header.json", "summaries.json"} - names:
        raise ResponsesError(f"{path}: no {min(missing)} in it; expected a log of Inspect")
    return archive


def _member(archive: Any, path: Path, name: str) -> Any:
    info = archive.getinfo(name)
    limit = min(FILE_LIMIT, max(_LEAST, _RATIO * info.compress_size))
    if info.file_size > limit:
        raise ResponsesError(
            f"{path}: {name} claims {info.file_size} bytes from {info.compress_size}, at most {limit} are read; split "
            "the log, or dump it: inspect log dump"
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
        raise ResponsesError(f"{path}: {name} cannot be unpacked ({error}); copy the log again") from None
    return load_json(bytes(content), f"{path}: {name}")


@contextlib.contextmanager
def questions_of(log: Log) -> Iterator[Callable[[Sample], tuple[LoggedQuestion | None, Any]]]:
    """Give the function from a sample to its question, None for a task with tools or files, and to its answer."""
    if log.path.suffix == ".json" or log.sandbox:
        yield lambda sample: (None, None) if log.sandbox else _question(sample.data, log.path)
        return
    with open_regular(log.path) as file:
        archive = _open(log.path, file)
        names = set(archive.namelist())

        def from_archive(sample: Sample) -> tuple[LoggedQuestion | None, Any]:
            name = f"samples/{sample.item}_epoch_{sample.epoch}.json"
            data = _member(archive, log.path, name) if name in names else None
            return _question(data if isinstance(data, dict) else sample.data, log.path)

        yield from_archive


def _question(sample: Mapping[str, Any], path: Path) -> tuple[LoggedQuestion | None, Any]:
    if sample.get("sandbox") or sample.get("files"):
        return None, None
    asked, attachments = sample.get("input"), sample.get("attachments")
    attached = attachments if isinstance(attachments, Mapping) else {}
    texts, images = _parts(asked, attached)
    target = sample.get("target")
    fields = {
        "question": texts,
        "choices": sample.get("choices") or None,
        "target": [str(each).strip() for each in target] if isinstance(target, list) else str(target or "").strip(),
        "images": images,
    }
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    message = choices[0].get("message") if isinstance(choices, list) and choices else None
    content = message.get("content") if isinstance(message, Mapping) else None
    answer = _parts([{"content": content}], attached)[0][0]["content"]
    return as_question(fields, path), answer if isinstance(answer, str) else None


def _parts(asked: Any, attached: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a sample's input with texts as contents, and its images."""
    if not isinstance(asked, list):
        return _resolved(asked, attached), []
    messages, images = [], list[str]()
    for message in asked:
        content = message.get("content") if isinstance(message, Mapping) else None
        parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
        images += [image for part in parts if isinstance(image := _resolved(part.get("image"), attached), str)]
        text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
        text = text if parts else _resolved(content, attached)
        messages.append(
            {"role": message.get("role", "user") if isinstance(message, Mapping) else "user", "content": text}
        )
    return messages, images


def _resolved(value: Any, attached: Mapping[str, Any]) -> Any:
    """Return a text, or the attachment that it refers to."""
    return attached.get(value[13:], value) if isinstance(value, str) and value.startswith("attachment://") else value


#: Scores of the letter grades of Inspect's own metrics.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
#: Characters of a question that are compared between logs; summaries may hold no more.
_COMPARED = 200


def _subjects(logs: Sequence[Log]) -> list[str]:
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
        values = {key: log.arguments[key] for key in differing if key in log.arguments}
        plain = {key: v if isinstance(v, str) else json.dumps(v, sort_keys=True) for key, v in values.items()}
        arguments_text = ",".join(f"{key}={value}" for key, value in plain.items())
        names.append(f"{log.model}({arguments_text})" if differing else log.model)
    return names


def read_inspect(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder of logs, or one log.

    An item's id is ``TASK:ID``. Its score is the mean over the epochs with a score. With several logs of one subject
    and task, each item's score is from the newest log that has one. A sample with an error is missing. A sample stopped
    by a limit keeps its score. The metric is the scorer, ``SCORER/PART`` for one with several values. A log without
    scores, or of a run that broke off, is left out of a folder that has others.
    """
    logs = _read_logs(path, settings)
    by_task: dict[str, dict[str, list[Log]]] = {}
    for subject, log in sorted(zip(_subjects(logs), logs, strict=True), key=lambda pair: (pair[0], -pair[1].created)):
        by_task.setdefault(log.task, {}).setdefault(subject, []).append(log)
    collected = Collected(str(path))
    inputs: dict[str, str] = {}
    changed: set[str] = set()
    for task, by_subject in sorted(by_task.items()):
        where = f"{path}: task {task!r}"
        scorers = set().union(*(_scorers(log) for newest_first in by_subject.values() for log in newest_first))
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
            _ask(collected, task, scorer, newest_first, inputs, changed)
    if changed:
        settings.note(
            f"{path.name}: {len(changed)} of {len(inputs)} items have another input in another log, such as "
            f"{min(changed)!r:.60}; they are taken for the same by their id"
        )
    return collected.responses()


def _read_logs(path: Path, settings: ReadSettings) -> list[Log]:
    """Read all logs; leave out those without scores if there are others."""
    if not path.is_dir():
        return [read_log(path)]
    logs: list[Log] = []
    unusable: list[UnusableLog] = []
    for file in filter(is_log, files_of(path)):
        try:
            logs.append(read_log(file))
        except UnusableLog as error:
            unusable.append(error)
    if logs:
        for left_out in unusable:
            settings.note(f"left out: {left_out}")
        return logs
    none = ResponsesError(f"{path}: no log; expected .eval archives or JSON logs of Inspect")
    raise next(iter(unusable), none)


def _scorers(log: Log) -> set[str]:
    return {name for sample in log.samples for name in sample.values}


def _number(value: Any, where: str) -> float:
    grade = _GRADES.get(value) if isinstance(value, str) else None
    return score(value, where) if grade is None else grade


def _collect(collected: Collected, subject: str, task: str, scorer: str, newest_first: Sequence[Log]) -> None:
    scored_before: set[str] = set()
    for log in newest_first:
        scored: set[str] = set()
        for sample in log.samples:
            number = _number(sample.values.get(scorer), f"{sample.where}, scorer {scorer!r}")
            if sample.item not in scored_before:
                collected.add(subject, f"{task}:{sample.item}", number)
                if not math.isnan(number):
                    scored.add(sample.item)
        scored_before |= scored


def _ask(
    collected: Collected, task: str, scorer: str, logs: Sequence[Log], inputs: dict[str, str], changed: set[str]
) -> None:
    """Add the questions that no log before had; note in `changed` the items that had another input."""
    for log in logs:
        with questions_of(log) as read:
            for sample in log.samples:
                item, text = f"{task}:{sample.item}", _compared(sample.data.get("input"))
                if item in inputs:
                    changed |= {item} if text != inputs[item] else set()
                    continue
                inputs[item] = text
                question, answer = read(sample)
                if question is not None:
                    collected.ask(item, question, sample.where)
                    collected.reply(item, answer, _number(sample.values.get(scorer), sample.where))


def _compared(asked: Any) -> str:
    """Return the beginning of an input's texts, as whole logs and their summaries both have it."""
    messages = asked if isinstance(asked, list) else [asked]
    contents = [message.get("content") if isinstance(message, dict) else message for message in messages]
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    texts = [part.get("text", "") if isinstance(part, dict) else part for part in parts]
    return " ".join(" ".join(str(text) for text in texts if text).split())[:_COMPARED]


REGISTERED = (
    ResponseReader("inspect", ".eval or JSON logs of Inspect", is_log, read_inspect, {"metric": "the scorer"}),
)
