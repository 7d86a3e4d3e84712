"""Prices and budgets in tokens and money: told before and after, and kept."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval.evaluation.spending import Spending
from pytest_adaptive_eval.evaluation.tables import PriceTable
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.markdown import summary_markdown

#: A subject whose answers take 100 tokens of prompts and 50 of its own.
PRICED = """
import pytest
from pytest_adaptive_eval import SubjectIdentity
from pytest_adaptive_eval.models.base import Completion, Model, Usage

class Paid(Model):
    spent = Usage()

    @property
    def usage(self):
        return self.spent

    def answer(self, items):
        self.spent = self.spent + Usage(len(items), 100 * len(items), 50 * len(items), 0, 0.5)
        return [Completion("right") for item in items]

@pytest.fixture(scope="module")
def model():
    return Paid(SubjectIdentity("paid", "hash", {"temperature": 0}))
"""
TOML = """
[[eval]]
bank = "toy.jsonl"
budget = "100%"
repeat = 0
batch = 4
{keys}
[[eval.gate]]
at_least = 0.95
"""
PRICE = "price = { prompt = 1000, completion = 2000 }"


@pytest.fixture
def paid(lab: Any) -> Any:
    lab.bank()
    lab.pytester.makeconftest(PRICED)
    return lab


def run(lab: Any, keys: str) -> tuple[dict[str, Any], str]:
    (lab.path / "adaptive-eval.toml").write_text(TOML.format(keys=keys))
    told = " ".join(lab.run().stdout.str().split())
    return lab.record["interviews"][0], told


def test_money_is_told_before_and_after(paid: Any) -> None:
    interview, told = run(paid, PRICE)
    asked = interview["asked"]
    assert "toy: about 162 tokens of prompts for 60 questions, answers of at most 61,440 (max_tokens is not set" in told
    assert "16,384), $123.04 at most" in told
    assert interview["costs"]["prices"]["subject"]["money"] == pytest.approx(0.2 * asked)
    assert f"cost: {asked} calls, {150 * asked:,} tokens, " in told
    markdown = summary_markdown(RunRecord.from_json(paid.record))
    assert f"Cost: {asked} calls, {150 * asked:,} tokens" in markdown


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("keys", "most"),
    [
        ("price = { most_tokens = 2000 }", 13),
        (PRICE.replace("}", ", most_money = 3.3 }"), 16),
        ("price = { most_tokens = 100 }", 4),
    ],
)
def test_a_budget_in_tokens_or_money_is_kept(paid: Any, keys: str, most: int) -> None:
    interview, told = run(paid, keys)
    assert interview["asked"] == most - most % 4
    assert interview["stop"] == "COST"
    assert "the budget in tokens or money is spent" in told
    assert "it ends before " in told


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("keys", "error"),
    [
        ("price = { most_money = 3 }", "price has most_money and no prices"),
        ('price = { most_tokens = 3 }\nstop = "budget"', "which only bets allow for"),
        ("price = { prompts = 3 }", "did you mean 'prompt'"),
    ],
)
def test_mistakes(paid: Any, keys: str, error: str) -> None:
    (paid.path / "adaptive-eval.toml").write_text(TOML.format(keys=keys))
    result = paid.run()
    assert result.ret == 4
    assert error in result.stderr.str() + result.stdout.str()


def test_hours_cost_too() -> None:
    spending = Spending(PriceTable(hour=2.0, currency="EUR"))
    assert spending.cost(Usage(1, seconds=1800.0)) == pytest.approx(1.0)
    costs = spending.costs(Usage(1, seconds=1800.0), None, Usage(), 10)
    assert costs.prices["subject"].to_json() == {"money": pytest.approx(1.0), "currency": "EUR", "whole": None}
    assert Spending().cost(Usage(1)) is None
