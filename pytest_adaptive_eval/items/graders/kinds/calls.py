"""Grader of calls of tools: their names and arguments.  Nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_adaptive_eval.items.graders.kind import Asked, GraderKind
from pytest_adaptive_eval.items.graders.kinds.json_field import MISSING, parsed_leniently
from pytest_adaptive_eval.items.graders.kinds.literal import typed
from pytest_adaptive_eval.items.reading.cleaning import without_reasoning

#: Calls in a text that are looked at, and characters of a text that is parsed as Python.
_MOST, _LONGEST = 50, 5000
#: Marks around calls in the answers of models whose server does not read them: of Hermes and Qwen, Granite, Mistral,
#: Llama, and Functionary.
_MARKED = re.compile(
    r"(?:<(?:tool_call|tools|function_call)>|<\|tool_call(?:_start)?\|>|\[TOOL_CALLS\]|<\|python_tag\|>|\Afunctools(?=\s*\[))"
    r"(.*?)(?:</\w+>|<\|tool_call_end\|>|(?=<tool_call>|\[TOOL_CALLS\]|<\|python_tag\|>)|\Z)",
    re.DOTALL,
)
#: Notations of a name and its arguments: of Llama, Mistral, DeepSeek, and ReAct.
_NAMED = (
    re.compile(r"<function=([\w.-]+)>(.*?)(?:</function>|\Z)", re.DOTALL),
    re.compile(
        r"\[TOOL_CALLS\]\s*([\w.-]+)(?:\[CALL_ID\]\w+)?\s*(?:\[ARGS\])?\s*(\{.*?\})\s*(?=\[TOOL_CALLS\]|\Z)", re.DOTALL
    ),
    re.compile(r"<｜tool▁sep｜>\s*([\w.-]+)\s*(?:```json)?\s*(\{.*?\})\s*(?:```|<｜tool▁call▁end｜>)", re.DOTALL),
    re.compile(r"^Action:\s*([\w.-]+)\s*\nAction Input:\s*(\{.*?\})\s*(?=\n\S|\Z)", re.DOTALL | re.MULTILINE),
)
#: An argument in the notation of Qwen.
_PARAMETER = re.compile(r"<parameter=([\w.-]+)>\s*(.*?)\s*</parameter>", re.DOTALL)
_FENCED = re.compile(r"```\w*\n(.*?)\n```", re.DOTALL)
#: Fields of a call in JSON, and fields of an object around calls.
_NAMES, _ARGUMENTS, _AROUND = (
    ("name", "tool", "tool_name"),
    ("arguments", "parameters", "args"),
    ("tool_calls", "function_call"),
)
#: Characters that do not count in texts with ``meta.arguments = "folded"``.
_IGNORED = re.compile(r"[ ,./\-_*^]")
_FOLDED = "folded"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, or an expected one.

    Args:
        accepted: Accepted values by argument, in place of the one in `arguments`.
        optional: Arguments that a call may leave out.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    accepted: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()


def _call(value: Any) -> Call | None:
    """Return the call in a JSON value: ``name`` and ``arguments``, or OpenAI's form of both; None for another value."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = _first_field(value, _NAMES, None)
    arguments = _first_field(value, _ARGUMENTS, {})
    if isinstance(arguments, str):
        arguments = _loaded(arguments.strip() or "{}")
    if not (isinstance(name, str) and isinstance(arguments, dict)):
        return None
    accepted = value.get("any_of", {})
    optional = value.get("optional", [])
    if not (isinstance(accepted, dict) and isinstance(optional, list)):
        return None
    lists = {}
    for argument, values in accepted.items():
        if isinstance(values, list):
            lists[argument] = values
    return Call(name, arguments, lists, frozenset(map(str, optional)))


def _first_field(value: Mapping[str, Any], names: Sequence[str], default: Any) -> Any:
    return next((value[name] for name in names if name in value), default)


def _loaded(text: str) -> Any:
    """Return the value of JSON, or of a literal of Python, which is JSON with single quotes or a comma at the end."""
    value = parsed_leniently(text)
    if value is MISSING:
        return None
    return value


