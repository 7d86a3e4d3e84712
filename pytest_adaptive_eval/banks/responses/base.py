"""Declaration of a response reader, and the settings that a reader receives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pytest_adaptive_eval.errors import ResponsesError
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


class ItemResult(NamedTuple):
    """Statement of a log on one item.

    Args:
        score: In [0, 1]; None where the infrastructure failed.
        fault: The tool's own words on a missing score.
        measures: See `models.base.Completion`.
        subject: Who answered; empty where the log does not say.
    """

    item: str
    score: float | None
    fault: str = ""
    text: str = ""
    measures: Mapping[str, float] = {}
    subject: str = ""


class ResultSettings(NamedTuple):
    """Choices by which results are read item by item.

    Args:
        metric, filter: Names of a metric and of an answer filter, where the log has several.
        agent_failures: The log's names of what the agent did, which counts as wrong.
        infrastructure: The log's names of what the infrastructure did, which leaves no score.
        ended: Whether the tool has ended; before, a file may be incomplete.
    """

    metric: str | None = None
    filter: str | None = None
    agent_failures: tuple[str, ...] = ()
    infrastructure: tuple[str, ...] = ()
    ended: bool = True


def checked_score(value: Any, where: str) -> float:
    """Return a number in [0, 1] or a truth value as a score; raise ResponsesError for anything else."""
    if not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise ResponsesError(f"{where}: the score is {value!r:.80}, expected a number in [0, 1]")
    return float(value)


def measures_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers of at least 0."""
    measures = {}
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
            measures[name] = float(value)
    return measures


#: Yields the results in a folder of logs.
ResultsOf = Callable[[Path, ResultSettings], Iterator[ItemResult]]


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
        results: Yields the results of items one by one, also while the tool runs; None where only a whole log is read.
    """

    name: str
    content: str
    recognises: Callable[[Path], bool]
    read: Callable[[Path, ReadSettings], Responses]
    settings: Mapping[str, str] = field(default_factory=dict)
    folders: bool = True
    generality: int = 0
    results: ResultsOf | None = None
