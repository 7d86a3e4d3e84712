"""Expressions that reach a value in a record of a foreign file: JMESPath with a few functions more.

::

    question                     a column by its name, whatever signs it has; a key of an object
    doc.question, options[0]     a path, an entry of a list
    messages[*].content          a value of each entry of a list
    label || answer              the first that is there
    $key, $value, $parent, $outer, $file, $folder, $set, $line      place of the record
    'a text', `0.5`              a constant
    {context} {question}         a text with expressions in braces
    at(choices, answer_index)    a function, see `FUNCTIONS`, or one of JMESPath
    pred == answer, verdict != 'F'                          true or false, of texts too; missing where either is

Nothing in an expression calls code, reads a file or loops without end. A missing first argument makes the value of a
function missing.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import jmespath
import regex
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import TreeInterpreter

from pytest_adaptive_eval.banks.tool_forms import expected_calls, offered_tools
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError, ConfigError

#: Upper limit of the characters that ``parse`` and patterns read, and of the seconds of one search.
_LONGEST, _SECONDS = 1_000_000, 2.0
#: Numbers from here on are none: whole ones of thousands of digits fit no float.
_LARGEST = 1e300
#: Names and points, which are keys as they stand, with hyphens and spaces.
_PLAIN_PATH = re.compile(r"[^\[\]{}()|&=!<>@\"'`$*]+")
#: Returns a value from the fields of a row, and from further names.
_Evaluate = Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression."""

    text: str
    value: _Evaluate

    def __call__(self, data: Any, names: Mapping[str, Any]) -> Any:
        """Return the value in a record's data, or None; `names` has ``$key`` and the like."""
        is_key = isinstance(data, Mapping) and self.text in data
        if is_key:
            return data[self.text]
        return self.value(data, names)


def parse_expression(text: str, where: str = "") -> Expression:
    """Parse an expression; raise ConfigError with the option `where`, what is not understood and what is."""
    try:
        return _parsed_expression(text)
    except ConfigError as error:
        raise ConfigError(f"{where or 'expression'} {text!r:.120}: {error}") from None


@functools.lru_cache(1024)
def _parsed_expression(text: str) -> Expression:
    return Expression(text, _template(text) if "{" in text else _value(text))


def as_path(text: str) -> str:
    """Return an expression, such as a path of names, as part of a larger expression."""
    if re.fullmatch(r"\$?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*|.*[\"\[(].*", text):
        return text
    return json.dumps(text)


def key_path(key: str) -> str:
    """Return the key of an object as part of an expression."""
    if re.fullmatch(r"[A-Za-z_]\w*", key):
        return key
    return json.dumps(key)


def _template(text: str) -> _Evaluate:
    """Return the text with values in braces; None where one of them is missing."""
    parts = re.split(r"\{([^{}]*)\}", text)
    if any(mark in part for part in parts[::2] for mark in "{}"):
        raise ConfigError("a brace is not closed")
    texts = []
    for part in parts[::2]:
        texts.append(part.replace(r"\n", "\n").replace(r"\t", "\t"))
    inner = [_parsed_expression(part.strip()) for part in parts[1::2]]

    def value(data: Any, names: Mapping[str, Any]) -> str | None:
        values = [each(data, names) for each in inner]
        if any(each is None for each in values):
            return None
        return texts[0] + "".join(as_text(each) + rest for each, rest in zip(values, texts[1:], strict=True))

    return value


def _value(text: str) -> _Evaluate:
    if not text.strip():
        raise ConfigError("a value is missing")
    if _PLAIN_PATH.fullmatch(text):
        keys = text.strip().split(".")
        if "" in keys:
            path = ".".join(filter(None, keys))
            raise ConfigError(f"a key is missing between points; expected a path such as {path}")
        return lambda data, _names: functools.reduce(_key, keys, data)
    return partial(_Interpreter().evaluate, _tree(text))


