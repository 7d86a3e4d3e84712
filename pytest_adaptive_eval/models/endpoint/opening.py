"""Connect to a model on an OpenAI-compatible server, check that it answers, and identify it."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import Completion, SubjectIdentity, Usage
from pytest_adaptive_eval.models.caps import Cap, cap_of
from pytest_adaptive_eval.models.endpoint.body import excerpt
from pytest_adaptive_eval.models.endpoint.chat import APIS, Api, Question, read_reply
from pytest_adaptive_eval.models.endpoint.identity import Answerer
from pytest_adaptive_eval.models.endpoint.outcome import Body, Delivered, Delivery
from pytest_adaptive_eval.models.endpoint.settings import (
    AUTHORIZATION,
    Additions,
    EndpointSettings,
    is_server,
    key_from_environment,
    read_additions,
)
from pytest_adaptive_eval.models.endpoint.wire import MOST_CONCURRENCY, START_CONCURRENCY, Wire
from pytest_adaptive_eval.text import shown_address

#: Logger whose warnings the terminal shows at once.
_LOGGER = logging.getLogger("pytest_adaptive_eval")
#: Fields of a server's entry for a model that change while the model stays the same.
_VOLATILE = frozenset({"created", "permission", "status"})


#: Fields that cap an answer: the usual one, and that of models that refuse it, such as those that reason at OpenAI.
_CAP_FIELDS = ("max_tokens", "max_completion_tokens")
#: Settings that do not change what is asked: who is reached, how, and how fast.
_CONNECTION = frozenset(
    {"key_env", "proxy", "headers", "query", "timeout", "concurrency", "rate", "retries", "start_timeout"}
)


class Opening(msgspec.Struct, frozen=True):
    """First replies of a server about itself, which decide the form of all requests.

    Args:
        accepted: Neutral fields that it takes.
        cap_field: Field of a request that caps its answer.
        reasons: Whether the model reasons before it answers.
        schemas: Whether it takes a JSON Schema of the reply; None until a request has had one.
        refusal: Its words where it does not.
    """

    accepted: dict[str, int | float] = {}
    cap_field: str = "max_tokens"
    reasons: bool = False
    schemas: bool | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model on a server that has answered once.

    Args:
        checkpoint: Hash of what the server states of the model.
        answerer: Checks which model each reply comes from.
        bounds: Checks whether a prompt or an answer was cut.
        usage: Cost of connecting.
    """

    wire: Wire
    model: str
    checkpoint: str
    environment: dict[str, Any]
    settings: EndpointSettings
    opening: Opening
    answerer: Answerer
    bounds: Bounds
    usage: Usage

    @property
    def api(self) -> Api:
        """Path of the requests."""
        return APIS[self.settings.api]

    @property
    def fields(self) -> Mapping[str, Any]:
        """Fields of each request beside the question and the decoding."""
        return {**self.opening.accepted, **self.settings.fields}

    @property
    def cap(self) -> Cap:
        """Cap on answers: the user's, or the default for such a model."""
        reasons = self.opening.reasons if self.settings.reasoning is None else self.settings.reasoning
        return cap_of(self.settings.max_tokens, reasons=reasons, context=self.bounds.context)

    @property
    def decoding(self) -> dict[str, Any]:
        """Settings that can change an answer, for the identity."""
        settings = self.settings
        decoding: dict[str, Any] = {
            "max_tokens": self.cap.tokens,
            "temperature": settings.temperature,
            "seed": settings.seed if settings.temperature else None,
            "template": self.api.template,
            "images": "png",
        }
        if settings.fields:
            decoding["extra"] = dict(settings.fields)
        if settings.temperature:
            decoding["sent"] = dict(self.opening.accepted)
        return decoding

    @property
    def identity(self) -> SubjectIdentity:
        """Identity of the model as it is asked."""
        return SubjectIdentity(self.model, self.checkpoint, self.decoding, self.environment)

    @property
    def settings_hash(self) -> str:
        """Hash of the settings that the form of requests rests on, without addresses and keys."""
        settings = msgspec.to_builtins(self.settings, enc_hook=str)
        stated = {}
        for name, value in settings.items():
            if name not in _CONNECTION:
                stated[name] = value
        return hashlib.sha256(json.dumps([self.model, stated], sort_keys=True).encode()).hexdigest()

    @property
    def samples(self) -> bool:
        """Whether equal requests may have different answers: the temperature is not 0."""
        # without one, the server's own
        return bool(self.fields.get("temperature", self.settings.temperature) != 0)

    def body(self, question: Question, max_tokens: int, sample: int = 0, **fields: Any) -> bytes:
        """Return the body of a request; each draw of the same prompt has a seed of its own."""
        settings = self.settings
        decoding = _decoding(max_tokens, settings.temperature, settings.seed, sample, self.opening.cap_field)
        return _body(self.model, {self.api.field: question}, {**decoding, **fields}, self.fields)

    def post(self, bodies: Sequence[Body], arrived: Delivered | None = None) -> list[Delivery]:
        """Send requests, see `Wire.post`; a reply of a model that is not accepted has status ``error``."""
        if arrived is None:
            return [self.answerer.check(delivery) for delivery in self.wire.post(self.api.path, bodies)]
        return self.wire.post(self.api.path, bodies, self._checking(arrived))

    def begin(self, bodies: Sequence[Body], arrived: Delivered) -> Future[list[Delivery]]:
        """Send requests like `post`, without waiting for the deliveries."""
        return self.wire.begin(self.api.path, bodies, self._checking(arrived))

    def _checking(self, arrived: Delivered) -> Delivered:
        """Return `arrived` with a check of the delivery's model before it."""
        return lambda index, delivery: arrived(index, self.answerer.check(delivery))

    def read(self, delivery: Delivery, max_tokens: int, *, tools: bool = False) -> Completion:
        """Return the reply in a delivery, given the cap on its tokens, and whether tools were offered."""
        # only chats have tools
        if tools:
            reply = read_reply(delivery, tools=True)
        else:
            reply = self.api.read(delivery)
        return self.bounds.check(reply, max_tokens)


