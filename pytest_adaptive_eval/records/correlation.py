"""Correlations of evaluations over the subjects that they have in common.

Both coefficients have an interval by Fisher's z = atanh(r), whose error is about normal: 1 / sqrt(n - 3) for Pearson's
r of n subjects (Fisher 1915), and sqrt((1 + r^2 / 2) / (n - 3)) for Spearman's (Bonett and Wright 2000), and sqrt(.437
/ (n - 4)) for Kendall's tau (Fieller, Hartley and Pearson 1957). That takes the subjects as drawn independently from a
population whose values, or for Spearman's some rising function of them, are jointly normal. Checkpoints of one training
run are not independent, so their interval is too narrow.

A coefficient of 1 has an infinite z and an interval without width for any n, and few subjects are often in the same
order by chance. Coefficients are therefore limited to half a step below 1, where a step is the smallest change of
Spearman's coefficient: 12 / (n^3 - n).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.rank_correlation import kendall_tau, rank_correlation
from pytest_adaptive_eval.records.quantities import quantities
from pytest_adaptive_eval.records.repetitions import area, population
from pytest_adaptive_eval.records.run_record import EvaluationRecord
from pytest_adaptive_eval.types import Array

LEAST = 4  #: Subjects below which Fisher's z has no error.
CONFIDENCE = 0.975  #: Confidence of each one-sided bound: 95 % two-sided.
_LAST_LEVEL = "last level"  #: Metric of a ladder that is correlated with its own area alone.
_DIGITS = 12  #: Digits of a value that count, so that rounding does not change ranks.


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity of several subjects; `elsewhere` counts those asked on other items or in another way."""

    name: str
    metric: str
    values: Mapping[str, float]
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class Correlation:
    """Correlation over the subjects in common; None if undefined, Kendall's tau-b also with fewer than 5 subjects."""

    subjects: int
    spearman: Interval | None = None
    pearson: Interval | None = None
    kendall: Interval | None = None
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.to_json() if isinstance(value, Interval) else value for name, value in values.items()}


def correlate(first: Mapping[str, float], second: Mapping[str, float]) -> Correlation:
    """Return the rank and linear correlation of two quantities."""
    common = [subject for subject in first if subject in second]
    n = len(common)
    if n < LEAST:
        return Correlation(n, why=f"it takes {LEAST} subjects in common")
    x, y = (np.array([float(f"{values[s]:.{_DIGITS}g}") for s in common]) for values in (first, second))
    for values, position in ((x, "first"), (y, "second")):
        if values.min() == values.max():
            return Correlation(n, why=f"the {position} is the same for all of them")
    rho, r = rank_correlation(x, y), _moment(x, y)
    return Correlation(
        n,
        spearman=_interval(rho, n, _error(rho, n, 0.5), "Bonett-Wright"),
        pearson=_interval(r, n, _error(r, n, 0.0), "Fisher z"),
        kendall=_interval(kendall_tau(x, y), n, (0.437 / (n - 4)) ** 0.5, "Fieller") if n > 4 else None,
    )


def _moment(x: Array, y: Array) -> float:
    """Return Pearson's coefficient of values that are not constant."""
    x, y = (values / abs(values).max() for values in (x, y))  # no square overflows
    x, y = x - x.mean(), y - y.mean()
    r = float((x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()))
    return min(max(r, -1.0), 1.0)


def _limited(r: float, n: int) -> float:
    """Return a coefficient at most half a step below 1."""
    most = 1.0 - 6.0 / (n**3 - n)
    return min(max(r, -most), most)


def _error(r: float, n: int, growth: float) -> float:
    return math.sqrt((1.0 + growth * _limited(r, n) ** 2) / (n - 3))


def _interval(r: float, n: int, error: float, method: str) -> Interval:
    taken, half = _limited(r, n), NormalDist().inv_cdf(CONFIDENCE) * error
    low, high = (math.tanh(math.atanh(taken) + side * half) for side in (-1.0, 1.0))
    return Interval(r, min(low, r), max(high, r), CONFIDENCE, method)


def measures(evaluations: Iterable[EvaluationRecord]) -> list[Measure]:
    """Return the quantities of evaluations, by the newest result of each subject.

    A ladder has its area, followed by its last level; any other interview its accuracy, by the draws or else the bank's
    projection. A panel has a score of each member. A network has its interviewee's energy, and the area of each node
    under the name ``NAME/NODE``. If the bank, levels or settings of an evaluation changed, the newest ones count.
    """
    by_name: dict[str, dict[str, dict[str, dict[str, float]]]] = {}  # name, population, metric, subject
    newest: dict[str, str] = {}
    for evaluation in evaluations:
        asked = population(evaluation)
        for name, metric, subject, value in () if evaluation.void else _values(evaluation):
            newest[name] = asked
            by_name.setdefault(name, {}).setdefault(asked, {}).setdefault(metric, {})[subject] = value
    return [
        Measure(name, metric, values, _elsewhere(by_name[name].values(), metric, set(values)))
        for name, current in newest.items()
        for metric, values in by_name[name][current].items()
    ]


def _elsewhere(populations: Iterable[Mapping[str, Mapping[str, float]]], metric: str, here: set[str]) -> int:
    """Return the number of subjects that have no value of a metric here, and one of the evaluation elsewhere."""
    if metric == _LAST_LEVEL:
        return 0
    return len({subject for metrics in populations for values in metrics.values() for subject in values} - here)


def _values(evaluation: EvaluationRecord) -> Iterator[tuple[str, str, str, float]]:
    """Yield name, metric, subject and value of each quantity of an evaluation that orders subjects."""
    name = evaluation.name
    if not evaluation.is_interview:
        for quantity, row in quantities(evaluation):
            if row.estimate is not None and quantity.metric != "last_level":
                subject = evaluation.subject.name if quantity.part else row.subject
                yield f"{name}/{quantity.part}" if quantity.part else name, quantity.metric, subject, row.estimate
        return
    levels, subject = evaluation.levels, evaluation.subject.name
    if interval := area(evaluation) if levels else evaluation.projection:
        yield name, "auc" if levels else "accuracy", subject, interval.estimate
        if levels and levels.last_level is not None:
            yield name, _LAST_LEVEL, subject, float(levels.last_level)


def table(measured: Sequence[Measure]) -> dict[tuple[int, int], Correlation]:
    """Return the correlations of all pairs by their indices; of a last level, only the one with its own area."""
    pairs: dict[tuple[int, int], Correlation] = {}
    for j, second in enumerate(measured):
        for i, first in enumerate(measured[:j]):
            last = _LAST_LEVEL in (first.metric, second.metric)
            if not last or (first.name, first.metric) == (second.name, "auc"):
                pairs[i, j] = correlate(first.values, second.values)
    return pairs
