"""Tasks of lm-evaluation-harness, by its own loader: prompts, choices, targets and filters."""

from __future__ import annotations

from typing import Any

from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import (
    Dataset,
    Importer,
    ImportSettings,
    foreign_code,
    tool_dataset,
    tool_package,
)
from pytest_adaptive_eval.mappings import ItemMapping
from pytest_adaptive_eval.typed_tables import replaced

#: Metrics of generated texts for which a grader stands.
_METRICS = {"exact_match": "", "acc": "", "em": "exact_match", "f1": "f1", "contains": "contains"}
#: Filters that read a number, a letter in brackets, or change case and white space; graders read answers themselves.
_FILTERS = {"regex", "take_first", "lowercase", "uppercase", "remove_whitespace", "multi_choice_regex", "strip", "map"}


def _task(name: str, folder: str, where: str) -> Any:
    """Return a task by its name."""
    tasks = tool_package("lm_eval.tasks", where)
    advice = ". Tasks of your own are given as lm_eval:NAME@FOLDER; data sets of the hub need a network"
    with foreign_code(f"{where}: the harness cannot load it", advice):
        manager = tasks.TaskManager(include_path=folder or None)
        if hasattr(manager, "load"):
            loaded = manager.load(name)
        else:
            loaded = manager.load_task_or_group(name)
        while hasattr(loaded, "items") and len(loaded) == 1:
            loaded = next(iter(loaded.values()))
    if not hasattr(loaded, "doc_to_text"):
        raise DatasetError(f"{where}: it is a group; name one of its tasks: {', '.join(map(str, loaded)):.200}")
    return loaded


def _grader(task: Any, where: str) -> str:
    """Return the grader that stands for a task's metric and filters; empty to choose it by the answers."""
    kind = str(task.OUTPUT_TYPE)
    if kind == "multiple_choice":
        return ""
    metrics = [str(entry.get("metric")) for entry in task.config.metric_list or ()]
    graded = [name for name in metrics if name in _METRICS]
    steps = set()
    for entry in task.config.filter_list or ():
        for step in entry.get("filter", ()):
            steps.add(str(step.get("function")))
    if kind != "generate_until" or not graded or steps - _FILTERS:
        raise DatasetError(
            f"{where}: no grader stands for output_type {kind}, the metrics {', '.join(metrics)} and the filters "
            f"{', '.join(sorted(steps))}; give --set grader=NAME"
        )
    return _METRICS[graded[0]]


def open_task(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``NAME``, or ``NAME@FOLDER`` for a task that a yaml in the folder defines.

    Raises:
        DatasetError: The harness cannot load it, or no grader stands for its metric.
    """
    name, _, folder = source.partition("@")
    where = f"lm_eval:{source}"
    task = _task(name, folder, where)
    grader = settings.grader or _grader(task, where)
    choices = str(task.OUTPUT_TYPE) == "multiple_choice"
    mapping = ItemMapping(question="question", grader=grader, accepted=("answer",), instruction="")
    if choices:
        mapping = replaced(mapping, accepted=(), answer="answer", choices=("choices",), counted="0", bare=True)
    if folder and not settings.image_root:
        settings = replaced(settings, image_root=folder)

    def read(doc: Any) -> dict[str, Any]:
        with foreign_code("its template fails"):
            return _record(task, doc, choices=choices)

    shots = f"{task.config.num_fewshot or 0} of {task.config.fewshot_split or 'none'}"
    asked = "likelihood" if choices else "generation"
    facts = {"ask": asked, "few_shot": shots, "version": str(task.VERSION)}
    return tool_dataset(where, name, task.eval_docs, read, mapping, settings, **facts)


def _record(task: Any, doc: Any, *, choices: bool) -> dict[str, Any]:
    """Return question with its examples, answer and choices of a document, as the task's templates make them."""
    if not isinstance(task.doc_to_text(doc), str):
        raise DatasetError("the choices are the contexts, which are asked by likelihood alone")
    text = task.fewshot_context(doc, task.config.num_fewshot or 0)
    target = task.doc_to_target(doc)
    if not choices:
        return {"question": text, "answer": target}
    listed = [str(choice) for choice in task.doc_to_choice(doc)]
    return {"question": text, "answer": listed.index(target) if target in listed else target, "choices": listed}


REGISTERED = (
    Importer(
        "lm_eval",
        "a task of lm-evaluation-harness: lm_eval:NAME, or lm_eval:NAME@FOLDER of yaml",
        open_task,
        by_source=True,
    ),
)
