"""The one serialisable account of a run.

Reports, history and exports read a `RunRecord` and nothing else.  It is plain
JSON: every float is finite or null, every text is valid Unicode without lone
surrogates, and keys that this version does not know are kept as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from pytest_adaptive_eval.errors import UsageError
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.design import GATE_FLOOR, DesignLog
from pytest_adaptive_eval.inference.noise import DecodingNoise, item_score

__all__ = [
    "ONLY_REQUIRED",
    "SCHEMA_VERSION",
    "Administration",
    "GateRecord",
    "InterviewRecord",
    "RunRecord",
    "StudyRecord",
    "by_item",
    "noise_of",
    "plain",
]

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
#: Said where other gates were found than those that judged.
_DESELECTED = "gates that were deselected did not judge this run"
_ALL = "run them too, without -k, -m, --lf or --deselect"
#: The same of one shard of several.
_SHARD = "gates of other shards did not judge this run"
_MERGE = "merge the records of all shards with adaptive-eval merge, and promote on the merged record"
_REQUIRED = "required gates gave no result, so that nothing is promoted"
#: Key of a record's further fields: the run failed for nothing but required gates without a result.
ONLY_REQUIRED = "only_required_gates_absent"
#: Said of a run that was to judge nothing.
_NO_GATE = "no gate: nothing was judged"
#: Said where nothing but peers' opinion promotes.
_OPINION = "only models' opinion of each other speaks for this promotion: all gates that passed are on peer assessments"
_ADVICE = "no answer was checked against a truth, so add a gate on a bank or a task"
#: Fields of a category without a score.
_NO_FIGURES: dict[str, Any] = {"accuracy": None, "standard_error": None}
_ATOMS = frozenset((type(None), int, bool))


def plain(value: Any) -> Any:
    """`value` as strict JSON data: no NaN, no lone surrogates, no foreign types."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is str:
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is list or kind is tuple:
        return [plain(v) for v in value]
    if isinstance(value, _Json):
        known: dict[str, Any] = {}
        for name in value.__dataclass_fields__:
            part = getattr(value, name)
            kind = part.__class__  # most are numbers and plain texts: a call for each would cost more than all else
            if not (kind in _ATOMS or (kind is float and math.isfinite(part)) or (kind is str and part.isascii())):
                part = plain(part)
            known[name] = part
        extra = known.pop("extra")
        return {**known, **extra} if extra else known
    if kind is dict or isinstance(value, Mapping):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist())
    return plain(float(value)) if isinstance(value, float) else plain(str(value))


class _Json:
    """Shared reading and writing: known fields by name, unknown ones kept in `extra`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    extra: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read back what `to_json` wrote, by this or a later version."""
        known = set(cls.__dataclass_fields__) - {"extra"}
        extra = {k: v for k, v in data.items() if k not in known}
        return cls(**{**{k: v for k, v in data.items() if k in known}, "extra": extra})


@dataclass(slots=True)
class Administration(_Json):
    """One question asked.

    Parameters
    ----------
    position : int
        From 1.
    item, item_hash : str
    format : str
    sample : int
        Index of the answer when an item is asked repeatedly, from 0; it belongs to the seed of its decoding.
    propensity : float or None
        Chance of the item at its draw; None for a deterministic selector.
    predicted : float or None
        Predicted score before asking.
    rest, variance, down, up : float or None
        See `pytest_adaptive_eval.inference.design.Proposal`.
    theta_before, theta_after : list of float or None
        Ability in logits; None on an uncalibrated bank.
    status : str
    score : float or None
    text : str
        The answer; empty when the test did not show it.
    detail : str
        Why there is no score.
    reason : str
        Why the item was chosen.
    difficulty : float or None
        Ability in logits at which half the answers beyond guessing are right, on a calibrated bank of one dimension.
    category : list of str
    seconds : float or None
    resumed : bool
        The answer was taken from the journal of this same run.
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


def by_item(administrations: list[Administration], samples: int) -> list[Administration]:
    """Each item's first administration, with the mean score of its samples; none where one of them has none."""
    if all(a.sample == 0 for a in administrations):
        return administrations
    groups: dict[str, list[Administration]] = {}
    for a in administrations:
        if a.sample < samples:
            groups.setdefault(a.item, []).append(a)
    found = []
    for first, *rest in groups.values():
        scores = [first.score, *(a.score for a in rest), *[None] * (samples - 1 - len(rest))]
        found.append(replace(first, score=item_score(scores)))
    return found


