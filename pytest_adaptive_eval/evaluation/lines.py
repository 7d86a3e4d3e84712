"""Lines of the tables and keys of a TOML file, which the parser does not report."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_adaptive_eval.errors import ConfigError

_NAME = r"""[\w-]+|"[^"]*"|'[^']*'"""
_DOTTED = rf"(?:{_NAME})(?:\s*\.\s*(?:{_NAME}))*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
#: A text, which the end of the line may cut off if it has several lines, or a comment.
_TEXT = re.compile(r"""(\"{3}|'{3}).*?(?:\1|$)|"(?:[^"\\]|\\.)*"|'[^']*'|#.*""")


@dataclass(slots=True)
class Lines:
    """Line of a table or a key, from 1, and lines of its content; the tables of a list are called 1, 2, ..."""

    line: int = 0
    keys: dict[str, Lines] = field(default_factory=dict)
    listed: bool = False

    def at(self, *path: str) -> Lines:
        """Return the lines of an entry, or the line of the table where the entry has none of its own."""
        if not path:
            return self
        if path[0] in self.keys:
            return self.keys[path[0]].at(*path[1:])
        return Lines(self.line)

    def named_in(self, message: str) -> int:
        """Return the line of the first key that an error message names, such as ``node 2: levels``; 0 for none."""
        words = re.findall(r"\w+", message.partition(";")[0])  # what to do comes after it
        starts = [
            (n, table)
            for table in (self, *self.keys.values())
            if not table.listed
            for n, word in enumerate(words)
            if word in table.keys
        ]
        if not starts:
            return 0
        first, entry = min(starts, key=lambda start: start[0])
        for word in words[first:]:
            entry = entry.keys.get(word, entry)
        if entry.listed and len(entry.keys) > 1:
            return 0
        return entry.line

    def _inside(self, name: str, line: int) -> Lines:
        entry = self.keys.setdefault(name.strip("\"'"), Lines(line))
        if entry.listed:
            return [*entry.keys.values()][-1]
        return entry


def read_lines(text: str) -> Lines:
    """Return the lines of a file, which is TOML."""
    root = table = Lines()
    depth, quotes = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if quotes:  # a text of several lines
            quotes = "" if quotes in line else quotes
            continue
        texts = [*_TEXT.finditer(line)]
        bare = _TEXT.sub("", line)
        if depth == 0 and (header := _HEADER.match(line)):
            *outer, last = re.findall(_NAME, header[2])
            table = root
            for name in outer:
                table = table._inside(name, number)
            if header[1] == "[[":
                listed = table.keys.setdefault(last.strip("\"'"), Lines(number, listed=True))
                table = listed.keys[str(len(listed.keys) + 1)] = Lines(number)
            else:
                table = table._inside(last, number)
            continue
        if depth == 0 and (key := _KEY.match(line)):
            entry = table
            for name in re.findall(_NAME, key[1]):
                entry = entry._inside(name, number)
            for name in re.findall(r"([\w-]+)\s*=", bare.partition("=")[2]):  # in a table within the line
                entry._inside(name, number)
        depth += sum(map(bare.count, "[{")) - sum(map(bare.count, "]}"))
        quotes = next((text[1] for text in texts if text[1] and not text[0][3:].endswith(text[1])), "")
    return root


@contextlib.contextmanager
def at_key(where: str, lines: Lines, key: str = "") -> Iterator[None]:
    """Replace the line in the place of a `ConfigError`, which `where` gives, by that of the key which it names.

    Args:
        key: For an error that names none.
    """
    try:
        yield
    except ConfigError as error:
        start = str(error)[: len(where)]
        message = str(error)[len(where) :]
        if start != where or not message.startswith(":") or not (line := lines.named_in(message) or lines.at(key).line):
            raise
        raise ConfigError(f"{where.rpartition(':')[0]}:{line}{message}") from None
