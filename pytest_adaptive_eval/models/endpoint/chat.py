"""Write chats for OpenAI-compatible servers, and read their replies."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from PIL import Image

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.models.base import Message, Reply
from pytest_adaptive_eval.models.checkpoint.prompting import Prompter
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
from pytest_adaptive_eval.models.images import open_image
from pytest_adaptive_eval.models.reasoning import split_reasoning

#: Tolerance for a probability above 1, and between two figures for the same probability.
TOLERANCE = 1e-3


class _Thought(msgspec.Struct):
    """A part of the thinking before an answer."""

    text: str | None = None


class _Part(msgspec.Struct):
    """A part of a content that is a list: text, or the thinking before it, perhaps in parts of its own."""

    type: str
    text: str | None = None
    thinking: str | list[_Thought] | None = None
    reasoning: str | list[_Thought] | None = None


class _Message(msgspec.Struct):
    """The message of a choice."""

    role: str = "assistant"
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: Any = None
    function_call: Any = None


class _Token(msgspec.Struct):
    """A token with its log-probability, in nats."""

    token: str
    logprob: Annotated[float, Meta(ge=-1e300, le=TOLERANCE)]


class _TokenWithAlternatives(_Token):
    """A generated token, and the likeliest tokens in its place."""

    top_logprobs: list[_Token]


class _Logprobs(msgspec.Struct):
    """The log-probabilities of a choice."""

    content: list[_TokenWithAlternatives]


class _Choice(msgspec.Struct):
    """One of the completions in a reply."""

    message: _Message
    finish_reason: Any = None
    logprobs: Any = None


class _ChatCompletion(msgspec.Struct):
    """A reply to a chat."""

    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=1)]
    object: str = "chat.completion"
    usage: TokenUsage | None = None


def chat_of_item(item: Item) -> list[dict[str, Any]]:
    """Return the messages of an item, with its images as PNG.

    Raises:
        BankError: An image is missing or refused, or the messages place other images than the item has.
    """
    pictures = iter([_picture(name, item.root) for name in item.images])
    # images are placed as for a local model with a chat template
    messages = Prompter(None, "chat", "image").conversation(item)
    for message in messages:
        parts = [next(pictures) if part["type"] == "image" else part for part in message["content"]]
        message["content"] = _plain(parts)
    return messages


def chat_of_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return the messages of a chat, with images before the text; raise BankError if an image is missing or refused."""
    return [
        {
            "role": message.role,
            "content": _plain(
                [*(_picture(name, message.root) for name in message.images), {"type": "text", "text": message.text}]
            ),
        }
        for message in messages
    ]


def read_reply(delivery: Delivery) -> Reply:
    """Return the answer in a delivery, or the reason why there is none."""
    return read_with(_reply, delivery)


def first_token(delivery: Delivery) -> Mapping[str, float] | None:
    """Return log-probabilities of the likeliest first tokens of a reply, in nats, or None if there are none to trust.

    Tokens are identified by their text without surrounding white space. A list is trusted if its figures are
    probabilities, and if the generated token is in the reply and has the same figure in the list.
    """
    if delivery.status is not Status.OK:
        return None
    try:
        (choice,) = msgspec.convert(delivery.data, _ChatCompletion).choices
        generated = msgspec.convert(choice.logprobs, _Logprobs).content[0]
        content, _ = _texts(choice.message.content)
    except (Malformed, msgspec.ValidationError, IndexError):
        return None
    if not _is_plausible(generated) or content.strip() not in ("", generated.token.strip()):
        return None
    table: dict[str, float] = {}
    for entry in generated.top_logprobs:
        token = entry.token.strip()
        figures = [entry.logprob, table[token]] if token in table else [entry.logprob]
        table[token] = math.log(math.fsum(map(math.exp, figures))) if len(figures) > 1 else entry.logprob
    return table


def _is_plausible(generated: _TokenWithAlternatives) -> bool:
    """Return whether at least two listed figures are probabilities, and agree with that of the generated token."""
    listed = generated.top_logprobs
    same = [entry.logprob for entry in listed if entry.token == generated.token]
    agrees = any(abs(math.exp(figure) - math.exp(generated.logprob)) <= TOLERANCE for figure in same)
    total = sum(math.exp(entry.logprob) for entry in listed)
    return len(listed) >= 2 and total <= 1.0 + TOLERANCE and (agrees or not same)


def _picture(name: str, root: str) -> dict[str, Any]:
    """Return an image as a part of a message; only its decoded pixels are sent, without metadata."""
    return picture_part(open_image(name, root))


def picture_part(image: Image.Image) -> dict[str, Any]:
    """Return a picture as a part of a message's content."""
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _plain(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the parts, or a string if there is text alone, which every server reads."""
    if not parts:
        return ""
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _texts(content: str | list[_Part] | None) -> tuple[str, str]:
    """Return the text and the thinking of a content; raise `Malformed` for parts of other kinds."""
    if not isinstance(content, list):
        return content or "", ""
    text, thinking = "", ""
    for part in content:
        if part.type in ("text", "output_text"):
            text += part.text or ""
        elif part.type in ("thinking", "reasoning"):
            thought = part.thinking or part.reasoning or part.text or ""
            thinking += thought if isinstance(thought, str) else "".join(one.text or "" for one in thought)
        else:
            raise Malformed(f"a part of the content is of type {excerpt(part.type)}, expected 'text' or 'thinking'")
    return text, thinking


def _reply(delivery: Delivery) -> Reply:
    completion = msgspec.convert(delivery.data, _ChatCompletion)
    (choice,) = completion.choices
    message, finish = choice.message, choice.finish_reason
    for name, value, expected in (
        ("object", completion.object, "chat.completion"),
        ("role", message.role, "assistant"),
    ):
        if value != expected:
            raise Malformed(f"{name} is {excerpt(value)}, expected {expected!r}")
    content, thinking = _texts(message.content)
    text, inside, closed = split_reasoning(checked_text(content))
    separate = checked_text(thinking) or checked_text(message.reasoning_content) or checked_text(message.reasoning)
    reasoning = "\n\n".join(part for part in (separate, inside) if part)
    refusal = checked_text(message.refusal)
    usage = usage_of(completion.usage, len(reasoning), len(text), delivery.seconds)
    if message.tool_calls or message.function_call or finish in ("tool_calls", "function_call"):
        raise Malformed("the model called a tool, and none was offered")
    finish = finish_of(finish)
    empty = not closed or not text.strip()
    status, detail = status_of(finish, refusal, usage, empty=empty, closed=closed)
    if reasoning and status is not Status.OK:
        detail += f", behind {usage.reasoning_tokens or 'uncounted'} tokens of reasoning"
    return Reply(text, status, detail, reasoning, usage)
