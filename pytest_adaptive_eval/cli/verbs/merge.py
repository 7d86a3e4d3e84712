"""``adaptive-eval merge``: one record of several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, USAGE
from pytest_adaptive_eval.cli.past_runs import RUN, NamedRuns, add_source_argument, keep_record, new_id, show
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", help=RUN)
    text = "write the record there and not into the history"
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help=text)
    add_source_argument(parser.add_argument)


def _run(options: argparse.Namespace) -> int:
    """Merge the runs; returns their worst exit code."""
    from pytest_adaptive_eval.records.run_record import merged

    named = NamedRuns(options.source, {"-o": options.output})
    records = [named.open(name) for name in options.runs]
    if len({record.run for record in records}) < len(records):
        raise ConfigError("a run is named twice: name each run once")
    new = merged(records, new_id(clock.now()))
    keep_record(new, options.output, options.source)
    show(new)
    if new.exit_status in (PASSED, NOT_PASSED, USAGE):
        return new.exit_status
    return NOT_PASSED


REGISTERED = (
    Verb(
        "merge",
        "one record of several jobs' runs",
        "Put the interviews and gates of several runs into one record, as they were judged.",
        _add_arguments,
        _run,
        ("merge text.json vision.json",),
    ),
)
