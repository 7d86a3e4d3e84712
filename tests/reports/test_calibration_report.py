"""What calibrate and backtest print and draw."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval.reports.calibration import (
    ability_lines,
    backtest_lines,
    calibration_lines,
    format_lines,
)
from pytest_adaptive_eval.text import columns

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = 'p</text><script>alert("x")</script>\x1b[31m\x00\n::error::'


def report(**changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "trusted": True,
        "problems": (),
        "warnings": (),
        "subjects": 52,
        "items": 624,
        "observed": 0.9976,
        "log_loss": {"bank": 0.3353, "mean accuracy": 0.5737, "rasch": 0.3622},
        "slopes": {"negative": 0.0048, "tiny": 0.0},
        "extreme": 54,
        "misfit": (),
        "misfits": 101,
        "details": {
            "engine": "map",
            "dimensions": 4,
            "iterations": 284,
            "model": "mirt",
            "converged": True,
            "interrupted": False,
        },
    }
    return {**values, **changes}


def row(policy: str = "estimate", budget: str = "5%", items: int = 31, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "policy": policy,
        "budget": budget,
        "items": items,
        "ranking_accuracy": 91.234,
        "ranking_accuracy_se": 0.51,
        "ranking_accuracy_spread": 4.47,
        "spearman": 0.943,
        "mean_absolute_error": 0.0312,
        "intervals": {},
    }
    return {**values, **changes}


def result(*rows: dict[str, Any], splits: int = 20) -> dict[str, Any]:
    smallest = {r["policy"]: {"85": r["budget"], "90": None} for r in rows}
    return {"items": 624, "splits": splits, "confidence": 0.975, "rows": list(rows), "smallest_budget": smallest}


FOUR = {
    "model-based": {"coverage": 0.61, "width": 0.37},
    "design-based": {"coverage": 0.96, "width": 0.81},
    "conformal": {"coverage": 0.951, "width": 12.34},
    "combined": {"coverage": 1.0, "width": None},
}


def test_a_bank_that_passed() -> None:
    assert calibration_lines(report(), 12, 200) == [
        "52 subjects, 624 items, 99.8 % of the scores are there",
        "model mirt, 4 dimensions, engine map: converged after 284 iterations",
        "held-out log-loss .3353 nats a response (a Rasch fit .3622, each subject's own mean .5737)",
        "slopes: 0.48 % negative, 0 % tiny; 54 items right or wrong for everybody; 101 unlike the model",
        "conformal intervals: 12 tables, one per policy and budget",
        "the bank passed its checks",
    ]


def test_a_bank_that_was_refused() -> None:
    details = {**report()["details"], "converged": False, "iterations": 1, "dimensions": 1}
    lines = calibration_lines(
        report(trusted=False, problems=["no."], warnings=["hm."], subjects=1, items=1, extreme=1, details=details), 0
    )
    assert lines[0].startswith("1 subject, 1 item, ")
    assert lines[1] == "model mirt, 1 dimension, engine map: NOT converged after 1 iteration"
    assert lines[-2:] == ["warning: hm.", "REFUSED: no."]
    assert not any("passed" in line or "conformal" in line for line in lines)


def test_given_parameters_and_interrupted_fits() -> None:
    given = {"engine": "given", "model": "1pl", "converged": True, "interrupted": False}
    assert calibration_lines(report(details=given), 0)[1] == "model 1pl, 1 dimension, engine given: given parameters"
    details = {**report()["details"], "interrupted": True, "converged": False}
    lines = calibration_lines(report(details=details, log_loss={}), 0)
    assert lines[1].endswith("interrupted after 284 iterations")
    assert not any("log-loss" in line for line in lines)


@pytest.mark.parametrize("width", [80, 100, 132])
def test_lines_fit_the_terminal(width: int) -> None:
    sentence = "it predicts held-out responses worse than each model's own mean accuracy does, and " * 3
    for line in calibration_lines(report(problems=[sentence], warnings=[sentence]), 3, width):
        assert columns(line) <= width
    rows = [row(name, intervals=FOUR) for name in ("estimate", "maximum-information")]
    for line in backtest_lines(result(*rows), width):
        assert columns(line) <= width


def test_the_table() -> None:
    lines = backtest_lines(result(row(), row("random", "10%", 62, ranking_accuracy=100.0), splits=1), 200)
    assert lines[0].startswith("624 items, 1 split; ")
    at = lines.index("policy    budget  items  ranking  s.e.  1.96 SD  Spearman  error")
    assert lines[at + 1] == "estimate      5%     31    91.23   .51     4.47      .943   .031"
    assert lines[at + 2] == "random       10%     62   100.00   .51     4.47      .943   .031"
    assert lines[-2:] == [
        "  estimate 85 % at 5%, 90 % at none of them",
        "  random   85 % at 10%, 90 % at none of them",
    ]
    assert not any("intervals" in line for line in lines)


def test_intervals_have_a_table_of_their_own() -> None:
    lines = backtest_lines(result(row(intervals=FOUR), row("random")))
    at = lines.index("policy    budget  model-based design-based    conformal     combined")
    assert lines[at - 3].startswith("intervals at 95 %: share that holds the truth")
    assert lines[at + 1] == "estimate      5%   .610  .37x   .960  .81x  .951 12.34x  1.000     -"
    assert lines[at + 2] == ""


def test_what_is_no_number_is_a_dash() -> None:
    numbers = ("ranking_accuracy", "ranking_accuracy_se", "ranking_accuracy_spread", "spearman", "mean_absolute_error")
    nothing = row(**dict.fromkeys(numbers))
    [line] = [line for line in backtest_lines(result(nothing)) if line.startswith("estimate")]
    assert line.split() == ["estimate", "5%", "31", "-", "-", "-", "-", "-"]


def test_hostile_names_are_escaped() -> None:
    lines = [*backtest_lines(result(row(HOSTILE))), *calibration_lines(report(warnings=[HOSTILE]), 0)]
    assert all(line.isprintable() for line in lines)
    assert not any("::error" in line for line in lines)


def test_parts_at_their_bounds_are_told():
    parts, at_bound = (
        ("base", "cross"),
        {"ability": [0.0, 0.65], "discrimination": [0.4, 0.1], "difficulty": [0.0, 1.0]},
    )
    report = {"form": "m2", "auc": 0.8, "converged": True, "reliability": [0.9, 0.6], "confused": []}
    report |= {"bound": 4.0, "bounds": {"2": 0.79, "4": 0.8}}
    assert format_lines(parts, {**report, "at_bound": {}}, 400)[:2] == [
        "in formats: M2-IRT, parts from 0 to q = 4, held-out ROC-AUC .800, converged",
        "held-out ROC-AUC by q: 2 .790, 4 .800",
    ]
    assert format_lines(parts, {**report, "at_bound": at_bound}, 400)[-1] == (
        "warning: at a bound of their range, and so without a meaning of their own: ability cross (65 % of the "
        "subjects), difficulty cross (100 % of the items); judge items and models by their gain"
    )
    assert "bound" not in " ".join(format_lines(parts, {**report, "at_bound": {"ability": [0.0, 0.49]}}, 400))


def test_abilities_by_part_stand_by_their_sum():
    lines = ability_lines(["low", "high"], ("base", "cross"), [[0.5, 0.25], [2.0, 0.0]], 200)
    assert [line.split() for line in lines[1:]] == [
        ["subject", "base", "cross"],
        ["high", "2.00", ".00"],
        ["low", ".50", ".25"],
    ]
