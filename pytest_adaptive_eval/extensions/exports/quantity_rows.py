"""Rows of measured quantities for other tools: one per subject and quantity of an evaluation of several models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports.sections import section_of

QUANTITIES_VERSION = 1  #: Version of the columns; a changed or removed column raises it, a new one does not.
#: The columns, in order.
QUANTITY_COLUMNS = (
    "schema_version",
    "run",
    "started",
    "evaluation",
    "kind",
    "candidate",
    "metric",
    "subject",
    "node",
    "checkpoint",
    "estimate",
    "low",
    "high",
    "confidence",
    "method",
    "standard_error",
    "rank",
    "rank_best",
    "rank_worst",
    "asked",
    "size",
    "unit",
    "void",
)


def quantity_rows(record: RunRecord, evaluation: EvaluationRecord) -> Iterator[dict[str, Any]]:
    """Yield a mapping of `QUANTITY_COLUMNS` for each subject of each quantity.

    In a network all quantities are the interviewee's: ``subject`` is the interviewee, and ``node`` is the node, empty
    for the whole network.
    """
    head = (QUANTITIES_VERSION, record.run, record.started, evaluation.name, evaluation.kind, evaluation.subject.name)
    tail = (evaluation.asked, evaluation.size, evaluation.unit, evaluation.error)
    by_node = not section_of(evaluation.kind).ranks_subjects
    for metric, rows in evaluation.metrics.items():
        for row in rows:
            subject, node = row.subject, ""
            if by_node:
                subject, node = evaluation.subject.name, "" if subject == evaluation.subject.name else subject
            rank = (row.rank.mean, row.rank.best, row.rank.worst) if row.rank else (None, None, None)
            interval = (row.estimate, row.low, row.high, row.confidence, row.method, row.error)
            values = (*head, metric, subject, node, evaluation.member(subject).checkpoint, *interval, *rank, *tail)
            yield dict(zip(QUANTITY_COLUMNS, values, strict=True))
