"""Verdicts on finished runs, all of whose questions were asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.bets import map_interval, missing_score_notes
from pytest_adaptive_eval.gates.condition import RANKS, Condition
from pytest_adaptive_eval.gates.must_pass import MustPassAnswer, with_must_pass
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict
from pytest_adaptive_eval.inference.betting import ROUNDING, interval_of_draws
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item, Status
from pytest_adaptive_eval.text import counted
from pytest_adaptive_eval.types import Array

#: Questions that stand for those like the ones asked, per question asked: so many that the asked ones are no share.
_LIKE = 10_000
_TEXTLESS = MappingProxyType({"textless": True})


class FinishedRun(NamedTuple):
    """Scores of a run that asked all of its questions.

    Args:
        scores: Shape (n,). In [0, 1]; NaN where missing.
        baselines: Shape (n,). Scores of other finished runs on the same items, none of them missing.
        must_pass: Answers that must be right whatever the accuracy.
    """

    name: str
    items: Sequence[str]
    scores: Array
    baselines: Mapping[str, Array] = MappingProxyType({})
    must_pass: Sequence[MustPassAnswer] = ()

    def judge(self, condition: Condition, *, like_questions: bool = False) -> Verdict:
        """Return the verdict on a condition.

        Args:
            condition: On the accuracy, alone or against a baseline.
            like_questions: Judge on questions like these, see `interval_on_like_questions`; otherwise on these alone.

        Raises:
            ConfigError: Another condition, or a value out of range.
        """
        if condition.metric != "accuracy" or condition.kind in RANKS:
            raise ConfigError(
                f"{condition.metric} {condition.requirement}: finished runs are judged on their accuracy alone; "
                "gate on accuracy"
            )
        judged = self._judge_accuracy(condition, like_questions)
        return with_must_pass(judged, lambda _: judged, self.must_pass)

    def _judge_accuracy(self, condition: Condition, like_questions: bool) -> Verdict:
        result = self._result()
        verdict = result.judge(condition)  # which checks the condition, and names faults
        if verdict.interval is None:
            return verdict
        baseline = self.baselines.get(condition.name)
        interval_of = interval_on_like_questions if like_questions else interval_on_these_questions
        interval = interval_of(self.scores, baseline, condition.confidence)
        required = condition.value if baseline is None else -condition.value
        notes = missing_score_notes(result)
        if like_questions:
            notes.append(f"on questions like these {counted(len(self.items), 'question')}")
        outcome = Outcome.INCONCLUSIVE
        if interval.low >= required - ROUNDING:
            outcome = Outcome.PASS
        elif interval.high < required - ROUNDING:
            outcome = Outcome.FAIL
        elif not like_questions:
            notes.insert(0, "answers without a score leave it open")
        return replace(verdict, outcome=outcome, interval=interval, notes=tuple(notes))

    def _result(self) -> SessionResult:
        scored = int((~np.isnan(self.scores)).sum())
        counts = {Status.OK.value: scored, Status.ERROR.value: len(self.items) - scored}
        return SessionResult(
            name=self.name,
            bank=ItemBank.uncalibrated(self.name, [Item(id=item, meta=_TEXTLESS) for item in self.items]),
            log=uniform_draws(self.scores, len(self.items)),
            theta=None,
            standard_error=None,
            stop=StopReason.EXHAUSTED,
            statuses={status: count for status, count in counts.items() if count},
            baselines={key: Baseline(key, values) for key, values in self.baselines.items()},
        )


def interval_on_these_questions(scores: Array, baseline: Array | None = None, confidence: float = 0.95) -> Interval:
    """Return the accuracy over the questions, or the difference, between the bounds that missing scores leave."""
    than = 0.0 if baseline is None else float(baseline.mean())
    low, high = (float(np.where(np.isnan(scores), missing, scores).mean()) - than for missing in (0.0, 1.0))
    return Interval((low + high) / 2, low, high, confidence, "whole log")


def interval_on_like_questions(scores: Array, baseline: Array | None = None, confidence: float = 0.95) -> Interval:
    """Return the interval of the accuracy, or of the paired difference, on questions like those asked.

    The questions count as drawn at random from many more. Bounds of an accuracy by scores of 0 and 1 are exact (Clopper
    and Pearson 1934); others are those of bets, see `inference.betting`.

    Args:
        scores: Shape (n,). In [0, 1]; a missing score widens the interval.
        baseline: Shape (n,). Scores of the baseline on the same questions, none of them missing.
        confidence: Of each one-sided bound.
    """
    values = scores if baseline is None else (1.0 + scores - baseline) / 2.0
    interval = interval_of_draws(uniform_draws(values, _LIKE * len(values)), confidence)
    return interval if baseline is None else map_interval(interval, lambda half: 2.0 * half - 1.0)
