"""Gates: from an interview's result to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.classification import Cut
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ability_at, model_based
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import METRICS, PART, Condition
from pytest_adaptive_eval.gates.planning import Outlook
from pytest_adaptive_eval.gates.verdict import NoVerdict, Outcome, Verdict
from pytest_adaptive_eval.inference.betting import ROUNDING, Claim, anytime_valid, decide, log_wealth
from pytest_adaptive_eval.inference.conformal import Conformal, conformal_scale, subjects_needed
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.noise import noise_margin
from pytest_adaptive_eval.inference.ranks import Predictive, above_probability, rank_distribution, rank_probability
from pytest_adaptive_eval.inference.sampling import mean_of_draws, merge_missing_bounds, with_missing_bounded
from pytest_adaptive_eval.inference.student import student_quantile
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.person_fit import PersonFit, lz_star
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.ladder.policy import AdaptiveClimb, Climb, by_level, levelled
from pytest_adaptive_eval.text import counted, number

if TYPE_CHECKING:
    from pytest_adaptive_eval.ladder.result import Ladder

__all__ = [
    "ERRORS_IN_A_ROW",
    "ERROR_SHARE",
    "UNREADABLE_SHARE",
    "Metric",
    "SessionResult",
    "doubt",
    "fit",
    "judge",
    "with_doubt",
]

#: An interview ends with ERROR after this many infrastructure errors in a row ...
ERRORS_IN_A_ROW = 3
#: ... or when they exceed this share of the budget.
ERROR_SHARE = 0.05
#: ... and when more than this share of its answers have not the form of an answer.
UNREADABLE_SHARE = 0.5
#: Of an interview that ended so nothing can be said.
_CUT_OFF = (None, StopReason.ERRORS, StopReason.UNASKED, StopReason.GIVEN_UP, StopReason.INTERRUPTED)

OnInconclusive = Literal["fail", "warn", "pass"]
#: Answers below which abilities in parts are not judged, by part.
FEWEST = 10
#: Standard error of a part of ability, in those of the bank's subjects, from which on it is as good as unknown.
UNTOLD = 0.9


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
        In parts, by `claims.weighted_ability.weighted_ability`.
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
            from pytest_adaptive_eval.claims.weighted_ability import weighted_ability

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
        from pytest_adaptive_eval.ladder.result import Ladder  # which most runs do without

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
        return merge_missing_bounds(*with_missing_bounded(log, confidence))

    def verdict(self, condition: Condition) -> Verdict:
        """The verdict on a condition, told to `on_verdict`, which may change it; raises as `judge`."""
        verdict = self.judge(condition)
        return self.on_verdict(verdict) if self.on_verdict else verdict

    def judge(self, condition: Condition) -> Verdict:
        """What the answers say about a condition; raises as `gates.result.judge`."""
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


def judge(result: SessionResult, condition: Condition) -> Verdict:
    """What the answers say about a condition.

    Raises
    ------
    ConfigError
        The condition does not go with the bank or the interview's policy.
    """
    try:
        condition.check(result.bank, climbed=result.climb is not None)
        if result.invalid and not condition.by_level and not (condition.by_rank and result.table):
            raise ConfigError(f"this interview cannot feed a gate: {result.invalid}")
        if condition.kind == "not_worse_than" and condition.name not in {**result.baselines, **result.absent}:
            raise BaselineError(
                f"the baseline {condition.name!r} was not known before the interview, whose draws depend on it: "
                "write its name and the margin as plain values in the gate, or declare the gate in TOML"
            )
    except (ConfigError, BaselineError) as error:
        raise type(error)(f"{result.name}: {error}") from None
    verdict = Verdict(
        Outcome.ERROR,
        condition.quantity,
        condition.requirement,
        None,
        condition.probability if condition.by_rank else condition.confidence,
        result.asked,
        len(result.bank),
        result.notes,
        condition.on_inconclusive,
        condition=condition.to_json(),
        unit="items in formats" if result.bank.report.get("formats") else "items",
    )
    if fault := result.fault:
        return replace(verdict, notes=(fault, *result.notes))
    if not result.asked:
        return replace(verdict, notes=("no question was asked", *result.notes))
    if not result.scored:
        return replace(verdict, notes=("no answer has a score", *result.notes))
    if condition.name in result.absent:
        stated = f"no baseline yet for {condition.quantity} {condition.requirement}"
        notes = (result.absent[condition.name], *result.notes)
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, notice=True, stated=stated, notes=notes)
    if condition.by_level:
        return _by_level(result, condition, verdict)
    if condition.part:
        return _by_part(result, condition, verdict)
    if condition.metric == "gain":
        return _by_gaps(result, condition, verdict)
    if condition.by_rank:
        return _by_rank(result, condition, verdict)
    if condition.method == "likelihood-ratio":
        if why := doubt(result):
            verdict = replace(verdict, notes=(*verdict.notes, f"{why}, so that the draws decide"))
        else:
            return _by_likelihood(result, condition, verdict)
    return _by_draws(result, condition, verdict)


def doubt(result: SessionResult) -> str:
    """Why the bank's model is not to be believed for this subject; empty where nothing speaks against it."""
    if result.projected is None or not result.asked:
        return ""
    interval = None if result.invalid else result.interval_of(result.log, 0.995)
    if interval is not None and not interval.low <= result.projected[0] <= interval.high:
        low, high = number(interval.low), number(interval.high)
        return f"the bank projects an accuracy of {number(result.projected[0])}, and the draws show [{low}, {high}]"
    found = fit(result)
    if found is not None and bool(found.flag()[0]):
        return (
            "the answers do not look like those of the bank's population (person fit lz* "
            f"{found.statistic[0]:.1f}, one in {1 / max(float(found.p_value[0]), 1e-6):.0f} is so low)"
        )
    return ""


