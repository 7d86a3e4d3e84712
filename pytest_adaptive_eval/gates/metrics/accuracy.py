"""Accuracy over the whole bank, alone, against a baseline, or among the bank's reference subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.claims.references import ReferenceThreshold, named_threshold, place_threshold
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim, missing_score_notes
from pytest_adaptive_eval.gates.condition import (
    LIKE_QUESTIONS,
    LIMITS,
    RANKS,
    Condition,
    Metric,
    as_share,
    decide_by_bounds,
    with_note,
)
from pytest_adaptive_eval.gates.finished import interval_on_like_questions
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import paired_outlooks, threshold_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.ranks import Predictive, rank_distribution, rank_probability
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number


class Accuracy(Metric[SessionResult]):
    """Mean score over the bank."""

    name = "accuracy"
    description = "mean score over the whole bank"
    unit = "proportion"
    plain = "right"
    minimum, maximum = 0.0, 1.0
    kinds = ("at_least", "at_most", "not_worse_than", "rank_within", "above")
    margin = (1.0, "a share of the bank in (0, 1) such as 0.02")
    by_bets = True
    digits = 3
    least_height = 0.2

    def methods(self, kind: str) -> tuple[str, ...]:
        """Return the bets, and the test on questions like the bank's."""
        if kind in RANKS:
            return ("draws",)
        return "draws", LIKE_QUESTIONS

    def check_value(self, condition: Condition) -> None:
        """Refuse an accuracy outside [0, 1] or a margin outside (0, 1)."""
        super().check_value(condition)
        if condition.kind in LIMITS and not 0 <= condition.value <= 1:
            raise ConfigError(f"{self.call(condition)}: an accuracy lies in [0, 1]{as_share(condition.value)}")

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a threshold that no model can miss, or a bank without the recorded subject that gives it."""
        if condition.kind in RANKS:
            reference_threshold(condition, bank)
        elif condition.kind == "at_least" and condition.value * len(bank) < 0.4999:
            raise ConfigError(
                f"{self.call(condition)}: the bank {bank.name!r} has {len(bank)} items, and thresholds below "
                f"{0.5 / len(bank):.5g} do not differ from 0: write that or more"
            )
        elif condition.kind == "at_most" and (1.0 - condition.value) * len(bank) < 0.4999:
            raise ConfigError(
                f"{self.call(condition)}: the bank {bank.name!r} has {len(bank)} items, and thresholds above "
                f"{1.0 - 0.5 / len(bank):.5g} do not differ from 1: write that or less"
            )

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the bank's sum of scores, or on its difference from a baseline's."""
        if condition.kind == "not_worse_than":
            return (PairedClaim.of(baselines[condition.name], condition.value, condition.confidence),)
        if condition.kind in RANKS:
            return (reference_threshold(condition, bank).claim(len(bank), condition.confidence),)
        return (Claim(condition.value * len(bank), condition.confidence),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the draws, or by the interval on questions like the bank's."""
        if condition.method == LIKE_QUESTIONS:
            return _judge_like_questions(result, condition, verdict)
        if condition.kind in RANKS:
            threshold = reference_threshold(condition, result.bank)
            verdict = replace(verdict, requirement=_rank_requirement(threshold, condition, result.bank))
            return judge_claim(result, condition, verdict, guessing=result.chance, notes=_rank_notes(result, condition))
        if condition.kind in LIMITS:
            return judge_claim(result, condition, verdict, guessing=result.chance)
        baseline = result.baselines[condition.name]
        if isinstance(condition.claims(result.bank, result.baselines)[0], PairedClaim):
            return judge_claim(result, condition, verdict, lambda half: 2.0 * half - 1.0)
        baseline_accuracy = float(baseline.scores.mean())
        return judge_claim(result, condition, verdict, lambda accuracy: accuracy - baseline_accuracy)

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlooks of a threshold or of a comparison."""
        target = condition.value
        if condition.kind in RANKS:
            target = reference_threshold(condition, bank).high
        if condition.kind == "not_worse_than":
            return paired_outlooks(condition, bank, policy, baseline, margin)
        return threshold_outlooks(condition, bank, policy, target, baseline, margin)


def _judge_like_questions(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """Return the verdict on questions that the bank is a sample of; the whole bank must have been asked."""
    if result.asked < len(result.bank):
        asked = f"on questions like these a gate needs the whole bank: write budget = {len(result.bank)}"
        return with_note(verdict, asked, Outcome.INCONCLUSIVE)
    baseline, required = None, condition.value
    if condition.kind == "not_worse_than":
        required = -condition.value
        baseline = result.baselines[condition.name].scores[result.log.items]
    notes = (*verdict.notes, *missing_score_notes(result), f"on questions like these {len(result.bank)}")
    return decide_by_bounds(
        replace(verdict, notes=notes),
        condition,
        result.family,
        lambda level: interval_on_like_questions(result.log.scores, baseline, level),
        required,
    )


def reference_threshold(condition: Condition, bank: ItemBank) -> ReferenceThreshold:
    """Return the accuracy that a rank or a comparison with a recorded subject requires."""
    if condition.kind == "above":
        return named_threshold(bank, condition.name)
    return place_threshold(bank, int(condition.value))


def _rank_requirement(threshold: ReferenceThreshold, condition: Condition, bank: ItemBank) -> str:
    """Return a requirement such as ``>= .612 (m38, place 38 of 60)``."""
    if condition.kind == "above":
        rank = ""
    else:
        rank = f", place {int(condition.value)} of {len(bank.accuracies)}"
    return f"{threshold.requirement} ({threshold.subject}{rank})"


def _rank_notes(result: SessionResult, condition: Condition) -> list[str]:
    """Return the rank by the bank's model, which decides nothing; empty where the model does not hold."""
    if result.projected is None or result.misfit:
        return []
    if result.table is not None and not result.log.noise:
        predictive = Predictive.replayed(result.table, result.projected[0], result.scale)
    else:
        predictive = Predictive.normal(*result.projected)
    accuracies = result.bank.accuracies
    ranks = rank_distribution(predictive, accuracies)
    best, worst = ranks.interval(condition.confidence)
    requirement = condition.requirement
    others = accuracies
    k = int(condition.value)
    if condition.kind == "above":
        others = (accuracies[result.bank.subjects.index(condition.name)],)
        k = 1
    probability = number(rank_probability(predictive, others, k))
    return [
        f"by the bank's model alone, which decides nothing: rank {ranks.mean:.1f} [{best}, {worst}] of "
        f"{len(accuracies)}, {requirement} with probability {probability}"
    ]


METRIC = Accuracy()
