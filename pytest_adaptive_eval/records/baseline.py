"""The baseline of a candidate, read from a run's record, a history or a file of recorded answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import numpy as np

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, BaselineMissing
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inputs import find_input
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.records.parts import BaselineSource
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import (
    Administration,
    EvaluationRecord,
    Place,
    RunRecord,
    changed_requests,
    knows_weights,
)
from pytest_adaptive_eval.registry import service
from pytest_adaptive_eval.types import Array

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.history import History

Compared = TypeVar("Compared", Baseline, Result)

_ANSWERS = "replay:"  #: Prefix of files and folders that are read as recorded answers, whatever their name.
HARNESS_VERSION = "harness version"  #: Key of an identity's environment.
STALE = 30  #: Days after which a verdict notes the age of its baseline.


@dataclass(frozen=True, slots=True)
class BaselineFile(Generic[Compared]):
    """Baseline with the hashes that a candidate must share; empty where the file has none.

    Args:
        baseline: Scores of an interview, or the result of an evaluation of another kind.
        where: The file, and the interview in it, for messages.
        decoding: Hash of the decoding settings.
        requests: What its tests asked, see `EvaluationRecord.requests`.
        started: Time of recording, ISO 8601; empty if unknown.
        refusal: Why its run did not pass; empty for one that passed, and for answers without a run.
        source: Its origin, for the candidate's record: path, subject, run and a hash of the answers; empty for another
            interview of the candidate's run.
        version: Of the harness that ran the items, if one did; empty if unknown.
    """

    baseline: Compared
    where: str
    decoding: str = ""
    started: str = ""
    checkpoint: str = ""
    refusal: str = ""
    source: BaselineSource = field(default_factory=BaselineSource)
    requests: Mapping[Place, str] = field(default_factory=dict)
    version: str = ""

    def age(self, now: datetime) -> str:
        """Return a note on an old baseline, an empty text for a recent one."""
        try:
            days = (now - datetime.fromisoformat(self.started)).days
        except (ValueError, TypeError):  # not recorded, or without a time zone
            return ""
        if days < STALE:
            return ""
        return f"the baseline {self.baseline.name} was recorded {days} days ago: record it again if main has moved on"

    def doubts(self, candidate: SubjectIdentity) -> Iterator[str]:
        """Yield notes on a baseline that is the candidate itself, or is of a run that did not pass."""
        name = self.baseline.name
        is_named_alike = candidate.hashes_files or name == candidate.name  # two models may both be called v1
        if self.checkpoint and self.checkpoint == candidate.checkpoint and is_named_alike:
            if not knows_weights(candidate):
                yield (
                    f"the baseline {name} has the address and the name of the candidate, and may be the same "
                    "checkpoint: the option revision distinguishes them"
                )
            else:
                yield f"the baseline {name} is the same checkpoint as the candidate"
        version = candidate.environment.get(HARNESS_VERSION, "")
        if self.version and version and self.version != version:
            yield f"the harness of the baseline {name} had version {self.version}, and now has {version}"
        if self.refusal:
            yield f"the baseline {name} is of a run that did not pass ({self.refusal}): compare with one that passed"

    def compared(self, bank: ItemBank, answers: Iterable[Administration]) -> BaselineSource:
        """Return the source with the items that a candidate lost and gained; `answers` has each item once."""
        source, before = self.source, self.baseline
        scores: Mapping[str, float] = {}
        if isinstance(before, Baseline):
            scores = dict(zip(map(str, bank.ids), before.scores.tolist(), strict=False))
        scored = ((asked.item, asked.score) for asked in answers if asked.score is not None)
        changes = {}
        for item, score in scored:
            changes[item] = score - scores.get(item, math.nan)
        return BaselineSource(
            source.path,
            source.subject,
            source.run,
            source.hash,
            common=sum(not math.isnan(change) for change in changes.values()),
            lost=[item for item, change in changes.items() if change < 0],
            gained=[item for item, change in changes.items() if change > 0],
        )

    def check_requests(self, administrations: Iterable[Administration]) -> None:
        """Raise BaselineError if a candidate was asked something else."""
        changed = changed_requests(self.requests, administrations)
        if changed:
            raise BaselineError(
                f"{self.where}: {changed} the prompts changed since the baseline was recorded, so the results are not "
                "comparable: record the baseline again"
            )

    def check(self, *, decoding: str, checkpoint: str = "") -> None:
        """Raise if a candidate is decoded in another way, or is the baseline itself.

        Raises:
            BaselineError: The decoding settings changed, or the baseline is the file of the candidate's recorded
                answers; the message names which.
        """
        check_faults(self._faults(decoding, checkpoint), self.where, BaselineError)

    def _faults(self, decoding: str, checkpoint: str) -> Iterator[str]:
        answers_alone = bool(self.source.path) and not self.source.run
        if answers_alone and checkpoint and self.checkpoint == checkpoint:
            yield (
                "the baseline holds the same answers as the model, so no answer can be worse: name the file of another "
                "model as the baseline"
            )
        if self.decoding and decoding and self.decoding != decoding:
            yield (
                f"the decoding settings changed since the baseline was recorded (hash {self.decoding} then, {decoding} "
                "now), so the results are not comparable: record the baseline again"
            )


def read_baseline(
    spec: str, folders: Sequence[Path], bank: ItemBank, evaluation: str, *, run: str = ""
) -> BaselineFile[Baseline]:
    """Return the baseline of one evaluation.

    Args:
        spec: A run's record (``.json``); a history (a run folder, a folder or zip of records), for its newest run that
            passed; or recorded answers (``.csv``, ``.csv.gz``, ``.jsonl``, or anything after ``replay:``), with
            ``#NAME`` for one subject; or a run of MLflow or Weights & Biases that keeps its record, ``mlflow:RUN`` or
            ``wandb:ENTITY/PROJECT/RUN``.
        evaluation: Name of the candidate's evaluation, and of its interview in a record.
        run: Id of a run of the history in place of the newest that passed.

    Raises:
        BaselineMissing: It lacks an interview of the evaluation.
        BaselineError: The file is missing, unreadable, or belongs to another bank.
    """
    with as_baseline_error():
        recorded = find_recorded(spec, folders, bank, evaluation, run=run)
        if recorded.record is None:
            file = _from_answers(recorded, bank)
        else:
            file = _from_record(recorded, recorded.record, bank, evaluation)
    return replace(file, source=BaselineSource(recorded.shown, recorded.subject, file.source.run, file.source.hash))


class Recorded(NamedTuple):
    """Source of answers: a run's record, or a file of recorded answers.

    Args:
        source: The file, or the name of a tracker's run.
        subject: Name in a file of answers; empty for the only one.
        shown: The path as it was written, where it is relative to the first folder; else the whole path.
    """

    source: Path | str
    subject: str
    shown: str
    record: RunRecord | None


def find_recorded(spec: str, folders: Sequence[Path], bank: ItemBank, evaluation: str, *, run: str = "") -> Recorded:
    """Return the record or the answers that a text names; parameters and errors as of `read_baseline`."""
    if is_tracked(spec):
        return Recorded(spec, "", spec, service("fetch_run", "exports")(spec))
    path, subject = baseline_path(spec)
    source = locate_baseline(
        path, folders, "name another evaluation of the run, a run's record, or a file of recorded answers"
    )
    if source == folders[0] / path:
        written = path
    else:
        written = str(source)
    record = None
    if not spec.startswith(_ANSWERS) and (source.is_dir() or source.suffix in (".zip", ".json")):
        record = _record_in(source, evaluation, bank, run)
    return Recorded(source, subject, written, record)


@contextmanager
def as_baseline_error() -> Iterator[None]:
    """Raise errors of reading as a BaselineError."""
    try:
        yield
    except BaselineError:
        raise
    except AdaptiveEvalError as error:
        raise BaselineError(str(error)) from error


def _record_in(source: Path, evaluation: str, bank: ItemBank | None = None, run: str = "") -> RunRecord:
    """Return the record in a file; in a history the run of an id, else the newest that serves, see `_newest`."""
    if source.suffix == ".json":
        return read_run(source)
    from pytest_adaptive_eval.records.history import History  # a data base, which few runs need

    history = History(source)
    if run:
        return history.find(run)
    return _newest(history, evaluation, bank)


def is_tracked(spec: str) -> bool:
    """Return whether a text names a run of a tracker, such as ``mlflow:RUN`` or ``wandb:ENTITY/PROJECT/RUN``."""
    return spec.startswith(("mlflow:", "wandb:"))


def locate_baseline(path: str, folders: Sequence[Path], advice: str) -> Path:
    """Return the file or folder of a baseline, or raise a BaselineError that ends with `advice`."""
    source = find_input(path, folders)
    if source is None:
        tried = " or ".join(dict.fromkeys(str(folder / path) for folder in folders))
        raise BaselineError(f"no baseline at {tried}: {advice}")
    return source


def baseline_path(spec: str) -> tuple[str, str]:
    """Return the path of a baseline's file, and the subject in it, empty for the only one."""
    path, _, subject = spec.removeprefix(_ANSWERS).partition("#")
    return path, subject


