"""Score of a panel of models that judge each other."""

from __future__ import annotations

from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.result import SessionResult

__all__ = ["METRIC", "Score"]


class Score(Metric[SessionResult]):
    """Mean rating of a subject's answers by the panel."""

    name = "score"
    description = "how good a panel of models finds the answers: an opinion, held against no truth"
    unit = "points"
    kinds = ("at_least", "rank_within", "above")
    on_banks = False
    on_studies = True


METRIC = Score()