def connect(url: str, model: str, settings: EndpointSettings) -> Endpoint:
    """Connect to the server, and get one token from the model.

    Args:
        url, model: See `pytest_adaptive_eval.models.endpoint.model.EndpointModel.load`.

    Raises:
        ConfigError: A setting is out of its range, or the server cannot be reached, requires another key, or does not
            follow the protocol.
    """
    base = _base(url, model)
    additions = read_additions(settings.headers, settings.query)
    if settings.key_env and AUTHORIZATION in map(str.lower, additions.headers):
        raise ConfigError("key_env and the header Authorization both hold a key; expected one: remove the other")
    environment: dict[str, Any] = {}
    answerer = Answerer(model, settings.accept_models, environment)
    wire = Wire(
        base,
        key=key_from_environment(settings.key_env),
        timeout=settings.timeout,
        concurrency=settings.concurrency,
        rate=settings.rate,
        retries=settings.retries,
        proxy=settings.proxy,
        additions=additions,
        seed=settings.seed,
    )
    api = APIS[settings.api]
    first = _FirstRequest(wire, model, api, settings, answerer)
    try:
        entry, listed = _list_models(wire, model, api, settings)
        delivery = first.send()
        if first.cap_field != _CAP_FIELDS[0]:
            environment["cap_field"] = first.cap_field
        reply = api.read(delivery)
        if reply.status.infrastructure:
            raise ConfigError(_no_answers(base, model, api, delivery, reply.detail, settings.key_env, listed))
    except BaseException:
        wire.close()
        raise
    accepted = first.accepted
    if listed and entry is None:
        names = ", ".join(f"{name!r:.60}" for name in listed[:5])
        warnings.warn(
            AdaptiveEvalWarning(f"{base} lists {names} and not {model}, and answers to that name all the same"),
            stacklevel=2,
        )
    bounds = Bounds(context_length(entry), reports_caps=reply.status is Status.TRUNCATED)
    bounds.warn_if_blind(reply)
    environment |= _environment(base, settings, additions, bounds.context, accepted, first.neutral)
    stated = [base, model, entry, settings.revision, *([additions.written] if additions.written else [])]
    return Endpoint(
        wire,
        model,
        hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest(),
        environment,
        settings,
        Opening(dict(accepted), first.cap_field, _reasons(entry, reply)),
        answerer,
        bounds,
        first.usage,
    )


