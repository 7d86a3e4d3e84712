"""Last level: the hardest level of a task that a subject passes."""

from __future__ import annotations

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition, LadderPolicy, Metric, decide_by_bounds
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict


class LastLevel(Metric[SessionResult]):
    """Last level with an accuracy above the rate that ends the ladder."""

    name = "last_level"
    description = "last level of a task, or of one node of a network, with an accuracy above the rate that ends it"
    unit = "levels"
    minimum = 0.0
    by_levels = True

    def check_ladder(self, ladder: LadderPolicy) -> None:
        """Refuse a ladder whose answers do not measure the last level."""
        if ladder.last_level_fault:
            raise ConfigError(ladder.last_level_fault)

    def judge(self, result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
        """Return the verdict by the levels that are certified."""
        ladder, policy = result.ladder, result.climb
        assert ladder is not None
        assert policy is not None
        return decide_by_bounds(
            verdict, condition, result.family, lambda level: policy.last(ladder, level), condition.value
        )


METRIC = LastLevel()