def _key(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return None


def _tree(text: str) -> dict[str, Any]:
    """Return the syntax tree of an expression whose functions are known."""
    parts = re.split(r"('(?:\\.|[^'])*'|\"(?:\\.|[^\"])*\"|`[^`]*`)", text)
    parts[::2] = [re.sub(r"\$(\w+)", r'"$\1"', part) for part in parts[::2]]
    try:
        tree: dict[str, Any] = jmespath.compile("".join(parts)).parsed
    except JMESPathError as error:
        problem = " ".join(str(error).split(", for expression")[0].split("\n")[0].split())
        raise ConfigError(f"not understood ({problem.rstrip(':')}); expected JMESPath, or a column's name") from None
    for node in _nodes(tree):
        if node["type"] == "function_expression" and node["value"] not in (*FUNCTIONS, *Functions.FUNCTION_TABLE):
            functions = ", ".join(FUNCTIONS)
            name = f"{node['value']!r:.60}"
            raise ConfigError(f"the function {name} is not known; known are {functions}, and JMESPath's own")
    return tree


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from _nodes(child) if isinstance(child, dict) else ()


class _Interpreter(TreeInterpreter):  # type: ignore[misc]  # jmespath has no types
    """Evaluation with the names of a record, in which a missing value stays missing."""

    _names: Mapping[str, Any] = MappingProxyType({})

    def evaluate(self, tree: Any, data: Any, names: Mapping[str, Any]) -> Any:
        """Return the value of an expression; the interpreter, which refers to itself, keeps no record."""
        self._names = names
        try:
            return self.visit(tree, data)
        finally:
            del self._names

    def visit_field(self, node: Any, value: Any) -> Any:
        name = node["value"]
        if name.startswith("$"):
            return self._names.get(name[1:])
        return _key(value, name)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        if node["value"] not in ("eq", "ne"):
            return super().visit_comparator(node, value)
        first, second = (self.visit(child, value) for child in node["children"])
        if first is None or second is None:
            return None
        return (first == second or as_text(first).strip() == as_text(second).strip()) is (node["value"] == "eq")

    def visit_not_expression(self, node: Any, value: Any) -> Any:
        if self.visit(node["children"][0], value) is None:
            return None
        return super().visit_not_expression(node, value)

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        name = node["value"]
        arguments = [self.visit(child, value) for child in node["children"]]
        if arguments and arguments[0] is None and name not in ("not_null", "type"):
            return None
        try:
            if name in FUNCTIONS:
                return FUNCTIONS[name](*arguments)
            return self._functions.call_function(name, arguments)
        except (JMESPathError, TypeError, ValueError, regex.error) as error:
            problem = " ".join(str(error).split())[:200]
            raise ConfigError(f"the function {name} does not fit a value: {problem}") from None


def as_text(value: Any) -> str:
    """Return a value as text: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, default=str)


def parse_literal(text: Any) -> Any:
    """Return the value of a text that is JSON or a Python literal; None for other texts."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return text
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None


def _scale(value: Any, lowest: Any, highest: Any) -> float | None:
    """Return where a number lies between two others."""
    try:
        low, high, number = map(float, (lowest, highest, value))
        if abs(number) < _LARGEST:
            return (number - low) / (high - low)
        return None
    except (TypeError, ValueError, OverflowError):
        return None
    except ZeroDivisionError:
        raise ConfigError(f"scale(value, {lowest}, {highest}): expected two numbers, such as `0` and `100`") from None


def _at(values: Any, index: Any) -> Any:
    """Return an entry of a list by number or letter, or of an object by key; None where there is none."""
    if isinstance(values, Mapping):
        return values.get(index, values.get(str(index)))
    text = as_text(index)
    if re.fullmatch("[A-Za-z]", text):
        position = ord(text.upper()) - ord("A")
    else:
        position = parse_literal(text)
    in_range = type(position) is int and isinstance(values, list) and -len(values) <= position < len(values)
    if in_range:
        return values[position]
    return None


def _extract(text: Any, pattern: str) -> Any:
    """Return the last match of a pattern in a text, or its first group; None where there is none."""
    try:
        matches = list(regex.finditer(pattern, as_text(text)[:_LONGEST], timeout=_SECONDS))
    except TimeoutError:
        raise ConfigError(f"the search for {pattern!r:.80} does not end in time; write a simpler pattern") from None
    if matches:
        return matches[-1][bool(matches[-1].re.groups)]
    return None


def _lookup(value: Any, pairs: str) -> Any:
    """Return what the pairs, such as ``'good=1,bad=0'``, give for a value; None for any other value."""
    by_text = dict(pair.split("=", 1) for pair in pairs.split(",") if "=" in pair)
    text = by_text.get(as_text(value).strip())
    parsed = parse_literal(text)
    if parsed is None:
        return text
    return parsed


def _letter(value: Any, first: Any = 0) -> Any:
    """Return the letter of a choice that is counted from `first`; other values as they are."""
    number = parse_literal(as_text(value))
    is_place = type(number) is int and 0 <= number - int(first) < 26
    if is_place:
        return chr(ord("A") + number - int(first))
    return value


def _split(text: Any, separator: str) -> list[str]:
    parts = as_text(text).split(separator.replace(r"\n", "\n"))
    return [part.strip() for part in parts if part.strip()]


def _join(separator: str, values: Any) -> str:
    return separator.replace(r"\n", "\n").join(map(as_text, values if isinstance(values, list) else [values]))


def _calls(tests: Any, function: Any, setup: Any = None) -> list[dict[str, Any]] | None:
    """Return the calls of a function that assertions make, as `meta` of the grader ``code``; refuse other code."""
    from pytest_adaptive_eval.banks.code import calls_of_tests

    if function is None:
        return None
    if setup:
        raise BankError("its tests need code of their own, which the sandbox does not allow")
    return calls_of_tests("\n".join(map(str, tests)) if isinstance(tests, list) else str(tests), str(function))


def _instructions(names: Any, arguments: Any) -> list[dict[str, Any]]:
    """Return the instructions of IFEval with their arguments, as `meta` of the grader ``instructions``."""
    from pytest_adaptive_eval.items.reading.instructions import fault

    try:
        pairs = zip(names, arguments, strict=True)
        instructions = []
        for id, about in pairs:
            instructions.append({"id": id, **{key: value for key, value in about.items() if value is not None}})
    except (TypeError, ValueError, AttributeError):
        raise BankError("it lacks instructions, or an object of arguments for each") from None
    check_faults(filter(None, (fault(each["id"], each) for each in instructions)), error=BankError)
    return instructions


#: The name of a value in a template.
_SLOT = re.compile(r"\{\{\s*(\w+)\s*\}\}|\{(\w+)\}")


def is_template(text: Any, values: Any) -> bool:
    """Return whether a text has names in braces, each the key of a value."""
    if isinstance(text, str):
        names = {first or second for first, second in _SLOT.findall(text)}
    else:
        names = set()
    return bool(names) and isinstance(values, Mapping) and values.keys() >= names


def _fill(template: Any, values: Any) -> str | None:
    """Return a template with values in place of the names in braces; None where one is missing."""
    if not is_template(template, values):
        return None
    return _SLOT.sub(lambda match: as_text(values[match[1] or match[2]]), template)


def hash_of(value: Any) -> str:
    """Return twelve hexadecimal digits of the SHA-256 of a value's text."""
    return hashlib.sha256(as_text(value).encode("utf-8", "replace")).hexdigest()[:12]


#: Functions beside those of JMESPath.
FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "parse": parse_literal,
        "scale": _scale,
        "at": _at,
        "lookup": _lookup,
        "extract": _extract,
        "letter": _letter,
        "split": _split,
        "join": _join,
        "fill": _fill,
        "lower": lambda text: as_text(text).lower(),
        "hash": hash_of,
        "calls": _calls,
        "instructions": _instructions,
        "offered_tools": offered_tools,
        "expected_calls": expected_calls,
    }
)
