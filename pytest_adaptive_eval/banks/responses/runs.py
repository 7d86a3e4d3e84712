"""Recorded runs of this package: answers of later checkpoints calibrate a bank that had no parameters."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.banks.responses.files import (
    Collected,
    choose,
    files_of,
    head,
    load_file,
    named,
    score,
)
from pytest_adaptive_eval.errors import ResponsesError, UsageError
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.records.derived import sources_of
from pytest_adaptive_eval.records.run_record import Administration, InterviewRecord, RunRecord
from pytest_adaptive_eval.text import counted

__all__ = ["is_record", "read_runs"]

_BEGINNING = re.compile(r'\s*\{\s*"run"\s*:')


def is_record(path: Path) -> bool:
    """Whether a file's name and beginning are those of a run record."""
    return path.suffix == ".json" and _BEGINNING.match(head(path, 256)) is not None


def _read(path: Path) -> RunRecord:
    data = load_file(path)
    if not isinstance(data, dict) or "run" not in data:
        raise ResponsesError(f"{path}: no run record; expected a file that --adaptive-eval-record or a run wrote")
    try:
        return RunRecord.from_json(data)
    except UsageError as error:
        raise ResponsesError(f"{path}: {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ResponsesError(f"{path}: the run record is damaged: {error}; restore the file or leave it out") from error


def _identity(subject: Mapping[str, Any], where: str) -> tuple[str, str]:
    """What the answers depend on, as far as it is recorded."""
    name = named(subject.get("name") if isinstance(subject, dict) else None, "the subject's name", where)
    return str(subject.get("checkpoint") or name), str(subject.get("decoding_hash") or "")


def _names(interviews: list[tuple[str, InterviewRecord]]) -> dict[tuple[str, str], str]:
    """A name for each subject: its own, with hashes where several go by the same name."""
    first: dict[tuple[str, str], str] = {}
    for where, interview in interviews:
        first.setdefault(_identity(interview.subject, where), str(interview.subject["name"]).strip())
    namesakes = Counter(first.values())
    checkpoints = Counter((name, checkpoint) for (checkpoint, _), name in first.items())
    names = {}
    for (checkpoint, decoding), name in first.items():
        label = name
        if namesakes[name] > 1:
            label += f"@{checkpoint[:8]}"
            label += f"+{decoding[:8]}" if checkpoints[name, checkpoint] > 1 else ""
        names[checkpoint, decoding] = label
    return names


def read_runs(
    path: Path,
    bank: str | None,
    note: Callable[[str], object],
    *,
    by: Callable[[Administration], str] | None = None,
) -> Responses:
    """A run record, or a folder with some, such as ``.adaptive-eval`` or one with artifacts of several runs.

    A subject is a checkpoint with its decoding settings, whatever it was called.
    Only answers with status ok have a score; several to one item count as their
    mean.  Answers to an earlier text of an item are left out, and so are
    records that were rescored or merged from others that are there.

    Parameters
    ----------
    path : Path
    bank : str or None
        Name of the bank; needed when the runs used several.
    note : callable
        Takes sentences about what was left out.
    by : callable, optional
        Names what an answer is to, such as an item in a format; the item when omitted, which must then have been asked
        in one format only.

    Raises
    ------
    ResponsesError
        Names the record, or the banks to choose from.
    """
    found = [file for file in files_of(path) if is_record(file)] if path.is_dir() else [path]
    records = sorted(((_read(file), file) for file in found), key=lambda pair: (str(pair[0].started), str(pair[1])))
    runs: dict[str, tuple[RunRecord, Path]] = {}
    for record, file in records:  # --adaptive-eval-record writes the same run a second time
        runs.setdefault(str(record.run) or str(file), (record, file))
    for run in [run for run, (record, _) in runs.items() if (of := sources_of(record)) and runs.keys() >= set(of)]:
        note(f"{runs.pop(run)[1].name}: a copy, rescored or merged, of runs that are read themselves, is left out")
    interviews = [
        (f"{file}: interview {interview.name!r}", interview)
        for record, file in runs.values()
        for interview in record.interviews
        if any(asked.score is not None for asked in interview.administrations)
    ]
    void = sum(len(record.interviews) for record, _ in runs.values()) - len(interviews)
    if void and interviews:
        note(f"{path.name}: {counted(void, 'interview')} without an answer that has a score left out")
    if not interviews:
        raise ResponsesError(f"{path}: no run record with answers; expected what a run writes to .adaptive-eval/runs")
    banks = [named(i.bank.get("name") if isinstance(i.bank, dict) else None, "the bank", w) for w, i in interviews]
    kept = choose("filter", set(banks), bank, f"{path}: banks")
    interviews = [pair for pair, name in zip(interviews, banks, strict=True) if name == kept]
    latest: dict[str, Administration] = {}
    for where, interview in interviews:
        for asked in interview.administrations:
            asked.item = named(asked.item, "item", where)
            before = latest.setdefault(asked.item, asked)
            if by is None and before.item_hash == asked.item_hash and before.format != asked.format:
                raise ResponsesError(
                    f"{where}: item {asked.item!r} was asked as {asked.format!r} and elsewhere as {before.format!r}, "
                    "which differ in difficulty; give the runs of one format"
                )
            latest[asked.item] = asked
    collected = Collected(str(path))
    names, edited = _names(interviews), 0
    for where, interview in interviews:
        subject = names[_identity(interview.subject, where)]
        for asked in interview.administrations:
            if asked.item_hash != latest[asked.item].item_hash:
                edited += 1
                continue
            right = asked.score if asked.status == Status.OK.value else math.nan
            name = asked.item if by is None else by(asked)
            collected.add(subject, name, score(right, f"{where}, item {asked.item!r}"))
    if edited:
        note(f"{path.name}: {edited} answers to earlier texts of items that were edited since are left out")
    return collected.responses()
