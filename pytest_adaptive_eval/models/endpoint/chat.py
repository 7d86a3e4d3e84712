"""Ask by the two paths of OpenAI-compatible servers, chats and bare prompts, and read their replies."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from PIL import Image

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.reading.cleaning import split_reasoning
from pytest_adaptive_eval.models.base import Chat, Completion, Message, Usage
from pytest_adaptive_eval.models.checkpoint.prompting import Prompter
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.outcome import Delivery
from pytest_adaptive_eval.models.images import open_image

#: Tolerance for a probability above 1, and between two figures for the same probability.
TOLERANCE = 1e-3


#: Upper limit of the tokens that one reply may report.
TOKEN_LIMIT = 1 << 31

#: Ends of answers that call tools.
_CALLED = ("tool_calls", "function_call")
#: Ends of answers in the protocol's words, and in those of servers that pass on what is behind them.
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", *_CALLED), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_length"), "length"),
    "content_filter": "content_filter",
    **dict.fromkeys(("abort", "aborted", "cancelled", "canceled", "error"), "abort"),
}
_Count = Annotated[int, Meta(ge=0, lt=TOKEN_LIMIT)]


class MalformedReply(Exception):
    """A reply that does not follow the protocol; the message names the fault."""


class _TokenDetails(msgspec.Struct):
    """The parts of the completion tokens."""

    reasoning_tokens: _Count | None = None


class TokenUsage(msgspec.Struct):
    """The token counts of a reply."""

    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    completion_tokens_details: _TokenDetails | None = None


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
    tool_calls: list[dict[str, Any]] | None = None
    function_call: dict[str, Any] | None = None


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
    error: Any = None


class _ChatCompletion(msgspec.Struct):
    """A reply to a chat."""

    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=1)]
    object: str = "chat.completion"
    usage: TokenUsage | None = None


class _TextChoice(msgspec.Struct):
    """The completion of a prompt."""

    text: str | None
    finish_reason: Any = None


class _TextCompletion(msgspec.Struct):
    """A reply to a prompt."""

    choices: Annotated[list[_TextChoice], Meta(min_length=1, max_length=1)]
    object: str = "text_completion"
    usage: TokenUsage | None = None


def chat_of_item(item: Item) -> Chat:
    """Return the messages of an item, with its images as PNG; raise BankError for missing, refused or other images."""
    pictures = iter([picture_part(open_image(name, item.root)) for name in item.images])
    # images are placed as for a local model with a chat template
    messages = Prompter(None, "chat", "image").conversation(item)
    for message in messages:
        parts = [next(pictures) if part["type"] == "image" else part for part in message["content"]]
        message["content"] = _plain(parts)
    return messages


def chat_of_messages(messages: Sequence[Message]) -> Chat:
    """Return the messages of a chat, with images before the text; raise BankError if an image is missing or refused."""
    chat = []
    for message in messages:
        parts = [picture_part(open_image(name, message.root)) for name in message.images]
        content = _plain([*parts, {"type": "text", "text": message.text}])
        chat.append({"role": message.role, "content": content})
    return chat


def text_of_item(item: Item) -> str:
    """Return the prompt of an item as it is; raise BankError for messages or images, which only a chat can hold."""
    if item.messages or item.images or item.tools:
        content = "messages" if item.messages else "images" if item.images else "tools"
        raise BankError(f'item {item.id!r} has {content}, and api = "completions" sends one text; use api = "chat"')
    return item.prompt


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
    except (MalformedReply, msgspec.ValidationError, IndexError):
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


def picture_part(image: Image.Image) -> dict[str, Any]:
    """Return a picture as a part of a message's content, without metadata."""
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
    """Return the text and the thinking of a content; raise `MalformedReply` for parts of other kinds."""
    if not isinstance(content, list):
        return content or "", ""
    text, thinking = "", ""
    for part in content:
        if part.type in ("text", "output_text"):
            text += part.text or ""
        elif part.type in ("thinking", "reasoning"):
            thinking += _thought(part.thinking or part.reasoning or part.text or "")
        else:
            raise MalformedReply(
                f"a part of the content is of type {excerpt(part.type)}, expected 'text' or 'thinking'"
            )
    return text, thinking


def _thought(thought: str | list[_Thought]) -> str:
    """Return the text of a thought, which may come in parts."""
    return thought if isinstance(thought, str) else "".join(part.text or "" for part in thought)


def usage_of(counts: TokenUsage | None, reasoning_length: int, text_length: int, seconds: float) -> Usage:
    """Return the cost that the server counted; reasoning tokens are estimated by its share of characters if need be."""
    if counts is None:
        return Usage(calls=1, seconds=seconds)
    details, completion = counts.completion_tokens_details, counts.completion_tokens
    reasoning = None if details is None else details.reasoning_tokens
    if reasoning is None:
        share = reasoning_length / (reasoning_length + text_length) if reasoning_length else 0.0
        reasoning = math.ceil(completion * share)
    if reasoning > completion:
        raise MalformedReply(
            f"the usage counts {reasoning} reasoning tokens, more than the {completion} tokens of the whole reply"
        )
    return Usage(1, counts.prompt_tokens, completion, reasoning, seconds)


def checked_text(text: str | None) -> str:
    """Return a text of a reply, empty for None; refuse half a surrogate pair, which no file can hold."""
    try:
        (text or "").encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedReply("a text has half a surrogate pair, which is not text") from None
    return text or ""


def read_reply(delivery: Delivery, *, tools: bool = False) -> Completion:
    """Return the answer to a chat in a delivery, or the reason why there is none; without `tools` a call of one."""
    return _read_with(partial(_of_chat, tools=tools), delivery)