def _newest(history: History, evaluation: str, bank: ItemBank | None = None) -> RunRecord:
    """Return the newest run that serves, if possible one on this version of the bank, and with answers of its own.

    Without a bank, the evaluation calls its models itself.
    """
    ranked = []
    for position, record in enumerate(history.runs):
        for entry in record.evaluations:
            if record.serves_as_baseline and entry.name == evaluation and not entry.error:
                if bool(entry.bank) is (bank is not None):
                    ranked.append(
                        (
                            bank is not None and entry.bank.content_hash == bank.content_hash,
                            not record.copied_from,
                            record.exit_status == 0,
                            position,
                            record.run,
                        )
                    )
    if not ranked:
        raise BaselineMissing(
            f"{history.source}: of its {len(history.runs)} runs none has passed with the evaluation {evaluation!r}"
        )
    return history.whole(max(ranked)[-1])


def _from_record(recorded: Recorded, record: RunRecord, bank: ItemBank, evaluation: str) -> BaselineFile[Baseline]:
    interview = interview_in(recorded.source, record, bank, evaluation)
    file = baseline_of(interview, bank, f"{recorded.source}: interview {interview.name!r}", record.started)
    source = BaselineSource(run=record.run, hash=interview.answers_hash)
    return replace(file, refusal=_refusal(record), source=source)


