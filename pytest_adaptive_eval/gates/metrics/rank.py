"""Rank among other subjects: by the first metric, or by the accuracy among the bank's reference subjects."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.gates.condition import Condition, Metric, decide_by_probability
from pytest_adaptive_eval.gates.result import Result, SessionResult
from pytest_adaptive_eval.gates.verdict import Verdict
from pytest_adaptive_eval.inference.ranks import Predictive, above_probability, rank_distribution, rank_probability
from pytest_adaptive_eval.inference.sampling import merge_missing_bounds, with_missing_bounded
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.text import number

ONE_STANDARD_ERROR = 0.8413  #: Confidence of bounds one standard error to either side.


class Rank(Metric[Result]):
    """Rank by the first metric of an evaluation of several subjects, whose name its conditions get."""

    name = "rank"
    description = "rank by the first metric of an evaluation of several models"
    kinds = ("rank_within", "above")
    on_banks = False

    def among(self, metrics: Sequence[str]) -> str:
        """Return the first metric."""
        return metrics[0]


def check_references(condition: Condition, bank: ItemBank) -> None:
    """Refuse a bank without the reference subjects that the condition ranks.

    Raises:
        ConfigError: There are none, too few, or none of the name.
    """
    if not bank.accuracies:
        raise ConfigError(
            f"the bank {bank.name!r} has no reference subjects to rank among: calibrate it again, from responses "
            "of several subjects"
        )
    if condition.kind == "above":
        if condition.name not in bank.subjects:
            raise ConfigError(
                f"the bank {bank.name!r} has no reference subject {condition.name!r}; known are "
                f"{', '.join(bank.subjects)}"
            )
    elif condition.value > len(bank.accuracies):
        raise ConfigError(
            f"rank_within({int(condition.value)}) holds for every model: the bank {bank.name!r} has "
            f"{len(bank.accuracies)} reference subjects, so ask for a rank of at most that"
        )


def judge_reference_rank(result: SessionResult, condition: Condition, verdict: Verdict) -> Verdict:
    """Return the verdict on the accuracy's rank among the bank's reference subjects."""
    bank, predictive = result.bank, _predictive(result)
    if condition.kind == "above":
        reference = bank.accuracies[bank.subjects.index(condition.name)]
        fact = f"accuracy above {condition.name} ({number(reference)})"
        return decide_by_probability(verdict, condition, fact, above_probability(predictive, reference))
    ranks = rank_distribution(predictive, bank.accuracies)
    best, worst = ranks.interval(condition.probability)
    fact = f"rank {ranks.mean:.1f} [{best}, {worst}] among {len(bank.accuracies)} references, {condition.requirement}"
    probability = rank_probability(predictive, bank.accuracies, int(condition.value))
    return decide_by_probability(verdict, condition, fact, probability)


def _predictive(result: SessionResult) -> Predictive:
    """Return the distribution of the accuracy: by replayed interviews, or by the draws, which alone allow for noise."""
    if result.table is not None and result.projected is not None and not result.log.noise:
        return Predictive.replayed(result.table, result.projected[0], result.scale)
    interval = result.interval(ONE_STANDARD_ERROR) if result.own else None
    if interval is None:
        interval = merge_missing_bounds(*with_missing_bounded(result.log, ONE_STANDARD_ERROR))
    standard_error = (interval.high - interval.low) / 2
    return Predictive.normal(interval.estimate, standard_error).among(result.bank.accuracies)


METRIC = Rank()
