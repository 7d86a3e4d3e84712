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
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.responses.base import (
    ItemResult,
    ReadSettings,
    ResponseReader,
    ResultSettings,
    measures_of,
)
from pytest_adaptive_eval.banks.responses.files import (
    SUMMARY_ALONE,
    Answer,
    Collected,
    TaskLog,
    choose,
    files_of,
    files_that,
    named,
    score,
)
from pytest_adaptive_eval.banks.responses.questions import as_question, inner
from pytest_adaptive_eval.banks.rows import head, load_file, load_json
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.inputs import open_regular
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.items.responses import ROUNDED, LoggedQuestion, Responses
from pytest_adaptive_eval.tables import FILE_LIMIT

_ZSTANDARD = 93  # the method's number in zip archives

#: Bytes read at a time.  Decompression multiplies size by at most some thousands, so small pieces bound the memory.
_PIECE = 4096
#: A member may be this much larger than its compressed size, and at least so many bytes: logs shrink by tens at most.
_RATIO, _LEAST = 200, 2**26

_REDUCTIONS = "reductions.json"
_BEGINNING = re.compile(
    r'\s*\{\s*"(?:version"\s*:\s*\d+\s*,\s*"(?:status|eval)|status"\s*:\s*"\w+"\s*,\s*"eval)"\s*:', re.ASCII
)


class _Log(NamedTuple):
    """Header and samples of one log, or their summaries; of a run that broke off there may be none.

    Args:
        reductions: Scores of items over their epochs, by scorer and id, where the log keeps them.
    """

    path: Path
    header: Mapping[str, Any]
    samples: Sequence[Any]
    reductions: Mapping[tuple[str, str], Any]

    def about(self, *keys: str) -> Any:
        """Return a part of the run's specification: of its model, task, data set or configuration."""
        return inner(self.header, "eval", *keys)

    @property
    def epochs(self) -> int:
        """Times that each item was to be asked."""
        return self.about("config", "epochs") or 1

    @property
    def items(self) -> list[str]:
        """Items that the run was to ask; empty if the log does not say."""
        ids = self.about("dataset", "sample_ids")
        if isinstance(ids, list):
            return [f"{self.about('task')}:{str(name).strip()}" for name in ids]
        return []

    @property
    def planned(self) -> int | None:
        """Number of samples that the run was to have, an epoch each; None if the log does not say."""
        selected = len(self.items) * self.epochs
        whole = not (self.items or self.about("config", "limit") or self.about("config", "sample_id"))
        if whole:
            selected = (self.about("dataset", "samples") or 0) * self.epochs
        counts = []
        for name in ("total", "completed"):
            counts.append(inner(self.header, "results", f"{name}_samples"))
        for entry in inner(self.header, "results", "scores") or ():
            counts.append(inner(entry, "scored_samples"))
        return max(selected, *filter(None, counts), 0) or None

    @property
    def status(self) -> str:
        """Status and error of the run; empty for a run that ended as planned."""
        status = str(self.header.get("status"))[:40]
        error = _error_text(self.header.get("error"))
        if status == "success":
            return ""
        return f"status {status!r}{f', {error}' if error else ''}"

    @property
    def unscored(self) -> str:
        """Reason why the log has no score, with an error of its samples; empty if it has scores."""
        if not self.samples:
            return f"{self.path}: no samples, only a header ({self.status or 'status success'}); give the whole log"
        errors = []
        for sample in self.samples:
            if text := _error_text(sample.get("error")):
                errors.append(text)
        if errors:
            why = f"they ended by errors, such as {errors[0]}"
        else:
            why = "score the log: inspect score"
        return f"{self.path}: none of its samples ({len(self.samples)}) has a score; {why}"


def is_log(path: Path) -> bool:
    """Return whether the name and the first bytes of a file look like a log."""
    return path.suffix == ".eval" or (path.suffix == ".json" and _BEGINNING.match(head(path)) is not None)


