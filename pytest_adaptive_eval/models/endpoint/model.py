"""Models on OpenAI-compatible servers."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import msgspec

from pytest_adaptive_eval.errors import BankError, ConfigError
from pytest_adaptive_eval.items.item import Item, Status, items_by_likelihood, items_naming
from pytest_adaptive_eval.models.arrivals import Arrivals
from pytest_adaptive_eval.models.base import Arrived, Completion, Message, Model, Preference, Usage, added, sample_of
from pytest_adaptive_eval.models.caps import Cap
from pytest_adaptive_eval.models.endpoint.chat import (
    CHAT,
    Question,
    chat_of_item,
    chat_of_messages,
    first_token,
    read_reply,
)
from pytest_adaptive_eval.models.endpoint.cut_signs import CutSigns
from pytest_adaptive_eval.models.endpoint.likelihood import LikelihoodReader
from pytest_adaptive_eval.models.endpoint.opening import Endpoint, Opening, connect
from pytest_adaptive_eval.models.endpoint.outcome import Body, Delivery
from pytest_adaptive_eval.models.endpoint.pictures import check_pictures
from pytest_adaptive_eval.models.endpoint.settings import EndpointSettings
from pytest_adaptive_eval.typed_tables import read_options

#: Completion of an item until its answer arrives.
_PENDING = Completion("", Status.NOT_RUN)
#: Numbers of likely first tokens to request: the limits of the protocol, and of strict servers.
_TOP = (20, 5)
#: Two prompts whose likely first tokens differ for any model that reads them.
_PROBES = ("Reply with yes.", "2 + 2 =")
#: HTTP status codes of servers that know a field and refuse it, and those that may also mean a fault of the server.
_REFUSED_FIELD, _UNSURE = frozenset({400, 415, 422, 501}), frozenset({500})
#: Trial requests with a schema to a server that answers others meanwhile, before its faults count as a refusal.
_SCHEMA_TRIES = 3
#: Logger whose warnings the terminal shows at once.
_LOGGER = logging.getLogger("pytest_adaptive_eval")


class EndpointModel(Model):
    """A model on an OpenAI-compatible server.

    Created by `load`. The items of a batch are sent at the same time, up to `concurrency` and `rate`. A fault
    of the server or of the connection is the item's status.

    `cap` says how long an answer may be, and an item's ``meta["sample"]`` is the index of a repeated draw at a
    temperature above 0.
    """

    rates_texts = True
    waits_apart = True

    cap: Cap

    def __init__(self, endpoint: Endpoint, reader: LikelihoodReader) -> None:
        super().__init__(endpoint.identity)
        self._arrivals = Arrivals()  #: Deliveries of `_send`.
        self._reader = reader
        self._endpoint = endpoint
        self.cap = endpoint.cap
        self._usage = endpoint.usage
        self._counting = threading.Lock()
        self._pictures_checked = False
        self._signs = CutSigns()
        self._schema_faults = 0  #: Faults of the server at requests with a schema, each beside an answer without one.

    @classmethod
    def load(cls, url: str, model: str, **options: Any) -> Self:
        """Connect to a server and check that its model answers.

        One token is requested, so a wrong address, key or model is an error here and not a row of items without
        answers.

        Args:
            url: Address that ``/chat/completions`` or ``/completions`` is added to, such as
                ``http://localhost:8000/v1``.
            **options: See `pytest_adaptive_eval.models.endpoint.settings.EndpointSettings`.

        Raises:
            ConfigError: A setting is out of its range, or the server cannot be reached, requires another key, or does
                not follow the protocol.
        """
        settings = read_options(EndpointSettings, options, "a model on a server")
        endpoint = connect(url, model, settings)
        return cls(endpoint, LikelihoodReader(endpoint, settings.likelihoods, settings.begin_text))

    @property
    def usage(self) -> Usage:
        """Cost of all calls so far, with that of `load`."""
        return self._usage + self._reader.usage

    @property
    def shared_batch(self) -> int:
        """Number of requests to have begun now, which follows what the server takes."""
        return self._endpoint.wire.concurrency

    @property
    def no_reuse(self) -> str:
        """The same, and what is behind the server's name must be stated, since a server does not prove it."""
        facts = self.identity.environment
        if str(facts.get("weights", "")).startswith("not known"):
            if not facts.get("revision"):
                return "a server is taken at its word; set the option revision, and change it with the weights"
            if self._endpoint.answerer.aliases > 1:
                return "several models may answer (accept_models)"
            if self._endpoint.answerer.several_deployments:
                return "several deployments answered under one name"
        return super().no_reuse

    @property
    def warnings(self) -> list[str]:
        """Signs that the server cuts prompts or answers, and that it refused schemas."""
        refusal = self._endpoint.opening.refusal
        if refusal:
            return [*self._signs.warnings, _without_schemas(refusal)]
        return self._signs.warnings

    def prepare(self, items: Sequence[Item]) -> None:
        """Raise ConfigError if the server cannot do what the items need: show pictures to its model, or rate texts."""
        if rated := items_by_likelihood(items):
            self._reader.prepare(rated)
        if not self._pictures_checked and any(item.images for item in items_naming(items, "images")):
            self._count(check_pictures(self._endpoint, items))
            self._pictures_checked = True
        if self._endpoint.opening.schemas is None:
            schema = _first_schema(items)
            if schema is not None:
                self._try_schema(schema)

    def _try_schema(self, schema: Mapping[str, Any]) -> None:
        """Find out whether the server takes a schema.  A fault of the server is not a refusal.

        Raises:
            ConfigError: The server answers no request, with or without a schema.
        """
        name = f"model {self.identity.name!r}"
        for _ in range(_SCHEMA_TRIES):
            tried = self._greet(**_response_format(schema))
            if tried.status is Status.OK:
                self._ask_as(msgspec.structs.replace(self._endpoint.opening, schemas=True))
                return
            if tried.code in _REFUSED_FIELD:
                break
            bare = self._greet()
            if bare.status is not Status.OK:
                raise ConfigError(f"{name} answers no request now: {bare.detail}; run again when the server answers")
        opening = msgspec.structs.replace(self._endpoint.opening, schemas=False, refusal=tried.detail)
        self._ask_as(opening)
        _LOGGER.warning("%s: %s", name, _without_schemas(tried.detail))

    def _greet(self, **fields: Any) -> Delivery:
        """Send the greeting with further fields, and count its cost."""
        endpoint = self._endpoint
        (delivery,) = endpoint.post([endpoint.body(endpoint.api.greeting, 16, **fields)])
        self._count(endpoint.api.read(delivery).cost)
        return delivery

    @property
    def opening(self) -> Mapping[str, Any]:
        """First replies of the server about its form, with a hash of the settings; see the base class."""
        return {"settings": self._endpoint.settings_hash, **msgspec.to_builtins(self._endpoint.opening)}

    def resume(self, opening: Mapping[str, Any]) -> None:
        """Ask in the form of an earlier run of the same settings; see the base class."""
        if opening.get("settings") != self._endpoint.settings_hash:
            return
        with contextlib.suppress(msgspec.ValidationError):  # an opening of another version of this package
            self._ask_as(msgspec.convert(opening, Opening))

    def _ask_as(self, opening: Opening) -> None:
        """Ask in another form from now on."""
        before = self._endpoint
        environment = self._endpoint.environment
        self._endpoint = self._reader.endpoint = replace(before, opening=opening)
        if self.cap == before.cap:  # an evaluation may have set another one
            self.cap = self._endpoint.cap
        if "decoding fields sent" in environment:
            environment["decoding fields sent"] = dict(opening.accepted)
        self.identity = replace(self.identity, decoding=self._endpoint.decoding)

    def form(self, items: Sequence[Item]) -> Mapping[str, Any]:
        """Return whether schemas and tools are sent, and the text before texts without a prompt; see the base class."""
        form: dict[str, Any] = {}
        if _first_schema(items) is not None:
            form["schemas"] = "sent" if self._endpoint.opening.schemas else "refused"
        if any(item.tools for item in items_naming(items, "tools")):
            form["tools"] = "sent"
        begin_text = self._endpoint.settings.begin_text
        if begin_text and items_by_likelihood(items):
            form["begin_text"] = begin_text
        return form

    def request(self, item: Item) -> bytes:
        """Return the body of the request, with hashes in place of pictures; see the base class.

        An item that cannot be sent gets no answer, which `answer` reports.
        """
        try:
            if item.likelihood is not None:
                return self._reader.request(item)
            api = self._endpoint.api
            if api is CHAT:
                return self._write(item, chat_of_item(item, hashed=True), self.cap)
            return self._write(item, api.question(item), self.cap)
        except BankError:
            return super().request(item)

    def prepare_chats(self) -> None:
        """Raise ConfigError if the option ``api`` is another than ``chat``."""
        if self._endpoint.api is not CHAT:
            raise ConfigError(
                f"{self.identity.name!r} is to hold chats, and its option api has another value than 'chat': remove it"
            )

    @functools.cached_property
    def rates(self) -> bool:
        """Whether `prefer` works: the server returns plausible likelihoods, which two requests find out."""
        return self._top > 0

    @functools.cached_property
    def _top(self) -> int:
        """Number of likely first tokens that the server returns; 0 if it returns none."""
        top, usage = _likelihoods(self._endpoint)
        self._count(usage)
        return top

    def ask(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        schema: Mapping[str, Any] | None = None,
        draw: int = 0,
    ) -> Completion:
        """Return the reply to a chat, see the base class.

        Many servers ignore a schema, and some refuse it. After a refusal this request and all later ones are sent
        without a schema.
        """
        endpoint = self._endpoint
        cap = self.cap.tokens if max_tokens is None else max_tokens
        try:
            chat = chat_of_messages(messages)
        except BankError as error:
            return Completion("", Status.ERROR, detail=f"{type(error).__name__}: {error}")
        if schema is not None and endpoint.opening.schemas is not False:
            form = _response_format(schema)
        else:
            form = {}
        sample = draw if endpoint.samples else 0
        (delivery,) = endpoint.post([endpoint.body(chat, cap, sample, **form)])
        reply = endpoint.read(delivery, cap)
        if form and delivery.code in _REFUSED_FIELD | _UNSURE and reply.status is Status.ERROR:
            code, refusal = delivery.code, delivery.detail
            (delivery,) = endpoint.post([endpoint.body(chat, cap, sample)])
            bare = endpoint.read(delivery, cap)
            self._schema_faults += not bare.status.infrastructure
            if not bare.status.infrastructure and (code in _REFUSED_FIELD or self._schema_faults >= _SCHEMA_TRIES):
                self._ask_as(msgspec.structs.replace(endpoint.opening, schemas=False, refusal=refusal))
            reply = replace(bare, cost=reply.cost + bare.cost)
        self._count(reply.cost)
        return reply

    def prefer(self, messages: Sequence[Message], candidates: Sequence[str], label: str) -> Preference:
        """Return the log-likelihood of `label` as the first token of the reply to the chat, with each candidate added.

        Each candidate is sent in a request of its own, all at the same time. The status is an error if the label is not
        among the likeliest first tokens after every candidate, since its likelihood is then unknown.
        """
        unknown = (math.nan,) * len(candidates)
        label = label.strip()
        if not self._top:
            return Preference(unknown, Status.ERROR, "the server returns no likelihoods")
        try:
            chats = []
            for candidate in candidates:
                chats.append(chat_of_messages(added(messages, candidate)))
        except BankError as error:
            return Preference(unknown, Status.ERROR, f"{type(error).__name__}: {error}")
        fields = _likelihood_fields(self._top)
        deliveries = self._endpoint.post([self._endpoint.body(chat, 1, **fields) for chat in chats])
        replies = list(map(read_reply, deliveries))
        tables = list(map(first_token, deliveries))
        usage = sum((reply.cost for reply in replies), Usage())
        self._count(usage)
        tables_known = [table for table in tables if table is not None]
        if len(tables_known) < len(tables):
            fault = next((reply for reply in replies if reply.status.infrastructure), None)
            if fault is None:
                return Preference(unknown, Status.ERROR, "no likelihoods came", usage)
            return Preference(unknown, fault.status, fault.detail, usage)
        scores = tuple(table[label] for table in tables_known if label in table)
        missing = len(tables_known) - len(scores)
        if missing:
            detail = (
                f"{label!r} is not among the {self._top} likeliest first tokens after {missing} of {len(tables_known)} "
                "candidates"
            )
            return Preference(unknown, Status.ERROR, detail, usage)
        return Preference(scores, usage=usage)

    def answer(self, items: Sequence[Item]) -> list[Completion]:
        """Return one completion per item, in order."""
        return self.answer_each(items, lambda *_: None)

    def answer_each(self, items: Sequence[Item], arrived: Arrived) -> list[Completion]:
        """Answer like `answer`; `arrived` is called in the thread of the connections."""
        self.prepare(items)
        completions = [_PENDING] * len(items)
        rated = [index for index, item in enumerate(items) if item.likelihood is not None]
        for index, completion in zip(rated, self._reader.answer([items[index] for index in rated]), strict=True):
            completions[index] = completion
            arrived(index, completion)
        written = [index for index in range(len(items)) if index not in set(rated)]

        def take(number: int, delivery: Delivery) -> None:
            index = written[number]
            completions[index] = self._complete(delivery, items[index], self.cap)
            arrived(index, completions[index])

        self._endpoint.post([self._body(items[index]) for index in written], take)
        return completions

    def _send(self, items: Sequence[Item], arrived: Arrived, keep: Arrived) -> Callable[[], object]:
        cap = self.cap

        def note(index: int, delivery: Delivery) -> None:
            completion = self._complete(delivery, items[index], cap)
            keep(index, completion)
            self._arrivals.put(lambda: arrived(index, completion))

        sent = self._endpoint.begin([self._body(item) for item in items], note)
        sent.add_done_callback(lambda done: None if done.cancelled() else self._arrivals.put(done.result))
        return sent.cancel

    def take_arrived(self, *, wait: bool) -> None:
        """Call `arrived` for the answers of `begin` that are there, or raise why there are none; see the base class."""
        self._arrivals.take(wait=wait)

    def wake(self) -> None:
        """End a wait of `take_arrived`; see the base class."""
        self._arrivals.wake()

    def close(self) -> None:
        """Close the connections."""
        super().close()
        self._endpoint.wire.close()

    def _count(self, usage: Usage) -> None:
        with self._counting:
            self._usage += usage

    def _complete(self, delivery: Delivery, item: Item, cap: Cap) -> Completion:
        """Return the completion of a delivery, whose cost is added to `usage`."""
        endpoint = self._endpoint
        ok = delivery.status is Status.OK
        tools = bool(item.tools)
        if ok:
            reply = endpoint.read(delivery, cap.of(item), tools=tools)
        else:
            reply = endpoint.api.read(delivery)
        with self._counting:
            self._usage += reply.cost
            self._signs.note(item, reply)
        return replace(reply, request=delivery.sent)

    def _body(self, item: Item) -> Body:
        """Return the request for an item, or a function that writes it later: pictures, a few at a time, and faults."""
        cap = self.cap
        question = self._endpoint.api.question

        def write() -> bytes:
            return self._write(item, question(item), cap)

        if item.images:
            return write
        try:
            return write()
        except Exception:
            return write

    def _write(self, item: Item, question: Question, cap: Cap) -> bytes:
        fields: dict[str, Any] = {}
        if item.tools:
            fields["tools"] = list(map(dict, item.tools))
        schema = _schema_of(item)
        if schema is not None and self._endpoint.opening.schemas is not False:
            fields |= _response_format(schema)
        return self._endpoint.body(question, cap.of(item), sample_of(item), **fields)


