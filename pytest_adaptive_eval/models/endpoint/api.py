"""The two paths of OpenAI-compatible servers by which a model is asked: chats and bare prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import Reply
from pytest_adaptive_eval.models.endpoint.chat import chat_of_item, read_reply
from pytest_adaptive_eval.models.endpoint.completions import read_completion, text_of_item
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

#: What a model is asked: the messages of a chat, or a text.
Question = Sequence[Mapping[str, Any]] | str


@dataclass(frozen=True, slots=True)
class Api:
    """One path of a server.

    Args:
        path: Added to the server's address.
        field: Field of a request that holds the question.
        template: Style of prompts, for the identity: ``chat`` or ``raw``.
        greeting: A question for trying out the server.
        question: Returns the question of an item. It raises BankError if this path cannot hold the item.
        read: Returns the reply in a delivery.
    """

    path: str
    field: str
    template: str
    greeting: Question
    question: Callable[[Item], Question]
    read: Callable[[Delivery], Reply]


CHAT = Api("/chat/completions", "messages", "chat", ({"role": "user", "content": "Hi"},), chat_of_item, read_reply)
#: Paths by the value of the option ``api``.
APIS: Mapping[str, Api] = MappingProxyType(
    {"chat": CHAT, "completions": Api("/completions", "prompt", "raw", "Hi", text_of_item, read_completion)}
)
