"""A key that is sent to a server and to nothing else."""

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

#: Shorter ones are placeholders, and words of ordinary answers.
SHORTEST = 8
#: What takes the place of a secret.
HIDDEN = "[key]"
#: As many first characters of a secret are as good as all of it.
PREFIX = 16
#: How often a text is decoded.
ROUNDS = 4

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_BASE64 = re.compile(r"[a-z0-9+/=]")
#: The alphabet of base64 for URLs to the standard one.
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
    """A text that shows itself only where it is asked to.

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
        """Give the text."""
        return self._text


def from_environment(variable: str) -> Secret | None:
    """Read the key from the environment variable that the user named; none without a name.

    Raises
    ------
    ConfigError
        The variable is unset, or holds what cannot be a key.
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
    """Finds secrets in text and in log records, however they are encoded, and takes them out.

    Upper and lower case count as the same, and so do percent-, JSON- and HTML-encoded characters, also encoded
    repeatedly.  White space, zero-width characters, control characters and backslashes between characters do not
    count.  The first `PREFIX` characters of a secret are taken for it, and so is base64 of any text that holds them.

    Parameters
    ----------
    key : Secret or None
    proxy : str or None
        A proxy's URL, whose password is a secret as well.
    others : sequence of str
        Further secrets; those shorter than `SHORTEST` are left in the text.
    """

    #: These log what a server sends, when someone listens to everything.
    LOGGERS = tuple(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))

    def __init__(self, key: Secret | None, proxy: str | None = None, others: Sequence[str] = ()) -> None:
        super().__init__()
        given = [key.reveal()] if key else []
        if proxy and (password := urlsplit(proxy).password):
            given += [password, unquote(password)]
        given += [text for text in others if len(text) >= SHORTEST]
        self._secrets = sorted({view for text in given for view in _views(text) if view}, key=len, reverse=True)
        self._base64 = {needle for text in given for needle in _base64_needles(text)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def found(self, text: str) -> bool:
        """Whether a secret is in the text."""
        if not self._secrets:
            return False
        for view in _views(text):
            standard = view.translate(_STANDARD_BASE64)
            if any(secret[:PREFIX] in view for secret in self._secrets) or any(x in standard for x in self._base64):
                return True
        return False

    def clean(self, text: str) -> str:
        """The text without secrets."""
        if not self.found(text):
            return text
        spans = [span for json_escapes in (True, False) for span in self._spans(*_with_places(text, json_escapes))]
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
        """Stand before the logs of the HTTP libraries."""
        if self._secrets:
            for name in self.LOGGERS:
                logging.getLogger(name).addFilter(self)

    def leave(self) -> None:
        """Undo `listen`."""
        for name in self.LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def _spans(self, view: str, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Where secrets stand in a text, by its view and the place of each of the view's characters in it."""
        for secret in self._secrets:
            start = view.find(secret[:PREFIX])
            while start >= 0:
                pairs = enumerate(zip(secret, view[start : start + len(secret)], strict=False))
                length = next((number for number, (ours, other) in pairs if ours != other), None)
                length = min(len(secret), len(view) - start) if length is None else length
                yield places[start], places[start + length]
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
                yield places[start], places[end]
                start = standard.find(needle, end)


def _views(text: str) -> tuple[str, ...]:
    """The text decoded and in lower case: with JSON escapes decoded, and with backslashes left out."""
    return tuple(dict.fromkeys(_decoded(text, json_escapes) for json_escapes in (True, False)))


def _decoded(text: str, json_escapes: bool) -> str:
    for _ in range(ROUNDS):
        text = "".join(text.split())
        if _ENCODED.search(text) is None:
            break
        text = _ENCODED.sub(lambda match: _decode(match[0], json_escapes), text)
    return text.translate(_LOWER)


def _with_places(text: str, json_escapes: bool) -> tuple[str, Sequence[int]]:
    """Decode a text as `_decoded` does, and say where each character stood; one more place ends the text."""
    places: Sequence[int] = range(len(text) + 1)
    for _ in range(ROUNDS):
        if _ENCODED.search(text) is None:
            break
        pieces: list[str] = []
        kept: list[int] = []
        end = 0
        for match in _ENCODED.finditer(text):
            decoded = _decode(match[0], json_escapes)
            pieces += [text[end : match.start()], decoded]
            kept += places[end : match.start()]
            kept += [places[match.start()]] * len(decoded)
            end = match.end()
        kept += places[end:]
        text, places = "".join([*pieces, text[end:]]), kept
    return text.translate(_LOWER), places


def _decode(found: str, json_escapes: bool) -> str:
    """Decode one encoded character; nothing for those that do not count."""
    if found.startswith("&"):
        return html.unescape(found)
    if found.startswith("%"):
        return chr(int(found[1:], 16))
    if len(found) == 1 or found[0] != "\\":
        return ""
    if found[1] in "uUxX" and len(found) > 2:
        return chr(int(found[2:], 16))
    return "" if json_escapes and found[1] in "bfnrt" else found[1:]


def _base64_needles(text: str) -> Iterator[str]:
    """What base64 of any text that holds the beginning of a secret holds, in lower case: one for each alignment."""
    start = text[:PREFIX].encode()
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + start).decode()
        # characters that share bits with what stands before or behind
        first, last = (0, 2, 3)[lead], 4 * ((lead + len(start)) // 3)
        yield encoded[first:last].translate(_LOWER)
