"""Budgets and stopping rules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.core.estimation import Estimate
from pytest_adaptive_eval.core.stopping import (
    AnyOf,
    Budget,
    StandardError,
    StoppingRule,
    StopReason,
    resolve_budget,
)
from pytest_adaptive_eval.errors import ConfigError


@pytest.mark.parametrize(
    ("budget", "items", "count"),
    [
        (1, 1, 1),
        (50, 50, 50),
        ("7", 10, 7),
        (" 7 ", 10, 7),
        ("5%", 100, 5),
        ("5%", 110, 6),  # 5.5: half up
        ("5%", 109, 5),  # 5.45
        ("5%", 130, 7),  # 6.5: up, and not to the even 6
        ("2.5 %", 100, 3),
        ("0.7%", 500, 4),  # 3.5 exactly; in floats 3.4999999999999996
        ("1%", 3, 1),  # at least 1
        ("100%", 7, 7),
    ],
)
def test_budget(budget: int | str, items: int, count: int) -> None:
    assert resolve_budget(budget, items) == count


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        (0, "has 10 items, so a count lies in 1 ... 10"),
        (11, "has 10 items, so a count lies in 1 ... 10"),
        ("-1", "write a count such as 50"),
        (-1, "a count lies in"),
        (0.05, "share in quotes"),
        (5.0, "share in quotes"),
        (True, "share in quotes"),
        (None, "share in quotes"),
        ("0%", "above 0%"),
        ("101%", "at most at 100%"),
        ("five", "write a count"),
        ("5%%", "write a count"),
        ("", "write a count"),
    ],
)
def test_refused_budgets(budget: object, message: str) -> None:
    with pytest.raises(ConfigError, match="budget") as raised:
        resolve_budget(budget, 10)  # type: ignore[arg-type]
    assert message in str(raised.value)


@given(st.integers(1, 100), st.integers(1, 10_000))
def test_a_share_lies_within_half_an_item(share: int, items: int) -> None:
    count = resolve_budget(f"{share}%", items)
    assert 1 <= count <= items
    assert abs(count - share * items / 100) <= 0.5 or count == 1


def test_rules() -> None:
    errors = np.array([[0.2, 0.29], [0.2, 0.4], [0.1, 0.1]])
    estimate = Estimate(np.zeros((3, 2)), np.array([np.diag(row**2) for row in errors]), np.ones(3, dtype=bool))
    rule = AnyOf((StandardError(0.3), Budget(5)))
    assert isinstance(rule, StoppingRule)
    assert rule.check(4, estimate) == [StopReason.PRECISION, None, StopReason.PRECISION]
    assert rule.check(5, estimate) == [StopReason.PRECISION, StopReason.BUDGET, StopReason.PRECISION]
    assert StandardError(9.0).check(0, estimate) == [None] * 3  # a wide target does not stop before the first answer
    assert Budget(5).check(4, estimate) == [None] * 3


@pytest.mark.parametrize("target", [0.0, -1.0, float("nan")])
def test_refused_standard_errors(target: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        StandardError(target)


def test_reasons_are_sentences() -> None:
    for reason in StopReason:
        assert len(reason.value.split()) >= 4
        assert not reason.value.endswith(".")
