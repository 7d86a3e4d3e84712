"""Read the key of a server, and remove it from all texts."""

from __future__ import annotations

import base64
import html
import itertools
import logging
import os
import re
import string
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from pytest_adaptive_eval.errors import ConfigError

#: Shorter values are placeholders, or words of ordinary answers.
SHORTEST = 8
#: Replacement for a secret.
HIDDEN = "[key]"
#: Number of first characters of a secret that count as all of it.
PREFIX = 16
#: Lengths of the parts of a secret that are hidden: letters and digits of a part as it is written, of one with other
#: characters between, and of one in base64 and in hexadecimal.
WRITTEN, SPACED, IN_BASE64, IN_HEX = 6, 8, 9, 12
#: Number of times that a text is decoded.
ROUNDS = 4

#: Characters that are neither letters nor digits, and the mark of hexadecimal numbers.
_OTHERS = re.compile(r"(?:0x|[\W_])+", re.IGNORECASE)
#: Parts that a word or a number spells, and those that a word beside a number does.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+[a-z]?|\d+")
_WORDS = re.compile(rf"(?:{_WORD.pattern})(?:{_WORD.pattern})?")
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
    """A text that does not appear in its representation."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return HIDDEN

    def reveal(self) -> str:
        """Return the text."""
        return self._text


def from_environment(variable: str) -> Secret | None:
    """Return the key in an environment variable, None without a name; raise ConfigError if it is none."""
    if not variable:
        return None
    if not re.fullmatch(r"[A-Za-z_]\w*", variable):
        raise ConfigError(
            "key_env is not the name of an environment variable (it is not shown: it may be the key itself): write "
            'key_env = "API_KEY", and put the key into the variable API_KEY'
        )
    value = os.environ.get(variable, "").strip()
    fault = ""
    if not value:
        fault = "is not set, or empty"
    elif not value.isascii() or not value.isprintable() or " " in value:
        fault = "holds characters that no header can carry"
    elif len(value) < SHORTEST:
        fault = f"holds less than {SHORTEST} characters, which is too short for a secret"
    if fault:
        raise ConfigError(
            f"key_env names the environment variable {variable!r}, which {fault}; expected the server's API key: set "
            "it, or leave key_env out for a server that wants none"
        )
    return Secret(value)


class Redactor(logging.Filter):
    """A filter that removes secrets from texts and log records, however they are encoded.

    Case is ignored. Percent-, JSON- and HTML-encoded characters count as decoded, also if encoded repeatedly. White
    space, zero-width characters, control characters and backslashes between characters are ignored. The first `PREFIX`
    characters of a secret count as all of it, and so does base64 of any text that contains them. Shorter parts are
    hidden too, forwards and backwards, in base64, in hexadecimal, and with commas or the like between characters; see
    `_Parts`.

    Args:
        proxy: URL of a proxy, whose password is also a secret.
        others: Further secrets; those shorter than `SHORTEST` stay in the text.
        public: Texts that are not secret, such as the model's name; a part of a secret that is also a part of them is
            shown.
    """

    #: Loggers that write what a server sends if all messages are logged.
    LOGGERS = tuple(f"httpcore2.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))

    def __init__(
        self, key: Secret | None, proxy: str | None = None, others: Sequence[str] = (), public: Sequence[str] = ()
    ) -> None:
        super().__init__()
        texts = [key.reveal()] if key else []
        if proxy and (password := urlsplit(proxy).password):
            texts += [password, unquote(password)]
        texts += [text for text in others if len(text) >= SHORTEST]
        self._secrets = sorted({view for text in texts for view in _views(text) if view}, key=len, reverse=True)
        self._base64 = {needle for text in texts for needle in _base64_needles(text[:PREFIX])}
        self._parts = _Parts(texts, public)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def found(self, text: str) -> bool:
        """Return whether a secret is in the text, or its first `PREFIX` characters."""
        if not self._secrets:
            return False
        for view in _views(text):
            standard = view.translate(_STANDARD_BASE64)
            if any(secret[:PREFIX] in view for secret in self._secrets) or any(x in standard for x in self._base64):
                return True
        return False

    def clean(self, text: str) -> str:
        """Return the text without secrets and parts of them."""
        found = self.found(text)
        if not (found or self._parts.maybe_in(text)):
            return text
        spans: set[tuple[int, int]] = set()
        for json_escapes in (True, False):
            view, positions = _with_positions(text, json_escapes)
            spans |= {*self._spans(view, positions), *self._parts.spans(text, view, positions)}
        if found and not spans:
            return HIDDEN
        out, end = [], -1
        for start, stop in sorted(spans):
            while text[stop - 1].isspace():
                stop -= 1
            if start > end:
                out += [text[max(end, 0) : start], HIDDEN]
            end = max(end, stop)
        return "".join([*out, text[max(end, 0) :]])

    def clean_values(self, data: Any) -> Any:
        """Return JSON data whose texts are cleaned, except for the keys of objects."""
        if isinstance(data, str):
            return self.clean(data)
        if isinstance(data, list):
            return [self.clean_values(value) for value in data]
        return {name: self.clean_values(value) for name, value in data.items()} if isinstance(data, dict) else data

    def suspects(self, text: str) -> bool:
        """Return whether a part of a secret may be in the text."""
        return self._parts.maybe_in(text)

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite a log record that holds a secret."""
        message = record.getMessage()
        if (cleaned := self.clean(message)) != message:
            record.msg, record.args = cleaned, None
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


