"""Samples that lm-evaluation-harness logs: ``MODEL/samples_TASK_TIME.jsonl``."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Answer, Collected, choose, files_of, named
from pytest_adaptive_eval.banks.rows import first_keys, json_lines, load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import LoggedQuestion, Responses

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


def _newest_files(path: Path, settings: ReadSettings) -> dict[str, dict[str, Path]]:
    """Return the newest file by task and subject, both sorted."""
    root, paths = (path, files_of(path)) if path.is_dir() else (path.parent, [path])
    samples = [(match, file) for file in paths if (match := _SAMPLES.fullmatch(file.name))]
    models = _model_names({file.parent for _, file in samples})
    newest: dict[tuple[str, str], Path] = {}
    for match, file in sorted(samples, key=lambda sample: (sample[0]["time"] or "", sample[1])):
        # Different folders can have the same name; their paths below `path` differ.
        folder = file.parent.relative_to(root).as_posix()
        name = root.resolve().name if folder == "." else folder
        newest[match["task"], models.get(file.parent, name)] = file
    if older := len(samples) - len(newest):
        settings.note(f"{path.name}: {older} older sample files of tasks that were run again are left out")
    if not newest:
        raise ResponsesError(
            f"{path}: no samples_TASK_TIME.jsonl; expected what lm-evaluation-harness writes with --log_samples"
        )
    by_task: dict[str, dict[str, Path]] = {}
    for task, subject in sorted(newest):
        by_task.setdefault(task, {})[subject] = newest[task, subject]
    return by_task


def _model_names(folders: Set[Path]) -> dict[Path, str]:
    """Return the model that the results in each folder name, where they name one that no other folder has."""
    names: dict[Path, str] = {}
    for folder in sorted(folders):
        for file in sorted(folder.glob("results*.json")):
            try:
                data = load_file(file)
            except ResponsesError:  # the folder's name serves
                continue
            name = data.get("model_name") if isinstance(data, dict) else None
            if isinstance(name, str) and name.strip():
                names[folder] = name.strip()
    counts = Counter(names.values())
    return {folder: name for folder, name in names.items() if counts[name] == 1}


def read_lmeval(path: Path, settings: ReadSettings) -> Responses:
    """Read a folder with a folder for each model, one model's folder, or one file.

    The subject is the model that ``results_*.json`` names, else the folder. An item's id is ``TASK:doc_hash``. It is
    ``TASK:doc_id`` when any line of the task has no hash, since ids of the two kinds would not match. Equal documents
    are one item, with the mean of their scores.
    """
    collected = Collected(str(path))
    for task, files in _newest_files(path, settings).items():
        _collect_task(collected, path, task, files, settings)
    return collected.responses()


def _check_whole(file: Path, task: str, lines: Sequence[_Line]) -> None:
    """Refuse a file without lines, or with fewer documents than the results beside it state."""
    if not lines:
        raise ResponsesError(f"{file}: empty; remove it or run the task again")
    documents = len({line.document for line in lines})
    match = _SAMPLES.fullmatch(file.name)
    results = file.with_name(f"results_{match['time']}.json") if match else file
    if results == file or not results.is_file():
        return
    data: Any = load_file(results)
    for key in ("n-samples", task, "effective"):
        data = data.get(key) if isinstance(data, dict) else None
    if isinstance(data, int) and documents < data:
        raise ResponsesError(
            f"{file}: {documents} of the {data} documents that {results.name} states; copy the file again, or run the "
            "task again"
        )


def _collect_task(
    collected: Collected, path: Path, task: str, files: Mapping[str, Path], settings: ReadSettings
) -> None:
    """Collect the scores of all subjects on one task, by one filter and one metric."""
    where = f"{path}: task {task!r}"
    asked: set[tuple[str, str]] = set()
    logged = {subject: [_line(*line, asked) for line in json_lines(file)] for subject, file in files.items()}
    for subject, lines in logged.items():
        _check_whole(files[subject], task, lines)
    every = list(chain(*logged.values()))
    filter_name = choose("filter", {line.filter for line in every}, settings.filter, f"{where}, filters")
    questions = {(line.hash, line.document): line.question for line in every if line.question is not None}
    logged = {subject: [line for line in lines if line.filter == filter_name] for subject, lines in logged.items()}
    metric = _metric(logged, settings, where)
    hashed = all(line.hash for line in chain(*logged.values()))
    if not hashed:
        settings.note(f"{path.name}: task {task!r} has lines without doc_hash; items are identified by doc_id")
    for subject, lines in logged.items():
        if not any(metric in line.values for line in lines):
            raise ResponsesError(
                f"{files[subject]}: no line with filter {filter_name!r} and metric {metric!r}, which the other files "
                f"of task {task!r} have; run the task again or remove the file"
            )
        _check_once(lines)
        answers = [
            Answer(
                line.where,
                subject,
                f"{task}:{line.hash if hashed else line.document}",
                line.values,
                questions.get((line.hash, line.document)),
                line.reply,
            )
            for line in lines
        ]
        collected.add_answers(answers, metric, where)


def _metric(logged: Mapping[str, Sequence[_Line]], settings: ReadSettings, where: str) -> str:
    """Return the metric that counts, of those that are numbers in some line."""
    values = [pair for line in chain(*logged.values()) for pair in line.values.items()]
    numeric = {name for name, value in values if value is not None}
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
