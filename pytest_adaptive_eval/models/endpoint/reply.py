"""The parts of replies that all paths of an OpenAI-compatible server share: errors, status, and token counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Reply, Usage
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

#: Upper limit of the tokens that one reply may report.
TOKEN_LIMIT = 1 << 31

#: Ends of answers in the protocol's words, and in those of servers that pass on what is behind them.
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    "content_filter": "content_filter",
}
_Count = Annotated[int, Meta(ge=0, lt=TOKEN_LIMIT)]


class Malformed(Exception):
    """A reply that does not follow the protocol; the message names the fault."""


class _TokenDetails(msgspec.Struct):
    """The parts of the completion tokens."""

    reasoning_tokens: _Count | None = None


class TokenUsage(msgspec.Struct):
    """The token counts of a reply."""

    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    completion_tokens_details: _TokenDetails | None = None


def read_with(read: Callable[[Delivery], Reply], delivery: Delivery) -> Reply:
    """Return the answer in a delivery, or the reason why there is none.

    Args:
        read: Reads a reply that is a JSON object. It raises `Malformed` or `msgspec.ValidationError` for one that does
            not follow the protocol.
    """
    usage = Usage(calls=1, seconds=delivery.seconds)
    if delivery.status is not Status.OK:
        return Reply("", delivery.status, delivery.detail, usage=usage)
    try:
        check_error(delivery.data)
        return read(delivery)
    except (Malformed, msgspec.ValidationError) as error:
        return Reply("", Status.ERROR, f"the reply does not follow the protocol: {error}", usage=usage)


def check_error(data: Mapping[str, Any]) -> None:
    """Raise `Malformed` if a reply holds an error in place of an answer."""
    if error := data.get("error"):
        message = error.get("message", "") if isinstance(error, dict) else error
        raise Malformed(f"an error came as a success: {excerpt(str(message))}")


def finish_of(finish: object) -> str:
    """Return how an answer ended, in the protocol's words, or raise `Malformed`."""
    known = _FINISHES.get(finish.lower()) if isinstance(finish, str) else None
    if known is None:
        raise Malformed(f"finish_reason is {excerpt(str(finish))}, expected 'stop', 'length' or 'content_filter'")
    return known


def status_of(finish: str, refusal: str, usage: Usage, *, empty: bool, closed: bool) -> tuple[Status, str]:
    """Return the status of an answer, and the reason if it is not ok."""
    if refusal or finish == "content_filter":
        return Status.REFUSED, (
            f"the model refused: {excerpt(refusal)}" if refusal else "the server's filter cut the answer"
        )
    if finish == "length":
        return Status.TRUNCATED, f"not finished after {usage.completion_tokens or 'all its'} tokens"
    if empty:
        return Status.EMPTY, "nothing but white space" if closed else "its reasoning does not end"
    return Status.OK, ""


def usage_of(counts: TokenUsage | None, reasoning_length: int, text_length: int, seconds: float) -> Usage:
    """Return the cost that the server counted.

    Reasoning tokens that it does not count are estimated by the share of reasoning in the characters.
    """
    if counts is None:
        return Usage(calls=1, seconds=seconds)
    details, completion = counts.completion_tokens_details, counts.completion_tokens
    reasoning = None if details is None else details.reasoning_tokens
    if reasoning is None:
        share = reasoning_length / (reasoning_length + text_length) if reasoning_length else 0.0
        reasoning = math.ceil(completion * share)
    if reasoning > completion:
        raise Malformed(
            f"the usage counts {reasoning} reasoning tokens, more than the {completion} tokens of the whole reply"
        )
    return Usage(1, counts.prompt_tokens, completion, reasoning, seconds)


def checked_text(text: str | None) -> str:
    """Return a text of a reply, empty for None; refuse half a surrogate pair, which no file can hold."""
    try:
        (text or "").encode("utf-8")
    except UnicodeEncodeError:
        raise Malformed("a text has half a surrogate pair, which is no text") from None
    return text or ""
