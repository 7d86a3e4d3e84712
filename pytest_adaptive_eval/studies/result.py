"""Studies: evaluations that are no interview of one subject, such as a panel of models that judge each other.

A study measures quantities of several subjects at once, and gates ask for one subject's quantity, or for its place
among the others.  What is known of a quantity is a joint normal distribution: `Measured` has its means and its
covariance, from which bounds, and probabilities of ranks by draws with a seed, follow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import ON_INCONCLUSIVE
from pytest_adaptive_eval.gates.verdict import NoVerdict, Outcome, Verdict
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.text import number

__all__ = ["STUDY_KINDS", "Bounded", "Measured", "StudyCondition", "StudyMetric", "StudyResult"]

Array = NDArray[np.float64]
OnInconclusive = Literal["fail", "warn", "pass"]

#: The conditions that a gate on a study may set.
STUDY_KINDS = ("at_least", "rank_within", "above")
#: Of intervals that are shown, as of gates that name no other.
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One quantity of the subjects of a study.

    Parameters
    ----------
    values : array_like, shape (n,)
        NaN where it is not known.  Kept as an array.
    covariance : array_like, shape (n, n)
        Of what is known about them; NaN likewise.  Kept as an array.
    method : str
        As `Interval.method`.
    """

    values: Array
    covariance: Array
    method: str = "model-based"

    def __init__(self, values: ArrayLike, covariance: ArrayLike, method: str = "model-based") -> None:
        for name, given in (("values", values), ("covariance", covariance)):
            array = np.array(given, dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "method", method)

    def known(self, place: int) -> bool:
        """Whether there is a value and an error."""
        return bool(np.isfinite(self.values[place]) and np.isfinite(self.covariance[place, place]))

    def interval(self, place: int, confidence: float = CONFIDENCE) -> Interval:
        """A subject's value with its bounds, each with this confidence."""
        value, error = float(self.values[place]), math.sqrt(max(float(self.covariance[place, place]), 0.0))
        half = error * NormalDist().inv_cdf(confidence)
        return Interval(value, value - half, value + half, confidence, self.method)

    def above(self, place: int, other: int) -> float:
        """Probability that a subject's value is higher than another's."""
        c = self.covariance
        variance = float(c[place, place] + c[other, other] - 2.0 * c[place, other])
        lead = float(self.values[place] - self.values[other])
        return 1.0 - NormalDist(lead, max(variance, 1e-12) ** 0.5).cdf(0.0)

    def ranks(self, seed: int) -> tuple[RankDistribution, ...]:
        """Probabilities of each subject's ranks, 1 the best, among those that are known."""
        return joint_ranks(self.values, self.covariance, seed=seed)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON data; `from_json` takes it back."""
        told = [[_told(value) for value in row] for row in self.covariance.tolist()]
        values = [_told(value) for value in self.values.tolist()]
        return {"values": values, "covariance": told, "method": self.method}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """Read back what `to_json` gave."""
        values = np.array(data["values"], dtype=np.float64)  # None becomes NaN
        covariance = np.array(data["covariance"], dtype=np.float64).reshape(len(values), -1)
        return cls(values, covariance, data["method"])


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """One quantity of some subjects of a study, which is known by its bounds alone and ranks nobody.

    Parameters
    ----------
    intervals : tuple of (callable or None)
        By subject, what gives the value with its bounds, each with the confidence asked for.
    """

    intervals: tuple[Callable[[float], Interval] | None, ...]

    def known(self, place: int) -> bool:
        """Whether there is a value."""
        return self.intervals[place] is not None

    def interval(self, place: int, confidence: float = CONFIDENCE) -> Interval:
        """A subject's value with its bounds."""
        of = self.intervals[place]
        assert of is not None
        return of(confidence)


