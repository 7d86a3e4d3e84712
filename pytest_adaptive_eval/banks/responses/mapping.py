"""Mapping of the columns in any file to the fields of a response, as a user gives it or as their names suggest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.banks.expressions import as_path, parse_expression
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
            *("accuracy", "exact_match", "em", "match", "right", "solved", "true_false", "verdict", "judgement"),
            *("grade", "judgment", "result", "pass", "evaluation", "reward"),
        ),
        "answer": (
            *("response", "output", "completion", "model_output", "generated_text", "generation", "model_response"),
            *("raw_output", "generated", "solution", "answer_text", "prediction", "predicted_answer", "pred"),
            *("model_answer", "predicted", "extracted_answer"),
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
#: Names of columns with the part of an answer that is compared with the target.
_EXTRACTED = (
    *("pred", "prediction", "predicted_answer", "extracted_answer", "parsed_pred", "parsed_answer", "model_answer"),
    *("extraction", "extracted", "pred_indexs", "predicted", "choice"),
)
#: Rows that a suggestion is made from, and levels of objects in which it looks, and in which scores are compared.
_SAMPLE, _DEPTH, _CHECKED_DEPTH = 50, 3, 6


def own_scores(record: Mapping[str, Any], read: Callable[[Any], float]) -> dict[str, float]:
    """Return the values of a record that are scores by their names and values, by path; see `suggest_mapping`."""
    scores: dict[str, float] = {}
    for path in _columns(record, depth=_CHECKED_DEPTH):
        name = path.rpartition(".")[2].partition(",")[0].strip('"').lower()
        if name not in _NAMES["score"]:
            continue
        try:
            score = read(parse_expression(path)(record, {}))
        except ValueError:
            continue
        if score == score:  # not NaN
            scores[path] = score
    return scores


def suggest_mapping(rows: Iterable[TableRecord], read: Callable[[Any], float]) -> ResponseMapping:
    """Suggest expressions from the names of columns whose values fit; `read` makes a verdict a score, or raises."""
    sample = list(islice(rows, _SAMPLE))
    columns = list(dict.fromkeys(path for row in sample for path in _columns(row.data)))
    wide = _wide(sample, columns, read)
    suggested = dict(wide)
    for field in _NAMES:
        if field in suggested:
            continue
        candidates = (text for name in _NAMES[field] for text in _standing(name, columns, field))
        taken = set(suggested.values())
        fits = _FITS.get(field, _has_values)
        for text in candidates:
            if text not in taken and fits(values := [_value(text, row) for row in sample], read):
                is_text = field == "choices" and not any(isinstance(value, list) for value in values)
                suggested[field] = f"parse({as_path(text)})" if is_text else text
                break
    mapping = _completed(suggested, sample, columns, read)
    around = {name: _of_parent(text) for name, text in mapping.given.items() if name not in wide}
    return ResponseMapping(**{**around, **wide, "rows": "*"}) if wide else mapping


def _of_parent(text: str) -> str:
    """Return the expression of a value in the object around a record."""
    return re.sub(r"\A((?:hash|parse)\()?", r"\1$parent.", text)


def _completed(
    suggested: dict[str, str], sample: Sequence[TableRecord], columns: Sequence[str], read: Callable[[Any], float]
) -> ResponseMapping:
    """Return a mapping with what follows from the suggestions by columns."""
    if "score" not in suggested and (score := _compared(suggested, sample, columns) or _plain(sample, columns, read)):
        suggested["score"] = score
    if "item" not in suggested and all(row.names["key"] for row in sample):
        suggested["item"] = "$key"
    if "item" not in suggested and "question" in suggested:
        suggested["item"] = f"hash({as_path(suggested['question'])})"
    return ResponseMapping(**suggested)


def _compared(suggested: Mapping[str, str], sample: Sequence[TableRecord], columns: Sequence[str]) -> str:
    """Return a comparison of an extracted answer, or else of the answer, with the target; empty without such values."""
    if not (target := suggested.get("target")):
        return ""
    extracted = [column for name in _EXTRACTED for column in _standing(name, columns, "")]
    comparisons = [
        f"{as_path(column)} == {as_path(target)}"
        for column in (*extracted, suggested.get("answer", ""))
        if column not in ("", target)
    ]
    return next((text for text in comparisons if any(_value(text, row) is not None for row in sample)), "")


def _plain(sample: Sequence[TableRecord], columns: Sequence[str], read: Callable[[Any], float]) -> str:
    """Return the expression of scores without an object around them, empty without any."""
    expressions = () if set(columns) - {"value"} else ("$value", "mean($value)")
    return next((text for text in expressions if _fits_score([_value(text, row) for row in sample], read)), "")


def _wide(sample: Sequence[TableRecord], columns: Sequence[str], read: Callable[[Any], float]) -> dict[str, str]:
    """Return the fields of rows that hold an object for each subject, whose entries are then the records."""
    ends = [column.rpartition(".")[2] for column in columns if column.count(".") == 1]
    for name in _NAMES["score"]:
        wide = [column for column in columns if column.count(".") == 1 and column.endswith(f".{name}")]
        if len(wide) > 1 and _fits_score([_value(column, row) for column in wide for row in sample], read):
            answer = next((each for each in _NAMES["answer"] if ends.count(each) == len(wide)), "")
            return {"subject": "$key", "score": name, **({"answer": answer} if answer else {})}
    return {}


def _columns(record: Mapping[str, Any], prefix: str = "", depth: int = _DEPTH) -> Iterator[str]:
    """Yield the paths of values in a record, down to `depth` levels of objects."""
    for key, value in record.items():
        if not isinstance(key, str) or any(mark in key for mark in "|{}[]\"'=") or not key:
            continue
        yield f"{prefix}{as_path(key)}" if prefix else key
        if isinstance(value, Mapping) and depth:
            yield from _columns(value, f"{prefix}{as_path(key)}.", depth - 1)


def _standing(name: str, columns: Sequence[str], field: str) -> Iterator[str]:
    """Yield the columns of a name, at the top first."""
    last = {column: column.rpartition(".")[2].lower() for column in columns}
    yield from sorted((column for column in columns if last[column] == name), key=lambda column: column.count("."))
    if field == "score":  # lm-eval writes METRIC,FILTER
        yield from (column for column in columns if last[column].partition(",")[0] == name and "," in last[column])


def _value(text: str, row: TableRecord) -> Any:
    return parse_expression(text)(row.data, row.names)


def _fits_score(values: Sequence[Any], read: Callable[[Any], float]) -> bool:
    """Return whether all values are verdicts, and at least one is not missing."""
    try:
        scores = [read(value) for value in values if value is not None]
    except ValueError:
        return False
    return any(score == score for score in scores)  # not NaN


def _fits_item(values: Sequence[Any], _read: Callable[[Any], float]) -> bool:
    """Return whether all values are ids, and not all the same."""
    texts = {str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool)}
    return all(isinstance(value, str | int) and str(value).strip() for value in values) and (
        len(texts) > 1 or len(values) == 1
    )


def _has_values(values: Sequence[Any], _: Callable[[Any], float]) -> bool:
    return any(value not in (None, "", [], {}) for value in values)


#: Whether the values of a column, with the reader of verdicts, can be those of a field.
_FITS: Mapping[str, Callable[[Sequence[Any], Callable[[Any], float]], bool]] = MappingProxyType(
    {
        "score": _fits_score,
        "item": _fits_item,
        "subject": lambda values, _: bool(values) and all(isinstance(x, str) and 0 < len(x) < 120 for x in values),
        "question": lambda values, _: any(isinstance(value, str | list) and value for value in values),
        "choices": lambda values, _: any(
            value if isinstance(value, list) else isinstance(value, str) and value.startswith("[") for value in values
        ),
    }
)
