"""Reports of an interview in which no answer has a score show a dash instead of the prior's figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from made import of_schema_1

from pytest_adaptive_eval.extensions.exports.evaleval import aggregate
from pytest_adaptive_eval.extensions.exports.trackers import mlflow_metrics
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.records.comparison import compare
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.history import comparison_lines, history_lines
from pytest_adaptive_eval.reports.junit import gate_report
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.reports.terminal import summary_lines

#: Digits of figures that the record of an earlier version gave although nothing was scored.
FIGURES = (".469", "0.469", ".313", "0.313", "1.64", "0.997", ".217")


def figures(**changes: Any) -> dict[str, Any]:
    """Fields as an earlier version recorded them from the prior alone."""
    conformal = {"estimate": 0.469, "low": 0.313, "high": 0.625, "confidence": 0.95, "method": "conformal"}
    row = {"category": "maths", "size": 20, "asked": 3, "scored": 0, "accuracy": conformal, "standard_error": 0.217}
    return {
        "asked": 3,
        "scored": 0,
        "statuses": {"timeout": 3},
        "stop": "FAULTS",
        "theta": [0.0],
        "standard_error": [0.997],
        "accuracy": None,
        "accuracy_model": {**conformal, "method": "model-based"},
        "accuracy_conformal": conformal,
        "accuracy_error": 0.217,
        "categories": [row, {**row, "category": "words", "asked": 0}],
        "error": "the server is gone",
        **changes,
    }


@pytest.fixture
def unscored(make: SimpleNamespace) -> EvaluationRecord:
    return of_schema_1(**{**make.interview().to_json(), **figures()})


@pytest.fixture
def run(unscored: EvaluationRecord) -> RunRecord:
    return RunRecord("r1", "2031-05-06T07:08:09+00:00", exit_status=1, evaluations=[unscored])


def text_of(report: str, run: RunRecord) -> str:
    if report == "terminal":
        return "\n".join("".join(part for part, _ in line) for line in summary_lines(run, 200))
    if report == "history":
        return "\n".join(history_lines([(run, run.interviews[0])]))
    if report == "junit":
        return gate_report(run).decode()
    if report == "page":
        pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
        return html_page(run).partition("<main")[2]
    return summary_markdown(run)


@pytest.mark.parametrize(
    ("report", "dash"),
    [
        ("terminal", "        -  -         3/640"),
        ("history", "  -  void  "),
        ("junit", "ability -, accuracy -"),
        ("page", "Accuracy over the whole bank"),
        ("markdown", "| - | - | 3/640"),
    ],
)
def test_an_interview_without_a_score_shows_dashes(report: str, dash: str, run: RunRecord) -> None:
    text = text_of(report, run)
    assert not [figure for figure in FIGURES if figure in text], text
    assert dash in text, text


def test_exports_of_an_interview_without_a_score_have_no_figures(run: RunRecord) -> None:
    assert aggregate(run, run.interviews[0]) is None
    metrics = mlflow_metrics(run)
    assert metrics["mmmu/asked"] == 3
    assert not [name for name in metrics if "accuracy" in name or "ability" in name or "category" in name]


def test_an_interview_without_a_score_is_compared_by_no_figure(make: SimpleNamespace) -> None:
    old = make.interview()
    new = of_schema_1(**{**old.to_json(), **figures(error="", stop="BUDGET")})
    assert comparison_lines(compare(old, new)) == ["mmmu: vlm-2b-step-4000 -> vlm-2b-step-4000"]


def test_a_category_without_a_score_has_no_figures_beside_one_that_has(make: SimpleNamespace) -> None:
    row = figures()["categories"][0]
    record = of_schema_1(**{**make.interview().to_json(), "categories": [row, {**row, "scored": 1}]})
    assert [one.standard_error for one in record.categories] == [None, 0.217]
    assert [one.accuracy is None for one in record.categories] == [True, False]
    assert record.theta == [1.234]


@pytest.mark.parametrize(
    ("statuses", "unanswered", "sentence"),
    [
        ({"ok": 40}, "wrong", ""),
        ({"ok": 30, "empty": 10}, "wrong", "10 of 40 empty"),
        ({"ok": 30, "empty": 10}, "missing", "no score: 10 empty"),
        ({"ok": 30, "empty": 10}, "", "no score: 10 empty"),
        (
            {"ok": 30, "refused": 3, "truncated": 5, "timeout": 2},
            "wrong",
            "3 of 40 refused, 5 cut at the cap; no score: 2 timeout",
        ),
        ({"ok": 1, "odd": 1}, "wrong", "no score: 1 odd"),
    ],
)
def test_answers_are_told_by_status(
    make: SimpleNamespace, statuses: dict[str, int], unanswered: str, sentence: str
) -> None:
    assert words.statuses(make.interview(statuses=statuses, unanswered=unanswered)) == sentence


def test_a_category_without_a_score_may_have_any_accuracy(make: SimpleNamespace) -> None:
    row = figures()["categories"][0]
    record = of_schema_1(**{**make.interview().to_json(), "categories": [row, {**row, "asked": 0}]})
    shown = [words.category_accuracy(row) for row in record.categories]
    assert shown == [Interval(0.5, 0.0, 1.0, 0.95, ""), None]
    assert "| maths | 3/20 | .500 \\[.000, 1.000\\] |" in summary_markdown(RunRecord("r", "", evaluations=[record]))
