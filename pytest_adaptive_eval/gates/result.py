"""Results that gates judge: named quantities of one or several subjects, and an interview's by its draws.

Gates require a value of one subject, or its rank among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from html import escape
from typing import Any, Literal, NoReturn, Self

import numpy as np

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.projection import model_based
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.errors import BaselineError, ConfigError, EstimationError
from pytest_adaptive_eval.gates.condition import (
    Condition,
    decide_by_bounds,
    decide_by_confidence,
    find_metric,
    with_note,
)
from pytest_adaptive_eval.gates.metrics import metric_names
from pytest_adaptive_eval.gates.misfit import misfit_note, misfit_reason, refitted_projection
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer, must_pass_sentence, with_must_pass
from pytest_adaptive_eval.gates.quantities import Bounded, Measured
from pytest_adaptive_eval.gates.verdict import NoVerdict, Outcome, Verdict
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.conformal import Conformal, conformal_scale, uniform_half_width
from pytest_adaptive_eval.inference.design import DesignLog, uniform_draws
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import approximate_interval, is_exact
from pytest_adaptive_eval.irt.estimation import sandwich_error
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import unanswered_sentence
from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb, by_level, levelled
from pytest_adaptive_eval.ladder.result import Ladder
from pytest_adaptive_eval.models.base import SubjectIdentity
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.types import Array

UNREADABLE_SHARE = 0.5  #: Largest share of answers without the form of an answer; above it, a gate is an ERROR.
#: Stops after which an interview has no usable result; None is an interview that did not end.
_VOID_STOPS = (None, StopReason.ERRORS, StopReason.UNASKED, StopReason.GIVEN_UP, StopReason.INTERRUPTED)

OnInconclusive = Literal["fail", "warn", "pass"]


@dataclass(frozen=True, slots=True, repr=False)
class BoundMetric(NoVerdict):
    """A metric bound to its result; each method returns a `Verdict`.

    The methods raise `ConfigError` if a value is out of range or the interview's policy admits no valid verdict.
    `confidence` is that of each one-sided decision. `on_inconclusive` says what an undecided gate does: fail, pass, or
    pass with a warning. `subject` is one of several subjects, the candidate when omitted.
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
        method: Literal["draws", "like-questions"] = "draws",
        within: float | None = None,
        cap: float | None = None,
    ) -> Verdict:
        """Judge whether the metric reaches `target`: PASS if it surely does, FAIL if it surely does not.

        Args:
            target: In the metric's unit, such as an accuracy in [0, 1] or an ability in logits on the bank's scale. A
                share may be a text such as ``"60%"``.
            method: The second takes the bank for a sample of questions like these, and is for accuracies alone.
            within, cap: Of a value that the run measures: the metric is the share of answers up to `within`, or the
                mean of values cut at `cap`.
        """
        settings: dict[str, Any] = {"subject": subject, "confidence": confidence, "method": method}
        settings |= {"within": within, "cap": cap}
        return self._verdict("at_least", value=target, on_inconclusive=on_inconclusive, **settings)

    def at_most(self, target: float | str, **settings: Any) -> Verdict:
        """Judge whether the metric stays at or below `target`; takes the keywords of `at_least`."""
        return self._verdict("at_most", value=target, **settings)

    def not_worse_than(
        self,
        baseline: str,
        *,
        margin: float | str,
        subject: str = "",
        confidence: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
        within: float | None = None,
        cap: float | None = None,
    ) -> Verdict:
        """Judge the loss against a baseline: PASS if it is surely below `margin`, FAIL if it surely is not.

        Args:
            baseline: Another evaluation of the run, a file of recorded answers or of a run, or ``"baseline"`` for the
                file of ``--adaptive-eval-baseline``.
            margin: As a share of the bank or of the energy, in (0, 1) or such as ``"2%"``; of ability in logits, of auc
                in levels, of score in points; of a mean of values cut at `cap` in their unit.
            within, cap: See `at_least`.
        """
        settings: dict[str, Any] = {"subject": subject, "confidence": confidence, "within": within, "cap": cap}
        name = str(baseline)
        return self._verdict("not_worse_than", value=margin, name=name, on_inconclusive=on_inconclusive, **settings)

    def rank_within(
        self,
        k: int,
        *,
        subject: str = "",
        confidence: float = 0.95,
        probability: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
    ) -> Verdict:
        """Judge the rank among the bank's recorded subjects, or among the subjects of the evaluation.

        On a bank, `at_least` the accuracy of the `k`-th best recorded subject. In panels and networks, PASS if the
        subject is surely better than all but `k` of the subjects, FAIL if `k` others are surely better than it.

        Args:
            probability: Confidence of these comparisons together, see `Measured.within`.
        """
        settings: dict[str, Any] = {"confidence": confidence, "probability": probability}
        return self._verdict("rank_within", value=k, subject=subject, on_inconclusive=on_inconclusive, **settings)

    def above(
        self,
        name: str,
        *,
        subject: str = "",
        confidence: float = 0.95,
        probability: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
    ) -> Verdict:
        """Judge the comparison with another subject.

        On a bank, `at_least` the accuracy of that recorded subject. In panels and networks, PASS if the value is higher
        with the one-sided confidence `probability`, FAIL if it is lower.
        """
        settings: dict[str, Any] = {"confidence": confidence, "probability": probability}
        return self._verdict("above", name=str(name), subject=subject, on_inconclusive=on_inconclusive, **settings)

    def _verdict(self, kind: str, **settings: Any) -> Verdict:
        for name in ("confidence", "probability"):  # a whole number is a float here; the check refuses anything else
            if isinstance(number := settings.get(name), int) and not isinstance(number, bool):
                settings[name] = float(number)
        return self.result.verdict(Condition(self.name, kind, **settings))

    def __getitem__(self, component: str) -> BoundMetric:
        """Return a component, such as ``ability["cross"]``, on a bank that is administered in formats."""
        find_metric(self.name).component(component)
        return BoundMetric(f"{self.name}.{component}", self.result)

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse a number of the metric by hand, such as ``estimate``: a verdict has it with its error."""
        raise AttributeError(
            f"{self!r} has no {name!r}; judge it, as by .at_least(0.6), and read estimate and bounds from the "
            "verdict's interval"
        )

    def __repr__(self) -> str:
        return f"{self.name} of {self.result.name}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result(NoVerdict):
    """Result of an evaluation, whose attributes are the metrics that it measures, as ``result.score.at_least(3.5)``.

    Args:
        name, kind: Name and kind of the evaluation.
        candidate: Subject of gates that name no other.
        subjects: Names of all subjects, in the order of `quantities`.
        metrics: Names of the measured quantities, the leading one first, also if the result is void.
        quantities: By metric, if known.
        asked, size: Units that counted, and units that took place.
        error: Reason why the evaluation is void; empty otherwise.
        broken: True if a fault of the run voids it: the next run can use its replies.
        unsure: Reason why its numbers carry no claim; empty if they do.
        unmeasured: Subjects without a value for no fault of the run, and why.
        notes: Shown with every verdict, such as an untrusted bank.
        caveat: What readers must know of the test that judged the answers, see `Verdict`.
        warnings: What whoever promotes must know of the models.
        baselines, absent: Baselines by the name that conditions use, and why others do not exist yet.
        difference: ``difference(metric, subject, baseline, confidence)`` returns a subject's value less that of a
            baseline; the default takes the two as independent.
        account, costs, members: For the record: data of the kind, costs of replies as `records.parts.Costs`, and
            identities of models.
        planned: Conditions of gates that were known before the first question.
        family: Conditions that FAIL verdicts are corrected for, including other evaluations'.
        must_pass: Answers to items that must pass: one wrong answer fails every gate.
        on_verdict: Called with each requested verdict; returns the verdict to use.
    """

    name: str
    kind: str = ""
    candidate: str = ""
    subjects: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    quantities: Mapping[str, Measured | Bounded] = field(default_factory=dict)
    asked: int = 0
    size: int = 0
    unit: str = "rounds"
    error: str = ""
    broken: bool = False
    unsure: str = ""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    caveat: str = ""
    warnings: tuple[str, ...] = ()
    seed: int = 0
    baselines: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    difference: Callable[[str, str, Any, float], Interval] | None = None
    account: Mapping[str, Any] = field(default_factory=dict)
    costs: Any = None
    members: tuple[SubjectIdentity, ...] = ()
    planned: tuple[Condition, ...] = ()
    family: int = 0
    must_pass: tuple[MustPassAnswer, ...] = ()
    on_verdict: Callable[[Verdict], Verdict] | None = None

    def __getattr__(self, name: str) -> BoundMetric:
        """Return a metric of the result, such as ``accuracy``."""
        if name.startswith("_"):
            raise AttributeError(name)
        if not self._measures(name):
            measured = ", ".join(metric for metric in metric_names() if self._measures(metric))
            raise AttributeError(f"{self!r} has no {name!r}; use {measured}")
        return BoundMetric(name, self)

    def __getitem__(self, name: str) -> BoundMetric:
        """Return a metric by its name, such as ``"pass^3"``."""
        find_metric(name, recorded=True)
        return BoundMetric(name, self)

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {self.size} {self.unit}>"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{name}</th><td>{escape(fact)}</td></tr>" for name, fact in self._facts().items() if fact)
        return f"<table>{''.join(rows)}</table>"

    def _facts(self) -> dict[str, str]:
        """Return what a notebook shows, by name."""
        facts = {
            "evaluation": self.name,
            "subject": self.candidate,
            "asked": f"{self.asked} of {self.size} {self.unit}",
        }
        if self.candidate in self.subjects:
            index = self.subjects.index(self.candidate)
        else:
            index = 0
        for metric, measured in self.quantities.items():
            if measured.known(index):
                facts[metric] = measured.interval(index).in_words()
            else:
                facts[metric] = ""
        return {**facts, "void": self.fault}

    def _measures(self, metric: str) -> bool:
        return metric in self.metrics

    @property
    def fault(self) -> str:
        """Reason why nothing may be concluded; empty if the evaluation ended as planned."""
        return self.error

    @property
    def unanswered(self) -> str:
        """Answers that were empty, refused or cut, which every verdict names; empty without any."""
        return ""

    def verdict(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition after `on_verdict`, which may change it; raises as `judge`."""
        verdict = self.judge(condition)
        if self.on_verdict:
            return self.on_verdict(verdict)
        return verdict

    def judge(self, condition: Condition) -> Verdict:
        """Return the verdict on a condition.

        Raises:
            ConfigError: The condition does not go with the evaluation.
            BaselineError: The baseline was not known before it ran.
        """
        try:
            self._check(condition)
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        if condition.kind == "not_worse_than" and condition.name not in {**self.baselines, **self.absent}:
            raise BaselineError(
                f"{self.name}: the baseline {condition.name!r} was not known before it ran, and may change what is "
                f'asked: put @pytest.mark.adaptive_gate("{self.name}", not_worse_than={condition.name!r}, '
                f"margin={condition.value}) on the test, or declare the gate in TOML"
            )
        verdict = Verdict(
            Outcome.ERROR,
            self._quantity(condition),
            condition.requirement,
            None,
            condition.probability if condition.by_rank else condition.confidence,
            self.asked,
            self.size,
            self.notes,
            condition.on_inconclusive,
            condition=condition.to_json(),
            unit=self.unit,
            unanswered=self.unanswered,
            caveat=self.caveat,
        )
        if fault := self._no_estimate():
            return with_note(verdict, fault)
        return with_must_pass(verdict, lambda verdict: self._by_metric(condition, verdict), self.must_pass)

    def _check(self, condition: Condition) -> None:
        """Raise a ConfigError for a condition that does not go with the evaluation."""
        condition.check_subjects(self.metrics, self.subjects, self.candidate)

    def _quantity(self, condition: Condition) -> str:
        """Return the name of the measured quantity in verdicts."""
        name = f"{condition.metric.replace('_', ' ')} of {condition.subject or self.candidate}"
        if condition.kind == "not_worse_than":
            return f"{name} less that of {condition.name}"
        return name

    def _no_estimate(self) -> str:
        """Return why an estimate is impossible; empty if it may exist."""
        return self.fault

    def _by_metric(self, condition: Condition, verdict: Verdict) -> Verdict:
        without_value = self._without_value(condition, verdict)
        if without_value is not None:  # a verdict itself is false unless it passes
            return without_value
        if condition.kind == "not_worse_than" and condition.name in self.absent:
            stated = f"no baseline yet for {verdict.metric} {verdict.requirement}"
            noted = with_note(verdict, self.absent[condition.name], Outcome.INCONCLUSIVE)
            return replace(noted, notice=True, stated=stated)
        return condition.measure.judge(self, condition, verdict)

    def _without_value(self, condition: Condition, verdict: Verdict) -> Verdict | None:
        """Return the verdict where a metric of one of the subjects is not known, None where all are."""
        if (measured := self.quantities.get(condition.metric)) is None:
            return None
        compared = (condition.subject or self.candidate, "" if condition.kind == "not_worse_than" else condition.name)
        unknown = []
        for name in compared:
            if name and not measured.known(self.subjects.index(name)):
                unknown.append(name)
        reason = self.unsure or (self.unmeasured.get(unknown[0], "") if unknown else "")
        if reason:
            return with_note(verdict, reason, Outcome.INCONCLUSIVE)
        if unknown:
            return with_note(verdict, f"nothing is known of the {condition.metric} of {unknown[0]}")
        return None

    def judge_quantity(self, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the bounds of a named quantity, by their difference from a baseline's, or by ranks."""
        measured = self.quantities[condition.metric]
        subject = condition.subject or self.candidate
        index = self.subjects.index(subject)
        if condition.kind == "not_worse_than":
            return self._judge_paired(condition, subject, verdict)
        if not condition.by_rank:
            return decide_by_bounds(
                verdict, condition, self.family, lambda level: measured.interval(index, level), condition.value
            )
        if isinstance(measured, Bounded):
            raise ConfigError(f"{self.name}: {condition.metric} ranks nobody: gate on it by at_least")
        return self._judge_rank(condition, measured, index, verdict)

    def _judge_paired(self, condition: Condition, subject: str, verdict: Verdict) -> Verdict:
        baseline = self.baselines[condition.name]
        difference = self.difference or self._independent_difference
        if fault := baseline.error or baseline.unsure:
            return with_note(verdict, f"the baseline {condition.name} supports no claim: {fault}")
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

    def _independent_difference(self, metric: str, subject: str, baseline: Result, confidence: float) -> Interval:
        """Return a subject's value less that of the baseline's subject of that name, else of its candidate."""
        if subject != self.candidate and subject in baseline.subjects:
            other = subject
        else:
            other = baseline.candidate
        index = baseline.subjects.index(other)
        if metric not in baseline.quantities or not baseline.quantities[metric].known(index):
            raise EstimationError(f"the baseline has no {metric} of {other}")
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
            confirmed, refused = measured.above(index, other), measured.above(other, index)
            return decide_by_confidence(verdict, condition, fact, confirmed, refused)
        unknown = []
        for n, name in enumerate(self.subjects):
            if not measured.known(n):
                unknown.append(name)
        if unknown:
            verdict = with_note(verdict, f"nothing is known of {', '.join(unknown)}, who may be better or worse")
        k = int(condition.value)
        best, worst = measured.rank_bounds(index, condition.probability)
        rank = f"rank {measured.mean_rank(index):.1f} [{best}, {worst}] of {len(self.subjects)}"
        fact = f"{quantity}: {rank}, {condition.requirement}"
        return decide_by_confidence(verdict, condition, fact, measured.within(index, k), measured.beyond(index, k))

    def findings(self) -> dict[str, list[dict[str, Any]]]:
        """Return a row per subject, by metric: estimate, bounds, confidence, standard error and rank."""
        return {metric: measured.rows(self.subjects) for metric, measured in self.quantities.items()}

    def to_json(self) -> dict[str, Any]:
        """Return JSON data for another process, without quantities that have bounds alone; see `from_json`."""
        data = {}
        for f in fields(self):
            if f.name not in _OF_RUN:
                data[f.name] = getattr(self, f.name)
        measured = {}
        for name, m in self.quantities.items():
            if isinstance(m, Measured):
                measured[name] = m.to_json()
        must_pass = []
        for answer in self.must_pass:
            must_pass.append([answer.item, answer.score, answer.text])
        return {**data, "quantities": measured, "must_pass": must_pass}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Create from the data of `to_json`."""
        quantities = {}
        for metric, measured in data["quantities"].items():
            quantities[metric] = Measured.from_json(measured)
        lists = {name: tuple(data[name]) for name in _LISTS}
        must_pass = tuple(MustPassAnswer(*answer) for answer in data["must_pass"])
        return cls(**{**data, **lists, "quantities": quantities, "must_pass": must_pass})


_LISTS = ("subjects", "metrics", "notes")  #: Fields that are lists in JSON data.
#: Fields of the run and of the record: they do not travel between processes.
_OF_RUN = ("planned", "family", "baselines", "absent", "on_verdict", "difference", "costs", "members")


def _metric_property(name: str) -> property:
    """Return a property that is listed on the class; a result has all other metrics as attributes too."""
    return property(lambda result: BoundMetric(name, result), doc=f"Metric of ``gates/metrics/{name}.py``.")


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class SessionResult(Result):
    """Result of an interview, by its draws from a bank.

    Args:
        theta: Estimated ability, length D, in logits; None on an uncalibrated bank. In parts, by
            `claims.weighted_ability.weighted_ability`.
        statuses: Number of administrations by `Status`, which every verdict names.
        climb: Policy by which the levels of a task were administered, if they were.
        invalid: Reason why the draws decide nothing; empty if they do.
        projected: The bank's projection of the accuracy and its standard error, see `claims.projection.project`; shown,
            never decided on.
        misfit: Why the bank's model does not describe the subject; empty if nothing contradicts it.
        policy: `Policy.key` if the length did not depend on the answers, and the bank's table of replayed interviews
            applies; else empty.
        subject: ``name`` of the subject, and the hash ``decoding`` that a comparison must share; empty if unknown.
        sampling_error: Standard error of the ability over new samples of items and answers, length D, in logits, see
            `estimation.sandwich_error`; None on an uncalibrated bank.
        chance: Accuracy of guessing, if every item has choices or few labels are all that is expected: no gate passes
            on an accuracy that is not distinguishable from it.
        floor: Items, drawn uniformly, and the scores that the test gives answers to other questions there; empty where
            it gives none, or where that is unknown. No gate passes where such answers might.
    """

    bank: ItemBank
    log: DesignLog
    theta: list[float] | None
    standard_error: list[float] | None
    stop: StopReason | None
    statuses: Mapping[str, int]
    climb: Climb | AdaptiveClimb | None = None
    invalid: str = ""
    projected: tuple[float, float] | None = None
    misfit: str = ""
    policy: str = ""
    subject: Mapping[str, str] = field(default_factory=dict)
    sampling_error: list[float] | None = None
    chance: float | None = None
    floor: tuple[tuple[int, float], ...] = ()

    accuracy = _metric_property("accuracy")
    ability = _metric_property("ability")
    gain = _metric_property("gain")
    auc = _metric_property("auc")
    last_level = _metric_property("last_level")

    @property
    def scores_by_item(self) -> Array:
        """Score of each item of the bank, NaN where it was not asked, shape (n,)."""
        scores = np.full(len(self.bank), np.nan)
        scores[self.log.items] = self.log.scores
        return scores

    def __post_init__(self) -> None:
        formats = bool(self.bank.report.get("formats"))
        name = self.subject.get("name", "")
        quantities = {}
        if self.climb is not None and (ladder := self.ladder) is not None:
            bounds = {"auc": self.climb.area, "last_level": self.climb.last}
            quantities = {metric: Bounded((partial(interval, ladder),)) for metric, interval in bounds.items()}
        facts: dict[str, Any] = {
            "candidate": name,
            "subjects": (name,),
            "quantities": quantities,
            "asked": len(self.log),
            "size": len(self.bank),
            "unit": "items in formats" if formats else "items",
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls, name: str, session: Session, *, statuses: Mapping[str, int], noise: float | None = None, **more: Any
    ) -> SessionResult:
        """Create from a session's first subject, with the measured decoding noise of its log."""
        calibrated = session.bank.calibrated
        ladder_policy = session.policy.levelled
        if noise is None:
            log = session.log()
        else:
            log = replace(session.log(), noise=noise)
        estimate = session.estimate
        theta = estimate.theta[0]
        standard_error = estimate.standard_error[0]
        if session.bank.parts and len(log.draws) > 1 and not session.policy.design_based:
            weighted = weighted_ability(session.bank, log.with_missing_as(0.5))
            theta, standard_error = weighted.theta, weighted.standard_error
        invalid = session.policy.design_based
        projected = None
        misfit = ""
        notes = more.pop("notes", ())
        sampling_error = None
        if calibrated:
            bank, items = session.bank, log.items[None]
            guessing = None if bank.asymptote is None else bank.asymptote[items]
            answers = (log.scores[None], bank.discrimination[items], bank.intercept[items], guessing)
            sampling_error = sandwich_error(estimate, *answers)[0].tolist()
        if calibrated and len(log):
            accuracy, error = session.projection()
            projected = (float(accuracy[0]), float(error[0]))
            ability = estimate.theta[0].tolist()
            errors = estimate.standard_error[0].tolist()
            has_prior = session.policy.estimator.has_prior
            misfit = misfit_reason(
                session.bank, log, ability, errors, projected[0], drawn=not invalid, has_prior=has_prior
            )
        if misfit:
            projected = refitted_projection(session.bank, log, ability)
            notes = (*notes, misfit_note(misfit, int((~np.isnan(log.scores)).sum()), drawn=not invalid))
        return cls(
            name=name,
            bank=session.bank,
            log=log,
            theta=theta.tolist() if calibrated else None,
            standard_error=standard_error.tolist() if calibrated else None,
            sampling_error=sampling_error,
            stop=session.stop[0],
            statuses=dict(statuses),
            climb=ladder_policy if isinstance(ladder_policy, Climb | AdaptiveClimb) else None,
            invalid=invalid,
            projected=projected,
            misfit=misfit,
            policy="" if session.adapts_length or len(session.take_all) or misfit else session.policy.key(session.bank),
            notes=notes,
            **more,
        )

    def _facts(self) -> dict[str, str]:
        """Return what a notebook shows, by name."""
        facts = Result._facts(self)
        interval = self.interval()
        void = facts.pop("void")
        if interval is not None:
            facts["accuracy"] = f"{interval.in_words()}, {interval.method}"
        return {**facts, "must pass": must_pass_sentence(self.must_pass), "void": void}

    def _measures(self, metric: str) -> bool:
        return metric in self.log.answers or (metric in metric_names() and find_metric(metric).on_banks)

    @property
    def unanswered(self) -> str:
        """Answers that were empty, refused or cut; empty without any."""
        return unanswered_sentence(self.statuses)

    @property
    def fault(self) -> str:
        """Reason why nothing may be concluded; empty if the interview ended as planned."""
        if self.error or self.stop not in _VOID_STOPS:
            return self.error
        if self.stop:
            return self.stop.value
        return "the interview did not end"

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
        if self.projected:
            return model_based(*self.projected)
        return None

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
        if self.projected:
            return self.bank.conformal.get(self.policy)
        return None

    @property
    def scale(self) -> float:
        """Unit of the replayed errors."""
        assert self.projected is not None
        accuracy, error = self.projected
        return float(conformal_scale([accuracy], [error], self.asked, len(self.bank))[0])

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Return the accuracy interval by the draws, or None if there is none; missing scores widen it.

        It is the one that gates use if a gate was planned or the number of draws was not. Otherwise it is approximate,
        unless exact bounds hold.
        """
        if self.fault or not self.asked or self.invalid:
            return None
        log = self.log
        if not self.planned and len(log) == log.horizon:
            planned = replace(log, fixed=True)
            if is_exact(planned):
                return interval_of_draws(planned, confidence)
            return approximate_interval(log, confidence)
        return interval_of_draws(log, confidence)

    def _quantity(self, condition: Condition) -> str:
        return condition.measure.quantity(condition)

    def _no_estimate(self) -> str:
        """Return why an estimate is impossible; empty if it may exist."""
        if self.fault or self.scored:
            return self.fault
        if self.asked:
            return "no answer has a score"
        return "no question was asked"

    def _by_metric(self, condition: Condition, verdict: Verdict) -> Verdict:
        return above_floor(self, condition, verdict, Result._by_metric(self, condition, verdict))

    def _check(self, condition: Condition) -> None:
        condition.check(self.bank, climbed=self.climb is not None)
        if self.invalid and not condition.measure.by_levels:
            raise ConfigError(f"this interview cannot feed a gate: {self.invalid}")

    def to_json(self) -> dict[str, Any]:
        """Return JSON data for another process: all but the bank and the plan; see `restored`."""
        data = Result.to_json(self)
        del data["bank"]
        columns = (*DesignLog.columns(), "size", "noise", "take_all", "horizon", "earlier", "fixed", "awaited")
        return {
            **data,
            "log": {name: np.asarray(getattr(self.log, name)).tolist() for name in columns}
            | {"answers": {name: values.tolist() for name, values in self.log.answers.items()}},
            "stop": self.stop.name if self.stop else None,
            "statuses": dict(self.statuses),
            "climb": [self.climb.name, dict(self.climb.to_json())] if self.climb else None,
            "subject": dict(self.subject),
        }

    @classmethod
    def restored(cls, data: Mapping[str, Any], bank: ItemBank) -> SessionResult:
        """Create from the data of `to_json` and the bank."""
        log: dict[str, Any] = dict(data["log"])
        for column in DesignLog.columns():
            log[column] = np.array(log[column], dtype=int if column == "items" else float)
        log["earlier"] = tuple(log["earlier"])
        log["answers"] = {name: np.array(values, dtype=float) for name, values in log["answers"].items()}
        return cls.from_json(
            {
                **data,
                "bank": bank,
                "log": DesignLog(**log),
                "climb": levelled(*data["climb"]) if data["climb"] else None,
                "stop": StopReason[data["stop"]] if data["stop"] else None,
                "projected": tuple(data["projected"]) if data["projected"] else None,
            }
        )


def above_floor(result: SessionResult, condition: Condition, undecided: Verdict, verdict: Verdict) -> Verdict:
    """Return a verdict; INCONCLUSIVE in place of PASS where the answers to other questions might meet the condition.

    Args:
        undecided: Verdict without outcome, interval and own notes, see `Metric.judge`.
        verdict: Verdict on the model's own answers.
    """
    measure = condition.measure
    of_scores = measure.by_scores and not measure.by_levels and condition.kind != "at_most"
    if verdict.outcome is not Outcome.PASS or not result.floor or not of_scores:
        return verdict
    items, scores = np.array(result.floor).T
    answers = {}
    for name, values in result.log.answers.items():
        answers[name] = np.repeat(scores[:, None], values.shape[-1], axis=1)
    draws = replace(uniform_draws(scores, result.log.size), items=items.astype(np.int64), answers=answers)
    others = replace(result, log=draws, floor=(), chance=None, planned=(), family=0)
    judged = Result._by_metric(others, replace(condition, method="draws"), undecided)
    if judged.outcome is Outcome.FAIL or judged.interval is None:
        return verdict
    reason = f"{number(judged.interval.estimate, 2)} is what other questions' answers get, at most "
    reason += f"{number(judged.interval.high, 2)} at this confidence"
    return with_note(verdict, reason, Outcome.INCONCLUSIVE)
