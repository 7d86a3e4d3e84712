"""The history: records of many runs with an index that can be rebuilt, accepted levels, and earlier tries of a gate."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pytest_adaptive_eval.errors import ConfigError, JournalError
from pytest_adaptive_eval.file_hashes import stamp_of
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inputs import open_regular, read_regular
from pytest_adaptive_eval.outputs import make_private
from pytest_adaptive_eval.records.drift import Series, SeriesPoint
from pytest_adaptive_eval.records.quantities import Quantity, of_answers, of_models, of_subject
from pytest_adaptive_eval.records.repetitions import content_of, population
from pytest_adaptive_eval.records.run_files import parse_run, read_run
from pytest_adaptive_eval.records.run_record import EvaluationRecord, GateRecord, RunRecord
from pytest_adaptive_eval.text import counted

#: Name of the file: a line of JSON per level.  It is not a record, whose names end in ``.json``.
FILE = "accepted-levels.jsonl"


@dataclass(frozen=True, slots=True)
class AcceptedLevel:
    """Accepted level of one `drift.Series`, which begins with a run."""

    evaluation: str
    metric: str
    category: str
    run: str
    started: str

    @property
    def series(self) -> tuple[str, str, str]:
        """Evaluation, metric and category."""
        return self.evaluation, self.metric, self.category


def accepted_levels(folder: Path) -> list[AcceptedLevel]:
    """Return the accepted levels of a history's folder, oldest decision first; none without the file.

    Raises:
        ConfigError: A line is damaged.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    levels = []
    for n, line in enumerate(read_regular(path).decode("utf-8", "replace").splitlines(), 1):
        try:
            level = AcceptedLevel(**json.loads(line))
        except (ValueError, TypeError):
            level = None
        if level is None or not all(isinstance(value, str) for value in asdict(level).values()):
            raise ConfigError(
                f"{path}, line {n}: expected an accepted level as `history --drift --accept RUN` writes it; "
                "remove the line"
            )
        levels.append(level)
    return levels


def accept_levels(folder: Path, levels: Sequence[AcceptedLevel]) -> Path:
    """Add accepted levels to the file of a history's folder, and return its path."""
    path = folder / FILE
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(level)) + "\n" for level in levels)
    return path


LATEST = "latest"  #: Name of the newest run with answers of its own.
_INDEX = 5  #: Version of the index and of the checks of its records; a file of another version is rebuilt.
_LARGEST = 512 * 2**20  #: Largest size of a record in bytes, also of an unpacked one.
_NO_RECORD = ""  #: Summary of a file that is no record, so that it is not read again.
#: Error codes of an index that another process uses, or in a folder that cannot be written.
_UNAVAILABLE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_OTHER = {"journal", "index", "node_modules", "__pycache__"}  #: Folders that never hold records.


@dataclass(frozen=True, slots=True)
class _File:
    """File, or member of an archive, that may hold a record; `stamp` differs after its content changed."""

    path: Path
    member: str
    size: int
    stamp: str

    @property
    def key(self) -> str:
        if self.member:
            return f"{self.path}!{self.member}"
        return str(self.path)

    def read(self) -> RunRecord | None:
        if self.size > _LARGEST:
            return None
        if self.member:
            try:
                with open_regular(self.path) as file, zipfile.ZipFile(file) as archive:
                    data = archive.read(self.member)
            except Exception as error:  # each decompressor has its own exceptions
                raise JournalError(f"{self.key} cannot be unpacked ({error}): copy the archive again") from error
        else:
            data = read_regular(self.path)
        if b'"run"' not in data or b'"gates"' not in data:
            return None
        return parse_run(data, self.key)


def _indexed(index: sqlite3.Connection) -> dict[Any, tuple[Any, ...]]:
    """Return stamp and summary by file; an empty mapping for a damaged index."""
    try:
        return {row[0]: row[1:] for row in index.execute("SELECT file, stamp, summary FROM run")}
    except (sqlite3.Error, UnicodeDecodeError):
        return {}


