"""``adaptive-eval rescore``: recorded answers, judged again."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_adaptive_eval import clock
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, spare
from pytest_adaptive_eval.cli.runs import (
    RUN,
    add_bank_argument,
    add_source_argument,
    bank_paths,
    keep_record,
    named_paths,
    new_id,
    open_run,
    show,
)
from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", help=RUN)
    add("--gates", metavar="FILE.toml", type=Path, help="evaluations whose gates take the place of the recorded ones")
    add("--baseline", metavar="FILE", help="what gates call baseline")
    add("--graders", metavar="MODULE", action="append", default=[], help="a module whose functions may grade")
    add("-o", "--output", metavar="FILE", type=Path, help="write the record there and not into the history")
    add_bank_argument(parser)
    add_source_argument(parser)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.cli.rescore import rescore
    from pytest_adaptive_eval.evaluation import read_toml, recorded_banks

    writes = {"-o": options.output}
    record = open_run(options.run, options.source, writes)
    paths = bank_paths(options, record)
    spare(writes, [options.gates, options.baseline, *paths.values(), *named_paths(record)])
    folders, now = [Path.cwd()], clock.now()
    banks = recorded_banks(record, folders, paths, options.graders, _raise)
    gates = read_toml(options.gates).evaluations if options.gates else []
    if options.gates and not gates:
        raise ConfigError(f"{options.gates}: no evaluation; write [[eval]] (in double brackets) with a bank and gates")
    new = rescore(record, banks, gates=gates, baseline=options.baseline, folders=folders, run=new_id(now), now=now)
    keep_record(new, options.output, options.source)
    show(new)
    if missing := new.extra.get("missing"):
        screen.note(f"the run had no result from {', '.join(map(str, missing))}: no copy of it passes")
    return PASSED if new.exit_status == 0 else NOT_PASSED


def _raise(error: Exception) -> None:
    raise error


REGISTERED = (
    Verb(
        "rescore",
        "judge recorded answers again, with corrected keys or other gates",
        "Grade the recorded answers by the bank as it is now, judge them by the recorded gates or by those of a file, "
        "and keep the result as a run of its own. Nothing is asked.",
        _add_arguments,
        _run,
        (
            "rescore latest",
            "rescore record.json --gates stricter.toml -o new.json",
        ),
    ),
)
