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
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta
from PIL import Image

from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.reading.cleaning import split_reasoning
from pytest_adaptive_eval.models.base import Chat, Completion, Message, Usage, picture_hashes
from pytest_adaptive_eval.models.checkpoint.prompting import Prompter
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.outcome import Delivery
from pytest_adaptive_eval.models.endpoint.token_usage import TokenCounts, read_counts, usage_of
from pytest_adaptive_eval.models.images import open_image

#: Tolerance for a probability above 1, and between two figures for the same probability.
TOLERANCE = 1e-3


#: Ends of answers that call tools.
_CALLED = ("tool_calls", "function_call")
_LONG_NAME = "finish_reason_"  #: Before the words of servers that pass on names of an enumeration.
#: Ends of answers in the protocol's words, and in those of servers that pass on what is behind them.
_FINISHES = {
    **dict.fromkeys(("stop", "eos", "eos_token", "end_turn", "stop_sequence", *_CALLED), "stop"),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit"), "length"
    ),
    **dict.fromkeys(("content_filter", "content_filtered", "guardrail_intervened", "sensitive"), "content_filter"),
    **dict.fromkeys(("safety", "recitation", "blocklist", "prohibited_content", "spii", "refusal"), "content_filter"),
    **dict.fromkeys(("abort", "aborted", "cancelled", "canceled", "error"), "abort"),
}


class MalformedReply(Exception):
    """A reply that does not follow the protocol; the message names the fault."""


class _Thought(msgspec.Struct):
    """A part of the thinking before an answer."""

    text: str | None = None


class _Annotated(msgspec.Struct):
    """A text with annotations."""

    value: str


class _Part(msgspec.Struct):
    """A part of a content: text, or the thinking before it, perhaps in parts of its own."""

    type: str = ""
    text: str | _Annotated | None = None
    thinking: str | list[_Thought] | None = None
    reasoning: str | list[_Thought] | None = None
    refusal: str | None = None


_Content = str | list[_Part | str] | _Part | None

#: What the parts of a content are, by their types.
_PARTS = {
    **dict.fromkeys(("text", "output_text"), "text"),
    **dict.fromkeys(("thinking", "reasoning", "redacted_thinking"), "thinking"),
    "refusal": "refusal",
}


class _Said(NamedTuple):
    """Texts of a content, and a note on its parts that are not text."""

    text: str
    thinking: str
    refusal: str
    odd: str


class _Message(msgspec.Struct):
    """The message of a choice; the answer rests on the fields with types."""

    role: Any = None
    content: _Content = None
    refusal: str | None = None
    reasoning_content: Any = None
    reasoning: Any = None
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
    object: Any = None
    usage: Any = None


class _TextChoice(msgspec.Struct):
    """The completion of a prompt."""

    text: str | None
    finish_reason: Any = None


class _TextCompletion(msgspec.Struct):
    """A reply to a prompt."""

    choices: Annotated[list[_TextChoice], Meta(min_length=1, max_length=1)]
    object: Any = None
    usage: Any = None


def chat_of_item(item: Item, *, hashed: bool = False) -> Chat:
    """Return the messages of an item with its images as PNG, or with their hashes in place of them.

    Raises:
        BankError: An image is missing or refused, or is placed otherwise than the item's images.
    """
    if hashed:
        pictures = iter([{"type": "image_url", "image_url": {"url": digest}} for digest in picture_hashes(item)])
    else:
        pictures = iter([picture_part(open_image(name, item.root)) for name in item.images])
    # images are placed as for a local model with a chat template
    messages = Prompter(None, "chat", "image").conversation(item)
    for message in messages:
        parts = []
        for part in message["content"]:
            parts.append(next(pictures) if part["type"] == "image" else part)
        message["content"] = _plain(parts)
    return messages


def chat_of_messages(messages: Sequence[Message]) -> Chat:
    """Return the messages of a chat, with images before the text; raise BankError if an image is missing or refused."""
    chat = []
    for message in messages:
        parts = []
        for name in message.images:
            parts.append(picture_part(open_image(name, message.root)))
        content = _plain([*parts, {"type": "text", "text": message.text}])
        chat.append({"role": message.role, "content": content})
    return chat


def text_of_item(item: Item) -> str:
    """Return the prompt of an item as it is; raise BankError for messages or images, which only a chat can hold."""
    if item.messages or item.images or item.tools:
        if item.messages:
            content = "messages"
        elif item.images:
            content = "images"
        else:
            content = "tools"
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
        content = _said(choice.message.content).text
    except (MalformedReply, msgspec.ValidationError, IndexError):
        return None
    if not _is_plausible(generated) or content.strip() not in ("", generated.token.strip()):
        return None
    table: dict[str, float] = {}
    for entry in generated.top_logprobs:
        token = entry.token.strip()
        figures = [entry.logprob, table[token]] if token in table else [entry.logprob]
        if len(figures) > 1:
            table[token] = math.log(math.fsum(map(math.exp, figures)))
        else:
            table[token] = entry.logprob
    return table