class _FirstRequest:
    """A greeting, sent until the server takes its fields.

    Attributes:
        accepted: Neutral fields that the server takes.
        cap_field: Name of the field that caps an answer.
        usage: Cost of all tries.
    """

    def __init__(self, wire: Wire, model: str, api: Api, settings: EndpointSettings, answerer: Answerer) -> None:
        self._wire = wire
        self._model = model
        self._api = api
        self._settings = settings
        self._answerer = answerer
        self.neutral = {name: value for name, value in NEUTRAL.items() if name not in settings.fields}
        self.accepted: Mapping[str, Any] = {}
        self.usage = Usage()
        self.cap_field = _CAP_FIELDS[0]
        self._tokens = 1

    def send(self) -> Delivery:
        """Return the reply to the greeting, at its best with the usual fields and a cap of one token."""
        delivery = self._try()
        usual, other = _CAP_FIELDS
        # the server may take the other field alone, whatever it says of this one
        if _refuses(delivery) and least_tokens(delivery.detail) is None:
            self.cap_field = other
            with_other = self._try()
            is_named = _names_cap(delivery) and not (_refuses(with_other) and _names_cap(with_other))
            if is_named or with_other.status is Status.OK:
                delivery = with_other
                _LOGGER.warning("%s takes %s in place of %s, which is sent from now on", self._model, other, usual)
            else:
                self.cap_field = usual
        if _refuses(delivery) and re.search(r"max\w*tokens|minimum", delivery.detail):
            most = cap_of(self._settings.max_tokens, reasons=bool(self._settings.reasoning)).tokens
            self._tokens = least_tokens(delivery.detail) or most
            if self._tokens > most:
                raise ConfigError(
                    f"model {self._model!r} at {self._wire.url} takes caps of at least {self._tokens} tokens, and "
                    f"max_tokens is {most}; set max_tokens = {self._tokens} or more"
                )
            delivery = self._try()
        return delivery

    def _try(self) -> Delivery:
        self.accepted, delivery = find_accepted_fields(self._probe, self.neutral)
        return delivery

    def _probe(self, fields: Mapping[str, Any]) -> Delivery:
        api, settings = self._api, self._settings
        decoding = _decoding(self._tokens, settings.temperature, settings.seed, 0, self.cap_field)
        body = _body(self._model, {api.field: api.greeting}, decoding, {**fields, **settings.fields})
        (delivery,) = self._wire.post(api.path, [body])
        self.usage += api.read(delivery).cost
        return self._answerer.check(delivery)


def _names_cap(delivery: Delivery) -> bool:
    return re.search(r"\bmax\w*tokens\b", delivery.detail) is not None


def _reasons(entry: Mapping[str, Any] | None, reply: Completion) -> bool:
    """Return whether the server's entry for a model, or its first reply, says that it reasons before it answers."""
    parameters = (entry or {}).get("supported_parameters")
    listed = isinstance(parameters, list) and bool({"reasoning", "include_reasoning"} & set(map(str, parameters)))
    return listed or bool(reply.reasoning or reply.cost.reasoning_tokens)


def _environment(
    base: str,
    settings: EndpointSettings,
    additions: Additions,
    context: int,
    accepted: Mapping[str, Any],
    neutral: Mapping[str, Any],
) -> dict[str, Any]:
    """Return facts about the server and the connection, for the record."""
    environment: dict[str, Any] = {
        "endpoint": base,
        "weights": "not known: a server is taken at its word",
        "seed heeded": "not known" if settings.temperature else "not needed",
    }
    if settings.revision:
        environment["revision"] = settings.revision
    if settings.concurrency != 1:
        environment["concurrency"] = settings.concurrency or f"{START_CONCURRENCY} to {MOST_CONCURRENCY}"
    environment |= additions.names
    if context:
        environment["context"] = context
    if not settings.temperature:  # above 0 they belong to the decoding, see `_recorded_decoding`
        environment["decoding fields sent"] = dict(accepted)
    if refused := [name for name in neutral if name not in accepted]:
        environment["decoding fields refused"] = refused
    return environment


def _base(url: str, model: str) -> str:
    """Return the address that paths are added to."""
    if "@" in url:
        raise ConfigError(  # the address is not shown: it holds a secret
            "the address of the model holds a user name or a password, which would be recorded; expected "
            "http://HOST:PORT/v1#MODEL, with the key in an environment variable that key_env names"
        )
    address = shown_address(url)  # the query may hold a secret, and so may an address that cannot be read
    check_faults(_address_faults(url, model), f"model {address!r}")
    return url.rstrip("/")


def _address_faults(url: str, model: str) -> Iterator[str]:
    expected = "; expected http://HOST:PORT/v1#MODEL"
    if not is_server(url):
        yield f"this is not the address of a server{expected}"
    parts = urlsplit(url)
    if "?" in url or "?" in model:
        yield f"it has a query (not shown, it may hold a key), which the option query sets{expected}"
    if parts.fragment or not re.fullmatch("[!-~]+", url):
        yield f"it has more than an address and a path{expected}"
    if re.search(r"/(chat/)?completions/?$", parts.path):
        yield f"it names a path below the base of the API{expected}"
    if not model or not model.isprintable():
        yield (
            f"it names {f'the model {model!r}' if model else 'no model'}; expected {url}#MODEL, with one of the names "
            f"that {url.rstrip('/')}/models lists"
        )