def with_doubt(result: SessionResult) -> SessionResult:
    """The result with a note on what `doubt` finds."""
    if not (why := doubt(result)):
        return result
    return replace(result, notes=(*result.notes, f"{why}; verdicts by draws hold all the same"))


def fit(result: SessionResult) -> PersonFit | None:
    """Person fit at the final ability; None on an uncalibrated bank."""
    if result.theta is None:
        return None
    bank, items = result.bank, result.log.items
    A, d = bank.discrimination[items][None], bank.intercept[items][None]
    c = None if bank.asymptote is None else bank.asymptote[items][None]
    return lz_star(result.log.scores[None], irt.probability(np.array([result.theta]), A, d, c), A, c)


def _by_likelihood(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """Classification at a cut score, which trusts the bank."""
    found = Cut(result.bank, condition.value, condition.confidence).classify(result.log[None])
    outcome = {1: Outcome.PASS, -1: Outcome.FAIL, 0: Outcome.INCONCLUSIVE}[int(found.side[0])]
    assert result.theta is not None
    assert result.standard_error is not None
    half = student_quantile(np.inf, condition.confidence) * result.standard_error[0]
    shown = Interval(
        result.theta[0], result.theta[0] - half, result.theta[0] + half, condition.confidence, "likelihood ratio"
    )
    note = "its error rate holds if the bank's model holds for this checkpoint"
    return replace(verdict, outcome=outcome, interval=shown, notes=(note, *verdict.notes))


def _by_rank(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """Probability of a rank among the bank's reference subjects."""
    bank, predictive = result.bank, _predictive(result)
    if condition.kind == "above":
        known = bank.accuracies[bank.subjects.index(condition.name)]
        probability = above_probability(predictive, known)
        what = f"accuracy above {condition.name} ({number(known)})"
    else:
        probability = rank_probability(predictive, bank.accuracies, int(condition.value))
        ranks = rank_distribution(predictive, bank.accuracies)
        best, worst = ranks.interval(condition.probability)
        what = f"rank {ranks.mean:.1f} [{best}, {worst}] among {len(bank.accuracies)} references, "
        what += condition.requirement
    needed = condition.probability
    outcome = Outcome.PASS if probability >= needed else Outcome.INCONCLUSIVE
    if probability <= 1.0 - needed:
        outcome = Outcome.FAIL
    stated = f"{what} with probability {number(probability)}, {number(needed, 2)} required"
    return replace(verdict, outcome=outcome, stated=stated)


def _by_part(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """A part of ability, as all answers would give it, by the draws."""
    from pytest_adaptive_eval.claims.weighted_ability import weighted_ability

    fewest = FEWEST * result.bank.dimensions
    if result.asked < fewest:
        why = f"{counted(result.asked, 'answer')} of the {fewest} that abilities in parts take: set a larger budget"
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, notes=(why, *verdict.notes))
    place = result.bank.parts.index(condition.part)
    ways = (0.0, 1.0) if result.scored < result.asked else (0.5,)
    found = [weighted_ability(result.bank, result.log.with_missing_as(score)) for score in ways]
    assert result.theta is not None
    assert result.standard_error is not None
    corrected = 1.0 - (1.0 - condition.confidence) / max(result.family, 1)

    def bounds(confidence: float) -> tuple[float, float]:
        ends = []
        for one in found:
            half = student_quantile(float(one.freedom[place]), confidence) * one.standard_error[place]
            ends += [float(one.theta[place] - half), float(one.theta[place] + half)]
        return min(ends), max(ends)

    (low, high), far = bounds(condition.confidence), bounds(corrected)[1]
    outcome = Outcome.INCONCLUSIVE
    if low >= condition.value:
        outcome = Outcome.PASS
    elif far < condition.value:
        outcome = Outcome.FAIL
    model = f"{result.bank.model.upper()}-IRT"
    notes = [f"in standard deviations of the bank's subjects, as {model} has it of all answers", *_unscored(result)]
    if result.standard_error[place] > UNTOLD:
        notes.insert(0, "the answers say next to nothing of this part: ask more of the bank, or items that need it")
    shown = Interval(min(max(result.theta[place], low), high), low, high, condition.confidence, "design-based")
    return replace(verdict, outcome=outcome, interval=shown, notes=(*notes, *verdict.notes))


def _by_level(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """A climb's area or last level, by themselves or against those of a baseline that was asked the same."""
    from pytest_adaptive_eval.ladder.result import difference

    ladder, way = result.ladder, result.climb
    assert ladder is not None
    assert way is not None
    needed = condition.value
    corrected = 1.0 - (1.0 - condition.confidence) / max(result.family, 1)
    if condition.kind == "not_worse_than":
        needed, baseline = -condition.value, _climb_of(result, result.baselines[condition.name])
        # levels that neither was asked count as equal: both had failed before
        shown, wide = (difference(ladder, baseline, level, "zero") for level in (condition.confidence, corrected))
    elif condition.metric == "last_level":
        shown, wide = (way.last(ladder, level) for level in (condition.confidence, corrected))
    else:
        shown, wide = (way.area(ladder, level) for level in (condition.confidence, corrected))
    outcome = Outcome.INCONCLUSIVE
    if shown.low >= needed:
        outcome = Outcome.PASS
    elif wide.high < needed:
        outcome = Outcome.FAIL
    return replace(verdict, outcome=outcome, interval=shown)


def _climb_of(result: SessionResult, baseline: Baseline) -> Ladder:
    """The baseline's climb of the same levels."""
    from pytest_adaptive_eval.ladder.result import Ladder

    way, asked = result.climb, ~np.isnan(baseline.scores)
    assert way is not None
    if not way.paired:
        raise ConfigError(
            f"{result.name}: an area is compared with a baseline's question by question, on levels that were asked in "
            "full: remove width and settle"
        )
    queries = way.queries
    if baseline.log is not None:
        asked[baseline.log.items] = True
    levels = int(asked.reshape(-1, queries).all(axis=1).cumprod().sum())
    if not levels:
        raise BaselineError(f"{result.name}: the baseline {baseline.name!r} answered no level of this task")
    return Ladder(tuple(baseline.scores.reshape(-1, queries)[:levels]), len(result.bank) // queries)


def _predictive(result: SessionResult) -> Predictive:
    """Where the accuracy may lie: by replayed interviews, else by the draws, to which alone noise can be added."""
    if result.table is not None and result.projected is not None and not result.log.noise:
        return Predictive.replayed(result.table, result.projected[0], result.scale)
    one = merge_missing_bounds(*with_missing_bounded(result.log, 0.8413))  # one standard error to each side
    return Predictive.normal(one.estimate, (one.high - one.low) / 2).among(result.bank.accuracies)


def _by_draws(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    (claim,) = condition.claims(result.bank, result.baselines)
    log = claim.view(result.log)
    (outcome,) = _decided(result, condition, [claim])
    shown = result.interval_of(log, condition.confidence)
    needed = claim.total / log.size
    if outcome is Outcome.PASS:  # what was decided once stays, though later draws may have moved the interval
        shown = _within(shown, needed, 1.0)
    elif outcome is Outcome.FAIL:
        shown = _within(shown, 0.0, needed)
    notes = [*verdict.notes, *_unscored(result)]
    guessing = result.chance
    if outcome is Outcome.PASS and condition.kind == "at_least" and guessing is not None and shown.low <= guessing:
        outcome = Outcome.INCONCLUSIVE
        notes.insert(0, f"it cannot be told from guessing, which scores {number(guessing)} on such choices")
    elif outcome is Outcome.INCONCLUSIVE:
        notes.insert(0, _forecast(result, claim, log, shown.estimate))
    if condition.kind == "not_worse_than" and result.baselines[condition.name].twins:
        notes.append(_gaps(result, result.baselines[condition.name]))
    if condition.metric == "ability":
        shown = _mapped(shown, lambda accuracy: ability_at(result.bank, accuracy))
    elif isinstance(claim, PairedClaim):
        shown = _mapped(shown, lambda half: 2.0 * half - 1.0)
    elif condition.kind == "not_worse_than":
        base = float(result.baselines[condition.name].scores.mean())
        shown = _mapped(shown, lambda accuracy: accuracy - base)
    return replace(verdict, outcome=outcome, interval=shown, notes=tuple(notes))


def _unscored(result: SessionResult) -> list[str]:
    """A note on answers without a score."""
    missing = result.asked - result.scored
    have = "answer has no score and is" if missing == 1 else "answers have no score and are"
    return [f"{missing} {have} counted as wrong in the lower bound and as right in the upper"] if missing else []


def _by_gaps(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """Accuracy with everything given against accuracy in each smaller format: PASS needs all, FAIL one."""
    from pytest_adaptive_eval.claims.gain import fullest, gap_claims

    claims = gap_claims(result.bank, condition.value, condition.confidence)
    outcomes = _decided(result, condition, list(claims))
    outcome = Outcome.INCONCLUSIVE
    if Outcome.FAIL in outcomes:
        outcome = Outcome.FAIL
    elif set(outcomes) == {Outcome.PASS}:
        outcome = Outcome.PASS
    gaps = [claim.gap(result.log, condition.confidence, sequential=result.sequential) for claim in claims]
    least = min(range(len(gaps)), key=lambda n: (outcomes[n] is not Outcome.FAIL, gaps[n].estimate))
    told = ", ".join(f"{number(gap.estimate)} over {claim.form}" for claim, gap in zip(claims, gaps, strict=True))
    notes = (f"accuracy as {fullest(result.bank)} gains {told}", *_unscored(result), *verdict.notes)
    shown = gaps[least]
    if outcome is Outcome.PASS:
        shown = _within(shown, condition.value, 1.0)
    elif outcome is Outcome.FAIL:
        shown = _within(shown, -1.0, condition.value)
    return replace(verdict, outcome=outcome, interval=shown, notes=notes)


def _gaps(result: SessionResult, baseline: Baseline) -> str:
    """How far the twins fall behind the items themselves, by category."""
    log = result.log
    gap = log.scores - baseline.scores[log.items]
    both = ~np.isnan(gap)
    categories = np.array(list(result.bank.categories) or [""] * len(result.bank))[log.items]
    found = []
    for category in dict.fromkeys(categories[both].tolist()):
        own = gap[both & (categories == category)]
        found.append(f"{category or 'all'} {own.mean():+.2f} ({len(own)})")
    return f"with other values, on the questions asked of both: {', '.join(found)}"


def _decided(result: SessionResult, condition: Condition, own: Sequence[Claim]) -> list[Outcome]:
    """What the draws say of each of a condition's claims, next to those of all others."""
    planned = [c for c in result.planned if c.by_draws and c != condition]
    others = [claim for c in planned for claim in c.claims(result.bank, result.baselines)]
    family = max(result.family, len(own) + len(others))
    if result.sequential or any(claim.rare for claim in own):  # of rare losses the draws tell bets more than a mean
        signs = decide(result.log, [*own, *others], family).outcome[: len(own)]
        return [{1: Outcome.PASS, -1: Outcome.FAIL, 0: Outcome.INCONCLUSIVE}[int(sign)] for sign in signs]
    corrected = 1.0 - (1.0 - condition.confidence) / family
    outcomes = []
    for claim in own:
        log = claim.view(result.log)
        needed = (claim.total - ROUNDING) / log.size
        outcome = Outcome.INCONCLUSIVE
        if with_missing_bounded(log, condition.confidence)[0].low >= needed:
            outcome = Outcome.PASS
        elif with_missing_bounded(log, corrected)[1].high < needed:
            outcome = Outcome.FAIL
        outcomes.append(outcome)
    return outcomes


def _forecast(result: SessionResult, claim: Claim, log: DesignLog, estimate: float) -> str:
    """How many more questions would probably decide, were the truth where the estimate is."""
    if len(log) == log.size:
        missing = bool(np.isnan(log.scores).any())
        if not log.noise:
            return "the whole bank was asked, and answers without a score leave it open"
        noise = "the noise of decoding leaves it open: another run may decide otherwise"
        return f"the whole bank was asked, and {'answers without a score, or ' * missing}{noise}"
    gap = estimate - claim.total / log.size
    side: Literal[1, -1] = 1 if gap >= 0 else -1
    margin = noise_margin(log, claim.confidence)
    filled = log.with_missing_as(0.5)
    left = max(log.size - len(log) + 1, 1)
    outlook = Outlook(
        log.size,
        max(abs(gap) - margin / log.size, 0.0),
        float(filled.variance[-1]) / left**2,
        claim.confidence,
        len(log),
        float(log_wealth(filled, claim, side, margin)[-1]) if result.sequential else 0.0,
    )
    more = outlook.quantile(0.5) - len(log)
    baseline = claim.baseline if isinstance(claim, PairedClaim) else None
    if baseline is not None and len(log) + more > baseline.draws:
        return baseline.coverage
    if more > 0.8 * (log.size - len(log)):
        return "the estimate is so near the threshold that probably only the whole bank would decide"
    return f"about {counted(max(more, 1), 'more question')} would probably decide"


def _within(interval: Interval, low: float, high: float) -> Interval:
    """The interval cut to [low, high]."""
    low, high = max(interval.low, low), min(interval.high, high)
    return replace(interval, estimate=min(max(interval.estimate, low), high), low=low, high=high)


def _mapped(interval: Interval, to: Callable[[float], float]) -> Interval:
    """The interval in another unit, of which `to` is increasing."""
    return replace(interval, estimate=to(interval.estimate), low=to(interval.low), high=to(interval.high))
