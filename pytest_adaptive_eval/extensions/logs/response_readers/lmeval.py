"""Samples that lm-evaluation-harness logs: ``MODEL/samples_TASK_TIME.jsonl``."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.responses.base import ItemResult, ReadSettings, ResponseReader, ResultSettings
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, choose, files_of, files_that, named
from pytest_adaptive_eval.banks.responses.questions import as_question, inner
from pytest_adaptive_eval.banks.rows import TableRecord, first_keys, json_lines, load_file
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses, Stated

#: Fields of a document that are ids, and the longest id.
_ID, _LONGEST = re.compile(r"(?:.*_)?(?:id|idx|key|index|uid|qid|pid|name|number)", re.IGNORECASE), 120
# the Open LLM Leaderboard writes the same lines to .json
_SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl?(?:\.gz)?")
#: Top-level numbers of older files that are not metrics.
_NO_METRICS = frozenset({"doc_id", "target", "sample_len"})


def logged_question(sample: Mapping[str, Any]) -> LoggedQuestion | None:
    """Return the question of a sample; None if its requests have different contexts, or none.

    The prompt is the context with its examples. Several continuations of one context are choices.
    """
    pairs = _requests(sample.get("arguments"))
    contexts = {str(pair[0]) for pair in pairs}
    if len(contexts) != 1:
        return None
    asked = contexts.pop()
    if asked.lstrip().startswith('[{"role"'):
        with contextlib.suppress(ValueError):
            asked = json.loads(asked)
    continuations = []
    for pair in pairs:
        if isinstance(pair[1], str):
            continuations.append(pair[1].strip())
    target = sample.get("target")
    choices = None
    if len(continuations) > 1:
        choices = continuations
    if choices and str(target).strip().isdecimal():
        target = int(str(target))
    elif continuations and not choices:
        target = continuations[0]
    fields = {"question": asked, "choices": choices, "target": target, "names": _names(sample)}
    return as_question(fields, Path())


def _requests(arguments: Any) -> list[list[Any]]:
    """Return context and continuation, or settings, of each request; both layouts of the tool are read."""
    if isinstance(arguments, Mapping):
        return [[inner(each, "arg_0"), inner(each, "arg_1")] for each in arguments.values()]
    return [pair for pair in arguments or () if isinstance(pair, list) and len(pair) >= 2]


def _names(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids in a sample by their field, such as ``doc_id`` and ``doc.id``."""
    document = sample.get("doc")
    if isinstance(document, Mapping):
        fields = document
    else:
        fields = {}
    ids = {"doc_id": sample.get("doc_id"), **{f"doc.{key}": fields[key] for key in fields if _ID.fullmatch(key)}}
    plain = {}
    for key, value in ids.items():
        if isinstance(value, str | int):
            plain[key] = str(value)
    return {key: text for key, text in plain.items() if 0 < len(text) <= _LONGEST}


class _File(NamedTuple):
    """Samples of a subject on a task, and what ``results_TIME.json`` beside them states, or nothing."""

    subject: str
    task: str
    time: str
    path: Path
    results: Mapping[str, Any]

    @property
    def _counts(self) -> tuple[tuple[str, ...], ...]:
        """Keys of the numbers of documents in the results."""
        return ("n-samples", self.task, "effective"), ("results", self.task, "sample_len")

    def log(self, answers: list[Answer], filter_name: str) -> TaskLog:
        """Return the answers by one filter, with the means that the results state; they may have other sums too."""
        counts = [inner(self.results, *keys) for keys in self._counts]
        planned = max((count for count in counts if isinstance(count, int)), default=None)
        listed = inner(self.results, "configs", self.task, "metric_list") or ()
        means = set()
        for each in listed:
            if each.get("aggregation") == "mean":
                means.add(each.get("metric"))
        sums = inner(self.results, "results", self.task) or {}
        accuracies = {metric: sums.get(f"{metric},{filter_name}") for metric in means}
        return TaskLog(f"{self.path}, task {self.task!r}", self.subject, answers, self.time, planned, "", accuracies)


