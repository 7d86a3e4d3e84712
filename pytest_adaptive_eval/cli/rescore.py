"""Judge recorded answers again, with corrected answer keys, other gates, or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pytest_adaptive_eval.cat.policy import FIXED_FORM, POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, BaselineMissing, ConfigError
from pytest_adaptive_eval.evaluation import TomlEval, TomlSuite, bank_notes, read_gate, read_suite
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.misfit import with_misfit_note
from pytest_adaptive_eval.gates.must_pass import must_pass_sentence
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.suite import Suite
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.ladder.policy import levelled
from pytest_adaptive_eval.models.base import Completion
from pytest_adaptive_eval.records.baseline import BaselineFile, baseline_of, read_again, read_baseline
from pytest_adaptive_eval.records.findings import findings
from pytest_adaptive_eval.records.parts import BaselineSource, ConditionRecord, VerdictRecord
from pytest_adaptive_eval.records.run_record import (
    Administration,
    EvaluationRecord,
    GateRecord,
    RunRecord,
    noise_of,
    recorded_must_pass,
    suite_gates,
)
from pytest_adaptive_eval.text import counted


@dataclass(slots=True)
class _Rescored:
    """One interview with its new scores, gates and result.

    Args:
        administrations: Recorded administrations with new scores.
        notes: Notes of the new record.
        conditions: Conditions of its gates.
        baselines: Baselines by the name that conditions give them.
        sources: Files of the baselines, by the same names.
        absent: Reasons why a baseline is missing, by the same names.
    """

    old: EvaluationRecord
    bank: ItemBank
    administrations: list[Administration]
    notes: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    baselines: dict[str, Baseline] = field(default_factory=dict)
    sources: dict[str, BaselineSource] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    result: SessionResult | None = None

    @property
    def regraded(self) -> EvaluationRecord:
        """The record with the new scores."""
        changes = {"administrations": self.administrations}
        return msgspec.structs.replace(self.old, **changes)

    @property
    def names(self) -> tuple[str, str]:
        """Name and node id of the interview."""
        return self.old.name, self.old.nodeid


def rescore(
    record: RunRecord,
    banks: Mapping[str, ItemBank],
    *,
    gates: Sequence[TomlEval] = (),
    suites: Sequence[TomlSuite] = (),
    baseline: str | None = None,
    folders: Sequence[Path] = (),
    run: str,
    now: datetime,
) -> RunRecord:
    """Return a new record with the old answers, graded and judged again.

    Answers to changed items are graded by the current bank. If the recorded scores of unchanged items differ from their
    grader's, the test scores in its own way, and the recorded scores are kept.

    Args:
        banks: Banks by the evaluation's name.
        gates, suites: Evaluations and suites whose gates take the place of the recorded ones.
        baseline: File that gates call ``"baseline"``, see `read_baseline`; the baseline of the run when omitted.
        folders: Folders that relative paths of baselines are looked up in.
        run: Id of the new record.
        now: Start of the new record, with a time zone.

    Raises:
        ConfigError: A bank is not at hand or is another one, or a gate cannot be judged again.
        BaselineError: A baseline is not comparable, or the baseline of the run is gone, has changed or is unknown.
    """
    interviews = [_graded(interview, banks) for interview in record.interviews]
    others = [evaluation for evaluation in record.evaluations if not evaluation.is_interview]
    names = {name for evaluation in others for name in (evaluation.name, evaluation.nodeid)}
    standing = [gate for gate in record.gates if gate.interview in names]
    judgments = _judgments(record, interviews, gates, suites, standing)
    for interview in interviews:
        recorded = [part for gate in record.gates for part in gate.gates or [gate]]
        recorded_gates = [gate for gate in recorded if gate.interview in interview.names]
        _compare_with(interview, interviews, recorded_gates, baseline, folders)
    verdicts = [*_verdicts(interviews, judgments), *standing]
    # gates of a file do not depend on what the recorded run missed
    carried = ("required",) if gates or suites else ("missing", "deselected", "shard", "required")
    carried_facts: dict[str, Any] = {name: getattr(record, name) for name in carried}
    new_record = RunRecord(
        run,
        now.astimezone(UTC).isoformat(timespec="milliseconds"),
        versions=dict(record.versions),
        exit_status=0 if _passes(record, verdicts) and not carried_facts.get("missing") else 1,
        evaluations=[*map(_new_record, interviews), *others],
        gates=verdicts,
        rescored_from=record.run,
        **carried_facts,
    )
    new_record.fail_without_required()
    new_record.warn()
    return new_record


def _passes(record: RunRecord, verdicts: Sequence[GateRecord]) -> bool:
    """Return whether every gate holds, at least one passes, and nothing ended by an error."""
    decided = any(gate.outcome is Outcome.PASS for gate in verdicts)
    ended = not any(evaluation.error for evaluation in record.evaluations)
    return decided and ended and all(gate.holds for gate in verdicts)


def _graded(old: EvaluationRecord, banks: Mapping[str, ItemBank]) -> _Rescored:
    """Return the interview with the scores by its present bank."""
    bank = _same_items(old, banks.get(old.name))
    items = dict(zip(map(str, bank.ids), bank.items, strict=True))
    pairs = [(entry, _regraded(entry, items[entry.item])) for entry in old.administrations]
    unchanged = [(a.score, b.score) for a, b in pairs if a.item_hash == b.item_hash]
    if any(before != new for before, new in unchanged if None not in (before, new)):
        note = "the test scores answers in its own way, so the recorded scores are kept"
        return _Rescored(old, bank, list(old.administrations), [note])
    rescored = _Rescored(old, bank, [new for _, new in pairs])
    if changed := sum(new.score != before.score for before, new in pairs):
        rescored.notes.append(f"{counted(changed, 'answer')} got another score than was recorded")
    kept = [pair for pair in pairs if not Status(pair[0].status).infrastructure]
    if lost := sum(new.score is None and before.score is not None for before, new in kept):
        rescored.notes.append(f"{counted(lost, 'score')} of changed items are lost: no text was kept")
    return rescored


def _same_items(old: EvaluationRecord, bank: ItemBank | None) -> ItemBank:
    """Return the interview's bank; refuse a missing one, and one with other items."""
    if bank is None:
        raise ConfigError(
            f"the bank of {old.name!r}, {old.bank.path or old.bank.name}, is not at hand: name it with "
            f"--bank {old.name}=PATH"
        )
    ids = set(map(str, bank.ids))
    absent_item = next((entry.item for entry in old.administrations if entry.item not in ids), None)
    if absent_item is not None or len(bank) != old.size:
        size = f"has {len(bank)} items and had {old.size}"
        mismatch = size if absent_item is None else f"has no item {absent_item!r}"
        raise ConfigError(
            f"{old.name}: the bank {bank.name!r} {mismatch}: the draws were made from another set of items; "
            "name the bank of the run"
        )
    return bank


