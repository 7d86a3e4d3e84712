"""Tasks of lm-evaluation-harness, by its own loader: prompts, choices, targets and filters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.sources import merged
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import replaced

#: Metrics of generated texts for which a grader stands.
_METRICS = {"exact_match": "", "acc": "", "em": "exact_match", "f1": "f1", "contains": "contains"}
#: Filters that read a number, a letter in brackets, or change case and white space; graders read answers themselves.
_FILTERS = {"regex", "take_first", "lowercase", "uppercase", "remove_whitespace", "multi_choice_regex", "strip", "map"}


def _loaded(name: str, folder: str) -> Any:
    try:
        from lm_eval.tasks import TaskManager
    except ImportError:
        raise DatasetError(f"lm_eval:{name}: the package lm-eval is needed; pip install lm-eval") from None
    try:
        manager = TaskManager(include_path=folder or None)
        tasks = _tasks(manager.load(name) if hasattr(manager, "load") else manager.load_task_or_group(name))
    except Exception as error:  # of the harness, the hub, and the task's own code
        first_line = (str(error).splitlines() or [""])[0]
        raise DatasetError(
            f"lm_eval:{name}: the harness cannot load it ({type(error).__name__}: {first_line:.200}). Tasks of your "
            "own are given as lm_eval:NAME@FOLDER; data sets of the hub need a network"
        ) from None
    if len(tasks) != 1:
        raise DatasetError(
            f"lm_eval:{name}: it is a group of {len(tasks)} tasks; name one of {', '.join(sorted(tasks)[:8])}"
        )
    return next(iter(tasks.values()))


def _tasks(loaded: Any) -> dict[str, Any]:
    """Return the tasks of what the loader returns, in which groups are nested."""
    tasks: dict[str, Any] = {}
    for key, value in loaded.items() if isinstance(loaded, Mapping) else ():
        if isinstance(value, Mapping):
            tasks |= _tasks(value)
        elif hasattr(value, "doc_to_text"):
            tasks[str(key)] = value
    return tasks


def _grader(task: Any, source: str) -> str:
    """Return the grader that stands for a task's metric and filters; empty to choose it by the answers."""
    kind = str(task.OUTPUT_TYPE)
    if kind == "multiple_choice":
        return ""
    if kind != "generate_until":
        raise DatasetError(
            f"lm_eval:{source}: output_type {kind} has no answer to grade; only choices and generated texts have"
        )
    metrics = [str(entry.get("metric")) for entry in task.config.metric_list or ()]
    graded = [name for name in metrics if name in _METRICS]
    if not graded:
        raise DatasetError(f"lm_eval:{source}: no grader stands for {', '.join(metrics)}; give --set grader=NAME")
    steps = {str(step.get("function")) for entry in task.config.filter_list or () for step in entry.get("filter", ())}
    if foreign := steps - _FILTERS:
        raise DatasetError(
            f"lm_eval:{source}: no grader stands for the filter {', '.join(sorted(foreign))}; give --set grader=NAME"
        )
    return _METRICS[graded[0]]


def open_task(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``NAME``, or ``NAME@FOLDER`` for a task that a yaml in the folder defines."""
    name, _, folder = source.partition("@")
    task = _loaded(name, folder)
    grader = settings.mapping.grader or _grader(task, source)
    choices = str(task.OUTPUT_TYPE) == "multiple_choice"
    mapping = ItemMapping(question="question", grader=grader, accepted=("answer",), instruction="")
    if choices:
        mapping = replaced(mapping, accepted=(), answer="answer", choices=("choices",), counted="0", bare=True)

    def records(limit: int | None = None) -> Iterator[TableRecord]:
        for number, doc in enumerate(islice(task.eval_docs, limit), 1):
            names: dict[str, Any] = {"line": number, "key": "", "file": name, "set": name}
            try:
                data = _record(task, doc, choices)
            except Exception as error:  # of the task's template
                data = {}
                names["refused"] = f"its template fails ({type(error).__name__}: {error!s:.120})"
            yield TableRecord(f"lm_eval:{name}, doc {number - 1}", data, names)

    facts = {
        "source": f"lm_eval:{source}",
        "licence": "",
        "files": {},
        "ask": "likelihood" if choices else "generation",
        "few_shot": f"{task.config.num_fewshot or 0} of {task.config.fewshot_split or 'none'}",
        "version": str(task.VERSION),
    }
    base = Path(folder) if folder else Path()
    return [Dataset(name, records, merged(mapping, settings.mapping), (base,) if folder else (), None, "", facts)]


def _record(task: Any, doc: Any, choices: bool) -> dict[str, Any]:
    """Return question with its examples, answer and choices of a document, as the task's templates make them."""
    if not isinstance(task.doc_to_text(doc), str):
        raise DatasetError("the choices are the contexts, which are asked by likelihood alone")
    text, target = task.fewshot_context(doc, task.config.num_fewshot or 0), task.doc_to_target(doc)
    if choices:
        listed = [str(choice) for choice in task.doc_to_choice(doc)]
        if isinstance(target, str):
            target = listed.index(target) if target in listed else int(target)
        return {"question": text, "answer": target, "choices": listed}
    answers = target if isinstance(target, list) else [target]
    return {
        "question": text,
        "answer": [re.sub(r"\A.*####\s*", "", str(answer), flags=re.DOTALL) for answer in answers],
    }


REGISTERED = (
    Importer(
        "lm_eval",
        "a task of lm-evaluation-harness: lm_eval:NAME, or lm_eval:NAME@FOLDER of yaml",
        open_task,
        by_source=True,
    ),
)
