"""Read the user's headers and query fields, with secret values from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from pytest_adaptive_eval.errors import ConfigError

#: Headers that the form of the request determines.
_RESERVED = frozenset(
    {"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "accept-encoding"}
    | {"expect", "te", "trailer", "upgrade", "proxy-authorization", "keep-alive"}
)


@dataclass(frozen=True, slots=True)
class Additions:
    """Headers and query fields that are added to each request.

    Args:
        headers: Header values by name.
        query: Query, percent-encoded, without the question mark.
        secrets: Values that came from the environment.
        written: Values that did not, by option and name.
        names: Names of headers and query fields by option, for the record.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    written: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    names: Mapping[str, list[str]] = field(default_factory=dict)


def read_additions(headers: object, query: object) -> Additions:
    """Return the options ``headers`` and ``query``; a value ``"$NAME"`` names the environment variable NAME.

    Raises:
        ConfigError: One of them is no mapping of texts, sets a reserved header, or names a variable that is not set.
    """
    secrets: list[str] = []
    values: dict[str, dict[str, str]] = {}
    written: dict[str, dict[str, str]] = {}
    for option, mapping in (("headers", headers), ("query", query)):
        if not isinstance(mapping, Mapping | None) or not all(
            isinstance(name, str) and isinstance(value, str) for name, value in (mapping or {}).items()
        ):
            raise ConfigError(
                f"{option} is no mapping of texts (and is not shown, since it may hold a key); expected values by "
                f'name, such as {option} = {{ x-api-version = "2", x-api-key = "$API_KEY" }}, where $API_KEY stands '
                "for the environment variable API_KEY"
            )
        values[option] = {}
        for name, value in (mapping or {}).items():
            _check_name(option, name)
            values[option][name] = _value(option, name, value)
            if value.startswith("$"):
                secrets.append(values[option][name])
            else:
                written.setdefault(option, {})[name] = value
    return Additions(
        values["headers"],
        urlencode(values["query"]),
        tuple(secrets),
        written,
        {option: sorted(named) for option, named in values.items() if named},
    )


def _check_name(option: str, name: str) -> None:
    if option == "query":
        fault = "" if name and name.isprintable() else "is no name of a query field"
    elif not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        fault = "is no name of a header"
    elif name.lower() == "authorization":
        fault = "is set by key_env: name the environment variable of the key there"
    else:
        fault = "is decided by the request itself: remove it" if name.lower() in _RESERVED else ""
    if fault:
        raise ConfigError(f"{option}: {name!r:.80} {fault}")


def _value(option: str, name: str, value: str) -> str:
    if value.startswith("$"):
        variable = value[1:]
        if not re.fullmatch(r"[A-Za-z_]\w*", variable, re.ASCII):
            raise ConfigError(
                f"{option}: the value of {name!r} begins with $ and names no environment variable; expected a name of "
                "letters, digits and underscores behind it"
            )
        value = os.environ.get(variable, "").strip()
        if not value:
            raise ConfigError(
                f"{option}: the value of {name!r} is the environment variable {variable!r}, which is not set, or "
                "empty; set it, or leave the entry out"
            )
    if option == "headers" and not (value.isascii() and value.isprintable()):
        raise ConfigError(f"{option}: the value of {name!r} holds characters that no header can carry")
    return value
