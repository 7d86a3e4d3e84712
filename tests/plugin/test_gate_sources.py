"""What the source of a gate tells before it runs."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.plugin.gate_source import literal_conditions, literal_names

NAME = "a"


def one(adaptive_eval: Any) -> None:
    assert adaptive_eval["a"].accuracy.at_least(0.5)


def two(adaptive_eval: Any) -> None:
    first, second = adaptive_eval["a"], adaptive_eval["b"]
    assert first.accuracy.at_least(0.5)
    assert second.accuracy.at_least(0.5)


def none(adaptive_eval: Any) -> None:
    pass


def computed(adaptive_eval: Any) -> None:
    assert adaptive_eval[NAME].accuracy.at_least(0.5)


def numbered(adaptive_eval: Any) -> None:
    assert adaptive_eval[0].accuracy.at_least(0.5)


def handed_on(adaptive_eval: Any) -> None:
    repr(adaptive_eval)
    assert adaptive_eval["a"].accuracy.at_least(0.5)


def other(adaptive_eval: Any, results: dict[str, Any]) -> None:
    assert results["b"]
    assert adaptive_eval["a"].accuracy.at_least(0.5)


@pytest.mark.parametrize(
    ("gate", "names"),
    [
        (one, ["a"]),
        (two, ["a", "b"]),
        (none, None),  # it may get any result: it waits for all
        (computed, None),
        (numbered, None),
        (handed_on, None),
        (other, ["a"]),
    ],
)
def test_names_are_known_only_where_every_use_of_the_fixture_is_written_out(gate: Any, names: list[str] | None) -> None:
    assert literal_names(gate) == names


def test_declared_names_need_no_source() -> None:
    def gate() -> None:
        pass

    gate.adaptive_eval_names = ("b", "c")  # type: ignore[attr-defined]
    assert literal_names(gate) == ["b", "c"]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("body", "known"),
    [
        ('assert adaptive_eval["a"].accuracy.at_least(0.6)', True),
        ('first = adaptive_eval["a"]\n    second = first\n    assert second.accuracy.at_least(0.6)', True),
        ('assert adaptive_eval["a"].accuracy.at_least(sum([0.6]))', False),
        ('assert adaptive_eval["a"].accuracy.at_least(*[0.6])', False),
    ],
)
def test_conditions_are_known_where_they_are_written_out(pytester: pytest.Pytester, body: str, known: bool) -> None:
    item = pytester.getitem(f"def test_gate(adaptive_eval):\n    {body}\n", "test_gate")
    found = literal_conditions(item)
    assert found == ([("a", Condition("accuracy", "at_least", 0.6))] if known else None)
