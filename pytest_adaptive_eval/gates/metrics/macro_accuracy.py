"""Macro accuracy: the mean over the bank's categories, with equal weights."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.categories import macro_claim, macro_weights
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim
from pytest_adaptive_eval.gates.condition import Condition, Metric, as_share
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import mean_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank


class MacroAccuracy(Metric[SessionResult]):
    """Mean of the accuracies of all categories, decided by bets on weighted scores."""

    name = "macro_accuracy"
    description = "mean of the accuracies of the bank's categories"
    unit = "proportion"
    minimum, maximum = 0.0, 1.0
    kinds = ("at_least", "at_most")
    by_bets = True
    digits = 3
    least_height = 0.2

    def check_value(self, condition: Condition) -> None:
        """Refuse an accuracy outside [0, 1]."""
        if not 0 <= condition.value <= 1:
            raise ConfigError(f"{self.call(condition)}: an accuracy lies in [0, 1]{as_share(condition.value)}")

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank with fewer than two categories."""
        macro_weights(bank)

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the weighted sum of scores."""
        return (macro_claim(bank, condition.value, condition.confidence),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by bets on the draws, which hold for any number of weighted scores."""
        claim = macro_claim(result.bank, condition.value, condition.confidence)
        return judge_claim(
            result,
            condition,
            verdict,
            lambda mean: min(mean * claim.scale, 1.0),
            guessing=None if result.chance is None else result.chance / claim.scale,
        )

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlooks of the weighted scores, with the same accuracy in every category."""
        return mean_outlooks(condition, bank, policy, condition.value, margin, macro_weights(bank))


METRIC = MacroAccuracy()
