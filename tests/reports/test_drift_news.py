"""What every report says of the runs before: changes, alarms, and that nothing is known yet."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from pytest_adaptive_eval.records.parts import DriftRecord
from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.github import annotation_lines, outputs
from pytest_adaptive_eval.reports.junit import gate_report
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.reports.terminal import summary_lines

CHANGE = "ability .64 to -.33, errors .30 and .30, since run X"
FELL = "ability of text fell from 1.47 (4 runs) to -.15 (2 runs)"
ALARM = DriftRecord(CHANGE, "fail", "alarm", [FELL])


def record_of(make: SimpleNamespace, *news: DriftRecord) -> RunRecord:
    interviews = []
    for n, drift in enumerate(news):
        interviews.append(make.interview(name=f"text{n}"))
        interviews[-1].drift = drift
    record: RunRecord = make.record(interviews, [])
    record.warn()
    return record


def terminal(record: RunRecord, *, details: bool) -> str:
    lines = summary_lines(record, 200, details=details)
    return "\n".join("".join(text for text, _ in line) for line in lines)


@pytest.mark.parametrize("details", [True, False])
def test_the_change_is_in_the_terminal(make: SimpleNamespace, details: bool) -> None:
    assert f"text0: {CHANGE}" in terminal(record_of(make, DriftRecord(CHANGE)), details=details)
    assert f"WARNING: text0: {FELL}" in terminal(record_of(make, ALARM), details=details)


def test_the_change_is_in_summary_and_page(make: SimpleNamespace) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    record = record_of(make, ALARM)
    for text in (summary_markdown(record), html_page(record)):
        assert CHANGE in text
        assert FELL in text
        assert "1 level fell below that of earlier runs" in text
    assert "Since the last run" not in summary_markdown(record_of(make, DriftRecord()))


def test_junit_has_a_property_and_a_case_of_its_own(make: SimpleNamespace) -> None:
    watched = DriftRecord(CHANGE, "warn", "alarm", [FELL])
    news = [ALARM, watched, DriftRecord(CHANGE, "fail", "none"), DriftRecord(CHANGE)]
    root = ElementTree.fromstring(gate_report(record_of(make, *news)))
    failed = []
    for suite in root.iter("testsuite"):
        facts = {entry.get("name"): entry.get("value") for entry in suite.iter("property")}
        assert facts["since_last_run"] == CHANGE
        cases = [case for case in suite.iter("testcase") if case.get("name") == "drift"]
        failed.append([len(list(case.iter("failure"))) for case in cases])
    assert failed == [[1], [0], [0], []]


def test_github_says_that_nothing_is_known_yet(make: SimpleNamespace) -> None:
    unknown = DriftRecord("", "fail", "unknown")
    lines = annotation_lines(record_of(make, unknown), folder=Path(), workspace=Path())
    assert any(line.startswith("::notice title=drift::text0: unknown whether a level fell") for line in lines)
    none = DriftRecord(CHANGE, "warn", "none")
    found = [outputs(record_of(make, *news))["drift"] for news in ([none], [none, unknown], [unknown, ALARM], [])]
    assert found == ["none", "unknown", "alarm", "off"]


def test_what_is_not_watched_has_no_news_without_an_earlier_run(make: SimpleNamespace) -> None:
    assert words.changes(record_of(make, DriftRecord())) == []
