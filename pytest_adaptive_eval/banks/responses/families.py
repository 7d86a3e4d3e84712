"""Read the families of subjects from a CSV."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import FormatResponses, Responses
from pytest_adaptive_eval.tables import SUBJECT_WORDS, read_rows

Matrix = TypeVar("Matrix", Responses, FormatResponses)


def with_families(responses: Matrix, path: Path) -> Matrix:
    """Return a copy of the responses with the families of a two-column CSV.

    Args:
        path: CSV with the header ``subject,family`` and a row for each subject. A subject with an empty family has a
            family of its own. Subjects without responses are ignored.

    Raises:
        ResponsesError: Wrong columns, a duplicate subject, or a subject of the responses without a row.
    """
    families = _read_families(path)
    if missing := [subject for subject in responses.subjects if subject not in families]:
        raise ResponsesError(
            f"{path}: no family for {len(missing)} of {len(responses.subjects)} subjects of {responses.source}, the "
            f"first {missing[0]!r}; add a row for each, with an empty family where it stands alone"
        )
    return replace(responses, families=tuple(families[subject] for subject in responses.subjects))


def _read_families(path: Path) -> dict[str, str]:
    """Return the family of each subject in the file."""
    rows = read_rows(path)
    _, header = next(rows, (0, []))
    words = [word.strip().lower() for word in header]
    if len(words) != 2 or words[0] not in SUBJECT_WORDS or words[1] not in ("family", "families", "run"):
        raise ResponsesError(f"{path}, line 1: found {','.join(header)!r:.80}, expected 'subject,family'")
    families: dict[str, str] = {}
    for number, row in rows:
        subject = row[0].strip()
        if len(row) != 2 or not subject:
            raise ResponsesError(
                f"{path}, line {number}: found {','.join(row)!r:.80}, expected a subject and its family"
            )
        if subject in families:
            raise ResponsesError(f"{path}, line {number}: the subject {subject!r} stands twice; keep one row")
        families[subject] = row[1].strip() or subject
    return families
