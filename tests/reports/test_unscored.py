"""Reports of an interview in which no answer has a score show a dash instead of the prior's figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from made import recorded

from pytest_adaptive_eval.extensions.exports.trackers import mlflow_metrics
from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.sampling import APPROXIMATE, sampling_error
from pytest_adaptive_eval.records.comparison import compare
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.reports import words
from pytest_adaptive_eval.reports.history import comparison_lines, history_lines
from pytest_adaptive_eval.reports.junit import gate_report
from pytest_adaptive_eval.reports.markdown import summary_markdown
from pytest_adaptive_eval.reports.page import html_page
from pytest_adaptive_eval.reports.terminal import summary_lines

ESTIMATES = ("theta", "standard_error", "accuracy", "accuracy_model", "accuracy_conformal", "accuracy_error", "levels")
#: Digits of the interview of `make`, which none of whose answers has a score here.
FIGURES = (".612", "0.612", "1.234", ".605")


def figures(**changes: Any) -> dict[str, Any]:
    """Fields of an interview without any score."""
    row = {"category": "maths", "size": 20, "asked": 3, "scored": 0, "accuracy": None, "standard_error": None}
    return {
        "asked": 3,
        "scored": 0,
        "statuses": {"timeout": 3},
        "stop": "FAULTS",
        **dict.fromkeys(ESTIMATES),
        "categories": [row, {**row, "category": "words", "asked": 0}],
        "error": "the server is gone",
        **changes,
    }


@pytest.fixture
def unscored(make: SimpleNamespace) -> EvaluationRecord:
    return recorded(**{**make.interview().to_json(), **figures()})


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
        ("terminal", "        -  -         3 of 640"),
        ("history", "  -  void  "),
        ("junit", "ability -, accuracy -"),
        ("page", "Accuracy over the whole bank"),
        ("markdown", "| - | - | 3 of 640"),
    ],
)
def test_an_interview_without_a_score_shows_dashes(report: str, dash: str, run: RunRecord) -> None:
    text = text_of(report, run)
    assert not [figure for figure in FIGURES if figure in text], text
    assert dash in text, text


def test_exports_of_an_interview_without_a_score_have_no_figures(run: RunRecord) -> None:
    metrics = mlflow_metrics(run)
    assert metrics["mmmu/asked"] == 3
    assert not [name for name in metrics if "accuracy" in name or "ability" in name or "category" in name]


def test_an_interview_without_a_score_is_compared_by_no_figure(make: SimpleNamespace) -> None:
    old = make.interview()
    new = recorded(**{**old.to_json(), **figures(error="", stop="BUDGET")})
    assert comparison_lines(compare(old, new)) == ["mmmu: vlm-2b-step-4000 -> vlm-2b-step-4000"]


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        ({"ok": 40}, ""),
        ({"ok": 30, "empty": 10}, "10 of 40 empty"),
        (
            {"ok": 30, "refused": 3, "truncated": 5, "timeout": 2},
            "3 of 40 refused, 5 cut at the cap; no score: 2 timeout",
        ),
        ({"ok": 1, "odd": 1}, "no score: 1 odd"),
    ],
)
def test_answers_are_told_by_status(make: SimpleNamespace, statuses: dict[str, int], sentence: str) -> None:
    assert words.statuses(make.interview(statuses=statuses)) == sentence


@pytest.mark.parametrize(("error", "shown"), [(0.41, True), (0.43, False)])
def test_counts_stand_for_a_categorys_estimate_that_is_no_better(
    make: SimpleNamespace, error: float, shown: bool
) -> None:
    """One right answer of 20: the mean of one uniform draw has the error .43 sqrt(1 - 1/20), about .42."""
    accuracy = Interval(0.58, 0.05, 1.0, 0.95, APPROXIMATE).to_json()
    row = {"category": "maths", "size": 20, "asked": 1, "scored": 1, "total": 1.0, "accuracy": accuracy}
    row |= {"standard_error": error, "sampling_error": sampling_error(np.ones(1))}
    record = recorded(**{**make.interview().to_json(), "categories": [row]})
    assert (words.category_accuracy(record.categories[0], record) is not None) == shown
    text = summary_markdown(RunRecord("r", "", evaluations=[record]))
    assert f"| maths | 1 of 20 | 1 of 1 | {'.580' if shown else '-'} " in text


def test_a_category_without_a_score_may_have_any_accuracy(make: SimpleNamespace) -> None:
    row = figures()["categories"][0]
    record = recorded(**{**make.interview().to_json(), "categories": [row, {**row, "asked": 0}]})
    shown = [words.category_accuracy(row, record) for row in record.categories]
    assert shown == [Interval(0.5, 0.0, 1.0, 0.95, ""), None]
    assert "| maths | 3 of 20 | - | .500 \\[.000, 1.000\\] |" in summary_markdown(
        RunRecord("r", "", evaluations=[record])
    )