def _recalled(summary: Any) -> RunRecord | None:
    """Return the record of a summary, None without one or for a damaged index."""
    if not isinstance(summary, str) or summary == _NO_RECORD:
        return None
    try:
        return parse_run(summary.encode("utf-8", "replace"), "the index of the history")
    except JournalError:
        return None


def _unreadable(name: str, error: OSError) -> str:
    return f"{name} cannot be read: {error.strerror or error}: restore or remove it"


class History:
    """Runs in order of time.

    Args:
        source: A run folder (``.adaptive-eval``, or one that is committed), any folder with records such as a
            downloaded artifact, a zip archive of one, or the record of one run.

    Attributes:
        runs: Without their administrations, oldest first; `whole` reads those.
        unread: Files that look like records and cannot be read, each with the reason.

    Raises:
        JournalError: The path is missing, or is not an archive.
    """

    def __init__(self, source: Path) -> None:
        self.source = source
        self.unread: list[str] = []
        self._files: dict[str, _File] = {}
        self.runs: list[RunRecord] = []
        files = list(self._find())
        with closing(self._index()) as index:
            indexed = _indexed(index)
            for file in files:
                stamp, summary = indexed.get(file.key, (None, None))
                if stamp != file.stamp:
                    summary = None
                record = _recalled(summary)
                if record is None and summary != _NO_RECORD:
                    entry = self._entry(file)
                    if entry is None:
                        continue
                    summary, record = entry
                    with suppress(sqlite3.Error):  # an index that cannot be written costs time alone
                        row = (file.key, file.stamp, summary)
                        index.execute("INSERT OR REPLACE INTO run VALUES (?, ?, ?)", row)
                if record is not None and record.run not in self._files:  # a copy of a record is the same run
                    self._files[record.run] = file
                    self.runs.append(record)
            gone = set(indexed) - {file.key for file in files}
            with suppress(sqlite3.Error):  # a full disk or a damaged index costs time alone
                index.executemany("DELETE FROM run WHERE file = ?", [(key,) for key in gone])
                index.commit()
        self.runs.sort(key=lambda record: (record.started, record.run))

    def _find(self) -> Iterator[_File]:
        source = self.source
        members = None
        if source.is_file():
            members = self._members()
        if members is not None:
            stamp = str(stamp_of(source))
            for member in members:
                if member.filename.endswith(".json"):
                    yield _File(source, member.filename, member.file_size, stamp)
            return
        if not source.is_dir() and not (source.exists() and source.suffix == ".json"):
            raise JournalError(
                f"no history at {source}: run pytest --adaptive-eval first, or give a folder that --adaptive-eval-dir "
                "named, a folder or zip of downloaded records, or one record (.json)"
            )
        yield from self._files_at(source)

    def _files_at(self, source: Path) -> Iterator[_File]:
        """Yield the records of a folder, or the one at a path."""
        paths: Iterable[Path] = [source]
        if source.is_dir():
            folder = place_of(source)
            if folder == source:
                paths = _below(source)
            else:
                paths = folder.glob("[!.]*.json")
        for path in sorted(paths):
            try:
                stamp = stamp_of(path)
            except OSError as error:
                if os.path.lexists(path):  # otherwise it was removed since
                    self.unread.append(_unreadable(str(path), error))
                continue
            yield _File(path, "", stamp[0], str(stamp))

    def _members(self) -> list[zipfile.ZipInfo] | None:
        """Return the members of a zip archive, None for another file."""
        try:
            with open_regular(self.source) as file:
                if not zipfile.is_zipfile(file):
                    return None
                with zipfile.ZipFile(file) as archive:
                    return archive.infolist()
        except Exception as error:  # a damaged archive raises undocumented exceptions
            fault = f"{self.source} is a damaged zip archive ({error}): copy it again"
            if isinstance(error, OSError):
                fault = _unreadable(str(self.source), error)
            raise JournalError(fault) from error

    def _index(self) -> sqlite3.Connection:
        """Open the index beside the runs if it is writable, else one in memory."""
        if self.source.is_dir() and place_of(self.source) != self.source:
            path = self.source / "index" / "history.sqlite"
            for _ in range(2):
                try:
                    make_private(path.parent)
                    return _opened(str(path))
                except (sqlite3.Error, UnicodeDecodeError) as error:  # the second for names of the schema
                    if getattr(error, "sqlite_errorcode", None) in _UNAVAILABLE:
                        break
                    with suppress(OSError):  # damaged or of another version; the records have all of it
                        path.unlink(missing_ok=True)
                except OSError:
                    break
        return _opened(":memory:")

    def _entry(self, file: _File) -> tuple[str, RunRecord | None] | None:
        """Return a record without administrations as JSON and itself; `_NO_RECORD` and None for another file.

        None alone is for a file that cannot be read.
        """
        try:
            record = file.read()
        except JournalError as error:
            self.unread.append(str(error))
            return None
        except OSError as error:
            self.unread.append(_unreadable(file.key, error))
            return None
        except Exception as error:  # whatever a foreign file sets off; the others are read
            self.unread.append(f"{file.key} cannot be read: {type(error).__name__}: {error}: restore or remove it")
            return None
        if record is None:
            if file.path.parent.name == "runs":  # this folder holds records alone, so a run is lost
                self.unread.append(f"{file.key} is incomplete or damaged: restore or remove it")
                return None
            return _NO_RECORD, None
        brief = []
        for evaluation in record.evaluations:
            brief.append(replace(evaluation, administrations=[], account={}))
        record = replace(record, evaluations=brief)
        return json.dumps(record.to_json()), record

    def unread_notes(self) -> list[str]:
        """Return a sentence on the files that are skipped; none if all were read."""
        if not self.unread:
            return []
        return [f"{counted(len(self.unread), 'file')} of earlier runs skipped: {self.unread[0]}"]

    def add(self, record: RunRecord) -> None:
        """Add a run of another source, unless it is in this one."""
        if record.run not in self._files:
            self.runs.append(record)
            self.runs.sort(key=lambda record: (record.started, record.run))

    def including(self, record: RunRecord) -> History:
        """Return the history with a run that is under way; others may still read the whole runs of this one."""
        other = copy(self)
        other.runs = list(self.runs)
        other.add(record)
        return other

    def whole(self, run: str) -> RunRecord:
        """Return a run with its administrations; JournalError if its file is gone or damaged."""
        file = self._files[run]
        record: RunRecord | None
        if file.member:
            record = file.read()
        else:
            record = read_run(file.path)
        if record is None:
            raise JournalError(f"{file.key} changed while it was read: try again")
        return record

    def find(self, name: str) -> RunRecord:
        """Return the run of a name, with its administrations; see `identify`."""
        return self.whole(self.identify(name))

    def identify(self, name: str) -> str:
        """Return the id of the run of a name: `LATEST`, or an id or the beginning of one.

        Raises:
            ConfigError: No run has that name, or several do.
        """
        ids = [record.run for record in self.runs]
        if not ids:
            raise ConfigError(": ".join([f"{self.source} holds no record of a run", *self.unread[:1]]))
        if name == LATEST:
            if self.unread:
                raise ConfigError(
                    f"the latest run may be one that cannot be read: {self.unread[0]}; or give the run's id"
                )
            return self.newest.run
        equal = [run for run in ids if run == name]
        matches = equal or [run for run in ids if run.startswith(name)]
        if len(matches) == 1:
            return matches[0]
        examples = ", ".join((matches or ids)[-3:])
        count = "several runs" if matches else "no run"
        raise ConfigError(f"{self.source} has {count} {name!r}: give an id or the path of a record, such as {examples}")

    @property
    def accepted(self) -> list[AcceptedLevel]:
        """Levels that were accepted after a drop; none of an archive or one record."""
        if self.source.is_dir():
            return accepted_levels(self.source)
        return []

    @property
    def paths(self) -> set[Path]:
        """Files of the runs."""
        return {file.path for file in self._files.values()}

    @property
    def newest(self) -> RunRecord:
        """The newest run with answers of its own, else the newest derived one."""
        return max(self.runs, key=lambda record: (not record.copied_from, record.started, record.run))

    def evaluations(
        self, *, evaluation: str = "*", subject: str = "*", bank: str = "*", scale: str = "*"
    ) -> Iterator[tuple[RunRecord, EvaluationRecord]]:
        """Yield evaluations with their runs, oldest first, by patterns such as ``step-*``."""
        for record in self.runs:
            for entry in record.evaluations:
                asked = entry.bank
                if (
                    any(fnmatchcase(name, evaluation) for name in (entry.name, entry.evaluation_name))
                    and fnmatchcase(entry.subject.name, subject)
                    and any(fnmatchcase(text, bank) for text in (asked.name, asked.content_hash))
                    and fnmatchcase(asked.scale, scale)
                ):
                    yield record, entry

    def series(self, *, until: str = "", **which: str) -> list[Series]:
        """Return each evaluation, and each of its categories, over the runs with the same bank and scale.

        Areas of a task's ladders are one series for all seeds, under the bank of the newest. A series with an accepted
        level begins with its run.

        Args:
            **which: As in `evaluations`.

        Raises:
            ConfigError: The file of accepted levels is damaged.
        """
        accepted = {level.series: _moment(level.started) for level in self.accepted}
        points: dict[_Key, list[SeriesPoint]] = {}
        newest: dict[_Key, str] = {}
        for key, content, point in self._points(which):
            began = accepted.get((key[0], *key[4:]))
            if (until and point.started > until) or (began and _moment(point.started) < began):
                continue
            points.setdefault(key, []).append(point)
            newest[key] = content
        return [Series(*key[:2], newest[key], *key[3:], tuple(series)) for key, series in points.items()]

    def series_of(self, run: RunRecord) -> list[Series]:
        """Return the series of a run's evaluations, up to the run; see `series`."""
        keys = set()
        for entry in run.evaluations:
            keys.add((entry.name, content_of(entry), entry.bank.scale))
        series = self.series(until=run.started)
        return [entry for entry in series if (entry.evaluation, entry.bank_hash, entry.scale) in keys]

    def _points(self, which: Mapping[str, str]) -> Iterator[tuple[_Key, str, SeriesPoint]]:
        """Yield series, content hash of the bank and point of each estimate, interviews first."""
        measured = [
            (record, entry) for record, entry in self.evaluations(**which) if not (record.copied_from or entry.void)
        ]
        for record, entry in sorted(measured, key=lambda pair: not pair[1].bank):
            yield from _evaluation_points(record, entry)


