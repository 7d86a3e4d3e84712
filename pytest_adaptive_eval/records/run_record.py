"""The record of a run, the only source of reports, history and exports.

It is plain JSON: every float is finite or null, every text is valid Unicode without lone surrogates, and unknown keys
of runs, evaluations, gates and administrations are kept. Its types are the schema, version `SCHEMA_VERSION`; verdicts,
identities, costs and intervals are the ones that the package computes with.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from pytest_adaptive_eval.claims.answer_scores import SCORE
from pytest_adaptive_eval.claims.categories import CategoryResult
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.design import GATE_FLOOR, DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import DecodingNoise, item_score
from pytest_adaptive_eval.items.item import Status
from pytest_adaptive_eval.models.base import TIMED_OUT, SubjectIdentity
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.models.judging import Judged
from pytest_adaptive_eval.records.parts import (
    BankRecord,
    BaselineSource,
    Costs,
    Data,
    DriftRecord,
    InterviewerRecord,
    LevelsRecord,
    Pair,
    PolicyRecord,
    PredictionRecord,
    QuantityRecord,
    Record,
    ReuseRecord,
)
from pytest_adaptive_eval.text import counted, number
from pytest_adaptive_eval.types import Array

SCHEMA_VERSION = 3

#: Columns of a `DesignLog` and the attributes of an `Administration` that hold them.
_COLUMNS = {
    "scores": "score",
    "propensities": "propensity",
    "predictions": "predicted",
    "rest": "rest",
    "variance": "variance",
    "down": "down",
    "up": "up",
}
_DESELECTED = "gates that were deselected did not judge this run"  #: Warning on gates that were found and did not run.
_ALL = "run them too, without -k, -m, --lf or --deselect"
_SHARD = "gates of other shards did not judge this run"  #: Warning on gates of other shards.
_MERGE = "merge the records of all shards with adaptive-eval merge, and promote on the merged record"
#: Options of a shard: those of the number of shards and of its own, which pytest-shard counts from 0.
_SHARD_OPTIONS = re.compile(r"--(\S+)=(\d+) --(\S+)=(\d+)")
_FROM_ZERO = "shard-id"
REQUIRED = "required gates gave no result, so nothing is promoted"
_NO_GATE = "no gate: nothing was judged"  #: Warning on a run without gates.
#: Warning on a promotion by peer assessments alone.
_OPINION = "only models' opinion of each other speaks for this promotion: all gates that passed are on peer assessments"
_JUDGED = "only models' opinion speaks for this promotion: all gates that passed are on answers that a judge graded"
_ADVICE = "no answer was checked against a truth, so add a gate on a bank or a task"
Place = tuple[str, str, str, int]  #: Item, its hash, its format, and the number of the answer.
#: Mean difference of two scores of one answer, half a rank, above which a judge is named, and fewest such answers.
_REPEAT_NOISE, _LEAST_REPEATED = 0.125, 5
UNKNOWN = "unknown"  #: Request of a model that is asked unseen, or by a test that draws a part of it at random.


class Administration(Record):
    """One item given once.

    Args:
        position: Number in the interview, from 1.
        sample: Index of the answer when an item is asked repeatedly, from 0; it belongs to the seed of its decoding.
        propensity: Probability of the item at its draw; None for a deterministic selector.
        rest, variance, down, up: See `pytest_adaptive_eval.inference.design.Proposal`.
        theta_before, theta_after: Ability in logits; None on an uncalibrated bank.
        detail: Reason of a missing score.
        difficulty: Ability in logits at which half the answers beyond guessing are right, on a calibrated bank of one
            dimension.
        request: Hash of what its test asked, see `changed_requests`; empty for the unchanged item.
        question: Hash of what the item asks, see `models.images.question_hash`; empty in older records.
        reused: Whether another run got the answer.
        sent: Key of the request as it was sent, see `CompletionStore.find_requests`; empty if unknown.
        said: Hash of the model's last reply, before its test took anything out of it; empty if unknown.
        measures: See `pytest_adaptive_eval.models.base.Completion`; sums over the model's calls for the answer, fields
            that its test recorded, and `models.base.TIMED_OUT`.
    """

    position: int
    item: str
    item_hash: str
    format: str = "text"
    sample: int = 0
    propensity: float | None = None
    predicted: float | None = None
    rest: float | None = None
    variance: float | None = None
    down: float | None = None
    up: float | None = None
    theta_before: list[float] | None = None
    theta_after: list[float] | None = None
    status: str = "ok"
    score: float | None = None
    text: str = ""
    detail: str = ""
    reason: str = ""
    difficulty: float | None = None
    category: list[str] = []
    seconds: float | None = None
    resumed: bool = False
    request: str = ""
    reused: bool = False
    sent: str = ""
    said: str = ""
    likelihood: Data = {}
    question: str = ""
    measures: dict[str, float] = {}

    @property
    def place(self) -> Place:
        """Item, as it was, and number of its answer."""
        return self.item, self.item_hash, self.format, self.sample


def knows_weights(identity: SubjectIdentity) -> bool:
    """Return whether an identity says which weights answer: by a hash, or by the `revision` of a server's model."""
    facts = identity.environment
    taken_at_its_word = str(facts.get("weights", "")).startswith("not known")
    return bool(identity.checkpoint) and (not taken_at_its_word or bool(facts.get("revision")))


