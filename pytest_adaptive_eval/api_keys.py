"""API keys, and how this process hides them in what it shows.

Messages, logs, pages and the request fields of records are shown; the text of an answer is data and is never edited.
Every function of `text` that cleans foreign text for an output hides the keys too, so a page cannot forget to.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from urllib.parse import quote

#: Replacement for a key.
HIDDEN = "[key]"
#: Number of first characters of a key that count as all of it.
PREFIX = 16
#: Shorter values are placeholders such as ``x``; hiding them would garble every message.
SHORTEST = 4
#: Loggers that write headers and bodies if all messages are logged.
LOGGERS = tuple(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))

#: An address at the begin of an option's or a setting's value, and the parts of it that may be secret.
_ADDRESS = re.compile(r"""(?:^|["'=,])(?:\w+:)?\w+://[^\s"',]+""", re.MULTILINE)
_IN_ADDRESS = re.compile(r"(?<=:)[^/@:]+(?=@)|(?<=[?&])[^=&#]+=[^&#]+")
_URL_SAFE = str.maketrans("+/", "-_")


class Secret:
    """A text that does not appear in its representation."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return HIDDEN

    def reveal(self) -> str:
        """Return the text."""
        return self._text


class _Keys(logging.Filter):
    """Keys of this process, which are hidden until it ends: reports are written after a model is closed."""

    def __init__(self) -> None:
        super().__init__()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, key: str) -> None:
        self._forms |= set(_forms(key))
        longest_first = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(longest_first), re.IGNORECASE)
        for name in LOGGERS:
            logging.getLogger(name).addFilter(self)  # has no effect the second time

    def hide(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(HIDDEN, text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a log record that holds a key."""
        message = record.getMessage()
        hidden = self.hide(message)
        if hidden != message:
            record.msg, record.args = hidden, None
        return True


_KEYS = _Keys()


def hide_from_now_on(key: str) -> None:
    """Hide a key in everything that this process shows: the key, its first `PREFIX` characters, and both encoded."""
    if len(key) >= SHORTEST:
        _KEYS.add(key)


def hide_addresses(text: str) -> None:
    """Hide passwords and query fields of the addresses in options or settings from now on."""
    for address in _ADDRESS.findall(text):
        for secret in _IN_ADDRESS.findall(address):
            hide_from_now_on(secret)


def without_keys(text: str) -> str:
    """Return a text with each hidden key replaced by `HIDDEN`."""
    return _KEYS.hide(text)


def _forms(key: str) -> Iterator[str]:
    """Yield patterns of a key as it is, in a URL and in base64, whole and by its first characters."""
    for text in {key, key[:PREFIX]}:
        yield re.escape(text)
        yield re.escape(quote(text, safe=""))
    for encoded in _in_base64(key[:PREFIX]):
        for needle in {encoded, encoded.translate(_URL_SAFE)}:
            yield re.escape(needle) + "[A-Za-z0-9+/_=-]*"


def _in_base64(text: str) -> Iterator[str]:
    """Yield what base64 of any text with this one contains, for each of its three alignments."""
    start = text.encode()
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + start).decode()
        first = (0, 2, 3)[lead]
        last = 4 * ((lead + len(start)) // 3)
        needle = encoded[first:last]  # without characters that share bits with their neighbours
        if len(needle) >= SHORTEST:
            yield needle
