"""Options of a model on a server, the same for subjects and agents."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlencode, urlsplit

import msgspec

from pytest_adaptive_eval.api_keys import Secret, hide_from_now_on
from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.typed_tables import Count, FiniteSize, Index, Share, Table

#: Fields of a request that `EndpointSettings.extra` may not set.
_RESERVED_FIELDS = frozenset(
    {"model", "messages", "prompt", "stream", "n", "best_of", "tools", "tool_choice", "functions", "suffix"}
    | {"logprobs", "top_logprobs", "prompt_logprobs", "echo"}
)
#: A time or a rate, neither 0 nor endless.
_Finite = Annotated[float, msgspec.Meta(gt=0.0, le=1e9)]


class EndpointSettings(Table, frozen=True):
    """Options of a model on a server.

    Args:
        key_env: Environment variable that holds the API key. No key is sent if empty.
        max_tokens: Cap on the tokens of an answer, reasoning included. 1024 by default, 16384 for a model that reasons,
            and at most half of the server's context.
        reasoning: Whether the model reasons before it answers; by default what the server says.
        revision: Your own name for the weights behind the model's name, which a server does not state. Change it when
            the weights change, so no earlier answer is reused.
        temperature: 0 is greedy.
        top_p: Share of the probability that sampling is limited to.
        seed: Seed of the sampling, if the server uses it, and of the waits between retries.
        concurrency: Requests at once. By default 8 at first, and up to 64 while that raises throughput; a number is the
            start and the upper limit. Refusals and timeouts lower it for a while.
        timeout: Seconds for an answer, with all tries and the waits between them.
        retries: Retries of one request after HTTP 500 or a broken connection, while the server answers others. Requests
            wait within `timeout` for a server that answers none, or that requests come too fast for.
        start_timeout: Seconds to wait at first for a server that refuses connections or is starting.
        proxy: URL of a proxy. The environment's proxies are not used.
        extra: Further fields of each request, recorded with the answers. None removes a field that is otherwise sent.
        omit: Fields that are left out of each request, as ``["temperature"]`` for models that take only their own one.
            Their decoding then counts as sampling.
        headers, query: Headers and query fields of each request. ``"$NAME"`` is the value of an environment variable.
        accept_models: Names that replies may carry besides the model's. A reply of any other model is an error.
        api: ``completions`` sends the bare prompt, as a model without a chat template needs it.
        likelihoods: How log-likelihoods of given texts are asked for. Some servers die of an echo.
        begin_text: Text of the token that begins a document, for texts without a prompt on servers that put none before
            them.

    Raises:
        ConfigError: An option is out of its range.
    """

    key_env: str = ""
    max_tokens: Count | None = None
    reasoning: bool | None = None
    revision: str = ""
    temperature: FiniteSize = 0.0
    top_p: Share | None = None
    seed: int = 0
    timeout: _Finite = 120.0
    concurrency: Count | None = None
    rate: _Finite | None = None
    retries: Index = 3
    start_timeout: FiniteSize = 120.0
    proxy: Any = None  # this and the next two may hold a password or a key, which no error shows
    headers: Any = None
    query: Any = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict)
    omit: tuple[str, ...] = ()
    accept_models: tuple[str, ...] = ()
    api: Literal["chat", "completions"] = "chat"
    likelihoods: Literal["prompt_logprobs", "echo"] = "prompt_logprobs"
    begin_text: str = ""

    def __post_init__(self) -> None:
        check_faults(self._faults())

    def __repr__(self) -> str:
        return "EndpointSettings(...)"

    def _faults(self) -> Iterator[str]:
        reserved = sorted(_RESERVED_FIELDS & set(self.extra))
        if reserved:
            yield f"extra sets {', '.join(reserved)}, which it may not set; remove it there"
        needed = {"model", "messages", "prompt", *self.extra} & set(self.omit)
        if needed:
            names = ", ".join(sorted(needed))
            yield f"omit leaves out {names}, which extra sets or each request needs; remove it there"
        if not is_server(self.proxy or "http://none"):
            yield "proxy is not the URL of a proxy; expected http://HOST:PORT"

    @property
    def fields(self) -> Mapping[str, Any]:
        """Further fields of each request, as the user set them."""
        fields = {} if self.top_p is None else {"top_p": self.top_p}
        return {**fields, **self.extra, **dict.fromkeys(self.omit)}


def is_server(url: str) -> bool:
    """Return whether a text is the URL of a server."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (TypeError, ValueError, AttributeError):
        return False


