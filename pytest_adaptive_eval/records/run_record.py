"""The record of a run, the only source of reports, history and exports.

It is plain JSON: every float is finite or null, every text is valid Unicode without lone surrogates, and unknown keys
of runs, evaluations, gates and administrations are kept. Its types are the schema, version `SCHEMA_VERSION`;
`records.schema1` converts records of version 1.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import takewhile
from typing import Any, ClassVar, Self

import msgspec
import numpy as np
from msgspec.structs import replace

from pytest_adaptive_eval.claims.categories import CategoryResult
from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.design import GATE_FLOOR, DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import DecodingNoise, item_score
from pytest_adaptive_eval.interviewer.interviewer import CategoryRow
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import MISSING, WRONG, Status, unanswered_sentence
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.models.caps import truncation_warning
from pytest_adaptive_eval.text import counted

SCHEMA_VERSION = 2

#: Data of users and of plugins, such as decoding settings: kept and shown, and read by nobody here.
Data = dict[str, Any]

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
_NO_GATE = "no gate: nothing was judged"  #: Warning on a run without gates.
#: Warning on a promotion by peer assessments alone.
_OPINION = "only models' opinion of each other speaks for this promotion: all gates that passed are on peer assessments"
_JUDGED = "only models' opinion speaks for this promotion: all gates that passed are on answers that a judge graded"
_ADVICE = "no answer was checked against a truth, so add a gate on a bank or a task"
_ATOMS = frozenset((type(None), int, bool))


def plain(value: Any) -> Any:
    """Return strict JSON data: no NaN, no lone surrogates, no foreign types."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if isinstance(value, str):
        return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, Part):
        return value.to_json()
    if kind is dict or isinstance(value, Mapping):
        return {plain(str(name)): plain(entry) for name, entry in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return plain(value.tolist() if hasattr(value, "tolist") else str(value))  # numpy scalars and arrays, or anything


class Part(msgspec.Struct):
    """Base of records and their parts: fields are JSON keys; those in `sparse` are left out where they are empty."""

    sparse: ClassVar[frozenset[str]] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data: dict[str, Any] = {}
        sparse = self.sparse
        for name in self.__struct_fields__:
            value = getattr(self, name)
            kind = type(value)  # most are numbers and ASCII texts, for which a call would dominate the time
            if name in sparse and not value and kind not in (int, float):
                continue
            finite = kind in _ATOMS or (kind is float and math.isfinite(value)) or (kind is str and value.isascii())
            data[name] = value if finite else plain(value)
        return data


def converted(kind: type[Any], data: object) -> Any:
    """Return JSON data as its type; a TypeError names the place of a value of another type."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        raise TypeError(f"{path.strip('.`') or 'the record'}: {text}") from None


class _Record(Part, kw_only=True):
    """Base of records: keys that this version does not know stay in `extra`."""

    #: Records within this one, by field.
    nested: ClassVar[tuple[str, ...]] = ()
    extra: Data = {}

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data = super().to_json()
        extra = data.pop("extra")
        return {**data, **extra} if extra else data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the data of `to_json`; a TypeError names the place of a value of another type."""
        record: Self = converted(cls, data)
        _keep_unknown(record, data)
        return record


def _keep_unknown(record: _Record, data: Mapping[str, Any]) -> None:
    """Move keys of a record's data that are no fields into `extra`, also those of records in it."""
    if unknown := data.keys() - _known_keys(type(record)):
        record.extra = {name: data[name] for name in data if name in unknown}
    for name in record.nested:
        for entry, entry_data in zip(getattr(record, name), data.get(name, ()), strict=True):
            _keep_unknown(entry, entry_data)


@cache
def _known_keys(kind: type[_Record]) -> frozenset[str]:
    return frozenset(kind.__struct_fields__) - {"extra"}


Place = tuple[str, str, str, int]  #: Item, its hash, its format, and the number of the answer.
UNKNOWN = "unknown"  #: Request of a model that is asked unseen, or by a test that draws a part of it at random.


class LikelihoodRecord(Part):
    """Log-likelihoods in nats that an answer follows from, see `items.likelihood`; None for minus infinity.

    Args:
        scores: Normalised ones of choices.
        unconditional: Those of the choices without the prompt.
        bytes, bits_per_byte: Of a text that is scored by its own likelihood.
    """

    sparse = frozenset({"scores", "unconditional", "bytes", "bits_per_byte"})
    normalization: str
    log_likelihoods: list[float | None]
    scores: list[float | None] = []
    unconditional: list[float | None] = []
    bytes: int | None = None
    bits_per_byte: float | None = None


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
        request: Hash of what its test asked, see `changed_requests`; empty for the item as it stands.
        reused: Whether another run got the answer.
    """

    sparse = frozenset({"request", "reused", "likelihood"})
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
    likelihood: LikelihoodRecord | None = None

    @property
    def place(self) -> Place:
        """Item, as it was, and number of its answer."""
        return self.item, self.item_hash, self.format, self.sample


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


class SubjectRecord(Part):
    """Identity of a model: see `models.base.SubjectIdentity`."""

    name: str = ""
    checkpoint: str = ""
    decoding: Data = {}
    environment: Data = {}
    decoding_hash: str = ""

    @classmethod
    def of(cls, identity: SubjectIdentity) -> Self:
        """Create from an identity."""
        return cls(
            identity.name,
            identity.checkpoint,
            dict(identity.decoding),
            dict(identity.environment),
            identity.decoding_hash,
        )


class TwinsRecord(Part):
    """Origin of a bank of variants, see `tasks.twin`."""

    of: str = ""
    values: str = ""
    seed: int = 0


class BankRecord(Part):
    """Bank of an interview.

    Args:
        path: Where the run found it; empty for a generated task.
        trusted: False where its calibration report advises against it.
        calibration_subject: Whether the tested subject is one of those that calibrated it.
        task: Of a generated task: levels, queries, seed, and the options of its family.
        category, twins, formats, presentation: The part or the variants of the bank that were asked.
        parts: Names of the ability's components.
    """

    sparse = frozenset({"task", "category", "twins", "formats", "parts", "presentation"})
    name: str = ""
    path: str = ""
    content_hash: str = ""
    scale: str = ""
    size: int = 0
    calibrated: bool = True
    model: str = ""
    trusted: bool = True
    calibration_subject: bool = False
    task: Data | None = None
    category: str = ""
    twins: TwinsRecord | None = None
    formats: list[str] = []
    parts: list[str] = []
    presentation: Data | None = None

    @classmethod
    def of(cls, bank: ItemBank, *, path: str, calibration_subject: bool) -> Self:
        """Create from a bank."""
        facts = ("name", "content_hash", "scale", "calibrated", "model")
        asked = {name: bank.report[name] for name in sorted(cls.sparse) if name in bank.report}
        record: Self = converted(
            cls,
            plain(
                {
                    **{name: getattr(bank, name) for name in facts},
                    "path": path,
                    "size": len(bank),
                    "trusted": bank.report.get("trusted") is not False,
                    "calibration_subject": calibration_subject,
                    **asked,
                }
            ),
        )
        return record


class PolicyRecord(Part):
    """Settings that determine the items, see `cat.policy.Policy`, with the seed.

    Args:
        settings: Of a selector that remembers.
        predictor: Hash of the bank's predictor, where it determines draws or estimates.
        asked_first: Ids of the items that were asked whatever the draws.
        must_pass: Ids of the items of which one wrong answer fails every gate.
    """

    sparse = frozenset({"share", "settings", "predictor", "asked_first", "must_pass"})
    selector: str = ""
    floor: float | None = None
    budget: int | str | None = None
    standard_error: float | None = None
    batch: int | None = None
    estimator: str = ""
    stop: str = ""
    share: float | None = None
    settings: Data = {}
    predictor: str = ""
    seed: int | None = None
    stream: str = ""
    asked_first: list[str] = []
    must_pass: list[str] = []

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """Create from `Policy.to_json` and further fields."""
        record: Self = converted(cls, plain(settings))
        return record


class LevelsRecord(Part):
    """Result of a ladder.

    Args:
        queries: Questions of a level.
        asked, accuracy: Questions asked, and their mean score, by level.
        last_level: Last level with an accuracy above the policy's limit; None where the answers do not measure it.
        climb: The area and the last level as MACEval writes them.
        guess: Accuracy of guessing by level.
        auc: Sum of the accuracies, where all questions of a level were asked.
        half: Level at which accuracy crosses one half.
    """

    sparse = frozenset({"climb", "guess", "auc", "half"})
    cap: int
    accuracy: list[float | None]
    asked: list[int] = []
    queries: int = 0
    last_level: int | None = None
    climb: str = ""
    guess: list[float] = []
    auc: Interval | None = None
    half: Interval | None = None


class Spent(Part):
    """Calls, tokens, seconds and estimated FLOPs of a model, with their price where it is known."""

    sparse = frozenset({"money", "currency"})
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    money: float | None = None
    currency: str = ""

    @property
    def tokens(self) -> int:
        """Tokens of prompts and replies."""
        return self.prompt_tokens + self.completion_tokens


class Costs(Part):
    """Costs of an evaluation, as far as known.

    Args:
        relative: FLOPs of all models over those of asking the subject the whole bank.
        money, currency: Price of the subject's answers.
        total, roles: Of all replies of an evaluation of several models, and of those by role.
        loads: How often each model was loaded.
    """

    sparse = frozenset({"subject", "interviewer", "judge", "relative", "money", "currency", "total", "roles", "loads"})
    subject: Spent | None = None
    interviewer: Spent | None = None
    judge: Spent | None = None
    relative: float | None = None
    money: float | None = None
    currency: str = ""
    total: Spent | None = None
    roles: dict[str, Spent] = {}
    loads: dict[str, int] = {}


class AgentRecord(Spent):
    """Model, or code, that chose questions, with its settings and its faults.

    Args:
        recalled: Decisions of an interrupted run.
        images_not_shown: Pictures of candidates that it did not see.
        fallbacks, category_fallbacks: Choices by code, and questions that it sorted into no category, by reason.
    """

    sparse = frozenset(Spent.__struct_fields__) | {
        "model", "checkpoint", "mode", "memory", "difficulty", "images", "sort_candidates", "recalled", "asked_again",
        "images_not_shown", "fallbacks", "category_fallbacks",
    }  # fmt: skip
    name: str = ""
    model: str = ""
    checkpoint: str = ""
    mode: str = ""
    memory: bool | str | None = None
    difficulty: bool | str | None = None
    images: bool | None = None
    sort_candidates: bool | None = None
    recalled: int = 0
    asked_again: int = 0
    images_not_shown: int = 0
    fallbacks: dict[str, int] = {}
    category_fallbacks: dict[str, int] = {}


class InterviewerRecord(_Record):
    """Account of a selector that remembers, see `cat.selection.SelectorSession.account`.

    Args:
        interviewer: None where items are drawn in the window of chances.
        semantic_distance, difficulty_distance: Mean distances of the questions, by subject.
        memory: Rows of the memory table, by subject.
    """

    sparse = frozenset({"notes"})
    interviewer: AgentRecord | None = None
    embeddings: str = ""
    first: str = ""
    window: str = ""
    widened: int = 0
    chosen: int | None = None
    fallbacks: int | None = None
    notes: list[str] = []
    semantic_distance: list[float | None] = []
    difficulty_distance: list[float | None] = []
    memory: list[list[CategoryRow]] = []

    @classmethod
    def of(cls, account: Mapping[str, Any]) -> Self | None:
        """Create from an account; None without one, or for one of a plugin whose values have other types."""
        if not account:
            return None
        try:
            return cls.from_json(plain(account))
        except TypeError as error:
            return cls(notes=[f"the selector's account has another form: {error}"])

    @property
    def fallback_counts(self) -> tuple[int, int]:
        """How many choices, and how many questions to sort, code made or sorted in place of the interviewer."""
        agent = self.interviewer or AgentRecord()
        return sum(agent.fallbacks.values()), sum(agent.category_fallbacks.values())

    @property
    def faults(self) -> list[str]:
        """A sentence on the choices by code, one on unsorted questions, and one on pictures that were not shown."""
        agent = self.interviewer or AgentRecord()
        faults = []
        choices, unsorted = self.fallback_counts
        if choices:
            faults.append(
                f"the interviewer made no choice of its own {counted(choices, 'time')}{listed_kinds(agent.fallbacks)}: "
                "the most distant candidate was asked"
            )
        if unsorted:
            faults.append(
                f"the interviewer sorted {counted(unsorted, 'question')} into no category"
                f"{listed_kinds(agent.category_fallbacks)}: they count as other"
            )
        if agent.images_not_shown:
            faults.append(
                f"the interviewer did not see {counted(agent.images_not_shown, 'picture')} of its candidates: mode "
                'rate compares texts; set mode = "reply" with a model that reads images'
            )
        return faults


def listed_kinds(counts: Mapping[str, int]) -> str:
    """Return counts by kind in parentheses, as `` (unread 3, silent 1)``; empty without any."""
    kinds = ", ".join(f"{kind} {n}" for kind, n in counts.items())
    return f" ({kinds})" if kinds else ""


_KEY = ("metric", "kind")  #: Fields that every recorded condition has.


class ConditionRecord(Part):
    """Condition of a gate, see `gates.condition.Condition`; its metric may be one of a plugin that is not here."""

    metric: str
    kind: str
    value: int | float = 0.0
    name: str = ""
    confidence: float = 0.95
    probability: float = 0.95
    on_inconclusive: str = "fail"
    method: str = "draws"
    subject: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their default, with the metric and the kind."""
        default = ConditionRecord(self.metric, self.kind)
        data = super().to_json().items()
        return {name: value for name, value in data if name in _KEY or value != getattr(default, name)}

    @classmethod
    def of(cls, condition: Condition) -> Self:
        """Create from a condition."""
        return cls(**{name: getattr(condition, name) for name in cls.__struct_fields__})

    def condition(self) -> Condition:
        """Return the condition; a ConfigError if the metric is not known, or a value is out of range."""
        return Condition(**{name: getattr(self, name) for name in self.__struct_fields__})


class VerdictRecord(Part):
    """Verdict of a gate, see `gates.verdict.Verdict`, with its sentence."""

    sparse = frozenset({"unanswered"})
    outcome: Outcome
    metric: str = ""
    requirement: str = ""
    interval: Interval | None = None
    confidence: float | None = None
    asked: int | None = None
    size: int | None = None
    notes: list[str] = []
    on_inconclusive: str = "fail"
    stated: str = ""
    condition: ConditionRecord | None = None
    notice: bool = False
    unit: str = "items"
    unanswered: str = ""
    sentence: str = "the record holds no verdict for this gate"

    @classmethod
    def of(cls, verdict: Verdict) -> Self:
        """Create from a verdict."""
        facts = {name: getattr(verdict, name) for name in cls.__struct_fields__}
        condition = ConditionRecord(**verdict.condition) if verdict.condition else None
        return cls(**{**facts, "notes": list(verdict.notes), "condition": condition})

    @property
    def let_through(self) -> bool:
        """Whether it is undecided and yet no reason for the run to fail."""
        return self.outcome is Outcome.INCONCLUSIVE and (self.notice or self.on_inconclusive != "fail")


class JudgeRecord(Part):
    """Judge of an interview, with the counts of `models.judging.Judged`."""

    name: str
    answers: int = 0
    unread: int = 0
    coded: int = 0
    agreed: int = 0
    repeated: int = 0
    same: int = 0
    agreement: float | None = None
    noise: float | None = None


class BaselineSource(Part):
    """Origin of a baseline: path, subject in it, run, and a hash of the answers; empty for one of the same run."""

    sparse = frozenset({"path", "subject", "run", "hash"})
    path: str = ""
    subject: str = ""
    run: str = ""
    hash: str = ""


class ReuseRecord(Part):
    """Answers of other runs that an interview took from a store, or why it took none."""

    sparse = frozenset({"refused"})
    store: str
    answers: int = 0
    refused: str = ""


class RankRecord(Part):
    """Mean of a rank's distribution, and its interval."""

    mean: float
    best: int
    worst: int


class QuantityRecord(Part):
    """One quantity of one subject, or of a part of the candidate's result such as a node.

    Args:
        error: Standard error.
        guess: Value that guessing alone has.
    """

    sparse = frozenset({"estimate", "low", "high", "confidence", "method", "error", "rank", "guess"})
    subject: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str = ""
    error: float | None = None
    rank: RankRecord | None = None
    guess: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The estimate with its bounds; None without all of them."""
        if self.estimate is None or self.low is None or self.high is None or self.confidence is None:
            return None
        return Interval(self.estimate, self.low, self.high, self.confidence, self.method)


class _Named(_Record):
    """An evaluation's name, and the node id of its test."""

    name: str
    nodeid: str


class EvaluationRecord(_Named, kw_only=True):
    """What the records of all kinds of evaluation have.

    Args:
        error: Why it is void.
        journal: Name of the file of its replies or answers.
        usage_error: Whether a mistake of the user voids it.
    """

    sparse = frozenset({"journal", "usage_error"})
    costs: Costs = msgspec.field(default_factory=Costs)
    seconds: float = 0.0
    error: str = ""
    notes: list[str] = []
    journal: str = ""
    usage_error: bool = False

    @property
    def tested(self) -> SubjectRecord:
        """Identity of the subject that gates judge by default."""
        raise NotImplementedError

    @property
    def void(self) -> str:
        """Why it gave no result; empty for a usable one."""
        return self.error


class InterviewRecord(EvaluationRecord):
    """Interview of one subject on one bank; without any score, its estimates are None, in categories too.

    Args:
        statuses: Administrations by status.
        stop: Name of the `StopReason`; empty if the interview was cut off.
        conditions: Conditions of the gates that were known before the first question.
        accuracy: Accuracy by the draws; gates decide on it.
        accuracy_conformal: The bank's projection with an interval from replayed interviews; shown only.
        accuracy_error: Standard error of the accuracy by the draws, for comparing runs; gates never use it.
        accuracy_model: The bank's own projection; shown only.
        samples: Answers that an item's score is the mean of; further ones to an item are repeats, which count for
            `decoding_noise` alone.
        decoding_noise: How far answers to an item vary, where items were asked repeatedly.
        categories: Results of the bank's broadest categories.
        baselines: By the name that conditions use.
        unanswered: The setting of that name, see `items.item.Response.of`; empty in records of earlier versions.
        schema1_hash: Hash of the answers, where the record is of schema 1; it is not written again.
    """

    nested = ("administrations",)
    sparse = EvaluationRecord.sparse | {"judge", "baselines", "unanswered", "reuse", "schema1_hash"}
    subject: SubjectRecord
    bank: BankRecord
    policy: PolicyRecord
    asked: int
    scored: int
    size: int
    statuses: dict[str, int]
    stop: str
    stop_sentence: str
    theta: list[float] | None
    standard_error: list[float | None] | None
    accuracy: Interval | None
    accuracy_model: Interval | None
    accuracy_conformal: Interval | None = None
    accuracy_error: float | None = None
    samples: int = 1
    decoding_noise: DecodingNoise | None = None
    categories: list[CategoryResult] = []
    levels: LevelsRecord | None = None
    interviewer: InterviewerRecord | None = None
    conditions: list[ConditionRecord] = []
    administrations: list[Administration] = []
    judge: JudgeRecord | None = None
    baselines: dict[str, BaselineSource] = {}
    unanswered: str = ""
    reuse: ReuseRecord | None = None
    schema1_hash: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data = super().to_json()
        data.pop("schema1_hash", None)
        return data

    @property
    def answers_hash(self) -> str:
        """Hash of the answers, by which a later run knows that a baseline is the same."""
        data = json.dumps(self.to_json(), sort_keys=True)
        return self.schema1_hash or hashlib.sha256(data.encode()).hexdigest()[:16]

    def draws(self, index: Mapping[str, int] | None = None) -> DesignLog:
        """Return the draws, without propensities if none is bounded; `index` gives the items of the bank by id."""
        asked = self.by_item()
        columns: dict[str, Any] = {
            name: np.array([np.nan if (v := getattr(a, attribute)) is None else v for a in asked], dtype=np.float64)
            for name, attribute in _COLUMNS.items()
        }
        floor = self.policy.floor
        if floor is not None and floor < GATE_FLOOR and self.policy.selector != "random":
            columns["propensities"] = np.full(len(asked), np.nan)
        items = range(len(asked)) if index is None else [index[a.item] for a in asked]
        noise = self.decoding_noise.allowed if self.decoding_noise else 0.0
        first = set(self.policy.asked_first)
        take_all = sum(1 for _ in takewhile(lambda a: a.item in first, asked))
        return DesignLog(np.array(items, dtype=np.int64), **columns, size=self.size, noise=noise, take_all=take_all)

    @property
    def tested(self) -> SubjectRecord:
        """The subject."""
        return self.subject

    @property
    def void(self) -> str:
        """Why it gave no result; empty for a usable one."""
        return self.error or ("" if self.stop else "the interview did not finish")

    @property
    def projection(self) -> Interval | None:
        """The accuracy by the draws, else by the bank's projection; None without any."""
        return self.accuracy or self.accuracy_conformal or self.accuracy_model

    @property
    def counting(self) -> str:
        """What answers count as that are empty, refused or cut.

        Earlier versions counted them as missing; where a record of them has none, both are the same.
        """
        return self.unanswered or (MISSING if unanswered_sentence(self.statuses) else WRONG)

    @property
    def requests(self) -> dict[Place, str]:
        """Requests by place, see `changed_requests`."""
        return {entry.place: entry.request for entry in self.administrations}

    def by_item(self) -> list[Administration]:
        """Return the administrations by item, see `by_item`."""
        return by_item(self.administrations, self.samples)


class StudyRecord(EvaluationRecord):
    """Evaluation of several subjects, such as a panel of models that judge each other.

    Args:
        kind: ``peers``.
        members: Identities of all subjects.
        metrics: Rows of all subjects by metric, the leading one first.
        asked, size: Units that counted, and those that were held.
        unit: Such as ``rounds``.
        account: All results in the form of the kind, which its extension reads.
        population: Key of all that must be equal for two runs of it to compare; empty where none do.
        opinion: Whether its scores are judgments by models, which no coded truth has checked.
    """

    sparse = EvaluationRecord.sparse | {"population", "opinion"}
    kind: str
    candidate: str
    members: list[SubjectRecord] = []
    metrics: dict[str, list[QuantityRecord]] = {}
    asked: int = 0
    size: int = 0
    unit: str = "rounds"
    account: Data = {}
    population: str = ""
    opinion: bool = False

    @property
    def tested(self) -> SubjectRecord:
        """The candidate."""
        return self.member(self.candidate)

    def candidate_rows(self) -> Iterator[tuple[str, QuantityRecord]]:
        """Yield the candidate's row of each metric that has one."""
        for metric, rows in self.metrics.items():
            if row := next((row for row in rows if row.subject == self.candidate), None):
                yield metric, row

    def member(self, name: str) -> SubjectRecord:
        """Return the identity of a subject; its name alone if there is none."""
        return next((member for member in self.members if member.name == name), SubjectRecord(name))


class GateRecord(_Record):
    """One gate's verdict on an evaluation; the name is empty if the gate had none."""

    name: str
    nodeid: str
    interview: str
    verdict: VerdictRecord
    file: str = ""
    line: int = 0

    @property
    def outcome(self) -> Outcome:
        """The verdict's outcome."""
        return self.verdict.outcome

    @property
    def where(self) -> str:
        """File and line of the gate, else its node id."""
        return f"{self.file}:{self.line}" if self.file else self.nodeid

    @property
    def holds(self) -> bool:
        """Whether the gate passed or was let through."""
        return self.outcome is Outcome.PASS or self.verdict.let_through


class RunRecord(_Record):
    """Results of one run.

    Args:
        started: ISO 8601, UTC.
        versions: Of python, pytest, this package, and what the subject used.
        exit_status: Of the run as far as known when written.
        warnings: What whoever promotes must know.
        required: Node ids of the gates that the settings require, by their names there; none where no gate was found.
        missing: Node ids of planned evaluations and gates without a result.
        deselected: Node ids of gates that were found and did not run.
        shard: Number of the shard that the run is, as ``2 of 3``; empty for a whole run.
        rescored_from, merged: Ids of the runs that a derived record is of.
        only_required_gates_absent: The run failed for nothing but required gates without a result.
        only_baselines_missing: The run failed for nothing but baselines that did not exist yet.
    """

    nested = ("interviews", "studies", "gates")
    sparse = frozenset(
        {
            "required", "missing", "deselected", "shard", "rescored_from", "merged", "only_required_gates_absent",
            "only_baselines_missing",
        }
    )  # fmt: skip
    run: str
    started: str
    seconds: float = 0.0
    versions: dict[str, str] = {}
    exit_status: int | None = None
    interviews: list[InterviewRecord] = []
    studies: list[StudyRecord] = []
    gates: list[GateRecord] = []
    warnings: list[str] = []
    schema_version: int = SCHEMA_VERSION
    required: dict[str, list[str]] = {}
    missing: list[str] = []
    deselected: list[str] = []
    shard: str = ""
    rescored_from: str = ""
    merged: list[str] = []
    only_required_gates_absent: bool = False
    only_baselines_missing: bool = False

    @property
    def evaluations(self) -> list[InterviewRecord | StudyRecord]:
        """Evaluations of all kinds."""
        return [*self.interviews, *self.studies]

    def add(self, evaluation: InterviewRecord | StudyRecord) -> None:
        """Add an evaluation."""
        if isinstance(evaluation, InterviewRecord):
            self.interviews.append(evaluation)
        else:
            self.studies.append(evaluation)

    def judged(self) -> tuple[list[tuple[InterviewRecord | StudyRecord, list[GateRecord]]], list[GateRecord]]:
        """Return each evaluation with its gates, and the gates of none; of equal names the first evaluation counts."""
        pairs: list[tuple[InterviewRecord | StudyRecord, list[GateRecord]]] = [(e, []) for e in self.evaluations]
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
        """``rescored from RUN`` or ``merged of N``; empty for a run with answers of its own."""
        if self.rescored_from:
            return f"rescored from {self.rescored_from}"
        return f"merged of {len(self.merged)}" if self.merged else ""

    @property
    def sources(self) -> list[str]:
        """Ids of the runs whose answers a derived record holds; empty for any other record."""
        return [self.rescored_from] if self.rescored_from else self.merged

    def fail_without_required(self) -> None:
        """Set the exit status of a run that passed but for required gates without a result."""
        if self.exit_status == 0 and self.absent_required:
            self.exit_status, self.only_required_gates_absent = 1, True

    def warn(self) -> None:
        """Set `warnings`, once everything else is known."""
        self.warnings = []
        if not self.gates and not self.missing:
            self.warnings.append(_NO_GATE)
        if self.deselected:
            warning, advice = (_SHARD, _MERGE) if self.left_to_shards else (_DESELECTED, _ALL)
            self.warnings.append(f"{warning}: {', '.join(self.deselected)}; {advice}")
        if absent := self.absent_required:
            self.warnings.append(f"{_REQUIRED}: {', '.join(absent)}")
        if opinion := self._opinion_warning():
            self.warnings.append(opinion)
        for i in self.interviews:
            cap = i.subject.decoding.get("max_tokens")
            cut = truncation_warning(i.statuses.get(Status.TRUNCATED, 0), sum(i.statuses.values()), cap)
            refused = i.reuse.refused if i.reuse else ""
            unshared = f"no answer was taken from the store (--adaptive-eval-reuse): {refused}" if refused else ""
            sentences = filter(None, [cut, unshared, *(i.interviewer.faults if i.interviewer else ())])
            self.warnings += [f"{i.name or i.nodeid}: {sentence}" for sentence in sentences]

    def _opinion_warning(self) -> str:
        """Return the warning on a promotion that models' opinions alone support, empty for any other run."""
        if not self.promote:
            return ""
        judged = {name for i in self.interviews if i.judge for name in (i.name, i.nodeid)}
        opinions = {name for study in self.studies if study.opinion for name in (study.name, study.nodeid)}
        passed = [gate for gate in self.gates if gate.outcome is Outcome.PASS]
        if any(gate.interview not in judged | opinions for gate in passed):
            return ""
        names = ", ".join(dict.fromkeys(gate.interview for gate in passed))
        by_judge = any(gate.interview in judged for gate in passed)
        return f"{_JUDGED if by_judge else _OPINION} ({names}); {_ADVICE}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a record of this schema, or of schema 1.

        Raises:
            UsageError: The record was written by a newer, incompatible version.
            TypeError: A value has another type; the message names its place.
        """
        version = data.get("schema_version")
        if version == 1 and not isinstance(version, bool):
            from pytest_adaptive_eval.records.schema1 import upgraded

            data = upgraded(data)
        elif version != SCHEMA_VERSION:
            raise UsageError(
                f"the run record has schema_version {version!r}, this version reads 1 and {SCHEMA_VERSION}: upgrade"
            )
        return super().from_json(data)


def recorded_must_pass(interview: InterviewRecord) -> tuple[MustPassAnswer, ...]:
    """Return the answers to the items of a recorded interview that must pass."""
    return must_pass_answers(interview.policy.must_pass, interview.administrations)


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


def merged(records: Sequence[RunRecord], run: str) -> RunRecord:
    """Return one record of several, with their verdicts.

    Evaluations that share a name get the subject's name added, else the start of the run, else its id.
    """
    whole = RunRecord(run, min(record.started for record in records))
    names: set[str] = set()
    for record in records:
        _add(record, whole, names)
    whole.exit_status = max(map(_exit_status, records))
    whole.merged = [record.run for record in records]
    judged = {gate.nodeid for gate in whole.gates}
    deselected = dict.fromkeys(nodeid for record in records for nodeid in record.deselected)
    whole.deselected = [nodeid for nodeid in deselected if nodeid not in judged]
    if whole.deselected:
        whole.shard = ", ".join(dict.fromkeys(record.shard for record in records if record.shard))
    required: dict[str, dict[str, None]] = {}
    for record in records:
        for name, nodeids in record.required.items():
            required.setdefault(name, {}).update(dict.fromkeys(nodeids))
    whole.required = {name: list(nodeids) for name, nodeids in required.items()}
    whole.fail_without_required()
    whole.warn()
    return whole


def _add(record: RunRecord, whole: RunRecord, names: set[str]) -> None:
    """Add a record's evaluations under names of their own, and its gates."""
    marks = (record.started[:16].replace("T", " "), record.run)
    renamed: dict[str, str] = {}
    for evaluation in record.evaluations:
        name = _unique(evaluation.name, (evaluation.tested.name, *marks), names)
        renamed |= {evaluation.name: name, evaluation.nodeid: name}
        whole.add(replace(evaluation, name=name))
    whole.gates += [replace(gate, interview=renamed.get(gate.interview, gate.interview)) for gate in record.gates]
    whole.seconds += record.seconds
    whole.versions |= record.versions


def _exit_status(record: RunRecord) -> int:
    """Return a run's exit status, 0 if it failed only for required gates, which another run may have judged."""
    if record.exit_status == 1 and record.only_required_gates_absent:
        return 0
    return 1 if record.exit_status is None else record.exit_status


def _unique(name: str, marks: Sequence[str], taken: set[str]) -> str:
    """Return the name, with the first mark that makes it unique, and add it to those taken."""
    candidates = [name, *(f"{name} ({mark})" for mark in marks if mark)]
    unique = next((candidate for candidate in candidates if candidate not in taken), candidates[-1])
    taken.add(unique)
    return unique
