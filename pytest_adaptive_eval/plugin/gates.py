"""Gates: tests that take the fixture ``adaptive_eval`` and assert on verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.gates.verdict import NoVerdict, Verdict
from pytest_adaptive_eval.plugin.names import GATE_MARKER, MARKER
from pytest_adaptive_eval.plugin.state import EvaluationTest


def is_gate(item: pytest.Item) -> bool:
    """Return whether a test judges interviews: it takes the fixture, or has a mark of gates."""
    return MARKER in getattr(item, "fixturenames", ()) or item.get_closest_marker(GATE_MARKER) is not None


def gate_marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return the marks that declare conditions, in the order in which they are written."""
    return list(item.iter_markers(GATE_MARKER))[::-1]


def named_evaluations(item: pytest.Item) -> set[str]:
    """Return the names of evaluations in a gate's marks."""
    return {name for mark in gate_marks(item) for name in mark.args[:1] if isinstance(name, str)}


def judges_itself(item: pytest.Item) -> ConfigError:
    """Return the error of a test that asks questions and takes the fixture of gates."""
    return ConfigError(
        f"{item.nodeid}: a test with the marker adaptive_eval asks questions and cannot judge the answers too: "
        "move what uses the fixture adaptive_eval to a test of its own"
    )


def order(items: list[pytest.Item], needs: Mapping[pytest.Item, Sequence[EvaluationTest]]) -> list[pytest.Item]:
    """Place each test directly after the last evaluation it needs, and add missing evaluations before it."""
    placed: set[pytest.Item] = {item for item in items if isinstance(item, EvaluationTest)}
    ordered: list[pytest.Item] = []
    done: set[pytest.Item] = set()
    waiting: list[pytest.Item] = []

    def place(item: pytest.Item) -> None:
        if not done.issuperset(needs.get(item, ())):
            waiting.append(item)
            return
        ordered.append(item)
        if isinstance(item, EvaluationTest):
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


def failed_sentence(verdicts: Sequence[Verdict]) -> str:
    """Return the first sentence of verdicts that do not hold, with their number; empty if all hold."""
    failed = [verdict for verdict in verdicts if not verdict]
    if not failed:
        return ""
    if len(verdicts) > 1:
        more = f" ({len(failed)} of {len(verdicts)} verdicts do not hold)"
    else:
        more = ""
    return f"{failed[0].sentence}{more}"


class Verdicts:
    """Verdicts of the conditions that a gate's marks declare, in the order of the marks; true if all hold."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._verdicts = tuple(verdicts)
        #: Positions of verdicts that the test has not looked at.
        self.unread = set(range(len(verdicts)))

    def __bool__(self) -> bool:
        self.unread.clear()
        return all(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __getitem__(self, position: int) -> Verdict:
        verdict = self._verdicts[position]
        self.unread.discard(range(len(self))[position])
        return verdict

    def __iter__(self) -> Iterator[Verdict]:
        return (self[position] for position in range(len(self)))

    def __repr__(self) -> str:
        return failed_sentence(self._verdicts) or "; ".join(verdict.sentence for verdict in self._verdicts)


class Results(NoVerdict):
    """The fixture ``adaptive_eval``: results of evaluations by name; `on_verdict` may replace a verdict."""

    def __init__(
        self,
        lookup: Callable[[str], tuple[EvaluationTest, Result]],
        on_verdict: Callable[[EvaluationTest, Verdict], Verdict],
        on_any: Callable[[Sequence[Verdict]], object],
        declared: Callable[[], Verdicts],
    ) -> None:
        self._lookup = lookup
        self._on_verdict = on_verdict
        self._on_any = on_any
        self._declared = declared

    @property
    def verdicts(self) -> Verdicts:
        """Verdicts of the conditions that the test's marks declare.

        Raises:
            ConfigError: The test has no mark ``adaptive_gate``.
        """
        return self._declared()

    def __getitem__(self, name: str) -> Any:
        node, result = self._lookup(name)
        return replace(result, on_verdict=lambda verdict: self._on_verdict(node, verdict))

    def any_of(self, *verdicts: Verdict) -> bool:
        """Return whether one of the verdicts holds, which is all that the gate asks of them.

        Raises:
            ConfigError: There is none, or something else than verdicts.
        """
        if not verdicts or not all(isinstance(verdict, Verdict) for verdict in verdicts):
            raise ConfigError("any_of takes verdicts, such as *adaptive_eval.verdicts")
        self._on_any(verdicts)
        return any(verdicts)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"adaptive_eval has no {name!r:.80}: it has verdicts, any_of, and the result of each evaluation, such as "
            'adaptive_eval["toy"].at_least(0.6)'
        )

    def __repr__(self) -> str:
        return "adaptive_eval"
