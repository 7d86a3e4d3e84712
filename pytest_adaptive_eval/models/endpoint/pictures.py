"""Check that a server shows pictures to its model, before any item of a bank is administered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Chat, Completion, Usage
from pytest_adaptive_eval.models.endpoint.chat import CHAT, chat_of_item, picture_part, read_reply
from pytest_adaptive_eval.models.endpoint.opening import Endpoint

#: A picture adds at least as many tokens to its prompt if the model reads it; a placeholder adds fewer.
PICTURE_TOKENS = 16
#: Number of items that are also sent with another item's pictures.
SWAPPED = 4
#: Cap on the tokens of each of their answers.
ANSWER_TOKENS = 32


def check_pictures(endpoint: Endpoint, items: Sequence[Item]) -> Usage:
    """Check that pictures change the prompt's length or the answers, and return the cost of the check.

    One item is sent with and without its pictures, to compare the tokens of the prompts if the server counts them. If
    they do not differ enough, `SWAPPED` items are sent with their own and with each other's pictures.

    Raises:
        ConfigError: The path takes texts alone, the server refuses pictures, or nothing shows that the model sees them.
    """
    if endpoint.api is not CHAT:
        raise ConfigError(f'the bank has pictures, and {endpoint.api.path} takes one text: use api = "chat"')
    chats = _chats(items)
    if not chats:
        return Usage()  # items whose pictures cannot be opened get an error status
    bare, pictured = _ask(endpoint, [_with_pictures(chats[0], []), chats[0]], 1)
    spent = bare.cost + pictured.cost
    server = f"{endpoint.model!r} at {endpoint.wire.url}"
    if pictured.status.infrastructure:
        raise ConfigError(
            f"the bank has pictures, and {server} gives no answer to an item with one: {pictured.detail}; expected a "
            "server that takes image_url parts: serve a model that reads pictures, or ask a bank without them"
        )
    before = bare.cost.prompt_tokens
    after = pictured.cost.prompt_tokens
    if before and after >= before + PICTURE_TOKENS:
        return spent
    differ, cost = _answers_differ(endpoint, chats)
    spent += cost
    if differ:
        return spent
    if before:
        counted = f"its prompt has {before} tokens without and {after} with a picture"
    else:
        counted = "it counts no tokens"
    raise ConfigError(
        f"the bank has pictures, and nothing shows that {server} looks at them: {counted}, and the answers to "
        f"{len(chats)} questions do not change with the picture; expected a server that gives pictures to the model: "
        "use a chat template that places images, or serve a model that reads them"
    )


def _answers_differ(endpoint: Endpoint, chats: Sequence[Chat]) -> tuple[bool, Usage]:
    """Return whether an answer changes with the pictures, and the cost of asking."""
    other_pictures = [_pictures(chat) for chat in chats]
    if len(chats) == 1:
        other_pictures = [[picture_part(Image.new("RGB", (64, 64)))]]
    swapped = []
    for number, chat in enumerate(chats):
        swapped.append(_with_pictures(chat, other_pictures[number - 1]))
    replies = _ask(endpoint, [*chats, *swapped], ANSWER_TOKENS)
    differ = False
    for original, exchanged in zip(replies[: len(chats)], replies[len(chats) :], strict=True):
        usable = not (original.status.infrastructure or exchanged.status.infrastructure)
        differ |= usable and (original.text, original.reasoning) != (exchanged.text, exchanged.reasoning)
    return differ, sum((reply.cost for reply in replies), Usage())


def _chats(items: Sequence[Item]) -> list[Chat]:
    """Return up to `SWAPPED` chats whose pictures differ."""
    distinct: dict[str, Chat] = {}
    for item in items:
        if not item.images:
            continue
        try:
            chat = chat_of_item(item)
        except (BankError, OSError):
            continue
        distinct.setdefault(repr(_pictures(chat)), chat)
        if len(distinct) == SWAPPED:
            break
    return list(distinct.values())


def _ask(endpoint: Endpoint, chats: Sequence[Chat], max_tokens: int) -> list[Completion]:
    """Return greedy replies, which differ by content and not by chance."""
    bodies = []
    for chat in chats:
        bodies.append(endpoint.body(chat, max_tokens, temperature=0.0, seed=None))
    return [read_reply(delivery) for delivery in endpoint.post(bodies)]


def _pictures(chat: Chat) -> list[Mapping[str, Any]]:
    return [part for message in chat for part in _parts(message) if part["type"] == "image_url"]


def _with_pictures(chat: Chat, pictures: Sequence[Mapping[str, Any]]) -> Chat:
    """Return a chat with its pictures replaced by `pictures` in turn, or removed if there are none."""
    out = []
    number = 0
    for message in chat:
        parts: list[Mapping[str, Any]] = []
        for part in _parts(message):
            if part["type"] != "image_url":
                parts.append(part)
            elif pictures:
                parts.append(pictures[number % len(pictures)])
                number += 1
        pictured = any(part["type"] == "image_url" for part in parts)
        out.append({**message, "content": parts if pictured else "\n".join(part["text"] for part in parts)})
    return out


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content: str | list[Mapping[str, Any]] = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content
