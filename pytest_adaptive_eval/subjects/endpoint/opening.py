"""Reaching a model on an OpenAI-compatible server: the settings, the first look, and who it is taken to be."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pytest_adaptive_eval.checks import check_count, check_decoding
from pytest_adaptive_eval.errors import AdaptiveEvalWarning, ConfigError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.subjects.agent import Reply
from pytest_adaptive_eval.subjects.base import SubjectIdentity, Usage
from pytest_adaptive_eval.subjects.endpoint.additions import read_additions
from pytest_adaptive_eval.subjects.endpoint.body import excerpt
from pytest_adaptive_eval.subjects.endpoint.bounds import Bounds, context_length
from pytest_adaptive_eval.subjects.endpoint.chat import read_reply
from pytest_adaptive_eval.subjects.endpoint.decoding import NEUTRAL, find_accepted_fields
from pytest_adaptive_eval.subjects.endpoint.identity import Answerer, check_accept_models
from pytest_adaptive_eval.subjects.endpoint.outcome import Delivery
from pytest_adaptive_eval.subjects.endpoint.secrets import from_environment
from pytest_adaptive_eval.subjects.endpoint.wire import Wire

__all__ = ["Endpoint", "connect"]

#: What it warns of is shown on the terminal at once.
_LOGGER = logging.getLogger("pytest_adaptive_eval")
_CHAT = "/chat/completions"
#: What a server says of a model that changes by itself.
_PASSING = frozenset({"created", "permission", "status"})
#: Fields of a request that are not the user's to set.
_OURS = frozenset({"model", "messages", "stream", "n", "tools", "tool_choice", "functions", "logprobs", "top_logprobs"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model on a server that was seen to answer.

    Parameters
    ----------
    wire : Wire
    identity : SubjectIdentity
    model : str
        As the server names it.
    answerer : Answerer
        Checks which model each reply comes from.
    bounds : Bounds
        Checks whether a prompt or an answer was cut.
    settings : mapping
        Further fields of each request.
    temperature : float
    seed : int
    first : Usage
        What seeing it cost.
    """

    wire: Wire
    identity: SubjectIdentity
    model: str
    answerer: Answerer
    bounds: Bounds
    settings: Mapping[str, Any]
    temperature: float
    seed: int
    first: Usage

    def body(self, messages: Sequence[Mapping[str, Any]], max_tokens: int, sample: int = 0, **more: Any) -> bytes:
        """Write a request; further draws of the same prompt have seeds of their own."""
        return _body(
            self.model, messages, {**_decoding(max_tokens, self.temperature, self.seed, sample), **more}, self.settings
        )

    def post(
        self,
        bodies: Sequence[bytes | Callable[[], bytes]],
        arrived: Callable[[int, Delivery], object] | None = None,
    ) -> list[Delivery]:
        """Send chats.  A reply of another model than the accepted ones is a delivery with status ``error``.

        `arrived` gets each delivery with its place as soon as it is there, in the thread of the connections.
        """
        if arrived is None:
            return [self.answerer.check(delivery) for delivery in self.wire.post(_CHAT, bodies)]
        return self.wire.post(_CHAT, bodies, lambda place, one: arrived(place, self.answerer.check(one)))

    def read(self, delivery: Delivery, max_tokens: int) -> Reply:
        """Tell what a delivery says, given the cap on its tokens."""
        return self.bounds.check(read_reply(delivery), max_tokens)


