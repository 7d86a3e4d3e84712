"""What a gate concludes, in a sentence that can be read alone."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.text import number

__all__ = ["NoVerdict", "Outcome", "Verdict"]


class Outcome(enum.StrEnum):
    """What a gate concludes."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"

    def __bool__(self) -> bool:
        """Refuse, as every outcome is a text: ``assert verdict.outcome`` would hold for every model.

        Raises
        ------
        ConfigError
            Always.
        """
        raise ConfigError(f"the outcome {self.value} is neither true nor false: assert the verdict, or compare it")


class NoVerdict:
    """What gates are set on, and which nobody shall take for a verdict: ``assert`` of it would hold for every model."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Refuse.

        Raises
        ------
        ConfigError
            Always.
        """
        raise self._refusal()

    def _refusal(self) -> ConfigError:
        return ConfigError(f"{self!r} is no verdict, and is there for every model: ask for one, as with .at_least(0.6)")

    def __lt__(self, other: object) -> bool:
        raise self._refusal()

    __le__ = __gt__ = __ge__ = __lt__


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's conclusion; true for PASS, and for INCONCLUSIVE where the gate was told to let that through.

    Parameters
    ----------
    outcome : Outcome
    metric : str
        What was asked of, such as ``accuracy``, ``ability`` or ``auc``.
    requirement : str
        As a person would write it, such as ``>= .60``.
    interval : Interval or None
        In the metric's own unit; None when there is nothing to show.
    confidence : float
        1 - alpha of each one-sided claim.
    asked, size : int
        Items administered, items in the bank.
    notes : tuple of str
        What a reader must know besides.
    stated : str
        What was found against what is required, where an interval does not say it.
    on_inconclusive : {"fail", "warn", "pass"}
        What an INCONCLUSIVE verdict does to the gate.
    condition : mapping
        `Condition.to_json` of what was judged, for judging it again.
    notice : bool
        The gate has nothing to judge against yet, as a first run has no
        baseline: it is let through, and promotes nothing.
    unit : str
        What `asked` and `size` count.
    """

    outcome: Outcome
    metric: str
    requirement: str
    interval: Interval | None
    confidence: float
    asked: int
    size: int
    notes: tuple[str, ...] = ()
    on_inconclusive: str = "fail"
    stated: str = ""
    condition: Mapping[str, Any] = field(default_factory=dict)
    notice: bool = False
    unit: str = "items"

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS or self.allowed

    @property
    def allowed(self) -> bool:
        """Whether the gate lets an undecided verdict through, as it was told to."""
        return self.outcome is Outcome.INCONCLUSIVE and (self.notice or self.on_inconclusive != "fail")

    @property
    def sentence(self) -> str:
        """One line that can be read alone."""
        claim = self.stated or f"{self.metric} {self.requirement} required"
        if self.interval is not None:
            i = self.interval
            relation = {Outcome.PASS: ">=", Outcome.FAIL: "<", Outcome.INCONCLUSIVE: "against"}.get(self.outcome, "for")
            target = self.requirement.removeprefix(">= ")
            claim = (
                f"{self.metric} {number(i.estimate)} [{number(i.low)}, {number(i.high)}] {relation} {target} required"
            )
        parts = [f"{self.outcome.value} {claim}"]
        if not self.stated:
            parts.append(f"{100 * self.confidence:.4g} %")
        parts.append(f"{self.asked} of {self.size} {self.unit}")
        if self.interval is not None:
            parts.append(self.interval.method)
        if self.allowed and not self.notice:
            parts.append(f"let through by on_inconclusive = {self.on_inconclusive}")
        return ", ".join(parts) + "".join(f"; {' '.join(note.split())}" for note in self.notes)

    def __repr__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        out = asdict(self)
        out["outcome"] = self.outcome.value
        out["notes"], out["condition"] = list(self.notes), dict(self.condition)
        out["sentence"] = self.sentence
        return out