def _list_models(
    wire: Wire, model: str, api: Api, settings: EndpointSettings
) -> tuple[Mapping[str, Any] | None, list[str]]:
    """Return the server's entry for a model without its volatile fields, None if unlisted, and all listed names."""
    delivery = wire.get("/models", start_timeout=settings.start_timeout, tell=_LOGGER.warning)
    if delivery.code in (0, 401, 403) and delivery.status is not Status.OK:
        raise ConfigError(_no_answers(wire.url, model, api, delivery, delivery.detail, settings.key_env, []))
    data = delivery.data.get("data")
    entries: dict[str, dict[str, Any]] = {}
    for entry in data if isinstance(data, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("id"), str):
            entries.setdefault(entry["id"], entry)
    stable = None
    if model in entries:
        stable = {}
        for name, value in entries[model].items():
            if name not in _VOLATILE:
                stable[name] = value
    return stable, [*entries]


def _no_answers(
    base: str, model: str, api: Api, delivery: Delivery, detail: str, key_env: str, listed: Sequence[str]
) -> str:
    """Return the sentence for a model that cannot be used: the reason, and the fix."""
    names = ", ".join(excerpt(name) for name in listed[:10]) + (", ..." if len(listed) > 10 else "")
    if listed and model not in listed:
        has = f" (it lists {names})"
    else:
        has = ""
    return (
        f"model {model!r} at {base} gives no answers: {detail}; expected an OpenAI-compatible server at "
        f"{base}{api.path}{has}: {_fix(delivery, key_env, model in listed)}"
    )


def _fix(delivery: Delivery, key_env: str, listed: bool) -> str:
    """Return what a user can do about a server that gives no answers."""
    if "no connected db" in delivery.detail.lower():
        return (
            "fix the key, the variable that key_env names: LiteLLM says this of every key but its master key where it "
            "runs without a database"
        )
    if _refuses(delivery) and re.search(r"\btemperature\b", delivery.detail):
        return (
            "this server does not take the temperature that was sent: set another one, or leave it to the server by "
            'omit = ["temperature"] in the model\'s options, where decoding may sample and repeated answers differ'
        )
    if delivery.code == 404 and listed:
        return (
            "start the server again, or fix the path of the address: it lists this model and does not answer for it, "
            "as MLX-LM does when its generating thread has died"
        )
    if delivery.code in (401, 403):
        if key_env:
            return f"fix the key in {key_env!r}"
        return "name the environment variable of its key by key_env"
    if not delivery.code:
        return "start the server, or fix the address"
    if delivery.code == 404:
        return "fix the name of the model, or the path of the address, which ends in /v1 on most servers"
    return "see what the server logs, or name another"


def _body(
    model: str, question: Mapping[str, Question], decoding: Mapping[str, Any], fields: Mapping[str, Any]
) -> bytes:
    """Return a request as JSON; fields that are None are left out."""
    values = {"model": model, **question, "stream": False, **decoding, **fields}
    sent = {}
    for name, value in values.items():
        if value is not None:
            sent[name] = value
    return json.dumps(sent, separators=(",", ":"), allow_nan=False).encode("ascii")


def _decoding(max_tokens: int, temperature: float, seed: int, sample: int, cap_field: str) -> dict[str, Any]:
    """Return the fields of a request that say how tokens are chosen."""
    sample_seed = int.from_bytes(hashlib.sha256(f"{seed} {sample}".encode()).digest()[:4], "big") >> 1
    return {cap_field: max_tokens, "temperature": temperature, "seed": sample_seed if temperature else None}


#: Fields of a model's entry with the context length: vLLM and SGLang, OpenRouter, LM Studio.
_LENGTHS = ("max_model_len", "context_length", "loaded_context_length")
#: Fields of llama.cpp with the context length: as it runs, else as the model was trained.
_LLAMA_LENGTHS = ("n_ctx", "n_ctx_train")


