"""Signs of a server that cuts prompts or answers and reports nothing."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.endpoint.cut_signs import FEWEST_ANSWERS, FEWEST_TOKENS, CutSigns


def signs_of(*answers: tuple[Any, int, int], status: Status = Status.OK) -> list[str]:
    """Return the warnings on answers with these prompts, prompt tokens and completion tokens."""
    signs = CutSigns()
    for number, (prompt, read, written) in enumerate(answers):
        item = Item("q", prompt) if isinstance(prompt, str) else Item("q", messages=prompt)
        signs.note(item, Completion(f"text {number}", status, cost=Usage(1, read, written)))
    return signs.warnings


def chat(content: Any) -> tuple[dict[str, Any], ...]:
    return ({"role": "system", "content": "be brief"}, {"role": "user", "content": content})


@pytest.mark.parametrize(
    ("prompt", "read", "cut"),
    [
        ("one two three", 2, True),
        ("one two three", 3, False),
        ("one two three", 0, False),  # the server counts nothing
        ("一二三四五六", 1, False),  # how many tokens these make is unknown
        (chat("one two three"), 4, True),
        (chat("one two three"), 5, False),
        (chat([{"type": "text", "text": "one two three"}]), 4, True),
        (chat([{"type": "text", "text": "one two three"}, {"type": "image"}]), 5, False),
    ],
)
def test_a_prompt_with_fewer_tokens_than_words_was_cut(prompt: Any, read: int, cut: bool) -> None:
    warnings = signs_of((prompt, read, 1))
    assert bool(warnings) == cut
    if cut:
        words = read + 1
        assert warnings[0].startswith(
            f"the server cut 1 prompt without an error: it counted {read} tokens for the {words} words of q"
        )


@pytest.mark.parametrize(
    ("tokens", "count", "status", "named"),
    [
        (FEWEST_TOKENS, FEWEST_ANSWERS, Status.OK, True),
        (FEWEST_TOKENS - 1, FEWEST_ANSWERS, Status.OK, False),
        (FEWEST_TOKENS, FEWEST_ANSWERS - 1, Status.OK, False),
        (FEWEST_TOKENS, FEWEST_ANSWERS, Status.TRUNCATED, False),  # the server says so itself
    ],
)
def test_answers_that_all_end_at_one_length_may_be_cut(tokens: int, count: int, status: Status, named: bool) -> None:
    warnings = signs_of(*[("q", 5, tokens)] * count, status=status)
    assert bool(warnings) == named
    if named:
        assert warnings[0].startswith(f"all {count} answers end after exactly {tokens} tokens")
        assert signs_of(*[("q", 5, tokens)] * count, ("q", 5, tokens + 1)) == []
