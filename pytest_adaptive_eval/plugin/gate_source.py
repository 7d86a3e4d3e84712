"""Read from a gate's source or bytecode whether it is a gate, which evaluations it names, and its conditions."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest

from pytest_adaptive_eval.evaluation import GateSpec
from pytest_adaptive_eval.gates.condition import KINDS, Condition, find_metric
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.gates.result import BoundMetric

FIXTURE = "adaptive_eval"  #: Fixture that gates take.
NamedCondition: TypeAlias = tuple[str, Condition]


def literal_names(function: Callable[..., object]) -> list[str] | None:
    """Return the evaluations that a gate's source names as ``adaptive_eval["name"]``.

    None when the source does not show them: no such expression, or one with a computed name; the gate then waits for
    every interview.
    """
    declared = getattr(function, "adaptive_eval_names", None)
    if declared is not None:
        return list(declared)
    if (tree := _parsed(function)) is None:
        return None
    uses = sum(isinstance(node, ast.Name) and node.id == FIXTURE for node in ast.walk(tree))
    names = [_subscript(node) for node in ast.walk(tree) if _is_fixture_subscript(node)]
    literal = [name for name in names if name is not None]
    return literal if len(literal) == len(names) == uses > 0 else None


def literal_conditions(item: pytest.Item) -> list[NamedCondition] | None:
    """Return the conditions in a gate's source, such as ``result.accuracy.at_least(0.6)``, with evaluation names.

    Arguments may be numbers and words as written, constants of the module, and parameters of the test. None when the
    source does not show all of it: the interview then cannot know when the gate is decided, and asks its whole budget.
    """
    if not isinstance(item, pytest.Function):
        return None
    params = item.callspec.params if hasattr(item, "callspec") else {}
    names = literal_names(item.obj)
    if isinstance(gate := params.get("gate"), GateSpec) and names:
        return [(names[0], gate.condition)]
    if (tree := _parsed(item.obj)) is None:
        return None
    constants = getattr(inspect.unwrap(item.obj), "__globals__", {})  # a decorator may be of another module
    variables = {**constants, **params, **dict.fromkeys(_local(tree, params))}
    results = _assigned(tree)
    if _passed_on(tree, {name for name, value in results.items() if _subscript(value)}):
        return None
    reader = _ConditionReader(tree, variables, results, names[0] if names and len(names) == 1 else None)
    try:
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        return [reader.read(node) for node in nodes if node.attr in KINDS] or None
    except (LookupError, TypeError):
        return None


def _parsed(function: Callable[..., object]) -> ast.Module | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


class _ConditionReader:
    """Conditions of one gate's syntax tree; `results` are the expressions of names that are assigned once."""

    def __init__(
        self, tree: ast.AST, variables: Mapping[str, Any], results: Mapping[str, ast.expr], only_name: str | None
    ) -> None:
        self._calls = {node.func: node for node in ast.walk(tree) if isinstance(node, ast.Call)}
        self._variables, self._results, self._only_name = variables, results, only_name

    def read(self, node: ast.Attribute) -> NamedCondition:
        """Return the condition of ``result.accuracy.at_least`` with its evaluation, or raise a LookupError."""
        call = self._calls[node]
        metric, part = node.value, ""
        if isinstance(metric, ast.Subscript) and isinstance(index := metric.slice, ast.Constant):
            metric, part = metric.value, "." + str(index.value)
        if not (isinstance(metric, ast.Attribute) and _is_bank_metric(metric.attr)):
            raise LookupError
        arguments = [self._value(argument) for argument in call.args]
        keywords = {k.arg: self._value(k.value) for k in call.keywords if k.arg}
        condition = _recorded(metric.attr + part, node.attr, arguments, keywords)
        source = metric.value
        if isinstance(source, ast.Name):
            source = self._results.get(source.id, source)
        name = _subscript(source) or self._only_name
        if name is None or len(keywords) != len(call.keywords):
            raise LookupError
        return name, condition

    def _value(self, node: ast.expr) -> Any:
        """Return the value of an argument.  Raise LookupError if it would have to be computed."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._value(node.operand)
        if isinstance(node, ast.Name) and isinstance(value := self._variables.get(node.id), int | float | str):
            return value
        raise LookupError


def _local(tree: ast.AST, params: Mapping[str, Any]) -> Iterator[str]:
    """Yield names whose value in the test is neither a parameter nor the module's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg not in params:
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _assigned(tree: ast.AST) -> dict[str, ast.expr]:
    assignments: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            assignments.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in assignments.items() if len(values) == 1}


