"""Rank correlations of evaluations over the subjects that they have in common, with scipy's test.

Kendall's tau-b has a p-value, exact for few subjects without ties. It takes the subjects as drawn independently, which
checkpoints of one training run are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from pytest_adaptive_eval.records.quantities import of_models
from pytest_adaptive_eval.records.repetitions import area, population
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.ties import tie_ranks

LEAST = 4  #: Fewest subjects of a correlation; of three, no order is surprising.


class Measure(NamedTuple):
    """One quantity of several subjects."""

    name: str
    metric: str
    values: Mapping[str, float]


class Correlation(NamedTuple):
    """Correlation over the subjects in common; None with fewer than `LEAST`, or if either is the same for all."""

    subjects: int
    spearman: float | None = None
    kendall: float | None = None
    p_value: float | None = None


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Return the rank correlation of two quantities."""
    from scipy.stats import kendalltau, spearmanr

    common = [subject for subject in first if subject in second]
    x, y = (tie_ranks(np.array([values[subject] for subject in common])) for values in (first, second))
    if len(common) < LEAST or not np.ptp(x) or not np.ptp(y):
        return Correlation(len(common))
    tests = (spearmanr(x, y).statistic, *kendalltau(x, y))
    return Correlation(len(common), *map(float, tests))


def measures(evaluations: Iterable[EvaluationRecord]) -> list[Measure]:
    """Return the quantities of evaluations, by the newest result of each subject.

    A ladder has its area; any other interview its accuracy, by the draws or else the bank's projection. A panel has a
    score of each member, and a network its interviewee's energy and the area of each node. If the bank, levels or
    settings of an evaluation changed, the newest ones count. Models side by side are subjects of one evaluation.
    """
    by_quantity: dict[tuple[str, str, str], dict[str, float]] = {}
    newest: dict[str, str] = {}
    evaluations = list(evaluations)
    variants: dict[tuple[str, str], set[str]] = {}
    for evaluation in evaluations:
        variants.setdefault((evaluation.group, evaluation.subject.name), set()).add(evaluation.variant)
    of_prompts = {group for (group, _), names in variants.items() if len(names) > 1}
    for evaluation in evaluations:
        name = evaluation.evaluation_name
        if evaluation.group not in ("", *of_prompts):
            name = evaluation.group  # models side by side, whose names hold the model
        for metric, subject, value in () if evaluation.void else _values(evaluation):
            newest[name] = population(evaluation)
            by_quantity.setdefault((name, newest[name], metric), {})[subject] = value
    return [Measure(name, metric, values) for (name, of, metric), values in by_quantity.items() if of == newest[name]]


def _values(evaluation: EvaluationRecord) -> Iterator[tuple[str, str, float]]:
    """Yield metric, subject and value of each whole quantity of an evaluation."""
    if evaluation.levels:
        metric, interval = "auc", area(evaluation)
    else:
        metric, interval = "accuracy", evaluation.projection
    if interval:
        yield metric, evaluation.subject.name, interval.estimate
    for quantity, row in of_models(evaluation):
        if row.estimate is not None and not quantity.part:
            yield quantity.metric, row.subject, row.estimate
        elif row.estimate is not None and quantity.metric == "auc":
            yield f"auc of {quantity.part}", evaluation.subject.name, row.estimate