def read_inspect(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder of logs, or one log.

    An item's id is ``TASK:ID``. Its score is the mean over the epochs with a score. With several logs of one subject
    and task, each item's score is from the newest log that has one. A sample with an error is missing. A sample stopped
    by a limit keeps its score. The metric is the scorer, ``SCORER/PART`` for one with several values.
    """
    files = files_that(is_log, path, "no log; expected .eval archives or JSON logs of Inspect")
    logs = list(map(_read_log, files))
    collected = Collected(str(path), texts=settings.texts)
    asked: set[str] = set()
    tasks: dict[str, list[TaskLog]] = {}
    named_logs = zip(_subjects(logs), logs, strict=True)
    for subject, log in sorted(named_logs, key=lambda pair: (pair[0], -_created(pair[1]))):
        answers = list(_answers(log, asked, texts=settings.texts))
        task = str(log.about("task"))
        ended = (_created(log), log.planned, log.status, _accuracies(log.header, answers), log.unscored)
        tasks.setdefault(task, []).append(
            TaskLog(f"{log.path}, task {task!r}", subject, answers, *ended, log.items, log.epochs)
        )
    for task, task_logs in sorted(tasks.items()):
        collected.add_task(task_logs, settings, f"{path}: task {task!r}")
    return collected.responses()


def results(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the items whose epochs are all there, with the mean of their scores; the run may have ended otherwise."""
    for file in files_of(folder):
        if not is_log(file):
            continue
        try:
            log = _read_log(file)
        except ResponsesError:
            if settings.ended:
                raise
            continue
        yield from _items(log, settings)


def _items(log: _Log, settings: ResultSettings) -> Iterator[ItemResult]:
    answers = list(_answers(log, set(), texts=True))
    metrics = {name for answer in answers for name in answer.values}
    metric = ""
    if metrics:
        metric = choose("metric", metrics, settings.metric, f"{log.path}, metrics")
    epochs: dict[str, list[tuple[Mapping[str, Any], Answer]]] = {}
    for sample, answer in zip(log.samples, answers, strict=True):
        epochs.setdefault(answer.item, []).append((sample, answer))
    for item, samples in epochs.items():
        if len(samples) == log.epochs:
            yield _item(item, samples, metric)


def _item(item: str, samples: Sequence[tuple[Mapping[str, Any], Answer]], metric: str) -> ItemResult:
    scores = []
    faults = []
    measures: Counter[str] = Counter()
    for sample, answer in samples:
        faults.append(_error_text(sample.get("error")))
        measures.update(_measures(sample))
        value = answer.values.get(metric)
        if value is not None:
            scores.append(score(value, answer.where))
    text = str(samples[0][1].reply or "")
    if scores:
        return ItemResult(item, sum(scores) / len(scores), "", text, measures)
    return ItemResult(item, None, next(filter(None, faults), "the sample has no score"), text, measures)


def _measures(sample: Mapping[str, Any]) -> dict[str, float]:
    """Return the tokens of all models of a sample, its seconds, and its steps, the model's messages."""
    measures = {"seconds": sample.get("total_time")}
    for usage in (sample.get("model_usage") or {}).values():
        for name in ("input_tokens", "output_tokens", "reasoning_tokens"):
            stated = inner(usage, name)
            if stated is not None:
                measures[name] = measures.get(name, 0) + stated
    if messages := sample.get("messages"):
        measures["steps"] = sum(inner(message, "role") == "assistant" for message in messages)
    return measures_of(measures)


def _read_log(path: Path) -> _Log:
    if path.suffix == ".json":
        header = load_file(path)
        samples = inner(header, "samples")
        reductions = inner(header, "reductions")
    else:
        with _archive(path) as archive:
            header, samples = _headers(archive, path)
            reductions = None
            if _REDUCTIONS in archive.namelist():
                reductions = _member(archive, path, _REDUCTIONS)
    for key in ("model", "task"):
        if inner(header, "eval", key) is None:
            raise ResponsesError(f"{path}: no eval.model and eval.task; expected a log of Inspect")
        named(inner(header, "eval", key), f"eval.{key}", str(path))
    if isinstance(samples, list):
        listed = samples
    else:
        listed = []
    for number, sample in enumerate(listed, 1):
        if not isinstance(sample, dict):
            raise ResponsesError(
                f"{path}: sample {number}: found {type(sample).__name__}, expected an object with id and scores"
            )
    return _Log(path, header, listed, _reduced(reductions))


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[Any]:
    """Open an archive; before Python 3.14 by the backport, which supports zstandard, if it is there."""
    with open_regular(path) as file:
        try:
            archive = _zip_module().ZipFile(file)
        except Exception as error:  # a damaged directory of an archive raises more than the module documents
            raise ResponsesError(
                f"{path}: not a zip archive, as logs of Inspect are ({error}); copy it again"
            ) from None
        yield archive


def _zip_module() -> Any:
    with contextlib.suppress(ImportError):
        if sys.version_info >= (3, 14):
            return zipfile
        return importlib.import_module("backports.zstd.zipfile")
    return zipfile


def _headers(archive: Any, path: Path) -> tuple[Any, Any]:
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


def _subjects(logs: Sequence[_Log]) -> list[str]:
    """Return the subject's name of each log: the model, with the arguments in which logs of that model differ.

    All local checkpoints run as ``hf/local`` and differ only in ``model_path``.
    """
    names = []
    for log in logs:
        model = log.about("model")
        arguments = log.about("model_args") or {}
        others = []
        for other in logs:
            if other.about("model") == model:
                others.append(other.about("model_args") or {})
        differing = sorted(key for key in arguments if any(other.get(key) != arguments[key] for other in others))
        text = ",".join(f"{key}={arguments[key]}" for key in differing)
        names.append(f"{model}({text})" if text else model)
    return names


def _created(log: _Log) -> float:
    """Return the time in seconds; a log that names none is the oldest."""
    try:
        moment = datetime.fromisoformat(str(log.about("created")))
    except ValueError:
        return -math.inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _accuracies(header: Mapping[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return accuracy or mean by scorer, or by part of a scorer; means over epochs with missing scores are others."""
    missing = any(value is None for answer in answers for value in answer.values.values())
    if missing and len({answer.sample for answer in answers}) > 1:
        return {}
    accuracies = {}
    for entry in inner(header, "results", "scores") or ():
        name, scorer, reducer = (inner(entry, key) for key in ("name", "scorer", "reducer"))
        for metric in ("mean", "accuracy") if reducer in (None, "mean") else ():
            if (value := inner(entry, "metrics", metric, "value")) is not None:
                accuracies[scorer if name == scorer else f"{scorer}/{name}"] = value
    return accuracies


def _answers(log: _Log, asked: set[str], *, texts: bool) -> Iterator[Answer]:
    """Yield the answers of a log, with the questions that no log before had, and their texts or all."""
    with contextlib.nullcontext() if log.path.suffix == ".json" else _archive(log.path) as archive:
        members: frozenset[str] = frozenset()
        if archive is not None:
            members = frozenset(archive.namelist())
        for number, sample in enumerate(log.samples, 1):
            name = named(sample.get("id"), "id", f"{log.path}: sample {number}")
            epoch = str(sample.get("epoch"))
            where = f"{log.path}: sample {number} (id {name!r}, epoch {epoch})"
            item = f"{log.about('task')}:{name}"
            is_new = item not in asked
            asked.add(item)
            data, values, fault = sample, _values(sample, where), ""
            if archive is not None:  # summaries have no texts
                member, fault = f"samples/{name}_epoch_{epoch}.json", SUMMARY_ALONE
                if member in members and isinstance(whole := _member(archive, log.path, member), dict):
                    data, fault = whole, _other_scores(values, _values(whole, where))
            fault = fault or _other_reduction(log, name, values, where)
            has_tools = log.about("sandbox") or data.get("sandbox") or data.get("files")
            if is_new and not has_tools:
                question = _question(data, log.path)
            else:
                question = None
            if is_new or texts:
                reply = _answer(data)
            else:
                reply = None
            steps: Sequence[AgentStep] = ()
            if texts:
                steps = _steps(data)
            yield Answer(where, item, values, question, reply, epoch, fault, steps, _measures(data))


def _other_scores(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return how the scores of a sample differ from its summary's; empty if they do not."""
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            return f"{after.get(name)!r:.40} as {name}, and {before.get(name)!r:.40} in their summaries"
    return ""


def _other_reduction(log: _Log, name: str, values: Mapping[str, Any], where: str) -> str:
    """Return how a sample of a single epoch differs from its score in the log's reductions; empty if it agrees."""
    for scorer, value in values.items() if log.epochs == 1 else ():
        reduced = log.reductions.get((scorer, name))
        if isinstance(reduced, int | float):
            own_score = score(value, where)
        else:
            own_score = 0.0
        if isinstance(reduced, int | float) and not abs(own_score - reduced) <= ROUNDED:
            return f"{own_score:g} as {scorer}, and {reduced:g} in their reductions"
    return ""


def _reduced(reductions: Any) -> dict[tuple[str, str], Any]:
    """Return the scores over epochs by scorer and id."""
    scores = {}
    for entry in reductions if isinstance(reductions, list) else ():
        for sample in inner(entry, "samples") or ():
            scores[str(inner(entry, "scorer")), str(inner(sample, "sample_id"))] = inner(sample, "value")
    return scores


def _values(sample: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the values of a sample by scorer, or by scorer and part; None in a sample with an error, and for NaN."""
    scores = sample.get("scores") or {}
    if not isinstance(scores, dict):
        raise ResponsesError(f"{where}: scores is {scores!r:.80}, expected an object by scorer")
    values: dict[str, Any] = {}
    for scorer, score_object in scores.items():
        if isinstance(score_object, dict):
            value = score_object.get("value")
        else:
            value = score_object
        if isinstance(value, dict):
            parts = {f"{scorer}/{part}": each for part, each in value.items()}
        else:
            parts = {scorer: value}
        values |= {name: None if sample.get("error") or each != each else each for name, each in parts.items()}
    return values


def _error_text(error: Any) -> str:
    """Return the message of an error in one line; empty where there is none."""
    if isinstance(error, dict):
        message = error.get("message")
    else:
        message = error
    if message:
        return " ".join(str(message).split())[:160]
    return ""


def _question(sample: Mapping[str, Any], path: Path) -> LoggedQuestion | None:
    """Return the question of a sample."""
    texts, images = _parts(sample.get("input"), sample)
    target = sample.get("target")
    answers = []
    for each in target if isinstance(target, list) else [target or ""]:
        answers.append(str(each).strip())
    fields = {"question": texts, "choices": sample.get("choices"), "target": answers, "images": images}
    return as_question(fields, path)


def _answer(sample: Mapping[str, Any]) -> Any:
    """Return the text of the model's last message; None where there is none."""
    for choice in inner(sample, "output", "choices") or ():
        messages, _ = _parts([inner(choice, "message")], sample)
        return messages[0]["content"]
    return None


def _steps(sample: Mapping[str, Any]) -> list[AgentStep]:
    """Return the messages after the input, if there are several: what an agent did, with its calls of tools."""
    steps = []
    messages, _ = _parts(sample.get("messages") or [], sample)
    for message, logged in zip(messages, sample.get("messages") or [], strict=True):
        calls = []
        for call in inner(logged, "tool_calls") or ():
            arguments = json.dumps(inner(call, "arguments"), ensure_ascii=False)
            calls.append(f"{inner(call, 'function')}({arguments})")
        steps.append(AgentStep(str(message.get("role")), "\n".join(filter(None, [str(message["content"]), *calls]))))
    if sum(step.role == "assistant" for step in steps) < 2:
        return []
    return steps


def _parts(asked: Any, sample: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Return a sample's input with texts as contents, and its images."""
    if not isinstance(asked, list):
        return _resolved(asked, sample), []
    messages = []
    images = list[str]()
    for message in asked:
        content = inner(message, "content")
        if isinstance(content, list):
            parts = content
        else:
            parts = [{"text": _resolved(content, sample)}]
        texts = []
        for part in parts:
            if isinstance(text := inner(part, "text"), str):
                texts.append(text)
        images += [image for part in parts if isinstance(image := _resolved(inner(part, "image"), sample), str)]
        messages.append({"role": inner(message, "role") or "user", "content": "\n".join(texts)})
    return messages, images


def _resolved(value: Any, sample: Mapping[str, Any]) -> Any:
    """Return a text, or the attachment of the sample that it refers to."""
    is_reference = isinstance(value, str) and value.startswith("attachment://")
    attached = None
    if is_reference:
        attached = inner(sample, "attachments", value.removeprefix("attachment://"))
    if attached is None:
        return value
    return attached


REGISTERED = (
    ResponseReader(
        "inspect", ".eval or JSON logs of Inspect", is_log, read_inspect, {"metric": "the scorer"}, results=results
    ),
)
