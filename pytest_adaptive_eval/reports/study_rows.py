"""What studies found as flat rows for other tools: one a subject and quantity, typed whatever the record holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.typed import as_count, as_number, as_text

__all__ = ["STUDIES_VERSION", "STUDY_COLUMNS", "member", "study_rows"]

#: Version of the columns; a new one leaves it, a changed or removed one raises it.
STUDIES_VERSION = 1
#: The columns, in order.
STUDY_COLUMNS = (
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


def study_rows(record: RunRecord, study: StudyRecord) -> Iterator[dict[str, Any]]:
    """A mapping of `STUDY_COLUMNS` for each subject of each quantity.

    In a network all quantities are the interviewee's: ``subject`` is the
    interviewee and ``node`` says where, empty for the whole network.
    """
    about = (STUDIES_VERSION, *map(as_text, (record.run, record.started, study.name, study.kind, study.candidate)))
    held = (as_count(study.asked), as_count(study.size), as_text(study.unit), as_text(study.error))
    for metric, rows in words.quantities(study).items():
        for row in rows:
            subject, node = row.get("subject"), ""
            if study.kind == "network":
                subject, node = study.candidate, "" if subject == study.candidate else as_text(subject)
            rank = row.get("rank")
            rank = rank if isinstance(rank, Mapping) else {}
            values = (
                *about,
                as_text(metric),
                as_text(subject),
                node,
                as_text(member(study, subject).get("checkpoint")),
                *(as_number(row.get(name)) for name in ("estimate", "low", "high", "confidence")),
                as_text(row.get("method")),
                as_number(row.get("error")),
                as_number(rank.get("mean")),
                as_count(rank.get("best")),
                as_count(rank.get("worst")),
                *held,
            )
            yield dict(zip(STUDY_COLUMNS, values, strict=True))


def member(study: StudyRecord, name: Any) -> Mapping[str, Any]:
    """Who a subject of a study is, as its record says; at least the name."""
    members = study.members if isinstance(study.members, list) else []
    known = (one for one in members if isinstance(one, Mapping) and one.get("name") == name)
    return next(known, {"name": name})
