"""Output of the command: lines, notes, progress and JSON files."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.outputs import replacing


def open_streams() -> None:
    """Make standard output and error accept any text: they escape what they cannot encode, and discard it if closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- to the process's end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(text: str, stream: TextIO | None = None) -> None:
    """Write text to standard output or another stream at once; discard it if the stream is closed."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:  # as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(lines: Sequence[str]) -> None:
    """Write lines to standard output, in place of the present step."""
    screen.progress("")
    put("".join(f"{line}\n" for line in lines))


def save(path: Path, data: Any, *, complete: bool = True) -> None:
    """Write JSON data to a file atomically; a pipe or the like gets `complete` data only."""
    text = f"{json.dumps(data, indent=1)}\n"
    if not path.exists() or path.is_file():
        with replacing(path) as file:
            file.write(text.encode("ascii"))
    elif complete:
        path.write_text(text, encoding="ascii")


#: Seconds between lines of progress where there is no terminal.
INTERVAL = 30.0


class Screen:
    """Notes on standard error, and the present step: one line on a terminal, else a line every `INTERVAL` seconds."""

    busy = False

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Count the seconds to the first line of progress from now on."""
        self._last = clock.elapsed()

    def progress(self, text: str) -> None:
        """Replace the line of the present step, or write another one."""
        if sys.stderr.isatty():
            if text or self.busy:
                put(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", sys.stderr)
                self.busy = bool(text)
        elif text and clock.elapsed() - self._last >= INTERVAL:
            self._last = clock.elapsed()
            self.say(text)

    def begin(self, text: str) -> None:
        """Report the first step at once, on a terminal or not, and count the seconds from now on."""
        if sys.stderr.isatty():
            self.progress(text)
        else:
            self.say(text)
        self.start()

    def say(self, text: str) -> None:
        """Write a line to standard error."""
        from pytest_adaptive_eval.text import clean_terminal

        self.progress("")
        put(clean_terminal(text) + "\n", sys.stderr)

    def note(self, text: str) -> None:
        """Write a note to standard error."""
        self.say(f"note: {text}")


screen = Screen()


def width() -> int:
    """Return the columns of the terminal; without one, a number that keeps lines whole."""
    if sys.stdout.isatty():
        return max(80, shutil.get_terminal_size().columns)
    return 10_000
