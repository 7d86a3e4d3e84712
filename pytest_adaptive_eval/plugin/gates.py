"""Gates: ordinary tests that ask ``adaptive_eval[...]`` for a result and assert on it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_adaptive_eval.core.gates import SessionResult, Verdict
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.plugin.interview import Interview

__all__ = ["Results", "is_gate", "literal_names", "needed", "order", "resolve"]

FIXTURE = "adaptive_eval"


def is_gate(item: pytest.Item) -> bool:
    """Whether a test judges interviews."""
    return FIXTURE in getattr(item, "fixturenames", ())


def literal_names(function: Callable[..., object]) -> list[str] | None:
    """Evaluations that a gate's source names as ``adaptive_eval["name"]``.

    None when the source tells nothing: no such expression, or one with a
    computed name; the gate then waits for every interview.
    """
    declared = getattr(function, "adaptive_eval_names", None)
    if declared is not None:
        return list(declared)
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return None
    names: list[str] = []
    uses = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == FIXTURE:
            uses += 1
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == FIXTURE:
            if not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)):
                return None
            names.append(node.slice.value)
            uses -= 1
    return names if names and uses == 0 else None


def resolve(name: str, interviews: Iterable[Interview]) -> Interview:
    """The one interview that `name` stands for.

    Raises
    ------
    ConfigError
        None does, or more than one.
    """
    interviews = list(interviews)
    found = [i for i in interviews if name in (i.evaluation.name, i.nodeid)]
    found = found or [i for i in interviews if name in i.aliases]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(i.nodeid for i in found)
        raise ConfigError(
            f"adaptive_eval[{name!r}] could mean {ids}: name the evaluations apart (name=...) or use a node id"
        )
    known = ", ".join(sorted({i.evaluation.name for i in interviews})) or "none"
    raise ConfigError(
        f"adaptive_eval[{name!r}]: there is no such evaluation among those collected ({known}); check the name, and "
        "that the file of the evaluation is part of this run"
    )


def needed(item: pytest.Item, interviews: Sequence[Interview]) -> list[Interview]:
    """Interviews that a gate waits for.

    Raises
    ------
    ConfigError
        It names an unknown or ambiguous evaluation, or asks questions itself.
    """
    if item in interviews:
        raise ConfigError(
            f"{item.nodeid}: a test with the marker adaptive_eval asks questions and cannot judge the answers too: "
            "move what uses the fixture adaptive_eval to a test of its own"
        )
    names = literal_names(item.obj) if isinstance(item, pytest.Function) else None
    if names is None:
        return list(interviews)
    try:
        return [resolve(name, interviews) for name in names]
    except ConfigError as error:
        raise ConfigError(f"{item.nodeid}: {error}") from None


def order(items: list[pytest.Item], wants: Mapping[pytest.Item, Sequence[Interview]]) -> list[pytest.Item]:
    """The items with every gate right after the last interview it needs, and missing interviews added before it."""
    from pytest_adaptive_eval.plugin.interview import Interview

    placed: set[pytest.Item] = {i for i in items if isinstance(i, Interview)}
    out: list[pytest.Item] = []
    done: set[pytest.Item] = set()
    waiting: list[pytest.Item] = []

    def release() -> None:
        for gate in list(waiting):
            if all(interview in done for interview in wants[gate]):
                waiting.remove(gate)
                out.append(gate)

    for item in items:
        if item in wants:
            for interview in wants[item]:
                if interview not in placed:
                    placed.add(interview)
                    out.append(interview)
                    done.add(interview)
            waiting.append(item)
        else:
            out.append(item)
            if isinstance(item, Interview):
                done.add(item)
        release()
    return out


class Results:
    """The fixture ``adaptive_eval``: results of interviews by name.

    Parameters
    ----------
    lookup : callable
        Gives the interview of a name, with its result.
    note : callable
        Told of each verdict asked for, and of whom; gives the one to use.
    """

    def __init__(
        self, lookup: Callable[[str], tuple[Interview, SessionResult]], note: Callable[[Interview, Verdict], Verdict]
    ) -> None:
        self._lookup, self._note = lookup, note

    def __getitem__(self, name: str) -> SessionResult:
        interview, result = self._lookup(name)
        return replace(result, on_verdict=lambda verdict: self._note(interview, verdict))
