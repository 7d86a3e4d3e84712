"""Results of items in a harness's log, and the formats that no reader of responses has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from pytest_adaptive_eval.banks.responses import FORMATS
from pytest_adaptive_eval.banks.responses.base import (
    ItemResult,
    ResultSettings,
    ResultsOf,
    checked_score,
    measures_of,
)
from pytest_adaptive_eval.banks.responses.files import json_objects
from pytest_adaptive_eval.banks.responses.questions import inner
from pytest_adaptive_eval.errors import ConfigError, ResponsesError
from pytest_adaptive_eval.inputs import read_regular

_ANSWER = ("id", "score", "error", "text")  #: Fields of a line that are no values of its answer.
_EXPECTED = 'expected one JSON object with "id", and "score" in [0, 1] or "error"'


class _Line(msgspec.Struct):
    """A line of a command's results; its other fields that are numbers are values of the answer."""

    id: Annotated[str, msgspec.Meta(min_length=1)]
    score: Annotated[float, msgspec.Meta(ge=0, le=1)] | bool | None = None
    error: str | None = None
    text: str = ""
    seconds: float | None = None
    cost: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    steps: int | None = None


#: ``failureReason`` of promptfoo where the provider failed, and not an assertion.
_PROVIDER_FAILED = 2


def lines(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:
    """Yield the results in ``*.jsonl``; a last line without its end may be half of one, and counts if it is JSON."""
    for file in sorted(folder.glob("*.jsonl")):
        *whole, rest = read_regular(file).split(b"\n")
        if settings.ended and _is_whole(rest):
            whole.append(rest)
        for number, line in enumerate(whole, 1):
            if line.strip():
                yield _result_of_line(line, f"{file}, line {number}")


def _is_whole(line: bytes) -> bool:
    """Return whether a line is JSON, and not the half of it."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _result_of_line(line: bytes, where: str) -> ItemResult:
    try:
        read = msgspec.json.decode(line, type=_Line)
    except (ValueError, RecursionError) as error:
        raise ResponsesError(f"{where}: {error}; {_EXPECTED}") from None
    if (read.score is None) == (read.error is None):
        raise ResponsesError(f"{where}: score is {read.score!r} and error is {read.error!r:.80}; {_EXPECTED}")
    score = None
    if read.score is not None:
        score = float(read.score)
    measures = msgspec.json.decode(line)
    for name in _ANSWER:
        measures.pop(name, None)
    return ItemResult(read.id, score, read.error or "", read.text, measures_of(measures))


def promptfoo(folder: Path, settings: ResultSettings) -> Iterator[ItemResult]:  # noqa: ARG001 -- of all formats alike
    """Yield the tests by their description; ``testIdx`` counts within the chosen ones and is not read."""
    for file, data in json_objects(folder, ("*.json",)):
        names = set()
        for number, row in enumerate(inner(data, "results", "results") or (), 1):
            where = f"{file}: result {number}"
            name = inner(row, "testCase", "description")
            if not isinstance(name, str) or not name:
                raise ResponsesError(f"{where}: the test has no description, which is the item's id; write one")
            if name in names:
                raise ResponsesError(
                    f"{where}: a second result of {name!r}; give the configuration one prompt and one provider, and "
                    "each test a description of its own"
                )
            names.add(name)
            yield _result_of_test(name, row, where)


def _result_of_test(name: str, row: Any, where: str) -> ItemResult:
    response = inner(row, "response")
    text = str(inner(response, "output") or "")
    stated = {
        "seconds": (inner(row, "latencyMs") or 0) / 1000,
        "cost": inner(row, "cost"),
        "input_tokens": inner(response, "tokenUsage", "prompt"),
        "output_tokens": inner(response, "tokenUsage", "completion"),
    }
    if inner(row, "failureReason") == _PROVIDER_FAILED:
        return ItemResult(name, None, str(inner(row, "error")), text, measures_of(stated))
    return ItemResult(name, checked_score(inner(row, "score"), where), "", text, measures_of(stated))


_OWN: Mapping[str, ResultsOf] = MappingProxyType({"command": lines, "promptfoo": promptfoo})


def results_of(name: str) -> ResultsOf:
    """Return the function that yields the results in a log of a format.

    Raises:
        ConfigError: No reader of this format reads item by item.
    """
    if name in _OWN:
        return _OWN[name]
    reader = FORMATS.get(name)
    if reader is None or reader.results is None:
        formats = sorted({*_OWN, *(each.name for each in FORMATS.values() if each.results is not None)})
        raise ConfigError(f"a harness has the format {name!r}, expected one of {', '.join(formats)}")
    return reader.results
