"""Gain: accuracy in the fullest format above that in each smaller format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.gain import fullest, gap_claims
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import claim_family, cut_to_outcome, decide_claims, missing_score_notes
from pytest_adaptive_eval.gates.condition import Condition, Metric, undecided_interval
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import PLANNING_MARGIN, first_chances
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number
from pytest_adaptive_eval.ties import tie_ranks


class Gain(Metric[SessionResult]):
    """Smallest difference of accuracy between the fullest format and a smaller one."""

    name = "gain"
    description = "accuracy in the fullest format above that in each smaller one, on a bank administered in formats"
    unit = "proportion"
    minimum, maximum = -1.0, 1.0
    by_bets = True

    def check_value(self, condition: Condition) -> None:
        """Refuse a gain outside (-1, 1)."""
        if not -1 < condition.value < 1:
            raise ConfigError(f"{self.call(condition)}: a gain is a difference of accuracies, in (-1, 1)")

    def check_bank(self, condition: Condition, bank: ItemBank, *, climbed: bool) -> None:
        """Refuse a bank whose formats do not compare."""
        gap_claims(bank, condition.value, condition.confidence)

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return one claim per smaller format."""
        return gap_claims(bank, condition.value, condition.confidence)

    def denials(self, condition: Condition, bank: ItemBank | None) -> int:
        """Return the number of smaller formats."""
        if bank:
            return len(self.claims(condition, bank, {}))
        return 0

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by bets on the draws: PASS needs all smaller formats, FAIL one."""
        claims = gap_claims(result.bank, condition.value, condition.confidence)
        outcomes, _ = decide_claims(result, condition, claims)
        outcome = Outcome.INCONCLUSIVE
        if Outcome.FAIL in outcomes:
            outcome = Outcome.FAIL
        elif set(outcomes) == {Outcome.PASS}:
            outcome = Outcome.PASS
        gaps = [claim.gap(result.log, condition.confidence) for claim in claims]
        order = tie_ranks([gap.estimate for gap in gaps])
        smallest = min(range(len(gaps)), key=lambda n: (outcomes[n] is not Outcome.FAIL, order[n]))
        gains = ", ".join(f"{number(gap.estimate)} over {claim.form}" for claim, gap in zip(claims, gaps, strict=True))
        notes = (f"accuracy as {fullest(result.bank)} gains {gains}", *missing_score_notes(result), *verdict.notes)
        interval = cut_to_outcome(gaps[smallest], outcome, condition.value, (-1.0, 1.0))
        if outcome is Outcome.INCONCLUSIVE:

            def interval_at(confidence: float) -> Interval:
                return claims[smallest].gap(result.log, confidence)

            family = claim_family(result, condition, len(claims))
            interval = undecided_interval(interval, family, interval_at, condition.value)
        return replace(verdict, outcome=outcome, interval=interval, notes=notes)

    def forecast(
        self, condition: Condition, bank: ItemBank, policy: Policy, baseline: Baseline | None, margin: float | None
    ) -> list[Outlook]:
        """Return the outlook of a gain above the threshold over every smaller format, and of one below it over one.

        Accuracies are taken to lie around one half, where the variance is largest.
        """
        gap = PLANNING_MARGIN if margin is None else margin
        claims = gap_claims(bank, condition.value, condition.confidence)
        n = len(bank)
        items = claims[0].items
        signs = claims[0].signs
        q = np.full((1, n), 1.0 / n)
        if bank.calibrated:
            q = first_chances(bank, policy, bank.probability(np.zeros((1, bank.dimensions))))
        corrected = 1.0 - (1.0 - condition.confidence) / len(claims)
        forecast = []
        for gain, confidence, together in (
            (condition.value + gap, condition.confidence, len(claims)),
            (condition.value - gap, corrected, 1),
        ):
            if -1 < gain < 1:
                spread = signs**2 / 4.0 * (1.0 - gain**2) / 4.0
                variance = float((spread / q).sum()) / n**2
                distance = gap * items / n / 2.0
                assumed = claims[0].assumed
                forecast.append(Outlook(n, distance, variance, confidence, together=together, assumed=assumed))
        return forecast


METRIC = Gain()