def changed_requests(before: Mapping[Place, str], after: Iterable[Administration]) -> str:
    """Return how many of the common administrations asked something else, as the start of a sentence; else empty."""
    common = []
    for entry in after:
        if UNKNOWN not in (entry.request, before.get(entry.place, UNKNOWN)):
            common.append(entry)
    changed = [entry.item for entry in common if entry.request != before[entry.place]]
    if not changed:
        return ""
    return f"the test asks {len(changed)} of {counted(len(common), 'common item')} otherwise, such as {changed[0]!r}:"


def by_item(administrations: list[Administration], samples: int) -> list[Administration]:
    """Return each item's first administration with the mean score of its samples, None if one lacks a score."""
    if all(a.sample == 0 for a in administrations):
        return administrations
    groups: dict[str, list[Administration]] = {}
    for a in administrations:
        if a.sample < samples:
            groups.setdefault(a.item, []).append(a)
    items = []
    for group in groups.values():
        scores = [answer.score for answer in group]
        missing = [None] * (samples - len(group))
        items.append(replace(group[0], score=item_score([*scores, *missing])))
    return items


def answer_values(administrations: Iterable[Administration], samples: int) -> dict[str, Array]:
    """Return values of the answers to items by name, shape (items, samples), NaN where missing.

    They are the measures, where a time-out of the model is above any bound, and the scores of several samples.
    """
    rows: dict[str, int] = {}
    entries = [entry for entry in administrations if entry.sample < samples]
    for entry in entries:
        rows.setdefault(entry.item, len(rows))
    values: dict[str, Array] = {}
    for entry in entries:
        measures = dict(entry.measures)
        if measures.pop(TIMED_OUT, 0.0):
            measures["seconds"] = math.inf
        if samples > 1 and entry.score is not None:
            measures[SCORE] = entry.score
        for name, value in measures.items():
            of_name = values.setdefault(name, np.full((len(rows), samples), np.nan))
            of_name[rows[entry.item], entry.sample] = value
    return values


def flaky_items(administrations: Iterable[Administration]) -> list[str]:
    """Return the items with a right answer and one that is not, in the order of their first answers."""
    right: dict[str, set[bool]] = {}
    for entry in administrations:
        if entry.score is not None:
            right.setdefault(entry.item, set()).add(entry.score == 1.0)
    return [item for item, verdicts in right.items() if len(verdicts) > 1]


