"""JSON lines of py-irt and of tools that follow it: a line a subject."""

from __future__ import annotations

from pathlib import Path

from pytest_adaptive_eval.banks.responses.files import Collected, json_lines, named, score
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.items.responses import Responses

__all__ = ["read_pyirt"]


def read_pyirt(path: Path) -> Responses:
    """Lines ``{"subject_id": ..., "responses": {item: 0 or 1}}``; null is missing.

    Raises
    ------
    ResponsesError
        Names the line and the item.
    """
    collected = Collected(str(path))
    seen: dict[str, str] = {}
    for where, data in json_lines(path):
        answers = data.get("responses")
        if "subject_id" not in data or not isinstance(answers, dict):
            raise ResponsesError(
                f"{where}: an object with the keys {', '.join(sorted(data)[:6])}, expected subject_id and responses, "
                "an object of scores by item"
            )
        subject = named(data["subject_id"], "subject_id", where)
        if subject in seen:
            raise ResponsesError(f"{where}: the subject {subject!r} stands in {seen[subject]} already; keep one")
        seen[subject] = where.rpartition(", ")[2]
        for item, value in answers.items():
            collected.add(subject, item, score(value, f"{where}, subject {subject!r}, item {item!r}"))
        if not answers:
            raise ResponsesError(f"{where}: the subject {subject!r} has no responses; drop the line")
    return collected.responses()
