"""Read the key of a server, and remove it from all texts."""

from __future__ import annotations

import base64
import html
import logging
import os
import re
import string
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, urlsplit

from pytest_adaptive_eval.errors import ConfigError

__all__ = ["Redactor", "Secret", "from_environment"]

#: Shorter values are placeholders, or words of ordinary answers.
SHORTEST = 8
#: Replacement for a secret.
HIDDEN = "[key]"
#: Number of first characters of a secret that count as all of it.
PREFIX = 16
#: Number of times that a text is decoded.
ROUNDS = 4

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_BASE64 = re.compile(r"[a-z0-9+/=]")
#: From the base64 alphabet for URLs to the standard one.
_STANDARD_BASE64 = str.maketrans("-_", "+/")
#: An encoded character, or one that does not count: terminal sequences, white space, control and zero-width characters.
_ENCODED = re.compile(
    r"%[0-9A-Fa-f]{2}|&(?:\#\d{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,8});"
    r"|\\(?:[uU][0-9A-Fa-f]{4}|[xX][0-9A-Fa-f]{2}|.?)"
    r"|\x1b\[[0-9;]*[A-Za-z]"
    r"|[\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)


class Secret:
    """A text that does not appear in its representation.

    Parameters
    ----------
    text : str
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return HIDDEN

    def reveal(self) -> str:
        """Return the text."""
        return self._text


def from_environment(variable: str) -> Secret | None:
    """Return the key in an environment variable, None without a name.

    Raises
    ------
    ConfigError
        The variable is unset, or its value cannot be a key.
    """
    if not variable:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", variable):
        raise ConfigError(
            "key_env is no name of an environment variable (and is not shown, since it may be the key itself): write "
            'key_env = "API_KEY", and put the key into the variable API_KEY'
        )
    value = os.environ.get(variable, "").strip()
    fault = ""
    if not value:
        fault = "is not set, or empty"
    elif not value.isascii() or not value.isprintable() or " " in value:
        fault = "holds characters that no header can carry"
    elif len(value) < SHORTEST:
        fault = f"holds less than {SHORTEST} characters, which is no secret"
    if fault:
        raise ConfigError(
            f"key_env names the environment variable {variable!r}, which {fault}; expected the server's API key: set "
            "it, or leave key_env out for a server that wants none"
        )
    return Secret(value)


class Redactor(logging.Filter):
    """A filter that removes secrets from texts and log records, however they are encoded.

    Case is ignored.  Percent-, JSON- and HTML-encoded characters count as decoded, also if encoded repeatedly.  White
    space, zero-width characters, control characters and backslashes between characters are ignored.  The first `PREFIX`
    characters of a secret count as all of it, and so does base64 of any text that contains them.

    Parameters
    ----------
    key : Secret or None
    proxy : str or None
        URL of a proxy, whose password is also a secret.
    others : sequence of str
        Further secrets; those shorter than `SHORTEST` stay in the text.
    """

    #: Loggers that write what a server sends if all messages are logged.
    LOGGERS = tuple(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))

    def __init__(self, key: Secret | None, proxy: str | None = None, others: Sequence[str] = ()) -> None:
        super().__init__()
        texts = [key.reveal()] if key else []
        if proxy and (password := urlsplit(proxy).password):
            texts += [password, unquote(password)]
        texts += [text for text in others if len(text) >= SHORTEST]
        self._secrets = sorted({view for text in texts for view in _views(text) if view}, key=len, reverse=True)
        self._base64 = {needle for text in texts for needle in _base64_needles(text)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def found(self, text: str) -> bool:
        """Return whether a secret is in the text."""
        if not self._secrets:
            return False
        for view in _views(text):
            standard = view.translate(_STANDARD_BASE64)
            if any(secret[:PREFIX] in view for secret in self._secrets) or any(x in standard for x in self._base64):
                return True
        return False

    def clean(self, text: str) -> str:
        """Return the text without secrets."""
        if not self.found(text):
            return text
        spans = [span for json_escapes in (True, False) for span in self._spans(*_with_positions(text, json_escapes))]
        if not spans:
            return HIDDEN
        out, end = [], 0
        for start, stop in sorted(spans):
            while text[stop - 1].isspace():
                stop -= 1
            if start >= end:
                out += [text[end:start], HIDDEN]
            end = max(end, stop)
        return "".join([*out, text[end:]])

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a log record that holds a secret."""
        message = record.getMessage()
        if self.found(message):
            record.msg, record.args = self.clean(message), None
        return True

    def listen(self) -> None:
        """Start filtering the logs of the HTTP libraries."""
        if self._secrets:
            for name in self.LOGGERS:
                logging.getLogger(name).addFilter(self)

    def leave(self) -> None:
        """Undo `listen`."""
        for name in self.LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def _spans(self, view: str, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield start and end of each secret in a text, given its decoded view and each character's position."""
        for secret in self._secrets:
            start = view.find(secret[:PREFIX])
            while start >= 0:
                pairs = enumerate(zip(secret, view[start : start + len(secret)], strict=False))
                length = next((number for number, (ours, other) in pairs if ours != other), None)
                length = min(len(secret), len(view) - start) if length is None else length
                yield positions[start], positions[start + length]
                start = view.find(secret[:PREFIX], start + length)
        standard = view.translate(_STANDARD_BASE64)
        for needle in self._base64:
            start = standard.find(needle)
            while start >= 0:
                end = start + len(needle)
                while start > 0 and _BASE64.fullmatch(standard[start - 1]):
                    start -= 1
                while end < len(standard) and _BASE64.fullmatch(standard[end]):
                    end += 1
                yield positions[start], positions[end]
                start = standard.find(needle, end)


def _views(text: str) -> tuple[str, ...]:
    """Return the text in lower case, once with JSON escapes decoded and once with backslashes removed."""
    return tuple(dict.fromkeys(_decoded(text, json_escapes) for json_escapes in (True, False)))


def _decoded(text: str, json_escapes: bool) -> str:
    """Return the text in lower case, decoded up to `ROUNDS` times, without white space."""
    for _ in range(ROUNDS):
        text = "".join(text.split())
        if _ENCODED.search(text) is None:
            break
        text = _ENCODED.sub(lambda match: _decode(match[0], json_escapes), text)
    return text.translate(_LOWER)


def _with_positions(text: str, json_escapes: bool) -> tuple[str, Sequence[int]]:
    """Return the decoded text, and the position of each character in `text`, with one more for the end."""
    positions: Sequence[int] = range(len(text) + 1)
    for _ in range(ROUNDS):
        if _ENCODED.search(text) is None:
            break
        pieces: list[str] = []
        moved: list[int] = []
        end = 0
        for match in _ENCODED.finditer(text):
            decoded = _decode(match[0], json_escapes)
            pieces += [text[end : match.start()], decoded]
            moved += positions[end : match.start()]
            moved += [positions[match.start()]] * len(decoded)
            end = match.end()
        moved += positions[end:]
        text, positions = "".join([*pieces, text[end:]]), moved
    return text.translate(_LOWER), positions


def _decode(encoded: str, json_escapes: bool) -> str:
    """Return one encoded character decoded, or an empty string for an ignored one."""
    if encoded.startswith("&"):
        return html.unescape(encoded)
    if encoded.startswith("%"):
        return chr(int(encoded[1:], 16))
    if len(encoded) == 1 or encoded[0] != "\\":
        return ""
    if encoded[1] in "uUxX" and len(encoded) > 2:
        return chr(int(encoded[2:], 16))
    return "" if json_escapes and encoded[1] in "bfnrt" else encoded[1:]


def _base64_needles(text: str) -> Iterator[str]:
    """Yield, for each alignment, the part in lower case that base64 of any text with this secret contains."""
    start = text[:PREFIX].encode()
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + start).decode()
        # leave out characters that share bits with their neighbours
        first, last = (0, 2, 3)[lead], 4 * ((lead + len(start)) // 3)
        yield encoded[first:last].translate(_LOWER)
