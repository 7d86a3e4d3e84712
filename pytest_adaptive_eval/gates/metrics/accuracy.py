"""Accuracy over the whole bank, alone, against a baseline, or among the bank's reference subjects."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim
from pytest_adaptive_eval.gates.condition import Condition, Metric
from pytest_adaptive_eval.gates.metrics.rank import check_references, judge_reference_rank
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import paired_outlooks, threshold_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank


class Accuracy(Metric[SessionResult]):
    """Mean score over the bank."""

    name = "accuracy"
    description = "mean score over the whole bank"
    unit = "proportion"
    minimum, maximum = 0.0, 1.0
    kinds = ("at_least", "not_worse_than", "rank_within", "above")
    margin = (1.0, "a share of the bank in (0, 1) such as 0.02")
    by_bets = True
    digits = 3
    least_height = 0.2

    def check_value(self, condition: Condition) -> None:
        """Refuse an accuracy outside [0, 1] or a margin outside (0, 1)."""
        super().check_value(condition)
        if condition.kind == "at_least" and not 0 <= condition.value <= 1:
            raise ConfigError(f"{self.call(condition)}: an accuracy lies in [0, 1]")

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank without the reference subjects that the condition ranks."""
        if condition.by_rank:
            check_references(condition, bank)

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the bank's sum of scores, or on its difference from a baseline's."""
        if condition.kind == "not_worse_than":
            return (PairedClaim.of(baselines[condition.name], condition.value, condition.confidence),)
        return (Claim(condition.value * len(bank), condition.confidence),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by bets on the draws, or by the probability of a rank."""
        if condition.by_rank:
            return judge_reference_rank(result, condition, verdict)
        if condition.kind == "at_least":
            return judge_claim(result, condition, verdict, guessing=result.chance)
        baseline = result.baselines[condition.name]
        if isinstance(condition.claims(result.bank, result.baselines)[0], PairedClaim):
            return judge_claim(result, condition, verdict, lambda half: 2.0 * half - 1.0)
        baseline_accuracy = float(baseline.scores.mean())
        return judge_claim(result, condition, verdict, lambda accuracy: accuracy - baseline_accuracy)

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlooks of a threshold or of a comparison; none for ranks."""
        if condition.by_rank:
            return []
        if condition.kind == "not_worse_than":
            return paired_outlooks(condition, bank, policy, baseline, margin)
        return threshold_outlooks(condition, bank, policy, condition.value, baseline, margin)


METRIC = Accuracy()
