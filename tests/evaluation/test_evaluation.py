"""What every kind of evaluation answers to the plugin, and how interviews differ."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.evaluation import Evaluation, GatePlan, Interview
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.quantities import Measured
from pytest_adaptive_eval.gates.result import Result, SessionResult
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item


@dataclass(frozen=True)
class Weights(Evaluation):
    """Weigh two models."""

    name: str = "scale"
    kind: str = "weights"
    candidate: str = "ann"
    subjects: tuple[str, ...] = ("ann", "bob")
    metrics: tuple[str, ...] = ("score",)
    roles: tuple[Any, ...] = field(
        default=(
            (SimpleNamespace(name="ann", spec="models/ann", options={}), True),
            (SimpleNamespace(name="bob", spec="models/bob", options={"seed": 1}), False),
        )
    )
    outlook: str = "two models on one scale"
    population: str = ""

    def recall(self, account: Any) -> Result:
        return self.void(f"recalled {account}")


class Noting:
    """A runner that notes what it is told to do."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Evaluation]] = []

    def ask(self, interview: Interview) -> None:
        self.told.append(("ask", interview))

    def hold(self, evaluation: Evaluation) -> None:
        self.told.append(("hold", evaluation))


def interview(**changes: Any) -> Interview:
    bank = ItemBank.uncalibrated("sums", [Item(f"i{n}", "1 + 1", answer="2") for n in range(8)], content_hash="s")
    policy = replace(POLICIES["decide"], selector=SELECTORS["random"], assisted=False)
    settings = {"policy": policy, "seed": 0, "stream": 0, "budget": 8}
    return Interview(**{"name": "sums", "bank": bank, **settings, **changes})


@pytest.mark.parametrize(("evaluation", "way"), [(Weights(), "hold"), (interview(), "ask")])
def test_each_kind_chooses_its_way_to_run(evaluation: Evaluation, way: str) -> None:
    runner = Noting()
    evaluation.administer(runner)
    assert runner.told == [(way, evaluation)]


def test_an_evaluation_without_a_bank_has_no_questions_and_no_other_settings_for_gates() -> None:
    evaluation, gates = Weights(), GatePlan([Condition("score", "at_least", 1.0)])
    assert evaluation.question_bank is None
    assert evaluation.most_questions == 0
    assert evaluation.for_gates(gates) is evaluation
    assert evaluation.undeclared_warning(gates) == ""
    assert list(evaluation.outlooks(gates)) == ["scale: two models on one scale"]
    assert interview().most_questions == 8


def test_models_are_checked_as_chats_where_they_are_agents() -> None:
    assert list(Weights().other_models()) == [("models/ann", {}, False), ("models/bob", {"seed": 1}, True)]
    assert list(interview().other_models()) == []
    assert list(interview(interviewer=("models/cat", {})).other_models()) == [("models/cat", {}, True)]


@pytest.mark.parametrize("evaluation", [Weights(), interview()])
def test_a_changed_copy_keeps_the_other_fields(evaluation: Evaluation) -> None:
    copy = evaluation.changed(name="other")
    assert (copy.name, type(copy), copy.kind) == ("other", type(evaluation), evaluation.kind)
    assert evaluation.name != "other"


def test_a_void_result_names_the_members() -> None:
    result = Weights().void("no power")
    assert (result.fault, [member.name for member in result.members]) == ("no power", ["ann", "bob"])


def test_a_kind_without_a_population_has_no_baseline() -> None:
    with pytest.raises(ConfigError, match="the kind 'weights' has no baseline: gate on it by at_least"):
        Weights().read_baseline("run.json", [Path()])
    assert not Weights().comparable(Weights())
    assert Weights(population="p").comparable(Weights(population="p"))
    assert not Weights(population="p").comparable(Weights(population="q"))


def test_baselines_of_the_run_are_looked_up_once_and_given_to_the_result() -> None:
    evaluation, calls = Weights(), []
    before = Result("old", quantities={"score": Measured(np.ones(2), np.eye(2))})

    def followed() -> Result:
        calls.append(before)
        return before

    gates = GatePlan(followed={"old": followed}, missing={"main": "not yet"})
    for _ in range(2):
        arguments = gates.result_arguments(evaluation, family=3)
    assert arguments == {"planned": (), "family": 3, "baselines": {"old": before}, "absent": {"main": "not yet"}}
    assert calls == [before]


def test_a_void_interview_is_no_baseline_of_another() -> None:
    asked = interview()
    result = SessionResult.of(
        "sums", Session(asked.bank, asked.policy, seed=1), statuses={}, error="the server is gone"
    )
    with pytest.raises(BaselineError, match="the baseline 'old' gave no answers to compare with: the server is gone"):
        asked.baseline_of("old", result)


@pytest.mark.parametrize(
    ("gates", "may_stop"),
    [
        (GatePlan(), True),
        (GatePlan([Condition("accuracy", "at_least", 0.5)]), True),
        (GatePlan([Condition("accuracy", "at_least", 0.5)], missing={"main": "not yet"}), False),
        (GatePlan([Condition("score", "rank_within", 1)]), False),
    ],
)
def test_an_interview_may_stop_unless_a_condition_or_a_later_baseline_needs_all_of_it(
    gates: GatePlan, may_stop: bool
) -> None:
    assert gates.may_stop is may_stop


def test_a_gate_without_a_mark_costs_the_whole_budget() -> None:
    gates = GatePlan(undeclared=["test_a", "test_b"])
    (line,) = list(interview().outlooks(gates))
    assert line.startswith("WARNING: sums: the condition of test_a and 1 more is in the test's body")
    assert "8 questions" in line
    assert list(interview().outlooks(GatePlan())) == []
