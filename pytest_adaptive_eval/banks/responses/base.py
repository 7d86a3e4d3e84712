"""Declaration of a response reader, and the settings that a reader receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.mappings import ResponseMapping
from pytest_adaptive_eval.text import Tell


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Choices of the user, for what a file leaves open.

    Args:
        metric, filter: One name, or several separated by commas; the first one present counts.
        mapping: Place of a response's fields in a row.
        items: The user's own items by id in the log, which grade answers that have no score.
        texts: Whether every answer is kept as a text.
    """

    orientation: str | None = None
    metric: str | None = None
    filter: str | None = None
    note: Tell = lambda _: None
    mapping: ResponseMapping | None = None
    items: Mapping[str, Item] | None = None
    texts: bool = False


@dataclass(frozen=True, slots=True)
class ResponseReader:
    """One format of recorded responses.

    Args:
        name: Value of ``format``.
        content: Files of the format, for help and errors.
        recognises: Return whether a file is of the format, by its name and its first bytes.
        read: Read a file or folder. Raises `ResponsesError` with the file, line or item, the value found, the value
            expected and the fix.
        settings: Settings of `ReadSettings` that the format uses, and what each chooses.
        folders: Whether a folder can be read.
        generality: 0 if no other program writes such files; higher if others do. The least general reader that
            recognises a file reads it.
    """

    name: str
    content: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, ReadSettings], Responses]
    settings: Mapping[str, str] = field(default_factory=dict)
    folders: bool = True
    generality: int = 0