def _is_plausible(generated: _TokenWithAlternatives) -> bool:
    """Return whether at least two listed figures are probabilities, and agree with that of the generated token."""
    listed = generated.top_logprobs
    same = []
    for entry in listed:
        if entry.token == generated.token:
            same.append(entry.logprob)
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
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def _said(content: _Content) -> _Said:
    """Return the texts of a content; raise `MalformedReply` if it has parts of other kinds alone."""
    texts = dict.fromkeys(_PARTS.values(), "")
    other = ""
    untyped = "text" if isinstance(content, list) else ""  # an object alone may be anything
    for part in content if isinstance(content, list) else [content or ""]:
        if isinstance(part, str):
            texts["text"] += part
        elif (kind := part.type or untyped) in _PARTS:
            texts[_PARTS[kind]] += _text_of(part)
        else:
            other = f"a part of the content is of type {excerpt(kind) or 'none'}, expected 'text' or 'thinking'"
    if other and not any(texts.values()):
        raise MalformedReply(other)
    return _Said(**texts, odd=other)


def _text_of(part: _Part) -> str:
    """Return the text of a part, wherever it is."""
    for value in (part.thinking, part.reasoning, part.refusal, part.text):
        if isinstance(value, _Annotated):
            return value.value
        if value:
            return _thought(value)
    return ""


def _thought(thought: str | list[_Thought]) -> str:
    """Return the text of a thought, which may come in parts."""
    if isinstance(thought, str):
        return thought
    return "".join(part.text or "" for part in thought)


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
        return replace(read(delivery), measures={"seconds": delivery.took})
    except (MalformedReply, msgspec.ValidationError) as error:
        return Completion("", Status.ERROR, detail=f"the reply does not follow the protocol: {error}", cost=usage)


def _check_success(error: Any, failed: object = False) -> None:
    """Refuse an error that came as a success."""
    if error or failed:
        if isinstance(error, dict):
            message = error.get("message")
        else:
            message = error
        raise MalformedReply(f"an error came as a success: {excerpt(str(message or 'no message'))}")


def _of_chat(delivery: Delivery, *, tools: bool) -> Completion:
    completion = msgspec.convert(delivery.data, _ChatCompletion)
    (choice,) = completion.choices
    message, finish = choice.message, choice.finish_reason
    counts = read_counts(completion.usage)
    odd = _oddities(counts, object=(completion.object, "chat.completion"), role=(message.role, "assistant"))
    said = _said(message.content)
    odd = "; ".join(filter(None, (odd, said.odd)))
    text, inside, closed = split_reasoning(checked_text(said.text))
    texts = [text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str)]
    separate = checked_text(next(filter(None, (said.thinking, *texts)), ""))
    reasoning = "\n\n".join(filter(None, (separate, inside)))
    refusal = checked_text(message.refusal or said.refusal)
    usage = usage_of(counts, len(reasoning), len(text), delivery.seconds)
    _check_success(choice.error, finish == "error")
    if not tools and (message.tool_calls or message.function_call or finish in _CALLED):
        raise MalformedReply("the model called a tool, and none was offered")
    text += _written_calls(message)
    reply = _noted(_ended(finish, text, reasoning, usage, closed=closed, refusal=refusal), odd)
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
    counts = read_counts(completion.usage)
    text, reasoning, closed = split_reasoning(checked_text(choice.text))
    usage = usage_of(counts, len(reasoning), len(text), delivery.seconds)
    reply = _ended(choice.finish_reason, text, reasoning, usage, closed=closed)
    return _noted(reply, _oddities(counts, object=(completion.object, "text_completion")))


def _noted(reply: Completion, odd: str) -> Completion:
    """Return a reply with a note beside the reason for its status."""
    if odd:
        return replace(reply, detail="; ".join(filter(None, (reply.detail, odd))))
    return reply


def _oddities(counts: TokenCounts, **fields: tuple[object, str]) -> str:
    """Return a note on what is odd in a reply and changes no answer; empty if nothing is.

    Args:
        fields: Value and expected value by name.
    """
    oddities = [counts.odd] if counts.odd else []
    for name, (value, expected) in fields.items():
        if value and value != expected:
            oddities.append(f"{name} is {excerpt(str(value))}, expected {expected!r}")
    return "; ".join(oddities)


def _ended(finish: object, text: str, reasoning: str, usage: Usage, *, closed: bool, refusal: str = "") -> Completion:
    """Return a reply with the status that its end gives it, and the reason if that is not ok."""
    if isinstance(finish, str | None):
        end = _FINISHES.get((finish or "stop").lower().removeprefix(_LONG_NAME))
    else:
        end = "abort"
    if end == "abort":
        raise MalformedReply(f"finish_reason is {excerpt(str(finish))}: the server did not finish the answer")
    status = Status.OK
    if end:
        detail = ""
    else:
        detail = f"finish_reason is {excerpt(str(finish))}, taken as 'stop'"
    if refusal or end == "content_filter":
        status = Status.REFUSED
        if refusal:
            detail = f"the model refused: {excerpt(refusal)}"
        else:
            detail = "the server's filter cut the answer"
    elif end == "length":
        status = Status.TRUNCATED
        detail = f"not finished after {usage.completion_tokens or 'all its'} tokens"
    elif not closed or not text.strip():
        if not end:
            raise MalformedReply(f"finish_reason is {excerpt(str(finish))}, and there is no answer")
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
