"""How a condition is judged on what an interview found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from pytest_adaptive_eval.core import irt
from pytest_adaptive_eval.core.betting import ROUNDING, Claim, decide, log_wealth
from pytest_adaptive_eval.core.classification import Cut
from pytest_adaptive_eval.core.conditions import Condition
from pytest_adaptive_eval.core.design import DesignLog
from pytest_adaptive_eval.core.inference import hull, noise_margin, student_quantile, with_missing_bounded
from pytest_adaptive_eval.core.interval import Interval
from pytest_adaptive_eval.core.pairing import Baseline, PairedClaim
from pytest_adaptive_eval.core.personfit import PersonFit, lz_star
from pytest_adaptive_eval.core.planning import Outlook
from pytest_adaptive_eval.core.projection import ability_at
from pytest_adaptive_eval.core.ranks import Predictive, above_probability, rank_distribution, rank_probability
from pytest_adaptive_eval.core.responses import counted
from pytest_adaptive_eval.core.verdict import Outcome, Verdict, number
from pytest_adaptive_eval.errors import BaselineError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.core.gates import SessionResult
    from pytest_adaptive_eval.core.ladder import Ladder

__all__ = ["doubt", "fit", "judge", "with_doubt"]

#: Answers below which abilities in parts are not judged, by part.
FEWEST = 10
#: Standard error of a part of ability, in those of the bank's subjects, from which on it is as good as unknown.
UNTOLD = 0.9


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
    from pytest_adaptive_eval.core.weighted import weighted_ability

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
    from pytest_adaptive_eval.core.ladder import difference

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
    from pytest_adaptive_eval.core.ladder import Ladder

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
    one = hull(*with_missing_bounded(result.log, 0.8413))  # one standard error to each side
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
    from pytest_adaptive_eval.core.gap import fullest, gap_claims

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
