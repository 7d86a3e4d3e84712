"""Tasks of Inspect: their data set, and the grader that stands for their scorer."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.errors import DatasetError
from pytest_adaptive_eval.extensions.importing.base import Dataset, Importer, ImportSettings
from pytest_adaptive_eval.extensions.importing.sources import merged
from pytest_adaptive_eval.mappings import ItemMapping

#: Grader for each scorer of Inspect.
_GRADERS = {
    "choice": "choice", "match": "exact", "exact": "exact_match", "includes": "contains", "answer": "exact",
    "f1": "f1", "math": "math", "pattern": "exact",
}  # fmt: skip


def _task(path: Path, name: str) -> Any:
    """Return the task that a function of a file makes; the file is run, as by ``inspect eval``."""
    try:
        import inspect_ai
    except ImportError:
        raise DatasetError(f"inspect:{path}: the package inspect-ai is needed; pip install inspect-ai") from None
    spec = importlib.util.spec_from_file_location("adaptive_eval_inspect_task", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise DatasetError(f"inspect:{path}: expected FILE.py@TASK, the file that defines a task")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        # functions that are registered as tasks of Inspect
        makers = {
            key: value
            for key, value in vars(module).items()
            if callable(value) and getattr(getattr(value, "__registry_info__", None), "type", "") == "task"
        }
        if not name and len(makers) == 1:
            name = next(iter(makers))
        if name not in makers:
            raise DatasetError(f"inspect:{path}: it defines {', '.join(makers) or 'no task'}; give {path.name}@TASK")
        task = makers[name]()
    except DatasetError:
        raise
    except Exception as error:  # of the user's file
        raise DatasetError(
            f"inspect:{path}@{name}: the task cannot be made ({type(error).__name__}: {error!s:.200})"
        ) from None
    if not isinstance(task, inspect_ai.Task):
        raise DatasetError(f"inspect:{path}@{name}: found {type(task).__name__}, expected a Task")
    return task


def open_task(source: str, settings: ImportSettings) -> list[Dataset]:
    """Open ``FILE.py`` or ``FILE.py@TASK``."""
    file, _, name = source.partition("@")
    path = Path(file)
    task = _task(path, name)
    scorers = [each for each in task.scorer or () if hasattr(each, "__registry_info__")]
    scorer = ", ".join(str(each.__registry_info__.name).rpartition("/")[2] for each in scorers)
    grader = settings.mapping.grader or _GRADERS.get(scorer, "")
    if not grader:
        raise DatasetError(
            f"inspect:{source}: its scorer is {scorer or 'of its own'}, which no grader stands for; name one with "
            "--set grader=NAME"
        )
    if grader == "choice":
        mapping = ItemMapping(messages="input", answer="target", id="id", choices=("choices",))
    else:
        mapping = ItemMapping(messages="input", accepted=("target",), id="id", grader=grader)

    def records(limit: int | None = None) -> Iterator[TableRecord]:
        for number, sample in enumerate(islice(task.dataset, limit), 1):
            data = sample.model_dump(exclude_none=True)
            if isinstance(data["input"], str):
                data["input"] = [{"role": "user", "content": data["input"]}]
            names: dict[str, Any] = {"line": number, "key": "", "file": path.stem, "set": task.name}
            if sample.files or sample.sandbox or sample.setup:
                names["refused"] = "it needs files or a sandbox of its own, which a bank does not have"
            yield TableRecord(f"inspect:{source}, sample {number}", data, names)

    facts = {"source": f"inspect:{source}", "licence": "", "files": {}}
    return [
        Dataset(str(task.name), records, merged(mapping, settings.mapping), (path.absolute().parent,), None, "", facts)
    ]


REGISTERED = (
    Importer("inspect", "a task of Inspect: inspect:FILE.py@TASK, which runs the file", open_task, by_source=True),
)
