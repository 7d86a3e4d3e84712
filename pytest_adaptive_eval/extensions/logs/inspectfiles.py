"""One log of Inspect: an ``.eval`` archive, or JSON; its scores, errors and questions."""

from __future__ import annotations

import contextlib
import importlib
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

from pytest_adaptive_eval.banks.responses.files import named
from pytest_adaptive_eval.banks.responses.questions import as_question
from pytest_adaptive_eval.banks.rows import head, load_file, load_json
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.responses import LoggedQuestion
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
        data: The sample as it stands in the log, or its summary.
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
    """Return whether the name and the first bytes of a file are those of a log."""
    return path.suffix == ".eval" or (path.suffix == ".json" and _BEGINNING.match(head(path)) is not None)


def read_log(path: Path) -> Log:
    """Read one log.

    Raises:
        UnusableLog: It has no samples, or none of them has a score; the message names the errors in it.
        ResponsesError: It cannot be read.
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
    arguments = about.get("model_args")
    return Log(
        path,
        named(about["model"], "eval.model", str(path)),
        named(about["task"], "eval.task", str(path)),
        arguments if isinstance(arguments, dict) else {},
        _time(about.get("created")),
        bool(about.get("sandbox")),
        _scored(path, [_sample(f"{path}: sample {number}", sample) for number, sample in enumerate(samples, 1)]),
    )


def _scored(path: Path, samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the samples; refuse a log of which none has a score."""
    if any(value is not None for sample in samples for value in sample.values.values()):
        return samples
    errors = Counter(text for sample in samples if (text := _error_text(sample.data.get("error"))))
    if not errors:
        raise UnusableLog(f"{path}: none of its samples ({len(samples)}) has a score; score the log: inspect score")
    texts = "; ".join(f"{text} ({count})" for text, count in errors.most_common(3))
    raise UnusableLog(
        f"{path}: none of its samples ({len(samples)}) has a score; {errors.total()} ended by an error: {texts}; run "
        "them again: inspect eval-retry"
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


def _time(created: object) -> float:
    try:
        moment = datetime.fromisoformat(str(created))
    except ValueError:
        return -math.inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# --- archives --------------------------------------------------------------------------------------------------------


def _zip_module() -> Any:
    """Return the module that reads zip archives: before Python 3.14 the backport, which supports zstandard."""
    if sys.version_info < (3, 14):
        try:
            return importlib.import_module("backports.zstd.zipfile")
        except ImportError:
            pass
    return zipfile


def _open(path: Path, file: Any) -> Any:
    """Return the archive of a finished log."""
    try:
        archive = _zip_module().ZipFile(file)
    except Exception as error:  # a damaged directory of an archive raises more than the module documents
        raise ResponsesError(f"{path}: not a zip archive, as logs of Inspect are ({error}); copy it anew") from None
    names = set(archive.namelist())
    if "_journal/start.json" in names and not {"header.json", "summaries.json"} <= names:
        raise UnusableLog(
            f"{path}: the run has not ended; finish it with: inspect eval-retry {path.name}, or move it elsewhere"
        )
    if missing := {"header.json", "summaries.json"} - names:
        raise ResponsesError(f"{path}: no {min(missing)} in it; expected a log of Inspect")
    return archive


def _member(archive: Any, path: Path, name: str) -> Any:
    """Return a member of an archive, parsed."""
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
        raise ResponsesError(f"{path}: {name} cannot be unpacked ({error}); copy the log anew") from None
    return load_json(bytes(content), f"{path}: {name}")


# --- questions -------------------------------------------------------------------------------------------------------


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