def connect(
    url: str,
    model: str,
    decoding: Mapping[str, Any],
    *,
    key_env: str,
    revision: str,
    temperature: float,
    seed: int,
    timeout: float,
    concurrency: int,
    rate: float | None,
    retries: int,
    start_timeout: float,
    proxy: str | None,
    extra: Mapping[str, Any] | None,
    headers: Mapping[str, str] | None,
    query: Mapping[str, str] | None,
    accept_models: Sequence[str],
) -> Endpoint:
    """Check the settings, reach the server, and see one token of the model.

    Parameters
    ----------
    url, model, key_env, revision, temperature, seed, timeout, concurrency, rate, retries, start_timeout, proxy, \
    extra, headers, query
        As of `pytest_adaptive_eval.subjects.endpoint.subject.EndpointSubject.load`.
    accept_models
        As there.
    decoding : mapping
        Settings to record besides these.

    Raises
    ------
    ConfigError
        A setting is out of its range, or the server cannot be reached, wants
        another key, or does not answer as the protocol says.
    """
    base = _base(url, model)
    check_count("concurrency", concurrency)
    check_count("retries", retries, least=0)
    if not (isinstance(start_timeout, int | float) and 0.0 <= start_timeout < math.inf):
        raise ConfigError(f"start_timeout is {start_timeout!r}, expected seconds, 0 or more")
    for name, number in (("timeout", timeout), ("rate", rate)):
        if number is not None and not (isinstance(number, int | float) and 0.0 < number < math.inf):
            raise ConfigError(f"{name} is {number!r}, expected a number above 0")
    check_decoding(temperature, seed)
    if not isinstance(extra, Mapping | None):
        raise ConfigError(f"extra is {extra!r:.80}, expected settings by name, such as {{ top_p = 0.9 }}")
    settings = dict(extra or {})
    if wrong := sorted(_OURS & set(settings)):
        raise ConfigError(f"extra sets {', '.join(wrong)}, which is not left to it; remove it there")
    _check_proxy(proxy)
    additions = read_additions(headers, query)
    environment: dict[str, Any] = {}
    answerer = Answerer(model, check_accept_models(accept_models), environment)
    wire = Wire(
        base,
        key=from_environment(key_env),
        timeout=timeout,
        concurrency=concurrency,
        rate=rate,
        retries=retries,
        proxy=proxy,
        additions=additions,
        seed=seed,
    )
    neutral = {name: value for name, value in NEUTRAL.items() if name not in settings}
    usage = Usage()

    def probe(fields: Mapping[str, Any]) -> Delivery:
        nonlocal usage
        hello = [{"role": "user", "content": "Hi"}]
        body = _body(model, hello, _decoding(1, temperature, seed, 0), {**fields, **settings})
        (delivery,) = wire.post(_CHAT, [body])
        usage += read_reply(delivery).usage
        return answerer.check(delivery)

    try:
        told, listed = _told(wire, model, key_env, start_timeout)
        accepted, delivery = find_accepted_fields(probe, neutral)
        reply = read_reply(delivery)
        if reply.status.infrastructure:
            raise ConfigError(_why(base, model, delivery, reply.detail, key_env, listed))
    except BaseException:
        wire.close()
        raise
    if listed and told is None:
        names = ", ".join(f"{name!r:.60}" for name in listed[:5])
        warnings.warn(
            AdaptiveEvalWarning(f"{base} lists {names} and not {model}, and answers to that name all the same"),
            stacklevel=2,
        )
    bounds = Bounds(context_length(told), reports_caps=reply.status is Status.TRUNCATED)
    bounds.warn_if_blind(reply)
    refused = [name for name in neutral if name not in accepted]
    told_by = [base, model, told, revision, *([additions.written] if additions.written else [])]
    environment |= {
        "endpoint": base,
        "weights": "not known: a server is taken at its word",
        "seed heeded": "not known" if temperature else "not needed",
        **({"revision": revision} if revision else {}),
        **({"concurrency": concurrency} if concurrency > 1 else {}),
        **additions.names,
        **({"context": bounds.context} if bounds.context else {}),
        # at temperature 0 these make the decoding what it is said to be; above 0 they belong to it, see below
        **({} if temperature else {"decoding fields sent": dict(accepted)}),
        **({"decoding fields refused": refused} if refused else {}),
    }
    identity = SubjectIdentity(
        model,
        hashlib.sha256(json.dumps(told_by, sort_keys=True).encode()).hexdigest(),
        {
            **decoding,
            "temperature": float(temperature),
            "seed": seed if temperature else None,
            "template": "chat",
            "images": "png",
            **({"extra": settings} if settings else {}),
            **({"sent": dict(accepted)} if temperature else {}),
        },
        environment,
    )
    return Endpoint(wire, identity, model, answerer, bounds, {**accepted, **settings}, float(temperature), seed, usage)