def noise_of(administrations: list[Administration], samples: int, size: int) -> DecodingNoise:
    """How far the answers to an item vary, by samples and repeats; `size` is the bank's."""
    answers: dict[str, list[float]] = {}
    for a in administrations:
        if a.score is not None:
            answers.setdefault(a.item, []).append(a.score)
    return DecodingNoise.of(answers.values(), [a.score for a in by_item(administrations, samples)], samples, size)


@dataclass(slots=True)
class InterviewRecord(_Json):
    """One subject and one bank.  Without a score it has no figures: they are None, in categories too.

    Parameters
    ----------
    name, nodeid : str
    subject : dict
        `SubjectIdentity.to_json`.
    bank : dict
        name, path (as the run found it), content_hash, scale, size, calibrated, model, trusted, calibration_subject,
        and for a generated task its levels, queries and seed.
    policy : dict
        `Policy.to_json`, with its seed.
    asked, scored, size : int
    statuses : dict
        Administrations by status.
    stop : str
        Name of the `StopReason`; empty if the interview was cut off.
    stop_sentence : str
    theta, standard_error : list of float or None
    conditions : list of dict
        `Condition.to_json` of the gates that were known before the first question.
    accuracy : dict or None
        The `Interval` by the draws; gates decide on it.
    accuracy_conformal : dict or None
        The bank's projection with an interval from replayed interviews; shown only.
    accuracy_error : float or None
        Standard error of the accuracy by the draws, for comparing runs; gates never use it.
    accuracy_model : dict or None
        The bank's own projection; shown only.
    samples : int
        Answers that an item's score is the mean of; further ones to an item are repeats, which count for
        `decoding_noise` alone.
    decoding_noise : dict or None
        How far answers to an item vary, where items were asked repeatedly: see `noise.DecodingNoise`.
    categories : list of dict
        `CategoryResult.to_json` of the bank's broadest categories.
    levels : dict or None
        Of a climb: queries a level, cap, questions asked and accuracy by level, last_level, and, where all
        questions of a level were asked, the `Interval` of the sum of the accuracies as auc and of the level at which
        accuracy crosses one half as half.
    interviewer : dict or None
        What a selector that remembers says of itself, see `selection.Attentive.account`.
    costs : dict
        Calls, tokens, seconds and estimated FLOPs, by ``subject`` and ``interviewer``, as far as known, and
        ``relative``: all of it over what asking the subject the whole bank would cost, in FLOPs.
    seconds : float
    error : str
        Why the interview is void.
    notes : list of str
    administrations : list of Administration
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
        """Drop figures that rest on no score: they would be the prior's, and earlier versions recorded them."""
        if self.scored == 0:
            self.theta = self.standard_error = None
            self.accuracy = self.accuracy_model = self.accuracy_conformal = self.accuracy_error = None
            self.levels = None
        if isinstance(self.categories, list):  # a damaged record is refused later, by what it holds
            self.categories = [
                {**row, **_NO_FIGURES} if isinstance(row, Mapping) and row.get("scored") == 0 else row
                for row in self.categories
            ]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """See `_Json.from_json`."""
        asked = [Administration.from_json(a) for a in data.get("administrations", [])]
        return super(InterviewRecord, cls).from_json({**data, "administrations": asked})

    def draws(self, place: Mapping[str, int] | None = None) -> DesignLog:
        """The draws as inference takes them; without propensities where the policy left items no sure chance.

        Parameters
        ----------
        place : mapping, optional
            Index of each item in its bank; their order of asking when omitted.
        """
        asked = self.by_item()
        columns: dict[str, Any] = {
            name: np.array([np.nan if (v := getattr(a, attribute)) is None else v for a in asked], dtype=np.float64)
            for name, attribute in _COLUMNS.items()
        }
        floor = self.policy.get("floor")
        if isinstance(floor, int | float) and floor < GATE_FLOOR and self.policy.get("selector") != "random":
            columns["propensities"] = np.full(len(asked), np.nan)
        items = range(len(asked)) if place is None else [place[a.item] for a in asked]
        noise = (self.decoding_noise or {}).get("allowed", 0.0)
        return DesignLog(np.array(items, dtype=np.int64), **columns, size=self.size, noise=noise)

    def by_item(self) -> list[Administration]:
        """See `by_item`."""
        return by_item(self.administrations, self.samples)


