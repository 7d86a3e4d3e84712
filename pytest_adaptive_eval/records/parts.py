"""Typed parts of the record of a run; see `records.run_record`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Self

import msgspec

from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.interviewer.interviewer import CategoryRow
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.text import counted

#: Data of users and of plugins, such as decoding settings: kept and shown, and read by nobody here.
Data = dict[str, Any]

_ATOMS = frozenset((type(None), int, bool))


def plain(value: Any) -> Any:
    """Return strict JSON data: no NaN, no lone surrogates, no foreign types."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is dict:
        return {plain(name if type(name) is str else str(name)): plain(entry) for name, entry in value.items()}
    if isinstance(value, str):
        return str(value) if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return _plain_object(value)


def _plain_object(value: Any) -> Any:
    """Return strict JSON data of an object that is none by itself."""
    if isinstance(value, Part) or is_dataclass(value):
        return value.to_json() if hasattr(value, "to_json") else fields_json(value)
    if isinstance(value, Mapping):
        return plain(dict(value))
    return plain(value.tolist() if hasattr(value, "tolist") else str(value))  # numpy scalars and arrays, or anything


def fields_json(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as strict JSON data."""
    return {field.name: plain(getattr(value, field.name)) for field in fields(value)}


class Part(msgspec.Struct):
    """Base of records and their parts: fields are JSON keys. Those in `sparse` are left out where they are empty."""

    sparse: ClassVar[frozenset[str]] = frozenset()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data: dict[str, Any] = {}
        sparse = self.sparse
        for name, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            value = getattr(self, name)
            kind = type(value)  # most are numbers and ASCII texts, for which a call would dominate the time
            if name in sparse and not value and kind not in (int, float):
                continue
            finite = kind in _ATOMS or (kind is float and math.isfinite(value)) or (kind is str and value.isascii())
            data[key] = value if finite else plain(value)
        return data


def converted(kind: type[Any], data: object) -> Any:
    """Return JSON data as its type; a TypeError names the place of a value of another type."""
    try:
        try:
            return msgspec.convert(data, kind)
        except msgspec.ValidationError:  # in the process that made them, numbers may be those of numpy
            return msgspec.convert(plain(data), kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        raise TypeError(f"{path.strip('.`') or 'the record'}: {text}") from None


class Record(Part, kw_only=True):
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


def _keep_unknown(record: Record, data: Mapping[str, Any]) -> None:
    """Move unknown keys of a record's data into `extra`, including nested records' keys."""
    if unknown := data.keys() - _known_keys(type(record)):
        record.extra = {name: data[name] for name in data if name in unknown}
    for name in record.nested:
        key = record.__struct_encode_fields__[record.__struct_fields__.index(name)]
        for entry, entry_data in zip(getattr(record, name), data.get(key, ()), strict=True):
            _keep_unknown(entry, entry_data)


@cache
def _known_keys(kind: type[Record]) -> frozenset[str]:
    return frozenset(kind.__struct_encode_fields__) - {"extra"}


class LikelihoodRecord(Part):
    """Log-likelihoods in nats that an answer follows from, see `items.likelihood`; None for minus infinity.

    Args:
        scores: Normalised ones of choices.
        unconditional: Log-likelihoods of the choices without the prompt.
        bytes, bits_per_byte: Of a text that is scored by its own likelihood.
    """

    sparse = frozenset({"scores", "unconditional", "bytes", "bits_per_byte"})
    normalization: str
    log_likelihoods: list[float | None]
    scores: list[float | None] = []
    unconditional: list[float | None] = []
    bytes: int | None = None
    bits_per_byte: float | None = None


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


class PresentationRecord(Part):
    """Form in which the items were asked, see `items.presentation.Presentation`.

    Args:
        examples: Prompt, choices and answer of each.
        likelihood: Settings of a scoring by likelihoods; None for written answers.
    """

    sparse = frozenset({"system"})
    template: str
    examples: list[tuple[str, list[str], str]]
    likelihood: dict[str, str] | None
    delimiter: str
    candidates: str
    system: str = ""


class BankRecord(Part):
    """Bank of an interview.

    Args:
        path: Where the run found it; empty for a generated task.
        trusted: False where its calibration report advises against it.
        calibration_subject: Whether the tested subject calibrated it.
        task: Of a generated task: levels, queries, seed, and the options of its family.
        category, formats, presentation: The part of the bank that was asked, and how.
        parts: Names of the ability's components.
    """

    sparse = frozenset({"task", "category", "formats", "parts", "presentation"})
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
    formats: list[str] = []
    parts: list[str] = []
    presentation: PresentationRecord | None = None

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
        must_pass: Ids of the items where one wrong answer fails every gate.
        horizon: Number of items at which bets aimed, see `inference.design.DesignLog`.
    """

    sparse = frozenset({"share", "settings", "predictor", "asked_first", "must_pass", "horizon"})
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
    horizon: int | None = None

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
        half: Level at which accuracy crosses one half; the nearest level asked where it crosses at none.
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

    @property
    def crosses_half(self) -> bool:
        """True if accuracy lies above one half at a level asked, and not above it at another."""
        return len({accuracy > 0.5 for accuracy in self.accuracy if accuracy is not None}) == 2


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
    """Known costs of an evaluation.

    Args:
        relative: FLOPs of all models relative to asking the subject the whole bank.
        money, currency: Price of the subject's answers.
        total, roles, members: Of all replies of an evaluation of several models, of those by role, and by model.
        loads: How often each model was loaded.
    """

    sparse = frozenset(
        {"subject", "interviewer", "judge", "relative", "money", "currency", "total", "roles", "members", "loads"}
    )
    subject: Spent | None = None
    interviewer: Spent | None = None
    judge: Spent | None = None
    relative: float | None = None
    money: float | None = None
    currency: str = ""
    total: Spent | None = None
    roles: dict[str, Spent] = {}
    members: dict[str, Spent] = {}
    loads: dict[str, int] = {}


class AgentRecord(Spent):
    """Model, or code, that chose questions, with its settings and its faults.

    Args:
        recalled: Decisions of an interrupted run.
        images_not_shown: Pictures of candidates that it did not see.
        fallbacks, category_fallbacks: Choices by code, and questions that it sorted into no category, by reason.
        problem: What was wrong with its first unusable reply.
    """

    sparse = frozenset(Spent.__struct_fields__) | {
        "model", "checkpoint", "mode", "memory", "difficulty", "images", "sort_candidates", "recalled", "asked_again",
        "images_not_shown", "fallbacks", "category_fallbacks", "problem",
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
    problem: str = ""


class InterviewerRecord(Record):
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
        if faults and agent.problem:
            faults[0] += f" (at first: {agent.problem})"
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

    sparse = frozenset({"unanswered", "decided_after"})
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
    decided_after: int | None = None
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