def _regraded(entry: Administration, item: Item) -> Administration:
    """Return an administration with its score by the present item, None where a changed item cannot be graded."""
    score, status = entry.score if item.content_hash == entry.item_hash else None, Status(entry.status)
    if entry.text or status is not Status.OK:
        with suppress(AdaptiveEvalError):
            response = Completion(entry.text, status).response(item)
            if response.status.infrastructure == status.infrastructure:  # else it cannot be graded here
                score = response.score
    return msgspec.structs.replace(entry, score=score, item_hash=item.content_hash)


class _Judgment(NamedTuple):
    """A gate of the new record, and its conditions with their interviews: one, or those of a suite."""

    gate: GateRecord
    conditions: list[tuple[_Rescored, Condition]]
    suite: Suite | None = None


def _judgments(
    record: RunRecord,
    interviews: Sequence[_Rescored],
    gates: Sequence[TomlEval],
    suites: Sequence[TomlSuite],
    standing: Sequence[GateRecord],
) -> list[_Judgment]:
    """Return the gates to judge; their conditions are added to the interviews."""
    if gates or suites:
        judgments = [*_file_conditions(interviews, gates), *(_file_suite(interviews, suite) for suite in suites)]
    else:
        judgments = [_recorded(interviews, gate) for gate in record.gates if gate not in standing]
    if not judgments and not standing:
        raise ConfigError("the run has no gates to judge again: give some with --gates FILE.toml")
    for interview, condition in (pair for judgment in judgments for pair in judgment.conditions):
        condition.check(interview.bank, climbed=interview.old.policy.stop == "level")
        interview.conditions.append(condition)
    return judgments


def _recorded(interviews: Sequence[_Rescored], gate: GateRecord) -> _Judgment:
    """Return a recorded gate, to be judged again by the same conditions."""
    conditions = [
        (_named(interviews, part.interview, part.nodeid), _recorded_condition(part)) for part in gate.gates or [gate]
    ]
    if not gate.gates or (suite := gate.verdict.condition) is None:
        return _Judgment(gate, conditions)
    required = Suite(int(suite.value), len(conditions), suite.confidence, suite.on_inconclusive)
    return _Judgment(gate, conditions, required)


