"""Gate conditions, the interface of the metrics that interpret them, and decisions by bounds and probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.claims.answer_scores import MirroredClaim
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.metrics import REGISTERED, load_metric, metric_names, recorded_metric
from pytest_adaptive_eval.gates.verdict import AT_MOST, CORRECTED, Outcome, Verdict
from pytest_adaptive_eval.gone import refuse_gone_setting
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.text import number, similar

if TYPE_CHECKING:
    from pytest_adaptive_eval.cat.policy import Policy
    from pytest_adaptive_eval.claims.paired import Baseline
    from pytest_adaptive_eval.gates.outlook import Outlook
    from pytest_adaptive_eval.inference.betting import Claim
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb

LadderPolicy: TypeAlias = "Climb | AdaptiveClimb"


class _Judged(Protocol):
    def judge_quantity(self, condition: Condition, verdict: Verdict) -> Verdict: ...


Result_contra = TypeVar("Result_contra", bound=_Judged, contravariant=True)

#: Condition kinds, each with the name of its argument.
KINDS: Mapping[str, str] = {
    "at_least": "target",
    "at_most": "target",
    "not_worse_than": "margin",
    "rank_within": "k",
    "above": "name",
}
LIMITS = ("at_least", "at_most")  #: Kinds with a limit that is written.
RANKS = ("rank_within", "above")  #: Kinds that compare with other subjects.
ON_INCONCLUSIVE = ("fail", "warn", "pass")
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
LIKE_QUESTIONS = "like-questions"  #: Test of an accuracy that takes the bank for a sample of questions like these.
METHODS = ("draws", LIKE_QUESTIONS)  #: Tests that may decide a condition.


class Metric(Generic[Result_contra]):
    """A quantity on which gates set conditions.

    Subclasses set the attributes and override the methods that differ from these defaults, which describe a quantity of
    an interview that is decided by `judge` alone, without bets, forecast or figure.

    Attributes:
        name: Name in TOML files, results and records; the name of the metric's file, unless it holds a number.
        description: One line for help, the table in the docs and exports.
        plain: What a value is in a sentence for anybody, such as ``right`` after ``75 %``; by default the name says it.
        minimum, maximum: Range of the values; None without a limit.
        kinds: Condition kinds that the metric has.
        margin: Bound above a margin, and what is expected of one, with an example; None if margins are not checked.
        on_banks: True if interviews of a bank measure it; a metric of other kinds alone sets False.
        by_scores: True if the answers' scores decide it, and not other values that the run measured.
        by_bets: True if bets on the draws decide ``at_least`` and ``not_worse_than``.
        by_levels: True if a ladder decides it level by level, from items that need not be drawn at random.
        whole_budget: True if the interview must use its whole budget, since no stopping rule serves the metric.
        whole_bank: Subject of the metric's series in figures and histories.
        digits: Digits after the point in histories.
        least_height: Least height of a panel of the history figure, in the metric's unit.
    """

    name: str
    description: str
    unit: str = ""
    plain: str = ""
    minimum: float | None = None
    maximum: float | None = None
    kinds: ClassVar[tuple[str, ...]] = ("at_least",)
    margin: tuple[float, str] | None = None
    by_scores: ClassVar[bool] = True
    on_banks: ClassVar[bool] = True
    by_bets: ClassVar[bool] = False
    by_levels: ClassVar[bool] = False
    whole_budget: ClassVar[bool] = False
    whole_bank: ClassVar[str] = "whole bank"
    digits: ClassVar[int] = 2
    least_height: ClassVar[float] = 1.0

    @property
    def is_share(self) -> bool:
        """True if values lie in [0, 1] and are drawn on that scale."""
        return (self.minimum, self.maximum) == (0.0, 1.0)

    def component(self, name: str) -> Metric[Result_contra]:
        """Return the metric of one component, such as ``cross`` of ``ability.cross``, or raise a ConfigError."""
        raise ConfigError(f"{self.name} has no part {name!r}: only abilities have parts; use {self.name}")

    def bounded(self, within: float | None, cap: float | None) -> Metric[Result_contra]:
        """Return the metric with the bounds of a condition, or raise a ConfigError where it takes none."""
        if within is None and cap is None:
            return self
        raise ConfigError(
            f"{self.name}: within and cap are for values that the run measures, such as seconds: remove them"
        )

    def quantity(self, condition: Condition) -> str:
        """Return the name of the measured quantity, as shown in verdicts."""
        name = self.name.replace("_", " ")
        if condition.kind == "not_worse_than":
            return f"{name} less that of {condition.name}"
        return name

    def among(self, metrics: Sequence[str]) -> str:
        """Return the name of the quantity of an evaluation that measures `metrics`, for gates in TOML files."""
        return self.name

    def methods(self, kind: str) -> tuple[str, ...]:
        """Return the tests that may decide a condition kind."""
        return ("draws",)

    def check_value(self, condition: Condition) -> None:
        """Refuse a value outside the metric's range, by a ConfigError with the call, the value and the range."""
        if condition.kind == "not_worse_than" and self.margin and not 0 < condition.value < self.margin[0]:
            raise ConfigError(f"margin is {condition.value!r}, expected {self.margin[1]}")

    def call(self, condition: Condition) -> str:
        """Return a condition as a call, such as ``accuracy.at_least(0.6)``, for errors."""
        return f"{condition.metric}.{condition.kind}({condition.value!r})"

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank that lacks the data of the condition; `climbed` if a ladder of a task is administered.

        Raises:
            ConfigError: Names what is missing.
        """
        if self.by_levels and not climbed:
            raise ConfigError(
                f"{self.name} is of a task that is climbed: write task= and no policy, or gate on accuracy"
            )

    def distance(self, share: float) -> str:
        """Return a distance from a threshold in words, as a share of the range."""
        return f"{100 * share:g} points"

    def is_upper(self, condition: Condition) -> bool:
        """Return whether a condition is an upper limit."""
        return condition.kind == "at_most"

    def check_samples(self, condition: Condition, samples: int) -> None:
        """Refuse a number of samples of each item that cannot measure the metric, by a ConfigError."""

    def check_ladder(self, ladder: LadderPolicy) -> None:
        """Refuse a ladder whose answers do not measure the metric; the ConfigError names the setting to remove."""

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claims that must all hold for a PASS; empty if no bets decide the condition."""
        return ()

    def denials(self, condition: Condition, bank: ItemBank | None) -> int:
        """Return the number of claims whose denial is corrected for all claims of the run; not all have a bank."""
        return int(not condition.by_rank)

    def judge(self, result: Result_contra, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict on a result with some score; `verdict` lacks the outcome, the interval and own notes.

        The default judges the quantity of the metric's name.
        """
        return result.judge_quantity(condition, verdict)

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the items that a verdict takes if the truth is a `margin` from the threshold; empty if not known."""
        return []


def find_metric(name: str, *, recorded: bool = False) -> Metric[Any]:
    """Return the metric of a name such as ``accuracy``, ``ability.cross`` or ``pass^3``.

    Args:
        recorded: Whether another name may be a field that tests record.

    Raises:
        ConfigError: The metric is unknown, or has no components.
    """
    stem, dot, component = name.partition(".")
    try:
        metric: Metric[Any] = load_metric(stem)
    except KeyError:
        if recorded and name.isidentifier():
            of_field: Metric[Any] = recorded_metric(name)
            return of_field
        raise ConfigError(
            f"metric {name!r} is not known; {similar(stem, metric_names())}use {', '.join(metric_names())}, or a field "
            "that tests record, with within or cap"
        ) from None
    if dot:
        return metric.component(component)
    return metric


def registered_metric(name: object) -> Metric[Any] | None:
    """Return the metric of a name from a file or a record, or None if there is none."""
    try:
        return find_metric(str(name))
    except ConfigError:
        return None


def register_metrics(provided: Iterable[Iterable[Metric[Any]]]) -> None:
    """Make the metrics of other packages known everywhere, in place of those registered before.

    Raises:
        ConfigError: Two metrics have one name.
    """
    REGISTERED.clear()
    for metric in chain.from_iterable(provided):
        if not isinstance(metric, Metric):
            raise ConfigError(f"pytest_adaptive_eval_metrics gave {metric!r:.80}, expected a Metric")
        if metric.name in metric_names():
            raise ConfigError(f"plugins provide the metric {metric.name!r} more than once: rename one of them")
        REGISTERED[metric.name] = metric


def as_share(value: float) -> str:
    """Return the end of an error on a share above 1, which may be in percent; empty for other values."""
    if 1 < value <= 100:
        return f'; for {value:g} % write {value / 100:g} or "{value:g}%"'
    return ""


@dataclass(frozen=True, slots=True)
class Condition:
    """One requirement on one metric.

    Args:
        metric: Name of a metric, ``ability.PART`` on a bank administered in formats, ``pass^K`` or ``pass@K`` of K
            samples, or with `within` or `cap` a field that tests record.
        value: Target, margin or k; 0 for ``above``. A text such as ``"60%"`` is read as a share.
        name: The baseline or the subject to compare with.
        confidence: 1 - alpha of each one-sided decision, in [0.5, 1).
        probability: Required probability of a rank condition, in (0.5, 1).
        within: Bound of a measured value, whose metric is then the share of answers up to it.
        cap: Value at which measured values are cut, whose metric is then their mean.
        method: Bets on the draws; of an accuracy also ``like-questions``, which takes the bank for a sample.

    Raises:
        ConfigError: A value is out of range, or the metric has no such condition.
    """

    metric: str
    kind: str
    value: float = 0.0
    name: str = ""
    confidence: float = 0.95
    probability: float = 0.95
    on_inconclusive: str = "fail"
    method: str = "draws"
    subject: str = ""
    within: float | None = None
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"condition {self.kind!r} is not known; use {', '.join(KINDS)}")
        check_faults(self._faults_of_bounds())
        written: object = self.value
        if isinstance(written, str):
            object.__setattr__(self, "value", self._share(written))
        check_faults(chain(self._faults_of_value(), self._faults_of_decision()))
        self.measure.check_value(self)
        ends = {"at_least": (1.0, self.measure.minimum, "lowest"), "at_most": (-1.0, self.measure.maximum, "highest")}
        sign, end, furthest = ends.get(self.kind, (1.0, None, ""))
        if end is not None and sign * self.value <= sign * end:
            raise ConfigError(
                f"{self.measure.call(self)}: every {self.quantity} is {self.kind.replace('_', ' ')} {end:g}, so the "
                f"gate cannot fail; write the {furthest} value that you would accept"
            )

    def _faults_of_bounds(self) -> Iterator[str]:
        """Yield what is wrong with `within` and `cap`."""
        for name in ("within", "cap"):
            bound: object = getattr(self, name)
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if bound is not None and not (number and math.isfinite(bound) and bound > 0):  # type: ignore[arg-type, operator]
                yield f"{name} is {bound!r}, expected a number above 0 in the unit of {self.metric}, such as 2.0"

    def _share(self, text: str) -> float:
        """Return the number of a text such as ``"60%"``."""
        match = _SHARE.fullmatch(text)
        if match is None or self.kind in RANKS:
            raise ConfigError(f'{self.measure.call(self)}: expected a number such as 0.6, or a share such as "60%"')
        if self.measure.maximum != 1.0:
            raise ConfigError(f"{self.measure.call(self)}: {self.metric} is not a share: write a number without %")
        return float(Fraction(match[1]) / 100)

    def _faults_of_value(self) -> Iterator[str]:
        """Yield what is wrong with the kind, the value and the name, the first that matters first."""
        kinds = self.measure.kinds
        if self.kind not in kinds:
            yield f"{self.metric}.{self.kind}: {self.metric} has no such condition; use {', '.join(kinds)}"
        if isinstance(self.value, bool) or not isinstance(self.value, int | float) or not math.isfinite(self.value):
            yield f"{self.measure.call(self)}: expected a number"
        if self.kind == "rank_within" and (self.value != int(self.value) or self.value < 1):
            yield f"rank_within({self.value!r}): expected a whole number of at least 1"
        if self.kind in ("not_worse_than", "above") and not self.name:
            yield f"{self.kind}: expected the name of a subject to compare with"

    def _faults_of_decision(self) -> Iterator[str]:
        """Yield what is wrong with the settings of the test."""
        if not isinstance(self.confidence, float) or not 0.5 <= self.confidence < 1:
            yield f"confidence is {self.confidence!r}, expected a number in [0.5, 1) such as 0.95"
        if not isinstance(self.probability, float) or not 0.5 < self.probability < 1:
            yield f"probability is {self.probability!r}, expected a number in (0.5, 1) such as 0.95"
        if self.probability != 0.95 and not self.by_rank:
            yield (
                f"probability is {self.probability!r}, and it goes with ranks of panels and networks alone: write "
                "confidence"
            )
        if self.on_inconclusive not in ON_INCONCLUSIVE:
            others = ", ".join(ON_INCONCLUSIVE[:-1])
            last = ON_INCONCLUSIVE[-1]
            yield f"on_inconclusive is {self.on_inconclusive!r}, expected {others} or {last}"
        methods = self.measure.methods(self.kind)
        if self.method not in methods:
            refuse_gone_setting(f"method {self.method}")
            expected = " or ".join(map(repr, methods))
            yield f"method is {self.method!r}, expected {expected} for {self.metric}.{self.kind}"

    @property
    def measure(self) -> Metric[Any]:
        """Metric of the condition."""
        bounds = self.within, self.cap
        return find_metric(self.metric, recorded=bounds != (None, None)).bounded(*bounds)

    @property
    def label(self) -> str:
        """Name of the gate's test, such as ``accuracy-at-least-0.6``."""
        value = () if self.kind == "above" else (f"{self.value:g}",)
        subject = ("of", self.subject) if self.subject else ()
        bounds = []
        for name in ("within", "cap"):
            if (bound := getattr(self, name)) is not None:
                bounds += [name, f"{bound:g}"]
        label = "-".join(
            (self.metric, *bounds, self.kind.replace("_", "-"), *value, *filter(None, [self.name]), *subject)
        )
        if self.measure.on_banks and not self.subject:
            return label  # baselines are files and evaluations, whose names a node id can hold
        return re.sub(r"[^\w.+-]+|::", "_", label)

    @property
    def requirement(self) -> str:
        """Requirement as shown in verdicts, such as ``>= .60``."""
        if self.kind == "rank_within":
            return f"within the first {int(self.value)}"
        if self.kind == "above":
            return f"above {self.name}"
        upper = self.measure.is_upper(self)
        if self.kind == "not_worse_than" and not upper:
            bound = -self.value
        else:
            bound = self.value
        return f"{AT_MOST if upper else '>= '}{threshold_text(bound)}"

    @property
    def quantity(self) -> str:
        """Name of the measured quantity, as shown in verdicts."""
        return self.measure.quantity(self)

    @property
    def by_draws(self) -> bool:
        """True if bets on the draws decide the condition."""
        return self.measure.by_bets and not self.by_rank and self.method == "draws"

    @property
    def by_rank(self) -> bool:
        """True if the condition compares subjects of one evaluation; on banks it requires an accuracy."""
        return self.kind in RANKS and not self.measure.by_bets

    @property
    def whole(self) -> bool:
        """True if the condition needs the whole budget, since no stopping rule serves it."""
        return self.by_rank or self.measure.whole_budget or self.method == LIKE_QUESTIONS

    def denials(self, bank: ItemBank | None) -> int:
        """Return the number of claims whose denial is corrected for all claims of the run."""
        return self.measure.denials(self, bank)

    def claims(self, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claims that must all hold for a PASS. Rank conditions have none."""
        claims = self.measure.claims(self, bank, baselines)
        if self.kind == "at_most":
            return tuple(MirroredClaim.of(claim, len(bank)) for claim in claims)
        return claims

    def check(self, bank: ItemBank, *, climbed: bool = False) -> None:
        """Refuse a bank that lacks the data of the condition.

        Raises:
            ConfigError: The bank has no ability scale, no levels, or no such reference subject.
        """
        if not self.measure.on_banks:
            raise ConfigError(f"the bank {bank.name!r} has no {self.metric}, which other kinds have: gate on accuracy")
        if self.subject:
            raise ConfigError(f"an interview has one subject: remove subject = {self.subject!r}")
        self.measure.check_bank(self, bank, climbed=climbed)

    def check_subjects(self, metrics: Sequence[str], subjects: Sequence[str], candidate: str) -> None:
        """Refuse a quantity that is not measured, or an unknown subject.

        Raises:
            ConfigError: Another quantity, an unknown subject, or a subject that is to be above itself.
        """
        check_faults(self._faults_of_subjects(metrics, subjects, candidate))

    def _faults_of_subjects(self, metrics: Sequence[str], subjects: Sequence[str], candidate: str) -> Iterator[str]:
        if self.metric not in metrics:
            yield f"metric {self.metric!r} is not known; use {', '.join(metrics)}"
        other = "" if self.kind == "not_worse_than" else self.name  # a baseline is no subject
        for name in filter(None, (self.subject, other)):
            if name not in subjects:
                yield f"{name!r} is not a subject; use {', '.join(subjects)}"
        if self.kind == "above" and self.name == (self.subject or candidate):
            yield f"{self.name!r} cannot be above itself: name another"
        if self.kind == "rank_within" and self.value >= len(subjects):
            yield f"rank_within({int(self.value)}) holds for each of the {len(subjects)} subjects; use a smaller number"

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their default, for the record."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}


def threshold_text(value: float) -> str:
    """Return a threshold with two digits if it has no more, else three, and two that count of one below .01."""
    if round(value, 2) == value:
        return number(value, 2)
    if abs(value) < 0.01 and round(value, 3) != value:
        return number(value, 1 - math.floor(math.log10(abs(value))))
    return number(value)


def with_note(verdict: Verdict, note: str, outcome: Outcome | None = None) -> Verdict:
    """Return the verdict with a note before all others, and with another outcome if given."""
    return replace(verdict, notes=(note, *verdict.notes), outcome=verdict.outcome if outcome is None else outcome)


def corrected_confidence(confidence: float, family: int) -> float:
    """Return the confidence of a FAIL among `family` claims (Bonferroni)."""
    return 1.0 - (1.0 - confidence) / max(family, 1)


def undecided_interval(
    interval: Interval, family: int, interval_at: Callable[[float], Interval], required: float
) -> Interval:
    """Return the interval of an INCONCLUSIVE verdict; an upper bound that alone would deny is raised to `required`."""
    if interval.high >= required or family < 2:
        return interval
    high = interval_at(corrected_confidence(interval.confidence, family)).high
    return replace(interval, high=max(high, required), method=f"{interval.method}{CORRECTED}{family} claims (Holm)")


def decide_by_bounds(
    verdict: Verdict, condition: Condition, family: int, interval_at: Callable[[float], Interval], required: float
) -> Verdict:
    """Return the verdict of bounds: PASS if the lower reaches `required`, FAIL if the corrected upper does not.

    An upper limit is a lower one of the value with the other sign.
    """
    if not condition.measure.is_upper(condition):
        return _decide_lower(verdict, condition, family, interval_at, required)
    judged = _decide_lower(verdict, condition, family, lambda level: interval_at(level).negated, -required)
    assert judged.interval is not None
    return replace(judged, interval=judged.interval.negated)


def _decide_lower(
    verdict: Verdict, condition: Condition, family: int, interval_at: Callable[[float], Interval], required: float
) -> Verdict:
    interval = interval_at(condition.confidence)
    outcome = Outcome.INCONCLUSIVE
    if interval.low >= required:
        outcome = Outcome.PASS
    elif interval_at(corrected_confidence(condition.confidence, family)).high < required:
        outcome = Outcome.FAIL
    else:
        interval = undecided_interval(interval, family, interval_at, required)
    return replace(verdict, outcome=outcome, interval=interval)


def decide_by_confidence(verdict: Verdict, condition: Condition, fact: str, holds: float, refused: float) -> Verdict:
    """Return the verdict of a rank or a comparison, by the confidences with which it holds and does not."""
    required = condition.probability
    outcome = Outcome.INCONCLUSIVE
    if holds >= required:
        outcome = Outcome.PASS
    elif refused >= required:
        outcome = Outcome.FAIL
    stated = f"{fact} with confidence {number(holds)}, {number(required, 2)} required"
    return replace(verdict, outcome=outcome, stated=stated)
