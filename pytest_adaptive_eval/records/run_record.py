"""The record of a run, the only source of reports, history and exports.

It is plain JSON: every float is finite or null, every text is valid Unicode without lone surrogates, and unknown keys
are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.design import GATE_FLOOR, DesignLog
from pytest_adaptive_eval.inference.noise import DecodingNoise, item_score
from pytest_adaptive_eval.items.item import MISSING, WRONG, Status, unanswered_sentence
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.text import counted


def fallback_counts(account: object) -> tuple[int, int]:
    """Return how many choices, and how many questions to sort, code made or sorted in place of the interviewer."""
    return sum(_kinds(account, "fallbacks").values()), sum(_kinds(account, "category_fallbacks").values())


def interviewer_faults(account: object) -> list[str]:
    """Return a sentence on the choices by code, one on unsorted questions, and one on pictures that were not shown."""
    faults = []
    choices, unsorted = fallback_counts(account)
    if choices:
        faults.append(
            f"the interviewer made no choice of its own {counted(choices, 'time')}{_listed(account, 'fallbacks')}: the "
            "most distant candidate was asked"
        )
    if unsorted:
        faults.append(
            f"the interviewer sorted {counted(unsorted, 'question')} into no category"
            f"{_listed(account, 'category_fallbacks')}: they count as other"
        )
    hidden = _interviewer(account).get("images_not_shown")
    if isinstance(hidden, int) and hidden > 0:
        faults.append(
            f"the interviewer did not see {counted(hidden, 'picture')} of its candidates: mode rate compares texts; "
            'set mode = "reply" with a model that reads images'
        )
    return faults


def _interviewer(account: object) -> Mapping[str, Any]:
    usage = account.get("interviewer") if isinstance(account, Mapping) else None
    return usage if isinstance(usage, Mapping) else {}


def _kinds(account: object, name: str) -> dict[str, int]:
    """Return counts by kind; those that are none are left out."""
    counts = _interviewer(account).get(name)
    if not isinstance(counts, Mapping):
        return {}
    return {str(kind): n for kind, n in counts.items() if isinstance(n, int) and n > 0}


def _listed(account: object, name: str) -> str:
    return f" ({', '.join(f'{kind} {n}' for kind, n in _kinds(account, name).items())})"


SCHEMA_VERSION = 1

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
_REQUIRED = "required gates gave no result, so that nothing is promoted"
#: Key of a record's further fields: the run failed for nothing but required gates without a result.
ONLY_REQUIRED = "only_required_gates_absent"
#: Key of a record's further fields: the run failed for nothing but baselines that did not exist yet.
ONLY_BASELINES = "only_baselines_missing"
_NO_GATE = "no gate: nothing was judged"  #: Warning on a run without gates.
#: Warning on a promotion by peer assessments alone.
_OPINION = "only models' opinion of each other speaks for this promotion: all gates that passed are on peer assessments"
_JUDGED = "only models' opinion speaks for this promotion: all gates that passed are on answers that a judge graded"
_ADVICE = "no answer was checked against a truth, so add a gate on a bank or a task"
_NO_ESTIMATES: dict[str, Any] = {"accuracy": None, "standard_error": None}  #: Fields of a category without a score.
_ATOMS = frozenset((type(None), int, bool))


def plain(value: Any) -> Any:
    """Return strict JSON data: no NaN, no lone surrogates, no foreign types."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is str:
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, _Record):
        return value.to_json()
    if kind is dict or isinstance(value, Mapping):
        return {plain(str(name)): plain(entry) for name, entry in value.items()}
    return plain(value.tolist() if hasattr(value, "tolist") else str(value))  # numpy scalars and arrays, or anything


