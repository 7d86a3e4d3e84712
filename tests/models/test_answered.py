"""What a model thinks aloud is no part of its answer."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="prompts of checkpoints need transformers (extra hf)")

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.checkpoint.generation import Generated, Prompt, answered


@pytest.mark.parametrize(
    ("prompt", "text", "status", "expected"),
    [
        ("2 + 2?", "4", Status.OK, ("4", Status.OK, "")),
        ("2 + 2?", "<think>two and two</think>\n4", Status.OK, ("4", Status.OK, "two and two")),
        ("2 + 2?<think>\n", "two and two</think>4", Status.OK, ("4", Status.OK, "two and two")),
        ("2 + 2?", "<think>two and two</think>", Status.OK, ("", Status.EMPTY, "two and two")),
        ("2 + 2?", "<think>two and", Status.TRUNCATED, ("", Status.TRUNCATED, "two and")),
        ("2 + 2?<think>", "two and", Status.TRUNCATED, ("", Status.TRUNCATED, "two and")),
        ("2 + 2?", "is it 4 <think>or", Status.ERROR, ("is it 4", Status.ERROR, "or")),
        ("2 + 2?", " ", Status.EMPTY, (" ", Status.EMPTY, "")),
    ],
)
def test_reasoning_is_apart(prompt: str, text: str, status: Status, expected: tuple[str, Status, str]) -> None:
    done, reasoning = answered(Prompt("item 'a'", prompt, False, 9), Generated(Completion(text, status), 5, 3))
    assert (done.text, done.status, reasoning) == expected


def test_usage_adds_up() -> None:
    one, two = Usage(1, 10, 5, 2, 0.5, 100.0), Usage(2, 1, 1, 0, 0.25, 10.0)
    assert one + two == Usage(3, 11, 6, 2, 0.75, 110.0)
    assert one + two - one == two
    assert (one + two).to_json()["completion_tokens"] == 6