def _passed_on(tree: ast.AST, results: Collection[str]) -> bool:
    """Return whether code outside the test gets the fixture, a result or a metric, such as a helper."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}

    def is_passed(node: ast.Name) -> bool:
        expression: ast.AST = node
        if node.id == FIXTURE:
            expression = parents[node]
            if not isinstance(expression, ast.Subscript):
                return True
        user = parents[expression]
        if isinstance(user, ast.Attribute) and _is_bank_metric(user.attr):
            user = parents[user]
            while isinstance(user, ast.Subscript):
                user = parents[user]
        if isinstance(user, ast.Call) and isinstance(user.func, ast.Name):
            return user.func.id not in ("print", "repr", "str")
        return not isinstance(user, ast.Attribute | ast.Assign | ast.FormattedValue)

    uses = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return any(is_passed(n) for n in uses if n.id == FIXTURE or (n.id in results and isinstance(n.ctx, ast.Load)))


def _is_bank_metric(name: str) -> bool:
    return name in metric_names() and find_metric(name).on_banks


def _is_fixture_subscript(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == FIXTURE


def _subscript(node: ast.AST) -> str | None:
    """Return the name in ``adaptive_eval["name"]``, or None."""
    if not (_is_fixture_subscript(node) and isinstance(index := node.slice, ast.Constant)):  # type: ignore[attr-defined]
        return None
    return index.value if isinstance(index.value, str) else None


def _recorded(metric: str, kind: str, arguments: list[Any], keywords: dict[str, Any]) -> Condition:
    """Return the condition that a call creates, by making the call on a result that records it."""
    conditions: list[Condition] = []

    class Recorder:
        verdict = staticmethod(conditions.append)

    getattr(BoundMetric(metric, Recorder()), kind)(*arguments, **keywords)  # type: ignore[arg-type]  # a metric uses no more
    return conditions[0]


_EXAMPLE = "_pytest_bdd_example"  #: Argument that every scenario of pytest-bdd has.
#: Variables in the closures of pytest-bdd's scenarios and step fixtures; the same in its versions 7 to 9.
_SCENARIO, _STEP = "templated_scenario", "context"


def gets_fixture(item: pytest.Function, fixture: str) -> bool:
    """Return whether a test may get a fixture by its name while it runs, as far as its code shows.

    Three ways are recognized: ``request.getfixturevalue``, parameters of pytest-lazy-fixtures (or pytest-lazy-fixture),
    and steps of pytest-bdd.
    """
    params: Mapping[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    chosen = {value for value in params.values() if isinstance(value, str)}
    pending = {*item.fixturenames, *_lazy_names(params.values()), *_requested_names(item.obj, chosen)}
    if _EXAMPLE in item.fixturenames:
        if (steps := _step_functions(item, params.get(_EXAMPLE, {}))) is None:
            return True
        for step in steps:
            pending.update(inspect.signature(step).parameters, _requested_names(step, chosen))
    visited: set[str] = set()
    while pending:
        name = pending.pop()
        if name == fixture:
            return True
        visited.add(name)
        for definition in _definitions(item, name):
            pending.update(definition.argnames, _requested_names(definition.func, chosen))
        pending -= visited
    return False


def _definitions(item: pytest.Function, name: str) -> Sequence[Any]:
    node: Any = item if pytest.version_tuple >= (8, 1) else item.nodeid
    return item.session._fixturemanager.getfixturedefs(name, node) or ()


def _requested_names(function: Callable[..., object], chosen: Iterable[str]) -> set[str]:
    """Return the names that a function may give to ``getfixturevalue``: texts in its code, or the given parameters."""
    texts = _texts_of_requests(function)
    return set() if texts is None else {*texts, *chosen}


@functools.lru_cache(maxsize=4096)
def _texts_of_requests(function: Callable[..., object]) -> frozenset[str] | None:
    """Return the texts in a function that uses ``getfixturevalue``; None for any other function."""
    texts: set[str] = set()
    used = False
    wrapped: Any = function
    while wrapped is not None:
        for code in _codes(getattr(wrapped, "__code__", None)):
            used |= "getfixturevalue" in code.co_names
            constants = [getattr(wrapped, "__globals__", {}).get(name) for name in code.co_names]
            texts.update(value for value in (*code.co_consts, *constants) if isinstance(value, str))
        wrapped = getattr(wrapped, "__wrapped__", None) or getattr(wrapped, "func", None)
    return frozenset(texts) if used else None


def _codes(code: types.CodeType | None) -> Iterator[types.CodeType]:
    """Yield a function's code object, and those of functions and comprehensions within it."""
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from _codes(constant)


def _lazy_names(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if type(value).__module__.startswith("pytest_lazy"):
            yield str(getattr(value, "name", "")).partition(".")[0]
            yield from _lazy_names(getattr(value, "args", ()) or ())
            yield from _lazy_names((getattr(value, "kwargs", {}) or {}).values())
        elif isinstance(value, Mapping):
            yield from _lazy_names([*value, *value.values()])
        elif isinstance(value, list | tuple | set | frozenset):
            yield from _lazy_names(value)


def _closure(function: Any) -> Mapping[str, Any]:
    return inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}


def _step_functions(item: pytest.Function, example: Any) -> list[Callable[..., object]] | None:
    """Return the functions of a scenario's steps; None where the scenario cannot be read."""
    manager: Any = item.session._fixturemanager
    # pytest 9.2 keeps fixtures by the node that defines them
    fixture_tables = [getattr(manager, f"_arg2{by}fixturedefs", {}) for by in ("", "node2", "nodeid2")]
    try:
        names = [step.name for step in _closure(item.obj)[_SCENARIO].render(example).steps]
        steps: list[Any] = [
            _closure(definition.func).get(_STEP)
            for fixture in {name for table in fixture_tables for name in table}
            for definition in _definitions(item, fixture)
        ]
        step_definitions = [step for step in steps if hasattr(step, "step_func")]
        return [step.step_func for step in step_definitions if any(step.parser.is_matching(name) for name in names)]
    except (LookupError, AttributeError, TypeError):
        return None
