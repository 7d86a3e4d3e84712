"""``adaptive-eval report``: one run, shown and exported."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, spare
from pytest_adaptive_eval.cli.runs import (
    RUN,
    add_bank_argument,
    add_source_argument,
    bank_paths,
    named_paths,
    open_run,
    show,
)
from pytest_adaptive_eval.cli.screen import put, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import AdaptiveEvalError
from pytest_adaptive_eval.registry import service

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series
    from pytest_adaptive_eval.records.run_record import RunRecord


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", nargs="?", default="latest", help=f"{RUN} (%(default)s)")
    add("--html", metavar="FILE", type=Path, help="one page for people, without a network")
    add("--markdown", metavar="FILE", type=Path, help="a summary for a pull request")
    text = "the summary, short enough for a comment and with a mark by which later ones replace it"
    add("--comment", metavar="FILE", type=Path, help=text)
    add("--link", metavar="URL", default="", help="address of the whole report, for the comment")
    add("--junit", metavar="FILE", type=Path, help="a JUnit report of the gates")
    text = "exit with the status that the run ended with, and with 1 where its record does not have one"
    add("--exit-code", action="store_true", help=text)
    add("--github", action="store_true", help="annotations, step summary and outputs of a GitHub Actions step")
    add("--responses", metavar="FILE", type=Path, help="every answer, as JSON lines or, by its suffix, CSV")
    add("--studies", metavar="FILE", type=Path, help="results of studies for each subject, as JSON lines or CSV")
    add("--every-eval-ever", metavar="DIR", type=Path, help="the neutral format Every Eval Ever")
    add("--mlflow", action="store_true", help="log metrics and record to MLflow, as its environment variables say")
    add("--wandb", action="store_true", help="the same to Weights & Biases (extra wandb)")
    add_bank_argument(parser)
    add_source_argument(parser)


def _run(options: argparse.Namespace) -> int:
    names = ("html", "markdown", "comment", "junit", "responses", "studies")
    writes = {f"--{name}": getattr(options, name) for name in names}
    try:
        record = open_run(options.run, options.source, writes)
    except AdaptiveEvalError:
        if options.github:  # no outputs would read as success
            from pytest_adaptive_eval.reports.github import write_failure

            write_failure(os.environ, put)
        raise
    paths = bank_paths(options, record)
    spare(writes, [*paths.values(), *named_paths(record)])
    series, alarms = _trend(record, options.source)
    try:
        _write(options, record, paths, series, alarms)
    finally:  # the run is shown even if a file cannot be written
        show(record)
        if options.github:
            from pytest_adaptive_eval.reports.github import write_github

            write_github(record, os.environ, put, folder=Path.cwd(), alarms=alarms)
    if not options.exit_code:
        return PASSED
    return NOT_PASSED if record.exit_status is None else record.exit_status


def _write(
    options: argparse.Namespace,
    record: RunRecord,
    paths: Mapping[str, Path],
    series: Sequence[Series],
    alarms: Sequence[Alarm],
) -> None:
    """Write the files that the options name."""
    banks: dict[str, ItemBank] = {}
    if options.html or options.markdown or options.comment or options.every_eval_ever:
        from pytest_adaptive_eval.evaluation import recorded_banks

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
    if options.comment:
        from pytest_adaptive_eval.outputs import write_whole
        from pytest_adaptive_eval.reports.markdown import comment_markdown

        text = comment_markdown(record, banks=banks, alarms=alarms, link=options.link)
        write_whole(options.comment, [text.encode("utf-8")], "the comment")
        screen.note(f"comment: {options.comment}")
    if options.junit:
        from pytest_adaptive_eval.reports.junit import write_gate_report

        write_gate_report(record, options.junit)
        screen.note(f"JUnit report: {options.junit}")
    _export(options, record, banks)


def _export(options: argparse.Namespace, record: RunRecord, banks: Mapping[str, ItemBank]) -> None:
    """Write answers and studies for other tools."""
    if not (options.responses or options.studies or options.every_eval_ever or options.mlflow or options.wandb):
        return
    from pytest_adaptive_eval.text import counted

    if options.responses:
        _export_rows(record, options.responses, "answers")
        if record.studies and not options.studies:
            names = ", ".join(study.name for study in record.studies)
            screen.note(
                f"{options.responses} holds answers to items, and studies ({names}) have none: see --studies FILE"
            )
    if options.studies:
        _export_rows(record, options.studies, "studies")
    if options.every_eval_ever:
        written = service("every_eval_ever", "exports")(record, options.every_eval_ever, banks=banks)
        screen.note(f"Every Eval Ever: {options.every_eval_ever}, {counted(len(written), 'file')}")
    if options.mlflow:
        service("log_mlflow", "exports")(record)
    if options.wandb:
        screen.note(f"Weights & Biases: baseline = {service('log_wandb', 'exports')(record)!r} compares with this run")


def _export_rows(record: RunRecord, path: Path, content: str) -> None:
    """Write answers or studies as JSON lines or, by the path's suffix, as CSV."""
    from pytest_adaptive_eval.text import counted

    studies = content == "studies"
    rows = service("write_export", "exports")(
        record, path, "csv" if path.suffix.lower() == ".csv" else "jsonl", studies=studies
    )
    none = ": the run held no study" if studies and not record.studies else ""
    screen.note(f"{content}: {path}, {counted(rows, 'row')}{none}")


def _trend(record: RunRecord, source: Path) -> tuple[list[Series], list[Alarm]]:
    """Return the series of the run's evaluations up to it, and the alarms that last; both empty without a history."""
    from pytest_adaptive_eval.records.drift import lasting, monitor
    from pytest_adaptive_eval.records.history import History

    keys = {(i.name, i.bank.get("content_hash"), i.bank.get("scale")) for i in record.interviews}
    series: list[Series] = []
    if source.exists():
        with suppress(AdaptiveEvalError):
            history = History(source)
            history.add(record)
            series = history.series(until=record.started)
    series = [entry for entry in series if (entry.evaluation, entry.bank_hash, entry.scale) in keys]
    return series, lasting(monitor(series), series)


REGISTERED = (
    Verb(
        "report",
        "show a run, and write it as a page, Markdown, JUnit or tables",
        "Show a run, and write it for people (HTML, Markdown), for CI (JUnit, GitHub) and for other tools. Nothing is "
        "asked or judged again.",
        _add_arguments,
        _run,
        (
            "report latest --html report.html",
            "report record.json --markdown summary.md --junit gates.xml",
            "report record.json --exit-code",
        ),
    ),
)