def read_lmeval(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with a folder for each model, one model's folder, or one file.

    The subject is the model that ``results_*.json`` names, else the folder. An item's id is ``TASK:doc_hash``. It is
    ``TASK:doc_id`` when any line of the task has no hash, since ids of the two kinds would not match. Equal documents
    are one item, with the mean of their scores.
    """
    collected = Collected(str(path), texts=settings.texts)
    expected = "no samples_TASK_TIME.jsonl; expected what lm-evaluation-harness writes with --log_samples"
    samples = files_that(lambda file: _SAMPLES.fullmatch(file.name) is not None, path, expected)
    results = {}
    for folder in sorted({file.parent for file in samples}):
        results[folder] = _results(folder)
    subjects = _subjects(results, path if path.is_dir() else path.parent)
    tasks: dict[str, list[_File]] = {}
    for file in samples:
        match = _SAMPLES.fullmatch(file.name)
        if match:
            task, time = (match["task"], match["time"] or "")
        else:
            task, time = (file.stem, "")
        stated = results[file.parent].get(f"results_{time}.json", {})
        tasks.setdefault(task, []).append(_File(subjects[file.parent], task, time, file, stated))
    if path.is_dir():
        collected.stated = list(_missing_tasks(tasks, results, subjects))
    for task, files in sorted(tasks.items()):
        collected.add_task(_logs(files, settings, f"{path}: task {task!r}"), settings, f"{path}: task {task!r}")
    return collected.responses()


def results(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the documents by task and hash, once the harness has written its samples; it writes them at its end."""
    if not any(_SAMPLES.fullmatch(file.name) for file in files_of(folder)):
        return
    responses = read_lmeval(folder, ReadSettings(metric=settings.metric, filter=settings.filter, texts=True))
    for subject in responses.subjects:
        texts = {}
        for item, replies in responses.replies.items():
            for reply in replies:
                if reply.subject == subject:
                    texts[item] = reply.text
        for item, score in responses.scores_of(subject).items():
            text = texts.get(item, "")
            if math.isnan(score):
                yield ItemResult(item, None, "the log has no score of it", text, {}, subject)
            else:
                yield ItemResult(item, score, "", text, {}, subject)


def _results(folder: Path) -> dict[str, Any]:
    """Return the results in a folder by the names of their files, the newest first; a damaged file states nothing."""
    results = {}
    for file in sorted(folder.glob("results*.json"), reverse=True):
        with contextlib.suppress(ResponsesError):
            results[file.name] = load_file(file)
    return results


def _subjects(results: Mapping[Path, Mapping[str, Any]], root: Path) -> dict[Path, str]:
    """Return the subject of each folder: the model of its newest results, where no other folder has it, else its path.

    Different folders can have the same name; their paths below `root` differ.
    """
    models = {folder: inner(next(iter(files.values()), None), "model_name") for folder, files in results.items()}
    counts = Counter(str(model) for model in models.values())
    names = {}
    for folder, model in models.items():
        relative = folder.relative_to(root).as_posix()
        is_unique = isinstance(model, str) and model and counts[model] == 1
        if is_unique:
            names[folder] = model
        else:
            names[folder] = root.resolve().name if relative == "." else relative
    return names


def _missing_tasks(
    tasks: Mapping[str, list[_File]], results: Mapping[Path, Mapping[str, Any]], subjects: Mapping[Path, str]
) -> Iterator[Stated]:
    """Yield the tasks that the results of a subject name and none of its files has."""
    logged = {(task, file.subject) for task, files in tasks.items() for file in files}
    for folder, subject in subjects.items():
        for name, data in results[folder].items():
            named_tasks = []
            for part in ("n-samples", "configs"):
                for key in _keys(inner(data, part)):
                    named_tasks.append(key)
            for task in dict.fromkeys(named_tasks):
                if (task, subject) not in logged:
                    count = inner(data, "n-samples", task, "effective") or 1
                    yield Stated(subject, f"{folder / name}, task {task!r}", 0, count, "no samples file")


def _keys(value: Any) -> Sequence[str]:
    if isinstance(value, Mapping):
        return [*value]
    return []


class _Line(NamedTuple):
    """One line: the hash of its document, if it has one, its filter, and its answer under the document's number."""

    hash: str
    filter: str
    answer: Answer


def _logs(files: list[_File], settings: ReadSettings, where: str) -> list[TaskLog]:
    """Return the logs of all subjects on one task, by one filter."""
    asked: set[tuple[str, str]] = set()
    logged = [[_line(row, asked) for row in json_lines(file.path)] for file in files]
    lines = list(chain(*logged))
    hashed = all(line.hash for line in lines)
    if not hashed:
        settings.note(f"task {files[0].task!r} has lines without doc_hash; items are identified by doc_id")
    filters = {line.filter for line in lines}
    if filters:
        filter_name = choose("filter", filters, settings.filter, f"{where}, filters")
    else:
        filter_name = ""
    logs = []
    for file, entries in zip(files, logged, strict=True):
        chosen = [line for line in entries if line.filter == filter_name]
        check_faults(_file_faults(entries, chosen), str(file.path), ResponsesError)
        ids = []
        for line in chosen:
            ids.append(line.hash if hashed else line.answer.item)
        answers = []
        for id, line in zip(ids, chosen, strict=True):
            answers.append(line.answer._replace(item=f"{file.task}:{id}"))
        logs.append(file.log(answers, filter_name))
    return logs


def _file_faults(lines: Sequence[_Line], chosen: Sequence[_Line]) -> Iterator[str]:
    twice = len(chosen) - len({line.answer.item for line in chosen})
    if not lines:
        yield "empty; remove it or run the task again"
    if twice:
        yield f"{twice} documents occur twice; the file holds two runs: keep one"


def _line(row: TableRecord, asked: set[tuple[str, str]]) -> _Line:
    """Return one logged sample; only the first of a document, which is added to `asked`, keeps the question."""
    where = row.where
    data = row.data
    if "doc_id" not in data and not data.get("doc_hash"):
        raise ResponsesError(
            f"{where}: an object with the keys {', '.join(sorted(data)[:6])}, expected a logged sample of "
            "lm-evaluation-harness with doc_id; log them with --log_samples"
        )
    document = named(data.get("doc_id", data.get("doc_hash")), "doc_id", where)
    identity = (str(data.get("doc_hash") or ""), document)
    if identity in asked:
        question = None
    else:
        question = logged_question(data)
    asked.add(identity)
    filtered = data.get("filtered_resps")
    reply = None
    if isinstance(filtered, list) and filtered:
        reply = filtered[0]
    return _Line(
        identity[0],
        str(data.get("filter") or "none"),
        Answer(where, document, _values(data), question, reply, document),
    )


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of a sample; of an older file, which does not name them, all numbers at the top."""
    names = data.get("metrics")
    if not isinstance(names, list):
        names = [name for name in data if name not in _NO_METRICS]
    values = {}
    for name in names:
        if isinstance(name, str):
            values[name] = data.get(name)
    return {name: value for name, value in values.items() if value is None or isinstance(value, int | float)}


REGISTERED = (
    ResponseReader(
        "lm-eval",
        "samples_*.jsonl of lm-evaluation-harness",
        lambda path: _SAMPLES.fullmatch(path.name) is not None or "doc_id" in first_keys(path),
        read_lmeval,
        {"metric": "the metric", "filter": "the answer filter"},
        results=results,
    ),
)
