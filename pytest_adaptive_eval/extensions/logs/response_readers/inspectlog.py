"""Logs of Inspect: ``.eval`` archives, and logs written or dumped as JSON."""

from __future__ import annotations

import contextlib
import importlib
import math
import re
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, files_of, named
from pytest_adaptive_eval.banks.responses.questions import as_question, inner
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

#: Scores of the letter grades of Inspect's own metrics.
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
_BEGINNING = re.compile(
    r'\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"(?:status|eval)|status"\s*:\s*"\w+"\s*,\s*"eval)"\s*:', re.ASCII
)


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
    """Header and samples of one log, which may be that of a run that broke off."""

    path: Path
    header: Mapping[str, Any]
    samples: Sequence[Sample]

    def about(self, *keys: str) -> Any:
        """Return a part of the run's specification: of its model, task, data set or configuration."""
        return inner(self.header, "eval", *keys)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments of the model."""
        return self.about("model_args") or {}

    @property
    def created(self) -> float:
        """Time in seconds; a log that names none is the oldest."""
        try:
            moment = datetime.fromisoformat(str(self.about("created")))
        except ValueError:
            return -math.inf
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

    @property
    def planned(self) -> int | None:
        """Number of samples that the run was to have, an epoch each; None if the log does not say."""
        ids = self.about("dataset", "sample_ids")
        selected = len(ids) * (self.about("config", "epochs") or 1) if isinstance(ids, list) else 0
        return max(selected, inner(self.header, "results", "total_samples") or 0) or None

    @property
    def status(self) -> str:
        """How the run ended, with its error; empty for a run that ended as planned."""
        status = str(self.header.get("status"))[:40]
        error = _error_text(self.header.get("error"))
        return "" if status == "success" else f"status {status!r}{f', {error}' if error else ''}"

    @property
    def unscored(self) -> str:
        """Why the log has no score, with an error of its samples; empty for a log with scores."""
        if not self.samples:
            return f"{self.path}: no samples, only a header ({self.status or 'status success'}); give the whole log"
        if any(value is not None for sample in self.samples for value in sample.values.values()):
            return ""
        none = f"{self.path}: none of its samples ({len(self.samples)}) has a score"
        error = next((text for sample in self.samples if (text := _error_text(sample.data.get("error")))), "")
        return f"{none}; they ended by errors, such as {error}" if error else f"{none}; score the log: inspect score"

    @property
    def accuracies(self) -> dict[str, Any]:
        """Accuracy or mean by scorer, or by part of a scorer; means over epochs with missing scores are others."""
        missing = any(value is None for sample in self.samples for value in sample.values.values())
        if missing and any(sample.epoch != self.samples[0].epoch for sample in self.samples):
            return {}
        found: dict[str, Any] = {}
        for entry in inner(self.header, "results", "scores") or ():
            name, scorer, reducer = (inner(entry, key) for key in ("name", "scorer", "reducer"))
            part = scorer if name == scorer else f"{scorer}/{name}"
            for metric in ("mean", "accuracy") if reducer in (None, "mean") else ():
                if (value := inner(entry, "metrics", metric, "value")) is not None:
                    found[part] = value
        return found


def is_log(path: Path) -> bool:
    """Return whether the name and the first bytes of a file look like a log."""
    return path.suffix == ".eval" or (path.suffix == ".json" and _BEGINNING.match(head(path)) is not None)


def read_log(path: Path) -> Log:
    """Read one log; one of a run that broke off may have no samples."""
    if path.suffix == ".json":
        header = load_file(path)
        samples = header.get("samples") if isinstance(header, dict) else None
    else:
        with open_regular(path) as file:
            header, samples = _read_archive(_open(path, file), path)
    if inner(header, "eval", "model") is None or inner(header, "eval", "task") is None:
        raise ResponsesError(f"{path}: no eval.model and eval.task; expected a log of Inspect")
    for key in ("model", "task"):
        named(inner(header, "eval", key), f"eval.{key}", str(path))
    listed = samples if isinstance(samples, list) else []
    return Log(path, header, [_sample(f"{path}: sample {number}", each) for number, each in enumerate(listed, 1)])


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
        # a scorer may have several values
        parts = (
            {f"{scorer}/{part}": each for part, each in value.items()} if isinstance(value, dict) else {scorer: value}
        )
        values |= {name: None if sample.get("error") else _number(each) for name, each in parts.items()}
    return Sample(where, item, str(sample.get("epoch")), values, sample)


def _number(value: Any) -> Any:
    """Return a letter grade as a number, None for NaN, and any other value as it is."""
    if isinstance(value, str):
        return _GRADES.get(value, value)
    return None if isinstance(value, float) and math.isnan(value) else value


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
        return _zip_module().ZipFile(file)
    except Exception as error:  # a damaged directory of an archive raises more than the module documents
        raise ResponsesError(f"{path}: not a zip archive, as logs of Inspect are ({error}); copy it again") from None


def _read_archive(archive: Any, path: Path) -> tuple[Any, Any]:
    """Return the header and the summaries of an archive; a run that has not ended has its first header alone."""
    names = set(archive.namelist())
    missing = {"header.json", "summaries.json"} - names
    if missing and "_journal/start.json" in names:
        start = _member(archive, path, "_journal/start.json")
        return {"status": "started", **(start if isinstance(start, dict) else {})}, []
    if missing:
        raise ResponsesError(f"{path}: no {min(missing)} in it; expected a log of Inspect")
    return _member(archive, path, "header.json"), _member(archive, path, "summaries.json")


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
def _whole_samples(log: Log) -> Iterator[Callable[[Sample], Mapping[str, Any]]]:
    """Give the function from a sample to its data; of an archive that is a member of its own."""
    about = {"sandbox": True} if log.about("sandbox") else {}
    if log.path.suffix == ".json":
        yield lambda sample: {**sample.data, **about}
        return
    with open_regular(log.path) as file:
        archive = _open(log.path, file)
        names = set(archive.namelist())

        def from_archive(sample: Sample) -> Mapping[str, Any]:
            name = f"samples/{sample.item}_epoch_{sample.epoch}.json"
            data = _member(archive, log.path, name) if name in names else None
            return {**(data if isinstance(data, dict) else sample.data), **about}

        yield from_archive


def _question(sample: Mapping[str, Any], path: Path) -> LoggedQuestion | None:
    """Return the question of a sample; None for one with tools or files."""
    if sample.get("sandbox") or sample.get("files"):
        return None
    texts, images = _parts(sample.get("input"), _attachments(sample))
    target = sample.get("target")
    answers = [str(each).strip() for each in (target if isinstance(target, list) else [target or ""])]
    fields = {"question": texts, "choices": sample.get("choices"), "target": answers, "images": images}
    return as_question(fields, path)


def _answer(sample: Mapping[str, Any]) -> Any:
    """Return the text of the model's last message; None where there is none."""
    for choice in inner(sample, "output", "choices") or ():
        messages, _ = _parts([inner(choice, "message")], _attachments(sample))
        return messages[0]["content"]
    return None


