"""Check that a server shows a bank's pictures to its model before any of its questions is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.subjects.agent import Reply
from pytest_adaptive_eval.subjects.base import Usage
from pytest_adaptive_eval.subjects.endpoint.chat import chat_of_item, picture_part, read_reply
from pytest_adaptive_eval.subjects.endpoint.opening import Endpoint

__all__ = ["check_pictures"]

#: A picture that is read adds at least as many tokens to its prompt; what a template writes in its place adds fewer.
PICTURE_TOKENS = 16
#: Questions that are asked with another question's pictures, too.
SWAPPED = 4
#: Tokens of each of their answers at most.
ANSWER_TOKENS = 32

_Chat = list[dict[str, Any]]


def check_pictures(endpoint: Endpoint, items: Sequence[Item]) -> Usage:
    """See that pictures change what a model reads, or what it answers, and return what that cost.

    One question is asked with and without its pictures: the prompt's tokens are compared where the server counts
    them.  Where that shows nothing, `SWAPPED` questions are asked with their own and with each other's pictures.

    Parameters
    ----------
    endpoint : Endpoint
    items : sequence of Item
        Of a bank; those without pictures are left out.

    Raises
    ------
    ConfigError
        The server refuses pictures, or nothing shows that the model sees them.
    """
    chats = _chats(items)
    if not chats:
        return Usage()  # an item whose picture cannot be opened has a status that tells
    bare, pictured = _ask(endpoint, [_with_pictures(chats[0], []), chats[0]], 1)
    spent = bare.usage + pictured.usage
    place = f"{endpoint.model!r} at {endpoint.wire.url}"
    if pictured.status.infrastructure:
        raise ConfigError(
            f"the bank has pictures, and {place} gives no answer to a question with one: {pictured.detail}; expected a "
            "server that takes image_url parts: serve a model that reads pictures, or ask a bank without them"
        )
    before, after = bare.usage.prompt_tokens, pictured.usage.prompt_tokens
    if before and after >= before + PICTURE_TOKENS:
        return spent
    others = [_pictures(chat) for chat in chats] if len(chats) > 1 else [[picture_part(Image.new("RGB", (64, 64)))]]
    swapped = [_with_pictures(chat, others[number - 1]) for number, chat in enumerate(chats)]
    replies = _ask(endpoint, [*chats, *swapped], ANSWER_TOKENS)
    spent = sum((reply.usage for reply in replies), spent)
    for own, other in zip(replies[: len(chats)], replies[len(chats) :], strict=True):
        usable = not (own.status.infrastructure or other.status.infrastructure)
        if usable and (own.text, own.reasoning) != (other.text, other.reasoning):
            return spent
    counted = f"its prompt has {before} tokens without and {after} with a picture" if before else "it counts no tokens"
    raise ConfigError(
        f"the bank has pictures, and nothing shows that {place} looks at them: {counted}, and the answers to "
        f"{len(chats)} questions do not change with the picture; expected a server that gives pictures to the model: "
        "use a chat template that places images, or serve a model that reads them"
    )


def _chats(items: Sequence[Item]) -> list[_Chat]:
    """Return up to `SWAPPED` chats whose pictures differ."""
    found: dict[str, _Chat] = {}
    for item in items:
        if not item.images:
            continue
        try:
            chat = chat_of_item(item)
        except (BankError, OSError):
            continue
        found.setdefault(repr(_pictures(chat)), chat)
        if len(found) == SWAPPED:
            break
    return list(found.values())


def _ask(endpoint: Endpoint, chats: Sequence[_Chat], max_tokens: int) -> list[Reply]:
    """Ask greedily, so that answers differ by what is read and not by chance."""
    bodies = [endpoint.body(chat, max_tokens, temperature=0.0, seed=None) for chat in chats]
    return [read_reply(delivery) for delivery in endpoint.post(bodies)]


def _pictures(chat: _Chat) -> list[Mapping[str, Any]]:
    return [part for message in chat for part in _parts(message) if part["type"] == "image_url"]


def _with_pictures(chat: _Chat, pictures: Sequence[Mapping[str, Any]]) -> _Chat:
    """Put other pictures in the places of a chat's own, in turn; none where there are none."""
    out: _Chat = []
    number = 0
    for message in chat:
        parts: list[Mapping[str, Any]] = []
        for part in _parts(message):
            if part["type"] != "image_url":
                parts.append(part)
            elif pictures:
                parts.append(pictures[number % len(pictures)])
                number += 1
        content: Any = parts if any(part["type"] == "image_url" for part in parts) else _text(parts)
        out.append({**message, "content": content})
    return out


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts)