_Key = tuple[str, str, str, str, str, str]  #: Evaluation, bank, population, scale, metric and category of a series.


def _evaluation_points(record: RunRecord, evaluation: EvaluationRecord) -> Iterator[tuple[_Key, str, SeriesPoint]]:
    """Yield a point for each estimate of an evaluation; a whole accuracy stands for a missing ability."""
    tested = evaluation.subject
    quantities = of_subject(evaluation, (*of_answers(evaluation), *of_models(evaluation)))
    by_ability = any(quantity.metric == "ability" for quantity, _ in quantities)
    for quantity, row in quantities:
        if row.estimate is None or (quantity == Quantity("accuracy") and by_ability):
            continue
        sampling_error = max(row.error or 0.0, row.sampling_error or 0.0)
        if not 0.0 < sampling_error < math.inf:
            continue
        error = row.error or sampling_error  # draws of the whole bank have none
        ends = (row.low, row.high) if quantity.metric == "accuracy" else (None, None)
        *series_key, content = _series_key(evaluation, quantity.metric)
        measured = row.estimate, error, *ends, sampling_error
        point = SeriesPoint(record.run, record.started, tested.name, tested.checkpoint, *measured)
        yield (evaluation.name, series_key[0], series_key[1], series_key[2], *quantity), content, point


