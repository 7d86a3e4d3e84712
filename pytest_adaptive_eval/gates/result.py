"""Results that gates judge: the shared part of interviews and studies, and each of them.

A study evaluates several subjects at once. Gates require a value of one subject, or its rank among the others.
`Measured` is a joint normal distribution: its means and its covariance give bounds, and probabilities of ranks by
seeded draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import model_based
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.errors import BaselineError, ConfigError, EstimationError
from pytest_adaptive_eval.gates.condition import (
    Condition,
    decide_by_bounds,
    decide_by_probability,
    find_metric,
    with_note,
)
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer, must_pass_sentence, with_must_pass
from pytest_adaptive_eval.gates.verdict import NoVerdict, Outcome, Verdict
from pytest_adaptive_eval.inference.betting import anytime_valid
from pytest_adaptive_eval.inference.conformal import Conformal, conformal_scale, uniform_half_width
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.inference.sampling import (
    mean_of_draws,
    merge_missing_bounds,
    uniform_block,
    with_missing_bounded,
)
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import unanswered_sentence
from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb, by_level, levelled
from pytest_adaptive_eval.ladder.result import Ladder
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.types import Array

UNREADABLE_SHARE = 0.5  #: Largest share of answers without the form of an answer; above it, a gate is an ERROR.
#: Fewest uniform draws on which a rank among chosen items may rest: of fewer, no scores refute a projection near 1.
FEWEST_CHECKED = 5
#: Stops after which an interview has no usable result; None is an interview that did not end.
_VOID_STOPS = (None, StopReason.ERRORS, StopReason.UNASKED, StopReason.GIVEN_UP, StopReason.INTERRUPTED)

OnInconclusive = Literal["fail", "warn", "pass"]


@dataclass(frozen=True, slots=True, repr=False)
class BoundMetric(NoVerdict):
    """A metric bound to its result; each method returns a `Verdict`.

    The methods raise `ConfigError` if a value is out of range or the interview's policy admits no valid verdict.
    `confidence` is that of each one-sided decision. `on_inconclusive` says what an undecided gate does: fail, pass, or
    pass with a warning. `subject` is a subject of a study, the candidate when omitted.
    """

    name: str
    result: Result

    def at_least(
        self,
        target: float | str,
        *,
        subject: str = "",
        confidence: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
        method: Literal["draws", "likelihood-ratio"] = "draws",
    ) -> Verdict:
        """Judge whether the metric reaches `target`: PASS if it surely does, FAIL if it surely does not.

        Args:
            target: In the metric's unit, such as an accuracy in [0, 1] or an ability in logits on the bank's scale. A
                share may be a text such as ``"60%"``.
            method: The second trusts the bank, and is for abilities alone.
        """
        return self._verdict(
            "at_least",
            value=target,
            subject=subject,
            confidence=confidence,
            on_inconclusive=on_inconclusive,
            method=method,
        )

    def not_worse_than(
        self,
        baseline: str,
        *,
        margin: float | str,
        subject: str = "",
        confidence: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
    ) -> Verdict:
        """Judge the loss against a baseline: PASS if it is surely below `margin`, FAIL if it surely is not.

        Args:
            baseline: Another evaluation of the run, a file of recorded answers or of a run, or ``"baseline"`` for the
                file of ``--adaptive-eval-baseline``.
            margin: As a share of the bank or of the energy, in (0, 1) or such as ``"2%"``; of auc in levels, of score
                in points.
        """
        return self._verdict(
            "not_worse_than",
            value=margin,
            name=str(baseline),
            subject=subject,
            confidence=confidence,
            on_inconclusive=on_inconclusive,
        )

    def rank_within(
        self, k: int, *, subject: str = "", probability: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """Judge the rank among the reference subjects, or among the subjects of a study.

        PASS if the subject is among the first `k` with this probability, FAIL if it is not, with the same probability.
        """
        return self._verdict(
            "rank_within", value=k, subject=subject, probability=probability, on_inconclusive=on_inconclusive
        )

    def above(
        self, name: str, *, subject: str = "", probability: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """Judge the comparison with another subject: PASS if the value is higher with this probability."""
        return self._verdict(
            "above", name=str(name), subject=subject, probability=probability, on_inconclusive=on_inconclusive
        )

    def _verdict(self, kind: str, **settings: Any) -> Verdict:
        for name in ("confidence", "probability"):  # a whole number is a float here; the check refuses anything else
            if isinstance(number := settings.get(name), int) and not isinstance(number, bool):
                settings[name] = float(number)
        return self.result.verdict(Condition(self.name, kind, **settings))

    def __getitem__(self, component: str) -> BoundMetric:
        """Return a component, such as ``ability["cross"]``, on a bank that is administered in formats."""
        find_metric(self.name).component(component)
        return BoundMetric(f"{self.name}.{component}", self.result)

    def __repr__(self) -> str:
        return f"{self.name} of {self.result.name}"


class Result(NoVerdict):
    """Result of an evaluation, whose attributes are the metrics that it measures.

    Subclasses are dataclasses with these fields and their own.

    Attributes:
        name: Name of the evaluation.
        error: Reason why the evaluation is void; empty otherwise.
        notes: Shown with every verdict, such as an untrusted bank.
        family: Conditions that FAIL verdicts are corrected for, including those of other evaluations.
        on_verdict: Called with each requested verdict; returns the verdict to use.
    """

    __slots__ = ()
    name: str
    error: str
    notes: tuple[str, ...]
    family: int
    on_verdict: Callable[[Verdict], Verdict] | None

    def __getattr__(self, name: str) -> BoundMetric:
        """Return a metric of the result, such as ``accuracy``."""
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._measures(name):
            measured = ", ".join(metric for metric in metric_names() if self._measures(metric))
            raise AttributeError(f"{self!r} has no {name!r}; use {measured}")
        return BoundMetric(name, self)

    def _measures(self, metric: str) -> bool:
        raise NotImplementedError(metric)

    def judge(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition.

        Raises:
            ConfigError: The condition does not go with the evaluation.
        """
        raise NotImplementedError(condition)

    def verdict(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition after `on_verdict`, which may change it; raises as `judge`."""
        verdict = self.judge(condition)
        return self.on_verdict(verdict) if self.on_verdict else verdict

    def _error_verdict(self, condition: Condition, quantity: str, asked: int, size: int, unit: str) -> Verdict:
        """Return a verdict ERROR, in which a judge replaces the outcome and adds the interval."""
        return Verdict(
            Outcome.ERROR,
            quantity,
            condition.requirement,
            None,
            condition.probability if condition.by_rank else condition.confidence,
            asked,
            size,
            self.notes,
            condition.on_inconclusive,
            condition=condition.to_json(),
            unit=unit,
        )


def _metric_property(name: str) -> property:
    """Return a property that is listed on the class; a result has all other metrics as attributes too."""
    return property(lambda result: BoundMetric(name, result), doc=f"Metric of ``gates/metrics/{name}.py``.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SessionResult(Result):
    """Result of an interview; see `Result` for the parameters that studies share.

    Args:
        theta: Estimated ability, length D, in logits; None on an uncalibrated bank. In parts, by
            `claims.weighted_ability.weighted_ability`.
        statuses: Number of administrations by `Status`, which every verdict names.
        climb: Policy by which the levels of a task were administered, if they were.
        sequential: True if gates use tests that hold at any moment, since the interview may have ended when they
            decided.
        invalid: Reason why the draws decide nothing; empty if they do.
        projected: The bank's projection of the accuracy and its standard error, see `claims.projection.project`; shown,
            never decided on.
        checked: Number of uniform draws that checked the projection, see `Session`; all are, and 0 is stated, where the
            draws decide.
        own: Places, from and before which, of the uniform draws that give the estimate of a subject that is unlike the
            bank's population; None for any other.
        policy: `Policy.key` if the length did not depend on the answers, so that the bank's table of replayed
            interviews applies; else empty.
        subject: ``name`` of the subject, and the hash ``decoding`` that a comparison must share; empty if unknown.
        chance: Accuracy of guessing, if every item has choices or few labels are all that is expected: no gate passes
            on an accuracy that is not distinguishable from it.
        must_pass: Answers to items that must pass: one wrong answer fails every gate.
    """

    name: str
    bank: ItemBank
    log: DesignLog
    theta: list[float] | None
    standard_error: list[float] | None
    stop: StopReason | None
    statuses: Mapping[str, int]
    climb: Climb | AdaptiveClimb | None = None
    sequential: bool = False
    invalid: str = ""
    projected: tuple[float, float] | None = None
    checked: int = 0
    own: tuple[int, int] | None = None
    policy: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()
    planned: tuple[Condition, ...] = ()
    family: int = 0
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    subject: Mapping[str, str] = field(default_factory=dict)
    chance: float | None = None
    must_pass: tuple[MustPassAnswer, ...] = ()
    on_verdict: Callable[[Verdict], Verdict] | None = None

    accuracy = _metric_property("accuracy")
    ability = _metric_property("ability")
    gain = _metric_property("gain")
    auc = _metric_property("auc")
    last_level = _metric_property("last_level")

    @classmethod
    def of(
        cls, name: str, session: Session, *, statuses: Mapping[str, int], noise: float | None = None, **more: Any
    ) -> SessionResult:
        """Create from a session's first subject, with the measured decoding noise of its log."""
        calibrated, ladder_policy = session.bank.calibrated, session.policy.levelled
        log = session.log() if noise is None else replace(session.log(), noise=noise)
        estimate = session.estimate
        theta, standard_error = estimate.theta[0], estimate.standard_error[0]
        if session.bank.parts and len(log.draws) > 1 and not session.policy.design_based:
            weighted = weighted_ability(session.bank, log.with_missing_as(0.5))
            theta, standard_error = weighted.theta, weighted.standard_error
        strays, own = session.refutation(), session.own_blocks()[0]
        projected = None
        if calibrated and len(log):
            accuracy, error = session.projection()
            projected = float(accuracy[0]), float(error[0])
        return cls(
            name=name,
            bank=session.bank,
            log=log,
            theta=theta.tolist() if calibrated else None,
            standard_error=standard_error.tolist() if calibrated else None,
            stop=session.stop[0],
            statuses=dict(statuses),
            climb=ladder_policy if isinstance(ladder_policy, Climb | AdaptiveClimb) else None,
            sequential=session.sequential,
            invalid=session.policy.design_based,
            projected=projected,
            checked=max(0, min(session.block[1], len(log)) - session.block[0]),
            own=own,
            policy="" if session.adapts_length or len(session.take_all) or own else session.policy.key(session.bank),
            **{**more, "notes": (*more.get("notes", ()), *([strays] if strays else []))},
        )

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {len(self.bank)} items>"

    def _repr_html_(self) -> str:
        facts = {"evaluation": self.name, "subject": self.subject.get("name", "")}
        facts["asked"] = f"{self.asked} of {len(self.bank)} items"
        if (interval := self.interval()) is not None:
            ends = [number(end) for end in (interval.estimate, interval.low, interval.high)]
            facts["accuracy"] = f"{ends[0]} [{ends[1]}, {ends[2]}], {interval.method}"
        facts["must pass"] = must_pass_sentence(self.must_pass)
        facts["void"] = self.fault
        rows = (f"<tr><th>{name}</th><td>{escape(fact)}</td></tr>" for name, fact in facts.items() if fact)
        return f"<table>{''.join(rows)}</table>"

    def _measures(self, metric: str) -> bool:
        return metric in metric_names() and find_metric(metric).on_banks

    @property
    def asked(self) -> int:
        """Number of items administered."""
        return len(self.log)

    @property
    def fault(self) -> str:
        """Reason why nothing may be concluded; empty if the interview ended as planned."""
        if self.error or self.stop not in _VOID_STOPS:
            return self.error
        return self.stop.value if self.stop else "the interview did not end"

    @property
    def ladder(self) -> Ladder | None:
        """Scores by level; None if levels were not administered one by one."""
        if self.climb is None or not len(self.log):
            return None
        queries = self.climb.queries
        scores = tuple(by_level(self.log.items, self.log.scores, queries))
        return self.climb.ladder(scores, len(self.bank) // queries)

    @property
    def scored(self) -> int:
        """Number of items with a score."""
        return int((~np.isnan(self.log.scores)).sum())

    @property
    def model(self) -> Interval | None:
        """The projection with the bank's own interval; shown, never decided on."""
        return model_based(*self.projected) if self.projected else None

    @property
    def conformal(self) -> Interval | None:
        """The projection with an interval from replayed interviews, if the bank has a table of this policy.

        With few families of calibration subjects its level is the highest that these can give. It holds for checkpoints
        like the calibration subjects. A regressed checkpoint is not like them, so gates use the draws.
        """
        if self.table is None or self.projected is None or (confidence := self.table.confidence()) <= 0.5:
            return None
        furthest = uniform_half_width(self.projected[0], self.asked, len(self.bank), confidence)
        return self.table.interval(self.projected[0], self.scale, confidence, float(furthest))

    @property
    def table(self) -> Conformal | None:
        """The bank's errors of replayed interviews by this policy; None if there are none or no projection."""
        return self.bank.conformal.get(self.policy) if self.projected else None

    @property
    def scale(self) -> float:
        """Unit of the replayed errors."""
        assert self.projected is not None
        accuracy, error = self.projected
        return float(conformal_scale([accuracy], [error], self.asked, len(self.bank))[0])

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Return the accuracy interval that gates use, or None if there is none; missing scores widen it.

        The draws of a subject that is unlike the bank's population give one that only rank gates use.
        """
        if self.fault or not self.asked:
            return None
        if self.own is not None:
            return uniform_block(self.log.scores[: self.own[1]], self.own[0], len(self.bank), confidence)
        if self.invalid:
            return None
        return self.interval_of(self.log, confidence)

    def interval_of(self, log: DesignLog, confidence: float) -> Interval:
        """Return the accuracy interval of a log of this interview's draws, or of a view of it."""
        if self.sequential:
            return anytime_valid(log, mean_of_draws(log), confidence)
        return merge_missing_bounds(*with_missing_bounded(log, confidence))

    def judge(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition.

        Raises:
            ConfigError: The condition does not go with the bank or the interview's policy.
            BaselineError: The baseline was not known before the interview.
        """
        try:
            self._check(condition)
        except (ConfigError, BaselineError) as error:
            raise type(error)(f"{self.name}: {error}") from None
        unit = "items in formats" if self.bank.report.get("formats") else "items"
        verdict = self._error_verdict(condition, condition.quantity, self.asked, len(self.bank), unit)
        verdict = replace(verdict, unanswered=unanswered_sentence(self.statuses))
        fault = self.fault or ("" if self.asked else "no question was asked")
        if not fault and not self.scored:
            fault = "no answer has a score"
        if fault:
            return with_note(verdict, fault)
        return with_must_pass(verdict, lambda verdict: self._by_metric(condition, verdict), self.must_pass)

    def _by_metric(self, condition: Condition, verdict: Verdict) -> Verdict:
        if condition.name in self.absent:
            stated = f"no baseline yet for {condition.quantity} {condition.requirement}"
            verdict = with_note(verdict, self.absent[condition.name])
            return replace(verdict, outcome=Outcome.INCONCLUSIVE, notice=True, stated=stated)
        return condition.measure.judge(self, condition, verdict)

    def _check(self, condition: Condition) -> None:
        condition.check(self.bank, climbed=self.climb is not None)
        if self.invalid and not condition.measure.by_levels and not (condition.by_rank and (self.table or self.own)):
            raise ConfigError(f"this interview cannot feed a gate: {self.invalid}")
        if self.invalid and condition.by_rank and self.checked < FEWEST_CHECKED:
            raise ConfigError(
                f"the rank would rest on chosen items alone: {self.checked} of {self.asked} were drawn uniformly, "
                f"which cannot show a subject unlike the bank's population; expected at least {FEWEST_CHECKED}. Raise "
                "the budget, run an older record's interview again, or use the policy 'decide'"
            )
        if condition.kind == "not_worse_than" and condition.name not in {**self.baselines, **self.absent}:
            raise BaselineError(
                f"the baseline {condition.name!r} was not known before the interview, whose draws depend on it: "
                f'put @pytest.mark.adaptive_gate("{self.name}", not_worse_than={condition.name!r}, '
                f"margin={condition.value}) on the test, or declare the gate in TOML"
            )

    def to_json(self) -> dict[str, Any]:
        """Return JSON data for another process: all but the bank and the plan; see `from_json`."""
        run_fields = ("bank", "planned", "family", "baselines", "absent", "on_verdict")
        columns = (*DesignLog.columns(), "size", "noise", "take_all")
        return {
            **{f.name: getattr(self, f.name) for f in fields(self) if f.name not in run_fields},
            "log": {name: np.asarray(getattr(self.log, name)).tolist() for name in columns},
            "stop": self.stop.name if self.stop else None,
            "statuses": dict(self.statuses),
            "climb": [self.climb.name, dict(self.climb.to_json())] if self.climb else None,
            "notes": list(self.notes),
            "subject": dict(self.subject),
            "must_pass": [[answer.item, answer.score, answer.text] for answer in self.must_pass],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], bank: ItemBank, **more: Any) -> SessionResult:
        """Create from the data of `to_json`, the bank, and parameters of the class."""
        log: dict[str, Any] = dict(data["log"])
        for column in DesignLog.columns():
            log[column] = np.array(log[column], dtype=int if column == "items" else float)
        return cls(
            **{
                **data,
                "bank": bank,
                "log": DesignLog(**log),
                "climb": levelled(*data["climb"]) if data["climb"] else None,
                "stop": StopReason[data["stop"]] if data["stop"] else None,
                "projected": tuple(data["projected"]) if data["projected"] else None,
                "own": tuple(data["own"]) if data.get("own") else None,
                "notes": tuple(data["notes"]),
                "must_pass": tuple(MustPassAnswer(*answer) for answer in data["must_pass"]),
            },
            **more,
        )


CONFIDENCE = 0.95  #: Confidence of the bounds in records and reports.


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One quantity of the subjects of a study.

    Args:
        values: Shape (n,). NaN if unknown. Stored as an array.
        covariance: Shape (n, n). Covariance of the estimates; NaN likewise. Stored as an array.
        method: See `Interval.method`.
    """

    values: Array
    covariance: Array
    method: str = "model-based"

    def __init__(self, values: ArrayLike, covariance: ArrayLike, method: str = "model-based") -> None:
        for name, data in (("values", values), ("covariance", covariance)):
            array = np.array(data, dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "method", method)

    def known(self, index: int) -> bool:
        """Return whether a subject has a value and an error."""
        return bool(np.isfinite(self.values[index]) and np.isfinite(self.covariance[index, index]))

    def interval(self, index: int, confidence: float = CONFIDENCE) -> Interval:
        """Return a subject's value with its bounds, each with this confidence."""
        value, error = float(self.values[index]), math.sqrt(max(float(self.covariance[index, index]), 0.0))
        half = error * NormalDist().inv_cdf(confidence)
        return Interval(value, value - half, value + half, confidence, self.method)

    def above(self, index: int, other: int) -> float:
        """Return the probability that a subject's value is higher than another's."""
        c = self.covariance
        variance = float(c[index, index] + c[other, other] - 2.0 * c[index, other])
        lead = float(self.values[index] - self.values[other])
        return 1.0 - NormalDist(lead, max(variance, 1e-12) ** 0.5).cdf(0.0)

    def ranks(self, seed: int) -> tuple[RankDistribution, ...]:
        """Return the distributions of the subjects' ranks, 1 the best, among those with a value."""
        return joint_ranks(self.values, self.covariance, seed=seed)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, with None for unknown values; see `from_json`."""
        covariance = [[_finite(value) for value in row] for row in self.covariance.tolist()]
        return {"values": [*map(_finite, self.values.tolist())], "covariance": covariance, "method": self.method}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """Create from the data of `to_json`."""
        values = np.array(data["values"], dtype=np.float64)  # None becomes NaN
        covariance = np.array(data["covariance"], dtype=np.float64).reshape(len(values), -1)
        return cls(values, covariance, data["method"])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """One quantity of some subjects of a study that has bounds but no distribution, and so no ranks.

    Args:
        intervals: By subject, the function from a confidence to the interval.
        errors: By subject, the standard error of sampling alone, for repetitions; empty if unknown.
        guess: By subject, the value that guessing alone has; empty if unknown.
    """

    intervals: tuple[Callable[[float], Interval] | None, ...]
    errors: tuple[float | None, ...] = ()
    guess: tuple[float | None, ...] = ()

    def known(self, index: int) -> bool:
        """Return whether a subject has a value."""
        return self.intervals[index] is not None

    def interval(self, index: int, confidence: float = CONFIDENCE) -> Interval:
        """Return a subject's value with its bounds."""
        interval_at = self.intervals[index]
        assert interval_at is not None
        return interval_at(confidence)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StudyResult(Result):
    """Result of a study, such as ``result.score.at_least(3.5)``; see `Result` for the parameters of interviews too.

    Args:
        candidate: Subject of gates that name no other.
        subjects: Names of all subjects, in the order of `quantities`.
        metrics: Names of the measured quantities, the leading one first, also if the study is void.
        quantities: By metric, as far as known.
        asked, size: Units that counted, and those that took place.
        broken: True if a fault of the run voids it: the next run can use its replies.
        unsure: Reason why its numbers carry no claim; empty if they do.
        absent: Subjects without a value for no fault of the run, and why.
        baselines: Earlier results of the same study, by the name that conditions use.
        no_baselines: Baselines that do not exist yet, and why.
        difference: ``difference(metric, subject, baseline, confidence)`` returns a subject's value less that of a
            baseline; the default takes the two as independent.
    """

    name: str
    kind: str
    candidate: str
    subjects: tuple[str, ...]
    metrics: tuple[str, ...]
    quantities: Mapping[str, Measured | Bounded] = field(default_factory=dict)
    asked: int = 0
    size: int = 0
    unit: str = "rounds"
    error: str = ""
    broken: bool = False
    unsure: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    seed: int = 0
    baselines: Mapping[str, StudyResult] = field(default_factory=dict)
    no_baselines: Mapping[str, str] = field(default_factory=dict)
    difference: Callable[[str, str, StudyResult, float], Interval] | None = None
    account: Mapping[str, Any] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[Mapping[str, Any], ...] = ()
    family: int = 0
    on_verdict: Callable[[Verdict], Verdict] | None = None

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {self.size} {self.unit}>"

    def _measures(self, metric: str) -> bool:
        return metric in self.metrics

    def judge(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition.

        Raises:
            ConfigError: The study does not measure the quantity, or has no such subject.
        """
        try:
            condition.check_study(self.metrics, self.subjects, self.candidate)
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        subject = condition.subject or self.candidate
        paired = condition.kind == "not_worse_than"
        metric = condition.metric.replace("_", " ")
        quantity = f"{metric} of {subject}" + (f" less that of {condition.name}" if paired else "")
        verdict = self._error_verdict(condition, quantity, self.asked, self.size, self.unit)
        if self.error:
            return with_note(verdict, self.error)
        compared = (subject,) if paired else (subject, condition.name)
        without_value = self._without_value(condition.metric, compared, verdict)
        if without_value is not None:  # a verdict itself is false unless it passes
            return without_value
        measured, index = self.quantities[condition.metric], self.subjects.index(subject)
        if paired:
            return self._judge_paired(condition, subject, verdict)
        if not condition.by_rank:
            return decide_by_bounds(
                verdict, condition, self.family, lambda level: measured.interval(index, level), condition.value
            )
        if isinstance(measured, Bounded):
            raise ConfigError(f"{self.name}: {condition.metric} ranks nobody: gate on it by at_least")
        return self._judge_rank(condition, measured, index, verdict)

    def _without_value(self, metric: str, subjects: Sequence[str], verdict: Verdict) -> Verdict | None:
        """Return the verdict where a metric of one of the subjects is not known, None where all are."""
        measured = self.quantities[metric]
        unknown = [name for name in subjects if name and not measured.known(self.subjects.index(name))]
        reason = self.unsure or (self.absent.get(unknown[0], "") if unknown else "")
        if reason:
            return with_note(verdict, reason, Outcome.INCONCLUSIVE)
        if unknown:
            return with_note(verdict, f"nothing is known of the {metric} of {unknown[0]}")
        return None

    def _judge_paired(self, condition: Condition, subject: str, verdict: Verdict) -> Verdict:
        if condition.name in self.no_baselines:
            stated = f"no baseline yet for {verdict.metric} {condition.requirement}"
            verdict = with_note(verdict, self.no_baselines[condition.name], Outcome.INCONCLUSIVE)
            return replace(verdict, notice=True, stated=stated)
        if condition.name not in self.baselines:
            raise BaselineError(
                f"{self.name}: the baseline {condition.name!r} was not known before the study: put "
                f'@pytest.mark.adaptive_gate("{self.name}", not_worse_than={condition.name!r}, '
                f"margin={condition.value}) on the test, or declare the gate in TOML"
            )
        baseline, difference = self.baselines[condition.name], self.difference or self._independent_difference
        if fault := baseline.error or baseline.unsure:
            return with_note(verdict, f"the baseline {condition.name} carries no claim: {fault}")
        try:
            return decide_by_bounds(
                verdict,
                condition,
                self.family,
                lambda level: difference(condition.metric, subject, baseline, level),
                -condition.value,
            )
        except EstimationError as error:
            return with_note(verdict, str(error))

    def _independent_difference(self, metric: str, subject: str, baseline: StudyResult, confidence: float) -> Interval:
        """Return a subject's value less that of the baseline's subject of that name, else of its candidate."""
        other = subject if subject != self.candidate and subject in baseline.subjects else baseline.candidate
        index = baseline.subjects.index(other)
        if metric not in baseline.quantities or not baseline.quantities[metric].known(index):
            raise EstimationError(f"the baseline knows no {metric} of {other}")
        return (
            self.quantities[metric]
            .interval(self.subjects.index(subject), confidence)
            .less(baseline.quantities[metric].interval(index, confidence))
        )

    def _judge_rank(self, condition: Condition, measured: Measured, index: int, verdict: Verdict) -> Verdict:
        quantity = f"{condition.metric} of {self.subjects[index]}"
        if condition.kind == "above":
            other = self.subjects.index(condition.name)
            value, other_value = (number(float(measured.values[n])) for n in (index, other))
            fact = f"{quantity} ({value}) above {condition.name} ({other_value})"
            return decide_by_probability(verdict, condition, fact, measured.above(index, other))
        unknown = [name for n, name in enumerate(self.subjects) if not measured.known(n)]
        ranks = measured.ranks(self.seed)[index]
        k = int(condition.value)  # the unknown subjects may all be better, or all be worse
        probability, highest = (float(ranks.probabilities[:n].sum()) for n in (max(k - len(unknown), 0), k))
        if unknown:
            verdict = with_note(verdict, f"nothing is known of {', '.join(unknown)}, who may be better or worse")
        best, worst = ranks.interval(condition.probability)
        fact = f"{quantity}: rank {ranks.mean:.1f} [{best}, {worst}] of {len(ranks.probabilities)}"
        return decide_by_probability(verdict, condition, f"{fact}, {condition.requirement}", probability, highest)

    def findings(self) -> dict[str, list[dict[str, Any]]]:
        """Return a row per subject, by metric: estimate, bounds, confidence, standard error and rank."""
        return {metric: self._rows(measured) for metric, measured in self.quantities.items()}

    def _rows(self, measured: Measured | Bounded) -> list[dict[str, Any]]:
        if isinstance(measured, Bounded):
            unknown = (None,) * len(self.subjects)
            more = {"error": measured.errors or unknown, "guess": measured.guess or unknown}
            return [
                {
                    "subject": name,
                    **measured.interval(n).to_json(),
                    **{field_name: values[n] for field_name, values in more.items() if values[n] is not None},
                }
                for n, name in enumerate(self.subjects)
                if measured.known(n)
            ]
        rows: list[dict[str, Any]] = []
        ranks = measured.ranks(self.seed)
        for n, name in enumerate(self.subjects):
            row: dict[str, Any] = {"subject": name}
            if measured.known(n):
                row |= measured.interval(n).to_json()
                row["error"] = math.sqrt(max(float(measured.covariance[n, n]), 0.0))
                best, worst = ranks[n].interval(CONFIDENCE)
                row["rank"] = {"mean": ranks[n].mean, "best": best, "worst": worst}
            elif np.isfinite(measured.values[n]):
                row["estimate"] = float(measured.values[n])
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return JSON data for another process, without quantities that have bounds alone; see `from_json`."""
        run_fields = ("family", "on_verdict", "baselines", "no_baselines", "difference")
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in run_fields}
        measured = {name: m.to_json() for name, m in self.quantities.items() if isinstance(m, Measured)}
        return {**data, "quantities": measured, **{name: list(data[name]) for name in _LISTS}}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, family: int = 0) -> StudyResult:
        """Create from the data of `to_json`."""
        quantities = {metric: Measured.from_json(measured) for metric, measured in data["quantities"].items()}
        lists = {name: tuple(data[name]) for name in _LISTS}
        return cls(**{**data, **lists, "quantities": quantities, "family": family})


_LISTS = ("subjects", "metrics", "notes", "members")  #: Fields that are lists in JSON data.
