"""Samples that lm-evaluation-harness logs: ``MODEL/samples_TASK_TIME.jsonl``."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, TaskLog, files_of, named
from pytest_adaptive_eval.banks.responses.questions import as_question, inner
from pytest_adaptive_eval.banks.rows import first_keys, json_lines, load_file
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
    requests = _requests(sample.get("arguments"))
    contexts = {context for context, _ in requests}
    if len(contexts) != 1:
        return None
    (context,) = contexts
    continuations = [continuation.strip() for _, continuation in requests if isinstance(continuation, str)]
    target = sample.get("target")
    choices = continuations if len(continuations) > 1 else None
    if choices and str(target).strip().isdecimal():
        target = int(str(target))
    elif continuations and not choices:
        target = continuations[0]
    question = as_question({"question": _chat(context), "choices": choices, "target": target}, Path())
    return None if question is None else replace(question, names=_names(sample))


def _requests(arguments: Any) -> list[tuple[str, Any]]:
    """Return context and continuation, or settings, of each request; both layouts of the tool are read."""
    if isinstance(arguments, Mapping):
        return [(str(inner(each, "arg_0")), inner(each, "arg_1")) for each in arguments.values()]
    pairs = arguments if isinstance(arguments, list) else []
    return [(str(pair[0]), pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) >= 2]


def _chat(context: str) -> Any:
    """Return the messages of a context that is a chat in JSON, else the context."""
    if context.lstrip().startswith('[{"role"'):
        with contextlib.suppress(ValueError):
            return json.loads(context)
    return context


def _names(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids in a sample by their field, such as ``doc_id`` and ``doc.id``."""
    document = sample.get("doc")
    fields = document.items() if isinstance(document, Mapping) else ()
    ids = {"doc_id": sample.get("doc_id"), **{f"doc.{key}": value for key, value in fields if _ID.fullmatch(key)}}
    plain = {key: str(value) for key, value in ids.items() if isinstance(value, str | int)}
    return {key: text for key, text in plain.items() if 0 < len(text) <= _LONGEST}


class _Line(NamedTuple):
    """One line: its document and hash, and its answer, of which only the first of a document keeps the question."""

    document: str
    hash: str
    answer: Answer