def _calls(value: Any) -> list[Call] | None:
    """Return the calls in a JSON value, an object or a list of some; None for another value."""
    if isinstance(value, dict):
        value = _first_field(value, _AROUND, value)
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        call = _call(entry)
        if call is None:
            return None
        calls.append(call)
    return calls


def calls_in(text: str, tools: Sequence[Mapping[str, Any]] = ()) -> list[Call] | None:
    """Return the calls in an answer; empty if it makes none, None if it makes some that cannot be read.

    They are JSON or calls of Python with literals: the whole text, its only block of code, or between the marks of a
    model's template. Templates with a name and arguments apart are read too.

    Args:
        tools: Tools of the item, whose parameters name arguments by their place.
    """
    text = without_reasoning(text).strip()
    for pattern in _NAMED:
        if named := pattern.findall(text)[:_MOST]:
            return _calls([{"name": name, "arguments": _arguments(part)} for name, part in named])
    if marked := _MARKED.findall(text)[:_MOST]:
        calls: list[Call] = []
        for part in marked:
            read = _written(part.strip(), tools)
            if read is None:
                return None
            calls += read
        return calls
    blocks = _FENCED.findall(text)
    if len(blocks) == 1:
        text = blocks[0].strip()
    value = _loaded(text)
    if isinstance(value, dict | list):
        return _calls(value)
    return _python_calls(text, tools) or []


def _written(text: str, tools: Sequence[Mapping[str, Any]]) -> list[Call] | None:
    """Return the calls of a text that is JSON or Python; None for another text."""
    value = _loaded(text)
    if value is None:
        return _python_calls(text, tools)
    return _calls(value)


def _arguments(text: str) -> Any:
    """Return arguments in JSON, or in marks with a name each."""
    named = _PARAMETER.findall(text)
    if not named:
        return _loaded(text)
    arguments = {}
    for name, part in named:
        value = _loaded(part)
        arguments[name] = part if value is None else value
    return arguments


def _python_calls(text: str, tools: Sequence[Mapping[str, Any]]) -> list[Call] | None:
    """Return the calls of a text such as ``[f(a=1), g()]``; None for another text."""
    if len(text) > _LONGEST or not text.endswith((")", ")]")):
        return None
    try:
        body = ast.parse(text, mode="eval").body
        if isinstance(body, ast.List | ast.Tuple):
            nodes = body.elts
        else:
            nodes = [body]
        return [_python_call(node, tools) for node in nodes]
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


def _python_call(node: ast.expr, tools: Sequence[Mapping[str, Any]]) -> Call:
    """Return a call of Python with literals; raise ValueError for another expression."""
    if not isinstance(node, ast.Call):
        raise ValueError("no call")
    name = ast.unparse(node.func).removesuffix(".call")
    order = list(_parameters(tools, name).get("properties", {}))
    if len(node.args) > len(order):
        raise ValueError("more arguments than parameters")
    arguments = {}
    for parameter, value in zip(order, node.args, strict=False):
        arguments[parameter] = ast.literal_eval(value)
    for word in node.keywords:
        arguments[str(word.arg)] = ast.literal_eval(word.value)
    return Call(name, arguments)


