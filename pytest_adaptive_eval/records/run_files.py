"""Files of run records: one file per run, written whole and never changed."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pytest_adaptive_eval.errors import JournalError, UsageError
from pytest_adaptive_eval.inputs import read_regular, reading
from pytest_adaptive_eval.outputs import write_whole
from pytest_adaptive_eval.records.run_record import RunRecord

_EXPECTED_FILE = "Give a file that --adaptive-eval-record or a run wrote"


def new_run_id(now: datetime, entropy: bytes) -> str:
    """Return a run id that sorts by time.

    Args:
        now: With a time zone.
        entropy: At least 4 random bytes, which separate runs of the same millisecond.

    Examples:
        >>> new_run_id(datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC), bytes(4))
        '20310506T070809000Z-00000000'
    """
    time = now.astimezone(UTC)
    return f"{time:%Y%m%dT%H%M%S}{time.microsecond // 1000:03d}Z-{entropy[:4].hex()}"


def write_run(folder: Path, record: RunRecord) -> Path:
    """Add a run, under an id of `new_run_id`, to a run folder; a JournalError if it is there or cannot be written."""
    path = folder / "runs" / f"{record.run}.json"
    if path.exists():
        raise JournalError(f"{path} exists, and runs are never overwritten: give the run another id")
    write_record(path, record)
    return path


def write_record(path: Path, record: RunRecord) -> None:
    """Write a record to any path, replacing an earlier file in one step, or raise a JournalError."""
    try:
        content = msgspec.json.encode(record.to_json())
    except (ValueError, TypeError, RecursionError) as error:  # a list within itself, an object that is no JSON
        raise JournalError(f"{path}: the run record is not JSON: {error}; see what the tests attached") from error
    write_whole(path, [content, b"\n"], "the run record", JournalError, durable=True)


def read_run(path: Path) -> RunRecord:
    """Read a run record, or raise a JournalError that names a missing, damaged or foreign file."""
    with reading(path, JournalError):
        data = read_regular(path)
    return parse_run(data, str(path))


def parse_run(content: bytes, where: str) -> RunRecord:
    """Return the run record in a file's content; raises as `read_run`, with `where` as the file's name."""
    fault = ""
    try:
        data: Any = msgspec.json.decode(content.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError) as error:
        fault = f"it is not JSON ({error})"
    else:
        if not isinstance(data, dict):
            fault = f"expected a JSON object with the key 'run', found {type(data).__name__}"
        elif "run" not in data:
            keys = ", ".join(sorted(data)[:5])
            fault = f"expected a JSON object with the key 'run', found an object with the keys {keys}"
    if fault:
        raise JournalError(f"{where} is not a run record: {fault}. {_EXPECTED_FILE}")
    try:
        record = RunRecord.from_json(data)
        fault = next(_record_faults(record), "")
    except UsageError as error:
        raise JournalError(f"{where}: {error}") from error
    except (TypeError, ValueError) as error:
        fault = str(error)
    if fault:
        raise JournalError(f"{where}: the run record is damaged: {fault}. Write it again or restore the file")
    return record


def _record_faults(record: RunRecord) -> Iterator[str]:
    """Yield impossible scores, repeated samples of an item, and a start without a time zone."""
    for interview in record.interviews:
        administered: set[tuple[str, int]] = set()
        for number, asked in enumerate(interview.administrations):
            field = f"administrations[{number}]"
            if (asked.item, asked.sample) in administered:
                yield f"{field} of {interview.name} is the item {asked.item!r:.80} a second time"
            administered.add((asked.item, asked.sample))
            if asked.score is not None and not 0 <= asked.score <= 1:
                score = f"{field}.score of {interview.name} is {asked.score!r:.80}"
                yield f"{score}, expected a number in [0, 1] or null"
    if datetime.fromisoformat(record.started).tzinfo is None:
        yield f"started is {record.started!r:.40}, expected a time with a zone, such as ...+00:00"
