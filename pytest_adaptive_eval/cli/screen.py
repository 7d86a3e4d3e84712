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

__all__ = ["Screen", "open_streams", "put", "save", "say", "screen", "width"]


def open_streams() -> None:
    """Make standard output and error accept any text: they escape what they cannot encode, and discard it if closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 -- to the process's end
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def put(text: str, stream: TextIO | None = None) -> None:
    """Write text to standard output or another stream at once; discard it when the reader has gone."""
    stream = stream or sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:  # as in `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(lines: Sequence[str]) -> None:
    """Write lines to standard output."""
    put("".join(f"{line}\n" for line in lines))


def save(path: Path, data: Any) -> None:
    """Write JSON data to a file."""
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="ascii")


class Screen:
    """Notes on standard error, and on a terminal one line with the present step."""

    busy = False

    def progress(self, text: str) -> None:
        """Replace the line of the present step, on a terminal alone."""
        if sys.stderr.isatty() and (text or self.busy):
            put(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", sys.stderr)
            self.busy = bool(text)

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
    return max(80, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 10_000
