"""Write prompts for the completions path of OpenAI-compatible servers, and read its replies.

A model without a chat template is asked its bare prompt this way.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Reply
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.outcome import Delivery
from pytest_adaptive_eval.models.endpoint.reply import (
    Malformed,
    TokenUsage,
    checked_text,
    finish_of,
    read_with,
    status_of,
    usage_of,
)
from pytest_adaptive_eval.models.reasoning import split_reasoning


class _Choice(msgspec.Struct):
    """One of the completions in a reply."""

    text: str | None
    finish_reason: Any = None


class _Completion(msgspec.Struct):
    """A reply to a prompt."""

    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=1)]
    object: str = "text_completion"
    usage: TokenUsage | None = None


def text_of_item(item: Item) -> str:
    """Return the prompt of an item as it is.

    Raises:
        BankError: The item has messages or images, which only a chat can hold.
    """
    if item.messages or item.images:
        content = "messages" if item.messages else "images"
        raise BankError(f'item {item.id!r} has {content}, and api = "completions" sends one text; use api = "chat"')
    return item.prompt


def read_completion(delivery: Delivery) -> Reply:
    """Return the answer in a delivery, or the reason why there is none."""
    return read_with(_reply, delivery)


def _reply(delivery: Delivery) -> Reply:
    completion = msgspec.convert(delivery.data, _Completion)
    (choice,) = completion.choices
    if completion.object != "text_completion":
        raise Malformed(f"object is {excerpt(completion.object)}, expected 'text_completion'")
    finish = finish_of(choice.finish_reason)
    text, reasoning, closed = split_reasoning(checked_text(choice.text))
    usage = usage_of(completion.usage, len(reasoning), len(text), delivery.seconds)
    empty = not closed or not text.strip()
    status, detail = status_of(finish, "", usage, empty=empty, closed=closed)
    return Reply(text, status, detail, reasoning, usage)