class _Record:
    """Base of records: fields are JSON keys, and keys that this version does not know stay in `extra`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    extra: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            kind = type(value)  # most are numbers and ASCII texts, for which a call would dominate the time
            finite = kind in _ATOMS or (kind is float and math.isfinite(value)) or (kind is str and value.isascii())
            data[name] = value if finite else plain(value)
        extra = data.pop("extra")
        return {**data, **extra} if extra else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        import msgspec  # only where records are read

        try:
            return msgspec.convert(_separated(cls, data), cls)
        except msgspec.ValidationError as error:
            text, _, path = str(error).partition(" - at `$")
            raise TypeError(f"{path.strip('.`') or 'the record'}: {text}") from None


def _separated(kind: type[_Record], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's data, and that of records in it, with unknown keys under ``extra``."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in data.items():
        if name == "extra" or name not in kind.__dataclass_fields__:
            extra[name] = value
        elif (nested := _NESTED.get(name)) and isinstance(value, list):
            fields[name] = [_separated(nested, entry) if isinstance(entry, Mapping) else entry for entry in value]
        else:
            fields[name] = value
    return {**fields, "extra": extra}


Place = tuple[str, str, str, int]  #: Item, its hash, its format, and the number of the answer.


@dataclass(slots=True)
class Administration(_Record):
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
    category: list[str] = field(default_factory=list)
    seconds: float | None = None
    resumed: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Item, as it was, and number of its answer."""
        return self.item, self.item_hash, self.format, self.sample

    @property
    def request(self) -> str:
        """Hash of what its test asked, see `changed_requests`; empty for the item as it stands."""
        return str(self.extra.get("request", ""))


UNKNOWN = "unknown"  #: Request of a model that is asked unseen, or by a test that draws a part of it at random.


def changed_requests(before: Mapping[Place, str], after: Iterable[Administration]) -> str:
    """Return how many of the common administrations asked something else, as the start of a sentence; else empty."""
    common = [entry for entry in after if UNKNOWN not in (entry.request, before.get(entry.place, UNKNOWN))]
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
    return [
        replace(group[0], score=item_score([*(a.score for a in group), *[None] * (samples - len(group))]))
        for group in groups.values()
    ]


def noise_of(administrations: list[Administration], samples: int, size: int) -> DecodingNoise:
    """Return the variance of answers to one item, from samples and repeats; `size` is the bank's."""
    answers: dict[str, list[float]] = {}
    for a in administrations:
        if a.score is not None:
            answers.setdefault(a.item, []).append(a.score)
    return DecodingNoise.of(answers.values(), [a.score for a in by_item(administrations, samples)], samples, size)


