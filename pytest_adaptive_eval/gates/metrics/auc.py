"""Area: the accuracies summed over the levels of a task, alone or against a baseline with the same questions."""

from __future__ import annotations

import math

import numpy as np

from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.errors import BaselineError, ConfigError
from pytest_adaptive_eval.gates.condition import Condition, LadderPolicy, Metric, decide_by_bounds
from pytest_adaptive_eval.gates.result import Result, SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.ladder.result import Ladder, difference


class Auc(Metric[Result]):
    """Sum of the accuracies by level, in levels."""

    name = "auc"
    description = "sum of the accuracies at the levels of a task or of one node of a network"
    unit = "levels"
    minimum = 0.0
    kinds = ("at_least", "at_most", "not_worse_than")
    margin = (math.inf, "a number of levels above 0 such as 0.5")
    by_levels = True
    whole_bank = "area by levels"

    def check_ladder(self, ladder: LadderPolicy) -> None:
        """Refuse a ladder whose answers do not measure the area."""
        if ladder.area_fault:
            raise ConfigError(ladder.area_fault)

    def judge(self, result: Result, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the bounds of the area, or of its difference from a baseline's."""
        if condition.kind != "not_worse_than" or not isinstance(result, SessionResult):
            return result.judge_quantity(condition, verdict)
        ladder, policy = result.ladder, result.climb
        assert ladder is not None
        assert policy is not None
        baseline = _baseline_ladder(result, policy, result.baselines[condition.name])
        return decide_by_bounds(
            verdict,
            condition,
            result.family,
            # levels that neither reached count as equal: both had failed before
            lambda level: difference(ladder, baseline, level, "zero"),
            -condition.value,
        )


def _baseline_ladder(result: SessionResult, policy: LadderPolicy, baseline: Baseline) -> Ladder:
    """Return the scores by level of a baseline on the same levels."""
    if not policy.paired:
        raise ConfigError(
            f"{result.name}: an area is compared with a baseline's question by question, on levels that were asked in "
            "full: remove stop"
        )
    queries = policy.queries
    asked = ~np.isnan(baseline.scores)
    if baseline.log is not None:
        asked[baseline.log.items] = True
    levels = int(asked.reshape(-1, queries).all(axis=1).cumprod().sum())
    if not levels:
        raise BaselineError(f"{result.name}: the baseline {baseline.name!r} answered no level of this task")
    return Ladder(tuple(baseline.scores.reshape(-1, queries)[:levels]), len(result.bank) // queries)


METRIC = Auc()
