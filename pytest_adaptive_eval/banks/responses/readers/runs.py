"""Read recorded runs of this package, whose responses can calibrate a bank without parameters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, choose, files_of, named, score
from pytest_adaptive_eval.banks.rows import head, load_file
from pytest_adaptive_eval.errors import ResponsesError, UsageError
from pytest_adaptive_eval.items.responses import Responses
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.run_record import Administration, EvaluationRecord, RunRecord
from pytest_adaptive_eval.text import counted

_BEGINNING = re.compile(r'\s*\{\s*"run"\s*:')


def is_record(path: Path) -> bool:
    """Return whether the name and the first bytes of a file look like a run record."""
    return path.suffix == ".json" and _BEGINNING.match(head(path, 256)) is not None


def _read(path: Path) -> RunRecord:
    data = load_file(path)
    if not isinstance(data, dict) or "run" not in data:
        raise ResponsesError(f"{path}: no run record; expected a file that --adaptive-eval-record or a run wrote")
    try:
        return RunRecord.from_json(data)
    except (UsageError, TypeError, ValueError, AttributeError) as error:
        raise ResponsesError(f"{path}: the run record is damaged: {error}; restore the file or leave it out") from error


def _identity(subject: SubjectIdentity, where: str) -> tuple[str, str]:
    """Return checkpoint and decoding hash, the recorded factors that determine a subject's answers."""
    name = named(subject.name, "the subject's name", where)
    return subject.checkpoint or name, subject.decoding_hash


def _names(interviews: list[tuple[str, EvaluationRecord]]) -> dict[tuple[str, str], str]:
    """Return a name for each subject, with hashes added where several have the same name."""
    first: dict[tuple[str, str], str] = {}
    for where, interview in interviews:
        first.setdefault(_identity(interview.subject, where), interview.subject.name.strip())
    namesakes = Counter(first.values())
    return {
        (checkpoint, decoding): name if namesakes[name] == 1 else f"{name}@{checkpoint[:8]}+{decoding[:8]}"
        for (checkpoint, decoding), name in first.items()
    }


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
    interviews = _interviews_of_bank(path, settings)
    latest = _latest_texts(interviews, one_format=column is None)
    collected = Collected(str(path))
    names, edited = _names(interviews), 0
    for where, interview in interviews:
        subject = names[_identity(interview.subject, where)]
        for administration in interview.administrations:
            item = administration.item
            if administration.item_hash != latest[item].item_hash:
                edited += 1
                continue
            name = item if column is None else column(administration)
            collected.add(subject, name, score(administration.score, f"{where}, item {item!r}"))
    if edited:
        settings.note(f"{path.name}: {edited} answers to earlier texts of items that were edited since are left out")
    return collected.responses()


def _interviews_of_bank(path: Path, settings: ReadSettings) -> list[tuple[str, EvaluationRecord]]:
    """Return file and name for messages, and the record, of each interview with a score on the chosen bank."""
    records = _independent_records(path, settings)
    interviews = [
        (f"{file}: interview {interview.name!r}", interview)
        for record, file in records
        for interview in record.interviews
        if any(administration.score is not None for administration in interview.administrations)
    ]
    if not interviews:
        raise ResponsesError(f"{path}: no run record with answers; expected what a run writes to .adaptive-eval/runs")
    if void := sum(len(record.interviews) for record, _ in records) - len(interviews):
        settings.note(f"{path.name}: {counted(void, 'interview')} without an answer that has a score left out")
    banks = [named(interview.bank.name, "the bank", where) for where, interview in interviews]
    bank_name = choose("filter", set(banks), settings.filter, f"{path}: banks")
    return [interview for interview, name in zip(interviews, banks, strict=True) if name == bank_name]


def _independent_records(path: Path, settings: ReadSettings) -> list[tuple[RunRecord, Path]]:
    """Return one record per run with its file, by start of the run, without records derived from others of them."""
    paths = [file for file in files_of(path) if is_record(file)] if path.is_dir() else [path]
    records = sorted(((_read(file), file) for file in paths), key=lambda pair: (str(pair[0].started), str(pair[1])))
    runs: dict[str, tuple[RunRecord, Path]] = {}
    for record, file in records:  # --adaptive-eval-record writes the same run a second time
        runs.setdefault(str(record.run) or str(file), (record, file))
    derived = [run for run, (record, _) in runs.items() if record.merged and runs.keys() >= set(record.merged)]
    for run in derived:
        _, file = runs.pop(run)
        settings.note(f"{file.name}: merged of runs that are read themselves, and left out")
    return list(runs.values())


def _latest_texts(interviews: list[tuple[str, EvaluationRecord]], *, one_format: bool) -> dict[str, Administration]:
    """Return the last administration of each item; refuse several formats of one text where `one_format`."""
    latest: dict[str, Administration] = {}
    for where, interview in interviews:
        for administration in interview.administrations:
            administration.item = named(administration.item, "item", where)
            before = latest.setdefault(administration.item, administration)
            if one_format and before.item_hash == administration.item_hash and before.format != administration.format:
                raise ResponsesError(
                    f"{where}: item {administration.item!r} was administered as {administration.format!r} and "
                    f"elsewhere as {before.format!r}, which differ in difficulty; give the runs of one format"
                )
            latest[administration.item] = administration
    return latest


REGISTERED = (ResponseReader("runs", "run records of this package", is_record, read_runs, {"filter": "the bank"}),)
