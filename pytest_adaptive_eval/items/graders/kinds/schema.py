"""Grader of JSON by a JSON Schema, which is the expected answer."""

from __future__ import annotations

import functools
import json
from importlib.util import find_spec

from pytest_adaptive_eval import worker
from pytest_adaptive_eval.deadline import Overdue
from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind, Leniency
from pytest_adaptive_eval.items.graders.kinds.json_field import MISSING, last_value

#: Time limit of one validation, in seconds; patterns of a schema may take long on some texts.
SECONDS = 2.0


def validate(schema: str, value: str) -> str:
    """Return why a JSON text does not fit a schema, empty if it does; runs in the worker.

    Raises:
        ValueError: The schema is none.
    """
    import jsonschema
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    data = json.loads(schema)
    kind = jsonschema.validators.validator_for(data, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(data)
        error = next(kind(data, registry=Registry()).iter_errors(json.loads(value)), None)  # nothing is fetched
    except (jsonschema.SchemaError, Unresolvable) as fault:
        raise ValueError(f"is not a JSON Schema: {str(fault).splitlines()[0]:.200}") from None
    if error is None:
        return ""
    return f"{error.json_path}: {error.message:.200}"


def _in_worker(schema: str, value: str) -> str:
    if find_spec("jsonschema") is None:
        raise ValueError("needs the package jsonschema: install pytest-adaptive-eval[schema]")
    name = f"{__name__}:{validate.__name__}"
    return str(worker.call(name, schema, value, seconds=SECONDS, description="validating by the schema"))


def _grade(question: Asked, text: str) -> float:
    """Return 1 if the last JSON value of a text is valid by one of the schemas."""
    value = last_value(text)
    if value is MISSING:
        return 0.0
    try:
        return float(any(not _in_worker(schema, json.dumps(value)) for schema in question.answers))
    except Overdue as error:
        raise TimeoutError(f"{error}: a fault of the schema, no wrong answer") from None


@functools.lru_cache(maxsize=256)
def _fault(schema: str) -> str:
    """Return what is wrong with a schema; empty if nothing is."""
    try:
        if not isinstance(json.loads(schema), dict | bool):
            return "is not a JSON Schema: it is not an object"
        _in_worker(schema, "null")
    except worker.Raised as error:
        return str(error).partition(": ")[2] or str(error)
    except Overdue as error:
        return str(error)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            return f"is not a JSON Schema: {error}"
        return str(error)
    return ""


def _leniency(_question: Asked, answer: str) -> Leniency | None:
    """Return why any JSON object is right."""
    accepts_all = not _in_worker(answer, "{}") and not _in_worker(answer, "[]")
    if accepts_all:
        return Leniency("accepts any object and list", "name its properties under required")
    return None


REGISTERED = (
    GraderKind(
        "schema",
        "the last JSON value of the answer is valid by the expected JSON Schema (with the extra `schema`)",
        _grade,
        check=lambda _question, answer: _fault(answer),
        leniency=_leniency,
        readable=lambda _question, text: last_value(text) is not MISSING,
    ),
)
