"""What the verbs about past runs share: their arguments, and how a run is found."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

__all__ = ["add_record_verbs"]

#: Where runs are kept unless told otherwise.
FOLDER = ".adaptive-eval"


def add_record_verbs(verbs: Any) -> None:
    """Add report, history, compare, correlate, drift, rescore and merge to the command's verbs."""
    from pytest_adaptive_eval.cli.correlate import correlate_command
    from pytest_adaptive_eval.cli.history import compare_command, drift_command, history_command
    from pytest_adaptive_eval.cli.report import merge_command, report_command, rescore_command

    run = "a record's path, an id or its beginning, or latest, the newest that asked something"
    report = verbs.add_parser(
        "report",
        help="show a run, and write it as a page, Markdown, JUnit or tables",
        description="Show what a run found, and write it for people (HTML, Markdown), for CI (JUnit, GitHub) and for "
        "other tools. Nothing is asked or judged again.",
    )
    add = report.add_argument
    add("run", metavar="RUN", nargs="?", default="latest", help=f"{run} (%(default)s)")
    add("--html", metavar="FILE", type=Path, help="one page for people, without a network")
    add("--markdown", metavar="FILE", type=Path, help="a summary for a pull request")
    add("--junit", metavar="FILE", type=Path, help="a JUnit report of the gates")
    add("--github", action="store_true", help="annotations, step summary and outputs of a GitHub Actions step")
    add("--responses", metavar="FILE", type=Path, help="every answer, as JSON lines or, by its suffix, CSV")
    add("--studies", metavar="FILE", type=Path, help="what studies found of each subject, as JSON lines or CSV")
    add("--every-eval-ever", metavar="DIR", type=Path, help="the neutral format Every Eval Ever")
    add("--mlflow", action="store_true", help="log metrics to MLflow, as its environment variables say")
    _bank_argument(report)
    _source_argument(report)
    report.set_defaults(run_command=report_command)

    history = verbs.add_parser(
        "history", help="list past runs", description="List the interviews and studies of past runs, oldest first."
    )
    _which_arguments(history)
    history.add_argument("--last", metavar="N", type=int, help="only the newest N")
    text = "of climbs, the accuracy by level over the rounds of each subject: lowest, mean, highest"
    history.add_argument("--levels", action="store_true", help=text)
    history.add_argument("--json", metavar="FILE", type=Path, help="write the list as JSON")
    _source_argument(history)
    history.set_defaults(run_command=history_command)

    compare = verbs.add_parser(
        "compare",
        help="two runs side by side",
        description="What changed from one run to another, with 95 % intervals. Runs on different banks, or asked in "
        "another way, are refused. A gate not_worse_than decides such a question; this only shows it.",
    )
    compare.add_argument("before", metavar="RUN", help=run)
    compare.add_argument("after", metavar="RUN", help=run)
    compare.add_argument("--json", metavar="FILE", type=Path, help="write the comparison as JSON")
    _source_argument(compare)
    compare.set_defaults(run_command=compare_command)

    correlate = verbs.add_parser(
        "correlate",
        help="how alike evaluations order the subjects of past runs",
        description="Rank and linear correlations between evaluations over subjects, from the newest run of each: "
        "areas of climbs, and else accuracies. 95 % intervals take the subjects as drawn independently.",
    )
    _which_arguments(correlate)
    add = correlate.add_argument
    text = "your own scores: a column subject, and columns of scores"
    add("--reference", metavar="FILE.csv", type=Path, help=text)
    add("--json", metavar="FILE", type=Path, help="write values and correlations as JSON")
    _source_argument(correlate)
    correlate.set_defaults(run_command=correlate_command)

    drift = verbs.add_parser(
        "drift",
        help="watch past runs for a drop, and alert",
        description="Watch each evaluation and each category over the past runs. Exit code 1 when the newest run "
        "raises an alarm.",
    )
    _which_arguments(drift)
    add = drift.add_argument
    add("--since", metavar="RUN|DATE", default="", help="begin anew here, as after an accepted change of level")
    text = "runs between false alarms, over all that is watched (%(default)s)"
    add("--average-run-length", metavar="N", type=float, default=1000.0, help=text)
    text = "environment variable with the URL of the service that gets a message on an alarm, in apprise's form"
    add("--webhook", metavar="VARIABLE", help=text)
    text = "write the message on an alarm as JSON for an incoming webhook of Slack"
    add("--alert-file", metavar="FILE", type=Path, help=text)
    add("--link", metavar="URL", default="", help="address of the report, for the message")
    add("--json", metavar="FILE", type=Path, help="write series and alarms as JSON")
    _source_argument(drift)
    drift.set_defaults(run_command=drift_command)

    rescore = verbs.add_parser(
        "rescore",
        help="judge recorded answers again, with mended keys or other gates",
        description="Grade the recorded answers by the bank as it is now, judge them by the recorded gates or by those "
        "of a file, and keep the result as a run of its own. Nothing is asked.",
    )
    add = rescore.add_argument
    add("run", metavar="RUN", help=run)
    add("--gates", metavar="FILE.toml", type=Path, help="evaluations whose gates take the place of the recorded ones")
    add("--baseline", metavar="FILE", help="what gates call baseline")
    add("--graders", metavar="MODULE", action="append", default=[], help="a module whose functions may grade")
    add("-o", "--output", metavar="FILE", type=Path, help="write the record there and not into the history")
    _bank_argument(rescore)
    _source_argument(rescore)
    rescore.set_defaults(run_command=rescore_command)

    merge = verbs.add_parser(
        "merge",
        help="one record of several jobs' runs",
        description="Put the interviews and gates of several runs into one record, as they were judged.",
    )
    merge.add_argument("runs", metavar="RUN", nargs="+", help=run)
    text = "write the record there and not into the history"
    merge.add_argument("-o", "--output", metavar="FILE", type=Path, help=text)
    _source_argument(merge)
    merge.set_defaults(run_command=merge_command)


def _source_argument(parser: argparse.ArgumentParser) -> None:
    text = "history: a run folder, a folder or zip of records, or one record (%(default)s)"
    parser.add_argument("--from", metavar="SOURCE", dest="source", type=Path, default=Path(FOLDER), help=text)


def _bank_argument(parser: argparse.ArgumentParser) -> None:
    text = "where the bank of an evaluation is now; by default, where the run found it"
    parser.add_argument("--bank", metavar="EVALUATION=PATH", action="append", default=[], help=text)


def _which_arguments(parser: argparse.ArgumentParser) -> None:
    texts = {
        "evaluation": 'its name, such as "text*"',
        "subject": 'its name, such as "step-*"',
        "bank": 'its name or content hash, such as "text" or "1f3a*"',
    }
    for name, text in texts.items():
        parser.add_argument(f"--{name}", metavar="PATTERN", default="*", help=text)
