"""Budgets and stopping rules."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_adaptive_eval.cat.stopping import (
    AnyOf,
    Budget,
    Decision,
    SessionProgress,
    StandardError,
    StoppingRule,
    StopReason,
    repeats,
    resolve_budget,
)
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt.estimation import Estimate


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
        ("101%", "at most 100%"),
        ("five", "write a count"),
        ("5%%", "write a count"),
        ("", "write a count"),
        ("9" * 5000, "write a count"),
        (f"{'9' * 5000}%", "write a count"),
        ("99999999999%", "at most 100%"),
    ],
)
def test_refused_budgets(budget: object, message: str) -> None:
    with pytest.raises(ConfigError, match="budget") as raised:
        resolve_budget(budget, 10)  # type: ignore[arg-type]
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("repeat", "asked", "count"),
    [(20, 50, 20), (0, 50, 0), (20, 5, 5), ("20", 5, 5), (" 3 ", 5, 3), ("10%", 50, 5), ("10%", 0, 0), (3, 0, 0)],
)
def test_repeats_are_a_count_up_to_all_or_a_share(repeat: int | str, asked: int, count: int) -> None:
    assert repeats(repeat, asked) == count


@pytest.mark.parametrize("repeat", [True, -1, 0.1, "101%", "some", "9" * 5000])
def test_refused_repeats_name_the_value(repeat: object) -> None:
    with pytest.raises(ConfigError, match="expected a count such as 20") as raised:
        repeats(repeat, 10)  # type: ignore[arg-type]
    assert f"repeat is {repeat!r:.80}," in str(raised.value)


@given(st.integers(1, 100), st.integers(1, 10_000))
def test_a_share_lies_within_half_an_item(share: int, items: int) -> None:
    count = resolve_budget(f"{share}%", items)
    assert 1 <= count <= items
    assert abs(count - share * items / 100) <= 0.5 or count == 1


def uniform_logs(scores: np.ndarray, size: int) -> DesignLog:
    """Uniform draws of several subjects, every score predicted as one half."""
    left = np.broadcast_to(size - np.arange(scores.shape[1]), scores.shape).astype(float)
    items = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    half = np.full(scores.shape, 0.5)
    return DesignLog(items, scores, 1 / left, half, left / 2, left**2 / 4, left / 2, left / 2, size)


def test_rules() -> None:
    errors = np.array([[0.2, 0.29], [0.2, 0.4], [0.1, 0.1]])
    estimate = Estimate(np.zeros((3, 2)), np.array([np.diag(row**2) for row in errors]), np.ones(3, dtype=bool))
    rule = AnyOf((StandardError(0.3), Budget(5)))
    assert isinstance(rule, StoppingRule)
    progress = [
        SessionProgress(asked, estimate, partial(uniform_logs, np.zeros((3, asked)), 100)) for asked in range(6)
    ]
    assert rule.check(progress[4]) == [StopReason.PRECISION, None, StopReason.PRECISION]
    assert rule.check(progress[5]) == [StopReason.PRECISION, StopReason.BUDGET, StopReason.PRECISION]
    assert StandardError(9.0).check(progress[0]) == [None] * 3  # a wide target does not stop before the first answer
    assert Budget(5).check(progress[4]) == [None] * 3


def test_a_standard_error_that_equals_its_target_stops() -> None:
    estimate = Estimate(np.zeros((1, 1)), np.full((1, 1, 1), 0.25), np.ones(1, dtype=bool))
    for target, reason in ((0.5, StopReason.PRECISION), (0.49, None)):
        progress = SessionProgress(1, estimate, partial(uniform_logs, np.zeros((1, 1)), 100))
        assert StandardError(target).check(progress) == [reason]


def test_a_decision_waits_for_every_claim() -> None:
    scores = np.array([[1.0] * 16, [0.0] * 16, [1.0, 0.0] * 8])
    estimate = Estimate(np.zeros((3, 1)), np.ones((3, 1, 1)), np.ones(3, dtype=bool))
    logs = uniform_logs(scores, 20)
    low, high = Claim(5.0), Claim(10.0)
    early, late = SessionProgress(2, estimate, lambda: logs[:, :2]), SessionProgress(16, estimate, lambda: logs)
    reached = StopReason.DECISION
    assert isinstance(Decision((low,)), StoppingRule)
    assert Decision((low,)).check(SessionProgress(0, estimate, lambda: logs[:, :0])) == [None] * 3
    assert Decision((low, high)).check(early) == [None] * 3  # nothing follows from two answers of twenty
    assert Decision((low,)).check(late) == [reached] * 3  # 16, 0 and 8 are known to be right, and 4 are left
    assert Decision((high,)).check(late) == [reached, reached, None]
    assert Decision((low, high)).check(late) == [reached, reached, None]
    assert AnyOf((Decision((low, high)), Budget(16))).check(late) == [reached, reached, StopReason.BUDGET]


@pytest.mark.parametrize("target", [0.0, -1.0, float("nan")])
def test_refused_standard_errors(target: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        StandardError(target)


def test_reasons_are_sentences() -> None:
    for reason in StopReason:
        assert len(reason.value.split()) >= 4
        assert not reason.value.endswith(".")
