"""Log-likelihoods of given texts, by servers that return log-probabilities of a prompt's tokens."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.items.likelihood import Continuation
from pytest_adaptive_eval.models.base import Completion, Usage
from pytest_adaptive_eval.models.endpoint.chat import MalformedReply, read_completion, text_of_item
from pytest_adaptive_eval.models.endpoint.opening import Endpoint
from pytest_adaptive_eval.models.endpoint.outcome import Delivery

#: Texts with a common beginning and different ends, for a look at what a server returns.
PROBES = ("2 + 2 = 4", "2 + 2 = x")
#: Largest difference, in nats, of one figure in two replies.
TOLERANCE = 0.05
#: Marks of white space and of parts of characters, which servers write in their own ways.
_UNSURE = re.compile("[\\s\u2581\u0120\ufffd]+")

#: Log-likelihoods of tokens, and the tokens' texts.
_Logged = tuple[list[float | None], list[str] | None]
_Log = Annotated[float, Meta(ge=-1e300, le=1e-3)]


class TokenLogs(NamedTuple):
    """Tokens of a text, and their log-probabilities in nats.

    Args:
        logs: One per token; None for the first.
        begun: Whether the server put a token of its own before the text.
    """

    logs: list[float | None]
    begun: bool


class _PromptLog(msgspec.Struct):
    """Log-probability of one token at a position of the prompt, and its rank among all tokens."""

    logprob: _Log
    rank: int | None = None
    decoded_token: str | None = None


class _PromptChoice(msgspec.Struct):
    """A choice of vLLM's reply: for each token of the prompt the token itself and the likeliest ones, by their ids."""

    prompt_logprobs: list[dict[str, _PromptLog] | None]


class _EchoLogs(msgspec.Struct):
    """Log-probabilities of an echoed prompt and of the tokens after it."""

    token_logprobs: list[_Log | None]
    tokens: list[str] | None = None


class _EchoChoice(msgspec.Struct):
    """A choice whose text begins with the prompt."""

    logprobs: _EchoLogs


class _Counts(msgspec.Struct):
    prompt_tokens: int


class _Reply(msgspec.Struct):
    """A reply with a single choice."""

    choices: Annotated[list[Any], Meta(min_length=1, max_length=1)]
    usage: _Counts | None = None


def _of_prompt(choice: Any) -> _Logged:
    """Return log-probabilities and texts of the prompt's tokens."""
    logs: list[float | None] = []
    tokens: list[str] = []
    for candidates in msgspec.convert(choice, _PromptChoice).prompt_logprobs:
        if not candidates:
            logs.append(None)
            tokens.append("")
            continue
        prompt_token = max(candidates.values(), key=lambda entry: entry.rank or 0)
        logs.append(prompt_token.logprob)
        tokens.append(prompt_token.decoded_token or "")
    return logs, tokens


def _of_echo(choice: Any) -> _Logged:
    """Return log-probabilities and texts of the prompt's tokens and of those after it."""
    echoed = msgspec.convert(choice, _EchoChoice).logprobs
    return list(echoed.token_logprobs), echoed.tokens


@dataclass(frozen=True, slots=True)
class _Method:
    """A way to ask for the log-probabilities of a prompt's tokens.

    Args:
        read: Returns log-probabilities and texts of tokens from the choice of a reply.
        generated: Tokens that the model writes, at the end.
        names_first: Whether the first token has a text.
    """

    fields: Mapping[str, Any]
    read: Callable[[Any], _Logged]
    generated: int
    names_first: bool


#: Ways by the value of the option ``likelihoods``.  Some servers die of an echo, so that it is sent only on request.
METHODS: Mapping[str, _Method] = MappingProxyType(
    {
        "prompt_logprobs": _Method({"prompt_logprobs": 1}, _of_prompt, 0, names_first=False),
        "echo": _Method({"echo": True, "logprobs": 1}, _of_echo, 1, names_first=True),
    }
)


