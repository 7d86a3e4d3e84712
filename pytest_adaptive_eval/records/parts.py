"""Typed parts of the record of a run; see `records.run_record`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import msgspec

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.interviewer.interviewer import CategoryRow
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models.base import Usage
from pytest_adaptive_eval.text import counted

_EXTRA = "*extra"  #: Key of `Record.extra` while a record becomes JSON data, in which its entries stand beside others.
#: Data of users and of plugins, such as decoding settings: kept and shown, and read by nobody here.
Data = dict[str, Any]

_ATOMS = frozenset((type(None), bool, int))  #: Types whose values are JSON as they are.


def plain(value: Any) -> Any:
    """Return strict JSON data of a record, a dataclass, or anything within one: no NaN, and no lone surrogates."""
    return _clean(msgspec.to_builtins(value, enc_hook=_json_value, str_keys=True))


def _json_value(value: Any) -> Any:
    """Return the JSON value of an object of a foreign type, such as a number or an array of numpy."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, str | float):  # a subclass, such as a text of a template engine
        if isinstance(value, str):
            return str(value)
        return float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _clean(value: Any) -> Any:
    """Return JSON data with None in place of NaN and infinities, and with texts that can be written."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, dict):
        # a large record has a million names and values, most of which need no call
        cleaned = {}
        for name, entry in value.items():
            if name.isascii():
                clean_name = name
            else:
                clean_name = _clean(name)
            if type(entry) in _ATOMS:
                cleaned[clean_name] = entry
            else:
                cleaned[clean_name] = _clean(entry)
        unknown = cleaned.pop(_EXTRA, {})
        return {**cleaned, **unknown}
    if isinstance(value, list | tuple):
        return [_clean(entry) for entry in value]
    return value


class Part(msgspec.Struct):
    """Base of records and their parts: fields are JSON keys."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the data of `to_json`; a TypeError names the place of a value of another type."""
        record: Self = converted(cls, data)
        return record


def converted(kind: type[Any], data: object) -> Any:
    """Return JSON data as its type; a TypeError names the place of a value of another type."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `$")
        raise TypeError(f"{path.strip('.`') or 'the record'}: {text}") from None


@functools.cache
def _json_names(kind: type[Part]) -> dict[str, str]:
    """Return the JSON keys of a record by field."""
    return dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))


class Record(Part, kw_only=True):
    """Base of records: keys of a later version, which this one does not know, stay in `extra`."""

    #: Records within this one, by field.
    nested: ClassVar[tuple[str, ...]] = ()
    extra: Data = msgspec.field(name=_EXTRA, default_factory=dict)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read the data of `to_json`; a TypeError names the place of a value of another type."""
        record = super().from_json(data)
        record.keep_unknown(data)
        return record

    def keep_unknown(self, data: Mapping[str, Any]) -> None:
        """Move keys of the record's data that it does not know into `extra`, in nested records too."""
        names = _json_names(type(self))
        self.extra = {key: data[key] for key in data.keys() - names.values()}
        for field in self.nested:
            for entry, entry_data in zip(getattr(self, field), data.get(names[field], ()), strict=True):
                entry.keep_unknown(entry_data)


class PresentationRecord(Part):
    """Form in which the items were asked, see `items.presentation.Presentation`.

    Args:
        examples: Prompt, choices and answer of each.
        likelihood: Settings of a scoring by likelihoods; None for written answers.
    """

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

    def __bool__(self) -> bool:
        """Whether there is a bank; evaluations that call their models themselves have none."""
        return bool(self.name or self.content_hash)

    @classmethod
    def of(cls, bank: ItemBank, *, path: str, calibration_subject: bool) -> Self:
        """Create from a bank."""
        facts = ("name", "content_hash", "scale", "calibrated", "model")
        asked = ("task", "category", "formats", "parts", "presentation")
        data = {
            **{name: getattr(bank, name) for name in facts},
            **{name: bank.report[name] for name in asked if name in bank.report},
            "path": path,
            "size": len(bank),
            "trusted": bank.report.get("trusted") is not False,
            "calibration_subject": calibration_subject,
        }
        return cls.from_json(plain(data))


