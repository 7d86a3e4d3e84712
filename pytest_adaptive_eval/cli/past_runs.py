"""Past runs: the arguments that name them, their lookup, display and storage."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import spare
from pytest_adaptive_eval.cli.screen import put, screen, width
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.history import History
    from pytest_adaptive_eval.records.run_record import RunRecord
    from pytest_adaptive_eval.reports.verdict_text import Step

#: Help of an argument that names a run.
RUN = "a record's path, an id or its beginning, or latest, the newest that asked something"
#: ANSI codes of pytest's terminal markup.
_CODES = {"bold": "1", "light": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


def add_source_argument(add: Callable[..., object]) -> None:
    """Add the option for the history of runs, as the attribute ``source``."""
    text = "history: a run folder, a folder or zip of records, or one record (%(default)s)"
    add("--from", metavar="SOURCE", dest="source", type=Path, default=Path(".adaptive-eval"), help=text)


def add_bank_argument(add: Callable[..., object], text: str) -> None:
    """Add the option for the present places of banks, which `text` describes."""
    add("--bank", metavar="EVALUATION=PATH", action="append", default=[], help=text)


def history_patterns(options: argparse.Namespace) -> dict[str, str]:
    """Return the patterns of the options, as `History.evaluations` takes them."""
    return {name: getattr(options, name) or "*" for name in ("evaluation", "subject")}


def no_runs_text(options: argparse.Namespace) -> str:
    """Return the reason why no run matches the patterns."""
    if set(history_patterns(options).values()) == {"*"}:
        return f"no run in {options.source} has an evaluation yet"
    return f"no run in {options.source} matches"


def open_history(source: Path, writes: Mapping[str, Path | None]) -> History:
    """Read a history, note its unreadable files, and refuse to overwrite its records."""
    from pytest_adaptive_eval.records.history import History

    history = History(source)
    for complaint in history.unread:
        screen.note(f"left out: {complaint}")
    spare(writes, history.paths)
    return history


class NamedRuns:
    """Runs that a command line names.  The history is read once, at the first name that is not a path.

    Args:
        source: The history.
        writes: Outputs of the command by option, which may replace neither a named record nor one of the history.
    """

    def __init__(self, source: Path, writes: Mapping[str, Path | None]) -> None:
        self.source = source
        self._writes = writes

    @cached_property
    def history(self) -> History:
        """The history of the source; see `open_history`."""
        return open_history(self.source, self._writes)

    def open(self, name: str) -> RunRecord:
        """Read the run of a path, an id or ``latest``."""
        from pytest_adaptive_eval.records.run_files import read_run

        path = Path(name)
        if path.suffix == ".json" or path.is_file():
            spare(self._writes, [path])
            return read_run(path)
        return self.history.find(name)


def named_paths(record: RunRecord) -> list[str]:
    """Return the files and folders that a record names: banks and baselines."""
    paths = [interview.bank.path for interview in record.interviews]
    for interview in record.interviews:
        for source in interview.baselines.values():
            paths.append(source.path)
    return [path for path in paths if path]


def bank_paths(options: argparse.Namespace, record: RunRecord) -> dict[str, Path]:
    """Return the paths of ``--bank`` by evaluation of the run."""
    bank_evaluations = []
    for interview in record.interviews:
        if interview.bank.task is None:
            bank_evaluations.append(interview.name)
    paths = {}
    for argument in options.bank:
        name, sign, path = argument.partition("=")
        if not (name and sign and path):
            raise ConfigError(f"--bank {argument!r}: expected EVALUATION=PATH, such as --bank text=banks/text.bank")
        if not Path(path).exists():
            raise ConfigError(f"--bank {argument!r}: no bank at {path}")
        if name not in bank_evaluations:
            have = ", ".join(bank_evaluations) or "none"
            raise ConfigError(f"--bank {argument!r}: the run's evaluations of a bank are {have}; name one of them")
        if name in paths:
            raise ConfigError(f"--bank {argument!r}: the bank of {name!r} was named before; give one")
        paths[name] = Path(path)
    return paths


def show(
    record: RunRecord, banks: Mapping[str, ItemBank] = MappingProxyType({}), steps: Sequence[Step] | None = None
) -> None:
    """Write the summary of a run to standard output; see `summary_lines`."""
    from pytest_adaptive_eval.reports.terminal import summary_lines, write_lines

    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    parts = []

    def write(text: str, **markup: bool) -> None:
        if coloured:
            codes = []
            for name, code in _CODES.items():
                if markup.get(name):
                    codes.append(code)
        else:
            codes = []
        parts.append(f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes and text else text)

    write_lines(summary_lines(record, width(), banks=banks, steps=steps), write)
    put("".join(parts))


def new_id(now: datetime) -> str:
    """Return an id for a derived record."""
    from pytest_adaptive_eval.records.run_files import new_run_id

    return new_run_id(now, os.urandom(4))


def keep_record(record: RunRecord, output: Path | None, source: Path) -> None:
    """Write a derived record to a file, else into the history."""
    from pytest_adaptive_eval.records.history import place_of
    from pytest_adaptive_eval.records.run_files import write_record

    if not output and not source.is_dir():
        raise ConfigError(f"{source} is not a folder; name a file for the record with -o FILE.json")
    path = output or place_of(source) / f"{record.run}.json"
    write_record(path, record)
    screen.note(f"record: {path}")
