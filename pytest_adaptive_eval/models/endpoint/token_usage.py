"""Read the token counts of replies, which servers and gateways write in their own ways.

No answer rests on them, so nothing in them refuses a reply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.models.endpoint.body import excerpt

#: Upper limit of the tokens that one reply may report.
TOKEN_LIMIT = 1 << 31
#: Names of the counts: those of chats and completions, those of responses and of Anthropic, and those of Gemini.
_PROMPT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_COMPLETION = ("completion_tokens", "output_tokens", "candidatesTokenCount")
_REASONING = ("reasoning_tokens", "thinking_tokens", "thoughtsTokenCount")
_TOTAL = ("total_tokens", "totalTokenCount")
#: Fields that hold the parts of the completion tokens.
_DETAILS = ("completion_tokens_details", "output_tokens_details")


class TokenCounts(NamedTuple):
    """Counts of one reply; None for what the server does not say.

    Args:
        completion: Reasoning included, also where the server leaves it out.
        odd: Sentence on a count that is not one; empty without any.
    """

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    odd: str = ""


def read_counts(usage: object) -> TokenCounts:
    """Return the token counts in the field ``usage`` of a reply."""
    if not isinstance(usage, Mapping):
        return TokenCounts(odd=f"the usage is {excerpt(str(usage))}" if usage else "")
    odd: list[str] = []
    prompt = _count(usage, _PROMPT, odd)
    completion = _count(usage, _COMPLETION, odd)
    total = _count(usage, _TOTAL, odd)
    reasoning = _count(usage, _REASONING, odd)
    for name in _DETAILS:
        details = usage.get(name)
        if isinstance(details, Mapping) and reasoning is None:
            reasoning = _count(details, _REASONING, odd)
    if odd:
        sentence = f"the usage counts {', '.join(odd)}"
    else:
        sentence = ""
    if completion is None:
        return TokenCounts(prompt, None, reasoning, sentence)
    if prompt is None or total is None:
        unnamed = 0
    else:
        unnamed = total - prompt - completion
    if reasoning is None and unnamed > 0:  # Gemini's count of an answer leaves out its thoughts, and the total has them
        return TokenCounts(prompt, completion + unnamed, unnamed, sentence)
    if reasoning and (reasoning > completion or unnamed == reasoning):  # xAI's leaves them out and names them
        return TokenCounts(prompt, completion + reasoning, reasoning, sentence)
    return TokenCounts(prompt, completion, reasoning, sentence)


def usage_of(counts: TokenCounts, reasoning_length: int, text_length: int, seconds: float) -> Usage:
    """Return the cost that the server counted; reasoning tokens are estimated by its share of characters if need be."""
    completion = counts.completion or 0
    reasoning = counts.reasoning
    if reasoning is None:
        if reasoning_length:
            share = reasoning_length / (reasoning_length + text_length)
        else:
            share = 0.0
        reasoning = math.ceil(completion * share)
    return Usage(1, counts.prompt or 0, completion, reasoning, seconds)


def _count(usage: Mapping[str, object], names: tuple[str, ...], odd: list[str]) -> int | None:
    """Return the count under the first of some names that has one; others that are there are added to `odd`."""
    for name in names:
        value = usage.get(name)
        if value is None:
            continue
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and 0 <= value < TOKEN_LIMIT and value == int(value):  # type: ignore[operator,call-overload]
            return int(value)  # type: ignore[call-overload,no-any-return]
        odd.append(f"{name} as {excerpt(str(value))}")
    return None
