"""Samples that lm-evaluation-harness logs: ``MODEL/samples_TASK_TIME.jsonl``."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, choose, files_of, mean_score, named
from pytest_adaptive_eval.banks.rows import first_keys, json_lines, load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses, Stated

#: Fields of a document that are ids.
_ID = re.compile(r"(?:.*_)?(?:id|idx|key|index|uid|qid|pid|name|number)", re.IGNORECASE)
#: Longest id.
_LONGEST = 120


def logged_question(sample: Mapping[str, Any]) -> LoggedQuestion | None:
    """Return the question of a sample; None if its requests have different contexts, or none.

    The prompt is the context with its examples. Several continuations of one context are choices.
    """
    requests = _requests(sample.get("arguments"))
    contexts = {context for context, _ in requests}
    if len(contexts) != 1 or not (context := contexts.pop()):
        return None
    continuations = [continuation for _, continuation in requests]
    target = sample.get("target")
    if isinstance(continuations[0], str) and len(requests) > 1:
        choices = tuple(str(continuation).strip() for continuation in continuations)
        answers = _right_choice(target, choices)
    elif isinstance(continuations[0], str):
        choices, answers = (), (continuations[0].strip(),)
    else:
        texts = target if isinstance(target, list) else [target]
        choices, answers = (), tuple(str(text).strip() for text in texts if text not in (None, ""))
    chat = _chat(context)
    return LoggedQuestion(
        prompt="" if chat else context, messages=chat, choices=choices, answers=answers, names=_names(sample)
    )


def _requests(arguments: Any) -> list[tuple[str, Any]]:
    """Return context and continuation, or settings, of each request; both layouts of the tool are read."""
    if isinstance(arguments, Mapping):
        pairs: list[Any] = [
            [each.get("arg_0"), each.get("arg_1")] for each in arguments.values() if isinstance(each, Mapping)
        ]
    else:
        pairs = arguments if isinstance(arguments, list) else []
    requests = [(pair[0], pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) >= 2]
    return requests if all(isinstance(context, str) for context, _ in requests) else []


def _right_choice(target: Any, choices: Sequence[str]) -> tuple[str, ...]:
    """Return the letter of the right choice, which the target names by number or by text."""
    text = str(target).strip()
    by_number = text.isdecimal() and int(text) < len(choices)
    index = int(text) if by_number else choices.index(text) if text in choices else 26
    return (chr(ord("A") + index),) if index < 26 else ()


def _chat(context: str) -> tuple[Mapping[str, Any], ...]:
    """Return the messages of a context that is a chat in JSON; none for a plain text."""
    if not context.lstrip().startswith('[{"role"'):
        return ()
    try:
        messages = json.loads(context)
    except ValueError:
        return ()
    fits = all(isinstance(m, dict) and isinstance(m.get("content"), str) and "role" in m for m in messages)
    return tuple({"role": str(m["role"]), "content": m["content"]} for m in messages) if fits else ()


def _names(sample: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids in a sample by their field, such as ``doc_id`` and ``doc.id``."""
    document = sample.get("doc")
    fields = {f"doc.{key}": value for key, value in document.items()} if isinstance(document, Mapping) else {}
    named = {key: value for key, value in fields.items() if _ID.fullmatch(key.removeprefix("doc."))}
    ids = {"doc_id": sample.get("doc_id"), **named}
    return {
        key: str(value)
        for key, value in ids.items()
        if isinstance(value, str | int) and not isinstance(value, bool) and 0 < len(str(value)) <= _LONGEST
    }


# the Open LLM Leaderboard writes the same lines to .json
_SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl?(?:\.gz)?")

#: Top-level numbers of older files that are not metrics.
_NO_METRICS = frozenset({"doc_id", "target", "sample_len"})


