"""Fields of a response by the clear names of columns; no value of a column is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.mappings import ResponseMapping

#: Names of columns by field, in the order in which they are tried.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "subject": ("subject_id", "model_name", "model_id", "model", "system", "agent"),
        "item": (
            *("item_id", "question_id", "task_id", "sample_id", "instance_id", "problem_id", "example_id", "qid"),
            *("item", "id", "uid", "pid", "key", "idx", "index", "doc_id", "sample_index", "question_number"),
        ),
        "score": (
            *("score", "is_correct", "correct", "passed", "if_right", "is_right", "hit", "resolved", "success", "acc"),
            *(
                "accuracy",
                "exact_match",
                "em",
                "right",
                "solved",
                "verdict",
                "judgement",
                "grade",
                "judgment",
                "reward",
            ),
        ),
        "answer": (
            *("response", "output", "completion", "model_output", "generated_text", "generation", "model_response"),
            *("raw_output", "generated", "answer_text", "prediction", "predicted_answer", "pred", "model_answer"),
        ),
        "target": (
            *("target", "gold", "gold_answer", "ground_truth", "gt", "expected", "correct_answer", "answer_key"),
            *("reference_answer", "answer", "label", "reference"),
        ),
        "question": ("question", "prompt", "input", "problem", "query", "instruction", "messages", "question_text"),
        "choices": ("choices", "options", "all_choices"),
        "images": ("images", "image", "image_path"),
        "category": ("category", "topic", "task", "dataset", "subset", "subject"),
        "error": ("error", "exception"),
    }
)
#: Rows whose columns count, and levels of objects in which they are looked for.
_SAMPLE, _DEPTH = 50, 3


def clear_names(rows: Iterable[TableRecord]) -> ResponseMapping:
    """Return the columns with clear names; of a field's names the first counts, at the top of a record first."""
    paths = list(dict.fromkeys(path for row in islice(rows, _SAMPLE) for path in _paths(row.data)))
    paths.sort(key=lambda path: path.count("."))
    found: dict[str, str] = {}
    for field, names in _NAMES.items():
        by_name = {path.rpartition(".")[2].lower(): path for path in reversed(paths) if path not in found.values()}
        name = next((name for name in names if name in by_name), None)
        if name is not None:
            found[field] = by_name[name]
    if "choices" in found:  # a cell of a table holds them as a text
        found["choices"] = f"parse({as_path(found['choices'])})"
    return ResponseMapping(**found)


def _paths(record: Mapping[str, Any], prefix: str = "", depth: int = _DEPTH) -> Iterator[str]:
    """Yield the paths of values in a record, down to `depth` levels of objects."""
    for key, value in record.items():
        if not isinstance(key, str) or not key or any(mark in key for mark in "|{}[]\"'="):
            continue
        path = f"{prefix}{as_path(key)}" if prefix else key
        if isinstance(value, Mapping) and depth:
            yield from _paths(value, f"{as_path(path)}.", depth - 1)
        else:
            yield path
