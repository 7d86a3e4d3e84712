"""Metrics by values of the answers: what a run measured beside their scores, and how many samples are right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.claims.answer_scores import SCORE, AnswerClaim, AnswerScores, PairedAnswerClaim
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import judge_claim
from pytest_adaptive_eval.gates.condition import Condition, Metric, with_note
from pytest_adaptive_eval.gates.outlook import Outlook
from pytest_adaptive_eval.gates.planning import mean_outlooks
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import counted


class AnswerMetric(Metric[SessionResult]):
    """A mean over the bank of scores that follow from values of the answers, decided by bets.

    Args:
        scores: Scores of items in [0, 1]; None where a condition lacks what they need.
        scale: Value of a score of 1.
        words: Name of the mean in verdicts.
    """

    kinds = ("at_least", "at_most", "not_worse_than")
    by_bets = True
    digits = 3
    least_height = 0.2
    minimum = 0.0
    lacks = ""  #: What a name without such scores lacks.

    def __init__(
        self,
        name: str,
        description: str,
        unit: str,
        scores: AnswerScores | None = None,
        scale: float = 1.0,
        words: str = "",
    ) -> None:
        self.name, self.description, self.unit = name, description, unit
        self.scores, self.scale, self._words = scores, scale, words or name
        self.maximum = scale
        self.margin = (scale, f"a loss above 0 and below {scale:g}, the whole range")

    @property
    def falls(self) -> bool:
        """Whether lower values are better, as with a mean."""
        return self.scores is not None and self.scores.cap is not None

    def quantity(self, condition: Condition) -> str:
        """Return the name of the mean, such as ``share of seconds within 2``."""
        if condition.kind == "not_worse_than":
            return f"{self._words} less that of {condition.name}"
        return self._words

    def distance(self, share: float) -> str:
        """Return a distance of means in words."""
        if self.falls:
            return f"{share:.0%} of the cap"
        return super().distance(share)

    def is_upper(self, condition: Condition) -> bool:
        """Return whether a condition is an upper limit: of lower values that are better, also a loss."""
        return super().is_upper(condition) or (self.falls and condition.kind == "not_worse_than")

    def check_value(self, condition: Condition) -> None:
        """Refuse a name that lacks something, a value outside the range, or a margin of the whole of it."""
        if self.scores is None:
            raise ConfigError(f"metric {self.name}: {self.lacks}")
        super().check_value(condition)
        if condition.kind != "not_worse_than" and not 0 <= condition.value <= self.scale:
            raise ConfigError(f"{self.call(condition)}: {self._words} lies in [0, {self.scale:g}]")

    def claims(self, condition: Condition, bank: ItemBank, baselines: Mapping[str, Baseline]) -> tuple[Claim, ...]:
        """Return the claim on the bank's sum of these scores, or on its difference from a baseline's."""
        assert self.scores is not None
        share = condition.value / self.scale
        if condition.kind != "not_worse_than":
            return (AnswerClaim(share * len(bank), condition.confidence, scores=self.scores),)
        better = replace(self.scores, opposite=self.scores.opposite or self.falls)
        return (PairedAnswerClaim.against(baselines[condition.name], share, condition.confidence, better),)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the draws; an ERROR if no answer has a value."""
        assert self.scores is not None
        missing = int(np.isnan(self.scores.of(result.log)).sum())
        value = f"a value of {self.scores.name}"
        if missing == result.asked:
            measured = ", ".join(sorted({*result.log.answers} - {SCORE})) or "nothing"
            return with_note(verdict, f"no answer has {value}; the run measured {measured}")
        first, slope = 0.0, self.scale
        if condition.kind == "not_worse_than":  # of differences, which are halved to lie in [0, 1]
            slope = -2.0 * self.scale if self.falls else 2.0 * self.scale
            first = -slope / 2.0
        note = ""
        if missing:
            note = f"{counted(missing, 'item')} without {value}: it counts against PASS and against FAIL"
        return judge_claim(result, condition, verdict, lambda score: first + slope * score, missing=note)

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
    """A value that the run measures of each answer, as a share within a bound, or as a mean of values cut at a cap."""

    by_scores: ClassVar[bool] = False
    lacks = (
        "write within = 2.0 for the share of answers up to that value, or cap = 10.0 for the mean of values cut there"
    )

    def bounded(self, within: float | None, cap: float | None) -> Measured:
        """Return the metric with one of the two bounds."""
        label = self.name.replace("_", " ")
        scores = AnswerScores(self.name, within, cap)
        if within is not None and cap is not None:
            raise ConfigError(f"metric {self.name}: within and cap exclude each other: {self.lacks}")
        if within is not None:
            words = f"share of {label} within {within:g}"
            return Measured(self.name, self.description, self.unit, scores, words=words)
        if cap is not None:
            return Measured(self.name, self.description, self.unit, scores, cap, f"mean {label} cut at {cap:g}")
        return self


class PassOf(AnswerMetric):
    """The chance that all, or any, of k new samples of an item are right, as the mean over the bank."""

    lacks = "write a number from 1 on in place of k, such as 3"

    def component(self, name: str) -> PassOf:
        """Return the metric of a number of samples, or itself for ``k``."""
        if name in ("k", "0"):
            return self
        is_any = "@" in self.name
        scores = AnswerScores(k=int(name), opposite=is_any, complement=is_any)
        return PassOf(self.name[:-1] + name, self.description, self.unit, scores)

    def check_samples(self, condition: Condition, samples: int) -> None:
        """Refuse fewer samples of an item than the metric is about."""
        assert self.scores is not None
        k = self.scores.k
        if samples < k:
            raise ConfigError(
                f"{self.call(condition)}: each item is asked {counted(samples, 'time')}, expected samples of at least "
                f"{k}: write samples = {k} or more into the evaluation"
            )
