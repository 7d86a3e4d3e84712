"""What the verbs about past runs share: their arguments, and how a run is found."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import put, screen, spare
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.core.record import RunRecord
    from pytest_adaptive_eval.store.history import History

__all__ = ["add_record_verbs", "bank_paths", "named_in", "open_history", "open_run", "save", "say", "show", "which"]

#: Where runs are kept unless told otherwise.
FOLDER = ".adaptive-eval"
#: How terminals are told of markup.
_CODES = {"bold": "1", "light": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


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
    text = "environment variable that holds the URL of a webhook (Slack or compatible) to tell of an alarm"
    add("--webhook", metavar="VARIABLE", help=text)
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


def which(options: argparse.Namespace) -> dict[str, str]:
    """The patterns given, as `History.interviews` takes them."""
    return {name: getattr(options, name) for name in ("evaluation", "subject", "bank")}


def open_history(source: Path, writes: Mapping[str, Path | None]) -> History:
    """The history at a place; says which files of it cannot be read, and spares them what is to be written."""
    from pytest_adaptive_eval.store.history import History

    history = History(source)
    for complaint in history.unread:
        screen.note(f"left out: {complaint}")
    spare(writes, history.paths)
    return history


def open_run(name: str, source: Path, writes: Mapping[str, Path | None]) -> RunRecord:
    """The run of a path, an id or ``latest``, sparing it what is to be written."""
    from pytest_adaptive_eval.store.runs import read_run

    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        spare(writes, [path])
        return read_run(path)
    return open_history(source, writes).find(name)


def named_in(record: RunRecord) -> list[str]:
    """Files and folders that a record names: banks, and what was compared with."""
    found = [str(interview.bank.get("path") or "") for interview in record.interviews]
    for interview in record.interviews:
        sources = interview.extra.get("baselines")
        for source in sources.values() if isinstance(sources, dict) else ():
            found.append(str(source.get("path") or "") if isinstance(source, dict) else "")
    return [path for path in found if path]


def bank_paths(options: argparse.Namespace, record: RunRecord) -> dict[str, Path]:
    """Where ``--bank`` says that banks of a run's evaluations are."""
    known = [interview.name for interview in record.interviews if not isinstance(interview.bank.get("task"), dict)]
    found: dict[str, Path] = {}
    for given in options.bank:
        name, sign, path = given.partition("=")
        if not (name and sign and path):
            raise ConfigError(f"--bank {given!r}: expected EVALUATION=PATH, such as --bank text=banks/text.bank")
        if not Path(path).exists():
            raise ConfigError(f"--bank {given!r}: there is no bank at {path}")
        if name not in known:
            have = ", ".join(known) or "none"
            raise ConfigError(f"--bank {given!r}: the run's evaluations of a bank are {have}; name one of them")
        if name in found:
            raise ConfigError(f"--bank {given!r}: the bank of {name!r} was named before; give one")
        found[name] = Path(path)
    return found


def show(record: RunRecord) -> None:
    """The summary of a run on standard output."""
    from pytest_adaptive_eval.cli.options import width
    from pytest_adaptive_eval.reports.terminal import summary_lines, write_lines

    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    parts: list[str] = []

    def write(text: str, **markup: bool) -> None:
        codes = [code for name, code in _CODES.items() if markup.get(name)] if coloured else []
        parts.append(f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text)

    write_lines(summary_lines(record, width()), write)
    put("".join(parts))


def save(path: Path, data: Any) -> None:
    """Write JSON data."""
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="ascii")


def say(lines: Sequence[str]) -> None:
    """Write lines to standard output."""
    put("".join(f"{line}\n" for line in lines))
