"""Result of a study: an evaluation of several subjects at once, such as a panel of models that judge each other.

Gates require a value of one subject, or its rank among the others. `Measured` is a joint normal distribution: its means
and its covariance give bounds, and probabilities of ranks by seeded draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.errors import BaselineError, ConfigError, EstimationError
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.decisions import decide_by_bounds, decide_by_probability, with_note
from pytest_adaptive_eval.gates.result import Result
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.types import Array

#: Confidence of the bounds in records and reports.
CONFIDENCE = 0.95


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
        kind: Such as ``peers``.
        candidate: Subject of gates that name no other.
        subjects: Names of all subjects, in the order of `quantities`.
        metrics: Names of the measured quantities, the leading one first, also if the study is void.
        quantities: By metric, as far as known.
        asked, size: Units that counted, and those that took place.
        unit: Name of the units, such as ``rounds``.
        broken: True if a fault of the run voids it: the next run can use its replies.
        unsure: Reason why its numbers carry no claim; empty if they do.
        absent: Subjects without a value for no fault of the run, and why.
        seed: Seed of the draws of ranks.
        baselines: Earlier results of the same study, by the name that conditions use.
        no_baselines: Baselines that do not exist yet, and why.
        difference: ``difference(metric, subject, baseline, confidence)`` returns a subject's value less that of a
            baseline; the default takes the two as independent.
        account: All findings of the study, as plain JSON data.
        costs: Plain JSON data.
        members: `SubjectIdentity.to_json` of the subjects, in their order.
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
        """Return whether the study has a metric of this name."""
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
        """Return the verdict on a loss against a baseline."""
        if condition.name in self.no_baselines:
            stated = f"no baseline yet for {verdict.metric} {condition.requirement}"
            verdict = with_note(verdict, self.no_baselines[condition.name], Outcome.INCONCLUSIVE)
            return replace(verdict, notice=True, stated=stated)
        if condition.name not in self.baselines:
            raise BaselineError(
                f"{self.name}: the baseline {condition.name!r} was not known before the study: write its name as a "
                "plain value in the gate, or declare the gate in TOML"
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


#: Fields that are lists in JSON data.
_LISTS = ("subjects", "metrics", "notes", "members")
