"""Compare a run with earlier runs: changes of its levels, and alarms on a fall."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_adaptive_eval.gates.condition import find_metric
from pytest_adaptive_eval.records.drift import FEWEST, Series, lasting, monitor
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.parts import ALARM, NO_ALARM, UNKNOWN
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord
from pytest_adaptive_eval.text import number


def note_change(run: RunRecord, evaluation: EvaluationRecord, history: History | None) -> None:
    """Set how the leading quantity of an evaluation changed since the last run of its series.

    Args:
        run: A run with an id, which has the evaluation.
        history: Earlier runs; None if there are none.
    """
    if history is None:
        return
    series = history.including(run).series(until=run.started, evaluation=evaluation.name)
    for entry in _series_of(evaluation, run, series):
        if not entry.category and len(entry.points) >= FEWEST:
            evaluation.drift.change = change_of(entry)
            return


def change_of(series: Series) -> str:
    """Return the change to the last run, as ``ability .64 to -.33, errors .30 and .30, since run X``."""
    before, now = series.points[-2:]
    digits = find_metric(series.metric).digits
    values = [number(point.value, digits) for point in (before, now)]
    errors = [number(point.sampled, digits) for point in (before, now)]
    if values[0] == values[1] and errors[0] == errors[1]:
        return f"{series.metric} {values[1]} as in run {before.run}, error {errors[1]}"
    return f"{series.metric} {' to '.join(values)}, errors {' and '.join(errors)}, since run {before.run}"


def watch_run(run: RunRecord, history: History | None, action: str | None) -> None:
    """Set the state of each watched evaluation of a run, and the sentences of its alarms.

    Args:
        run, history: As in `note_change`.
        action: Action of every evaluation, in place of its own.
    """
    watched = []
    for evaluation in run.evaluations:
        evaluation.drift.action = action or evaluation.drift.action
        if evaluation.drift.action:
            watched.append(evaluation)
    if not watched:
        return
    series: list[Series] = []
    if history is not None:
        series = history.including(run).series(until=run.started)
    alarms = lasting(monitor(series), series)
    for evaluation in watched:
        series_of_run = _series_of(evaluation, run, series)
        drift = evaluation.drift
        drift.alarms = [alarm.sentence for alarm in alarms if alarm.series in series_of_run]
        if drift.alarms:
            drift.state = ALARM
        elif any(len(entry.points) >= FEWEST for entry in series_of_run):
            drift.state = NO_ALARM
        else:
            drift.state = UNKNOWN


def _series_of(evaluation: EvaluationRecord, run: RunRecord, series: Sequence[Series]) -> list[Series]:
    """Return the series of an evaluation that end with a run."""
    ending_here = []
    for entry in series:
        if entry.evaluation == evaluation.name and entry.points[-1].run == run.run:
            ending_here.append(entry)
    return ending_here
