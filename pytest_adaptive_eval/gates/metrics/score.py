"""Score of a panel of models that judge each other."""

from __future__ import annotations

import math

from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.result import Result


class Score(Metric[Result]):
    """Mean rating of a subject's answers by the panel."""

    name = "score"
    description = "a panel's rating of the answers: an opinion, not compared with a truth"
    unit = "points"
    kinds = ("at_least", "at_most", "not_worse_than", "rank_within", "above")
    margin = (math.inf, "points above 0 such as 0.2")
    on_banks = False
    whole_bank = "whole panel"


METRIC = Score()