def context_length(entry: Mapping[str, Any] | None) -> int:
    """Return the limit of prompt and answer tokens together, from a server's entry for a model; 0 if unknown."""
    fields = entry or {}
    meta = fields.get("meta")
    candidates = [fields.get(name) for name in _LENGTHS]
    for name in _LLAMA_LENGTHS:
        if isinstance(meta, Mapping):
            candidates.append(meta.get(name))
    for length in candidates:
        if isinstance(length, int) and length > 0:
            return int(length)
    return 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Observed behaviour of a server at the end of its context and of an answer.

    Args:
        context: Limit of prompt and answer tokens together; 0 if unknown.
        reports_caps: Whether a reply that reached its cap had the finish reason ``length``.
    """

    context: int
    reports_caps: bool

    def check(self, reply: Completion, max_tokens: int) -> Completion:
        """Return the reply, with another status if its prompt or text was cut although it says ``stop``."""
        if reply.status is not Status.OK:
            return reply
        prompt = reply.cost.prompt_tokens
        answer = reply.cost.completion_tokens
        if self.context and prompt + answer > self.context + 1:  # some count the token that ends an answer
            detail = (
                f"prompt and answer have {prompt} + {answer} tokens, and the server's context has {self.context}: it "
                "ran over, or cut the prompt; raise its context, or shorten the prompt"
            )
            return replace(reply, status=Status.ERROR, detail=detail)
        if self.context and prompt and prompt + max_tokens == self.context:
            detail = (
                f"the prompt has {prompt} tokens, which with the cap of {max_tokens} fill the server's context of "
                f"{self.context} exactly: it was cut to fit; raise the context, or shorten the prompt"
            )
            return replace(reply, status=Status.ERROR, detail=detail)
        if not self.reports_caps and answer >= max_tokens:
            detail = (
                f"the answer has {answer} tokens, its cap is {max_tokens}, and this server does not say when it cuts "
                "an answer"
            )
            return replace(reply, status=Status.TRUNCATED, detail=detail)
        return reply

    def warn_if_blind(self, reply: Completion) -> None:
        """Warn if cut answers cannot be detected, given the reply to a request with a cap of one token."""
        if reply.status is Status.OK and not self.reports_caps and not reply.cost.completion_tokens:
            warnings.warn(
                AdaptiveEvalWarning(
                    "the server neither says when it cuts an answer nor counts its tokens, so a cut answer counts "
                    "as complete: give max_tokens so high that no answer reaches it"
                ),
                stacklevel=2,
            )


#: Values without effect.  Without them servers use their own, often those of a checkpoint's generation_config.  vLLM
#: and llama.cpp take all of them from the request; `transformers serve` sets its repetition penalty to 1 + the
#: frequency penalty; `repeat_penalty` is llama.cpp's name for `repetition_penalty`.
NEUTRAL: Mapping[str, float] = {
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
#: HTTP status codes by which a server refuses a field.
REFUSALS = frozenset({400, 422})


def find_accepted_fields(
    probe: Callable[[Mapping[str, Any]], Delivery], fields: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Delivery]:
    """Send a request with all fields, and again without the ones that the server refuses.

    Args:
        probe: Sends one short request with the given fields.

    Returns:
        accepted: The fields that the server did not refuse.
        delivery: The last reply with all of them; a failure if the request fails without any of them, too.
    """
    remaining = dict(fields)
    delivery = probe(remaining)
    while remaining and _refuses(delivery):
        named = []
        for name in remaining:
            if re.search(rf"(?<!\w){name}(?!\w)", delivery.detail):
                named.append(name)
        if not named:
            return _one_by_one(probe, remaining, delivery)
        remaining = {name: value for name, value in remaining.items() if name not in named}
        delivery = probe(remaining)
    return remaining, delivery


def least_tokens(detail: str) -> int | None:
    """Return the least cap that a refusal names, as in ``Expected a value >= 16``; None if it names none."""
    limit = re.search(
        r"(?:>=|at least|minimum(?: value)?(?: is| of)?:?|greater than or equal to)\s*(\d{1,6})\b", detail
    )
    if limit:
        return int(limit[1])
    return None


def _one_by_one(
    probe: Callable[[Mapping[str, Any]], Delivery], fields: Mapping[str, Any], refused: Delivery
) -> tuple[Mapping[str, Any], Delivery]:
    """Add the fields one at a time, because the server does not name the ones that it refuses."""
    accepted: dict[str, Any] = {}
    last = probe(accepted)
    if last.status is not Status.OK:
        return accepted, last if _refuses(last) else refused
    for name, value in fields.items():
        delivery = probe({**accepted, name: value})
        if delivery.status is Status.OK:
            accepted[name], last = value, delivery
    return accepted, last


def _refuses(delivery: Delivery) -> bool:
    return delivery.code in REFUSALS and delivery.status is Status.ERROR
