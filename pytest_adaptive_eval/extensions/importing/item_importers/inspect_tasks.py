"""Tasks of Inspect: their data set, and the grader that stands for their scorer."""

from __future__ import annotations

import runpy
from pathlib import Path
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

#: Grader for each scorer of Inspect.
_GRADERS = {
    "choice": "choice", "match": "exact", "exact": "exact_match", "includes": "contains", "answer": "exact",
    "f1": "f1", "math": "math", "pattern": "exact",
}  # fmt: skip


def open_task(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``FILE.py`` or ``FILE.py@TASK``; the file is run, as by ``inspect eval``.

    Raises:
        DatasetError: The file fails, it has no such task, or no grader stands for its scorer.
    """
    file, _, name = source.partition("@")
    where = f"inspect:{source}"
    tool_package("inspect_ai", where)
    with foreign_code(f"{where}: the task cannot be made"):
        # functions that are registered as tasks of Inspect
        values = runpy.run_path(file).items()
        makers = {}
        for key, value in values:
            if _about(value, "type") == "task":
                makers[key] = value
        name = name or next(iter(makers), "")
        if name not in makers:
            raise DatasetError(f"{where}: it defines {', '.join(makers) or 'no task'}; give FILE.py@TASK")
        task = makers[name]()
    scorer = ", ".join(_about(each, "name").rpartition("/")[2] for each in task.scorer or ())
    grader = settings.grader or _GRADERS.get(scorer, "")
    if not grader:
        raise DatasetError(
            f"{where}: its scorer is {scorer or 'of its own'}, which no grader stands for; name one with "
            "--set grader=NAME"
        )
    mapping = ItemMapping(messages="input", accepted=("target",), id="id", grader=grader)
    if grader == "choice":
        mapping = replaced(mapping, answer="target", accepted=(), choices=("choices",), grader="")
    if not settings.image_root:
        settings = replaced(settings, image_root=str(Path(file).absolute().parent))
    return tool_dataset(where, str(task.name), task.dataset, _read, mapping, settings)


def _about(value: Any, name: str) -> str:
    """Return what Inspect registers about an object; empty for any other."""
    return str(getattr(getattr(value, "__registry_info__", None), name, ""))


def _read(sample: Any) -> dict[str, Any]:
    if sample.files or sample.sandbox or sample.setup:
        raise DatasetError("it needs files or a sandbox of its own, which a bank does not have")
    data: dict[str, Any] = sample.model_dump(exclude_none=True)
    text = data["input"]
    if isinstance(text, str):
        return {**data, "input": [{"role": "user", "content": text}]}
    return data


REGISTERED = (
    Importer("inspect", "a task of Inspect: inspect:FILE.py@TASK, which runs the file", open_task, by_source=True),
)
