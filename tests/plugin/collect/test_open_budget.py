"""Without a written budget, the gates set it."""

from __future__ import annotations

from typing import Any

import pytest

TOML = """
[[eval]]
bank = "toy.jsonl"
{settings}
[[eval.gate]]
at_least = 0.5
"""


@pytest.fixture
def toy(lab: Any) -> Any:
    lab.bank(n=100)
    lab.toy(5)
    return lab


def budget_of(lab: Any, settings: str, *args: str) -> tuple[Any, str]:
    (lab.path / "adaptive-eval.toml").write_text(TOML.format(settings=settings))
    told = " ".join(lab.run(*args).stdout.str().split())
    return lab.record["interviews"][0]["policy"]["budget"], told


def test_it_is_as_large_as_the_gate_needs_and_says_so(toy: Any) -> None:
    budget, told = budget_of(toy, "")
    assert 60 < budget <= 100
    assert f"chance of a verdict within {budget} of 100 questions" in told
    assert "No budget is written: this one follows from the gates" in told
    _, twice = budget_of(toy, "[[eval.gate]]\nat_least = 0.4")
    assert twice.count("chance of a verdict within") == 2
    assert twice.count("No budget is written") == 1, "said once of an evaluation"
    first, _ = budget_of(toy, 'must_pass = ["q0", "q1"]')
    assert first == min(budget + 2, 100)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("settings", "args", "expected"),
    [
        ('budget = "20%"', (), "20%"),
        ("", ("--adaptive-eval-budget=30",), "30"),
        ('stop = "budget"', (), "20%"),
    ],
)
def test_a_written_one_stands(toy: Any, settings: str, args: tuple[str, ...], expected: str) -> None:
    budget, told = budget_of(toy, settings, *args)
    assert budget == expected
    assert "No budget is written" not in told