def _file_suite(interviews: Sequence[_Rescored], suite: TomlSuite) -> _Judgment:
    """Return a suite of a file."""
    required = read_suite(suite.settings, suite.where, len(suite.gates))
    conditions = [
        (_named(interviews, name, suite.where), required.gate(read_gate(keys, suite.where, None)))
        for name, keys in suite.gates
    ]
    path, _, line = suite.where.rpartition(":")
    gate = GateRecord(suite.name, f"{path}::{suite.name}", "", VerdictRecord(Outcome.ERROR), path, int(line))
    return _Judgment(gate, conditions, required)


def _file_conditions(interviews: Sequence[_Rescored], evaluations: Sequence[TomlEval]) -> list[_Judgment]:
    """Return the conditions of a file; gates of other kinds keep their verdicts."""
    judgments = []
    for evaluation in evaluations:
        if not evaluation.spec.is_interview:
            continue
        interview = _named(interviews, evaluation.spec.name, evaluation.spec.where)
        where, _, line = evaluation.spec.where.rpartition(":")
        for spec in evaluation.gates:
            name = f"{evaluation.spec.name}-{spec.name}"
            verdict, line_number = VerdictRecord(Outcome.ERROR), spec.lines.line or int(line or 0)
            gate = GateRecord(name, f"{where}::{name}", interview.old.name, verdict, where, line_number)
            assert isinstance(spec.condition, Condition)
            judgments.append(_Judgment(gate, [(interview, spec.condition)]))
    return judgments


def _recorded_condition(gate: GateRecord) -> Condition:
    """Return the condition that a recorded gate was judged by."""
    recorded = gate.verdict.condition
    if recorded is None:
        raise ConfigError(
            f"the gate {gate.name} left no condition in the record (its test failed before it judged, or the record is "
            "of an older version): give gates with --gates FILE.toml"
        )
    return recorded.condition()


def _named(interviews: Sequence[_Rescored], name: str, where: str) -> _Rescored:
    """Return the only interview of a name or node id."""
    matches = [interview for interview in interviews if name in interview.names]
    if len(matches) != 1:
        names = ", ".join(interview.old.name for interview in interviews)
        raise ConfigError(f"{where}: the run has {len(matches)} interviews {name!r}; it has {names}")
    return matches[0]


def _compare_with(
    interview: _Rescored,
    interviews: Sequence[_Rescored],
    recorded_gates: Sequence[GateRecord],
    spec: str | None,
    folders: Sequence[Path],
) -> None:
    """Read the baselines that the conditions name: other interviews of the run, or files."""
    old = interview.old
    for name in dict.fromkeys(c.name for c in interview.conditions if c.kind == "not_worse_than"):
        others = [other for other in interviews if other is not interview and name in other.names]
        try:
            if others:
                file = _other_interview(interview, others[0], name)
            else:
                file = _read(interview, name, recorded_gates, spec if name == "baseline" else name, folders)
                interview.sources[name] = file.source
            file.check(decoding=old.subject.decoding_hash)
            file.check_requests(old.administrations if old.requests else ())
            interview.baselines[name] = file.baseline
            interview.notes += file.doubts(old.subject)
        except BaselineMissing as error:
            interview.absent[name] = str(error)
        except BaselineError as error:
            raise BaselineError(f"{old.name}: {error}") from None


def _other_interview(interview: _Rescored, other: _Rescored, name: str) -> BaselineFile:
    """Return another interview of the run as a baseline."""
    bank = msgspec.structs.replace(other.old.bank, content_hash=other.bank.content_hash)
    record = msgspec.structs.replace(other.regraded, bank=bank)
    file = baseline_of(record, interview.bank, f"evaluation {name!r}", "")
    # requests are not compared: two tests of one run may differ, and the reader sees both
    return replace(file, requests={})


def _read(
    interview: _Rescored,
    name: str,
    recorded_gates: Sequence[GateRecord],
    spec: str | None,
    folders: Sequence[Path],
) -> BaselineFile:
    """Read the baseline of a file, else the one that the run was compared with."""
    source = interview.old.baselines.get(name)
    if spec is None and source:
        return read_again(source, folders, interview.bank, interview.old.name)
    if spec is None:
        if any(_compared(gate, name) for gate in recorded_gates):
            raise BaselineError(
                "the run was compared with a baseline, and its record does not say which: name it with --baseline FILE"
            )
        raise BaselineMissing("no baseline: name one with --baseline FILE")
    file = read_baseline(spec, folders, interview.bank, interview.old.name)
    if source and source.hash != file.source.hash:
        interview.notes.append(f"{spec} is another baseline than the run was compared with")
    return file