class _Parts:
    """Parts of secrets, of letters and digits alone.

    A part as it is written has `WRITTEN` characters, or `SPACED` if it may be a word or a number. A part with other
    characters between has `SPACED`, which either are not a word or number, or are all separated. So words and numbers
    of ordinary texts are left, even if a secret consists of words.

    Args:
        secrets, public: See `Redactor`.
    """

    def __init__(self, secrets: Sequence[str], public: Sequence[str]) -> None:
        self._written = [form for text in secrets for form in (_lower(text), _lower(text)[::-1])]
        forms = [_bare(form) for text in secrets for form in (text, text[::-1])]
        # by part in lower case: whether it may be words
        plain = {
            _lower(part): bool(_WORDS.fullmatch(part)) for form in forms for part in _windows(form, WRITTEN, SPACED)
        }
        coded = {part for text in secrets for part in _windows(text.encode().hex(), IN_HEX)}
        for text in secrets:
            for encoded in _base64_needles(text):
                coded |= {*_windows(_bare(encoded), IN_BASE64)}
        shown = [_bare(_lower(text)) for text in public]
        self._plain = {part: words for part, words in plain.items() if not any(part in text for text in shown)}
        self._coded = coded
        self._starts = {part[:WRITTEN] for part in (*self._plain, *self._coded)}

    def maybe_in(self, text: str) -> bool:
        """Return whether a part may be in the text; words that begin like one are counted too."""
        if not self._starts:
            return False
        return not all(
            self._starts.isdisjoint([bare[at : at + WRITTEN] for at in range(len(bare) - WRITTEN + 1)])
            for bare in map(_bare, _views(text))
        )

    def spans(self, text: str, view: str, positions: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield start and end of each part in a text, given its decoded view and each character's position."""
        others = {at for match in _OTHERS.finditer(view) for at in range(*match.span())}
        kept = [at for at in range(len(view)) if at not in others]
        bare = "".join(view[at] for at in kept)
        for at in range(len(bare) - WRITTEN + 1):
            if bare[at : at + WRITTEN] not in self._starts:
                continue
            for length in (WRITTEN, SPACED, IN_BASE64, IN_HEX):
                part, places = bare[at : at + length], kept[at : at + length]
                start, stop = positions[places[0]], positions[places[-1] + 1]
                if part in self._coded or (part in self._plain and self._is_part(part, view, places, text[start:stop])):
                    yield start, stop

    def _is_part(self, part: str, view: str, places: Sequence[int], shown: str) -> bool:
        """Return whether a part is written as in a secret, or apart in a way that words and numbers are not."""
        written = view[places[0] : places[-1] + 1]
        if any(written in form for form in self._written) and not any(map(str.isspace, shown)):
            return True
        if len(part) < SPACED or part.isdigit():
            return False
        apart = len(shown.split()) >= len(part) or all(b - a > 1 for a, b in itertools.pairwise(places))
        return apart or not self._plain[part]


def _windows(text: str, *lengths: int) -> Iterator[str]:
    """Yield the parts of a text with given lengths; possible words and numbers have at least `SPACED`."""
    for length in lengths:
        for at in range(len(text) - length + 1):
            part = text[at : at + length]
            if length >= SPACED or not _WORD.fullmatch(part):
                yield part


def _bare(text: str) -> str:
    """Return the letters and digits of a text."""
    return _OTHERS.sub("", text)


def _lower(text: str) -> str:
    """Return a text with its ASCII letters in lower case."""
    return text.translate(_LOWER)


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
    return _lower(text)


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
    """Yield, for each alignment, the part in lower case that base64 of any text with this one contains."""
    start = text.encode()
    for lead in range(3):
        encoded = base64.b64encode(bytes(lead) + start).decode()
        # leave out characters that share bits with their neighbours
        first, last = (0, 2, 3)[lead], 4 * ((lead + len(start)) // 3)
        yield _lower(encoded[first:last])