def interview_in(path: Path | str, record: RunRecord, bank: ItemBank, evaluation: str) -> EvaluationRecord:
    """Return the interview of a record that asked a bank, preferably that of the evaluation's name.

    Raises:
        BaselineMissing: There is none.
        BaselineError: There are several.
    """
    candidates = []
    for i in record.interviews:
        if i.administrations and i.bank.name == bank.name:
            candidates.append(i)
    candidates = [i for i in candidates if i.name == evaluation] or candidates
    if not candidates:
        asked = ", ".join(f"{i.name!r} on the bank {i.bank.name!r}" for i in record.interviews) or "none"
        raise BaselineMissing(
            f"{path}: the run asked no item of the bank {bank.name!r}, which {evaluation!r} asks; its interviews are "
            f"{asked}: name a run on this bank"
        )
    if len(candidates) > 1:
        names = ", ".join(f"{i.name} on {i.bank.name}" for i in record.interviews) or "none"
        raise BaselineError(
            f"{path}: {len(candidates)} of its interviews ({names}) could be the baseline of {evaluation!r} on the "
            f"bank {bank.name!r}: expected one"
        )
    return candidates[0]


def _refusal(record: RunRecord) -> str:
    """Return why a run did not pass: its gates by outcome, or its exit status; empty for one that serves."""
    outcomes: dict[str, list[str]] = {}
    for gate in record.gates:
        if gate.outcome is not Outcome.PASS and not gate.verdict.notice:
            outcomes.setdefault(gate.outcome.value, []).append(gate.name)
    if outcomes:
        return "; ".join(f"{outcome} of {', '.join(names)}" for outcome, names in outcomes.items())
    if record.serves_as_baseline:
        return ""
    return f"exit status {record.exit_status}"