@dataclass(frozen=True, slots=True)
class StudyCondition:
    """One requirement on one quantity of a study.

    Parameters
    ----------
    metric : str
    kind : str
        One of `STUDY_KINDS`.
    value : float
        Target or k; 0 for ``above``.
    name : str
        Who the subject must be above.
    subject : str
        Whom it is about; empty for the candidate.
    confidence : float
        1 - alpha of each one-sided decision, in [0.5, 1).
    probability : float
        That rank conditions ask for, in (0.5, 1).
    on_inconclusive : {"fail", "warn", "pass"}

    Raises
    ------
    ConfigError
        A value is out of range.
    """

    metric: str
    kind: str
    value: float = 0.0
    name: str = ""
    subject: str = ""
    confidence: float = 0.95
    probability: float = 0.95
    on_inconclusive: str = "fail"

    def __post_init__(self) -> None:
        if self.kind not in STUDY_KINDS:
            raise ConfigError(f"condition {self.kind!r} is not known; use {', '.join(STUDY_KINDS)}")
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            raise ConfigError(f"{self.metric}.{self.kind}({self.value!r}): expected a number")
        if self.kind == "rank_within" and (self.value != int(self.value) or self.value < 1):
            raise ConfigError(f"rank_within({self.value!r}): expected a whole number of at least 1")
        if self.kind == "above" and not self.name:
            raise ConfigError("above: expected the name of a subject to compare with")
        for name, least in (("confidence", "["), ("probability", "(")):
            given = getattr(self, name)
            if not isinstance(given, float) or not 0.5 <= given < 1 or (least == "(" and given == 0.5):
                raise ConfigError(f"{name} is {given!r}, expected a number in {least}0.5, 1) such as 0.95")
        if self.on_inconclusive not in ON_INCONCLUSIVE:
            raise ConfigError(
                f"on_inconclusive is {self.on_inconclusive!r}, expected {', '.join(ON_INCONCLUSIVE[:-1])} or "
                f"{ON_INCONCLUSIVE[-1]}"
            )

    @property
    def label(self) -> str:
        """As the gate's test is called: ``score-at-least-3.5``, with names whose signs a node id can hold."""
        parts = [self.metric, self.kind.replace("_", "-")]
        parts += [f"{self.value:g}"] if self.kind != "above" else [self.name]
        parts += ["of", self.subject] if self.subject else []
        return re.sub(r"[^\w.+-]+|::", "_", "-".join(parts))

    @property
    def requirement(self) -> str:
        """As a person would write it: ``>= 3.50``."""
        if self.kind == "rank_within":
            return f"within the first {int(self.value)}"
        return f"above {self.name}" if self.kind == "above" else f">= {number(self.value, 2)}"

    @property
    def by_rank(self) -> bool:
        """Whether it asks for a probability of ranks."""
        return self.kind != "at_least"

    def check(self, metrics: tuple[str, ...], subjects: tuple[str, ...], candidate: str) -> None:
        """Refuse what the study does not measure, or of whom.

        Raises
        ------
        ConfigError
            Another quantity, an unknown subject, or a subject that is to be above itself.
        """
        if self.metric not in metrics:
            raise ConfigError(f"metric {self.metric!r} is not known; use {', '.join(metrics)}")
        for name in filter(None, (self.subject, self.name)):
            if name not in subjects:
                raise ConfigError(f"{name!r} is none of the study: {', '.join(subjects)}")
        if self.kind == "above" and self.name == (self.subject or candidate):
            raise ConfigError(f"{self.name!r} cannot be above itself: name another")
        if self.kind == "rank_within" and self.value >= len(subjects):
            raise ConfigError(
                f"rank_within({int(self.value)}): of {len(subjects)} subjects that says nothing; use a smaller number"
            )

    def to_json(self) -> dict[str, Any]:
        """For the record; fields at their default are left out."""
        kept = {f.name for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: value for name, value in asdict(self).items() if name in kept}


