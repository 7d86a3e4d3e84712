"""``adaptive-eval doctor``: what is installed, what a model needs, and what would run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED
from pytest_adaptive_eval.cli.screen import say, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.diagnosis import Finding


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folder", metavar="FOLDER", nargs="?", type=Path, default=Path(), help="the project (the current folder)")
    text = "model that replaces the evaluations' models: a checkpoint folder, or http://HOST:PORT/v1#MODEL"
    add("--model", metavar="MODEL", help=text)
    add("--ask", action="store_true", help="ask models on servers for one token")


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.cli.diagnosis import diagnose_machine, diagnose_runs

    if not options.folder.is_dir():
        raise ConfigError(f"{options.folder} is not a folder; name the folder of the project")
    findings = [*diagnose_machine(), *diagnose_runs(options.folder, options.model, ask=options.ask)]
    for finding in findings:
        say(list(_lines(finding)))
    faults = sum(finding.state == "fault" for finding in findings)
    say(["", f"{faults} to fix before pytest --adaptive-eval can run here" if faults else "nothing to fix"])
    return NOT_PASSED if faults else PASSED


def _lines(finding: Finding) -> Iterator[str]:
    from pytest_adaptive_eval.text import clean_terminal, wrap

    text = clean_terminal(f"{finding.topic}: {finding.text}")
    yield from wrap(text, width(), " " * 8, first=f"{finding.state:<8}")


REGISTERED = (
    Verb(
        "doctor",
        "show what is installed, what a model needs, and what would run",
        "Show which extras are installed, what this machine can run, which evaluations a folder has, and whether their "
        "models can be interviewed. Exit code 1 where something has to be fixed first.",
        _add_arguments,
        _run,
        ("doctor",),
    ),
)