def baseline_of(interview: EvaluationRecord, bank: ItemBank, where: str, started: str) -> BaselineFile[Baseline]:
    """Return a recorded interview as a baseline.

    Raises:
        BaselineError: The interview is void, or on another bank.
    """
    check_faults(_interview_faults(interview, bank), where, BaselineError)
    subject = interview.subject
    baseline = _of_draws(subject.name or interview.name, interview, bank)
    requests = interview.requests
    version = str(subject.environment.get(HARNESS_VERSION, ""))
    return BaselineFile(
        baseline, where, subject.decoding_hash, started, subject.checkpoint, requests=requests, version=version
    )


def _interview_faults(interview: EvaluationRecord, bank: ItemBank) -> Iterator[str]:
    if interview.error:
        yield f"it is void ({interview.error}): record the baseline again"
    before, now = (part or "the whole bank" for part in (interview.bank.category, bank.report.get("category")))
    if before != now:
        yield (
            f"it asked {before!r:.80}, and this evaluation asks {now!r}: record one that asks the same, or name a file "
            "of answers to the whole bank"
        )
    if interview.bank.content_hash != bank.content_hash:
        yield (
            f"the bank {bank.name!r} changed since the baseline was recorded (content hash "
            f"{interview.bank.content_hash} then, {bank.content_hash} now): record the baseline again"
        )
    items = set(map(str, bank.ids))
    for asked in interview.administrations:
        if asked.item not in items:
            yield f"the bank {bank.name!r} has no item {asked.item!r}"


def _of_draws(name: str, interview: EvaluationRecord, bank: ItemBank) -> Baseline:
    index = {str(item): n for n, item in enumerate(bank.ids)}
    log = interview.draws(index)
    scores = np.full(len(bank), np.nan)
    scores[log.items] = log.scores
    return Baseline(name, scores, log, climbed=interview.policy.stop == "level")


def _from_answers(recorded: Recorded, bank: ItemBank) -> BaselineFile[Baseline]:
    identity, scores = answers_in(recorded, bank)
    source = BaselineSource(hash=identity.checkpoint[:16])
    return BaselineFile(
        Baseline(identity.name, scores), str(recorded.source), checkpoint=identity.checkpoint, source=source
    )


def answers_in(recorded: Recorded, bank: ItemBank) -> tuple[SubjectIdentity, Array]:
    """Return the subject of a file of recorded answers, and its scores on a bank, NaN where missing, shape (n,).

    Raises:
        BaselineError: An answer cannot be graded, or there is none.
    """
    from pytest_adaptive_eval.models.replay import ReplayModel

    path = recorded.source
    replay = ReplayModel.load(path, recorded.subject or None)
    scores = np.full(len(bank), np.nan)
    for n, (item, completion) in enumerate(zip(bank.items, replay.answer(list(bank.items)), strict=True)):
        response = completion.response(item)
        if response.status.infrastructure and not completion.status.infrastructure:
            raise BaselineError(f"{path}: an answer of the baseline cannot be graded: {response.detail}")
        if response.score is not None:
            scores[n] = response.score
    if np.isnan(scores).all():
        raise BaselineError(f"{path}: it has no answer to any item of the bank {bank.name!r}; check that the ids agree")
    return replay.identity, scores


def read_recorded(spec: str, folders: Sequence[Path], evaluation: str, kind: str) -> EvaluationRecord:
    """Return the record of one evaluation of another kind than interviews.

    Args:
        spec: A run's record (``.json``), or a history (a run folder, a folder or zip of records), for its newest run
            that passed.
        evaluation, kind: Name and kind of the evaluation, here and in the record.

    Raises:
        BaselineMissing: It lacks the evaluation.
        BaselineError: The file is missing or unreadable, or the evaluation is void.
    """
    source = locate_baseline(spec, folders, "name another evaluation of the run, or a run's record")
    with as_baseline_error():
        record = _record_in(source, evaluation)
    recorded = next((entry for entry in record.evaluations if (entry.name, entry.kind) == (evaluation, kind)), None)
    if recorded is None:
        names = ", ".join(f"{entry.name} ({entry.kind})" for entry in record.evaluations) or "none"
        raise BaselineMissing(
            f"{source}: the run has no evaluation {evaluation!r} of the kind {kind!r}; it has {names}"
        )
    if recorded.error:
        raise BaselineError(
            f"{source}: the evaluation {evaluation!r} is void ({recorded.error}): record the baseline again"
        )
    return recorded
