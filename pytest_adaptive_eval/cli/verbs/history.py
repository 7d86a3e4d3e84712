"""``adaptive-eval history``: a list of past runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.options import PASSED
from pytest_adaptive_eval.cli.runs import (
    add_pattern_arguments,
    add_source_argument,
    history_patterns,
    no_runs_text,
    open_history,
)
from pytest_adaptive_eval.cli.screen import save, say, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.records.history import History
    from pytest_adaptive_eval.records.run_record import InterviewRecord, RunRecord, StudyRecord


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_pattern_arguments(parser)
    parser.add_argument("--last", metavar="N", type=int, help="only the newest N")
    text = "of climbs, the accuracy by level over the rounds of each subject: lowest, mean, highest"
    parser.add_argument("--levels", action="store_true", help=text)
    text = "items that were right in one run and wrong in another, with one checkpoint and one decoding"
    parser.add_argument("--flicker", action="store_true", help=text)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the list as JSON")
    add_source_argument(parser)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.records.repetitions import envelopes
    from pytest_adaptive_eval.reports.history import envelope_lines, history_lines

    history = open_history(options.source, {"--json": options.json})
    if options.last is not None and options.last < 1:
        raise ConfigError(f"--last {options.last}: expected a number of at least 1")
    newest = slice(-(options.last or 0), None)
    data: list[Any]
    if options.flicker:
        data, lines = _flickers(history, options, newest)
        nothing = f"no item of a checkpoint was right in one run of {options.source} and wrong in another"
    elif options.levels:
        level_envelopes = envelopes(list(history.interviews(**history_patterns(options)))[newest])
        data = [envelope.to_json() for envelope in level_envelopes]
        lines = [line for envelope in level_envelopes for line in envelope_lines(envelope, width())]
        nothing = f"no interview in {options.source} is like that and climbed levels"
    else:
        rows = list(history.evaluations(**history_patterns(options)))[newest]
        data = [_row(record, evaluation) for record, evaluation in rows]
        lines = history_lines(rows) if rows else []
        nothing = no_runs_text(options)
    if options.json:
        save(options.json, data)
    say(lines or [nothing])
    return PASSED


def _flickers(history: History, options: argparse.Namespace, newest: slice) -> tuple[list[Any], list[str]]:
    """Return the items that flicker, as data and as the lines of a table."""
    from pytest_adaptive_eval.records.flicker import flickering
    from pytest_adaptive_eval.reports.history import flicker_lines

    named = {(record.run, entry.nodeid) for record, entry in history.interviews(**history_patterns(options))}
    runs = list(dict.fromkeys(record.run for record, _ in history.interviews(**history_patterns(options))))[newest]
    whole = (history.whole(run) for run in runs)
    found = flickering(
        (r, interview) for r in whole for interview in r.interviews if (r.run, interview.nodeid) in named
    )
    return [entry.to_json() for entry in found], flicker_lines(found) if found else []


def _row(record: RunRecord, evaluation: InterviewRecord | StudyRecord) -> dict[str, Any]:
    """Return one evaluation as JSON data, with its run."""
    from pytest_adaptive_eval.records.repetitions import ladder_of
    from pytest_adaptive_eval.records.run_record import InterviewRecord

    row = {"run": record.run, "started": record.started, **evaluation.to_json()}
    row |= {name: record.extra[name] for name in ("rescored_from", "merged") if name in record.extra}
    ladder = ladder_of(evaluation) if isinstance(evaluation, InterviewRecord) else None
    return {**row, "climb": str(ladder)} if ladder else row


REGISTERED = (
    Verb(
        "history",
        "list past runs",
        "List the interviews and studies of past runs, oldest first.",
        _add_arguments,
        _run,
        (
            "history --last 10",
            "history --flicker",
        ),
    ),
)
