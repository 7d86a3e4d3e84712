"""``adaptive-eval history --drift``: monitoring of past runs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED
from pytest_adaptive_eval.cli.past_runs import history_patterns, no_runs_text, open_history
from pytest_adaptive_eval.cli.screen import save, say, screen, width
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.alerts import Alert
    from pytest_adaptive_eval.records.drift import Alarm, Series
    from pytest_adaptive_eval.records.history import History


def watch(options: argparse.Namespace) -> int:
    """Watch past runs for a drop, and alert; returns the exit code."""
    from pytest_adaptive_eval.records.alerts import compose_alert
    from pytest_adaptive_eval.records.drift import lasting
    from pytest_adaptive_eval.reports.history import drift_lines

    if options.alert_file is not None and "://" in str(options.alert_file).replace(":/", "://", 1):
        raise ConfigError("--alert-file is a URL, expected a file: --webhook VARIABLE sends the message to a service")
    if options.webhook is None:
        service = None
    else:
        service = _service(options.webhook)
    history = open_history(options.source, {"--json": options.json, "--alert-file": options.alert_file})
    _check_patterns(history, options)
    series, alarms = _watched(history, options)
    if options.accept is not None:
        _accept(history, options.accept, lasting(alarms, series))
        series, alarms = _watched(history, options)
    news = lasting(alarms, series)
    if options.json:
        save(options.json, _data(history, series, alarms, news))
    try:
        if news and (service or options.alert_file):
            _alert(compose_alert(news, run=history.newest, report_url=options.link or ""), service, options.alert_file)
    finally:  # the alarm is shown here too where the service does not take it
        say(drift_lines(series, alarms, history.accepted, width()))
        if not series:
            say([_unwatched(history, options)])
    if news:
        return NOT_PASSED
    return PASSED


def _data(history: History, series: Sequence[Series], alarms: Sequence[Alarm], news: Sequence[Alarm]) -> dict[str, Any]:
    """Return the series and alarms as JSON data."""
    from pytest_adaptive_eval.reports.history import drift_message

    entries = []
    for entry in series:
        entries.append({**asdict(entry), "learning": entry.learning})
    alarms_data = [{**asdict(alarm), "news": alarm in news} for alarm in alarms]
    levels = [asdict(level) for level in history.accepted]
    if alarms:
        message = ""
    else:
        message = drift_message(series)
    return {"series": entries, "alarms": alarms_data, "accepted": levels, "message": message}


def _service(variable: str) -> Any:
    """Return the service whose URL an environment variable holds."""
    from pytest_adaptive_eval.records.alerts import open_service

    if "://" in variable:  # not shown again: whoever has the URL can post
        raise ConfigError(
            "--webhook is a URL, expected the name of an environment variable that holds it, since a command line is "
            'kept in logs: export ALERT_URL="..." and write --webhook ALERT_URL'
        )
    if not (url := os.environ.get(variable)):
        raise ConfigError(f"--webhook {variable}: the environment has no such variable, or it is empty")
    return open_service(url)


def _check_patterns(history: History, options: argparse.Namespace) -> None:
    """Refuse patterns that match nothing in a history."""
    patterns = {}
    for name, pattern in history_patterns(options).items():
        if pattern != "*":
            patterns[name] = pattern
    names = sorted({entry.name for record, entry in history.evaluations() if not record.copied_from})
    if names and not any(history.evaluations(**patterns)):
        flags = " ".join(f"--{name} {pattern}" for name, pattern in patterns.items())
        raise ConfigError(
            f"{flags}: nothing in {options.source} matches, and nothing would be watched; its evaluations are "
            f"{', '.join(names[:10])}"
        )


def _watched(history: History, options: argparse.Namespace) -> tuple[list[Series], list[Alarm]]:
    """Return the series of a history and their alarms."""
    from pytest_adaptive_eval.records.drift import monitor

    series = history.series(**history_patterns(options))
    return series, monitor(series)


def _accept(history: History, name: str, alarms: Sequence[Alarm]) -> None:
    """Accept the level from a run on, for the series whose alarms last.

    Raises:
        ConfigError: The run or alarm is missing, the drop began later, or the history is not a folder.
    """
    from pytest_adaptive_eval.records.history import AcceptedLevel, accept_levels

    if not history.source.is_dir():
        raise ConfigError(f"--accept keeps the level in the history's folder, and {history.source} is a file")
    if not alarms:
        raise ConfigError(f"--accept {name}: no alarm lasts; remove it")
    run = history.identify(name)
    levels = []
    for alarm in alarms:
        entry = alarm.series
        for point in entry.points[alarm.since :]:
            if point.run == run:
                levels.append(AcceptedLevel(entry.evaluation, entry.metric, entry.category, run, point.started))
    if not levels:
        first = min((alarm.series.points[alarm.since] for alarm in alarms), key=lambda point: point.started)
        raise ConfigError(
            f"--accept {name}: run {run} is not one since a drop that alarms; name one, such as the first, {first.run}"
        )
    screen.note(f"accepted in {accept_levels(history.source, levels)}")


def _alert(alert: Alert, service: Any, path: Path | None) -> None:
    """Write an alert to a file and send it by a service, if requested."""
    from pytest_adaptive_eval.records.alerts import send, slack_payload

    if path:
        save(path, slack_payload(alert))
    if service:
        send(service, alert)
        screen.note("the alert was sent")


def _unwatched(history: History, options: argparse.Namespace) -> str:
    """Return the reason why no run is watched."""
    evaluations = list(history.evaluations(**history_patterns(options)))
    asked = []
    for record, evaluation in evaluations:
        if not record.copied_from:
            asked.append(evaluation)
    if not evaluations:
        return no_runs_text(options)
    if not asked:
        return "all of them are merged: only runs that asked are watched"
    return "no evaluation came to its end and measured something"
