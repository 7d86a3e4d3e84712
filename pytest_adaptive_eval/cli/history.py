"""``adaptive-eval history``, ``compare`` and ``drift``: past runs, side by side and over time."""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import asdict

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, USAGE, screen, width
from pytest_adaptive_eval.cli.records import open_history, open_run, save, say, which
from pytest_adaptive_eval.errors import ConfigError

__all__ = ["compare_command", "drift_command", "history_command"]


def history_command(options: argparse.Namespace) -> int:
    """List past runs; returns the exit code."""
    from pytest_adaptive_eval.core.rounds import envelopes, ladder_of
    from pytest_adaptive_eval.reports.history import envelope_lines, history_lines

    rows = list(open_history(options.source).interviews(**which(options)))
    if options.last is not None:
        if options.last < 1:
            raise ConfigError(f"--last {options.last}: expected a number of at least 1")
        rows = rows[-options.last :]
    if options.levels:
        found = envelopes(rows)
        if options.json:
            save(options.json, [envelope.to_json() for envelope in found])
        say([line for envelope in found for line in envelope_lines(envelope, width())])
        if not found:
            say([f"no interview in {options.source} is like that and climbed levels"])
        return PASSED
    if options.json:
        climbs = [{"climb": str(ladder)} if (ladder := ladder_of(i)) else {} for _, i in rows]
        told = zip(rows, climbs, strict=True)
        save(options.json, [{"run": r.run, "started": r.started, **i.to_json(), **climb} for (r, i), climb in told])
    say(history_lines(rows) if rows else [f"no interview in {options.source} is like that"])
    return PASSED


def compare_command(options: argparse.Namespace) -> int:
    """Show what changed between two runs; returns the exit code."""
    from pytest_adaptive_eval.core.comparison import compare
    from pytest_adaptive_eval.reports.history import comparison_lines

    before, after = (open_run(name, options.source) for name in (options.before, options.after))
    old = {interview.name: interview for interview in before.interviews}
    found = [compare(old[new.name], new) for new in after.interviews if new.name in old]
    if not found:
        names = ", ".join(old) or "none", ", ".join(i.name for i in after.interviews) or "none"
        raise ConfigError(f"the two runs have no evaluation in common: the first has {names[0]}, the second {names[1]}")
    if options.json:
        runs = {"before": before.run, "after": after.run}
        save(options.json, {**runs, "evaluations": [comparison.to_json() for comparison in found]})
    say([f"{before.run} -> {after.run}, change with its 95 % interval"])
    for comparison in found:
        say(comparison_lines(comparison, width()))
    return USAGE if all(comparison.refused for comparison in found) else PASSED


def drift_command(options: argparse.Namespace) -> int:
    """Watch past runs; returns the exit code."""
    from pytest_adaptive_eval.core.drift import monitor
    from pytest_adaptive_eval.reports.history import drift_lines

    if not 10 <= options.average_run_length < math.inf:
        raise ConfigError(f"--average-run-length {options.average_run_length:g}: expected a number of at least 10")
    url = None
    if options.webhook is not None and not (url := os.environ.get(options.webhook)):
        raise ConfigError(f"--webhook {options.webhook}: the environment has no such variable, or it is empty")
    history = open_history(options.source)
    series = history.series(since=options.since, **which(options))
    alarms = monitor(series, average_run_length=options.average_run_length)
    last: dict[str, tuple[str, str]] = {}  # the newest run of each evaluation
    for one in series:
        point = one.points[-1]
        last[one.evaluation] = max(last.get(one.evaluation, ("", "")), (point.started, point.run))
    newest = {run for _, run in last.values()}
    news = [alarm for alarm in alarms if alarm.series.points[alarm.at].run in newest]
    if options.json:
        rows = [{**asdict(alarm), "news": alarm in news} for alarm in alarms]
        save(options.json, {"series": [asdict(one) for one in series], "alarms": rows})
    say(drift_lines(series, alarms, newest, width()))
    if news and url:
        from pytest_adaptive_eval.alerts import payload, send

        send(url, payload(news, run=history.runs[-1], report_url=options.link))
        screen.note("the webhook was told")
    return NOT_PASSED if news else PASSED
