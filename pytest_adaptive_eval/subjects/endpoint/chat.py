"""The words of the protocol: chats as an OpenAI-compatible server reads them, and what its replies mean."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from PIL import Image

from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.subjects.agent import Message, Reply
from pytest_adaptive_eval.subjects.base import Usage
from pytest_adaptive_eval.subjects.checkpoint.prompting import Prompter
from pytest_adaptive_eval.subjects.endpoint.body import excerpt
from pytest_adaptive_eval.subjects.endpoint.outcome import Delivery
from pytest_adaptive_eval.subjects.images import open_image
from pytest_adaptive_eval.subjects.reasoning import split_reasoning

__all__ = ["chat_of_item", "chat_of_messages", "first_token", "picture_part", "read_reply"]

#: Tokens that one reply may claim.
MOST_TOKENS = 1 << 31
#: How far a probability may lie above 1, and two figures for the same one apart.
SLACK = 1e-3


class _Malformed(Exception):
    """A reply that does not follow the protocol; the message says where."""


def chat_of_item(item: Item) -> list[dict[str, Any]]:
    """The messages of an item, its images in them as PNG.

    Raises
    ------
    BankError
        An image is missing or not taken, or the messages place other images than the item has.
    """
    pictures = iter([_picture(name, item.root) for name in item.images])
    # the placement of images is that of a local model with a chat template
    messages = Prompter(None, "chat", "image").conversation(item)
    for message in messages:
        parts = [next(pictures) if part["type"] == "image" else part for part in message["content"]]
        message["content"] = _plain(parts)
    return messages


def chat_of_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages of a chat, their images before their text.

    Raises
    ------
    BankError
        An image is missing or not taken.
    """
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
    """Tell what a delivery says: an answer, or the one reason why there is none."""
    usage = Usage(calls=1, seconds=delivery.seconds)
    if delivery.status is not Status.OK:
        return Reply("", delivery.status, delivery.detail, usage=usage)
    try:
        return _reply(delivery)
    except _Malformed as error:
        return Reply("", Status.ERROR, f"the reply does not follow the protocol: {error}", usage=usage)


def first_token(delivery: Delivery) -> Mapping[str, float] | None:
    """Log-probabilities of the likeliest first tokens of a reply, in nats, or None where there are none to trust.

    Tokens go by their text without white space around it.  A list is trusted
    when its figures are probabilities, and the token that was said is in the
    reply and has the figure that it has in the list.
    """
    try:
        if delivery.status is not Status.OK:
            return None
        choice = _choice(delivery.data)
        said = _dict(_list(_dict(choice.get("logprobs"), "logprobs").get("content"), "logprobs.content")[0], "entry")
        token, figure = _entry(said)
        listed = [_entry(_dict(entry, "entry")) for entry in _list(said.get("top_logprobs"), "top_logprobs")]
        content = _dict(choice.get("message"), "message").get("content")
    except (_Malformed, IndexError):
        return None
    close = [one for name, one in listed if name == token and abs(math.exp(one) - math.exp(figure)) <= SLACK]
    if len(listed) < 2 or sum(math.exp(one) for _, one in listed) > 1.0 + SLACK:
        return None
    if not close and any(name == token for name, _ in listed):
        return None
    if isinstance(content, str) and content.strip() not in ("", token.strip()):
        return None
    out: dict[str, float] = {}
    for name, one in listed:
        both = [one, out[name.strip()]] if name.strip() in out else [one]
        out[name.strip()] = math.log(math.fsum(map(math.exp, both))) if len(both) > 1 else one
    return out


def _picture(name: str, root: str) -> dict[str, Any]:
    """Only decoded pixels leave: no metadata, and nothing that is not an image."""
    return picture_part(open_image(name, root))


def picture_part(image: Image.Image) -> dict[str, Any]:
    """Write a picture as a part of a message's content."""
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