def _series_key(evaluation: EvaluationRecord, metric: str) -> tuple[str, str, str, str]:
    """Return the bank, or the kind, of an evaluation; the key of what was asked; the scale; and the content hash."""
    bank = evaluation.bank
    asked = content_of(evaluation)
    if metric == "auc":
        measured = population(evaluation)
    else:
        measured = asked
    return bank.name or evaluation.kind, measured, bank.scale, asked


def _moment(text: str) -> datetime:
    """Return a time in ISO 8601, in UTC if it names no zone."""
    time = datetime.fromisoformat(text)
    if time.tzinfo:
        return time
    return time.replace(tzinfo=UTC)


def _opened(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=1.0)
    with ExitStack() as undo:
        undo.callback(connection.close)
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _INDEX):
            raise sqlite3.DatabaseError("another version")
        connection.execute("CREATE TABLE IF NOT EXISTS run (file TEXT PRIMARY KEY, stamp TEXT, summary TEXT)")
        connection.execute("SELECT file, stamp, summary FROM run LIMIT 1")
        connection.execute(f"PRAGMA user_version = {_INDEX}")
        connection.commit()
        undo.pop_all()  # it stays open
    return connection


def place_of(folder: Path) -> Path:
    """Return the folder of a history's records: ``runs`` in a run folder, any other folder itself."""
    runs = folder / "runs"
    if runs.is_dir() and (any(runs.glob("[!.]*.json")) or not any(_below(folder))):
        return runs
    return folder


