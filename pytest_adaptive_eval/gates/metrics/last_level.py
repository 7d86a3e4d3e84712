"""Last level: the hardest level of a task that a subject passes."""

from __future__ import annotations

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import LadderPolicy, Metric
from pytest_adaptive_eval.gates.result import Result


class LastLevel(Metric[Result]):
    """Last level with an accuracy above the rate that ends the ladder."""

    name = "last_level"
    description = "last level of a task, or of one node of a network, with an accuracy above the rate that ends it"
    unit = "levels"
    minimum = 0.0
    kinds = ("at_least", "at_most")
    by_levels = True

    def check_ladder(self, ladder: LadderPolicy) -> None:
        """Refuse a ladder whose answers do not measure the last level."""
        if ladder.last_level_fault:
            raise ConfigError(ladder.last_level_fault)


METRIC = LastLevel()