def _without_schemas(refusal: str) -> str:
    """Return the sentence on a server that refuses schemas, with its words."""
    return f"the server refused a request with a JSON Schema ({refusal}), so schemas are not sent and bind no answer"


def _first_schema(items: Sequence[Item]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the first item that has one; None without any."""
    for item in items_naming(items, "schema"):
        schema = _schema_of(item)
        if schema is not None:
            return schema
    return None


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the field of a request that has a server constrain the reply by a JSON Schema."""
    described = {"name": "reply", "strict": True, "schema": dict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _schema_of(item: Item) -> Mapping[str, Any] | None:
    """Return the JSON Schema of an answer; None for an item that is graded otherwise."""
    if item.grader != "schema" or len(item.answers) > 1:
        return None
    schema = json.loads(item.answer)
    if isinstance(schema, dict):
        return schema
    return None


def _likelihood_fields(top: int) -> dict[str, Any]:
    """Return fields that request likelihoods; at temperature 0 some servers return that of the chosen token alone."""
    return {"logprobs": True, "top_logprobs": top, "temperature": 1.0}


def _likelihoods(endpoint: Endpoint) -> tuple[int, Usage]:
    """Return the number of likely first tokens that the server returns, 0 if none are plausible, and the cost."""
    usage = Usage()
    for top in _TOP:
        bodies = []
        for text in _PROBES:
            bodies.append(endpoint.body([{"role": "user", "content": text}], 1, **_likelihood_fields(top)))
        deliveries = endpoint.post(bodies)
        usage = sum((read_reply(delivery).cost for delivery in deliveries), usage)
        tables = [first_token(delivery) for delivery in deliveries]
        if all(tables) and tables[0] != tables[1]:
            return top, usage
        if all(delivery.status is Status.OK for delivery in deliveries):
            break  # the server ignores the fields, so a smaller number changes nothing
    return 0, usage
