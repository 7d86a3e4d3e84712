"""Find past runs, and write what a verb found in them."""

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
    from pytest_adaptive_eval.records.history import History
    from pytest_adaptive_eval.records.run_record import RunRecord


__all__ = ["bank_paths", "named_in", "open_history", "open_run", "save", "say", "show", "which"]

#: How terminals are told of markup.
_CODES = {"bold": "1", "light": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34"}


def which(options: argparse.Namespace) -> dict[str, str]:
    """The patterns given, as `History.interviews` takes them."""
    return {name: getattr(options, name) for name in ("evaluation", "subject", "bank")}


def open_history(source: Path, writes: Mapping[str, Path | None]) -> History:
    """The history at a place; says which files of it cannot be read, and spares them what is to be written."""
    from pytest_adaptive_eval.records.history import History

    history = History(source)
    for complaint in history.unread:
        screen.note(f"left out: {complaint}")
    spare(writes, history.paths)
    return history


def open_run(name: str, source: Path, writes: Mapping[str, Path | None]) -> RunRecord:
    """The run of a path, an id or ``latest``, sparing it what is to be written."""
    from pytest_adaptive_eval.records.runs import read_run

    path = Path(name)
    if path.suffix == ".json" or path.is_file():
        spare(writes, [path])
        return read_run(path)
    return open_history(source, writes).find(name)


def named_in(record: RunRecord) -> list[str]:
    """Files and folders that a record names: banks, and what was compared with."""
    paths = [str(interview.bank.get("path") or "") for interview in record.interviews]
    for interview in record.interviews:
        sources = interview.extra.get("baselines")
        for source in sources.values() if isinstance(sources, dict) else ():
            paths.append(str(source.get("path") or "") if isinstance(source, dict) else "")
    return [path for path in paths if path]


def bank_paths(options: argparse.Namespace, record: RunRecord) -> dict[str, Path]:
    """Where ``--bank`` says that banks of a run's evaluations are."""
    bank_evaluations = [
        interview.name for interview in record.interviews if not isinstance(interview.bank.get("task"), dict)
    ]
    paths: dict[str, Path] = {}
    for argument in options.bank:
        name, sign, path = argument.partition("=")
        if not (name and sign and path):
            raise ConfigError(f"--bank {argument!r}: expected EVALUATION=PATH, such as --bank text=banks/text.bank")
        if not Path(path).exists():
            raise ConfigError(f"--bank {argument!r}: there is no bank at {path}")
        if name not in bank_evaluations:
            have = ", ".join(bank_evaluations) or "none"
            raise ConfigError(f"--bank {argument!r}: the run's evaluations of a bank are {have}; name one of them")
        if name in paths:
            raise ConfigError(f"--bank {argument!r}: the bank of {name!r} was named before; give one")
        paths[name] = Path(path)
    return paths


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
