"""What an interviewer did not do itself, in sentences, on the terminal, in Markdown and in JUnit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from made import made

from pytest_adaptive_eval.records.parts import InterviewerRecord

ACCOUNT = {
    "interviewer": {
        "name": "m",
        "fallbacks": {"no-json": 4, "timeout": 1},
        "category_fallbacks": {"unsorted": 2},
        "images_not_shown": 30,
        "problem": "it timed out",
    },
    "chosen": 20,
    "fallbacks": 5,
}


def test_choices_categories_and_pictures_have_a_sentence_each() -> None:
    account = InterviewerRecord.of(ACCOUNT)
    assert account is not None
    assert account.fallback_counts == (5, 2)
    choices, categories, pictures = account.faults
    assert choices.startswith("the interviewer made no choice of its own 5 times (no-json 4, timeout 1)")
    assert choices.endswith("(at first: it timed out)")
    assert categories.startswith("the interviewer sorted 2 questions into no category (unsorted 2)")
    assert pictures.startswith("the interviewer did not see 30 pictures of its candidates")


@pytest.mark.parametrize(
    "account",
    [
        {"interviewer": None},
        {"interviewer": {"name": "deterministic"}},
        {"interviewer": {"fallbacks": {}, "category_fallbacks": {}, "images_not_shown": 0}},
    ],
)
def test_nothing_is_told_where_nothing_fell_back(account: Any) -> None:
    read = InterviewerRecord.of(account)
    assert read is not None
    assert (read.faults, read.fallback_counts) == ([], (0, 0))


def test_an_account_of_a_plugin_may_have_other_keys_and_a_mistyped_one_is_named() -> None:
    assert InterviewerRecord.of({}) is None
    read = InterviewerRecord.of({"chosen": 3, "mood": ["calm"]})
    assert read is not None
    assert read.chosen == 3
    damaged = InterviewerRecord.of({"fallbacks": [3]})
    assert damaged is not None
    assert damaged.notes == ["the selector's account has another form: fallbacks: Expected `int | null`, got `array`"]


def test_they_are_warnings_of_the_run(tmp_path: Path) -> None:
    from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
    from pytest_adaptive_eval.reports.junit import gate_report
    from pytest_adaptive_eval.reports.markdown import summary_markdown

    given: dict[str, Any] = {"subject": {"name": ""}, "bank": {}, "policy": {}, "statuses": {}}
    empty: dict[str, Any] = dict.fromkeys(("theta", "standard_error", "accuracy", "accuracy_model"))
    interview = made(
        EvaluationRecord,
        **given, **empty, name="quiz", nodeid="t.py::quiz", asked=3, scored=3, size=9, stop="BUDGET", stop_sentence="",
        interviewer=ACCOUNT,
    )  # fmt: skip
    record = RunRecord(run="r", started="2026-01-01T00:00:00+00:00", evaluations=[interview])
    record.warn()
    assert "quiz: the interviewer made no choice of its own 5 times" in "\n".join(record.warnings)
    assert "made no choice of its own 5 times" in summary_markdown(record)
    report = gate_report(record).decode()
    assert "made no choice of its own 5 times" in report
    assert 'name="interviewer_choice_fallbacks" value="5"' in report
    assert 'name="interviewer_category_fallbacks" value="2"' in report