def _compared(gate: GateRecord, name: str) -> bool:
    """Return whether the recorded gate was judged against the baseline of a name."""
    condition = gate.verdict.condition
    compares = condition is not None and condition.kind == "not_worse_than" and condition.name == name
    return compares and not gate.verdict.notice


def _result(interview: _Rescored, family: int) -> SessionResult:
    """Return the result by the new scores; `family` is the number of claims over all gates."""
    old, bank = interview.old, interview.bank
    log = interview.regraded.draws({str(item): n for n, item in enumerate(bank.ids)})
    climbed = old.policy.stop == "level"
    if any(not baseline.complete for baseline in interview.baselines.values()):
        log = replace(log, fixed=False, horizon=old.policy.horizon or 0)  # it had as many draws as the baseline
    estimator = ESTIMATORS.get(old.policy.estimator, ESTIMATORS["map"])()
    like = FIXED_FORM
    if bank.predictor is not None and old.policy.predictor == bank.predictor.hash:
        like = "form" if old.policy.selector == "form" else "estimate"
    policy = replace(POLICIES[like], estimator=estimator, stop="budget" if log.fixed else "decision")
    stop = StopReason[old.stop] if old.stop in StopReason.__members__ else None
    noise = _noise(interview)
    result = SessionResult.of(
        old.name,
        Session.replayed(bank, policy, log, stop),
        statuses=old.statuses,
        noise=noise.allowed if noise else 0.0,
        error=old.error,
        notes=(
            *bank_notes(bank, old.policy.selector, climbed=climbed),
            *interview.notes,
            *([noise.sentence] if noise else []),
        ),
        planned=tuple(c for c in interview.conditions if c.name not in interview.absent),
        family=family,
        baselines=interview.baselines,
        absent=interview.absent,
        subject={"name": old.subject.name},
        chance=_guessing(bank, log.items.tolist()),
        must_pass=recorded_must_pass(interview.regraded),
    )
    if climbed:
        result = replace(result, climb=levelled(old.policy.selector, old.policy.settings))
    if np.isnan(log.propensities).any():
        result = replace(result, invalid="the items were not drawn at random")
    return with_misfit_note(result)


def _guessing(bank: ItemBank, items: Sequence[int]) -> float | None:
    """Return the expected score of guessing; None unless every item has choices."""
    choices = [len(bank.items[i].choices) for i in items]
    return float(np.mean([1.0 / count for count in choices])) if choices and min(choices) > 1 else None


def _noise(interview: _Rescored) -> DecodingNoise | None:
    """Return the decoding noise by the new scores; None where the interview did not measure it."""
    old = interview.old
    return noise_of(interview.administrations, old.samples, old.size) if old.decoding_noise else None


def _verdicts(interviews: Sequence[_Rescored], judgments: Sequence[_Judgment]) -> Iterator[GateRecord]:
    """Set the interviews' results, and yield the gates with their verdicts."""
    family = sum(condition.denials(interview.bank) for j in judgments for interview, condition in j.conditions)
    for interview in interviews:
        interview.result = _result(interview, family)
    for gate, conditions, suite in judgments:
        judged = [(interview.old.name, _verdict(interview, condition)) for interview, condition in conditions]
        verdict, parts = judged[0][1], []
        if suite is not None:
            verdict, parts = suite.judge(judged), suite_gates(gate.nodeid, judged)
        yield msgspec.structs.replace(gate, verdict=VerdictRecord.of(verdict), gates=parts)


def _verdict(interview: _Rescored, condition: Condition) -> Verdict:
    assert interview.result is not None
    return interview.result.verdict(condition)


def _new_record(interview: _Rescored) -> EvaluationRecord:
    assert interview.result is not None
    old, bank = interview.old, interview.bank
    items = interview.regraded.by_item()
    abilities = [a.theta_before or [0.0] * bank.dimensions for a in items] if bank.calibrated else None
    must_pass = interview.result.must_pass
    kept = [note for note in old.notes if note != must_pass_sentence(recorded_must_pass(old))]
    hashes = {"content_hash": bank.content_hash, "scale": bank.scale, "calibrated": bank.calibrated}
    return msgspec.structs.replace(
        interview.regraded,
        bank=msgspec.structs.replace(old.bank, **hashes),
        decoding_noise=_noise(interview),
        notes=list(dict.fromkeys([*kept, *interview.notes, *filter(None, [must_pass_sentence(must_pass)])])),
        conditions=list(map(ConditionRecord.of, interview.conditions)),
        baselines=interview.sources or old.baselines,
        **findings(interview.result, abilities),
    )