@dataclass(slots=True)
class InterviewRecord(_Record):
    """Interview of one subject on one bank; without any score, its estimates are None, in categories too.

    Args:
        subject: `SubjectIdentity.to_json`.
        bank: name, path (as the run found it), content_hash, scale, size, calibrated, model, trusted,
            calibration_subject, and for a generated task its levels, queries and seed.
        policy: `Policy.to_json`, with its seed, and the ids of the items that were asked_first, whatever the draws, and
            that must_pass.
        statuses: Administrations by status.
        stop: Name of the `StopReason`; empty if the interview was cut off.
        conditions: `Condition.to_json` of the gates that were known before the first question.
        accuracy: The `Interval` by the draws; gates decide on it.
        accuracy_conformal: The bank's projection with an interval from replayed interviews; shown only.
        accuracy_error: Standard error of the accuracy by the draws, for comparing runs; gates never use it.
        accuracy_model: The bank's own projection; shown only.
        samples: Answers that an item's score is the mean of; further ones to an item are repeats, which count for
            `decoding_noise` alone.
        decoding_noise: How far answers to an item vary, where items were asked repeatedly: see `noise.DecodingNoise`.
        categories: `CategoryResult.to_json` of the bank's broadest categories.
        levels: Of a climb: queries a level, cap, questions asked and accuracy by level, last_level, and, where all
            questions of a level were asked, the `Interval` of the sum of the accuracies as auc and of the level at
            which accuracy crosses one half as half.
        interviewer: What a selector that remembers says of itself, see `selection.SelectorSession.account`.
        costs: Calls, tokens, seconds and estimated FLOPs, by ``subject`` and ``interviewer``, as far as known, and
            ``relative``: all of it over what asking the subject the whole bank would cost, in FLOPs.
        error: Why the interview is void.
    """

    name: str
    nodeid: str
    subject: dict[str, Any]
    bank: dict[str, Any]
    policy: dict[str, Any]
    asked: int
    scored: int
    size: int
    statuses: dict[str, int]
    stop: str
    stop_sentence: str
    theta: list[float] | None
    standard_error: list[float] | None
    accuracy: dict[str, Any] | None
    accuracy_model: dict[str, Any] | None
    accuracy_conformal: dict[str, Any] | None = None
    accuracy_error: float | None = None
    samples: int = 1
    decoding_noise: dict[str, Any] | None = None
    categories: list[dict[str, Any]] = field(default_factory=list)
    levels: dict[str, Any] | None = None
    interviewer: dict[str, Any] | None = None
    costs: dict[str, Any] = field(default_factory=dict)
    conditions: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    notes: list[str] = field(default_factory=list)
    administrations: list[Administration] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Drop estimates without any score, which repeat the prior; earlier versions recorded them."""
        if self.scored == 0:
            self.theta = self.standard_error = None
            self.accuracy = self.accuracy_model = self.accuracy_conformal = self.accuracy_error = None
            self.levels = None
        self.categories = [{**row, **_NO_ESTIMATES} if row.get("scored") == 0 else row for row in self.categories]

    def draws(self, index: Mapping[str, int] | None = None) -> DesignLog:
        """Return the draws, without propensities if none is bounded; `index` gives the items of the bank by id."""
        asked = self.by_item()
        columns: dict[str, Any] = {
            name: np.array([np.nan if (v := getattr(a, attribute)) is None else v for a in asked], dtype=np.float64)
            for name, attribute in _COLUMNS.items()
        }
        floor = self.policy.get("floor")
        if isinstance(floor, int | float) and floor < GATE_FLOOR and self.policy.get("selector") != "random":
            columns["propensities"] = np.full(len(asked), np.nan)
        items = range(len(asked)) if index is None else [index[a.item] for a in asked]
        noise = (self.decoding_noise or {}).get("allowed", 0.0)
        first = set(map(str, self.policy.get("asked_first") or ()))
        take_all = sum(1 for _ in takewhile(lambda a: a.item in first, asked))
        return DesignLog(np.array(items, dtype=np.int64), **columns, size=self.size, noise=noise, take_all=take_all)

    @property
    def unanswered(self) -> str:
        """The setting of that name, see `items.item.Response.of`; empty in records of earlier versions."""
        return str(self.extra.get("unanswered") or "")

    @property
    def counting(self) -> str:
        """What answers count as that are empty, refused or cut.

        Earlier versions counted them as missing; where a record of them has none, both are the same.
        """
        return self.unanswered or (MISSING if unanswered_sentence(self.statuses) else WRONG)

    @property
    def requests(self) -> dict[Place, str]:
        """Requests by place, see `changed_requests`; none of a Python test that an earlier version recorded."""
        if self.extra.get("prompt"):  # it kept a hash of the test's source instead
            return {}
        return {entry.place: entry.request for entry in self.administrations}

    def by_item(self) -> list[Administration]:
        """Return the administrations by item, see `by_item`."""
        return by_item(self.administrations, self.samples)


class Quantity(NamedTuple):
    """Quantity of a study: its metric, and the part of the study, such as a node; empty for the whole."""

    metric: str
    part: str


@dataclass(slots=True)
class StudyRecord(_Record):
    """Evaluation of several subjects, such as a panel of models that judge each other.

    Args:
        kind: ``peers``.
        members: `SubjectIdentity.to_json` of all subjects.
        metrics: By quantity, the leading one first, a dict a subject: ``subject``, ``estimate``, ``low``, ``high``,
            ``confidence``, ``error`` and ``rank``, as far as they are known.
        asked, size: Units that counted, and those that were held.
        unit: Such as ``rounds``.
        account: All results, by kind; of ``peers`` see `extensions.studies.peers.result.Assessment.to_json`, with
            ``truth`` besides, where members have accuracies.
        costs: ``total`` calls, tokens, seconds and FLOPs, the same by role as ``roles``, and how often each model was
            loaded as ``loads``.
        error: Why it is void.
    """

    name: str
    nodeid: str
    kind: str
    candidate: str
    members: list[dict[str, Any]] = field(default_factory=list)
    metrics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    asked: int = 0
    size: int = 0
    unit: str = "rounds"
    account: dict[str, Any] = field(default_factory=dict)
    costs: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""
    notes: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    def quantities(self) -> Iterator[tuple[Quantity, str, Mapping[str, Any]]]:
        """Yield each measured quantity with its subject and its row of `metrics`.

        Rows of members are their own; any other row, such as that of a node, is a part of the candidate's result.
        """
        members = {str(member.get("name")) for member in self.members if isinstance(member, Mapping)}
        for metric, rows in self.metrics.items():
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, Mapping):
                    name = str(row.get("subject"))
                    whole = name in members or name == self.candidate
                    yield Quantity(str(metric), "" if whole else name), name if whole else self.candidate, row

    @property
    def judged_by_models(self) -> bool:
        """Whether its scores are judgments by models, which no coded truth has checked."""
        return "judgments" in self.account


@dataclass(slots=True)
class GateRecord(_Record):
    """One gate's verdict on an evaluation; the name is empty if the gate had none."""

    name: str
    nodeid: str
    interview: str
    verdict: dict[str, Any]
    file: str = ""
    line: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome."""
        return Outcome(self.verdict["outcome"])

    @property
    def let_through(self) -> bool:
        """Whether the gate is undecided and yet no reason for the run to fail."""
        tolerated = self.verdict.get("notice") or self.verdict.get("on_inconclusive", "fail") != "fail"
        return self.verdict.get("outcome") == Outcome.INCONCLUSIVE and bool(tolerated)

    @property
    def holds(self) -> bool:
        """Whether the gate passed or was let through."""
        return self.verdict.get("outcome") == Outcome.PASS or self.let_through


@dataclass(slots=True)
class RunRecord(_Record):
    """Results of one run.

    Args:
        started: ISO 8601, UTC.
        versions: Of python, pytest, this package, and what the subject used.
        exit_status: Of the run as far as known when written.
        warnings: What whoever promotes must know.
    """

    run: str
    started: str
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    exit_status: int | None = None
    interviews: list[InterviewRecord] = field(default_factory=list)
    studies: list[StudyRecord] = field(default_factory=list)
    gates: list[GateRecord] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    schema_version: int = SCHEMA_VERSION
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def promote(self) -> bool:
        """Whether the checkpoint may be promoted: the run passed, and every gate could judge."""
        outcomes = {gate.verdict.get("outcome") for gate in self.gates}
        refused = outcomes - {Outcome.PASS, Outcome.INCONCLUSIVE} or any(g.verdict.get("notice") for g in self.gates)
        whole = not (self.left_to_shards or self.absent_required)
        return self.exit_status == 0 and Outcome.PASS in outcomes and not refused and whole

    @property
    def serves_as_baseline(self) -> bool:
        """Whether the run passed, or failed for nothing but baselines that did not exist yet, as a first run does."""
        return self.exit_status == 0 or (self.exit_status == 1 and self.extra.get(ONLY_BASELINES) is True)

    @property
    def required(self) -> dict[str, list[str]]:
        """Node ids of the gates that the settings require, by their names there; none where no gate was found."""
        required = self.extra.get("required")
        entries = required.items() if isinstance(required, Mapping) else ()
        return {str(name): [*map(str, nodeids)] if isinstance(nodeids, list) else [] for name, nodeids in entries}

    @property
    def absent_required(self) -> list[str]:
        """Names of required gates that were not found, or lack the result of one of their parameters."""
        judged = {gate.nodeid for gate in self.gates}
        return [name for name, nodeids in self.required.items() if not nodeids or not judged.issuperset(nodeids)]

    @property
    def left_to_shards(self) -> bool:
        """Whether this run is one shard and left gates to the others."""
        return bool(self.extra.get("shard") and self.extra.get("deselected"))

    def fail_without_required(self) -> None:
        """Set the exit status of a run that passed but for required gates without a result."""
        if self.exit_status == 0 and self.absent_required:
            self.exit_status, self.extra[ONLY_REQUIRED] = 1, True

    def warn(self) -> None:
        """Set `warnings`, once everything else is known."""
        self.warnings = []
        if not self.gates and not self.extra.get("missing"):
            self.warnings.append(_NO_GATE)
        if deselected := self.extra.get("deselected"):
            warning, advice = (_SHARD, _MERGE) if self.left_to_shards else (_DESELECTED, _ALL)
            self.warnings.append(f"{warning}: {', '.join(map(str, deselected))}; {advice}")
        if absent := self.absent_required:
            self.warnings.append(f"{_REQUIRED}: {', '.join(absent)}")
        if opinion := self._opinion_warning():
            self.warnings.append(opinion)
        for i in self.interviews:
            decoding = i.subject.get("decoding")
            cap = decoding.get("max_tokens") if isinstance(decoding, Mapping) else None
            cut = truncation_warning(i.statuses.get(Status.TRUNCATED, 0), sum(i.statuses.values()), cap)
            reuse = i.extra.get("reuse")
            refused = reuse.get("refused") if isinstance(reuse, Mapping) else None
            unshared = f"no answer was taken from the store (--adaptive-eval-reuse): {refused}" if refused else ""
            sentences = filter(None, [cut, unshared, *interviewer_faults(i.interviewer)])
            self.warnings += [f"{i.name or i.nodeid}: {sentence}" for sentence in sentences]

    def _opinion_warning(self) -> str:
        """Return the warning on a promotion that models' opinions alone support, empty for any other run."""
        if not self.promote:
            return ""
        judged = {name for i in self.interviews if i.extra.get("judge") for name in (i.name, i.nodeid)}
        studies = {name for study in self.studies if study.judged_by_models for name in (study.name, study.nodeid)}
        passed = [gate for gate in self.gates if gate.verdict.get("outcome") == Outcome.PASS]
        if any(gate.interview not in judged | studies for gate in passed):
            return ""
        names = ", ".join(dict.fromkeys(gate.interview for gate in passed))
        by_judge = any(gate.interview in judged for gate in passed)
        return f"{_JUDGED if by_judge else _OPINION} ({names}); {_ADVICE}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a record.

        Raises:
            UsageError: The record was written by a newer, incompatible version.
            TypeError: A value has another type; the message names its place.
        """
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise UsageError(
                f"the run record has schema_version {version!r}, this version reads {SCHEMA_VERSION}: upgrade"
            )
        return super(RunRecord, cls).from_json(data)


#: Classes of records within records, by field.
_NESTED: dict[str, type[_Record]] = {
    "interviews": InterviewRecord,
    "studies": StudyRecord,
    "gates": GateRecord,
    "administrations": Administration,
}


def recorded_must_pass(interview: InterviewRecord) -> tuple[MustPassAnswer, ...]:
    """Return the answers to the items of a recorded interview that must pass."""
    return must_pass_answers(map(str, interview.policy.get("must_pass") or ()), interview.administrations)


def must_pass_answers(items: Iterable[str], administrations: Sequence[Administration]) -> tuple[MustPassAnswer, ...]:
    """Return the answers to items that must pass; of several answers to one the worst counts."""
    answers: dict[str, list[Administration]] = {item: [] for item in items}
    for administration in administrations if answers else ():
        if administration.item in answers:
            answers[administration.item].append(administration)
    return tuple(_worst(item, given) for item, given in answers.items())


def _worst(item: str, answers: Sequence[Administration]) -> MustPassAnswer:
    """Return the lowest score of the answers to an item, or else the first that has none."""
    scored = [(answer.score, answer.text) for answer in answers if answer.score is not None]
    lowest = min(scored, default=None, key=lambda pair: pair[0])
    missing = next((answer for answer in answers if answer.score is None), None)
    if lowest is not None and (lowest[0] < 1.0 or missing is None):
        return MustPassAnswer(item, *lowest)
    why = ": ".join(filter(None, (missing.status, missing.detail.strip()))) if missing else ""
    return MustPassAnswer(item, None, why)


def copied_from(record: RunRecord) -> str:
    """Return ``rescored from RUN`` or ``merged of N``; an empty text for a run with answers of its own."""
    if source := record.extra.get("rescored_from"):
        return f"rescored from {source}"
    runs = record.extra.get("merged")
    return f"merged of {len(runs)}" if isinstance(runs, list) else ""


def sources_of(record: RunRecord) -> list[str]:
    """Return the ids of the runs whose answers a derived record holds; an empty list for any other record."""
    source, runs = record.extra.get("rescored_from"), record.extra.get("merged")
    return [str(source)] if source else [str(run) for run in runs] if isinstance(runs, list) else []


def merged(records: Sequence[RunRecord], run: str) -> RunRecord:
    """Return one record of several, with their verdicts.

    Evaluations that share a name get the subject's name added, else the start of the run, else its id.
    """
    whole = RunRecord(run, min(record.started for record in records))
    names: set[str] = set()
    for record in records:
        _add(record, whole, names)
    whole.exit_status = max(map(_exit_status, records))
    whole.extra["merged"] = [record.run for record in records]
    judged = {gate.nodeid for gate in whole.gates}
    deselected = dict.fromkeys(nodeid for record in records for nodeid in record.extra.get("deselected") or ())
    if unjudged := [nodeid for nodeid in deselected if nodeid not in judged]:
        whole.extra["deselected"] = unjudged
        if any(record.extra.get("shard") for record in records):
            whole.extra["shard"] = True
    required: dict[str, dict[str, None]] = {}
    for record in records:
        for name, nodeids in record.required.items():
            required.setdefault(name, {}).update(dict.fromkeys(nodeids))
    if required:
        whole.extra["required"] = {name: list(nodeids) for name, nodeids in required.items()}
    whole.fail_without_required()
    whole.warn()
    return whole


def _add(record: RunRecord, whole: RunRecord, names: set[str]) -> None:
    """Add a record's evaluations under names of their own, and its gates."""
    marks = (record.started[:16].replace("T", " "), record.run)
    renamed: dict[str, str] = {}
    for interview in record.interviews:
        name = _unique(interview.name, (str(interview.subject.get("name") or ""), *marks), names)
        renamed |= {interview.name: name, interview.nodeid: name}
        whole.interviews.append(replace(interview, name=name))
    for study in record.studies:
        name = _unique(study.name, (study.candidate, *marks), names)
        renamed |= {study.name: name, study.nodeid: name}
        whole.studies.append(replace(study, name=name))
    whole.gates += [replace(gate, interview=renamed.get(gate.interview, gate.interview)) for gate in record.gates]
    whole.seconds += record.seconds
    whole.versions |= record.versions


def _exit_status(record: RunRecord) -> int:
    """Return a run's exit status, 0 if it failed only for required gates, which another run may have judged."""
    if record.exit_status == 1 and record.extra.get(ONLY_REQUIRED) is True:
        return 0
    return 1 if record.exit_status is None else record.exit_status


def _unique(name: str, marks: Sequence[str], taken: set[str]) -> str:
    """Return the name, with the first mark that makes it unique, and add it to those taken."""
    candidates = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    unique = next((candidate for candidate in candidates if candidate not in taken), candidates[-1])
    taken.add(unique)
    return unique
