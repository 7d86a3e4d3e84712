"""Gates: from an interview's result to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_adaptive_eval.core.bank import ItemBank
from pytest_adaptive_eval.core.betting import anytime_valid
from pytest_adaptive_eval.core.climb import AdaptiveClimb, Climb, by_level, levelled
from pytest_adaptive_eval.core.conditions import METRICS, PART, Condition
from pytest_adaptive_eval.core.conformal import Conformal, conformal_scale, subjects_needed
from pytest_adaptive_eval.core.design import DesignLog
from pytest_adaptive_eval.core.inference import hull, mean_of_draws, with_missing_bounded
from pytest_adaptive_eval.core.interval import Interval
from pytest_adaptive_eval.core.judging import judge
from pytest_adaptive_eval.core.pairing import Baseline
from pytest_adaptive_eval.core.projection import model_based
from pytest_adaptive_eval.core.session import Session
from pytest_adaptive_eval.core.stopping import StopReason
from pytest_adaptive_eval.core.verdict import NoVerdict, Verdict
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.core.ladder import Ladder

__all__ = ["ERRORS_IN_A_ROW", "ERROR_SHARE", "UNREADABLE_SHARE", "Metric", "SessionResult"]

#: An interview ends with ERROR after this many infrastructure errors in a row ...
ERRORS_IN_A_ROW = 3
#: ... or when they exceed this share of the budget.
ERROR_SHARE = 0.05
#: ... and when more than this share of its answers have not the form of an answer.
UNREADABLE_SHARE = 0.5
#: Of an interview that ended so nothing can be said.
_CUT_OFF = (None, StopReason.ERRORS, StopReason.UNASKED, StopReason.GIVEN_UP, StopReason.INTERRUPTED)

OnInconclusive = Literal["fail", "warn", "pass"]


@dataclass(frozen=True, slots=True, repr=False)
class Metric(NoVerdict):
    """A quantity that gates can be set on, bound to its result.

    Every method gives a `Verdict`, and raises `ConfigError` where a value is
    out of range or the interview's policy admits no valid verdict.
    `confidence` is that of each one-sided decision; `on_inconclusive` says what
    an undecided gate does: fail, pass, or pass with a warning.
    """

    name: str
    result: SessionResult

    def __post_init__(self) -> None:
        if self.result.on_metric is not None:
            self.result.on_metric()

    def at_least(
        self,
        target: float,
        *,
        confidence: float = 0.95,
        on_inconclusive: OnInconclusive = "fail",
        method: Literal["draws", "likelihood-ratio"] = "draws",
    ) -> Verdict:
        """PASS when the draws show that the metric reaches `target`, FAIL when they show that it does not.

        Parameters
        ----------
        target : float
            Accuracy in [0, 1], or ability in logits on the bank's scale.
        confidence : float
        on_inconclusive : {"fail", "warn", "pass"}
        method : {"draws", "likelihood-ratio"}
            The second trusts the bank, and is for abilities alone.
        """
        return self.result.verdict(
            Condition(
                self.name,
                "at_least",
                target,
                confidence=_number(confidence),
                on_inconclusive=on_inconclusive,
                method=method,
            )
        )

    def not_worse_than(
        self, baseline: str, *, margin: float, confidence: float = 0.95, on_inconclusive: OnInconclusive = "fail"
    ) -> Verdict:
        """PASS when the draws show less than `margin` lost against a baseline, FAIL when they show more.

        Parameters
        ----------
        baseline : str
            Another evaluation of the run, a file of recorded answers or of a
            run, or ``"baseline"`` for what ``--adaptive-eval-baseline`` names.
        margin : float
            As a share of the bank, in (0, 1); of auc, in levels.
        confidence : float
        on_inconclusive : {"fail", "warn", "pass"}
        """
        return self.result.verdict(
            Condition(
                self.name,
                "not_worse_than",
                margin,
                str(baseline),
                confidence=_number(confidence),
                on_inconclusive=on_inconclusive,
            )
        )

    def rank_within(self, k: int, *, probability: float = 0.95, on_inconclusive: OnInconclusive = "fail") -> Verdict:
        """PASS when the subject is among the first `k` of the bank's reference subjects with a probability.

        FAIL when it is not, with the same probability.
        """
        return self.result.verdict(
            Condition(self.name, "rank_within", k, probability=_number(probability), on_inconclusive=on_inconclusive)
        )

    def above(self, name: str, *, probability: float = 0.95, on_inconclusive: OnInconclusive = "fail") -> Verdict:
        """PASS when the subject is more accurate than the reference subject `name` with a probability."""
        return self.result.verdict(
            Condition(
                self.name, "above", name=str(name), probability=_number(probability), on_inconclusive=on_inconclusive
            )
        )

    def __getitem__(self, part: str) -> Metric:
        """A part of ability, such as ``ability["cross"]``, on a bank that is asked in formats."""
        if self.name != "ability":
            raise ConfigError(f"{self.name} has no part {part!r}: only abilities have parts")
        return Metric(f"{PART}{part}", self.result)

    def __repr__(self) -> str:
        return f"{self.name} of {self.result.name}"


def _number(value: Any) -> Any:
    """A whole number as a float; anything else is left for the check."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SessionResult(NoVerdict):
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
        In parts, by `weighted.weighted_ability`.
    standard_error : list of float or None
        Of `theta`.
    stop : StopReason or None
        None when the interview was cut off.
    statuses : mapping
        Number of administrations by `Status`.
    climb : Climb or AdaptiveClimb or None
        How the levels of a task were asked, where they were climbed.
    sequential : bool
        Whether gates use tests that hold at any moment, since the interview
        may have ended when they decided.
    invalid : str
        Why the draws decide nothing; empty when they do.
    projected : tuple of float or None
        The bank's own projection of the accuracy and its standard error, see
        `projection.project`; shown, never decided on.
    policy : str
        `Policy.key` where the length did not depend on the answers, so that
        the bank's table of replayed interviews applies; else empty.
    error : str
        Why the interview is void; empty otherwise.
    notes : tuple of str
        Shown with every verdict, such as an untrusted bank.
    planned : tuple of Condition
        Conditions known before the interview, which share its items.
    family : int
        Conditions that FAIL verdicts are corrected for, those of other
        interviews included.
    baselines : mapping of str to Baseline
        By the name that conditions use.
    absent : mapping of str to str
        Baselines that are not there yet, and why.
    subject : mapping of str to str
        ``name`` of who answered, and hashes ``decoding`` and ``prompt`` that a
        comparison must share; empty where unknown.
    chance : float, optional
        Accuracy of guessing, where every item asked has choices: no gate
        passes on an accuracy that cannot be told from it.
    on_verdict : callable, optional
        Takes each verdict asked for, and returns the one to use.
    on_metric : callable, optional
        Told when a metric is taken, of which a verdict is to be asked for.
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
    policy: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()
    planned: tuple[Condition, ...] = ()
    family: int = 0
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    subject: Mapping[str, str] = field(default_factory=dict)
    chance: float | None = None
    on_verdict: Callable[[Verdict], Verdict] | None = None
    on_metric: Callable[[], object] | None = None

    @classmethod
    def of(
        cls, name: str, session: Session, *, statuses: Mapping[str, int], noise: float | None = None, **more: Any
    ) -> SessionResult:
        """The result of a session's first subject, with the `noise` of its log as measured; `more` as in the class."""
        calibrated, levels = session.bank.calibrated, session.policy.levelled
        log = session.log() if noise is None else replace(session.log(), noise=noise)
        estimate = session.estimate
        ability, doubt = estimate.theta[0], estimate.standard_error[0]
        if session.bank.parts and len(log) > 1 and not session.policy.design_based:
            from pytest_adaptive_eval.core.weighted import weighted_ability

            weighted = weighted_ability(session.bank, log.with_missing_as(0.5))
            ability, doubt = weighted.theta, weighted.standard_error
        projected = None
        if calibrated and len(log):
            accuracy, error = session.projection()
            projected = float(accuracy[0]), float(error[0])
        return cls(
            name=name,
            bank=session.bank,
            log=log,
            theta=ability.tolist() if calibrated else None,
            standard_error=doubt.tolist() if calibrated else None,
            stop=session.stop[0],
            statuses=dict(statuses),
            climb=levels if isinstance(levels, Climb | AdaptiveClimb) else None,
            sequential=session.sequential,
            invalid=session.policy.design_based,
            projected=projected,
            policy="" if session.adapts_length else session.policy.key(session.bank),
            **more,
        )

    if not TYPE_CHECKING:  # which would take any attribute for one

        def __getattr__(self, name: str) -> Any:
            """Nothing: what is measured has an attribute of its own."""
            raise AttributeError(name if name[:1] == "_" else f"{self!r} has no {name!r}; use {', '.join(METRICS)}")

    def __repr__(self) -> str:
        return f"<result of {self.name}: {self.asked} of {len(self.bank)} items>"

    @property
    def asked(self) -> int:
        """Items administered."""
        return len(self.log)

    @property
    def fault(self) -> str:
        """Why nothing may be concluded; empty when the interview ended as planned."""
        if self.error or self.stop not in _CUT_OFF:
            return self.error
        return self.stop.value if self.stop else "the interview did not end"

    @property
    def ladder(self) -> Ladder | None:
        """What a climb says by level; None where levels were not climbed."""
        if self.climb is None or not len(self.log):
            return None
        from pytest_adaptive_eval.core.ladder import Ladder  # which most runs do without

        queries = self.climb.queries
        return Ladder(tuple(by_level(self.log.items, self.log.scores, queries)), len(self.bank) // queries)

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

    @property
    def gain(self) -> Metric:
        """What accuracy in the fullest format is above that in the smaller ones; of a bank that is asked in formats."""
        return Metric("gain", self)

    @property
    def auc(self) -> Metric:
        """Sum of the accuracies by level, in levels; of a climb."""
        return Metric("auc", self)

    @property
    def last_level(self) -> Metric:
        """The hardest level with a right answer; of a climb."""
        return Metric("last_level", self)

    @property
    def model(self) -> Interval | None:
        """The projection with the interval that the bank claims; shown, never decided on."""
        return model_based(*self.projected) if self.projected else None

    @property
    def conformal(self) -> Interval | None:
        """The projection with an interval from replayed interviews, where the bank has a table of this policy.

        It holds for checkpoints like the calibration subjects, which a regressed one is not: gates use the draws.
        """
        if self.table is None or self.projected is None or self.table.families < subjects_needed(0.95):
            return None
        return self.table.interval(self.projected[0], self.scale)

    @property
    def table(self) -> Conformal | None:
        """The bank's errors of replayed interviews like this one, where it has some and there is a projection."""
        return self.bank.conformal.get(self.policy) if self.projected else None

    @property
    def scale(self) -> float:
        """What replayed errors are measured in."""
        assert self.projected is not None
        accuracy, error = self.projected
        return float(conformal_scale([accuracy], [error], self.asked, len(self.bank))[0])

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Accuracy interval that gates use, or None where there is none; answers without a score widen it."""
        if self.invalid or self.fault or not self.asked:
            return None
        return self.interval_of(self.log, confidence)

    def interval_of(self, log: DesignLog, confidence: float) -> Interval:
        """Interval of the accuracy in a log of this interview's draws, or in a view of it."""
        if self.sequential:
            return anytime_valid(log, mean_of_draws(log), confidence)
        return hull(*with_missing_bounded(log, confidence))

    def verdict(self, condition: Condition) -> Verdict:
        """The verdict on a condition, told to `on_verdict`, which may change it; raises as `judge`."""
        verdict = self.judge(condition)
        return self.on_verdict(verdict) if self.on_verdict else verdict

    def judge(self, condition: Condition) -> Verdict:
        """What the answers say about a condition; raises as `judging.judge`."""
        return judge(self, condition)

    def to_json(self) -> dict[str, Any]:
        """What travels between processes: all but the bank and what is planned; `from_json` takes it back."""
        return {
            "name": self.name,
            "log": {
                name: np.asarray(getattr(self.log, name)).tolist() for name in (*DesignLog.columns(), "size", "noise")
            },
            "theta": self.theta,
            "standard_error": self.standard_error,
            "stop": self.stop.name if self.stop else None,
            "statuses": dict(self.statuses),
            "climb": [self.climb.name, dict(self.climb.to_json())] if self.climb else None,
            "sequential": self.sequential,
            "invalid": self.invalid,
            "projected": self.projected,
            "policy": self.policy,
            "error": self.error,
            "notes": list(self.notes),
            "subject": dict(self.subject),
            "chance": self.chance,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], bank: ItemBank, **more: Any) -> SessionResult:
        """Read back what `to_json` gave; `more` as in the class."""
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
                "notes": tuple(data["notes"]),
            },
            **more,
        )
