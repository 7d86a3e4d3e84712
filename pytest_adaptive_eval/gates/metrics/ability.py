"""Ability on the bank's scale, and its components on a bank that is administered in formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import ability_at, accuracy_at
from pytest_adaptive_eval.claims.score_equations import ScoreEquations
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim, missing_score_notes
from pytest_adaptive_eval.gates.condition import Condition, Metric, decide_by_bounds, with_note
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import threshold_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.interval import ABILITY_BOUND, Interval
from pytest_adaptive_eval.irt.multimodal import parts_at_bound
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted

FEWEST_ANSWERS = 10  #: Fewest answers per dimension that decide a component.
UNKNOWN_ABOVE = 0.9  #: Warn above this standard error of a component, in standard deviations of the bank's subjects.


class Ability(Metric[SessionResult]):
    """General ability, decided on the accuracy that the bank expects at it."""

    name = "ability"
    description = "ability in logits on the bank's scale, decided on the accuracy that the bank expects at it"
    unit = "logits"
    kinds = ("at_least", "at_most")
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
        if abs(condition.value) > ABILITY_BOUND:
            raise ConfigError(
                f"{self.call(condition)}: expected a target that a bank can measure, among abilities "
                f"from -{ABILITY_BOUND:g} to {ABILITY_BOUND:g} logits"
            )

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the accuracy at the ability."""
        return (Claim(accuracy_at(bank, condition.value) * len(bank), condition.confidence),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the draws."""
        return judge_claim(
            result, condition, verdict, lambda accuracy: ability_at(result.bank, accuracy), guessing=result.chance
        )

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlooks of the accuracy at the ability."""
        return threshold_outlooks(condition, bank, policy, accuracy_at(bank, condition.value), baseline, margin)


class AbilityComponent(Metric[SessionResult]):
    """One component of ability, such as ``cross``, in standard deviations of the bank's subjects."""

    name = "ability"
    description = "a part of ability, on a bank that is administered in formats"
    unit = "standard deviations"
    kinds = ("at_least", "at_most")
    whole_budget = True

    def __init__(self, part: str) -> None:
        self.part = part

    def quantity(self, condition: Condition) -> str:
        """Return the name of the component."""
        return f"{self.part} ability"

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

        @cache
        def interval_at(confidence: float) -> Interval:
            low, high = (equations.bound(index, side, confidence) for side in (1, -1))
            return Interval(min(max(theta, low), high), low, high, confidence, "anytime-valid")

        model = f"{result.bank.model.upper()}-IRT"
        notes = [
            f"in standard deviations of the bank's subjects, as {model} has it of all answers",
            *missing_score_notes(result),
        ]
        if result.standard_error[index] > UNKNOWN_ABOVE:
            notes.insert(0, "the answers say next to nothing of this part: ask more of the bank, or items that need it")
        verdict = replace(verdict, notes=(*notes, *verdict.notes))
        return decide_by_bounds(verdict, condition, result.family, interval_at, condition.value)


METRIC = Ability()
