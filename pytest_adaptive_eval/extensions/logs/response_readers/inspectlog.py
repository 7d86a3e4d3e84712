"""Logs of Inspect: ``.eval`` archives, and logs written or dumped as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, score
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.extensions.logs.inspectfiles import Log, UnusableLog, is_log, questions_of, read_log
from pytest_adaptive_eval.items.responses import Responses

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
    scores is left out of a folder that has others.
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
    """Return the names of all scorers in a log."""
    return {name for sample in log.samples for name in sample.values}


def _number(value: Any, where: str) -> float:
    grade = _GRADES.get(value) if isinstance(value, str) else None
    return score(value, where) if grade is None else grade


def _collect(collected: Collected, subject: str, task: str, scorer: str, newest_first: Sequence[Log]) -> None:
    """Collect the scores of one subject on one task."""
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
