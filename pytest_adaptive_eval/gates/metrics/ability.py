"""Ability on the bank's scale, and its components on a bank that is administered in formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.projection import ability_at, accuracy_at
from pytest_adaptive_eval.claims.score_equations import ScoreEquations
from pytest_adaptive_eval.claims.weighted_ability import limits, weighted_ability
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim, missing_score_notes
from pytest_adaptive_eval.gates.condition import Condition, Metric, decide_by_bounds, with_note
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import paired_outlooks, threshold_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.interval import ABILITY_BOUND, Interval
from pytest_adaptive_eval.irt.multimodal import parts_at_bound
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted, number

FEWEST_ANSWERS = 10  #: Fewest answers per dimension that decide a component.
UNKNOWN_ABOVE = 0.9  #: Warn above this standard error of a component, in standard deviations of the bank's subjects.


#: Kinds of conditions on abilities, and the bound of a margin with what is expected of one.
KINDS = ("at_least", "at_most", "not_worse_than")
MARGIN = (2.0 * ABILITY_BOUND, "a loss above 0 in the unit of the ability, such as 0.3")


class Ability(Metric[SessionResult]):
    """General ability, decided on the accuracy that the bank expects at it."""

    name = "ability"
    description = "ability in logits on the bank's scale, decided on the accuracy that the bank expects at it"
    unit = "logits"
    kinds = KINDS
    margin = MARGIN
    by_bets = True

    def component(self, name: str) -> Metric[SessionResult]:
        """Return one component, such as ``cross``."""
        if name:
            return AbilityComponent(name)
        return super().component(name)

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank without a single ability scale, or a target beyond the scale."""
        if bank.parts:
            parts = ", ".join(f"{self.name}.{part}" for part in bank.parts)
            raise ConfigError(f"the bank {bank.name!r} is asked in formats, and has abilities in parts: use {parts}")
        if not bank.calibrated:
            raise ConfigError(f"the bank {bank.name!r} has no ability scale: gate on accuracy or calibrate it")
        if condition.kind != "not_worse_than" and abs(condition.value) > ABILITY_BOUND:
            raise ConfigError(
                f"{self.call(condition)}: expected a target that a bank can measure, among abilities "
                f"from -{ABILITY_BOUND:g} to {ABILITY_BOUND:g} logits"
            )

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the accuracy at the ability, or on its difference from a baseline's."""
        if condition.kind != "not_worse_than":
            return (Claim(accuracy_at(bank, condition.value) * len(bank), condition.confidence),)
        baseline = baselines[condition.name]
        loss = baseline_accuracy(baseline) - accuracy_at(bank, least_ability(condition, bank, baseline))
        return (PairedClaim.of(baseline, loss, condition.confidence),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the draws."""
        origin = 0.0
        guessing = result.chance
        if condition.kind == "not_worse_than":
            baseline = result.baselines[condition.name]
            origin = least_ability(condition, result.bank, baseline) + condition.value
            guessing = None
        return judge_claim(
            result, condition, verdict, lambda accuracy: ability_at(result.bank, accuracy) - origin, guessing=guessing
        )

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlooks of the accuracy at the ability, or of a loss of it from the baseline's, else from 0."""
        if condition.kind == "not_worse_than":
            least, before = -condition.value, accuracy_at(bank, 0.0)
            if baseline is not None:
                least, before = least_ability(condition, bank, baseline), baseline_accuracy(baseline)
            loss = before - accuracy_at(bank, least)
            return paired_outlooks(replace(condition, value=loss), bank, policy, baseline, margin)
        return threshold_outlooks(condition, bank, policy, accuracy_at(bank, condition.value), baseline, margin)


def baseline_accuracy(baseline: Baseline) -> float:
    """Return the accuracy of a baseline with answers to the whole bank.

    Raises:
        BaselineError: It has answers to some items only, and so an ability with an error.
    """
    if not baseline.complete:
        raise BaselineError(
            f"the baseline {baseline.name!r} has scores on {baseline.draws} of {len(baseline.scores)} items, expected "
            'all: its ability would have an error; record it with budget = "100%", or gate on accuracy'
        )
    return float(baseline.scores.mean())


def least_ability(condition: Condition, bank: ItemBank, baseline: Baseline) -> float:
    """Return the ability that a candidate not worse than a baseline has at least.

    Raises:
        BaselineError: The baseline has no ability, or that ability less the margin is beyond the scale.
    """
    accuracy = baseline_accuracy(baseline)
    ability = ability_at(bank, accuracy)
    if abs(ability) == ABILITY_BOUND:
        raise BaselineError(
            f"the baseline {baseline.name!r} has the accuracy {number(accuracy)}, which no ability within "
            f"{ABILITY_BOUND:g} logits of 0 has on the bank {bank.name!r}: gate on accuracy"
        )
    least = ability - condition.value
    if least < -ABILITY_BOUND:
        raise BaselineError(
            f"margin is {condition.value:g}, and the baseline {baseline.name!r} has the ability {number(ability, 2)}: "
            f"the difference is below -{ABILITY_BOUND:g} logits, the end of the scale; write a smaller margin"
        )
    return least


class AbilityComponent(Metric[SessionResult]):
    """One component of ability, such as ``cross``, in standard deviations of the bank's subjects."""

    name = "ability"
    description = "a part of ability, on a bank that is administered in formats"
    unit = "standard deviations"
    kinds = KINDS
    margin = MARGIN
    whole_budget = True

    def __init__(self, part: str) -> None:
        self.part = part

    def quantity(self, condition: Condition) -> str:
        """Return the name of the component."""
        name = f"{self.part} ability"
        if condition.kind == "not_worse_than":
            return f"{name} less that of {condition.name}"
        return name

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank without the component, or one whose subjects are at a bound of it."""
        if self.part not in bank.parts:
            parts = ", ".join(bank.parts) or "none: set formats, on a bank that was calibrated with answers in formats"
            raise ConfigError(f"the bank {bank.name!r} has no part of ability {self.part!r}; it has {parts}")
        assert bank.in_formats is not None
        share = parts_at_bound(bank.parts, bank.in_formats.report.get("at_bound", {})).get("ability", {}).get(self.part)
        if share is not None:
            raise ConfigError(
                f"ability.{self.part} has no meaning on the bank {bank.name!r}: {100 * share:.0f} % of its calibration "
                "subjects are at a bound of this part, expected less than half; gate on gain, or calibrate with items "
                "that need this part"
            )

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return no claim, after a check of the baseline: bets on score equations decide."""
        if condition.kind == "not_worse_than":
            self._of_baseline(bank, baselines[condition.name])
        return ()

    def _of_baseline(self, bank: ItemBank, baseline: Baseline) -> float:
        """Return the component that the answers of a baseline to the whole bank give.

        Raises:
            BaselineError: It has answers to some items only, or the component is at its limit.
        """
        baseline_accuracy(baseline)
        index = bank.parts.index(self.part)
        ability = weighted_ability(bank, uniform_draws(baseline.scores, len(bank))).theta[index]
        if any(ability == end[index] for end in limits(bank)):
            raise BaselineError(
                f"the baseline {baseline.name!r} has the {self.part} ability {number(ability, 2)}, the end of its "
                "range: gate on accuracy"
            )
        return float(ability)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict on the ability that all answers would give, by bets on the draws."""
        fewest = FEWEST_ANSWERS * result.bank.dimensions
        if result.asked < fewest:
            answers = counted(result.asked, "answer")
            note = f"{answers} of the {fewest} that abilities in parts take: set a larger budget"
            return with_note(verdict, note, Outcome.INCONCLUSIVE)
        index = result.bank.parts.index(self.part)
        equations = ScoreEquations(result.bank, result.log)
        assert result.theta is not None
        assert result.standard_error is not None
        theta = result.theta[index]
        origin, required = 0.0, condition.value
        if condition.kind == "not_worse_than":
            origin, required = self._of_baseline(result.bank, result.baselines[condition.name]), -condition.value

        @cache
        def interval_at(confidence: float) -> Interval:
            low, high = (equations.bound(index, side, confidence) for side in (1, -1))
            middle = min(max(theta, low), high)
            return Interval(middle - origin, low - origin, high - origin, confidence, "anytime-valid")

        model = f"{result.bank.model.upper()}-IRT"
        notes = [
            f"in standard deviations of the bank's subjects, as {model} has it of all answers",
            *missing_score_notes(result),
        ]
        if result.standard_error[index] > UNKNOWN_ABOVE:
            notes.insert(0, "the answers say almost nothing about this part: ask more items, or items that need it")
        verdict = replace(verdict, notes=(*notes, *verdict.notes))
        return decide_by_bounds(verdict, condition, result.family, interval_at, required)


METRIC = Ability()
