"""Metrics by values of the answers: what a run measured beside their scores, and how many samples are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.answer_scores import (
    SCORE,
    AllRight,
    AnswerClaim,
    AnswerScores,
    AnyRight,
    CutAt,
    PairedAnswerClaim,
    Within,
)
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim, missing_value_note
from pytest_adaptive_eval.gates.condition import Condition, Metric, with_note
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import mean_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted

_UNBOUNDED = (
    "write within = 2.0 for the share of answers up to that value, or cap = 10.0 for the mean of values cut there"
)


class AnswerMetric(Metric[SessionResult]):
    """A mean over the bank of scores that follow from values of the answers, decided by bets.

    Attributes:
        scores: Scores of items in [0, 1]; None where a condition lacks its bounds.
        scale: Value of a score of 1.
        falls: Whether lower values are better.
        value: What an answer has a value of, in words.
    """

    kinds = ("at_least", "at_most", "not_worse_than")
    by_bets = True
    digits = 3
    least_height = 0.2
    minimum = 0.0
    scores: AnswerScores | None = None
    scale = 1.0
    falls = False
    value: str

    def is_upper(self, condition: Condition) -> bool:
        """Return whether a condition is an upper limit: of lower values that are better, also a loss."""
        return super().is_upper(condition) or (self.falls and condition.kind == "not_worse_than")

    def check_value(self, condition: Condition) -> None:
        """Refuse a value outside the range, or a margin of at least the whole of it."""
        super().check_value(condition)
        if condition.kind != "not_worse_than" and not 0 <= condition.value <= self.scale:
            raise ConfigError(f"{self.call(condition)}: {self.quantity(condition)} lies in [0, {self.scale:g}]")

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the bank's sum of these scores, or on its difference from a baseline's."""
        assert self.scores is not None
        share = condition.value / self.scale
        if condition.kind != "not_worse_than":
            return (AnswerClaim(share * len(bank), condition.confidence, scores=self.scores),)
        scores = self.scores
        if self.falls:
            scores = AnswerScores(scores.name, CutAt(self.scale, saved=True))
        return (PairedAnswerClaim.against(baselines[condition.name], share, condition.confidence, scores),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the draws; an ERROR if no answer has a value."""
        assert self.scores is not None
        missing = int(np.isnan(self.scores.of(result.log)).sum())
        if missing == result.asked:
            measured = ", ".join(sorted({*result.log.answers} - {SCORE})) or "nothing"
            return with_note(verdict, f"no answer has {self.value}; the run measured {measured}")
        sign = -1.0 if self.falls else 1.0

        def difference(half: float) -> float:
            return sign * (2.0 * half - 1.0) * self.scale

        def value(score: float) -> float:
            return score * self.scale

        to_unit = difference if condition.kind == "not_worse_than" else value
        return judge_claim(result, condition, verdict, to_unit, missing=missing_value_note(missing, self.value))

    def forecast(
        self,
        condition: Condition,
        bank: ItemBank,
        policy: Policy,
        baseline: Baseline | None,  # noqa: ARG002 -- of all metrics alike
        margin: float | None,
    ) -> list[Outlook]:
        """Return the outlooks of scores of 0 and 1, which vary most."""
        return mean_outlooks(condition, bank, policy, condition.value / self.scale, margin)


class Measured(AnswerMetric):
    """A value that the run measures of each answer, as a share within a bound, or as a mean of values cut at a cap.

    Args:
        unit: Unit of the value; empty for a field that tests record.
    """

    by_scores: ClassVar[bool] = False

    def __init__(
        self, name: str, description: str, unit: str = "", within: float | None = None, cap: float | None = None
    ) -> None:
        self.name, self.description, self.unit = name, description, unit
        self.value = f"a value of {name}"
        self._within, self._cap = within, cap
        if within is not None:
            self.scores = AnswerScores(name, Within(within))
            self.maximum = 1.0
            self.margin = (1.0, "a share of the bank in (0, 1) such as 0.02")
        elif cap is not None:
            self.scores = AnswerScores(name, CutAt(cap))
            self.scale, self.falls = float(cap), True
            self.maximum = float(cap)
            self.margin = (float(cap), f"a value above 0 and below the cap, {cap:g}")

    def bounded(self, within: float | None, cap: float | None) -> Measured:
        """Return the metric with one of the two bounds."""
        if (within is None) == (cap is None):
            both = "" if within is None else "within and cap exclude each other: "
            raise ConfigError(f"metric {self.name}: {both}{_UNBOUNDED}")
        return Measured(self.name, self.description, self.unit, within, cap)

    def quantity(self, condition: Condition) -> str:
        """Return the share or the mean with its bound, such as ``seconds within 2``."""
        if self._within is not None:
            quantity = f"share of {self.name} within {self._within:g}"
        else:
            quantity = f"mean {self.name} cut at {self.scale:g}"
        quantity = quantity.replace("_", " ")
        if condition.kind == "not_worse_than":
            return f"{quantity} less that of {condition.name}"
        return quantity

    def distance(self, share: float) -> str:
        """Return a distance of means in words."""
        if self._cap is None:
            return super().distance(share)
        return f"{share:.0%} of the cap"


class PassOf(AnswerMetric):
    """The chance that all, or any, of `k` new samples of an item are right, as the mean over the bank.

    Args:
        name: Name with ``k`` in place of the number.
        rule: Rule of a number of samples.
    """

    description = ""
    unit = "proportion"
    minimum, maximum = 0.0, 1.0
    margin = (1.0, "a share of the bank in (0, 1) such as 0.02")
    value = "a score of each sample"

    def __init__(self, name: str, description: str, rule: type[AllRight] | type[AnyRight], k: int = 0) -> None:
        self.name = name[:-1] + str(k) if k else name
        self.description = description
        self._named, self._rule, self.k = name, rule, k
        if k:
            self.scores = AnswerScores(SCORE, rule(k))

    def component(self, name: str) -> PassOf:
        """Return the metric of a number of samples, or itself for ``k``."""
        if name == "k":
            return self
        if not int(name):
            raise ConfigError(
                f"metric {self._named[:-1]}{name}: expected at least one sample, such as {self._named[:-1]}3"
            )
        return PassOf(self._named, self.description, self._rule, int(name))

    def check_value(self, condition: Condition) -> None:
        """Refuse a name without a number of samples."""
        if not self.k:
            raise ConfigError(f"metric {self.name}: write a number in place of k, such as {self.name[:-1]}3")
        super().check_value(condition)

    def check_samples(self, condition: Condition, samples: int) -> None:
        """Refuse fewer samples of an item than the metric is about."""
        if samples < self.k:
            raise ConfigError(
                f"{self.call(condition)}: each item is asked {counted(samples, 'time')}, expected samples of at least "
                f"{self.k}: write samples = {self.k} or more into the evaluation"
            )

    def by_item(self, result: SessionResult) -> dict[str, float]:
        """Return the estimate of each item whose samples all have a score."""
        assert self.scores is not None
        estimates = {}
        for place, score in zip(result.log.items.tolist(), self.scores.of(result.log).tolist(), strict=True):
            if score == score:  # not NaN
                estimates[str(result.bank.ids[place])] = score
        return estimates
