"""Read JSON lines of py-irt and of tools with the same layout, one line per subject."""

from __future__ import annotations

from pathlib import Path

from pytest_adaptive_eval.banks.responses.base import ReadSettings, ResponseReader
from pytest_adaptive_eval.banks.responses.files import Collected, named, score
from pytest_adaptive_eval.banks.rows import first_keys, json_lines
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses


def read_pyirt(path: Path, settings: ReadSettings) -> Responses:  # noqa: ARG001
    """Read lines ``{"subject_id": ..., "responses": {item: 0 or 1}}``; null is missing."""
    collected = Collected(str(path))
    first_lines: dict[str, str] = {}
    for where, data in json_lines(path):
        answers = data.get("responses")
        if "subject_id" not in data or not isinstance(answers, dict):
            raise ResponsesError(
                f"{where}: an object with the keys {', '.join(sorted(data)[:6])}, expected subject_id and responses, "
                "an object of scores by item"
            )
        subject = named(data["subject_id"], "subject_id", where)
        if subject in first_lines:
            raise ResponsesError(f"{where}: the subject {subject!r} stands in {first_lines[subject]} already; keep one")
        first_lines[subject] = where.rpartition(", ")[2]
        for item, value in answers.items():
            collected.add(subject, item, score(value, f"{where}, subject {subject!r}, item {item!r}"))
        if not answers:
            raise ResponsesError(f"{where}: the subject {subject!r} has no responses; drop the line")
    return collected.responses()


REGISTERED = (
    ResponseReader(
        "py-irt",
        "JSON lines of py-irt, one per subject",
        lambda path: {"subject_id", "responses"} <= first_keys(path),
        read_pyirt,
        folders=False,
    ),
)
