"""``adaptive-eval history``, ``compare`` and ``drift``: past runs, side by side and over time."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, USAGE, screen, width
from pytest_adaptive_eval.cli.runs import open_history, open_run, save, say, which
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.alerts import Alert
    from pytest_adaptive_eval.records.history import History

__all__ = ["compare_command", "drift_command", "history_command"]


def history_command(options: argparse.Namespace) -> int:
    """List past runs; returns the exit code."""
    from pytest_adaptive_eval.records.repetitions import envelopes, ladder_of
    from pytest_adaptive_eval.records.run_record import InterviewRecord
    from pytest_adaptive_eval.reports.history import envelope_lines, history_lines

    history = open_history(options.source, {"--json": options.json})
    if options.last is not None and options.last < 1:
        raise ConfigError(f"--last {options.last}: expected a number of at least 1")
    if options.levels:
        matching_envelopes = envelopes(list(history.interviews(**which(options)))[-(options.last or 0) :])
        if options.json:
            save(options.json, [envelope.to_json() for envelope in matching_envelopes])
        say([line for envelope in matching_envelopes for line in envelope_lines(envelope, width())])
        if not matching_envelopes:
            say([f"no interview in {options.source} is like that and climbed levels"])
        return PASSED
    rows = list(history.evaluations(**which(options)))[-(options.last or 0) :]
    if options.json:
        json_rows = []
        for record, evaluation in rows:
            ladder = ladder_of(evaluation) if isinstance(evaluation, InterviewRecord) else None
            about = {"run": record.run, "started": record.started, **evaluation.to_json()}
            about |= {name: record.extra[name] for name in ("rescored_from", "merged") if name in record.extra}
            json_rows.append({**about, "climb": str(ladder)} if ladder else about)
        save(options.json, json_rows)
    say(history_lines(rows) if rows else [_nothing(options)])
    return PASSED


def _nothing(options: argparse.Namespace) -> str:
    """Why there is nothing to tell of."""
    if set(which(options).values()) == {"*"}:
        return f"no run in {options.source} has held an interview or a study yet"
    return f"no run in {options.source} is like that"


def compare_command(options: argparse.Namespace) -> int:
    """Show what changed between two runs; returns the exit code."""
    from pytest_adaptive_eval.records.comparison import compare
    from pytest_adaptive_eval.reports.history import comparison_lines

    writes = {"--json": options.json}
    before, after = (open_run(name, options.source, writes) for name in (options.before, options.after))
    old = {interview.name: interview for interview in before.interviews}
    comparisons = [compare(old[new.name], new) for new in after.interviews if new.name in old]
    if not comparisons:
        names = ", ".join(old) or "none", ", ".join(i.name for i in after.interviews) or "none"
        raise ConfigError(f"the two runs have no evaluation in common: the first has {names[0]}, the second {names[1]}")
    if options.json:
        runs = {"before": before.run, "after": after.run}
        save(options.json, {**runs, "evaluations": [comparison.to_json() for comparison in comparisons]})
    say([f"{before.run} -> {after.run}, change with its 95 % interval"])
    for comparison in comparisons:
        say(comparison_lines(comparison, width()))
    return USAGE if all(comparison.refused for comparison in comparisons) else PASSED


def drift_command(options: argparse.Namespace) -> int:
    """Watch past runs; returns the exit code."""
    from pytest_adaptive_eval.records.alerts import compose_alert
    from pytest_adaptive_eval.records.drift import monitor
    from pytest_adaptive_eval.reports.history import drift_lines, drift_message

    if not 10 <= options.average_run_length < math.inf:
        raise ConfigError(f"--average-run-length {options.average_run_length:g}: expected a number of at least 10")
    service = None
    if options.webhook is not None:
        from pytest_adaptive_eval.records.alerts import open_service

        if not (url := os.environ.get(options.webhook)):
            raise ConfigError(f"--webhook {options.webhook}: the environment has no such variable, or it is empty")
        service = open_service(url)
    history = open_history(options.source, {"--json": options.json, "--alert-file": options.alert_file})
    patterns = {name: pattern for name, pattern in which(options).items() if pattern != "*"}
    evaluation_names = sorted({entry.name for _, entry in history.interviews()})
    if evaluation_names and not any(history.evaluations(**patterns)):
        flags = " ".join(f"--{name} {pattern}" for name, pattern in patterns.items())
        raise ConfigError(
            f"{flags}: nothing in {options.source} is like that, and nothing would be watched; its evaluations are "
            f"{', '.join(evaluation_names[:10])}"
        )
    series = history.series(since=options.since, **which(options))
    alarms = monitor(series, average_run_length=options.average_run_length)
    last: dict[str, tuple[str, str]] = {}  # the newest run of each evaluation
    for entry in series:
        point = entry.points[-1]
        last[entry.evaluation] = max(last.get(entry.evaluation, ("", "")), (point.started, point.run))
    newest = {run for _, run in last.values()}
    news = [alarm for alarm in alarms if alarm.series.points[alarm.at].run in newest]
    if options.json:
        rows = [{**asdict(alarm), "news": alarm in news} for alarm in alarms]
        watched = [{**asdict(entry), "learning": entry.learning} for entry in series]
        save(options.json, {"series": watched, "alarms": rows, "message": "" if alarms else drift_message(series)})
    try:
        if news and (service or options.alert_file):
            _alert(compose_alert(news, run=history.newest, report_url=options.link), service, options.alert_file)
    finally:  # the alarm is shown here too where the service does not take it
        say(drift_lines(series, alarms, newest, width()))
        if not series:
            say([_unwatched(history, options)])
    return NOT_PASSED if news else PASSED


def _alert(alert: Alert, service: Any, path: Path | None) -> None:
    """Write an alert to a file and send it by a service, as far as given."""
    from pytest_adaptive_eval.records.alerts import send, slack_payload

    if path:
        save(path, slack_payload(alert))
    if service:
        send(service, alert)
        screen.note("the alert was sent")


def _unwatched(history: History, options: argparse.Namespace) -> str:
    """Why no run is watched."""
    from pytest_adaptive_eval.records.derived import copied_from
    from pytest_adaptive_eval.records.run_record import InterviewRecord

    evaluations = list(history.evaluations(**which(options)))
    asked = [evaluation for record, evaluation in evaluations if not copied_from(record)]
    if not evaluations:
        return _nothing(options)
    if not asked:
        return "all of them are copies, rescored or merged: only runs that asked are watched"
    if not any(isinstance(evaluation, InterviewRecord) for evaluation in asked):
        return "studies are not watched, and the runs held nothing else"
    return "no interview came to its end and measured something" + (" since then" if options.since else "")
