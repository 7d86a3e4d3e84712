"""Judging recorded answers again, without asking anything: with mended answer keys, other gates, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pytest_adaptive_eval.cat.session import FIXED_FORM, POLICIES, Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.config import StudySpec, TomlEval, bank_notes
from pytest_adaptive_eval.errors import AdaptiveEvalError, BaselineError, BaselineMissing, ConfigError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.findings import findings
from pytest_adaptive_eval.gates.misfit import with_misfit_note
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.ladder.policy import levelled
from pytest_adaptive_eval.records.baseline import BaselineFile, baseline_of, read_again, read_baseline
from pytest_adaptive_eval.records.run_record import Administration, GateRecord, InterviewRecord, RunRecord, noise_of
from pytest_adaptive_eval.text import counted

__all__ = ["rescore"]


@dataclass(slots=True)
class _Again:
    """One interview on its way to new verdicts."""

    old: InterviewRecord
    bank: ItemBank
    asked: list[Administration]
    notes: list[str] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    baselines: dict[str, Baseline] = field(default_factory=dict)
    sources: dict[str, Mapping[str, str]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    result: SessionResult | None = None


def rescore(
    record: RunRecord,
    banks: Mapping[str, ItemBank],
    *,
    gates: Sequence[TomlEval] = (),
    baseline: str | None = None,
    folders: Sequence[Path] = (),
    run: str,
    now: datetime,
) -> RunRecord:
    """A new record with the old answers, graded and judged anew.

    Answers to items that changed are graded by the bank as it is now; where
    the recorded scores of unchanged items are not those that their grader
    gives, the test scores in its own way, and recorded scores stand.

    Parameters
    ----------
    record : RunRecord
    banks : mapping of str to ItemBank
        By the evaluation's name.
    gates : sequence of TomlEval
        Evaluations whose gates take the place of the recorded ones.
    baseline : str, optional
        What gates call ``"baseline"``, see `read_baseline`; what the run was compared with when omitted.
    folders : sequence of Path
        What relative paths of baselines may be relative to.
    run : str
        Id of the new record.
    now : datetime
        When this happens, with a time zone.

    Raises
    ------
    ConfigError
        A bank is not at hand or is another one, or a gate cannot be judged again.
    BaselineError
        A baseline does not compare, or what the run was compared with is gone, has changed or is not known.
    """
    work = {interview.nodeid: _graded(interview, banks) for interview in record.interviews}
    studied = {name for study in record.studies for name in (study.name, study.nodeid)}
    study_gates = [gate for gate in record.gates if gate.interview in studied]
    asked = _conditions(record, list(work.values()), gates, study_gates)
    family = sum(condition.denials(again.bank) for _, again, condition in asked)
    for again in work.values():
        judged = [gate for gate in record.gates if gate.interview in (again.old.name, again.old.nodeid)]
        _compare_with(again, list(work.values()), judged, baseline, folders)
    for again in work.values():
        again.result = _result(again, family)
    verdicts = [*(_judged(gate, again, condition) for gate, again, condition in asked), *study_gates]
    void = [*(again.old.error for again in work.values()), *(study.error for study in record.studies)]
    passed = all(gate.holds for gate in verdicts) and not any(void)
    passed = passed and any(gate.outcome is Outcome.PASS for gate in verdicts)
    # what no answer is there to judge by, unless other gates are asked for
    carried = ("required",) if gates else ("missing", "deselected", "shard", "required")
    carried_extra = {name: record.extra[name] for name in carried if record.extra.get(name)}
    new_record = RunRecord(
        run,
        now.astimezone(UTC).isoformat(timespec="milliseconds"),
        versions=dict(record.versions),
        exit_status=0 if passed and "missing" not in carried_extra else 1,
        interviews=[_new_record(again) for again in work.values()],
        studies=record.studies,
        gates=verdicts,
        extra={"rescored_from": record.run, **carried_extra},
    )
    new_record.fail_without_required()
    new_record.warn()
    return new_record


def _graded(old: InterviewRecord, banks: Mapping[str, ItemBank]) -> _Again:
    """The interview with the scores that its bank gives now."""
    bank = banks.get(old.name)
    if bank is None:
        raise ConfigError(
            f"the bank of {old.name!r}, {old.bank.get('path') or old.bank.get('name')}, is not at hand: name it with "
            f"--bank {old.name}=PATH"
        )
    item_index = {str(item): n for n, item in enumerate(bank.ids)}
    strange = next((a.item for a in old.administrations if a.item not in item_index), None)
    if strange is not None or len(bank) != old.size:
        mismatch = f"has no item {strange!r}" if strange is not None else f"has {len(bank)} items and had {old.size}"
        raise ConfigError(
            f"{old.name}: the bank {bank.name!r} {mismatch}: the draws were made from another set of items, so that "
            "they say nothing about this one"
        )
    again = _Again(old, bank, [])
    custom_scores, mended, lost = False, 0, 0
    for a in old.administrations:
        item = bank.items[item_index[a.item]]
        same = item.content_hash == a.item_hash
        score = a.score
        if a.status == Status.OK and a.text:
            try:
                score = float(item.grade(a.text))
            except AdaptiveEvalError:
                score = a.score if same else None
            custom_scores = custom_scores or (same and score != a.score)
        elif not same:
            score = None
        mended += score != a.score
        lost += score is None and a.score is not None
        again.asked.append(replace(a, score=score, item_hash=item.content_hash))
    if custom_scores:
        again.asked = list(old.administrations)
        again.notes.append("the test scores answers in its own way, so that the recorded scores stand")
    elif mended:
        again.notes.append(f"{counted(mended, 'answer')} got another score than was recorded")
        if lost:
            again.notes.append(f"{counted(lost, 'score')} of changed items could not be had again: no text was kept")
    return again


def _conditions(
    record: RunRecord, work: Sequence[_Again], gates: Sequence[TomlEval], study_gates: Sequence[GateRecord]
) -> list[tuple[GateRecord, _Again, Condition]]:
    """What is to be judged, each with the gate as it stands in the new record."""
    judgments: list[tuple[GateRecord, _Again, Condition]] = []
    if gates:
        for evaluation in gates:
            if isinstance(evaluation.spec, StudySpec):  # its gates stand as they were judged
                continue
            again = _named(work, evaluation.spec.name, evaluation.spec.where)
            for spec in evaluation.gates:
                where, _, line = evaluation.spec.where.rpartition(":")
                name = f"{evaluation.spec.name}-{spec.name}"
                gate = GateRecord(name, f"{where}::{name}", again.old.name, {}, where, spec.line or int(line or 0))
                assert isinstance(spec.condition, Condition)
                judgments.append((gate, again, spec.condition))
    else:
        for gate in record.gates:
            if gate in study_gates:
                continue
            data = gate.verdict.get("condition")
            if not data:
                raise ConfigError(
                    f"the gate {gate.name} left no condition in the record (its test failed before it judged, or the "
                    "record is of an older version): give gates with --gates FILE.toml"
                )
            try:
                condition = Condition(**data)
            except TypeError as error:
                raise ConfigError(
                    f"the gate {gate.name} has a damaged condition in the record, {data!r:.80} ({error}): give gates "
                    "with --gates FILE.toml"
                ) from error
            judgments.append((gate, _named(work, gate.interview, gate.nodeid), condition))
    if not judgments and not study_gates:
        raise ConfigError("the run has no gates to judge again: give some with --gates FILE.toml")
    for _, again, condition in judgments:
        condition.check(again.bank, climbed=again.old.policy.get("stop") == "level")
        again.conditions.append(condition)
    return judgments


def _named(work: Sequence[_Again], name: str, where: str) -> _Again:
    matches = [again for again in work if name in (again.old.name, again.old.nodeid)]
    if len(matches) != 1:
        interview_names = ", ".join(again.old.name for again in work)
        raise ConfigError(f"{where}: the run has {len(matches)} interviews {name!r}; it has {interview_names}")
    return matches[0]


def _compare_with(
    again: _Again,
    others: Sequence[_Again],
    judged: Sequence[GateRecord],
    baseline: str | None,
    folders: Sequence[Path],
) -> None:
    """Find the baselines that the conditions name."""
    old = again.old
    for name in dict.fromkeys(c.name for c in again.conditions if c.kind == "not_worse_than"):
        inside = [other for other in others if other is not again and name in (other.old.name, other.old.nodeid)]
        try:
            if inside:
                about = {**inside[0].old.bank, "content_hash": inside[0].bank.content_hash}
                asked = replace(inside[0].old, administrations=inside[0].asked, bank=about)
                baseline_bank = inside[0].bank if inside[0].bank.comparable(again.bank) else again.bank
                file = baseline_of(asked, baseline_bank, f"evaluation {name!r}", "")
                twins = replace(file.baseline, twins=baseline_bank.content_hash != again.bank.content_hash)
                # two tests of one run stand side by side, and are never the same
                file = replace(file, baseline=twins, prompt="")
            else:
                file = _read(again, name, judged, baseline if name == "baseline" else name, folders)
                again.sources[name] = file.source
            file.check(decoding=str(old.subject.get("decoding_hash", "")), prompt=str(old.extra.get("prompt", "")))
            again.baselines[name] = file.baseline
        except BaselineMissing as error:
            again.absent[name] = str(error)
        except BaselineError as error:
            raise BaselineError(f"{old.name}: {error}") from None


def _read(
    again: _Again, name: str, judged: Sequence[GateRecord], spec: str | None, folders: Sequence[Path]
) -> BaselineFile:
    """The baseline that a file is, or that the run was compared with."""
    recorded_baselines = again.old.extra.get("baselines")
    source = recorded_baselines.get(name) if isinstance(recorded_baselines, Mapping) else None
    if spec is None and isinstance(source, Mapping):
        return read_again(source, folders, again.bank, again.old.name)
    if spec is None:
        if any(_compared(gate, name) for gate in judged):
            raise BaselineError(
                "the run was compared with a baseline, and its record does not say which: name it with --baseline FILE"
            )
        raise BaselineMissing("there is no baseline: name one with --baseline FILE")
    file = read_baseline(spec, folders, again.bank, again.old.name)
    if isinstance(source, Mapping) and source.get("hash") != file.source["hash"]:
        again.notes.append(f"{spec} is another baseline than the run was compared with")
    return file


def _compared(gate: GateRecord, name: str) -> bool:
    """Whether the gate found the baseline of that name when it was judged."""
    about = gate.verdict.get("condition") or {}
    return about.get("kind") == "not_worse_than" and about.get("name") == name and not gate.verdict.get("notice")


def _result(again: _Again, family: int) -> SessionResult:
    old, bank = again.old, again.bank
    item_index = {str(item): n for n, item in enumerate(bank.ids)}
    log = replace(old, administrations=again.asked).draws(item_index)
    partial = any(not baseline.complete for baseline in again.baselines.values())
    stop = StopReason[old.stop] if old.stop in StopReason.__members__ else None
    estimator = ESTIMATORS.get(str(old.policy.get("estimator")), ESTIMATORS["map"])()
    sequential = old.policy.get("stop") == "decision" or partial
    policy = replace(POLICIES[FIXED_FORM], estimator=estimator, stop="decision" if sequential else "budget")
    chances = [
        1.0 / len(bank.items[i].choices) if len(bank.items[i].choices) > 1 else np.nan for i in log.items.tolist()
    ]
    chance = float(np.mean(chances)) if chances else np.nan
    drawn = not np.isnan(log.propensities).any()
    noise = _noise(again)
    noise_notes = [noise.sentence] if noise else []
    result = SessionResult.of(
        old.name,
        Session.replayed(bank, policy, log, stop),
        statuses=old.statuses,
        noise=noise.allowed if noise else 0.0,
        error=old.error,
        notes=(
            *bank_notes(bank, str(old.policy.get("selector")), climbed=old.policy.get("stop") == "level"),
            *again.notes,
            *noise_notes,
        ),
        planned=tuple(c for c in again.conditions if c.name not in again.absent),
        family=family,
        baselines=again.baselines,
        absent=again.absent,
        subject={"name": str(old.subject.get("name", ""))},
        chance=None if np.isnan(chance) else chance,
    )
    if old.policy.get("stop") == "level":
        result = replace(result, climb=levelled(str(old.policy["selector"]), old.policy["settings"]))
    return with_misfit_note(result if drawn else replace(result, invalid="the items were not drawn at random"))


def _noise(again: _Again) -> DecodingNoise | None:
    """How far the answers to an item vary, by their new scores; None where the interview did not measure it."""
    return noise_of(again.asked, again.old.samples, again.old.size) if again.old.decoding_noise else None


def _judged(gate: GateRecord, again: _Again, condition: Condition) -> GateRecord:
    assert again.result is not None
    return replace(gate, verdict=again.result.verdict(condition).to_json())


def _new_record(again: _Again) -> InterviewRecord:
    assert again.result is not None
    old, bank = again.old, again.bank
    items = replace(old, administrations=again.asked).by_item()
    abilities = [a.theta_before or [0.0] * bank.dimensions for a in items] if bank.calibrated else None
    about: dict[str, Any] = {
        **old.bank,
        "content_hash": bank.content_hash,
        "scale": bank.scale,
        "calibrated": bank.calibrated,
    }
    return replace(
        old,
        bank=about,
        administrations=again.asked,
        decoding_noise=noise.to_json() if (noise := _noise(again)) else None,
        notes=list(dict.fromkeys([*old.notes, *again.notes])),
        conditions=[condition.to_json() for condition in again.conditions],
        extra={**old.extra, **({"baselines": again.sources} if again.sources else {})},
        **findings(again.result, abilities),
    )
