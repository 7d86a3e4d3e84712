"""Read from the source of a test of questions whether and how it judges an answer."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["can_fail", "grades", "parsed", "scores"]

Function = Callable[..., object]

#: Methods of an item that judge an answer.
_JUDGING = ("grade", "score")
#: Parameters whose methods judge nothing, but for `_JUDGING`.
_UNCHECKED = ("item", "model")


def parsed(function: Function) -> ast.Module | None:
    """Return the syntax tree of a function's source, or None if it has no source."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


@functools.lru_cache(maxsize=64)
def grades(function: Function) -> bool:
    """Return whether a test, or a function that gets its item, contains ``item.grade`` or ``item.score``.

    It has to stand elsewhere than where ``and`` or ``or`` skip it.
    """
    return _grades(function, "item", set())


@functools.lru_cache(maxsize=64)
def scores(function: Function) -> bool:
    """Return whether a test names a method ``score``, so that its score may differ from the item grader's."""
    return any(isinstance(node, ast.Attribute) and node.attr == "score" for node in ast.walk(_tree(function)))


def _grades(function: Function, item: str, visited: set[Function]) -> bool:
    visited.add(function)
    pending: list[ast.AST] = [_tree(function)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Attribute) and node.attr in _JUDGING and ast.unparse(node).startswith(f"{item}."):
            return True
        if isinstance(node, ast.Call) and isinstance(callee := _resolve(node.func, function), types.FunctionType):
            for name in _item_parameters(node, callee, item):
                if callee not in visited and _grades(callee, name, visited):
                    return True
        if not isinstance(node, ast.BoolOp | ast.IfExp):
            pending += ast.iter_child_nodes(node)
    return False


def _item_parameters(call: ast.Call, callee: Function, item: str) -> Iterator[str]:
    """Yield the callee's parameters that receive the item in a call."""
    names = list(inspect.signature(callee).parameters)
    for index, argument in enumerate(call.args[: len(names)]):
        if isinstance(argument, ast.Name) and argument.id == item:
            yield names[index]
    for keyword in call.keywords:
        if keyword.arg and isinstance(keyword.value, ast.Name) and keyword.value.id == item:
            yield keyword.arg


@functools.lru_cache(maxsize=64)
def can_fail(function: Function) -> bool:
    """Return whether anything in a test, or in functions of its module that it calls, can fail it."""
    return _can_fail(function, set())


def _can_fail(function: Function, visited: set[Function]) -> bool:
    visited.add(function)
    tree = _tree(function)
    if not tree.body:  # no source
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert | ast.Raise) or (isinstance(node, ast.Attribute) and node.attr in _JUDGING):
            return True
        if isinstance(node, ast.Call) and _call_can_fail(node, function, visited):
            return True
    return False


def _call_can_fail(call: ast.Call, function: Function, visited: set[Function]) -> bool:
    """Return whether a call in a function may check something."""
    callee = _resolve(call.func, function)
    if isinstance(callee, types.FunctionType):
        return callee not in visited and _can_fail(callee, visited)
    if callee is not None:
        return getattr(callee, "__module__", None) != "builtins"
    # something local, such as a fixture that checks; a method of str does not
    *attributes, base = _bases(call.func)
    is_parameter = (
        isinstance(base, ast.Name) and base.id in _UNCHECKED and base.id in inspect.signature(function).parameters
    )
    return not is_parameter and not (attributes and hasattr(str, attributes[0].attr))  # type: ignore[attr-defined]


def _bases(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression and the expressions that it is an attribute of."""
    while isinstance(node, ast.Attribute):
        yield node
        node = node.value
    yield node


def _resolve(node: ast.expr, function: Function) -> Any:
    """Resolve a name in a function by its module and the builtins.  Return None if the name is local."""
    *attributes, base = _bases(node)
    if not isinstance(base, ast.Name):
        return None
    module_globals = getattr(inspect.unwrap(function), "__globals__", {})
    local = base.id in inspect.signature(function).parameters
    value = None if local else module_globals.get(base.id, getattr(builtins, base.id, None))
    for attribute in reversed(attributes):
        value = getattr(value, attribute.attr, None)  # type: ignore[attr-defined]
    return inspect.unwrap(value) if isinstance(value, types.FunctionType) else value


def _tree(function: Function) -> ast.Module:
    """Return the parsed function without its decorators, or an empty module if it has no source."""
    tree = parsed(function) or ast.Module([], [])
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.decorator_list = []
    return tree
