r"""Formatting of numbers and lists, and cleaning of foreign text.

Answers, item ids, model names and error messages are foreign. Only colour codes are removed silently, and API keys are
hidden: a character that an output cannot hold is shown as its escape, such as ``\x00``.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pytest_adaptive_eval.api_keys import without_keys

#: Takes a sentence for the user.
Tell = Callable[[str], object]
#: Control sequences of terminals: CSI, OSC and two-character escapes.  Each part excludes the characters that
#: begin the next attempt, so that a text full of unfinished sequences still takes linear time.
_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\x9d\n]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[@-Z\\^_]"
)
#: Characters that XML 1.0 forbids or discourages: C1 controls and non-characters.  A pattern of the allowed characters
#: would compile nine times as long, in every run that shows a table.
_NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
#: Joiners are not printable, but scripts and emoji need them.
_JOINERS = "\u200c\u200d"
#: CI runners read ``::name::`` at the start of a line and ``##[name]`` or ``##name[`` anywhere; joiners may not count.
_COMMAND = re.compile(f":(?=[{_JOINERS}]*:)|#(?=[{_JOINERS}]*#)")
#: The same of a text in which other colons and marks stay.
_AT_START = re.compile(rf"^(?=(?:[^\S\n]|[{_JOINERS}])*:[{_JOINERS}]*:)", re.MULTILINE)
_WITHIN = re.compile(rf"#(?=[{_JOINERS}]*#[\w{_JOINERS}]*\[)")

#: Host and port of an address.
_HOST = re.compile(r"(?:\[[\w:.%]*\]?|[\w.-]*)(?::\d*)?")
#: Names of settings and options that hold a secret.
_SECRET_NAME = re.compile(r"(?:.*[-_])?(?:key|token|secret|password|passwd|credentials?)", re.IGNORECASE)
_HIDDEN = "[hidden]"
#: A space where a line may be broken.
_BREAK = re.compile(r" (?!%|s\b)")


def shown_address(spec: str) -> str:
    """Return what names a model without what may be secret in an address: user, password and query.

    Examples:
        >>> shown_address("https://me:word@host:8000/v1?api_key=abc#model")
        'https://host:8000/v1#model'
    """
    address, sign, name = spec.partition("#")
    name = name.partition("?")[0]
    scheme, slashes, rest = address.partition("?")[0].partition("://")
    if not slashes:
        scheme, rest = "", scheme
    host, slash, path = rest.partition("/")
    if slashes or ":" in host.partition("@")[0]:
        host, slash, path = rest.rpartition("@")[2].partition("/")
    if slashes and not _HOST.fullmatch(host):  # a password may hold any of the marks
        return f"{scheme}{slashes}{_HIDDEN}"
    return f"{scheme}{slashes}{host}{slash}{path}{sign}{name}"


def shown_command(words: Sequence[str]) -> list[str]:
    """Return the words of a command, or settings as ``name=value``, without the values of keys, tokens and passwords.

    Examples:
        >>> shown_command(["serve", "--api-key", "abc", "--hf-token=def", "base_url=http://host/v1?key=ghi"])
        ['serve', '--api-key', '[hidden]', '--hf-token=[hidden]', 'base_url=http://host/v1']
    """
    masked: list[str] = []
    for word in words:
        name, sign, value = word.partition("=")
        if masked and masked[-1].startswith("-") and _SECRET_NAME.fullmatch(masked[-1]) and not word.startswith("-"):
            masked.append(_HIDDEN)
        elif sign and _SECRET_NAME.fullmatch(name):
            masked.append(f"{name}={_HIDDEN}")
        else:
            masked.append(f"{name}={shown_address(value)}" if sign and "://" in value else shown_address(word))
    return masked


def _escape(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def _escaped(match: re.Match[str]) -> str:
    return _escape(match[0])


def _foreign(text: object) -> str:
    """Return a text without colour codes and without API keys."""
    return without_keys(_ANSI.sub("", str(text)))


def clean_xml(text: str, limit: int | None = None) -> str:
    """Return text that XML 1.0 can hold, in an attribute or an element, name or value.

    Args:
        limit: Longest text, in characters; a longer one ends with the number of characters left out.
    """
    text = _foreign(text).replace("\r\n", "\n").replace("\r", "\n")
    text = _NOT_XML.sub(_escaped, text)
    if limit is not None and len(text) > limit:
        return f"{text[:limit]}... ({len(text) - limit} more characters)"
    return text


def clean_terminal(text: str, limit: int | None = None, *, keep_end: bool = False) -> str:
    """Return one line for a terminal, without control characters, colours and commands of CI runners.

    Args:
        text: White space of any kind becomes single spaces.
        limit: Columns of the result; an ellipsis marks a cut.
        keep_end: Cut from the middle: names of checkpoints differ at their end.
    """
    text = " ".join(_foreign(text).split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c in _JOINERS else _escape(c) for c in text)
    text = _COMMAND.sub(r"\g<0> ", text)
    if limit is None or (columns(text) <= limit and len(text) <= 4 * limit):
        return text
    if keep_end:
        tail = _fitting(text[::-1], (limit - 1) // 2)[::-1]
    else:
        tail = ""
    return _fitting(text, limit - 1 - columns(tail)) + "…" + tail


def guard(text: str, prefix: str = "") -> str:
    """Return foreign text for a log, with its lines and white space, without workflow commands of CI runners.

    Colours are removed, and invisible characters are shown as escapes.

    Args:
        prefix: Prefix of each line; when empty, only a line that would be a command gets one.
    """
    text = _foreign(text).replace("\r\n", "\n")
    if not text.isprintable():
        allowed = f"\n\t{_JOINERS}"
        text = "".join(
            c if c.isprintable() or c in allowed or unicodedata.category(c) == "Zs" else _escape(c) for c in text
        )
    text = _WITHIN.sub("# ", text)
    if prefix:
        return "".join(f"{prefix}{line}" for line in text.splitlines(keepends=True))
    return _AT_START.sub("| ", text)


def columns(text: str) -> int:
    """Return the columns that a terminal needs: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(character: str) -> int:
    if character in _JOINERS or unicodedata.category(character) in ("Mn", "Me"):
        return 0
    if unicodedata.east_asian_width(character) in "WF":
        return 2
    return 1


