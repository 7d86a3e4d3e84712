"""Find tests that get a fixture by its name while they run, which their arguments do not show.

Three ways are recognized: ``request.getfixturevalue``, parameters of pytest-lazy-fixtures (or pytest-lazy-fixture), and
steps of pytest-bdd.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

#: Argument that every scenario of pytest-bdd has.
_EXAMPLE = "_pytest_bdd_example"
#: Variables in the closures of pytest-bdd's scenarios and step fixtures; the same in its versions 7 to 9.
_SCENARIO, _STEP = "templated_scenario", "context"


def gets_fixture(item: pytest.Function, fixture: str) -> bool:
    """Return whether a test may get a fixture by its name while it runs, as far as its code shows.

    Args:
        fixture: Name of the fixture.
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
    """Return the definitions of a fixture that a test can see."""
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
    for wrapped in _wrapped(function):
        for code in _codes(getattr(wrapped, "__code__", None)):
            used |= "getfixturevalue" in code.co_names
            constants = [getattr(wrapped, "__globals__", {}).get(name) for name in code.co_names]
            texts.update(value for value in (*code.co_consts, *constants) if isinstance(value, str))
    return frozenset(texts) if used else None


def _wrapped(function: Any) -> Iterator[Any]:
    """Yield a function and the functions that it wraps."""
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None) or getattr(function, "func", None)


def _codes(code: types.CodeType | None) -> Iterator[types.CodeType]:
    """Yield a function's code object, and those of functions and comprehensions within it."""
    if code is not None:
        yield code
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                yield from _codes(constant)


def _lazy_names(values: Iterable[Any]) -> Iterator[str]:
    """Yield names of fixtures that parameters refer to."""
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
