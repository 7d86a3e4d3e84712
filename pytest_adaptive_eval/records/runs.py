"""Records of runs: one immutable file a run, whole or not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.errors import JournalError, UsageError
from pytest_adaptive_eval.inputs import read_regular
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord
from pytest_adaptive_eval.records.typed import mistyped

__all__ = ["new_run_id", "parse_run", "read_run", "write_record", "write_run"]

#: What a run id may be, so that it is a file name on every system and no path.
_RUN = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}")
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False).encode
#: A whole number of more digits is none, nor is it within what can be computed with.
_DIGITS = 300
#: Depth of a record's administrations.
_DEPTH = 4


def new_run_id(now: datetime, entropy: bytes) -> str:
    """A run id that sorts by time.

    Parameters
    ----------
    now : datetime
        With a time zone.
    entropy : bytes
        At least 4 random bytes, to tell runs of the same millisecond apart.

    Examples
    --------
    >>> new_run_id(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC), bytes(4))
    '20310506T070809000Z-00000000'
    """
    if now.tzinfo is None:
        raise ValueError(f"now is {now!r}, expected a time with a time zone")
    if len(entropy) < 4:
        raise ValueError(f"entropy has {len(entropy)} bytes, expected at least 4")
    time = now.astimezone(UTC)
    return f"{time:%Y%m%dT%H%M%S}{time.microsecond // 1000:03d}Z-{entropy[:4].hex()}"


def write_run(folder: Path, record: RunRecord) -> Path:
    """Add a run to the history.

    Parameters
    ----------
    folder : Path
        The run folder; the record goes to ``runs/<run>.json`` in it.
    record : RunRecord

    Returns
    -------
    Path
        Of the file written.

    Raises
    ------
    JournalError
        The run is there already, its id is no file name, or the file cannot be written.
    """
    if not _RUN.fullmatch(record.run):
        raise JournalError(f"run id {record.run!r}: expected letters, digits, '-' and '_', such as new_run_id makes")
    path = folder / "runs" / f"{record.run}.json"
    if path.exists():
        raise JournalError(f"{path} exists, and runs are never overwritten: give the run another id")
    write_record(path, record)
    return path


def write_record(path: Path, record: RunRecord) -> None:
    """Write a record to any path, replacing what is there in one step.

    Raises
    ------
    JournalError
        The record is no JSON data, or the path is no regular file or cannot be written.
    """
    try:
        parts = [*_parts(record.to_json(), _DEPTH), "\n"]
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, a list within itself
        raise JournalError(f"{path}: the run record is no JSON data: {error}; see what the tests attached") from error
    write_whole(path, (part.encode("ascii") for part in parts), "the run record", JournalError, durable=True)


def _parts(data: Any, depth: int) -> Iterator[str]:
    """JSON of plain data, what lies `depth` below in one piece each: the pieces of it all would take megabytes."""
    if depth and isinstance(data, dict):
        for n, (name, value) in enumerate(data.items()):
            yield f"{', ' if n else '{'}{_encode(name)}: "
            yield from _parts(value, depth - 1)
        yield "}" if data else "{}"
    elif depth and isinstance(data, list):
        for n, value in enumerate(data):
            yield ", " if n else "["
            yield from _parts(value, depth - 1)
        yield "]" if data else "[]"
    else:
        yield _encode(data)


def read_run(path: Path) -> RunRecord:
    """Read a run record.

    Raises
    ------
    JournalError
        The file is missing, damaged, or of another version; the message names it.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise JournalError(f"{path}: cannot read the run record: {error.strerror or error}; check the path") from error
    return parse_run(data, str(path))


def parse_run(content: bytes, where: str) -> RunRecord:
    """The run record in a file's content; raises as `read_run`, with `where` for the file's name."""
    try:
        data: Any = json.loads(content, parse_constant=_refuse, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise JournalError(
            f"{where} is no run record: it is not JSON ({error}). Give a file that --adaptive-eval-record or a "
            "run wrote"
        ) from error
    if not isinstance(data, dict) or "run" not in data:
        raise JournalError(
            f"{where} is no run record: expected a JSON object with the key 'run', found {_kind(data)}. Give a file "
            "that --adaptive-eval-record or a run wrote"
        )
    try:
        record = RunRecord.from_json(data)
        if fault := mistyped(record) or next(filter(None, map(_misfigured, record.interviews)), None):
            raise TypeError(fault)
        for gate in record.gates:
            if not isinstance(outcome := gate.verdict.get("outcome"), str):
                raise TypeError(f"the outcome of {gate.name} is {outcome!r:.80}, expected a string")
        datetime.fromisoformat(record.started)
    except UsageError as error:
        raise JournalError(f"{where}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise JournalError(
            f"{where}: the run record is damaged: {error}. Write it again or restore the file"
        ) from error
    return record


def _misfigured(interview: InterviewRecord) -> str | None:
    """What is no number, or no hash, where an interview has one; None if all are."""
    found: dict[str, Any] = {
        name: getattr(interview, name) for name in ("accuracy", "accuracy_model", "accuracy_conformal")
    }
    found["levels.auc"] = (interview.levels or {}).get("auc")
    for number, category in enumerate(interview.categories):
        found |= {f"categories[{number}]": category, f"categories[{number}].accuracy": category.get("accuracy")}
    for name, figures in found.items():
        if not isinstance(figures, dict | None):
            return f"{name} of {interview.name} is {figures!r:.80}, expected an object"
        for key in ("estimate", "low", "high", "standard_error"):
            value = (figures or {}).get(key)
            if isinstance(value, bool) or not isinstance(value, float | int | None):
                return f"{name}.{key} of {interview.name} is {value!r:.80}, expected a number or null"
    for key in ("content_hash", "scale"):
        if not isinstance(value := interview.bank.get(key), str | None):
            return f"bank.{key} of {interview.name} is {value!r:.80}, expected a string"
    if (levels := interview.levels) is not None:
        known = levels.get("accuracy")
        if not isinstance(known, list) or not all(isinstance(share, float | int | None) for share in known):
            return f"levels.accuracy of {interview.name} is {known!r:.80}, expected a list of numbers and nulls"
        if not isinstance(cap := levels.get("cap"), int):
            return f"levels.cap of {interview.name} is {cap!r:.80}, expected a whole number"
    seen: set[tuple[str, int]] = set()
    for number, asked in enumerate(interview.administrations):
        if (what := (asked.item, asked.sample)) in seen:
            return f"administrations[{number}] of {interview.name} is the item {asked.item!r:.80} a second time"
        seen.add(what)
        if asked.score is not None and not 0 <= asked.score <= 1:
            where = f"administrations[{number}].score of {interview.name}"
            return f"{where} is {asked.score!r:.80}, expected a number in [0, 1] or null"
    return None


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a JSON number")


def _kind(data: Any) -> str:
    return f"an object with the keys {', '.join(sorted(data)[:5])}" if isinstance(data, dict) else type(data).__name__
