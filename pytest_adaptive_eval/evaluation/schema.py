"""JSON Schema of ``adaptive-eval.toml`` and ``*.eval.toml``, from the declared settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_adaptive_eval.evaluation.studies import STUDIES
from pytest_adaptive_eval.evaluation.study import StudyKind
from pytest_adaptive_eval.evaluation.tables import BankTable, RunTable
from pytest_adaptive_eval.typed_tables import json_schema


def file_schema(studies: Mapping[str, Callable[[], StudyKind]] = STUDIES) -> dict[str, Any]:
    """Return the JSON Schema of a file of evaluations.

    Args:
        studies: Loaders of study kinds by name.
    """
    (run, *evaluations), definitions = json_schema([RunTable, BankTable, *(load().table for load in studies.values())])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Adaptive evaluations",
        "type": "object",
        "properties": {"eval": {"type": "array", "items": {"anyOf": evaluations}}, "run": run},
        "additionalProperties": False,
        "$defs": definitions,
    }
