"""Rank among the subjects of an evaluation, by its first metric."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_adaptive_eval.gates.condition import Metric
from pytest_adaptive_eval.gates.result import Result


class Rank(Metric[Result]):
    """Rank by the first metric of an evaluation of several subjects, whose name its conditions get."""

    name = "rank"
    description = "rank by the first metric of an evaluation of several models"
    kinds = ("rank_within", "above")
    on_banks = False

    def among(self, metrics: Sequence[str]) -> str:
        """Return the first metric."""
        return metrics[0]


METRIC = Rank()
