"""Gates: from an interview's result to a verdict."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.conformal import conformal_scale, subjects_needed
from pytest_adaptive_eval.core.inference import hull, with_missing_bounded
from pytest_adaptive_eval.core.interval import Interval
from pytest_adaptive_eval.core.projection import ability_at, accuracy_at, model_based, project
from pytest_adaptive_eval.core.session import DesignLog, Session
from pytest_adaptive_eval.core.stopping import StopReason
from pytest_adaptive_eval.errors import ConfigError

__all__ = ["ERRORS_IN_A_ROW", "ERROR_SHARE", "Metric", "Outcome", "SessionResult", "Verdict", "number"]

#: An interview ends with ERROR after this many infrastructure errors in a row ...
ERRORS_IN_A_ROW = 3
#: ... or when they exceed this share of the budget.
ERROR_SHARE = 0.05


class Outcome(enum.StrEnum):
    """What a gate concludes."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"


def number(value: float, digits: int = 3) -> str:
    """A number as reports show it: ``.512``, ``-1.204``, ``1.000``."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0 turns -0.0 into 0.0
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


@dataclass(frozen=True, slots=True)
class Verdict:
    """A gate's conclusion; true only for PASS.

    Parameters
    ----------
    outcome : Outcome
    metric : str
        ``accuracy`` or ``ability``.
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
    """

    outcome: Outcome
    metric: str
    requirement: str
    interval: Interval | None
    confidence: float
    asked: int
    size: int
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.outcome is Outcome.PASS

    @property
    def sentence(self) -> str:
        """One line that can be read alone."""
        claim = f"{self.metric} {self.requirement} required"
        if self.interval is not None:
            i = self.interval
            relation = {Outcome.PASS: ">=", Outcome.FAIL: "<", Outcome.INCONCLUSIVE: "against"}.get(self.outcome, "for")
            target = self.requirement.removeprefix(">= ")
            claim = (
                f"{self.metric} {number(i.estimate)} [{number(i.low)}, {number(i.high)}] {relation} {target} required"
            )
        parts = [f"{self.outcome.value} {claim}", f"{100 * self.confidence:.4g} %"]
        parts.append(f"{self.asked} of {self.size} items")
        if self.interval is not None:
            parts.append(self.interval.method)
        return ", ".join(parts) + "".join(f"; {' '.join(note.split())}" for note in self.notes)

    def __repr__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        out = asdict(self)
        out["outcome"] = self.outcome.value
        out["notes"] = list(self.notes)
        out["sentence"] = self.sentence
        return out


@dataclass(frozen=True, slots=True, repr=False)
class Metric:
    """A quantity that gates can be set on, bound to its result."""

    name: str
    result: SessionResult

    def at_least(self, target: float, *, confidence: float = 0.95) -> Verdict:
        """PASS when the lower bound reaches `target`, FAIL when the upper bound is below it.

        Parameters
        ----------
        target : float
            Accuracy in [0, 1], or ability in logits on the bank's scale.
        confidence : float
            One-sided, in [0.5, 1).

        Raises
        ------
        ConfigError
            The target or confidence is out of range, or the interview's
            policy admits no valid interval.
        """
        verdict = _at_least(self.result, self.name, target, confidence)
        return self.result.on_verdict(verdict) if self.result.on_verdict else verdict

    def __repr__(self) -> str:
        return f"{self.name} of {self.result.name}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SessionResult:
    """What an interview found, and the door to its gates.

    Parameters
    ----------
    name : str
        The evaluation's name.
    bank : ItemBank
    log : DesignLog
        The administrations, in order.
    theta : list of float or None
        Estimated ability, length D, in logits; None on an uncalibrated bank.
    standard_error : list of float or None
        Of `theta`.
    stop : StopReason or None
        None when the interview was cut off.
    statuses : mapping
        Number of administrations by `Status`.
    invalid : str
        Why no design-based interval exists; empty when one does.
    model : Interval or None
        The bank's own projection of the accuracy; shown, never decided on.
    conformal : Interval or None
        The same projection with an interval from replayed interviews, where the
        bank has a table of this policy and budget; it holds for checkpoints like
        the calibration subjects, so that it is shown, and gates use the draws.
    error : str
        Why the interview is void; empty otherwise.
    notes : tuple of str
        Shown with every verdict, such as an untrusted bank.
    on_verdict : callable, optional
        Takes each verdict asked for, and returns the one to use.
    """

    name: str
    bank: ItemBank
    log: DesignLog
    theta: list[float] | None
    standard_error: list[float] | None
    stop: StopReason | None
    statuses: Mapping[str, int]
    invalid: str = ""
    model: Interval | None = None
    conformal: Interval | None = None
    error: str = ""
    notes: tuple[str, ...] = ()
    on_verdict: Callable[[Verdict], Verdict] | None = None

    @classmethod
    def of(
        cls, name: str, session: Session, *, statuses: Mapping[str, int], error: str = "", notes: Sequence[str] = ()
    ) -> SessionResult:
        """The result of a session's first subject."""
        calibrated = session.bank.calibrated
        log = session.log()
        return cls(
            name=name,
            bank=session.bank,
            log=log,
            theta=session.estimate.theta[0].tolist() if calibrated else None,
            standard_error=session.estimate.standard_error[0].tolist() if calibrated else None,
            stop=session.stop[0],
            statuses=dict(statuses),
            invalid=session.policy.design_based,
            model=model_based(session) if calibrated and len(log.scores) else None,
            conformal=_conformal(session) if calibrated and len(log.scores) else None,
            error=error,
            notes=tuple(notes),
        )

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {len(self.bank)} items>"

    @property
    def asked(self) -> int:
        """Items administered."""
        return len(self.log.scores)

    @property
    def fault(self) -> str:
        """Why nothing may be concluded; empty when the interview ended as planned."""
        if self.error or self.stop in (StopReason.BUDGET, StopReason.EXHAUSTED):
            return self.error
        return self.stop.value if self.stop else "the interview did not end"

    @property
    def scored(self) -> int:
        """Items with a score."""
        return int((~np.isnan(self.log.scores)).sum())

    @property
    def accuracy(self) -> Metric:
        """Accuracy over the whole bank."""
        return Metric("accuracy", self)

    @property
    def ability(self) -> Metric:
        """Ability on the bank's scale; decided on the accuracy expected at that ability."""
        return Metric("ability", self)

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Accuracy interval that gates use, or None where there is none; answers without a score widen it."""
        if self.invalid or self.fault:
            return None
        return hull(*with_missing_bounded(self.log, confidence))

    def to_json(self) -> dict[str, Any]:
        """Everything but the bank, as plain data; `from_json` takes it back."""
        return {
            "name": self.name,
            "log": {f.name: np.asarray(getattr(self.log, f.name)).tolist() for f in fields(self.log)},
            "theta": self.theta,
            "standard_error": self.standard_error,
            "stop": self.stop.name if self.stop else None,
            "statuses": dict(self.statuses),
            "invalid": self.invalid,
            "model": self.model.to_json() if self.model else None,
            "conformal": self.conformal.to_json() if self.conformal else None,
            "error": self.error,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], bank: ItemBank) -> SessionResult:
        """Read back what `to_json` gave."""
        log: dict[str, Any] = dict(data["log"])
        for column in set(log) - {"size"}:
            log[column] = np.array(log[column], dtype=int if column == "items" else float)
        return cls(
            **{
                **data,
                "bank": bank,
                "log": DesignLog(**log),
                "stop": StopReason[data["stop"]] if data["stop"] else None,
                "model": Interval(**data["model"]) if data["model"] else None,
                "conformal": Interval(**data["conformal"]) if data["conformal"] else None,
                "notes": tuple(data["notes"]),
            }
        )


def _conformal(session: Session, confidence: float = 0.95) -> Interval | None:
    bank = session.bank
    table = bank.conformal.get(session.policy.key(bank)) if bank.conformal else None
    if table is None or len(table.errors) < subjects_needed(confidence):
        return None
    accuracy, error = project(session)
    asked = session.stopped_at[0] if session.stop[0] else session.asked
    scale = conformal_scale(accuracy[:1], error[:1], asked, len(bank))
    return table.interval(float(accuracy[0]), float(scale[0]), confidence)


def _at_least(result: SessionResult, metric: str, target: float, confidence: float) -> Verdict:
    bank, asked = result.bank, result.asked
    if isinstance(target, bool) or not isinstance(target, int | float) or not np.isfinite(target):
        raise ConfigError(f"{result.name}: {metric}.at_least({target!r}): expected a number")
    if not 0.5 <= confidence < 1:
        raise ConfigError(f"{result.name}: confidence is {confidence!r}, expected a number in [0.5, 1) such as 0.95")
    if metric == "accuracy" and not 0 <= target <= 1:
        raise ConfigError(f"{result.name}: accuracy.at_least({target!r}): an accuracy lies in [0, 1]")
    if metric == "ability" and not bank.calibrated:
        raise ConfigError(
            f"{result.name}: the bank {bank.name!r} has no ability scale: gate on accuracy or calibrate it"
        )
    if result.invalid:
        raise ConfigError(f"{result.name}: this interview cannot feed a gate: {result.invalid}")
    requirement = f">= {number(target, 2)}" if round(target, 2) == target else f">= {number(target)}"
    notes = result.notes
    if fault := result.fault:
        return Verdict(Outcome.ERROR, metric, requirement, None, confidence, asked, len(bank), (fault, *notes))
    bounds = with_missing_bounded(result.log, confidence)
    needed = target
    if metric == "ability":  # decided where the error rate is known: on the accuracy that this ability implies
        needed = accuracy_at(bank, target)
    outcomes = {_decide(interval, needed) for interval in bounds}
    missing = asked - result.scored
    outcome = outcomes.pop() if len(outcomes) == 1 else Outcome.INCONCLUSIVE
    if missing:
        have = "answer has no score and is" if missing == 1 else "answers have no score and are"
        notes = (*notes, f"{missing} {have} counted as wrong in the lower bound and as right in the upper")
    shown = hull(*bounds)
    if metric == "ability":
        estimate, low, high = (ability_at(bank, value) for value in (shown.estimate, shown.low, shown.high))
        shown = Interval(estimate, low, high, confidence, shown.method)
    return Verdict(outcome, metric, requirement, shown, confidence, asked, len(bank), notes)


def _decide(interval: Interval, target: float) -> Outcome:
    if interval.low >= target:
        return Outcome.PASS
    return Outcome.FAIL if interval.high < target else Outcome.INCONCLUSIVE
