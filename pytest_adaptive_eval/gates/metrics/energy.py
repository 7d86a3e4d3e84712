"""Energy of a network: the share of its routes that the interviewee masters."""

from __future__ import annotations

from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.result import Result


class Energy(Metric[Result]):
    """Energy of the interviewee of a network."""

    name = "energy"
    description = "mastered share of what a network's routes hold, if accuracy never rises with level"
    unit = "proportion"
    minimum, maximum = 0.0, 1.0
    kinds = ("at_least", "at_most", "not_worse_than")
    margin = (1.0, "a share in (0, 1) such as 0.05")
    on_banks = False
    whole_bank = "whole network"


METRIC = Energy()
