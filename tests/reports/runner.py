"""The rules by which a GitHub runner takes lines of a step's output for commands, played again.

After ``ActionCommand`` and ``ActionCommandManager`` of https://github.com/actions/runner. The runner compares text by
the rules of a culture, which skip characters that are not shown; here a line is therefore read once as it is and once
without them, and is a command if either reading is one.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

#: Commands that a runner knows.
REGISTERED = frozenset(
    [
        *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice", "warning"),
        *("internal-set-repo-path", "remove-matcher", "save-state", "set-env", "set-output", "stop-commands"),
    ]
)
_V2 = (("\r", "%0D"), ("\n", "%0A"), ("%", "%25"))
_V2_PROPERTIES = (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25"))
_V1 = ((";", "%3B"), ("\r", "%0D"), ("\n", "%0A"), ("]", "%5D"), ("%", "%25"))


@dataclass(frozen=True)
class Command:
    """A line that the runner would act on."""

    name: str
    properties: dict[str, str] = field(default_factory=dict)
    data: str = ""
    line: str = ""


def commands(output: str) -> list[Command]:
    """What a runner would do with the output of a step, stop-commands and its end among it."""
    found = []
    token: str | None = None
    for line in re.split("\r\n|\r|\n", output):
        known = REGISTERED if token is None else REGISTERED | {token.lower()}
        command = next(filter(None, (_v2(r, known) or _v1(r, known) for r in _readings(line))), None)
        if command is None:
            continue
        if token is not None:
            if not token or command.name.lower() != token.lower():
                continue
            token = None
        elif command.name.lower() == "stop-commands":
            token = command.data
        found.append(Command(command.name, command.properties, command.data, line))
    return found


def _readings(line: str) -> tuple[str, ...]:
    shown = "".join(c for c in line if c == "\t" or unicodedata.category(c) not in ("Cc", "Cf"))
    return (line,) if shown == line else (line, shown)


def _v2(line: str, known: frozenset[str]) -> Command | None:
    """``::name key=value,key=value::data`` at the start of a line."""
    line = line.lstrip()
    head, sign, data = line[2:].partition("::")
    return _command(head, known, ",", _V2_PROPERTIES, data, _V2) if line.startswith("::") and sign else None


def _v1(line: str, known: frozenset[str]) -> Command | None:
    """``##[name key=value;key=value]data`` anywhere in a line, the first only."""
    _, sign, rest = line.partition("##[")
    head, end, data = rest.partition("]")
    return _command(head, known, ";", _V1, data, _V1) if sign and end else None


Escapes = tuple[tuple[str, str], ...]


def _command(
    head: str, known: frozenset[str], comma: str, escapes: Escapes, data: str, data_escapes: Escapes
) -> Command | None:
    name, _, pairs = head.partition(" ")
    if name.lower() not in known:
        return None
    split = (pair.partition("=") for pair in pairs.strip().split(comma))
    properties = {key: _unescaped(value, escapes) for key, _, value in split if key and value}
    return Command(name, properties, _unescaped(data, data_escapes))


def _unescaped(text: str, escapes: Escapes) -> str:
    for character, written in escapes:
        text = text.replace(written, character)
    return text
