"""Samples that lm-evaluation-harness logs: ``MODEL/samples_TASK_TIME.jsonl``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, json_lines, named, score
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["SAMPLES", "read_lmeval"]

SAMPLES = re.compile(r"samples_(?P<task>.+?)(?:_(?P<time>\d{4}-\d\d-\d\dT[\d.:-]+))?\.jsonl(?:\.gz)?")

#: Top-level numbers of older files that are not metrics.
_NO_METRICS = frozenset({"doc_id", "target", "sample_len"})


@dataclass(frozen=True, slots=True)
class _Line:
    """Fields of one line that are needed; documents and answers may be large and are dropped."""

    where: str
    document: str
    hash: str
    filter: str
    values: Mapping[str, Any]


def _line(where: str, data: dict[str, Any]) -> _Line:
    if "doc_id" not in data and not data.get("doc_hash"):
        raise ResponsesError(
            f"{where}: an object with the keys {', '.join(sorted(data)[:6])}, expected a logged sample of "
            "lm-evaluation-harness with doc_id; log them with --log_samples"
        )
    listed = data.get("metrics")
    names = listed if isinstance(listed, list) else [n for n, v in data.items() if type(v) in (int, float, bool)]
    values = {name: data.get(name) for name in names if isinstance(name, str) and name not in _NO_METRICS}
    return _Line(
        where,
        named(data.get("doc_id", data.get("doc_hash")), "doc_id", where),
        str(data.get("doc_hash") or ""),
        str(data.get("filter") or "none"),
        {name: value for name, value in values.items() if not isinstance(value, list | dict | str)},
    )


def _newest(path: Path, note: Callable[[str], object]) -> dict[str, dict[str, Path]]:
    """Return the newest file by task and subject."""
    root, paths = (path, files_of(path)) if path.is_dir() else (path.parent, [path])
    chosen: dict[str, dict[str, tuple[str, Path]]] = {}
    older = 0
    for file in paths:
        match = SAMPLES.fullmatch(file.name)
        if match is None:
            continue
        # Different folders can have the same name; their paths below `path` differ.
        subject = file.parent.relative_to(root).as_posix()
        subject = root.resolve().name if subject == "." else subject
        of_task = chosen.setdefault(match["task"], {})
        previous = of_task.get(subject)
        older += previous is not None
        of_task[subject] = max((match["time"] or "", file), previous or ("", file))
    if older:
        note(f"{path.name}: {older} older sample files of tasks that were run again are left out")
    if not chosen:
        raise ResponsesError(
            f"{path}: no samples_TASK_TIME.jsonl; expected what lm-evaluation-harness writes with --log_samples"
        )
    return {
        task: {subject: file for subject, (_, file) in sorted(of_task.items())}
        for task, of_task in sorted(chosen.items())
    }


def read_lmeval(path: Path, metric: str | None, filter: str | None, note: Callable[[str], object]) -> Responses:
    """Read a folder with a folder for each model, one model's folder, or one file.

    An item's id is ``TASK:doc_hash``.  It is ``TASK:doc_id`` when any line of the task
    has no hash, since ids of the two kinds would not match.  Equal documents are one
    item, with the mean of their scores.

    Parameters
    ----------
    path : Path
    metric, filter : str or None
        Needed for a task with several; several names separated by commas are tried in order.
    note : callable
        Called with a sentence about each omission.

    Raises
    ------
    ResponsesError
        Malformed line or ambiguous name; the message names the line, or the task and its names.
    """
    collected = Collected(str(path))
    for task, files in _newest(path, note).items():
        logged = {subject: [_line(*line) for line in json_lines(file)] for subject, file in files.items()}
        for subject, file in files.items():
            if not logged[subject]:
                raise ResponsesError(f"{file}: empty; remove it or run the task again")
        where = f"{path}: task {task!r}"
        filter_name = choose("filter", {line.filter for line in _all(logged)}, filter, f"{where}, filters")
        logged = {subject: [line for line in of if line.filter == filter_name] for subject, of in logged.items()}
        numeric = {name for line in _all(logged) for name, value in line.values.items() if value is not None}
        if not numeric:
            raise ResponsesError(f"{where}: no metric that is a number; expected one such as acc or exact_match")
        counted = choose("metric", numeric, metric, f"{where}, metrics")
        hashed = all(line.hash for line in _all(logged))
        if not hashed:
            note(f"{path.name}: task {task!r} has lines without doc_hash; items are identified by doc_id")
        for subject, of_subject in logged.items():
            if not any(counted in line.values for line in of_subject):
                raise ResponsesError(
                    f"{files[subject]}: no line with filter {filter_name!r} and metric {counted!r}, which the other "
                    f"files of task {task!r} have; run the task again or remove the file"
                )
            _collect(collected, task, subject, of_subject, counted, hashed)
    return collected.responses()


def _collect(collected: Collected, task: str, subject: str, logged: Iterable[_Line], metric: str, hashed: bool) -> None:
    first_lines: dict[str, str] = {}
    for line in logged:
        if line.document in first_lines:
            raise ResponsesError(
                f"{line.where}: document {line.document} with filter {line.filter!r} stands in "
                f"{first_lines[line.document]} already; the file holds two runs: keep one"
            )
        first_lines[line.document] = line.where.rpartition(", ")[2]
        value = line.values.get(metric, math.nan)
        identity = line.hash if hashed else line.document
        collected.add(subject, f"{task}:{identity}", score(value, f"{line.where}, metric {metric!r}"))


def _all(logged: Mapping[str, list[_Line]]) -> Iterable[_Line]:
    return (line for of_subject in logged.values() for line in of_subject)