def _plain(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Give text alone as a string, which every server reads."""
    if not parts:
        return ""
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _reply(delivery: Delivery) -> Reply:
    data = delivery.data
    if data.get("error"):
        inner = data["error"]
        said = inner.get("message", "") if isinstance(inner, dict) else inner
        raise _Malformed(f"an error came as a success: {excerpt(str(said))}")
    if data.get("object", "chat.completion") != "chat.completion":
        raise _Malformed(f"object is {excerpt(str(data['object']))}, expected 'chat.completion'")
    choice = _choice(data)
    message = _dict(choice.get("message"), "message")
    if message.get("role", "assistant") != "assistant":
        raise _Malformed(f"role is {excerpt(str(message['role']))}, expected 'assistant'")
    content, refusal = _text(message, "content"), _text(message, "refusal")
    shown = _text(message, "reasoning_content") or _text(message, "reasoning")
    text, inside, closed = split_reasoning(content)
    thought = "\n\n".join(part for part in (shown, inside) if part)
    usage = _usage(data, len(thought), len(text), delivery.seconds)
    finish = choice.get("finish_reason")
    if message.get("tool_calls") or message.get("function_call") or finish in ("tool_calls", "function_call"):
        raise _Malformed("the model called a tool, and none was offered")
    if finish not in ("stop", "length", "content_filter"):
        raise _Malformed(f"finish_reason is {excerpt(str(finish))}, expected 'stop', 'length' or 'content_filter'")
    status, detail = Status.OK, ""
    if refusal or finish == "content_filter":
        status = Status.REFUSED
        detail = f"the model refused: {excerpt(refusal)}" if refusal else "the server's filter cut the answer"
    elif finish == "length":
        status = Status.TRUNCATED
        detail = f"not finished after {usage.completion_tokens or 'all its'} tokens"
    elif not closed or not text.strip():
        status = Status.EMPTY
        detail = "nothing but white space" if closed else "its reasoning does not end"
    if thought and status is not Status.OK:
        detail += f", behind {usage.reasoning_tokens or 'uncounted'} tokens of reasoning"
    return Reply(text, status, detail, thought, usage)


def _choice(data: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = _list(data.get("choices"), "choices")
    if len(choices) != 1:
        raise _Malformed(f"there are {len(choices)} choices, expected one")
    return _dict(choices[0], "choice")


def _usage(data: Mapping[str, Any], thought: int, text: int, seconds: float) -> Usage:
    """What the server counted; reasoning that it does not count apart has its share of the characters."""
    told = data.get("usage")
    if told is None:
        return Usage(calls=1, seconds=seconds)
    told = _dict(told, "usage")
    prompt, completion = (_count(told, name) for name in ("prompt_tokens", "completion_tokens"))
    details = told.get("completion_tokens_details")
    apart = None if details is None else _dict(details, "completion_tokens_details").get("reasoning_tokens")
    if apart is None:
        reasoning = math.ceil(completion * thought / (thought + text)) if thought else 0
    else:
        reasoning = _count({"reasoning_tokens": apart}, "reasoning_tokens")
    if reasoning > completion:
        raise _Malformed(f"{reasoning} reasoning tokens are more than all {completion}")
    return Usage(1, prompt, completion, reasoning, seconds)


def _dict(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _Malformed(f"{name} is {_kind(value)}, expected an object")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise _Malformed(f"{name} is {_kind(value)}, expected a list")
    return value


def _text(message: Mapping[str, Any], name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _Malformed(f"{name} is {_kind(value)}, expected text or null")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _Malformed(f"{name} has half a surrogate pair, which is no text") from None
    return value


def _count(told: Mapping[str, Any], name: str) -> int:
    value = told.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST_TOKENS:
        raise _Malformed(f"usage.{name} is {excerpt(str(value)[:80])}, expected a count")
    return value


def _entry(entry: Mapping[str, Any]) -> tuple[str, float]:
    figure = entry.get("logprob")
    if isinstance(figure, bool) or not isinstance(figure, int | float) or not -math.inf < figure <= SLACK:
        raise _Malformed(f"logprob is {_kind(figure)}, expected a number of at most 0")
    token = entry.get("token")
    if not isinstance(token, str):
        raise _Malformed(f"token is {_kind(token)}, expected text")
    return token, float(figure)


def _kind(value: Any) -> str:
    return "missing" if value is None else type(value).__name__