def _base(url: str, model: str) -> str:
    """Check the address that paths are added to."""
    if "@" in url:
        raise ConfigError(  # not shown: it is a secret
            "the address of the model holds a user name or a password, which would be recorded; expected "
            "http://HOST:PORT/v1#MODEL, with the key in an environment variable that key_env names"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"model {url!r} is no URL: {error}; expected http://HOST:PORT/v1#MODEL") from None
    fault = ""
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        fault = "is no address of a server"
    elif parts.query or parts.fragment or not url.isprintable() or not url.isascii() or " " in url:
        fault = "has more than an address and a path"
    elif re.search(r"/(chat/)?completions/?$", parts.path):
        fault = "names a path below the one that is wanted"
    elif not model or not model.isprintable():
        raise ConfigError(
            f"model {url!r} names {'no model' if not model else f'the model {model!r}'}; expected "
            f"{url}#MODEL, with a name of those that {url.rstrip('/')}/models lists"
        )
    if fault:
        raise ConfigError(f"model {url!r} {fault}; expected http://HOST:PORT/v1#MODEL")
    return url.rstrip("/")


def _check_proxy(proxy: str | None) -> None:
    try:
        parts = urlsplit(proxy or "http://none")
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (TypeError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise ConfigError("proxy is no URL of a proxy; expected http://HOST:PORT")  # not shown: it may hold a password


def _told(wire: Wire, model: str, key_env: str, start_timeout: float) -> tuple[Mapping[str, Any] | None, list[str]]:
    """What the server says of a model, as far as it stays the same, and the names of those it lists."""
    delivery = wire.get("/models", start_timeout=start_timeout, tell=_LOGGER.warning)
    if delivery.code in (0, 401, 403) and delivery.status is not Status.OK:
        raise ConfigError(_why(wire.url, model, delivery, delivery.detail, key_env, []))
    entries = delivery.data.get("data")
    named = [
        entry
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("id"), str)
    ]
    told = next((entry for entry in named if entry["id"] == model), None)
    lasting = None if told is None else {name: value for name, value in told.items() if name not in _PASSING}
    return lasting, [entry["id"] for entry in named]


def _why(base: str, model: str, delivery: Delivery, detail: str, key_env: str, listed: Sequence[str]) -> str:
    """Say why a model cannot be used, and what to do."""
    if "no connected db" in detail.lower():
        do = (
            "mend the key, the variable that key_env names: LiteLLM says this of every key but its master key where it "
            "runs without a database"
        )
    elif delivery.code == 404 and model in listed:
        do = (
            "start the server again, or mend the path of the address: it lists this model and does not answer for it, "
            "as MLX-LM does when its generating thread has died"
        )
    elif delivery.code in (401, 403):
        do = f"mend the key in {key_env!r}" if key_env else "name the environment variable of its key by key_env"
    elif not delivery.code:
        do = "start the server, or mend the address"
    elif delivery.code == 404:
        do = "mend the name of the model, or the path of the address, which most servers want to end in /v1"
    else:
        do = "see what the server logs, or name another"
    names = ", ".join(excerpt(name) for name in listed[:10]) + (", ..." if len(listed) > 10 else "")
    has = f" (it lists {names})" if listed and model not in listed else ""
    return (
        f"model {model!r} at {base} gives no answers: {detail}; expected an OpenAI-compatible server at "
        f"{base}{_CHAT}{has}: {do}"
    )


def _body(
    model: str, messages: Sequence[Mapping[str, Any]], decoding: Mapping[str, Any], settings: Mapping[str, Any]
) -> bytes:
    fields = {"model": model, "messages": messages, "stream": False, **decoding, **settings}
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), allow_nan=False).encode("ascii")


def _decoding(max_tokens: int, temperature: float, seed: int, sample: int) -> dict[str, Any]:
    drawn = int.from_bytes(hashlib.sha256(f"{seed} {sample}".encode()).digest()[:4], "big") >> 1
    return {"max_tokens": max_tokens, "temperature": temperature, "seed": drawn if temperature else None}