@dataclass(slots=True)
class StudyRecord(_Json):
    """An evaluation that is no interview of one subject, such as a panel of models that judge each other.

    Parameters
    ----------
    name, nodeid : str
    kind : str
        ``peers``.
    candidate : str
        The subject that gates are about when they name no other.
    members : list of dict
        `SubjectIdentity.to_json` of all subjects.
    metrics : dict
        By quantity, the leading one first, a dict a subject: ``subject``, ``estimate``, ``low``, ``high``,
        ``confidence``, ``error`` and ``rank``, as far as they are known.
    asked, size : int
        Units that counted, and those that were held.
    unit : str
        Such as ``rounds``.
    account : dict
        Everything that was found, by kind; of ``peers`` see `studies.peers.result.Assessment.to_json`,
        with ``truth`` besides, where members have accuracies.
    costs : dict
        ``total`` calls, tokens, seconds and FLOPs, and how often each model was loaded as ``loads``.
    seconds : float
    error : str
        Why it is void.
    notes : list of str
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

    @property
    def judged_by_models(self) -> bool:
        """Whether its scores are judgments by models, which no coded truth has checked."""
        return "judgments" in self.account


@dataclass(slots=True)
class GateRecord(_Json):
    """One gate's verdict.

    Parameters
    ----------
    name, nodeid : str
    interview : str
        Name of the evaluation judged; empty if the gate had none.
    verdict : dict
        `Verdict.to_json`.
    file : str
    line : int
        Of the gate, from 1, for annotations.
    """

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
        told = self.verdict.get("notice") or self.verdict.get("on_inconclusive", "fail") != "fail"
        return self.verdict.get("outcome") == Outcome.INCONCLUSIVE and bool(told)

    @property
    def holds(self) -> bool:
        """Whether the gate passed or was let through."""
        return self.verdict.get("outcome") == Outcome.PASS or self.let_through


@dataclass(slots=True)
class RunRecord(_Json):
    """Everything one run found.

    Parameters
    ----------
    run : str
        Unique id.
    started : str
        ISO 8601, UTC.
    seconds : float
    versions : dict
        Of python, pytest, this package, and what the subject used.
    exit_status : int or None
        Of the run as far as known when written.
    interviews, studies, gates : list
    warnings : list of str
        What whoever promotes must know.
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
    def required(self) -> dict[str, list[str]]:
        """Node ids of the gates that the settings require, by their names there; none where no gate was found."""
        given = self.extra.get("required")
        named = given.items() if isinstance(given, Mapping) else ()
        return {str(name): [*map(str, nodeids)] if isinstance(nodeids, list) else [] for name, nodeids in named}

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
        if left_out := self.extra.get("deselected"):
            what, todo = (_SHARD, _MERGE) if self.left_to_shards else (_DESELECTED, _ALL)
            self.warnings.append(f"{what}: {', '.join(map(str, left_out))}; {todo}")
        if absent := self.absent_required:
            self.warnings.append(f"{_REQUIRED}: {', '.join(absent)}")
        if not self.promote:
            return
        opinions = {name for study in self.studies if study.judged_by_models for name in (study.name, study.nodeid)}
        passed = [gate for gate in self.gates if gate.verdict.get("outcome") == Outcome.PASS]
        if all(gate.interview in opinions for gate in passed):
            names = ", ".join(dict.fromkeys(gate.interview for gate in passed))
            self.warnings.append(f"{_OPINION} ({names}); {_ADVICE}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a record.

        Raises
        ------
        UsageError
            The record was written by a newer, incompatible version.
        """
        version = data.get("schema_version")
        if version != SCHEMA_VERSION:
            raise UsageError(
                f"the run record has schema_version {version!r}, this version reads {SCHEMA_VERSION}: upgrade"
            )
        more = {
            "interviews": [InterviewRecord.from_json(i) for i in data.get("interviews", [])],
            "studies": [StudyRecord.from_json(s) for s in data.get("studies", [])],
            "gates": [GateRecord.from_json(g) for g in data.get("gates", [])],
        }
        return super(RunRecord, cls).from_json({**data, **more})
