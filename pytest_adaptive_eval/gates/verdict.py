"""Verdicts of gates, and their outcomes."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.interval import ABILITY_BOUND, Interval
from pytest_adaptive_eval.text import number

#: Part of the method of an interval whose upper bound is corrected for several claims; their number follows.
CORRECTED = ", upper bound corrected for "
LIKELIHOOD_RATIO = "likelihood ratio"  #: Method of intervals of abilities in records of earlier versions.


class Outcome(enum.StrEnum):
    """Outcome of a gate."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"

    def __bool__(self) -> bool:
        """Refuse: every outcome is a non-empty text, and ``assert verdict.outcome`` would hold for every model."""
        raise ConfigError(f"the outcome {self.value} is neither true nor false: assert the verdict, or compare it")


AT_MOST = "<= "  #: Start of the requirement of an upper limit.
_RELATIONS = {Outcome.PASS: ">=", Outcome.FAIL: "<", Outcome.INCONCLUSIVE: "against"}
_UPPER_RELATIONS = {Outcome.PASS: "<=", Outcome.FAIL: ">", Outcome.INCONCLUSIVE: "against"}


def claim_in_words(outcome: Outcome, metric: str, requirement: str, bounds: Sequence[float | None], method: str) -> str:
    """Return a result beside its requirement, ``accuracy .750 [.607, .867] >= .60``.

    An ability that the accuracy implies is called so, since an interview has another by the bank's model. Where its
    interval reaches an end of the scale, nothing is known beyond the other bound, which stands alone.

    Args:
        bounds: Estimate, lower and upper bound; None where a record lacks one.
    """
    digits = 3
    if small := re.match(r"[<>]= -?\d*\.(\d{4,})", requirement):
        digits = len(small[1]) + 1
    estimate, low, high = ("-" if value is None else number(value, digits) for value in bounds)
    estimate_text = f"{estimate} [{low}, {high}]"
    if metric == "ability" and method != LIKELIHOOD_RATIO:
        metric = "ability by accuracy"
        open_below, open_above = (value is not None and abs(value) >= ABILITY_BOUND for value in bounds[1:])
        if open_below and open_above:
            estimate_text = "unknown,"
        elif open_below or open_above:
            if open_below:
                estimate_text = f"at most {high},"
            else:
                estimate_text = f"at least {low},"
    if CORRECTED in method:
        estimate_text += f" corrected for {method.partition(CORRECTED)[2]}"
    if requirement.startswith(AT_MOST):
        relations = _UPPER_RELATIONS
    else:
        relations = _RELATIONS
    bound = requirement.removeprefix(">= ").removeprefix(AT_MOST)
    return f"{metric} {estimate_text} {relations.get(outcome, 'for')} {bound}"


class NoVerdict:
    """Base class of objects that are not verdicts: a plain ``assert`` of one would hold for every model."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Refuse by a ConfigError, since the object has no truth value."""
        raise self._refusal()

    def _refusal(self) -> ConfigError:
        return ConfigError(f"{self!r} is not a verdict and has no truth value: call a condition such as .at_least(0.6)")

    def __lt__(self, other: object) -> bool:
        raise self._refusal()

    __le__ = __gt__ = __ge__ = __lt__


@dataclass(frozen=True, slots=True)
class Verdict:
    """Conclusion of a gate; true for PASS, and for INCONCLUSIVE if the gate allows it.

    Args:
        requirement: Requirement as shown to users, such as ``>= .60``.
        interval: Interval in the metric's unit; None without an estimate.
        confidence: 1 - alpha of each one-sided claim.
        asked, size: Items administered, items in the bank.
        on_inconclusive: Effect of an INCONCLUSIVE verdict on the gate.
        stated: Result and requirement in words, where the interval does not decide.
        notice: The gate has no reference yet, such as the baseline of a first run. It is allowed to pass, and promotes
            nothing.
        unanswered: Answers that were empty, refused or cut, such as ``10 of 40 empty``; empty without any.
        caveat: What readers must know of the test that judged the answers, such as that it was not probed; empty for
            most.
        decided_after: Items after which it was final, where other gates or answers in flight made the interview longer.

    Attributes:
        sentence: The verdict in one line that needs no context.
    """

    outcome: Outcome
    metric: str = ""
    requirement: str = ""
    interval: Interval | None = None
    confidence: float = 0.95
    asked: int = 0
    size: int = 0
    notes: tuple[str, ...] = ()
    on_inconclusive: str = "fail"
    stated: str = ""
    condition: Mapping[str, Any] = field(default_factory=dict)
    notice: bool = False
    unit: str = "items"
    unanswered: str = ""
    caveat: str = ""
    decided_after: int | None = None
    sentence: str = field(default="", init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", self._sentence())

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS or self.allowed

    @property
    def allowed(self) -> bool:
        """True if the gate allows its INCONCLUSIVE verdict."""
        return self.outcome is Outcome.INCONCLUSIVE and (self.notice or self.on_inconclusive != "fail")

    @property
    def claim(self) -> str:
        """Measured value and requirement, without the outcome."""
        if self.stated or self.interval is None:
            return self.stated or f"{self.metric} {self.requirement} required"
        i = self.interval
        bounds = i.estimate, i.low, i.high
        return f"{claim_in_words(self.outcome, self.metric, self.requirement, bounds, i.method)} required"

    def _sentence(self) -> str:
        """Return the verdict in one line that needs no context."""
        parts = [f"{self.outcome.value} {self.claim}"]
        if not self.stated:
            parts.append(f"{100 * self.confidence:.4g} %")
        if self.size:
            parts.append(f"{self.asked} of {self.size} {self.unit}")
        parts += filter(None, [self.unanswered, self.caveat])
        if self.interval is not None and not self.stated:
            parts.append(self.interval.method.partition(CORRECTED)[0])  # the claim names the correction
        if self.allowed and not self.notice:
            parts.append(f"let through by on_inconclusive = {self.on_inconclusive}")
        return ", ".join(parts) + "".join(f"; {' '.join(note.split())}" for note in dict.fromkeys(self.notes))

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        outcome, _, rest = self.sentence.partition(" ")
        return f"<b>{escape(outcome)}</b> {escape(rest)}"

    def to_json(self) -> dict[str, Any]:
        """Return the verdict as a record has it."""
        out = asdict(self)
        out["outcome"] = self.outcome.value
        out["notes"], out["condition"] = list(self.notes), dict(self.condition)
        for name in ("unanswered", "caveat", "decided_after"):
            if not out[name]:
                del out[name]
        return out