@dataclass(frozen=True, slots=True)
class _Line:
    """Fields of one line that are needed; only the first line of each document keeps its question."""

    where: str
    document: str
    hash: str
    filter: str
    values: Mapping[str, Any]
    question: LoggedQuestion | None
    reply: Any


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
    filtered, names = data.get("filtered_resps"), data.get("metrics")
    if not isinstance(names, list):
        names = [name for name, value in data.items() if type(value) in (int, float, bool)]
    metrics = {name: data.get(name) for name in names if isinstance(name, str) and name not in _NO_METRICS}
    return _Line(
        where,
        document,
        identity[0],
        str(data.get("filter") or "none"),
        {name: value for name, value in metrics.items() if not isinstance(value, list | dict | str)},
        question,
        filtered[0] if isinstance(filtered, list) and filtered and isinstance(filtered[0], str) else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _File:
    """The newest samples of a subject on a task.

    Args:
        results: What ``results_TIME.json`` beside it states; empty without one.
    """

    subject: str
    task: str
    path: Path
    results: Mapping[str, Any]

    def stated(self, held: int, metric: str, filter_name: str, measured: float | None) -> Stated:
        """Return what the results state about the task."""
        planned = _inner(self.results, "n-samples", self.task, "effective")
        accuracy = _inner(self.results, "results", self.task, f"{metric},{filter_name}")
        listed = _inner(self.results, "configs", self.task, "metric_list")
        plain = {each.get("metric") for each in listed or () if each.get("aggregation") == "mean"}
        stated = float(accuracy) if metric in plain and isinstance(accuracy, int | float) else None
        count = planned if isinstance(planned, int) else None
        return Stated(self.subject, f"{self.path}, task {self.task!r}", held, count, "", stated, measured)


def _inner(data: Any, *keys: str) -> Any:
    """Return the value under keys, each within the object before; None if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _newest_files(path: Path, settings: ReadSettings) -> tuple[list[_File], list[Stated]]:
    """Return the newest file of each task and subject, and the tasks that results name and no file has."""
    root, paths = (path, files_of(path)) if path.is_dir() else (path.parent, [path])
    samples = [(match, file) for file in paths if (match := _SAMPLES.fullmatch(file.name))]
    if not samples:
        raise ResponsesError(
            f"{path}: no samples_TASK_TIME.jsonl; expected what lm-evaluation-harness writes with --log_samples"
        )
    results = {folder: _results(folder) for folder in sorted({file.parent for _, file in samples})}
    named_models = {folder: _model_name(files.values()) for folder, files in results.items()}
    counts = Counter(named_models.values())
    newest: dict[tuple[str, str], _File] = {}
    for match, file in sorted(samples, key=lambda sample: (sample[0]["time"] or "", sample[1])):
        # Different folders can have the same name; their paths below `path` differ.
        folder = file.parent.relative_to(root).as_posix()
        subject = named_models[file.parent]
        if not subject or counts[subject] > 1:
            subject = root.resolve().name if folder == "." else folder
        stated = results[file.parent].get(f"results_{match['time']}.json", {})
        newest[match["task"], subject] = _File(subject, match["task"], file, stated)
    if older := len(samples) - len(newest):
        settings.note(f"{path.name}: {older} older sample files of tasks that were run again are left out")
    missing = _missing_tasks(newest, results) if path.is_dir() else []
    return [newest[key] for key in sorted(newest)], missing


def _missing_tasks(
    newest: Mapping[tuple[str, str], _File], results: Mapping[Path, Mapping[str, Mapping[str, Any]]]
) -> list[Stated]:
    """Return the tasks that the results of a subject name and none of its files has."""
    subjects = {file.path.parent: file.subject for file in newest.values()}
    return [
        Stated(subject, f"{folder / name}, task {task!r}", 0, _inner(counts, "effective") or 1, "no samples file")
        for folder, subject in subjects.items()
        for name, data in results[folder].items()
        for task, counts in (_inner(data, "n-samples") or {}).items()
        if (task, subject) not in newest
    ]


def _results(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return the results in a folder by the names of their files; a damaged file states nothing."""
    found: dict[str, Mapping[str, Any]] = {}
    for file in sorted(folder.glob("results*.json")):
        with contextlib.suppress(ResponsesError):
            data = load_file(file)
            if isinstance(data, dict):
                found[file.name] = data
    return found


def _model_name(results: Iterable[Mapping[str, Any]]) -> str:
    """Return the model that the newest results with a name have; empty without one."""
    names = [str(data.get("model_name") or "").strip() for data in results]
    return next((name for name in reversed(names) if name), "")


def read_lmeval(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with a folder for each model, one model's folder, or one file.

    The subject is the model that ``results_*.json`` names, else the folder. An item's id is ``TASK:doc_hash``. It is
    ``TASK:doc_id`` when any line of the task has no hash, since ids of the two kinds would not match. Equal documents
    are one item, with the mean of their scores.
    """
    collected = Collected(str(path), texts=settings.texts)
    files, collected.stated = _newest_files(path, settings)
    for task in dict.fromkeys(file.task for file in files):
        _collect_task(collected, path, [file for file in files if file.task == task], settings)
    return collected.responses()


def _collect_task(collected: Collected, path: Path, files: Sequence[_File], settings: ReadSettings) -> None:
    """Collect the scores of all subjects on one task, by one filter and one metric."""
    task = files[0].task
    where = f"{path}: task {task!r}"
    asked: set[tuple[str, str]] = set()
    logged = {file: [_line(*line, asked) for line in json_lines(file.path)] for file in files}
    if empty := next((file.path for file, lines in logged.items() if not lines), None):
        raise ResponsesError(f"{empty}: empty; remove it or run the task again")
    every = list(chain(*logged.values()))
    filter_name = choose("filter", {line.filter for line in every}, settings.filter, f"{where}, filters")
    questions = {(line.hash, line.document): line.question for line in every if line.question is not None}
    chosen = {file: [line for line in lines if line.filter == filter_name] for file, lines in logged.items()}
    metric = _metric(list(chain(*chosen.values())), settings, where)
    hashed = all(line.hash for line in chain(*chosen.values()))
    if not hashed:
        settings.note(f"{path.name}: task {task!r} has lines without doc_hash; items are identified by doc_id")
    for file, lines in chosen.items():
        if not any(metric in line.values for line in lines):
            raise ResponsesError(
                f"{file.path}: no line with filter {filter_name!r} and metric {metric!r}, which the other files "
                f"of task {task!r} have; run the task again or remove the file"
            )
        _check_once(lines)
        ids = [f"{task}:{line.hash if hashed else line.document}" for line in lines]
        answers = [
            Answer(line.where, file.subject, item, line.values, questions.get((line.hash, line.document)), line.reply)
            for line, item in zip(lines, ids, strict=True)
        ]
        scores = collected.add_answers(answers, metric, where)[1]
        held = len({line.document for line in logged[file]})
        collected.stated.append(file.stated(held, metric, filter_name, mean_score(scores)))


def _metric(lines: Sequence[_Line], settings: ReadSettings, where: str) -> str:
    """Return the metric that counts, of those that are numbers in some line."""
    numeric = {name for line in lines for name, value in line.values.items() if value is not None}
    if not numeric:
        raise ResponsesError(f"{where}: no metric that is a number; expected one such as acc or exact_match")
    return choose("metric", numeric, settings.metric, f"{where}, metrics")


def _check_once(lines: Sequence[_Line]) -> None:
    """Refuse a document that stands twice in a file."""
    first_lines: dict[str, _Line] = {}
    for line in lines:
        if (first := first_lines.setdefault(line.document, line)) is not line:
            raise ResponsesError(
                f"{line.where}: document {line.document} with filter {line.filter!r} stands in "
                f"{first.where.rpartition(', ')[2]} already; the file holds two runs: keep one"
            )


REGISTERED = (
    ResponseReader(
        "lm-eval",
        "samples_*.jsonl of lm-evaluation-harness",
        lambda path: _SAMPLES.fullmatch(path.name) is not None or "doc_id" in first_keys(path),
        read_lmeval,
        {"metric": "the metric", "filter": "the answer filter"},
    ),
)