def read_completion(delivery: Delivery) -> Completion:
    """Read the completion in a delivery. A failed delivery gives its status and reason."""
    return _read_with(_of_prompt, delivery)


def _read_with(read: Callable[[Delivery], Completion], delivery: Delivery) -> Completion:
    usage = Usage(calls=1, seconds=delivery.seconds)
    if delivery.status is not Status.OK:
        return Completion("", delivery.status, detail=delivery.detail, cost=usage)
    try:
        _check_success(delivery.data.get("error"))
        return read(delivery)
    except (MalformedReply, msgspec.ValidationError) as error:
        return Completion("", Status.ERROR, detail=f"the reply does not follow the protocol: {error}", cost=usage)


def _check_success(error: Any, failed: object = False) -> None:
    """Refuse an error that came as a success."""
    if error or failed:
        message = error.get("message") if isinstance(error, dict) else error
        raise MalformedReply(f"an error came as a success: {excerpt(str(message or 'no message'))}")


def _of_chat(delivery: Delivery, *, tools: bool) -> Completion:
    completion = msgspec.convert(delivery.data, _ChatCompletion)
    (choice,) = completion.choices
    message, finish = choice.message, choice.finish_reason
    _check("object", completion.object, "chat.completion")
    _check("role", message.role, "assistant")
    content, thinking = _texts(message.content)
    text, inside, closed = split_reasoning(checked_text(content))
    separate = checked_text(thinking or message.reasoning_content or message.reasoning)
    reasoning = "\n\n".join(filter(None, (separate, inside)))
    refusal = checked_text(message.refusal)
    usage = usage_of(completion.usage, len(reasoning), len(text), delivery.seconds)
    _check_success(choice.error, finish == "error")
    if not tools and (message.tool_calls or message.function_call or finish in _CALLED):
        raise MalformedReply("the model called a tool, and none was offered")
    text += _written_calls(message)
    reply = _ended(finish, text, reasoning, usage, closed=closed, refusal=refusal)
    if reasoning and reply.status is not Status.OK:
        detail = f"{reply.detail}, behind {usage.reasoning_tokens or 'uncounted'} tokens of reasoning"
        return replace(reply, detail=detail)
    return reply


def _written_calls(message: _Message) -> str:
    """Return the calls of tools in a message as models without such fields write them."""
    calls = [*(message.tool_calls or ()), *([{"function": message.function_call}] if message.function_call else [])]
    return "".join(f"\n<tool_call>\n{_written_call(call.get('function', call))}\n</tool_call>" for call in calls)


def _written_call(call: Any) -> str:
    """Return a call as JSON, with the object of its arguments in place of their text where there is one."""
    try:
        arguments = json.loads(call["arguments"])
        if isinstance(arguments, dict):
            return json.dumps({**call, "arguments": arguments}, allow_nan=False)
    except (LookupError, TypeError, ValueError, RecursionError):
        pass
    return json.dumps(call)


def _of_prompt(delivery: Delivery) -> Completion:
    completion = msgspec.convert(delivery.data, _TextCompletion)
    (choice,) = completion.choices
    _check("object", completion.object, "text_completion")
    text, reasoning, closed = split_reasoning(checked_text(choice.text))
    usage = usage_of(completion.usage, len(reasoning), len(text), delivery.seconds)
    return _ended(choice.finish_reason, text, reasoning, usage, closed=closed)


def _check(name: str, value: str, expected: str) -> None:
    if value != expected:
        raise MalformedReply(f"{name} is {excerpt(value)}, expected {expected!r}")


def _ended(finish: object, text: str, reasoning: str, usage: Usage, *, closed: bool, refusal: str = "") -> Completion:
    """Return a reply with the status that its end gives it, and the reason if that is not ok."""
    end = _FINISHES.get((finish or "stop").lower()) if isinstance(finish, str | None) else "abort"
    if end == "abort":
        raise MalformedReply(f"finish_reason is {excerpt(str(finish))}: the server did not finish the answer")
    status = Status.OK
    detail = "" if end else f"finish_reason is {excerpt(str(finish))}, taken as 'stop'"
    if refusal or end == "content_filter":
        status = Status.REFUSED
        detail = f"the model refused: {excerpt(refusal)}" if refusal else "the server's filter cut the answer"
    elif end == "length":
        status, detail = Status.TRUNCATED, f"not finished after {usage.completion_tokens or 'all its'} tokens"
    elif not closed or not text.strip():
        status = Status.EMPTY
        detail = "nothing but white space" if closed else "its reasoning does not end"
    return Completion(text, status, detail=detail, reasoning=reasoning, cost=usage)


#: What a model is asked: the messages of a chat, or a text.
Question = Sequence[Mapping[str, Any]] | str


@dataclass(frozen=True, slots=True)
class Api:
    """One path of a server.

    Args:
        field: Field of a request that holds the question.
        template: Style of prompts, for the identity: ``chat`` or ``raw``.
        question: Returns the question of an item. It raises BankError if this path cannot hold the item.
    """

    path: str
    field: str
    template: str
    greeting: Question
    question: Callable[[Item], Question]
    read: Callable[[Delivery], Completion]


CHAT = Api("/chat/completions", "messages", "chat", ({"role": "user", "content": "Hi"},), chat_of_item, read_reply)
#: Paths by the value of the option ``api``.
APIS: Mapping[str, Api] = MappingProxyType(
    {"chat": CHAT, "completions": Api("/completions", "prompt", "raw", "Hi", text_of_item, read_completion)}
)