class PolicyRecord(Part):
    """Settings that determine the items, see `cat.policy.Policy`, with the seed.

    Args:
        settings: Of a selector that remembers.
        predictor: Hash of the bank's predictor, where it determines draws or estimates.
        asked_first: Ids of the items that were asked whatever the draws.
        must_pass: Ids of the items where one wrong answer fails every gate.
        horizon: Number of items at which bets aimed, see `inference.design.DesignLog`.
        earlier: The same of earlier runs that this one goes on from, ascending.
    """

    selector: str = ""
    floor: float | None = None
    budget: int | str | None = None
    standard_error: float | None = None
    batch: int | None = None
    estimator: str = ""
    stop: str = ""
    settings: Data = {}
    predictor: str = ""
    seed: int | None = None
    stream: str = ""
    asked_first: list[str] = []
    must_pass: list[str] = []
    horizon: int | None = None
    earlier: list[int] = []

    def draws_alike(self, other: PolicyRecord) -> bool:
        """Return whether the draws of an interview are the first ones of another, or the other way round.

        It holds for selectors that do not use the budget.
        """
        policy, others = (msgspec.structs.replace(p, budget=None, horizon=None, earlier=[]) for p in (self, other))
        return policy == others


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


LOGGED_CURRENCY = "USD"  #: Currency of the costs that logs of harnesses state.


class Price(Part):
    """Money that calls cost, in a currency such as ``$``.

    Args:
        whole: About what calls for the whole bank would cost; None if unknown.
    """

    money: float
    currency: str
    whole: float | None = None


class Costs(Part):
    """Known costs of an evaluation.

    Args:
        relative: FLOPs of all models relative to asking the subject the whole bank.
        prices: What the calls of a role cost, ``subject``, ``interviewer`` or ``judge``.
        total, roles, members: Of all replies of an evaluation of several models, of those by role, and by model.
        loads: How often each model was loaded.
    """

    subject: Usage | None = None
    interviewer: Usage | None = None
    judge: Usage | None = None
    relative: float | None = None
    prices: dict[str, Price] = {}
    total: Usage | None = None
    roles: dict[str, Usage] = {}
    members: dict[str, Usage] = {}
    loads: dict[str, int] = {}


class AgentRecord(Part):
    """Model, or code, that chose questions, with its settings and its faults.

    Args:
        recalled: Decisions of an interrupted run.
        images_not_shown: Pictures of candidates that it did not see.
        fallbacks, category_fallbacks: Choices by code, and questions that it sorted into no category, by reason.
        problem: What was wrong with its first unusable reply.
    """

    name: str = ""
    model: str = ""
    checkpoint: str = ""
    mode: str = ""
    memory: bool | str | None = None
    difficulty: bool | str | None = None
    images: bool | None = None
    sort_candidates: bool | None = None
    usage: Usage = Usage()
    recalled: int = 0
    asked_again: int = 0
    images_not_shown: int = 0
    fallbacks: dict[str, int] = {}
    category_fallbacks: dict[str, int] = {}
    problem: str = ""


class InterviewerRecord(Part):
    """Account of a selector that remembers, see `cat.selection.SelectorSession.account`.

    Args:
        interviewer: None where items are drawn in the window of chances.
        embedding_flops: Of an encoder in this run; 0 of embeddings from the cache.
        semantic_distance, difficulty_distance: Mean distances of the questions, by subject.
        memory: Rows of the memory table, by subject.
    """

    interviewer: AgentRecord | None = None
    embeddings: str = ""
    embedding_flops: float = 0.0
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
        """Numbers of choices, and of sorted questions, that code made in place of the interviewer."""
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
    if kinds:
        return f" ({kinds})"
    return ""