def _parts(asked: Any, attached: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a sample's input with texts as contents, and its images."""
    if not isinstance(asked, list):
        return _resolved(asked, attached), []
    messages, images = [], list[str]()
    for message in asked:
        content = message.get("content") if isinstance(message, Mapping) else None
        parts = content if isinstance(content, list) else [{"text": _resolved(content, attached)}]
        plain = [part for part in parts if isinstance(part, Mapping)]
        texts = [part["text"] for part in plain if isinstance(part.get("text"), str)]
        images += [image for part in plain if isinstance(image := _resolved(part.get("image"), attached), str)]
        role = message.get("role", "user") if isinstance(message, Mapping) else "user"
        messages.append({"role": role, "content": "\n".join(texts)})
    return messages, images


def _attachments(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the texts and images that a sample's messages refer to."""
    attached = sample.get("attachments")
    return attached if isinstance(attached, Mapping) else {}


def _resolved(value: Any, attached: Mapping[str, Any]) -> Any:
    """Return a text, or the attachment that it refers to."""
    return attached.get(value[13:], value) if isinstance(value, str) and value.startswith("attachment://") else value


def _subjects(logs: Sequence[Log]) -> list[str]:
    """Return the subject's name of each log: the model, with the arguments in which logs of that model differ.

    All local checkpoints run as ``hf/local`` and differ only in ``model_path``.
    """
    names = []
    for log in logs:
        others = [other.arguments for other in logs if other.about("model") == log.about("model")]
        own = log.arguments
        differing = sorted(key for key in own if any(other.get(key) != own[key] for other in others))
        text = ",".join(f"{key}={own[key]}" for key in differing)
        names.append(f"{log.about('model')}({text})" if text else log.about("model"))
    return names


def read_inspect(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder of logs, or one log.

    An item's id is ``TASK:ID``. Its score is the mean over the epochs with a score. With several logs of one subject
    and task, each item's score is from the newest log that has one. A sample with an error is missing. A sample stopped
    by a limit keeps its score. The metric is the scorer, ``SCORER/PART`` for one with several values.
    """
    logs = [read_log(file) for file in files_of(path) if is_log(file)] if path.is_dir() else [read_log(path)]
    if not logs:
        raise ResponsesError(f"{path}: no log; expected .eval archives or JSON logs of Inspect")
    unscored = [log.unscored for log in logs if log.unscored]
    if len(unscored) == len(logs):
        raise ResponsesError(unscored[0])
    for reason in unscored:
        settings.note(f"left out: {reason}")
    collected = Collected(str(path), texts=settings.texts)
    asked: set[str] = set()
    tasks: dict[str, list[TaskLog]] = {}
    for subject, log in sorted(zip(_subjects(logs), logs, strict=True), key=lambda pair: (pair[0], -pair[1].created)):
        answers = list(_answers(log, asked, texts=settings.texts))
        task = str(log.about("task"))
        where = f"{log.path}, task {task!r}"
        tasks.setdefault(task, []).append(
            TaskLog(where, subject, answers, log.created, log.planned, log.status, log.accuracies, log.unscored)
        )
    for task, task_logs in sorted(tasks.items()):
        collected.add_task(task_logs, settings, f"{path}: task {task!r}")
    return collected.responses()


def _answers(log: Log, asked: set[str], *, texts: bool) -> Iterator[Answer]:
    """Yield the answers of a log, with the questions that no log before had, and their texts or all."""
    with _whole_samples(log) as whole:
        for sample in log.samples:
            item = f"{log.about('task')}:{sample.item}"
            is_new = item not in asked
            asked.add(item)
            data = whole(sample) if is_new or texts else {}
            question = _question(data, log.path) if is_new else None
            yield Answer(sample.where, item, sample.values, question, _answer(data), sample.epoch)


REGISTERED = (
    ResponseReader("inspect", ".eval or JSON logs of Inspect", is_log, read_inspect, {"metric": "the scorer"}),
)