def read_tokens(method: str, delivery: Delivery, text: str) -> TokenLogs:
    """Return the log-probabilities of a text's tokens, by a key of `METHODS`; raise Malformed if they are of others."""
    api = METHODS[method]
    try:
        reply = msgspec.convert(delivery.data, _Reply)
        logs, tokens = api.read(reply.choices[0])
    except msgspec.ValidationError as error:
        raise MalformedReply(f"no log-probabilities of the prompt came ({error})") from None
    if api.generated:
        logs = logs[: -api.generated]
        tokens = None if tokens is None else tokens[: -api.generated]
    if reply.usage is None:
        counted = len(logs)
    else:
        counted = reply.usage.prompt_tokens
    if not logs or logs[0] is not None or None in logs[1:] or counted != len(logs):
        raise MalformedReply(
            f"{len(logs)} log-probabilities came for a prompt of {counted} tokens; the first token, and no other, must "
            "lack one"
        )
    return TokenLogs(logs, _begun(api, tokens, text))


def _begun(api: _Method, tokens: Sequence[str] | None, text: str) -> bool:
    """Return whether a token of the server's precedes the text; refuse tokens that spell another text."""
    if tokens is None:
        return False
    sent = _UNSURE.sub("", text)
    rest = _UNSURE.sub("", "".join(tokens[1:]))
    if rest == sent:
        return True
    if api.names_first:
        first = _UNSURE.sub("", tokens[0])
    else:
        first = sent[: len(sent) - len(rest)]
    if not any("\ufffd" in token for token in tokens) and first + rest != sent:
        raise MalformedReply(f"the tokens spell {''.join(tokens)!r:.80}, and {text!r:.80} was sent")
    return False


class _Needed(NamedTuple):
    """One text whose log-likelihood is needed: the tokens of `whole` that `head` does not have."""

    head: str
    whole: str