class BaselineSource(Part):
    """Origin of a baseline, and the items on which the candidate differs from it.

    Args:
        path, subject, run, hash: File, subject in it, run, and a hash of the answers; empty for one of the same run.
        common: Number of items with a score of both.
        lost, gained: Ids of the items with a lower and with a higher score of the candidate.
    """

    path: str = ""
    subject: str = ""
    run: str = ""
    hash: str = ""
    common: int = 0
    lost: list[str] = []
    gained: list[str] = []


class PredictionRecord(Part):
    """Earlier run whose answers predicted an interview's answers.

    Args:
        subject, run, started, path: Subject, run, time of recording in ISO 8601, and file; empty if unknown.
        hash: Of the pairs of item and score, by which the draws are seeded.
        answers: Number of items of the bank with a score.
        by_id: Whether items were joined by their ids, since a side has no hashes of them.
        unused: Why the answers predict nothing, from the first question after it was found out; empty if they do.
    """

    subject: str = ""
    run: str = ""
    started: str = ""
    path: str = ""
    hash: str = ""
    answers: int = 0
    by_id: bool = False
    unused: str = ""

    @property
    def label(self) -> str:
        """Subject and date, such as ``main of 2026-05-12``."""
        if self.started:
            return f"{self.subject} of {self.started[:10]}"
        return self.subject

    @property
    def sentence(self) -> str:
        """Sentence on the predicting run, with the hash of its answers."""
        joined = ", joined by id" if self.by_id else ""
        if self.unused:
            return f"{self.label} predicts nothing: {self.unused}"
        return f"predicted by {self.label}: {counted(self.answers, 'answer')}{joined} (hash {self.hash})"


class ReuseRecord(Part):
    """Answers of other runs that an interview took from a store, or why it took none."""

    store: str
    answers: int = 0
    refused: str = ""


class RankRecord(Part):
    """Mean of a rank's distribution, and its interval."""

    mean: float
    best: int
    worst: int


#: States of a watched evaluation, the one that matters most first.
DRIFT_STATES = ALARM, UNKNOWN, NO_ALARM = "alarm", "unknown", "none"


class DriftRecord(Part):
    """Comparison of an evaluation with earlier runs.

    Args:
        change: How its leading quantity changed since the last run of the series; empty without one.
        action: What the run does on an alarm, of `inputs.DRIFT_ACTIONS`; empty where it is not watched.
        state: Whether an alarm lasts; unknown without an earlier run of a series, and empty where it is not watched.
        alarms: A sentence for each series whose alarm lasts.
    """

    change: str = ""
    action: str = ""
    state: str = ""
    alarms: list[str] = []

    @property
    def fails(self) -> bool:
        """Whether its alarm fails the run."""
        return self.state == ALARM and self.action == "fail"

    @property
    def news(self) -> str:
        """The change since the last run, or that a watched evaluation has none; else empty."""
        if self.state == UNKNOWN:
            return "unknown whether a level fell: no earlier run to compare with"
        return self.change


class QuantityRecord(Part):
    """One quantity of one subject, or of a part of the candidate's result such as a node.

    Args:
        error: Standard error.
        sampling_error: Standard error over new samples of items and answers; None where `error` is that.
        guess: Value that guessing alone has.
    """

    subject: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    method: str = ""
    error: float | None = None
    sampling_error: float | None = None
    rank: RankRecord | None = None
    guess: float | None = None

    @property
    def interval(self) -> Interval | None:
        """The estimate with its bounds; None without all of them."""
        if self.estimate is None or self.low is None or self.high is None or self.confidence is None:
            return None
        return Interval(self.estimate, self.low, self.high, self.confidence, self.method)


@dataclass(frozen=True, slots=True)
class Pair:
    """Accuracy of one subject less that of another, the one with the higher estimate first.

    Args:
        evaluation: Name of the evaluation's test, with the seed where there are several.
        shared: Items that both were asked in one order; 0 if the intervals of the two were subtracted.
        refused: Reason why the two do not compare; the interval is then None.
    """

    evaluation: str
    subjects: tuple[str, str]
    interval: Interval | None
    shared: int = 0
    refused: str = ""

    @property
    def decided(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {**asdict(self), "decided": self.decided}