@dataclass(frozen=True, slots=True, repr=False)
class StudyMetric(NoVerdict):
    """A quantity that gates can be set on, bound to its result; every method gives a `Verdict`.

    `subject` is whom the gate is about, the candidate when omitted.
    """

    name: str
    result: StudyResult

    def __post_init__(self) -> None:
        if self.result.on_metric is not None:
            self.result.on_metric()

    def at_least(
        self, target: float, *, subject: str = "", confidence: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """PASS when the quantity surely reaches `target`, FAIL when it surely does not, with this confidence each."""
        return self._verdict("at_least", value=target, subject=subject, confidence=confidence, then=on_inconclusive)

    def rank_within(
        self, k: int, *, subject: str = "", probability: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """PASS when the subject is among the first `k` with a probability, FAIL when it is not, with the same."""
        return self._verdict("rank_within", value=k, subject=subject, probability=probability, then=on_inconclusive)

    def above(
        self, name: str, *, subject: str = "", probability: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """PASS when the subject's quantity is higher than that of `name` with a probability, FAIL when it is not."""
        return self._verdict("above", name=name, subject=subject, probability=probability, then=on_inconclusive)

    def _verdict(self, kind: str, *, then: str, **more: Any) -> Verdict:
        return self.result.verdict(StudyCondition(self.name, kind, on_inconclusive=then, **more))

    def __repr__(self) -> str:
        return f"{self.name} of {self.result.name}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StudyResult(NoVerdict):
    """What a study found, and the door to its gates: ``result.score.at_least(3.5)``.

    Parameters
    ----------
    name : str
        The evaluation's name.
    kind : str
        Such as ``peers``.
    candidate : str
        The subject that gates are about when they name no other.
    subjects : tuple of str
        All of them, in the order of `quantities`.
    metrics : tuple of str
        What is measured, the leading one first, also where the study is void.
    quantities : mapping of str to (Measured or Bounded)
        By metric, as far as known.
    asked, size : int
        Units that counted, and those that were held.
    unit : str
        What is counted, such as ``rounds``.
    error : str
        Why the study is void; empty otherwise.
    broken : bool
        It is void for a fault of the run: what was said so far is of use to the next.
    unsure : str
        Why its numbers carry no claim; empty where they do.
    absent : mapping of str to str
        Subjects of which nothing is known for no fault of the run, and why.
    notes : tuple of str
        Shown with every verdict.
    seed : int
        Of the draws of ranks.
    account : mapping
        Everything that the study found, as plain JSON data.
    costs : mapping
        Plain JSON data.
    members : tuple of mapping
        Who the subjects are: `SubjectIdentity.to_json`, in their order.
    family : int
        Conditions that FAIL verdicts are corrected for.
    on_verdict : callable, optional
        Takes each verdict asked for, and returns the one to use.
    on_metric : callable, optional
        Told when a metric is taken, of which a verdict is to be asked for.
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
    account: Mapping[str, Any] = field(default_factory=dict)
    costs: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[Mapping[str, Any], ...] = ()
    family: int = 0
    on_verdict: Callable[[Verdict], Verdict] | None = None
    on_metric: Callable[[], object] | None = None

    def __getattr__(self, name: str) -> StudyMetric:
        """A metric of the study, such as ``score``."""
        if name.startswith("_") or name == "metrics":
            raise AttributeError(name)
        if name not in self.metrics:
            raise AttributeError(f"{self.name} measures no {name!r}; use {', '.join(self.metrics)}")
        return StudyMetric(name, self)

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {self.size} {self.unit}>"

    def verdict(self, condition: StudyCondition) -> Verdict:
        """The verdict on a condition, told to `on_verdict`, which may change it."""
        verdict = self.judge(condition)
        return self.on_verdict(verdict) if self.on_verdict else verdict

    def judge(self, condition: StudyCondition) -> Verdict:
        """What the study says about a condition.

        Raises
        ------
        ConfigError
            The study does not measure that, or not of that subject.
        """
        try:
            condition.check(self.metrics, self.subjects, self.candidate)
        except ConfigError as error:
            raise ConfigError(f"{self.name}: {error}") from None
        who = condition.subject or self.candidate
        verdict = Verdict(
            Outcome.ERROR,
            f"{condition.metric.replace('_', ' ')} of {who}",
            condition.requirement,
            None,
            condition.probability if condition.by_rank else condition.confidence,
            self.asked,
            self.size,
            self.notes,
            condition.on_inconclusive,
            condition=condition.to_json(),
            unit=self.unit,
        )
        if self.error:
            return replace(verdict, notes=(self.error, *self.notes))
        measured = self.quantities[condition.metric]
        unknown = [name for name in (who, condition.name) if name and not measured.known(self.subjects.index(name))]
        if self.unsure:
            return replace(verdict, outcome=Outcome.INCONCLUSIVE, notes=(self.unsure, *self.notes))
        if unknown and unknown[0] in self.absent:
            return replace(verdict, outcome=Outcome.INCONCLUSIVE, notes=(self.absent[unknown[0]], *self.notes))
        if unknown:
            return replace(verdict, notes=(f"nothing is known of the {condition.metric} of {unknown[0]}", *self.notes))
        if not condition.by_rank:
            return self._by_bounds(condition, measured, who, verdict)
        if isinstance(measured, Bounded):
            raise ConfigError(f"{self.name}: {condition.metric} ranks nobody: gate on it by at_least")
        return self._by_rank(condition, measured, who, verdict)

    def _by_bounds(
        self, condition: StudyCondition, measured: Measured | Bounded, who: str, verdict: Verdict
    ) -> Verdict:
        place = self.subjects.index(who)
        corrected = 1.0 - (1.0 - condition.confidence) / max(self.family, 1)
        shown, wide = (measured.interval(place, level) for level in (condition.confidence, corrected))
        outcome = Outcome.INCONCLUSIVE
        if shown.low >= condition.value:
            outcome = Outcome.PASS
        elif wide.high < condition.value:
            outcome = Outcome.FAIL
        return replace(verdict, outcome=outcome, interval=shown)

    def _by_rank(self, condition: StudyCondition, measured: Measured, who: str, verdict: Verdict) -> Verdict:
        place, needed = self.subjects.index(who), condition.probability
        absent = [name for other, name in enumerate(self.subjects) if not measured.known(other)]
        if condition.kind == "above":
            other = self.subjects.index(condition.name)
            probability = most = measured.above(place, other)
            own, others = (number(float(measured.values[one])) for one in (place, other))
            what = f"{condition.metric} of {who} ({own}) above {condition.name} ({others})"
        else:
            ranks = measured.ranks(self.seed)[place]
            k = int(condition.value)  # those of whom nothing is known may all be better, or all be worse
            probability, most = (float(ranks.probabilities[:n].sum()) for n in (max(k - len(absent), 0), k))
            if absent:
                who_knows = f"nothing is known of {', '.join(absent)}, who may be better or worse"
                verdict = replace(verdict, notes=(who_knows, *verdict.notes))
            best, worst = ranks.interval(needed)
            what = f"{condition.metric} of {who}: rank {ranks.mean:.1f} [{best}, {worst}] of {len(ranks.probabilities)}"
            what += f", {condition.requirement}"
        outcome = Outcome.PASS if probability >= needed else Outcome.INCONCLUSIVE
        if most <= 1.0 - needed:
            outcome = Outcome.FAIL
        stated = f"{what} with probability {number(probability)}, {number(needed, 2)} required"
        return replace(verdict, outcome=outcome, stated=stated)

    def findings(self) -> dict[str, list[dict[str, Any]]]:
        """By metric, a row a subject: estimate, bounds and their confidence, standard error, and its rank."""
        return {metric: self._rows(measured) for metric, measured in self.quantities.items()}

    def _rows(self, measured: Measured | Bounded) -> list[dict[str, Any]]:
        if isinstance(measured, Bounded):
            known = [place for place in range(len(self.subjects)) if measured.known(place)]
            return [{"subject": self.subjects[place], **measured.interval(place).to_json()} for place in known]
        rows: list[dict[str, Any]] = []
        ranks = measured.ranks(self.seed)
        for place, name in enumerate(self.subjects):
            row: dict[str, Any] = {"subject": name}
            if measured.known(place):
                row |= measured.interval(place).to_json()
                row["error"] = math.sqrt(max(float(measured.covariance[place, place]), 0.0))
                best, worst = ranks[place].interval(CONFIDENCE)
                row["rank"] = {"mean": ranks[place].mean, "best": best, "worst": worst}
            elif np.isfinite(measured.values[place]):
                row["estimate"] = float(measured.values[place])
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """What travels between processes; `from_json` takes it back, but for quantities known by bounds alone."""
        own = ("family", "on_verdict", "on_metric")
        told = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in own}
        return {
            **told,
            "quantities": {
                metric: measured.to_json()
                for metric, measured in self.quantities.items()
                if isinstance(measured, Measured)
            },
            **{name: list(told[name]) for name in ("subjects", "metrics", "notes", "members")},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, family: int = 0) -> StudyResult:
        """Read back what `to_json` gave."""
        quantities = {metric: Measured.from_json(one) for metric, one in data["quantities"].items()}
        lists = {name: tuple(data[name]) for name in ("subjects", "metrics", "notes", "members")}
        return cls(**{**data, **lists, "quantities": quantities, "family": family})


def _told(value: float) -> float | None:
    return value if math.isfinite(value) else None
