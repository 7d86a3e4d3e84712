"""``adaptive-eval history``: past runs, listed, compared and watched."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import PASSED, parse_count, refuse
from pytest_adaptive_eval.cli.past_runs import add_source_argument, history_patterns, no_runs_text, open_history
from pytest_adaptive_eval.cli.screen import save, say
from pytest_adaptive_eval.cli.verb import Verb

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord

#: Options that go with ``--drift``.
_OF_DRIFT = ("accept", "webhook", "alert-file", "link")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to show (a list of runs when omitted)")
    add = group.add_mutually_exclusive_group().add_argument
    text = "watch every evaluation and category for a drop; exit code 1 while an alarm lasts"
    add("--drift", action="store_true", help=text)
    text = "the change from one run to another; of one record, or of three runs and more, all pairs of subjects"
    add("--compare", metavar="RUN", nargs="+", help=text)
    text = "how alike evaluations order the subjects, and your own scores: a column subject, and columns of scores"
    add("--correlate", metavar="FILE.csv", nargs="?", const="", help=text)
    add = parser.add_argument_group("which runs").add_argument
    add("--evaluation", metavar="PATTERN", help='of this name, such as "text*"')
    add("--subject", metavar="PATTERN", help='of this model, such as "step-*"')
    add("--last", metavar="N", type=parse_count, help="only the newest N")
    add_source_argument(add)
    add = parser.add_argument_group("alarms, with --drift").add_argument
    add("--accept", metavar="RUN", help="accept the level since RUN of the series that alarm, from now on")
    text = "name of an environment variable with the URL, in apprise's form, that gets a message on an alarm"
    add("--webhook", metavar="VARIABLE", help=text)
    add("--alert-file", metavar="FILE", type=Path, help="write the message as JSON for an incoming webhook of Slack")
    add("--link", metavar="URL", help="address of the report, for the message")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write what is shown as JSON")


def _run(options: argparse.Namespace) -> int:
    if not options.drift:
        refuse(options, _OF_DRIFT, "goes with --drift")
    if options.drift or options.compare or options.correlate is not None:
        refuse(options, ("last",), "goes with lists")
    if options.drift:
        from pytest_adaptive_eval.cli.drift import watch

        return watch(options)
    if options.compare:
        from pytest_adaptive_eval.cli.compare import compare

        refuse(options, ("evaluation", "subject"), "is not for --compare, which names runs")
        return compare(options)
    if options.correlate is not None:
        from pytest_adaptive_eval.cli.correlate import correlate_past

        return correlate_past(options)
    return _list(options)


def _list(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.reports.history import history_lines

    history = open_history(options.source, {"--json": options.json})
    newest = slice(-(options.last or 0), None)
    rows = list(history.evaluations(**history_patterns(options)))[newest]
    data = [_row(record, evaluation) for record, evaluation in rows]
    if options.json:
        save(options.json, data)
    say(history_lines(rows) if rows else [no_runs_text(options)])
    return PASSED


def _row(record: RunRecord, evaluation: EvaluationRecord) -> dict[str, Any]:
    """Return one evaluation as JSON data, with its run."""
    from pytest_adaptive_eval.records.repetitions import ladder_of

    row = {"run": record.run, "started": record.started, **evaluation.to_json()}
    row |= {"merged": record.merged} if record.merged else {}
    ladder = ladder_of(evaluation)
    if ladder:
        return {**row, "climb": str(ladder)}
    return row


REGISTERED = (
    Verb(
        "history",
        "list past runs, compare them, and watch them for a drop",
        "List the evaluations of past runs, oldest first; compare two runs; or watch all runs for a drop, and alert.",
        _add_arguments,
        _run,
        (
            "history --last 10",
            "history --drift --webhook ALERT_URL",
            "history --compare 20310506T07 latest",
            "history --compare .adaptive-eval-sweep/record.json",
        ),
    ),
)
