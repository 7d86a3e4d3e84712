"""An OpenAI-compatible server as a subject, and as an agent."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_adaptive_eval.checks import check_count
from pytest_adaptive_eval.errors import BankError
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.subjects.agent import Message, Preference, Reply, added
from pytest_adaptive_eval.subjects.base import Completion, Subject, Usage, cap_and_sample
from pytest_adaptive_eval.subjects.endpoint.chat import chat_of_item, chat_of_messages, first_token, read_reply
from pytest_adaptive_eval.subjects.endpoint.opening import Endpoint, connect
from pytest_adaptive_eval.subjects.endpoint.outcome import Delivery
from pytest_adaptive_eval.subjects.endpoint.pictures import check_pictures
from pytest_adaptive_eval.subjects.endpoint.settings import EndpointSettings

__all__ = ["EndpointAgent", "EndpointSubject"]

#: Stands where no answer has arrived.
_NONE = Completion("", Status.NOT_RUN)
#: How many likely first tokens are asked for: what the protocol allows, and what cautious servers allow.
_TOP = (20, 5)
#: Two questions whose likely first words differ, for any model that reads them.
_PROBES = ("Reply with yes.", "2 + 2 =")
#: What a request is answered with where the server knows a field and does not take it.
_NOT_TAKEN = frozenset({400, 415, 422, 500, 501})


class EndpointSubject(Subject):
    """A model on an OpenAI-compatible server, under evaluation.

    Made by `load`.  The items of a batch are asked at the same time, as far as
    `concurrency` and `rate` allow.  A fault of the server or of the way to it
    is the item's status.

    An item's ``meta["max_tokens"]`` overrides the cap on its answer, and
    ``meta["sample"]`` counts repeated draws at a temperature above 0.
    """

    def __init__(self, endpoint: Endpoint, max_tokens: int) -> None:
        super().__init__(endpoint.identity)
        self._endpoint = endpoint
        self._max_tokens = max_tokens
        self._usage = endpoint.usage
        self._pictures_checked = False

    @classmethod
    def load(
        cls,
        url: str,
        model: str,
        *,
        max_tokens: int = 64,
        **options: Any,
    ) -> EndpointSubject:
        """Connect to a server and check that its model answers.

        One token is requested, so that a wrong address, key or model is an
        error here and not a row of items without answers.

        Parameters
        ----------
        url : str
            Address that ``/chat/completions`` is added to, such as ``http://localhost:8000/v1``.
        model : str
            Name of the model on the server.
        max_tokens : int
            Cap on the tokens of an answer, reasoning included.
        **options
            Those of `pytest_adaptive_eval.subjects.endpoint.settings.EndpointSettings`.

        Raises
        ------
        ConfigError
            A setting is out of its range, or the server cannot be reached,
            requires another key, or does not follow the protocol.
        """
        check_count("max_tokens", max_tokens)
        endpoint = connect(url, model, EndpointSettings(**options), max_tokens)
        return cls(endpoint, max_tokens)

    @property
    def usage(self) -> Usage:
        """What all calls cost so far, the one of `load` included."""
        return self._usage

    def prepare(self, items: Sequence[Item]) -> None:
        """See that the server shows pictures to its model, if any of the items has one.

        Raises
        ------
        ConfigError
            It refuses them, or nothing shows that the model sees them.
        """
        if not self._pictures_checked and any(item.images for item in items):
            self._usage += check_pictures(self._endpoint, items)
            self._pictures_checked = True

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """One completion an item, in order."""
        return self.answer_each(items, lambda *_: None)

    def answer_each(self, items: Sequence[Item], arrived: Callable[[int, Completion], object]) -> list[Completion]:
        """Answer as `answer` does; `arrived` is called in the thread of the connections."""
        self.prepare(items)
        completions: list[Completion] = [_NONE] * len(items)

        def take(place: int, delivery: Delivery) -> None:
            reply = self._read(delivery, items[place])
            self._usage += reply.usage
            completions[place] = Completion(reply.text, reply.status, detail=reply.detail)
            arrived(place, completions[place])

        self._endpoint.post([self._body(item) for item in items], take)
        return completions

    def close(self) -> None:
        """End the connections."""
        super().close()
        self._endpoint.wire.close()

    def _read(self, delivery: Delivery, item: Item) -> Reply:
        if delivery.status is not Status.OK:
            return read_reply(delivery)
        return self._endpoint.read(delivery, cap_and_sample(item, self._max_tokens)[0])

    def _body(self, item: Item) -> bytes | Callable[[], bytes]:
        """The request for an item; pictures are read later, a few at a time, and faults are told later."""
        write = functools.partial(self._write, item)
        if item.images:
            return write
        try:
            return write()
        except Exception:
            return write

    def _write(self, item: Item) -> bytes:
        cap, sample = cap_and_sample(item, self._max_tokens)
        return self._endpoint.body(chat_of_item(item), cap, sample)


class EndpointAgent:
    """A model on an OpenAI-compatible server that works for the run: an `Agent`.

    Made by `load`.

    Parameters
    ----------
    endpoint : Endpoint
    answers : mutable mapping
        Replies by a hash of the model, the prompt and the decoding; JSON values.
    top : int
        Likely first tokens that the server tells; 0 where it does not.
    """

    def __init__(self, endpoint: Endpoint, answers: MutableMapping[str, Any], top: int) -> None:
        self.identity = endpoint.identity
        self._endpoint = endpoint
        self._answers = answers
        self._top = top
        self._takes_schema = True
        self._usage = endpoint.usage

    @classmethod
    def load(
        cls,
        url: str,
        model: str,
        *,
        answers: MutableMapping[str, Any] | None = None,
        **options: Any,
    ) -> EndpointAgent:
        """Connect to a server, check that its model answers, and find out whether it returns likelihoods.

        Parameters
        ----------
        url, model, **options
            As `EndpointSubject.load`.
        answers : mutable mapping, optional
            Store of replies, looked up before the server is asked.

        Raises
        ------
        ConfigError
            As `EndpointSubject.load`.
        """
        endpoint = connect(url, model, EndpointSettings(**options))
        top, usage = _likelihoods(endpoint)
        return cls(replace(endpoint, usage=endpoint.usage + usage), {} if answers is None else answers, top)

    @property
    def rates(self) -> bool:
        """Whether `prefer` works: the server was asked for likelihoods and gave some that can be true."""
        return self._top > 0

    @property
    def usage(self) -> Usage:
        """What all calls cost so far, those of `load` included."""
        return self._usage

    def ask(
        self, messages: Sequence[Message], *, max_tokens: int = 512, schema: Mapping[str, Any] | None = None
    ) -> Reply:
        """Reply to a chat; a reply that is at hand costs nothing.  A fault is a status.

        Many servers ignore a schema, and some refuse it: then the question is
        asked without, here and from then on.
        """
        try:
            chat = chat_of_messages(messages)
        except BankError as error:
            return Reply("", Status.ERROR, f"{type(error).__name__}: {error}")
        form: dict[str, Any] = {} if schema is None else {"response_format": _response_format(schema)}
        key = self._key(self._endpoint.body(chat, max_tokens, **form))
        if (kept := _from_json(self._answers.get(key))) is not None:
            return kept
        reply = self._ask(chat, max_tokens, form)
        if not reply.status.infrastructure:
            self._answers[key] = _to_json(reply)
        return reply

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Log-likelihood of `label` as the first token of the reply to the chat, each candidate added to its end.

        Candidates are asked at the same time, each in a request of its own.  A
        label that is not among the likeliest first tokens behind every candidate
        has no likelihood that could be known: the status tells.
        """
        nothing = (math.nan,) * len(candidates)
        if not self._top:
            return Preference(nothing, Status.ERROR, "the server tells no likelihoods")
        try:
            chats = [added(messages, candidate) for candidate in candidates]
            bodies = [self._endpoint.body(chat_of_messages(chat), 1, **_asking(self._top)) for chat in chats]
        except BankError as error:
            return Preference(nothing, Status.ERROR, f"{type(error).__name__}: {error}")
        keys = [self._key(body) for body in bodies]
        known = {key: table for key in keys if (table := _table(self._answers.get(key))) is not None}
        fresh = {key: body for key, body in zip(keys, bodies, strict=True) if key not in known}
        usage, fault = Usage(), None
        for key, delivery in zip(fresh, self._endpoint.post(list(fresh.values())), strict=True):
            reply, table = read_reply(delivery), first_token(delivery)
            usage += reply.usage
            if table is None:
                fault = reply if reply.status.infrastructure else Reply("", Status.ERROR, "no likelihoods came")
            else:
                known[key] = table
                self._answers[key] = {"likelihoods": dict(table)}
        self._usage += usage
        if fault is not None:
            return Preference(nothing, fault.status, fault.detail, usage)
        if missing := sum(label.strip() not in known[key] for key in keys):
            detail = (
                f"{label!r} is not among the {self._top} likeliest first tokens behind {missing} of "
                f"{len(keys)} candidates"
            )
            return Preference(nothing, Status.ERROR, detail, usage)
        return Preference(tuple(known[key][label.strip()] for key in keys), usage=usage)

    def close(self) -> None:
        """End the connections."""
        self._endpoint.wire.close()

    def _ask(self, chat: list[dict[str, Any]], max_tokens: int, form: Mapping[str, Any]) -> Reply:
        form = form if self._takes_schema else {}
        (delivery,) = self._endpoint.post([self._endpoint.body(chat, max_tokens, **form)])
        reply = self._endpoint.read(delivery, max_tokens)
        if form and delivery.code in _NOT_TAKEN and reply.status is Status.ERROR:
            (delivery,) = self._endpoint.post([self._endpoint.body(chat, max_tokens)])
            bare = self._endpoint.read(delivery, max_tokens)
            self._takes_schema = bare.status.infrastructure
            reply = replace(bare, usage=reply.usage + bare.usage)
        self._usage += reply.usage
        return reply

    def _key(self, body: bytes) -> str:
        return hashlib.sha256(self.identity.checkpoint.encode() + b"\n" + body).hexdigest()


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": dict(schema)}}


