"""Gates: ordinary tests that ask ``adaptive_eval[...]`` for a result and assert on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.study_result import StudyResult
from pytest_adaptive_eval.gates.verdict import NoVerdict, Verdict
from pytest_adaptive_eval.plugin.dynamic import gets_fixture
from pytest_adaptive_eval.plugin.gate_source import FIXTURE, literal_names
from pytest_adaptive_eval.plugin.question import is_placeholder
from pytest_adaptive_eval.plugin.state import EvaluationNode, Once, resolve

#: Whether a test may get the fixture by its name.
_GETS_FIXTURE: pytest.StashKey[bool] = pytest.StashKey()


def is_gate(item: pytest.Item) -> bool:
    """Return whether a test judges interviews: it takes the fixture, or its code shows that it gets it by its name."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        return True
    if not isinstance(item, pytest.Function) or isinstance(item, Once) or is_placeholder(item):
        return False
    if _GETS_FIXTURE not in item.stash:
        item.stash[_GETS_FIXTURE] = gets_fixture(item, FIXTURE)
    return item.stash[_GETS_FIXTURE]


def named_evaluations(item: pytest.Item) -> list[str] | None:
    """Return the evaluations that a gate names; None for each test that is no function, see `literal_names`."""
    return literal_names(item.obj) if isinstance(item, pytest.Function) else None


def judges_itself(item: pytest.Item) -> ConfigError:
    """Return the error of a test that asks questions and takes the fixture of gates."""
    return ConfigError(
        f"{item.nodeid}: a test with the marker adaptive_eval asks questions and cannot judge the answers too: "
        "move what uses the fixture adaptive_eval to a test of its own"
    )


def required_evaluations(item: pytest.Item, nodes: Sequence[EvaluationNode]) -> list[EvaluationNode]:
    """Return the interviews and studies that a gate waits for.

    Raises:
        ConfigError: It names an unknown or ambiguous evaluation, or asks questions itself.
    """
    if item in nodes:
        raise judges_itself(item)
    if (names := named_evaluations(item)) is None:
        return list(nodes)
    try:
        return [resolve(name, nodes) for name in names]
    except ConfigError as error:
        raise ConfigError(f"{item.nodeid}: {error}") from None


def order(items: list[pytest.Item], needs: Mapping[pytest.Item, Sequence[EvaluationNode]]) -> list[pytest.Item]:
    """Place each test directly after the last evaluation it needs, and add missing evaluations before it."""
    placed: set[pytest.Item] = {item for item in items if isinstance(item, EvaluationNode)}
    ordered: list[pytest.Item] = []
    done: set[pytest.Item] = set()
    waiting: list[pytest.Item] = []

    def place(item: pytest.Item) -> None:
        if not done.issuperset(needs.get(item, ())):
            waiting.append(item)
            return
        ordered.append(item)
        if isinstance(item, EvaluationNode):
            done.add(item)
            for ready in [test for test in waiting if done.issuperset(needs[test])]:
                if ready in waiting:
                    waiting.remove(ready)
                    place(ready)

    def place_with_needs(item: pytest.Item) -> None:
        for node in needs.get(item, ()):
            if node not in placed:
                placed.add(node)
                place_with_needs(node)
        place(item)

    for item in items:
        place_with_needs(item)
    return ordered


class Results(NoVerdict):
    """The fixture ``adaptive_eval``: results of interviews and studies by name.

    Args:
        lookup: Returns the interview or study of a name, with its result.
        on_verdict: Called with each verdict that is asked for, and its evaluation; returns the verdict for the gate.
        on_any: Called with verdicts of which one has to hold.
    """

    def __init__(
        self,
        lookup: Callable[[str], tuple[EvaluationNode, SessionResult | StudyResult]],
        on_verdict: Callable[[EvaluationNode, Verdict], Verdict],
        on_any: Callable[[Sequence[Verdict]], object],
    ) -> None:
        self._lookup, self._on_verdict, self._on_any = lookup, on_verdict, on_any

    def __getitem__(self, name: str) -> Any:
        node, result = self._lookup(name)
        return replace(result, on_verdict=lambda verdict: self._on_verdict(node, verdict))

    def any_of(self, *verdicts: Verdict) -> bool:
        """Return whether one of the verdicts holds, which is all that the gate asks of them.

        Raises:
            ConfigError: There is none, or something else than verdicts.
        """
        if not verdicts or not all(isinstance(verdict, Verdict) for verdict in verdicts):
            raise ConfigError("any_of takes verdicts, such as adaptive_eval[...].accuracy.at_least(0.6)")
        self._on_any(verdicts)
        return any(verdicts)

    def __repr__(self) -> str:
        return "adaptive_eval"
