"""Results of EvalPlus, which runs the programs that models wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_that
from pytest_adaptive_eval.banks.rows import head, load_file
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

#: What the tools add to the name of the file of samples.
_ADDED = re.compile(r"(?:\.jsonl)?_results|[._-]?eval[_-]results|[._-]samples|[._-]sanitized(?:-calibrated)?")
#: Tests of EvalPlus by metric, and the verdict that passes.
_TESTS, _PASS = {"base": "base_status", "plus": "plus_status"}, ("pass", "success")


def _subject(file: Path) -> str:
    """Return the model's name, from the file's name, or the folder's where that is only the tool's."""
    name = file.name.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    return _ADDED.sub("", name).strip("._-") or file.absolute().parent.name


def _is_evalplus(path: Path) -> bool:
    beginning = head(path) if path.suffix == ".json" else ""
    return '"eval"' in beginning and ('"base_status"' in beginning or '"base"' in beginning)


def read_evalplus(path: Path, settings: ReadSettings) -> Responses:
    """Read ``SAMPLES_eval_results.json``, or a folder of them: one file a model.

    The metric is ``base``, the tests of HumanEval or MBPP, or ``plus``, those and the tests that EvalPlus adds.
    """
    collected = Collected(str(path))
    metric = choose("metric", list(_TESTS), settings.metric, f"{path}, tests")
    for file in files_that(_is_evalplus, path, "no eval_results.json; run evalplus.evaluate"):
        data = load_file(file)
        tasks = data.get("eval") if isinstance(data, dict) else None
        if not isinstance(tasks, dict):
            raise ResponsesError(f"{file}: eval is {tasks!r:.80}, expected an object with the samples of each task")
        for task, samples in tasks.items():
            for passed in _verdicts(samples, metric, f"{file}: task {task!r:.60}"):
                collected.add(_subject(file), task, passed)
    return collected.responses()


def _verdicts(samples: Any, metric: str, where: str) -> list[float]:
    """Return whether each sample of a task passed, as 1 or 0."""
    tests = list(_TESTS)[: 1 + (metric == "plus")]
    if isinstance(samples, Mapping):  # older files keep a list for each kind of tests
        columns = [samples.get(name) for name in tests]
        if not all(isinstance(column, list) for column in columns):
            raise ResponsesError(f"{where}: no {tests[-1]}, expected a list of verdicts; evaluate the samples again")
        rows = [[cell[0] if isinstance(cell, list) else cell for cell in column] for column in columns if column]
    elif isinstance(samples, list) and all(isinstance(sample, Mapping) for sample in samples):
        rows = [[sample.get(_TESTS[name]) for sample in samples] for name in tests]
    else:
        raise ResponsesError(f"{where}: found {samples!r:.80}, expected its samples")
    if unknown := next((v for row in rows for v in row if not isinstance(v, str)), None):
        raise ResponsesError(f"{where}: the verdict {unknown!r:.80}, expected a text such as pass")
    if any(v is None for row in rows for v in row):
        raise ResponsesError(f"{where}: a sample has no verdict of the tests {metric!r}; evaluate the samples again")
    return [float(all(verdict in _PASS for verdict in verdicts)) for verdicts in zip(*rows, strict=True)]


REGISTERED = (
    ResponseReader(
        "evalplus", "eval_results.json of EvalPlus", _is_evalplus, read_evalplus, {"metric": "base or plus"}
    ),
)