def _asking(top: int) -> dict[str, Any]:
    """Fields that ask for the model's own distribution: at temperature 0 some servers tell the choice alone."""
    return {"logprobs": True, "top_logprobs": top, "temperature": 1.0}


def _likelihoods(endpoint: Endpoint) -> tuple[int, Usage]:
    """How many likely first tokens the server tells truly, as far as can be seen; 0 where it does not.

    Servers that know no likelihoods mostly ignore the wish, and a stand-in may
    tell the same of every prompt.
    """
    usage = Usage()
    for top in _TOP:
        bodies = [endpoint.body([{"role": "user", "content": text}], 1, **_asking(top)) for text in _PROBES]
        deliveries = endpoint.post(bodies)
        usage = sum((read_reply(one).usage for one in deliveries), usage)
        tables = [first_token(one) for one in deliveries]
        if all(tables) and tables[0] != tables[1]:
            return top, usage
        if all(one.status is Status.OK for one in deliveries):
            break  # taken and not heeded: a smaller number changes nothing
    return 0, usage


def _to_json(reply: Reply) -> dict[str, str]:
    return {"text": reply.text, "status": reply.status.value, "detail": reply.detail, "reasoning": reply.reasoning}


def _from_json(kept: object) -> Reply | None:
    """A kept reply, which costs nothing; None for anything else that lies there."""
    names = ("text", "status", "detail", "reasoning")
    if not isinstance(kept, Mapping) or not all(isinstance(kept.get(name), str) for name in names):
        return None
    text, status, detail, reasoning = (kept[name] for name in names)
    if status not in list(Status) or Status(status).infrastructure:
        return None
    return Reply(text, Status(status), detail, reasoning)


def _table(kept: object) -> Mapping[str, float] | None:
    table = kept.get("likelihoods") if isinstance(kept, Mapping) else None
    if not isinstance(table, Mapping) or not all(isinstance(x, float) and x < 0.01 for x in table.values()):
        return None
    return dict(table)
