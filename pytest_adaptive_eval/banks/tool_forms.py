"""Convert tools and expected calls of the Berkeley Function Calling Leaderboard to tools and calls of items."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_adaptive_eval.errors import BankError

#: Types of the leaderboard's schemas that have another name in a JSON Schema; any type has none.
_TYPES = {
    "dict": "object", "float": "number", "tuple": "array", "any": "", "str": "string", "int": "integer",
    "bool": "boolean", "list": "array",
}  # fmt: skip
_KNOWN = {"object", "number", "integer", "string", "boolean", "array", "null", ""}


def offered_tools(functions: Any) -> list[dict[str, Any]]:
    """Return described functions, or tools, as tools of an item; signs of a name that servers refuse become ``_``.

    Raises:
        BankError: A function has no name, or a type that a JSON Schema lacks.
    """
    if isinstance(functions, list):
        listed = functions
    else:
        listed = [functions]
    tools = []
    for entry in listed:
        function = None
        if isinstance(entry, Mapping):
            function = entry.get("function", entry)
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BankError(f"a tool is {entry!r:.80}, expected an object with a name")
        described = {**function, "name": _tool_name(function["name"])}
        if isinstance(function.get("parameters"), Mapping):
            described["parameters"] = _schema(_whole(function["parameters"]))
        tools.append({"type": "function", "function": described})
    return tools


def _tool_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _whole(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the whole schema of parameters; some data sets write the properties alone."""
    if "type" in parameters or "properties" in parameters:
        return parameters
    return {"type": "object", "properties": parameters}


def _schema(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a value's description."""
    schema = dict(described)
    if isinstance(schema.get("type"), str):
        schema["type"] = _TYPES.get(schema["type"], schema["type"])
        if schema["type"] not in _KNOWN:
            raise BankError(f"its tools have the type {schema['type']!r:.40}, which is none of a JSON Schema")
        if not schema["type"]:
            del schema["type"]
    if isinstance(schema.get("properties"), Mapping):
        schema["properties"] = {name: _schema(entry) for name, entry in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        schema["items"] = _schema(schema["items"])
    return schema


def expected_calls(answers: Any, functions: Any) -> str:
    """Return the key of the grader ``calls`` for possible answers: ``[{name: {argument: [values]}}]``.

    An empty text among the values of an argument says that a call may leave it out, unless the schema requires it.

    Raises:
        BankError: The answers have another form.
    """
    tools = {}
    for tool in offered_tools(functions):
        tools[tool["function"]["name"]] = tool["function"]
    try:
        calls = []
        for answer in answers:
            for name, arguments in answer.items():
                calls.append((name, arguments))
        key = [_call(_tool_name(name), arguments, tools.get(_tool_name(name), {})) for name, arguments in calls]
    except (TypeError, ValueError, AttributeError):
        raise BankError("its answers are not a list of {name: {argument: [values]}}") from None
    return json.dumps(key, ensure_ascii=False)


def _call(name: str, arguments: Mapping[str, Sequence[Any]], function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters", {})
    required = parameters.get("required", ())
    properties = parameters.get("properties", {})
    texts = []
    for each, schema in properties.items():
        if schema.get("type", "string") == "string":
            texts.append(each)
    accepted = {
        each: [_accepted(value) for value in values if value != "" or each in texts]
        for each, values in arguments.items()
    }
    optional = []
    for each, values in arguments.items():
        if "" in values and each not in required:
            optional.append(each)
    return {"name": name, "any_of": accepted, "optional": optional}


def _accepted(value: Any) -> Any:
    """Return an accepted value; an object has accepted values of each field."""
    if isinstance(value, list):
        return [_accepted(part) for part in value]
    if not isinstance(value, dict):
        return value
    fields = {}
    for name, values in value.items():
        fields[name] = [_accepted(part) for part in values]
    return {"any_of": fields, "optional": [name for name, values in value.items() if "" in values]}