def _parameters(tools: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of a tool's arguments; empty for an unknown tool."""
    for tool in tools:
        function = tool.get("function", tool)
        if function.get("name") == name and isinstance(function.get("parameters"), dict):
            parameters: dict[str, Any] = function["parameters"]
            return parameters
    return {}


def _equal(value: Any, expected: Any, *, folded: bool) -> bool:
    """Return whether a value is the expected one, or fits one that lists accepted values of its fields."""
    if isinstance(expected, dict) and "any_of" in expected and set(expected) <= {"any_of", "optional"}:
        return isinstance(value, dict) and _fields_fit(value, expected["any_of"], expected.get("optional", ()), folded)
    if folded and isinstance(value, str) and isinstance(expected, str):
        return _fold(value) == _fold(expected)
    if isinstance(value, list | tuple) and isinstance(expected, list | tuple):
        same_length = len(value) == len(expected)
        return same_length and all(_equal(a, b, folded=folded) for a, b in zip(value, expected, strict=True))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(_equal(value[k], expected[k], folded=folded) for k in value)
    return bool(typed(value) == typed(expected))


def _fields_fit(value: Mapping[str, Any], accepted: Mapping[str, Any], optional: Sequence[str], folded: bool) -> bool:
    """Return whether an object has accepted values in all fields, and no others."""
    for name in {*value, *accepted}:
        if name not in value:
            fits = name in optional
        else:
            fits = any(_equal(value[name], entry, folded=folded) for entry in accepted.get(name, ()))
        if not fits:
            return False
    return True


def _fold(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _matches(question: Asked, call: Call, expected: Call) -> bool:
    """Return whether a call has the expected name and arguments.

    An argument that the schema does not require may also be left out, or given, with its default, unless the expected
    call says itself what may be left out.
    """
    if call.name != expected.name:
        return False
    schema = _parameters(question.tools, expected.name)
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    folded = question.meta.get("arguments") == _FOLDED
    follows_schema = not (expected.accepted or expected.optional)
    for name in {*call.arguments, *expected.arguments, *expected.accepted}:
        if isinstance(properties.get(name), dict):
            described = properties[name]
        else:
            described = {}
        free = follows_schema and "default" in described and name not in required
        allowed = list(expected.accepted.get(name, ()))
        if name in expected.arguments:
            allowed.append(expected.arguments[name])
        if free and not allowed:
            allowed = [described["default"]]
        if name in call.arguments:
            value = call.arguments[name]
            # a checker in Python, as the leaderboard's, takes no 2.0 for a whole number
            is_whole = not (folded and isinstance(value, float) and described.get("type") == "integer")
            right = is_whole and any(_equal(value, entry, folded=folded) for entry in allowed)
        else:
            right = name in expected.optional or (free and described["default"] in allowed)
        if not right:
            return False
    return True


def _all_match(question: Asked, calls: Sequence[Call], expected: Sequence[Call]) -> bool:
    """Return whether the calls are the expected ones, each once, in any order (an augmenting path for each)."""
    if len(calls) != len(expected):
        return False
    taken: dict[int, int] = {}  # the call of each expected one

    def assign(call: int, tried: set[int]) -> bool:
        for number, expected_call in enumerate(expected):
            if number not in tried and _matches(question, calls[call], expected_call):
                tried.add(number)
                if number not in taken or assign(taken[number], tried):
                    taken[number] = call
                    return True
        return False

    return all(assign(call, set()) for call in range(len(calls)))


def _grade(question: Asked, text: str) -> float:
    """Return 1 if an answer makes the expected calls, and no other."""
    calls = calls_in(text, question.tools)
    keys = [_calls(_loaded(answer)) for answer in question.answers]
    return float(calls is not None and any(key is not None and _all_match(question, calls, key) for key in keys))


def _check(question: Asked, answer: str) -> str:
    return next(_faults(question, answer), "")


def _faults(question: Asked, answer: str) -> Iterator[str]:
    """Yield what is wrong with an expected answer."""
    calls = _calls(_loaded(answer))
    if calls is None or len(calls) > _MOST:
        yield f'is not a call; write {{"name": ..., "arguments": {{...}}}}, a list of at most {_MOST}, or [] for none'
    names = []
    for tool in question.tools:
        names.append(str(tool.get("function", tool).get("name")))
    for call in calls or ():
        if call.name not in names:
            yield f"calls {call.name!r:.80}, and the tools of the item are {', '.join(names)[:200] or 'none'}"
        properties = _parameters(question.tools, call.name).get("properties", {})
        unknown = sorted({*call.arguments, *call.accepted, *call.optional} - set(properties))
        if unknown and properties:
            yield f"gives {call.name!r:.80} the argument {unknown[0]!r:.80}, which its parameters do not list"


REGISTERED = (
    GraderKind(
        "calls",
        "the calls of tools are the expected ones, by names and arguments, in any order; `[]` is for none",
        _grade,
        check=_check,
        readable=lambda question, text: calls_in(text, question.tools) is not None,
    ),
)
