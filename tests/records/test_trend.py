"""What earlier runs say of a run: changes, alarms, and which errors decide them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from climbs import bare, run

from pytest_adaptive_eval.records.history import AcceptedLevel, History, accept_levels
from pytest_adaptive_eval.records.run_files import write_run
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.records.trend import note_change, watch_run

LEVELS = [1.4, 1.8, 1.4, 1.3, 0.3, -0.6]


def interview(theta: float, **more: Any) -> EvaluationRecord:
    return bare(theta=[theta], standard_error=[0.3], ability_sampling_error=[0.3], **more)


def night(folder: Path, day: int, *evaluations: EvaluationRecord, action: str | None = "fail") -> RunRecord:
    """A run after those in the folder, which is then one of them."""
    record = run(day + 1, *evaluations)
    history = History(folder) if (folder / "runs").is_dir() else None
    for evaluation in evaluations:
        note_change(record, evaluation, history)
    watch_run(record, history, action)
    write_run(folder, record)
    return record


def states(record: RunRecord) -> list[tuple[str, bool]]:
    return [(evaluation.drift.state, evaluation.drift.fails) for evaluation in record.evaluations]


def test_a_fall_alarms_from_few_runs_on_and_says_what_changed(tmp_path: Path) -> None:
    nights = [night(tmp_path, day, interview(theta)) for day, theta in enumerate(LEVELS)]
    assert [states(record)[0] for record in nights] == [("unknown", False), *[("none", False)] * 4, ("alarm", True)]
    first, *_, before, last = nights
    assert "no earlier run to compare with" in first.evaluations[0].drift.news
    (evaluation,) = last.evaluations
    assert evaluation.drift.change == f"ability .30 to -.60, errors .30 and .30, since run {before.run}"
    again = night(tmp_path, 7, interview(-0.6))
    assert again.evaluations[0].drift.change == f"ability -.60 as in run {last.run}, error .30"
    (alarm,) = evaluation.drift.alarms
    assert alarm.startswith("ability of text fell from 1.48 (4 runs) to -.15 (2 runs, since 2031-05-05 with one)")
    assert "at most one evaluation in 100 has such an alarm within 10 runs" in alarm


def test_the_action_is_of_the_run_else_of_the_evaluation(tmp_path: Path) -> None:
    for day, theta in enumerate(LEVELS[:-1]):
        night(tmp_path, day, interview(theta), action=None)
    watched = [interview(-0.6), interview(-0.6, name="b"), interview(-0.6, name="c")]
    watched[1].drift.action = "warn"
    record = night(tmp_path, 5, *watched, action=None)
    assert states(record) == [("", False), ("unknown", False), ("", False)]
    assert record.evaluations[0].drift.change  # information without an action
    record = night(tmp_path, 6, interview(-0.6), action="warn")
    assert states(record) == [("alarm", False)]
    record.warn()
    assert any("fell from 1.48" in warning for warning in record.warnings)


def test_a_run_that_asked_all_of_the_bank_varies_by_new_answers(tmp_path: Path) -> None:
    """Draws of the whole bank have an error of 0, and the next run of a model that samples differs all the same."""
    for day, share in enumerate([0.80, 0.78, 0.83, 0.79, 0.77, 0.81]):
        accuracy = {"estimate": share, "low": share, "high": share}
        record = night(
            tmp_path, day, bare(accuracy=accuracy, accuracy_error=0.0, accuracy_sampling_error=0.04), action="fail"
        )
    assert states(record) == [("none", False)]
    (series,) = History(tmp_path).series()
    assert [point.sampled for point in series.points] == [0.04] * 6


@pytest.mark.parametrize(("error", "spread", "used"), [(0.3, 0.5, 0.5), (0.3, 0.1, 0.3), (0.3, None, 0.3)])
def test_the_error_of_a_run_is_at_least_that_of_the_draws(
    tmp_path: Path, error: float, spread: float | None, used: float
) -> None:
    spreads = None if spread is None else [spread]
    write_run(tmp_path, run(1, bare(theta=[1.0], standard_error=[error], ability_sampling_error=spreads)))
    (series,) = History(tmp_path).series()
    assert series.points[0].sampled == used


def test_an_accepted_level_starts_again(tmp_path: Path) -> None:
    nights = [night(tmp_path, day, interview(theta)) for day, theta in enumerate(LEVELS)]
    assert states(nights[-1]) == [("alarm", True)]
    accepted = nights[4]
    accept_levels(tmp_path, [AcceptedLevel("text", "ability", "", accepted.run, accepted.started)])
    assert states(night(tmp_path, 6, interview(-0.2))) == [("none", False)]
    for day, theta in enumerate([-0.3, -3.0, -3.0], 7):
        record = night(tmp_path, day, interview(theta))
    assert states(record) == [("alarm", True)]