#: Header of a key that is no bearer token; its value is not recorded.
AUTHORIZATION = "authorization"
#: Headers that the form of the request determines.
_RESERVED = frozenset(
    {"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "accept-encoding"}
    | {"expect", "te", "trailer", "upgrade", "proxy-authorization", "keep-alive"}
)


@dataclass(frozen=True, slots=True)
class Additions:
    """Headers and query fields that are added to each request.

    Args:
        query: Query, percent-encoded, without the question mark.
        written: Values that did not come from the environment and may be recorded, by option and name.
        names: Names of headers and query fields by option, for the record.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    written: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, list[str]] = field(default_factory=dict)


def read_additions(headers: object, query: object) -> Additions:
    """Return the options ``headers`` and ``query``, with values of variables ``"$NAME"``; or raise ConfigError."""
    values: dict[str, dict[str, str]] = {}
    written: dict[str, dict[str, str]] = {}
    for option, mapping in (("headers", headers or {}), ("query", query or {})):
        texts = _texts(option, mapping)
        values[option] = {name: _value(option, name, value) for name, value in texts.items()}
        for name, value in texts.items():
            if value.startswith("$") or name.lower() == AUTHORIZATION:
                hide_from_now_on(values[option][name].rpartition(" ")[2])  # without a scheme such as Bearer
            else:
                written.setdefault(option, {})[name] = value
    names = {option: sorted(named) for option, named in values.items() if named}
    return Additions(values["headers"], urlencode(values["query"]), written, names)


def _texts(option: str, mapping: object) -> Mapping[str, str]:
    """Return texts by name; raise ConfigError for anything else."""
    if isinstance(mapping, Mapping) and all(isinstance(text, str) for pair in mapping.items() for text in pair):
        return dict(mapping)
    raise ConfigError(
        f"{option} is not a mapping of texts (and is not shown, since it may hold a key); expected values by "
        f'name, such as {option} = {{ x-api-version = "2", x-api-key = "$API_KEY" }}, where $API_KEY is '
        "for the environment variable API_KEY"
    )


def key_from_environment(variable: str) -> Secret | None:
    """Return the API key in an environment variable, and hide it from now on; None without a name.

    Raises:
        ConfigError: The variable is not set, its value fits into no header, or `variable` is not a name.
    """
    if not variable:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", variable):
        raise ConfigError(
            "key_env is not the name of an environment variable (it is not shown: it may be the key itself): write "
            'key_env = "API_KEY", and put the key into the variable API_KEY'
        )
    value = os.environ.get(variable, "").strip()
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        fault = "holds characters that no header can carry" if value else "is not set, or empty"
        raise ConfigError(
            f"key_env names the environment variable {variable!r}, which {fault}; expected the server's API key: set "
            "it, or leave key_env out for a server that wants none"
        )
    hide_from_now_on(value)
    return Secret(value)


def _name_fault(option: str, name: str) -> str:
    """Return why a name cannot be sent; empty if it can."""
    if option == "query":
        if name and name.isprintable():
            return ""
        return "is not the name of a query field"
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        return "is not the name of a header"
    if name.lower() in _RESERVED:
        return "is decided by the request itself: remove it"
    return ""


def _value(option: str, name: str, written: str) -> str:
    """Return the value of a header or query field, of a variable ``$NAME`` that of the environment."""
    value = written
    fault = _name_fault(option, name)
    if written.startswith("$"):
        value = os.environ.get(written[1:], "").strip()
    if fault:
        fault = f"{name!r:.80} {fault}"
    elif written.startswith("$") and not re.fullmatch(r"[A-Za-z_]\w*", written[1:], re.ASCII):
        fault = (
            f"the value of {name!r} begins with $ and names no environment variable; expected a name of letters, "
            "digits and underscores behind it"
        )
    elif written.startswith("$") and not value:
        fault = (
            f"the value of {name!r} is the environment variable {written[1:]!r}, which is not set, or empty; set it, "
            "or leave the entry out"
        )
    elif option == "headers" and not (value.isascii() and value.isprintable()):
        fault = f"the value of {name!r} holds characters that no header can carry"
    if fault:
        raise ConfigError(f"{option}: {fault}")
    return value
