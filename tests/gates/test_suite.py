"""Suites of gates: the verdict, and the error rate of k of n."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.suite import Suite
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import DesignLog

P, F, U, E = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.ERROR


def verdict(outcome: Outcome, asked: int = 20, unit: str = "items") -> Verdict:
    return Verdict(outcome, "accuracy", ">= .60", None, 0.95, asked, 100, unit=unit)


def judged(suite: Suite, *outcomes: Outcome) -> Verdict:
    return suite.judge([(f"e{n}", verdict(outcome)) for n, outcome in enumerate(outcomes)])


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([P, P, F], P),
        ([P, P, E], P),
        ([P, F, F], F),
        ([E, F, F], F),
        ([P, U, F], U),
        ([P, U, U], U),
        ([P, E, U], E),
    ],
)
def test_two_of_three_pass_or_fail_once_the_others_cannot_change_it(outcomes, expected):
    assert judged(Suite(2, 3), *outcomes).outcome is expected


def test_the_verdict_names_every_gate_and_counts_a_shared_evaluation_once():
    shared = [("a", verdict(P, 30)), ("a", verdict(U, 30)), ("b", verdict(F, 10, "rounds"))]
    found = Suite(2, 3, 0.9, "warn").judge(shared)
    assert (found.asked, found.size, found.unit) == (40, 200, "questions")
    assert found.stated == "1 of 3 gates passed, 1 failed, 2 required, 90 % (each gate 95 %)"
    assert [note.partition(" accuracy")[0] for note in found.notes] == ["a: INCONCLUSIVE", "a: PASS", "b: FAIL"]
    assert found.allowed
    assert found.condition["value"] == 2


def test_a_missing_baseline_is_a_notice_only_where_it_alone_is_missing():
    notice = replace(verdict(U), notice=True)
    assert Suite(2, 2).judge([("a", verdict(P)), ("b", notice)]).notice
    assert not Suite(2, 3).judge([("a", verdict(U)), ("b", notice), ("c", verdict(U))]).notice


@pytest.mark.parametrize("size", range(2, 8))
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_gates_that_pass_falsely_in_the_worst_way_pass_the_suite_with_exactly_alpha(size, alpha):
    """Gates that pass falsely together, k - m at a time on disjoint events, reach the bound of the docstring."""
    for required in range(1, size + 1):
        rate = 1.0 - Suite(required, size, 1.0 - alpha).gate_confidence
        worst = [(size - true) * rate / (required - true) for true in range(required)]
        assert max(worst) == pytest.approx(worst[-1]) == pytest.approx(alpha)


def test_gates_take_the_confidence_of_the_suite():
    condition = Suite(2, 3, 0.9).gate(Condition("accuracy", "at_least", 0.6, confidence=0.5))
    assert condition.confidence == pytest.approx(0.95)
    assert Suite(3, 3).gate_confidence == pytest.approx(0.95)
    with pytest.raises(ConfigError, match="has a probability, and a suite an error rate"):
        Suite(1, 2).gate(Condition("rank", "rank_within", 3))


@pytest.mark.parametrize(
    "arguments", [(0, 3), (4, 3), (1, 1), (2, 3, 1.0), (2, 3, 0.4), (2, 3, 0.95, "ignore")], ids=str
)
def test_impossible_suites_are_refused(arguments):
    with pytest.raises(ConfigError, match="expected"):
        Suite(*arguments)


def outcomes(rng, right: int, suite: Suite, replications: int, total: int = 60, size: int = 100):
    """Outcomes of gates that look after each of `size` uniform draws, at the suite's confidence; shape (R,)."""
    scores = (rng.random((replications, size)).argsort(axis=-1) < right).astype(float)
    left = np.broadcast_to(size - np.arange(size), scores.shape).astype(float)
    half, items = np.full(scores.shape, 0.5), np.broadcast_to(np.arange(size), scores.shape)
    log = DesignLog(items, scores, 1 / left, half, left / 2, left**2 / 4, left / 2, left / 2, size)
    return decide(log, [Claim(float(total), suite.gate_confidence)], suite.size).outcome[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize(("required", "size"), [(1, 3), (2, 3), (3, 4), (4, 4)])
def test_a_suite_at_its_threshold_errs_at_most_as_often_as_stated(required, size):
    """k - 1 requirements hold by far and the others just do not; then k just hold and the others fail by far."""
    rng, alpha, replications = np.random.default_rng(60), 0.2, 4000
    suite = Suite(required, size, 1.0 - alpha)
    false_pass = [95] * (required - 1) + [59] * (size - required + 1)
    false_fail = [60] * required + [5] * (size - required)
    for rights, side in ((false_pass, 1), (false_fail, -1)):
        found = np.stack([outcomes(rng, right, suite, replications) for right in rights])
        needed = required if side > 0 else size - required + 1
        rate = float(((found == side).sum(axis=0) >= needed).mean())
        assert rate <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / replications), (rights, side)
