"""Quantities of recorded evaluations of any kind, by which histories, comparisons and correlations know them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.parts import QuantityRecord
from pytest_adaptive_eval.records.repetitions import area, area_error
from pytest_adaptive_eval.records.run_record import EvaluationRecord


class Quantity(NamedTuple):
    """A metric, and the part that it is of, such as a category, an ability component or a node; empty for the whole."""

    metric: str
    part: str = ""


def of_models(evaluation: EvaluationRecord) -> Iterator[tuple[Quantity, QuantityRecord]]:
    """Yield the quantities of an evaluation that calls its models itself; a row names its subject.

    Rows of members are their own, and any other row, such as that of a node, is a part of the candidate's result.
    """
    members = {member.name for member in evaluation.members} | {evaluation.subject.name}
    for metric, rows in evaluation.metrics.items():
        for row in rows:
            yield Quantity(metric, "" if row.subject in members else row.subject), row


def of_subject(
    evaluation: EvaluationRecord, measured: Iterable[tuple[Quantity, QuantityRecord]]
) -> list[tuple[Quantity, QuantityRecord]]:
    """Return the quantities of the tested subject and of its parts that an evaluation measured."""
    name = evaluation.subject.name
    return [(quantity, row) for quantity, row in measured if quantity.part or row.subject == name]


def of_answers(interview: EvaluationRecord) -> Iterator[tuple[Quantity, QuantityRecord]]:
    """Yield the quantities of one subject's answers to items; none for another kind than interviews."""
    subject = interview.subject.name
    theta = interview.theta or []
    errors = interview.standard_error or []
    spreads: Sequence[float | None] = interview.ability_sampling_error or [None] * len(errors)
    if interval := area(interview):
        yield Quantity("auc"), _row(subject, interval, area_error(interview))
    if len(theta) == 1:
        parts = [""]
    else:
        parts = interview.bank.parts
    if len(parts) == len(theta) == len(errors) == len(spreads):
        for part, value, error, spread in zip(parts, theta, errors, spreads, strict=True):
            yield Quantity("ability", part), QuantityRecord(subject, value, error=error, sampling_error=spread)
    if interview.accuracy:
        errors_of_accuracy = interview.accuracy_error, interview.accuracy_sampling_error
        yield Quantity("accuracy"), _row(subject, interview.accuracy, *errors_of_accuracy)
    for row in interview.categories:
        yield Quantity("accuracy", row.category), _row(subject, row.accuracy, row.standard_error, row.sampling_error)


def _row(
    subject: str, interval: Interval | None, error: float | None, sampling_error: float | None = None
) -> QuantityRecord:
    if interval is None:
        return QuantityRecord(subject)
    bounds = interval.low, interval.high, interval.confidence, interval.method
    return QuantityRecord(subject, interval.estimate, *bounds, error, sampling_error)
