"""``adaptive-eval report``, ``rescore`` and ``merge``: one run, shown, judged again, or made of several."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, USAGE, put, screen, spare
from pytest_adaptive_eval.cli.runs import bank_paths, named_in, open_run, show
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.config import TomlEval
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series
    from pytest_adaptive_eval.records.run_record import RunRecord

__all__ = ["merge_command", "report_command", "rescore_command"]


def report_command(options: argparse.Namespace) -> int:
    """Write a run's reports and show it; returns the exit code."""
    names = ("html", "markdown", "junit", "responses", "studies")
    writes = {f"--{name}": getattr(options, name) for name in names}
    try:
        record = open_run(options.run, options.source, writes)
    except AdaptiveEvalError:
        if options.github:  # whoever waits for the outputs must not take silence for success
            from pytest_adaptive_eval.reports.github import write_failure

            write_failure(os.environ, put)
        raise
    paths = bank_paths(options, record)
    spare(writes, [*paths.values(), *named_in(record)])
    series, alarms = _trend(record, options.source)
    try:
        _write(options, record, paths, series, alarms)
    finally:  # what was found is told whatever becomes of the files
        show(record)
        if options.github:
            from pytest_adaptive_eval.reports.github import write_github

            write_github(record, os.environ, put, folder=Path.cwd(), alarms=alarms)
    return PASSED


def _write(
    options: argparse.Namespace,
    record: RunRecord,
    paths: Mapping[str, Path],
    series: Sequence[Series],
    alarms: Sequence[Alarm],
) -> None:
    """The files that the options name."""
    banks: dict[str, ItemBank] = {}
    if options.html or options.markdown or options.every_eval_ever:
        from pytest_adaptive_eval.config import recorded_banks

        banks = recorded_banks(
            record, [Path.cwd()], paths, unread=lambda error: screen.note(f"shown without questions: {error}")
        )
    if options.html:
        from pytest_adaptive_eval.reports.page import write_page

        write_page(record, options.html, banks=banks, series=series, alarms=alarms)
        screen.note(f"page: {options.html}")
    if options.markdown:
        from pytest_adaptive_eval.outputs import write_whole
        from pytest_adaptive_eval.reports.markdown import summary_markdown

        text = summary_markdown(record, banks=banks, alarms=alarms)
        write_whole(options.markdown, [text.encode("utf-8")], "the summary")
        screen.note(f"summary: {options.markdown}")
    if options.junit:
        from pytest_adaptive_eval.reports.junit import write_gate_report

        write_gate_report(record, options.junit)
        screen.note(f"JUnit report: {options.junit}")
    _export(options, record, banks)


def _export(options: argparse.Namespace, record: RunRecord, banks: Mapping[str, ItemBank]) -> None:
    if not (options.responses or options.studies or options.every_eval_ever or options.mlflow):
        return
    from pytest_adaptive_eval.reports.exports import every_eval_ever, log_mlflow, write_export
    from pytest_adaptive_eval.text import counted

    for content, path, studies in (("answers", options.responses, False), ("studies", options.studies, True)):
        if path:
            rows = write_export(record, path, "csv" if path.suffix.lower() == ".csv" else "jsonl", studies=studies)
            none = ": the run held no study" if studies and not record.studies else ""
            screen.note(f"{content}: {path}, {counted(rows, 'row')}{none}")
    if options.responses and record.studies and not options.studies:
        names = ", ".join(study.name for study in record.studies)
        screen.note(f"{options.responses} holds answers to items, and studies ({names}) have none: see --studies FILE")
    if options.every_eval_ever:
        written = every_eval_ever(record, options.every_eval_ever, banks=banks)
        screen.note(f"Every Eval Ever: {options.every_eval_ever}, {counted(len(written), 'file')}")
    if options.mlflow:
        log_mlflow(record)


def _trend(record: RunRecord, source: Path) -> tuple[list[Series], list[Alarm]]:
    """The series of the run's evaluations up to it, and their alarms at it; nothing where there is no history."""
    from pytest_adaptive_eval.records.drift import monitor
    from pytest_adaptive_eval.records.history import History

    keys = {(i.name, i.bank.get("content_hash"), i.bank.get("scale")) for i in record.interviews}
    series: list[Series] = []
    if source.exists():
        with suppress(AdaptiveEvalError):
            history = History(source)
            history.add(record)
            series = history.series(until=record.started)
    series = [entry for entry in series if (entry.evaluation, entry.bank_hash, entry.scale) in keys]
    return series, [alarm for alarm in monitor(series) if alarm.series.points[alarm.at].run == record.run]


def rescore_command(options: argparse.Namespace) -> int:
    """Judge a run's answers again; returns the exit code."""
    from pytest_adaptive_eval.cli.rescore import rescore
    from pytest_adaptive_eval.config import recorded_banks

    writes = {"-o": options.output}
    record = open_run(options.run, options.source, writes)
    paths = bank_paths(options, record)
    spare(writes, [options.gates, options.baseline, *paths.values(), *named_in(record)])
    folders, now = [Path.cwd()], datetime.now(UTC)
    new = rescore(
        record,
        recorded_banks(record, folders, paths, options.graders, _refuse),
        gates=_gates(options.gates) if options.gates else (),
        baseline=options.baseline,
        folders=folders,
        run=_new_id(now),
        now=now,
    )
    _keep(new, options)
    show(new)
    if missing := new.extra.get("missing"):
        screen.note(f"the run had no result from {', '.join(map(str, missing))}: no copy of it passes")
    return PASSED if new.exit_status == 0 else NOT_PASSED


def _gates(path: Path) -> Sequence[TomlEval]:
    """Return the evaluations of a TOML file, at least one."""
    from pytest_adaptive_eval.config import read_toml

    if not (evaluations := read_toml(path).evaluations):
        raise ConfigError(f"{path}: no evaluation; write [[eval]] (in double brackets) with a bank and gates")
    return evaluations


def _refuse(error: Exception) -> None:
    raise error


def merge_command(options: argparse.Namespace) -> int:
    """Put several runs into one record; returns the worst exit code of theirs."""
    from pytest_adaptive_eval.records.derived import merged

    records = [open_run(name, options.source, {"-o": options.output}) for name in options.runs]
    if len({record.run for record in records}) < len(records):
        raise ConfigError("a run is named twice")
    new = merged(records, _new_id(datetime.now(UTC)))
    _keep(new, options)
    show(new)
    return new.exit_status if new.exit_status in (PASSED, NOT_PASSED, USAGE) else NOT_PASSED


def _new_id(now: datetime) -> str:
    from pytest_adaptive_eval.records.runs import new_run_id

    return new_run_id(now, os.urandom(4))


def _keep(record: RunRecord, options: argparse.Namespace) -> None:
    from pytest_adaptive_eval.records.history import place_of
    from pytest_adaptive_eval.records.runs import write_record

    if not options.output and not options.source.is_dir():
        raise ConfigError(f"{options.source} is no folder to keep the record in: name a file with -o FILE.json")
    path = options.output or place_of(options.source) / f"{record.run}.json"
    write_record(path, record)
    screen.note(f"record: {path}")