def _line(where: str, data: dict[str, Any], asked: set[tuple[str, str]]) -> _Line:
    """Return the fields of one logged sample, with the numbers among its metrics; add its document to `asked`."""
    if "doc_id" not in data and not data.get("doc_hash"):
        raise ResponsesError(
            f"{where}: an object with the keys {', '.join(sorted(data)[:6])}, expected a logged sample of "
            "lm-evaluation-harness with doc_id; log them with --log_samples"
        )
    document = named(data.get("doc_id", data.get("doc_hash")), "doc_id", where)
    identity = (str(data.get("doc_hash") or ""), document)
    question = None if identity in asked else logged_question(data)
    asked.add(identity)
    filtered = data.get("filtered_resps")
    reply = filtered[0] if isinstance(filtered, list) and filtered else None
    filter_name = str(data.get("filter") or "none")
    return _Line(document, identity[0], Answer(where, "", _values(data), question, reply, document, filter_name))


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of a sample; of an older file, which does not name them, all numbers at the top."""
    names = data.get("metrics")
    if not isinstance(names, list):
        names = [name for name, value in data.items() if type(value) in (int, float, bool)]
    named_metrics = [name for name in names if isinstance(name, str) and name not in _NO_METRICS]
    values = {name: data.get(name) for name in named_metrics}
    return {name: value for name, value in values.items() if not isinstance(value, list | dict | str)}


class _File(NamedTuple):
    """Samples of a subject on a task, and what ``results_TIME.json`` beside them states, or nothing."""

    subject: str
    task: str
    time: str
    path: Path
    results: Mapping[str, Any]

    @property
    def planned(self) -> Any:
        """Number of documents of the task."""
        return inner(self.results, "n-samples", self.task, "effective")

    @property
    def accuracies(self) -> dict[str, Any]:
        """Means by metric and filter; the results may have other sums than means."""
        listed = inner(self.results, "configs", self.task, "metric_list") or ()
        means = {each.get("metric") for each in listed if each.get("aggregation") == "mean"}
        sums = inner(self.results, "results", self.task) or {}
        return {name: value for name, value in sums.items() if name.partition(",")[0] in means}


def _files(path: Path) -> tuple[list[_File], list[Stated]]:
    """Return the files of samples, and the tasks that results in a folder name and no file has."""
    root, paths = (path, files_of(path)) if path.is_dir() else (path.parent, [path])
    samples = [(match, file) for file in paths if (match := _SAMPLES.fullmatch(file.name))]
    if not samples:
        raise ResponsesError(
            f"{path}: no samples_TASK_TIME.jsonl; expected what lm-evaluation-harness writes with --log_samples"
        )
    results = {folder: _results(folder) for folder in sorted({file.parent for _, file in samples})}
    subjects = _subjects(results, root)
    files = []
    for match, file in samples:
        time = match["time"] or ""
        stated = results[file.parent].get(f"results_{time}.json", {})
        files.append(_File(subjects[file.parent], match["task"], time, file, stated))
    return files, list(_missing_tasks(files, results)) if path.is_dir() else []


def _subjects(results: Mapping[Path, Mapping[str, Any]], root: Path) -> dict[Path, str]:
    """Return the subject of each folder: the model of its newest results, where no other folder has it, else its path.

    Different folders can have the same name; their paths below `root` differ.
    """
    models = {}
    for folder, files in results.items():
        model = inner([*files.values(), {}][0], "model_name")
        models[folder] = model if isinstance(model, str) else ""
    counts = Counter(models.values())
    paths = {folder: folder.relative_to(root).as_posix() for folder in results}
    names = {folder: root.resolve().name if path == "." else path for folder, path in paths.items()}
    return {folder: model if model and counts[model] == 1 else names[folder] for folder, model in models.items()}


def _missing_tasks(files: Sequence[_File], results: Mapping[Path, Mapping[str, Any]]) -> Iterator[Stated]:
    """Yield the tasks that the results of a subject name and none of its files has."""
    logged = {(file.task, file.subject) for file in files}
    for folder, subject in {file.path.parent: file.subject for file in files}.items():
        for name, data in results[folder].items():
            planned_tasks = inner(data, "n-samples")
            for task, counts in planned_tasks.items() if isinstance(planned_tasks, Mapping) else ():
                if (task, subject) not in logged:
                    planned = inner(counts, "effective") or 1
                    yield Stated(subject, f"{folder / name}, task {task!r}", 0, planned, "no samples file")


def _results(folder: Path) -> dict[str, Any]:
    """Return the results in a folder by the names of their files, the newest first; a damaged file states nothing."""
    found = {}
    for file in sorted(folder.glob("results*.json"), reverse=True):
        with contextlib.suppress(ResponsesError):
            found[file.name] = load_file(file)
    return found


def read_lmeval(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with a folder for each model, one model's folder, or one file.

    The subject is the model that ``results_*.json`` names, else the folder. An item's id is ``TASK:doc_hash``. It is
    ``TASK:doc_id`` when any line of the task has no hash, since ids of the two kinds would not match. Equal documents
    are one item, with the mean of their scores.
    """
    collected = Collected(str(path), texts=settings.texts)
    files, collected.stated = _files(path)
    for task in sorted({file.task for file in files}):
        logs = _logs([file for file in files if file.task == task], settings)
        collected.add_task(logs, settings, f"{path}: task {task!r}")
    return collected.responses()


def _logs(files: Sequence[_File], settings: ReadSettings) -> list[TaskLog]:
    """Return the logs of all subjects on one task."""
    asked: set[tuple[str, str]] = set()
    logged = [[_line(*line, asked) for line in json_lines(file.path)] for file in files]
    hashed = all(line.hash for line in chain(*logged))
    if not hashed:
        settings.note(f"task {files[0].task!r} has lines without doc_hash; items are identified by doc_id")
    logs = []
    for file, lines in zip(files, logged, strict=True):
        if not lines:
            raise ResponsesError(f"{file.path}: empty; remove it or run the task again")
        if twice := len(lines) - len({(line.document, line.answer.filter) for line in lines}):
            raise ResponsesError(f"{file.path}: {twice} documents stand there twice; the file holds two runs: keep one")
        answers = [line.answer._replace(item=f"{file.task}:{line.hash if hashed else line.document}") for line in lines]
        where = f"{file.path}, task {file.task!r}"
        logs.append(TaskLog(where, file.subject, answers, file.time, file.planned, "", file.accuracies))
    return logs


REGISTERED = (
    ResponseReader(
        "lm-eval",
        "samples_*.jsonl of lm-evaluation-harness",
        lambda path: _SAMPLES.fullmatch(path.name) is not None or "doc_id" in first_keys(path),
        read_lmeval,
        {"metric": "the metric", "filter": "the answer filter"},
    ),
)