class LikelihoodReader:
    """Completions of items from the log-likelihoods that a server gives to texts.

    Prompt and choice are sent as one text, and the choice has the tokens after the bare prompt's. White space
    at the end of a prompt belongs to the choice.

    Args:
        endpoint: Asked by the path for bare prompts.
        method: A key of `METHODS`.
        begin_text: Text of the token that begins a document, for servers that put none before a prompt.
    """

    def __init__(self, endpoint: Endpoint, method: str, begin_text: str) -> None:
        self.endpoint = endpoint
        self._method = method
        self._begin_text = begin_text
        self._checked = False
        #: Cost of the requests so far.
        self.usage = Usage()

    def prepare(self, items: Sequence[Item]) -> None:
        """Check that the server gives log-likelihoods, before any item is administered.

        Two texts with the same beginning are sent: the figures of the beginning must agree, and the last ones differ.

        Raises:
            ConfigError: It gives none that can be trusted, or none of a text's first token, which an item needs.
        """
        if self._checked:
            return
        name = f"{self.endpoint.model!r} at {self.endpoint.wire.url}"
        check_faults(self._faults(name, items), "items are scored by the likelihoods of texts")
        self._checked = True

    def _faults(self, name: str, items: Sequence[Item]) -> Iterator[str]:
        if self.endpoint.api.field != "prompt":
            yield f'{name} is asked by chats: set api = "completions"'
        replies = self._request(PROBES)
        problem = _mistrust([replies[text] for text in PROBES])
        if problem:
            yield (
                f"{name} does not give them by {self._method}: {problem}; expected a server such as vLLM, or one that "
                'echoes prompts, with likelihoods = "echo" (which ends some servers); or score a local checkpoint'
            )
        bare = any(not text.after_prompt for item in items for text in item.continuations)
        first = replies[PROBES[0]]
        if bare and not self._begin_text and isinstance(first, TokenLogs) and not first.begun:
            yield (
                f"a text without a prompt needs a token before it, and {name} puts none there: set begin_text to the "
                'text of the model\'s begin or end token, such as "<|endoftext|>"'
            )

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        needed: list[list[_Needed] | Completion] = []
        for item in items:
            try:
                needed.append([self._texts(text_of_item(item), continuation) for continuation in item.continuations])
            except BankError as error:
                needed.append(Completion("", Status.ERROR, detail=f"{type(error).__name__}: {error}"))
        texts = {}
        for group in needed:
            if isinstance(group, list):
                texts.update(dict.fromkeys(text for pair in group for text in pair))
        texts.pop("", None)
        replies = self._request([*texts])
        return [
            self._completion(item, group, replies) if isinstance(group, list) else group
            for item, group in zip(items, needed, strict=True)
        ]

    def _texts(self, prompt: str, continuation: Continuation) -> _Needed:
        text = continuation.delimiter + continuation.text
        if continuation.after_prompt:
            head = prompt.rstrip()
        else:
            head = ""
        if not head:
            return _Needed(self._begin_text, self._begin_text + text)
        return _Needed(head, prompt + text)

    def request(self, item: Item) -> bytes:
        """Return the requests for all texts of an item, and how their log-likelihoods score it.

        Raises:
            BankError: The item cannot be scored by likelihoods here.
        """
        assert item.likelihood is not None
        prompt = text_of_item(item)
        bodies = []
        for continuation in item.continuations:
            bodies += self._bodies(self._texts(prompt, continuation))
        scoring = json.dumps(item.likelihood.to_json(), sort_keys=True).encode()
        return b"\n".join([*bodies, scoring])

    def _bodies(self, texts: Sequence[str]) -> list[bytes]:
        fields = METHODS[self._method].fields
        return [self.endpoint.body(text, 1, temperature=0.0, seed=None, **fields) for text in texts]

    def _request(self, texts: Sequence[str]) -> dict[str, TokenLogs | Completion]:
        """Return the log-probabilities of each text's tokens, or the reply that has none."""
        replies: dict[str, TokenLogs | Completion] = {}
        for text, delivery in zip(texts, self.endpoint.post(self._bodies(texts)), strict=True):
            reply = read_completion(delivery)
            self.usage += reply.cost
            if delivery.status is not Status.OK or delivery.data.get("error"):
                replies[text] = reply
                continue
            try:
                replies[text] = read_tokens(self._method, delivery, text)
            except MalformedReply as error:
                replies[text] = Completion("", Status.ERROR, detail=f"the reply does not follow the protocol: {error}")
        return replies

    def _completion(
        self, item: Item, group: Sequence[_Needed], replies: Mapping[str, TokenLogs | Completion]
    ) -> Completion:
        logs = []
        for choice in group:
            if choice.head:
                head = replies[choice.head]
            else:
                head = TokenLogs([None], begun=True)
            whole = replies[choice.whole]
            if isinstance(head, Completion):
                return Completion("", head.status, detail=head.detail)
            if isinstance(whole, Completion):
                return Completion("", whole.status, detail=whole.detail)
            choice_logs = whole.logs[len(head.logs) :]
            if not choice_logs or (not choice.head and not whole.begun):
                return Completion("", Status.ERROR, detail="a choice has no token of its own, or none before it")
            logs.append(math.fsum(log for log in choice_logs if log is not None))
        result = item.likelihood_result(logs)
        return Completion(result.text, score=result.score, likelihood=result.facts)


def _mistrust(replies: Sequence[TokenLogs | Completion]) -> str:
    """Return why the probes' figures cannot belong to their tokens; empty if they can."""
    logs = []
    for reply in replies:
        if isinstance(reply, Completion):
            return reply.detail
        logs.append([log for log in reply.logs if log is not None])
    first, second = logs
    if len(first) < 2 or len(second) < 2:
        return f"figures of {len(first) + 1} tokens came for {PROBES[0]!r}"
    if abs(first[0] - second[0]) > TOLERANCE:
        return (
            f"the beginning of two texts has the log-probabilities {first[0]:g} and {second[0]:g}, expected equal ones"
        )
    if first == second:
        return "two different texts have the same log-probabilities"
    return ""