def noise_of(administrations: list[Administration], samples: int, size: int) -> DecodingNoise:
    """Return the variance of answers to one item, from samples and repeats; `size` is the bank's."""
    answers: dict[str, list[float]] = {}
    for a in administrations:
        if a.score is not None:
            answers.setdefault(a.item, []).append(a.score)
    return DecodingNoise.of(answers.values(), [a.score for a in by_item(administrations, samples)], samples, size)


INTERVIEWS = ("bank", "ladder")  #: Kinds whose items one subject is asked, one by one.


_PLANNED = ("BUDGET", "EXHAUSTED")  #: Names of the stops after a planned number of items.


class EvaluationRecord(Record, kw_only=True):
    """One evaluation of any kind; an interview without any score has estimates of None, in categories too.

    Args:
        kind: ``bank`` or ``ladder`` of an interview, or another kind such as ``peers``.
        subject: The tested one, which gates judge by default.
        whose: Hash of whose answers these are, see `models.request_keys.identity_key`; empty if unknown.
        asked, size: Units that counted, and all that took place. For a bank: items administered, and its items.
        unit: Such as ``rounds``.
        error: Why it is void.
        warnings: What whoever promotes must know of the model's answers.
        journal: Name of the file of its replies or answers.
        usage_error: Whether a mistake of the user voids it.
        members: Identities of all subjects, if there are several.
        metrics: Rows of all subjects by metric, the leading one first, of other kinds than interviews.
        account: All results in the form of the kind, which its section of the page reads.
        population: Key of all that must be equal for two runs of it to compare; empty where none do.
        opinion: Whether its scores are judgments by models, which no coded truth has checked.
        statuses: Administrations by status.
        stop: Name of the `StopReason`; empty if the interview was cut off.
        conditions: Conditions of the gates that were known before the first question.
        misfit: Why the bank's model does not describe the subject; empty if nothing contradicts it.
        accuracy: Accuracy by the draws; gates decide on it.
        accuracy_conformal: The bank's projection with an interval from replayed interviews; shown only.
        accuracy_error: Standard error of the accuracy by the draws, for comparing runs; gates never use it.
        ability_sampling_error, accuracy_sampling_error: Standard errors over new samples of items and answers, by which
            runs of one model differ, for monitoring.
        accuracy_model: The bank's own projection; shown only.
        samples: Answers that an item's score is the mean of; further ones to an item are repeats, which count for
            `decoding_noise` alone.
        item_estimates: By metric of gates on samples, such as ``pass^3``, the estimate of each item.
        flaky: Items with a right answer and one that is not.
        drift: What earlier runs say of its levels.
        decoding_noise: How far answers to an item vary, where items were asked repeatedly.
        categories: Results of the bank's broadest categories.
        own_name: Name in its own run, in a merged record that gives it another; else empty.
        group, variant: Evaluation of several models or prompts that this interview is of, and which it asked.
        series: Name that stays when these models change; empty where `name` does.
        call_sizes: Calls of a model that answers several questions at once, by the number of questions.
        baselines: By the name that conditions use.
        predictions: Earlier run that predicted the answers; None if the bank alone did.
    """

    nested = ("administrations",)
    name: str
    nodeid: str
    kind: str = INTERVIEWS[0]
    subject: SubjectIdentity
    whose: str = ""
    asked: int
    size: int
    unit: str = "items"
    costs: Costs = msgspec.field(default_factory=Costs)
    own_name: str = ""
    group: str = ""
    variant: str = ""
    series: str = ""
    seconds: float = 0.0
    error: str = ""
    notes: list[str] = []
    warnings: list[str] = []
    journal: str = ""
    drift: DriftRecord = msgspec.field(default_factory=DriftRecord)
    usage_error: bool = False
    members: list[SubjectIdentity] = []
    metrics: dict[str, list[QuantityRecord]] = {}
    account: Data = {}
    population: str = ""
    opinion: bool = False
    bank: BankRecord = msgspec.field(default_factory=BankRecord)
    policy: PolicyRecord = msgspec.field(default_factory=PolicyRecord)
    scored: int = 0
    statuses: dict[str, int] = {}
    stop: str = ""
    stop_sentence: str = ""
    theta: list[float] | None = None
    standard_error: list[float | None] | None = None
    ability_sampling_error: list[float] | None = None
    misfit: str = ""
    accuracy: Interval | None = None
    accuracy_model: Interval | None = None
    accuracy_conformal: Interval | None = None
    accuracy_error: float | None = None
    accuracy_sampling_error: float | None = None
    samples: int = 1
    item_estimates: dict[str, dict[str, float]] = {}
    flaky: list[str] = []
    decoding_noise: DecodingNoise | None = None
    categories: list[CategoryResult] = []
    levels: LevelsRecord | None = None
    interviewer: InterviewerRecord | None = None
    conditions: list[Data] = []
    administrations: list[Administration] = []
    call_sizes: dict[str, int] = {}
    judge: str = ""
    judged: Judged | None = None
    baselines: dict[str, BaselineSource] = {}
    predictions: PredictionRecord | None = None
    reuse: ReuseRecord | None = None

    @property
    def evaluation_name(self) -> str:
        """Name that it had in its own run."""
        return self.own_name or self.name

    @property
    def void(self) -> str:
        """Reason why it gave no result; empty for a usable one."""
        unfinished = self.kind in INTERVIEWS and not self.stop
        return self.error or ("the interview did not finish" if unfinished else "")

    def of_subject(self) -> Iterator[tuple[str, QuantityRecord]]:
        """Yield the subject's row of each of `metrics` that has one."""
        for metric, rows in self.metrics.items():
            if row := next((row for row in rows if row.subject == self.subject.name), None):
                yield metric, row

    def facts(self) -> dict[str, object]:
        """Return the counts, and the subject's values of what has no bank, as reports of tests list them."""
        if self.bank:
            return {name: getattr(self, name) for name in ("asked", "scored", "size", "stop_sentence")}
        facts: dict[str, object] = {
            "kind": self.kind,
            "candidate": self.subject.name,
            "members": ", ".join(member.name for member in self.members),
            self.unit: self.size,
            f"{self.unit}_that_count": self.asked,
        }
        for metric, row in self.of_subject():
            facts[metric] = row.estimate
            facts |= {f"{metric}_{name}": getattr(row, name) for name in ("low", "high", "error")}
            facts[f"{metric}_rank"] = row.rank.mean if row.rank else None
        return facts

    def member(self, name: str) -> SubjectIdentity:
        """Return the identity of a subject; its name alone if there is none."""
        return next((member for member in (self.subject, *self.members) if member.name == name), SubjectIdentity(name))

    def exchange_key(self, asked: Administration) -> str:
        """Return the key of what went between model and run for one answer, see `models.exchange`."""
        data = json.dumps([self.whose, *asked.place, asked.said])
        return f"exchange {hashlib.sha256(data.encode()).hexdigest()[:32]}"

    @property
    def answers_hash(self) -> str:
        """Hash of the answers, by which a later run knows that a baseline is the same."""
        data = json.dumps(self.to_json(), sort_keys=True)
        return hashlib.sha256(data.encode()).hexdigest()[:16]

    def draws(self, index: Mapping[str, int] | None = None) -> DesignLog:
        """Return the draws, without propensities if none is bounded; `index` gives the items of the bank by id."""
        asked = self.by_item()
        columns = self._columns(asked)
        items: Sequence[int] = range(len(asked))
        if index is not None:
            items = [index[a.item] for a in asked]
        noise = self.decoding_noise.allowed if self.decoding_noise else 0.0
        first = set(self.policy.asked_first)
        take_all = sum(1 for _ in takewhile(lambda a: a.item in first, asked))
        columns.update(items=np.array(items, dtype=np.int64), size=self.size, noise=noise)
        plan: dict[str, Any] = {"horizon": self.planned, "earlier": tuple(self.policy.earlier), "fixed": self.fixed}
        statuses = [entry.status for entry in asked]
        if Status.NOT_AWAITED in statuses:
            awaited = statuses.index(Status.NOT_AWAITED)
        else:
            awaited = None
        answers = answer_values(self.administrations, self.samples)
        return DesignLog(**columns, **plan, take_all=take_all, awaited=awaited, answers=answers)

    @property
    def fixed(self) -> bool:
        """Whether it ended at a planned number of items and was judged there alone."""
        return self.policy.stop == "budget" and self.policy.horizon is None and self.stop in _PLANNED

    @property
    def planned(self) -> int:
        """Number of items at which the bets of its gates aimed, 0 if at none."""
        if self.fixed:
            return self.asked
        return self.policy.horizon or 0

    def _columns(self, asked: Sequence[Administration]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, attribute in _COLUMNS.items():  # None becomes NaN
            columns[name] = np.array([getattr(entry, attribute) for entry in asked], dtype=np.float64)
        policy = self.policy
        if policy.floor is not None and policy.floor < GATE_FLOOR and policy.selector != "random":
            columns["propensities"] = np.full(len(asked), np.nan)  # no bound holds for them
        return columns

    @property
    def projection(self) -> Interval | None:
        """The accuracy by the draws, else by the bank's projection; None without any."""
        return self.accuracy or self.accuracy_conformal or self.accuracy_model

    @property
    def requests(self) -> dict[Place, str]:
        """Requests by place, see `changed_requests`."""
        return {entry.place: entry.request for entry in self.administrations}

    def by_item(self) -> list[Administration]:
        """Return the administrations by item, see `by_item`."""
        return by_item(self.administrations, self.samples)


class GateRecord(Record):
    """One gate's verdict on an evaluation, whose name is empty for a gate that had none.

    Args:
        seconds: Time of the gate's test.
    """

    name: str
    nodeid: str
    interview: str
    verdict: Verdict
    file: str = ""
    line: int = 0
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome."""
        return self.verdict.outcome

    @property
    def where(self) -> str:
        """File and line of the gate, else its node id."""
        if self.file:
            return f"{self.file}:{self.line}"
        return self.nodeid

    @property
    def holds(self) -> bool:
        """Whether the gate passed or was let through."""
        return self.outcome is Outcome.PASS or self.verdict.allowed


class RunRecord(Record):
    """Results of one run.

    Args:
        started: ISO 8601, UTC.
        versions: Of python, pytest, this package, and what the subject used.
        exit_status: Of the run, if known when written.
        evaluations: Of all kinds, interviews first. Their JSON key is ``interviews``, by which scripts find them.
        warnings: What whoever promotes must know.
        required: Node ids of the gates that the settings require, by their names there; none where no gate was found.
        missing: Node ids of planned evaluations and gates without a result.
        deselected: Node ids of gates that were found and did not run.
        shard: Number of the shard that the run is, as ``2 of 3``; empty for a whole run.
        merged: Ids of the runs that a derived record is of.
        only_required_gates_absent: The run failed for nothing but gates without a result: required ones, or gates of
            shards that were not merged.
        only_baselines_missing: The run failed for nothing but baselines that did not exist yet.
    """

    nested = ("evaluations", "gates")
    run: str
    started: str
    seconds: float = 0.0
    versions: dict[str, str] = {}
    exit_status: int | None = None
    evaluations: list[EvaluationRecord] = msgspec.field(name="interviews", default_factory=list)
    gates: list[GateRecord] = []
    warnings: list[str] = []
    schema_version: int = SCHEMA_VERSION
    required: dict[str, list[str]] = {}
    missing: list[str] = []
    deselected: list[str] = []
    shard: str = ""
    merged: list[str] = []
    only_required_gates_absent: bool = False
    only_baselines_missing: bool = False
    differences: list[Pair] = []

    @property
    def interviews(self) -> list[EvaluationRecord]:
        """Evaluations that asked one subject items."""
        return [evaluation for evaluation in self.evaluations if evaluation.kind in INTERVIEWS]

    @property
    def sent_keys(self) -> list[str]:
        """Keys of requests as they were sent, and of what else went between model and run."""
        keys: list[str] = []
        for interview in self.interviews:
            for entry in interview.administrations:
                keys += filter(None, [entry.sent, interview.exchange_key(entry)])
        return keys

    @property
    def others(self) -> list[EvaluationRecord]:
        """Evaluations of other kinds, which call their models themselves."""
        return [evaluation for evaluation in self.evaluations if evaluation.kind not in INTERVIEWS]

    def evaluation_named(self, name: str) -> EvaluationRecord | None:
        """Return the first evaluation of a name or node id, by which gates find it."""
        return next((entry for entry in self.evaluations if name in (entry.name, entry.nodeid)), None)

    def judged(self) -> tuple[list[tuple[EvaluationRecord, list[GateRecord]]], list[GateRecord]]:
        """Return each evaluation with its gates, and the gates of none; of equal names the first evaluation counts."""
        pairs: list[tuple[EvaluationRecord, list[GateRecord]]] = [(e, []) for e in self.evaluations]
        alone: list[GateRecord] = []
        owners: dict[str, list[GateRecord]] = {}
        for evaluation, gates in pairs:
            owners.setdefault(evaluation.name, gates)
            owners.setdefault(evaluation.nodeid, gates)
        for gate in self.gates:
            (owners.get(gate.interview, alone) if gate.interview else alone).append(gate)
        return pairs, alone

    @property
    def promote(self) -> bool:
        """Whether the checkpoint may be promoted: the run passed, and every gate could judge."""
        outcomes = {gate.outcome for gate in self.gates}
        refused = outcomes - {Outcome.PASS, Outcome.INCONCLUSIVE} or any(gate.verdict.notice for gate in self.gates)
        whole = not (self.left_to_shards or self.absent_required)
        return self.exit_status == 0 and Outcome.PASS in outcomes and not refused and whole

    @property
    def serves_as_baseline(self) -> bool:
        """Whether the run passed, or failed for nothing but baselines that did not exist yet, as a first run does."""
        return self.exit_status == 0 or (self.exit_status == 1 and self.only_baselines_missing)

    @property
    def absent_required(self) -> list[str]:
        """Names of required gates that were not found, or lack the result of one of their parameters."""
        judged = {gate.nodeid for gate in self.gates}
        return [name for name, nodeids in self.required.items() if not nodeids or not judged.issuperset(nodeids)]

    @property
    def left_to_shards(self) -> bool:
        """Whether this run is one shard and left gates to the others."""
        return bool(self.shard and self.deselected)

    @property
    def copied_from(self) -> str:
        """``merged of N``; empty for a run with answers of its own."""
        if self.merged:
            return f"merged of {len(self.merged)}"
        return ""

    def fail_without_required(self) -> None:
        """Set the exit status of a run that passed but for required gates without a result."""
        if self.exit_status == 0 and self.absent_required:
            self.exit_status, self.only_required_gates_absent = 1, True

    def fail_without_shards(self) -> None:
        """Add an ERROR for each gate that no merged shard judged; a run that passed otherwise has failed."""
        if not self.left_to_shards:
            return
        stated = f"no merged record judged it: {_absent_shards(self.shard)}"
        for nodeid in self.deselected:
            name = nodeid.rpartition("::")[2]
            self.gates.append(GateRecord(name, nodeid, "", Verdict(Outcome.ERROR, stated=stated)))
        if self.exit_status == 0:
            self.exit_status, self.only_required_gates_absent = 1, True

    def warn(self) -> None:
        """Set `warnings`, once everything else is known."""
        self.warnings = []
        if not self.gates and not self.missing:
            self.warnings.append(_NO_GATE)
        if self.deselected:
            warning, advice = (_SHARD, _MERGE) if self.left_to_shards else (_DESELECTED, _ALL)
            self.warnings.append(f"{warning}: {', '.join(self.deselected)}; {advice}")
        absent = self.absent_required
        opinion = self.opinion_warning
        if absent:
            self.warnings.append(f"{REQUIRED}: {', '.join(absent)}")
        if opinion:
            self.warnings.append(opinion)
        for evaluation in self.evaluations:
            name = evaluation.name or evaluation.nodeid
            for sentence in _warnings_of(evaluation):
                self.warnings.append(f"{name}: {sentence}")

    @property
    def opinion_warning(self) -> str:
        """Return the warning on a promotion that models' opinions alone support, empty for any other run."""
        if not self.promote:
            return ""
        judged = _names_of(entry for entry in self.interviews if entry.judge)
        opinions = _names_of(entry for entry in self.evaluations if entry.opinion)
        passed = [gate for gate in self.gates if gate.outcome is Outcome.PASS]
        interviews = [gate.interview for gate in passed]
        if not judged | opinions >= set(interviews):
            return ""
        if judged.isdisjoint(interviews):
            warning = _OPINION
        else:
            warning = _JUDGED
        return f"{warning} ({', '.join(dict.fromkeys(interviews))}); {_ADVICE}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a record.

        Raises:
            UsageError: The record was written by a version with another schema.
            TypeError: A value has another type; the message names its place.
        """
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise UsageError(
                f"the run record has schema_version {version!r}, this version reads {SCHEMA_VERSION}: run it again"
            )
        return super().from_json(data)


def _absent_shards(shards: str) -> str:
    """Return which shards are absent, from the options of the present ones, and what to do."""
    absent = []
    numbers: dict[tuple[str, int, str], set[int]] = {}
    for count_option, count, option, shard in _SHARD_OPTIONS.findall(shards):
        numbers.setdefault((count_option, int(count), option), set()).add(int(shard))
    for (count_option, count, option), present in numbers.items():
        first = 0 if option == _FROM_ZERO else 1
        missing = sorted({*range(first, first + count)} - present)
        absent += [f"--{count_option}={count} --{option}={number}" for number in missing]
    if not absent:
        return "every shard left it to another; run all shards with the same tests and options"
    return f"the record of the shard {' and of '.join(absent)} is not there; merge it too"


def _names_of(evaluations: Iterable[EvaluationRecord]) -> set[str]:
    """Return all names by which gates find evaluations."""
    return {name for evaluation in evaluations for name in (evaluation.name, evaluation.nodeid)}


def _warnings_of(interview: EvaluationRecord) -> Iterator[str]:
    """Yield what whoever promotes must know of an evaluation's answers."""
    truncated = interview.statuses.get(Status.TRUNCATED, 0)
    answers = sum(interview.statuses.values())
    cut = truncation_warning(truncated, answers, interview.subject.decoding.get("max_tokens"))
    if cut:
        yield cut
    if interview.reuse and interview.reuse.refused:
        yield f"no answer was taken from the store (--adaptive-eval-reuse): {interview.reuse.refused}"
    yield from filter(None, interview.warnings)
    yield from interview.drift.alarms
    counts = interview.judged
    if counts and counts.repeated >= _LEAST_REPEATED and (counts.noise or 0.0) >= _REPEAT_NOISE:
        yield (
            f"the judge {interview.judge} disagrees with itself: {counts.repeated - counts.same} of {counts.repeated} "
            f"answers got another score the second time, by {number(counts.noise or 0.0, 2)} on average over all; name "
            "another judge, or write a clearer rubric"
        )
    if interview.interviewer:
        yield from filter(None, interview.interviewer.faults)


def must_pass_answers(items: Iterable[str], administrations: Sequence[Administration]) -> tuple[MustPassAnswer, ...]:
    """Return the answers to items that must pass; of several answers to one the worst counts."""
    answers: dict[str, list[Administration]] = {item: [] for item in items}
    for administration in administrations if answers else ():
        if administration.item in answers:
            answers[administration.item].append(administration)
    return tuple(_worst(item, answers_given) for item, answers_given in answers.items())


def _worst(item: str, answers: Sequence[Administration]) -> MustPassAnswer:
    """Return the lowest score of the answers to an item, or else the first that has none."""
    scored = []
    for answer in answers:
        if answer.score is not None:
            scored.append((answer.score, answer.text))
    lowest = min(scored, default=None, key=lambda pair: pair[0])
    missing = next((answer for answer in answers if answer.score is None), None)
    if lowest is not None and (lowest[0] < 1.0 or missing is None):
        return MustPassAnswer(item, *lowest)
    if missing:
        why = ": ".join(filter(None, (missing.status, missing.detail.strip())))
    else:
        why = ""
    return MustPassAnswer(item, None, why)


def merged(records: Sequence[RunRecord], run: str) -> RunRecord:
    """Return one record of several, with their verdicts.

    Evaluations that share a name get the subject's name added, else the start of the run, else its id.
    """
    whole = RunRecord(run, min(record.started for record in records))
    names: set[str] = set()
    for record in records:
        _add(record, whole, names)
    whole.evaluations = [*whole.interviews, *whole.others]
    whole.exit_status = max(map(_exit_status, records))
    whole.merged = [record.run for record in records]
    judged = {gate.nodeid for gate in whole.gates}
    deselected = dict.fromkeys(nodeid for record in records for nodeid in record.deselected)
    whole.deselected = [nodeid for nodeid in deselected if nodeid not in judged]
    if whole.deselected:
        whole.shard = ", ".join(dict.fromkeys(record.shard for record in records if record.shard))
    whole.required = _all_required(records)
    whole.fail_without_required()
    whole.fail_without_shards()
    whole.warn()
    return whole


def _all_required(records: Iterable[RunRecord]) -> dict[str, list[str]]:
    """Return the required gates of all records, without repetitions."""
    required: dict[str, dict[str, None]] = {}
    for record in records:
        for name, nodeids in record.required.items():
            required.setdefault(name, {}).update(dict.fromkeys(nodeids))
    return {name: list(nodeids) for name, nodeids in required.items()}


def _add(record: RunRecord, whole: RunRecord, names: set[str]) -> None:
    """Add a record's evaluations under names of their own, and its gates."""
    marks = (record.started[:16].replace("T", " "), record.run)
    renamed: dict[str, str] = {}
    for evaluation in record.evaluations:
        name = _unique(evaluation.name, (evaluation.subject.name, *marks), names)
        renamed |= {evaluation.name: name, evaluation.nodeid: name}
        own_name = evaluation.evaluation_name if name != evaluation.name else evaluation.own_name
        whole.evaluations.append(replace(evaluation, name=name, own_name=own_name))
    judged = (gate for gate in record.gates if gate.nodeid not in record.deselected)  # see `fail_without_shards`
    for gate in judged:
        whole.gates.append(_renamed(gate, renamed))
    whole.seconds += record.seconds
    whole.versions |= record.versions


def _renamed(gate: GateRecord, names: Mapping[str, str]) -> GateRecord:
    """Return a gate with other names of its evaluations."""
    return replace(gate, interview=names.get(gate.interview, gate.interview))


def _exit_status(record: RunRecord) -> int:
    """Return a run's exit status, 0 if it failed only for gates without a result, which another run may have judged."""
    if record.exit_status == 1 and record.only_required_gates_absent:
        return 0
    if record.exit_status is None:
        return 1
    return record.exit_status


def _unique(name: str, marks: Sequence[str], taken: set[str]) -> str:
    """Return the name, with the first mark that makes it unique, and add it to those taken."""
    candidates = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    unique = next((candidate for candidate in candidates if candidate not in taken), candidates[-1])
    taken.add(unique)
    return unique
