"""What goes between model and run, as the page of a run shows it."""

from __future__ import annotations

from pytest_adaptive_eval.api_keys import hide_from_now_on
from pytest_adaptive_eval.items.agent_steps import AgentStep
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.exchange import MOST_STEPS, Exchange

KEY = "a-secret-of-thirty-two-characters"


def test_tokens_of_thought_are_apart_and_keys_are_hidden() -> None:
    hide_from_now_on(KEY)
    cost = Usage(calls=1, prompt_tokens=12, completion_tokens=30, reasoning_tokens=20)
    steps = tuple(AgentStep("tool", f"{n} {KEY}") for n in range(MOST_STEPS + 5))
    given = Completion("42", cost=cost, measures={"seconds": 1.5}, reasoning=f"with {KEY}", steps=steps)
    exchange = Exchange.of(given)
    assert exchange.measures == {
        "input_tokens": 12.0,
        "output_tokens": 30.0,
        "reasoning_tokens": 20.0,
        "seconds": 1.5,
    }
    assert len(exchange.steps) == MOST_STEPS
    assert KEY not in exchange.to_text()
    assert Exchange.from_text(exchange.to_text()) == exchange


def test_a_damaged_text_is_nothing() -> None:
    assert Exchange.from_text("{") == Exchange() == Exchange.from_text('{"steps": 3}')
    assert Exchange.of(Completion("42")) == Exchange()
