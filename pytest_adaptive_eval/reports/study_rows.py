"""Results of studies as flat rows for other tools, one per subject and quantity, with fixed types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_adaptive_eval.records.run_record import RunRecord, StudyRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.sections import section_of
from pytest_adaptive_eval.reports.values import as_count, as_list, as_mapping, as_number, as_text

#: Version of the columns; a changed or removed column raises it, a new one does not.
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
    """Yield a mapping of `STUDY_COLUMNS` for each subject of each quantity.

    In a network all quantities are the interviewee's: ``subject`` is the interviewee, and ``node`` is the node, empty
    for the whole network.
    """
    head = (STUDIES_VERSION, *map(as_text, (record.run, record.started, study.name, study.kind, study.candidate)))
    tail = (as_count(study.asked), as_count(study.size), as_text(study.unit), as_text(study.error))
    by_node = not section_of(study.kind).ranks_subjects
    for metric, rows in words.quantities(study).items():
        for row in rows:
            subject, node = row.get("subject"), ""
            if by_node:
                subject, node = study.candidate, "" if subject == study.candidate else as_text(subject)
            rank = as_mapping(row.get("rank"))
            values = (
                *head,
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
                *tail,
            )
            yield dict(zip(STUDY_COLUMNS, values, strict=True))


def member(study: StudyRecord, name: Any) -> Mapping[str, Any]:
    """Return the recorded identity of a subject of a study; its name alone if there is none."""
    identities = (identity for identity in map(as_mapping, as_list(study.members)) if identity.get("name") == name)
    return next(identities, {"name": name})
