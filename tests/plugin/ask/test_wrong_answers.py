"""A gate says so when the expected answer is in most answers that its grader takes for wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest


def asked_for(project: Any, answer: str, text: str, grader: str = "exact") -> None:
    items = [{**item, "answer": answer, "grader": grader} for item in project.items()]
    (project.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    project.toy(fault=f"return {text!r}")
    project.run()


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("answer", "text", "grader"),
    [
        ("lantern", "What you see there is a lantern.", "contains"),
        ("17", "They bought 17 of them", "numeric"),
        ("yes", "Yes, the line rises", "yesno"),
    ],
)
def test_a_grader_is_named_that_finds_the_expected_answer(project: Any, answer: str, text: str, grader: str) -> None:
    asked_for(project, answer, text)
    note = f"the expected answer is in 30 of 30 wrong answers: use grader {grader}"
    assert note in json.dumps(project.record["gates"])


def test_other_wrong_answers_have_no_such_note(project: Any) -> None:
    asked_for(project, "lantern", "What you see there is a lamp.")
    assert "stands in" not in json.dumps(project.record)
