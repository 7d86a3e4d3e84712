"""Fields of a response by the clear names of columns; no value of a column is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType

from pytest_adaptive_eval.banks.expressions import as_path
from pytest_adaptive_eval.banks.rows import TableRecord
from pytest_adaptive_eval.mappings import ResponseMapping

#: Names of columns by field, in the order in which they are tried.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "subject": "subject_id model_name model_id model system agent",
        "item": "item_id question_id task_id sample_id instance_id problem_id example_id qid item id uid pid key idx "
        "index doc_id sample_index question_number",
        "score": "score is_correct correct passed if_right is_right hit resolved success acc accuracy exact_match em "
        "right solved verdict judgement grade judgment reward",
        "answer": "response output completion model_output generated_text generation model_response raw_output "
        "generated answer_text prediction predicted_answer pred model_answer",
        "target": "target gold gold_answer ground_truth gt expected correct_answer answer_key reference_answer answer "
        "label reference",
        "question": "question prompt input problem query instruction messages question_text",
        "choices": "choices options all_choices",
        "images": "images image image_path",
        "category": "category topic task dataset subset subject",
        "error": "error exception",
    }
)
#: Rows whose columns count.
_SAMPLE = 50


def clear_names(rows: Iterable[TableRecord]) -> ResponseMapping:
    """Return the columns with clear names; of a field's names the first counts."""
    columns = {name.lower(): name for row in islice(rows, _SAMPLE) for name in row.data}
    expressions = {}
    for field, names in _NAMES.items():
        name = next((name for name in names.split() if name in columns), None)
        if name is not None:
            expressions[field] = columns.pop(name)
    if "choices" in expressions:  # a cell of a table holds them as a text
        expressions["choices"] = f"parse({as_path(expressions['choices'])})"
    return ResponseMapping(**expressions)