def _fitting(text: str, limit: int) -> str:
    """Return the longest start of `text` in `limit` columns; long runs of combining characters are cut as well."""
    used = 0
    for at, character in enumerate(text):
        used += _width(character)
        if used > limit or at >= 4 * limit:
            return text[:at]
    return text


def wrap(text: str, width: int, indent: str = "", first: str | None = None) -> list[str]:
    """Break a line between words, not before a % sign or an s for seconds.

    A wider word stays whole, since paths may be copied. Nor does a line begin with a workflow command of CI runners,
    which read them past an indent.

    Args:
        text: One line, cleaned.
        width: Columns of a line, with its indent.
        indent: Start of every line but the first.
        first: Start of the first line; the indent when omitted.
    """
    lines = []
    line = indent if first is None else first
    empty = True
    for word in _BREAK.split(text):
        command = _AT_START.match(word)
        if not empty and not command and columns(line) + 1 + columns(word) > width:
            lines.append(line)
            line, empty = indent, True
        line += word if empty else f" {word}"
        empty = False
    return [*lines, line]


def number(value: float, digits: int = 3) -> str:
    """Return a number as reports show it: ``.512``, ``-1.204``, ``1.000``."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0
    if text.startswith(("0.", "-0.")):
        return text.replace("0.", ".", 1)
    return text


#: Signs of currencies; others are named behind the amount.
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}


def money(amount: float, currency: str) -> str:
    """Return an amount as ``$100``, ``$0.04``, ``$0.0021`` or ``100 CHF``."""
    small = 0.0 < abs(amount) < 0.1
    if small:
        digits = min(12, 1 - math.floor(math.log10(abs(amount))))
    else:
        digits = 2
    digits_text = f"{amount:,.{digits}f}"
    if "." in digits_text and (small or digits_text.endswith(".00")):
        digits_text = digits_text.rstrip("0").rstrip(".")
    sign = _SIGNS.get(currency)
    if sign is None:
        return f"{digits_text} {currency}".strip()
    return f"{sign}{digits_text}"


def similar(word: str, words: Iterable[str]) -> str:
    """Return ``did you mean 'accuracy'? Or `` for an error about an unknown word; empty if no word is similar."""
    close = difflib.get_close_matches(word, list(words), 1, 0.7)
    if close:
        return f"did you mean {close[0]!r}? Or "
    return ""


def counted(number: int, noun: str) -> str:
    """Return ``1 item`` or ``2 items``, for sentences."""
    return f"{number} {noun}" + "s" * (number != 1)


def relative(path: os.PathLike[str] | str, base: Path) -> str:
    """Return a path relative to `base` if it lies there, else as it is."""
    try:
        return Path(path).resolve().relative_to(base.resolve()).as_posix()
    except ValueError:
        return str(path)