def _below(folder: Path) -> Iterator[Path]:
    """Yield JSON files below a folder without following links."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _OTHER and not name.startswith(".git"))
        yield from (Path(here) / name for name in sorted(names) if name.endswith(".json") and name[0] != ".")


_SPAN = timedelta(days=1)  #: Span in which runs of one gate count as tries of it.


def earlier_tries(run: RunRecord, history: Iterable[RunRecord]) -> list[str]:
    """Return a sentence for each gate that passed after other outcomes for the same checkpoint within a day.

    The error rate of a verdict holds for one run. Of several, with other seeds, the best is chosen. A run that goes on
    from others with smaller budgets is one test with these.
    """
    began = datetime.fromisoformat(run.started)
    recent = []
    for r in history:
        if r.run != run.run and began - _SPAN <= datetime.fromisoformat(r.started) < began:
            recent.append(r)
    tries_by_key: dict[Any, list[tuple[GateRecord, EvaluationRecord]]] = {}
    for earlier in recent:
        for key, gate, interview in _keyed(earlier):
            if gate.verdict.notice:  # it had nothing to compare with, such as the run that became the baseline
                continue
            tries_by_key.setdefault(key, []).append((gate, interview))
    sentences = []
    for key, gate, last in _keyed(run):
        tries = []
        for entry in tries_by_key.get(key, []):
            if entry[1].planned not in last.policy.earlier:
                tries.append(entry)
        if gate.outcome is Outcome.PASS and any(other.outcome is not Outcome.PASS for other, _ in tries):
            outcomes = ", ".join(f"{other.outcome.value} ({_settings(interview)})" for other, interview in tries)
            sentences.append(
                f"{gate.name} passed after {counted(len(tries), 'other run')} of it for this checkpoint within a day: "
                f"{outcomes}; the error rate holds for one run, so decide by the first or name a seed and a budget once"
            )
    return sentences


def _keyed(run: RunRecord) -> Iterator[tuple[tuple[Any, ...], GateRecord, EvaluationRecord]]:
    """Yield the gates on interviews of an identified checkpoint, with what two runs of one gate have in common."""
    interviews = {name: interview for interview in run.interviews for name in (interview.nodeid, interview.name)}
    for gate in run.gates:
        interview = interviews.get(gate.interview)
        verdict = gate.verdict
        if interview is not None and interview.subject.checkpoint:
            repeated_gate = (
                gate.nodeid,
                verdict.metric,
                verdict.requirement,
                interview.whose or interview.subject.checkpoint,
            )
            yield (*repeated_gate, interview.bank.content_hash), gate, interview


def _settings(interview: EvaluationRecord) -> str:
    seed = "?" if interview.policy.seed is None else interview.policy.seed
    text = f"seed {seed}, {interview.asked} of {counted(interview.size, 'item')}"
    if interview.predictions is not None:
        return f"{text}, {interview.predictions.sentence}"
    return text
