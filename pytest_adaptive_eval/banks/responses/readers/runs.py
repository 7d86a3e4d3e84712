"""Read recorded runs of this package, whose responses can calibrate a bank without parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, named, score
from pytest_adaptive_eval.banks.rows import head, load_file
from pytest_adaptive_eval.errors import ResponsesError, UsageError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.text import counted

_BEGINNING = re.compile(r'\s*\{\s*"run"\s*:')


def is_record(path: Path) -> bool:
    """Return whether the name and the first bytes of a file look like a run record."""
    return path.suffix == ".json" and _BEGINNING.match(head(path, 256)) is not None


def read_runs(
    path: Path, settings: ReadSettings, *, column: Callable[[Administration], str] | None = None
) -> Responses:
    """Read a run record or a folder of them, such as ``.adaptive-eval`` or artifacts of several runs.

    A subject is a checkpoint with its decoding settings, whatever its name. Several responses to one item count as
    their mean. Responses to an earlier text of an item are omitted, and so are records merged from
    others in the folder.

    Args:
        settings: ``filter`` is the name of the bank; needed when the runs used several.
        column: Return the column of an administration, such as its item in a format. The default is the item, which
            then must have one format only.

    Raises:
        ResponsesError: Damaged record or ambiguous bank; the message names the record, or the banks to choose from.
    """
    interviews = list(_interviews(path, settings))
    if not interviews:
        raise ResponsesError(f"{path}: no run record with answers; expected what a run writes to .adaptive-eval/runs")
    banks = [named(interview.bank.name, "the bank", where) for where, interview in interviews]
    bank = choose("filter", set(banks), settings.filter, f"{path}: banks")
    interviews = [interview for interview, name in zip(interviews, banks, strict=True) if name == bank]
    latest = _latest_texts(interviews, one_format=column is None)
    collected = Collected(str(path))
    names = _names(interviews)
    edited = 0
    for where, interview in interviews:
        for administration in interview.administrations:
            item = administration.item
            if administration.item_hash == latest[item].item_hash:
                value = score(administration.score, f"{where}, item {item!r}")
                collected.add(names[_identity(interview)], column(administration) if column else item, value)
            else:
                edited += 1
    if edited:
        settings.note(f"{path.name}: {edited} answers to earlier texts of items that were edited since are left out")
    return collected.responses()


def _interviews(path: Path, settings: ReadSettings) -> Iterator[tuple[str, EvaluationRecord]]:
    """Yield place and record of each interview with a score, by start of the run."""
    void = 0
    for record, file in _independent_records(path, settings):
        for interview in record.interviews:
            if any(administration.score is not None for administration in interview.administrations):
                yield f"{file}: interview {interview.name!r}", interview
            else:
                void += 1
    if void:
        settings.note(f"{path.name}: {counted(void, 'interview')} without an answer that has a score left out")


def _independent_records(path: Path, settings: ReadSettings) -> list[tuple[RunRecord, Path]]:
    """Return one record per run with its file, by start of the run, without records merged from others of them."""
    if path.is_dir():
        files = []
        for file in files_of(path):
            if is_record(file):
                files.append(file)
    else:
        files = [path]
    records = sorted(((_read(file), file) for file in files), key=lambda pair: (str(pair[0].started), str(pair[1])))
    # --adaptive-eval-record writes the same run a second time
    runs = {str(record.run) or str(file): (record, file) for record, file in reversed(records)}
    merged = [run for run, (record, _) in runs.items() if record.merged and runs.keys() >= set(record.merged)]
    for run in merged:
        settings.note(f"{runs.pop(run)[1].name}: merged of runs that are read themselves, and left out")
    return list(runs.values())[::-1]


def _read(path: Path) -> RunRecord:
    data = load_file(path)
    if not isinstance(data, dict) or "run" not in data:
        raise ResponsesError(f"{path}: no run record; expected a file that --adaptive-eval-record or a run wrote")
    try:
        return RunRecord.from_json(data)
    except (UsageError, TypeError, ValueError, AttributeError) as error:
        raise ResponsesError(f"{path}: the run record is damaged: {error}; restore the file or leave it out") from error


def _identity(interview: EvaluationRecord) -> tuple[str, str]:
    """Return checkpoint and decoding hash, the recorded factors that determine a subject's answers."""
    return interview.subject.checkpoint or interview.subject.name.strip(), interview.subject.decoding_hash


def _names(interviews: list[tuple[str, EvaluationRecord]]) -> dict[tuple[str, str], str]:
    """Return a name for each subject, with hashes added where several have the same name."""
    first: dict[tuple[str, str], str] = {}
    for where, interview in interviews:
        first.setdefault(_identity(interview), named(interview.subject.name, "the subject's name", where))
    namesakes = Counter(first.values())
    return {
        (checkpoint, decoding): name if namesakes[name] == 1 else f"{name}@{checkpoint[:8]}+{decoding[:8]}"
        for (checkpoint, decoding), name in first.items()
    }


def _latest_texts(interviews: list[tuple[str, EvaluationRecord]], *, one_format: bool) -> dict[str, Administration]:
    """Return the last administration of each item; refuse several formats of one text where `one_format`."""
    latest: dict[str, Administration] = {}
    for where, interview in interviews:
        for administration in interview.administrations:
            before = latest.get(administration.item, administration)
            if one_format and before.item_hash == administration.item_hash and before.format != administration.format:
                raise ResponsesError(
                    f"{where}: item {administration.item!r} was administered as {administration.format!r} and "
                    f"elsewhere as {before.format!r}, which differ in difficulty; give the runs of one format"
                )
            latest[administration.item] = administration
    return latest


REGISTERED = (ResponseReader("runs", "run records of this package", is_record, read_runs, {"filter": "the bank"}),)
