"""Score of a panel of models that judge each other."""

from __future__ import annotations

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition, Metric
from pytest_adaptive_eval.gates.result import SessionResult


class Score(Metric[SessionResult]):
    """Mean rating of a subject's answers by the panel."""

    name = "score"
    description = "how good a panel of models finds the answers: an opinion, held against no truth"
    unit = "points"
    kinds = ("at_least", "not_worse_than", "rank_within", "above")
    on_banks = False
    on_studies = True

    def check_value(self, condition: Condition) -> None:
        """Refuse a margin of no points."""
        if condition.kind == "not_worse_than" and condition.value <= 0:
            raise ConfigError(f"margin is {condition.value!r}, expected points above 0 such as 0.2")


METRIC = Score()
