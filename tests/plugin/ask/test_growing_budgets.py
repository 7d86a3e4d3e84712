"""A gate that is run again with a larger budget goes on with its bets, and one with another seed is another try."""

from __future__ import annotations

from typing import Any

import pytest

GATE = """
import pytest
@pytest.mark.adaptive_eval("toy.bank", budget={budget}, seed={seed}, stop="{stop}")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
@pytest.mark.adaptive_gate("toy", at_least=.6)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
GREEDY, SAMPLING = (f'"toy", "hash", {{"temperature": {t}}}' for t in (0, 1))


def run_with_budgets(lab: Any, *budgets: int, identity: str = GREEDY, seed: int = 0, stop: str = "decision") -> Any:
    """Run a gate with each budget and return its last interview."""
    lab.calibrated(n=120, replace=True)
    lab.toy(8, identity=identity)
    for budget in budgets:
        lab.tests(GATE.format(budget=budget, seed=seed, stop=stop))
        lab.run("-p", "no:cacheprovider")
    return lab.record["interviews"][0]


def test_a_larger_budget_goes_on_with_the_bets_of_smaller_ones(lab: Any) -> None:
    interview = run_with_budgets(lab, 10, 20, 120)
    assert lab.outcomes()[0][1] == "PASS"
    assert interview["policy"]["earlier"] == [10, 20]
    assert any("a budget of 10, 20" in note for note in interview["notes"])
    assert lab.record["warnings"] == [], "one test has one error rate"
    questions = [[entry["item"] for entry in record["interviews"][0]["administrations"]] for record in lab.records]
    assert questions[1][:10] == questions[0]
    assert questions[2][:20] == questions[1]


@pytest.mark.slow
@pytest.mark.parametrize("other", [{"identity": SAMPLING}, {"stop": "budget"}])
def test_other_answers_and_bets_without_rest_are_other_tries(lab: Any, other: dict[str, Any]) -> None:
    assert run_with_budgets(lab, 10, 120, **other)["policy"]["earlier"] == []
    assert any("passed after 1 other run" in warning for warning in lab.record["warnings"])


@pytest.mark.slow
def test_another_seed_is_another_try(lab: Any) -> None:
    run_with_budgets(lab, 10)
    assert run_with_budgets(lab, 120, seed=1)["policy"]["earlier"] == []
    assert any("passed after 1 other run" in warning for warning in lab.record["warnings"])


@pytest.mark.slow
def test_an_interview_that_was_killed_goes_on_with_a_larger_budget(lab: Any) -> None:
    lab.calibrated(n=120, replace=True)
    for budget, fault in ((20, "if n == 9: raise KeyboardInterrupt"), (40, "")):
        lab.toy(8, identity=GREEDY, fault=fault)
        lab.tests(GATE.format(budget=budget, seed=0, stop="decision"))
        lab.run("-p", "no:cacheprovider")
    assert lab.record["interviews"][0]["policy"]["horizon"] == 40
    assert max(map(lab.asked.count, lab.asked)) <= 2, "of the call in flight alone"
