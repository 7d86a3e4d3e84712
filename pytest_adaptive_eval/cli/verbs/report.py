"""``adaptive-eval report``: one run, shown and exported."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, spare
from pytest_adaptive_eval.cli.past_runs import (
    RUN,
    NamedRuns,
    add_bank_argument,
    add_source_argument,
    bank_paths,
    named_paths,
    show,
)
from pytest_adaptive_eval.cli.screen import put, screen
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import AdaptiveEvalError, ConfigError
from pytest_adaptive_eval.registry import service

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.bank import ItemBank
    from pytest_adaptive_eval.records.drift import Alarm, Series
    from pytest_adaptive_eval.records.history import History
    from pytest_adaptive_eval.records.run_record import RunRecord

#: Kinds of exports, and whether each takes a path.
_EXPORTS = {"responses": True, "mlflow": False, "wandb": False}
#: Newest runs that the page of a history lists, and those that get a page of their own.
_RUNS, _PAGES = 100, 10


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run", metavar="RUN", nargs="?", default="latest", help=f"{RUN} (%(default)s)")
    add("--exit-code", action="store_true", help="exit with the status of the run, or 1 if its record has none")
    add_source_argument(add)
    add = parser.add_argument_group("for people").add_argument
    add("--html", metavar="FILE", type=Path, help="one page, without a network")
    add("--markdown", metavar="FILE", type=Path, help="a summary")
    text = "the page of a history: each evaluation over its runs, the newest runs, and pages of them"
    add("--index", metavar="DIR", type=Path, help=text)
    text = "where the bank of an evaluation is now, for its questions; by default, where the run found it"
    add_bank_argument(add, text)
    add = parser.add_argument_group("for continuous integration").add_argument
    add("--github", action="store_true", help="annotations, step summary and outputs of a GitHub Actions step")
    add("--comment", metavar="FILE", type=Path, help="a short summary that replaces the last one on a pull request")
    add("--link", metavar="URL", default="", help="address of the whole report, for the comment")
    add("--junit", metavar="FILE", type=Path, help="a JUnit report of the gates")
    add = parser.add_argument_group("for other tools").add_argument
    text = f"{', '.join(_EXPORTS)}; tables are CSV or JSON lines by the name of FILE; may be repeated"
    add("--export", metavar="KIND[=PATH]", action="append", default=[], type=_export_of, help=text)


def _run(options: argparse.Namespace) -> int:
    exports = dict(options.export)
    if len(exports) < len(options.export):
        raise ConfigError("--export: a kind is given twice; give each once")
    writes = {}
    for name in ("html", "markdown", "comment", "junit"):
        writes[f"--{name}"] = getattr(options, name)
    writes |= {f"--export {kind}": path for kind, path in exports.items()}
    runs = NamedRuns(options.source, writes)
    record = _open(options, runs)
    paths = bank_paths(options, record)
    spare(writes, [*paths.values(), *named_paths(record)])
    series: list[Series] = []
    alarms: list[Alarm] = []
    if any((options.html, options.markdown, options.comment, options.github)):
        series, alarms = _trend(record, runs)
    banks: Mapping[str, ItemBank] = {}
    try:
        banks = _banks(record, paths, [Path.cwd(), Path(options.run).parent])
        _write(options, record, banks, series, alarms)
        if options.index:
            _write_index(runs.history, options.index)
        for kind, path in exports.items():
            _export(record, kind, path)
    finally:  # the run is shown even if a file cannot be written
        show(record, {} if os.environ.get("CI") else banks)  # logs of CI may be public, and questions are not
        if options.github:
            from pytest_adaptive_eval.reports.github import write_github

            write_github(record, os.environ, put, folder=Path.cwd(), banks=banks, alarms=alarms)
    if not options.exit_code:
        return PASSED
    if record.exit_status is None:
        return NOT_PASSED
    return record.exit_status


def _open(options: argparse.Namespace, runs: NamedRuns) -> RunRecord:
    """Return the record; write to GitHub's outputs if it cannot be read, since none would read as success."""
    try:
        return runs.open(options.run)
    except AdaptiveEvalError:
        if options.github:
            from pytest_adaptive_eval.reports.github import write_failure

            write_failure(os.environ, put)
        raise


def _banks(record: RunRecord, paths: Mapping[str, Path], folders: Sequence[Path]) -> Mapping[str, ItemBank]:
    """Return the banks at hand by evaluation; a bank that cannot be read is a note."""
    from pytest_adaptive_eval.evaluation import recorded_banks

    def unread(error: Exception) -> None:
        screen.note(f"shown without questions: {error}")

    return recorded_banks(record, folders, paths, unread=unread)


def _write(
    options: argparse.Namespace,
    record: RunRecord,
    banks: Mapping[str, ItemBank],
    series: Sequence[Series],
    alarms: Sequence[Alarm],
) -> None:
    """Write the files that the options name."""
    from pytest_adaptive_eval.outputs import write_whole

    if options.html:
        from pytest_adaptive_eval.reports.page import write_page

        run_folder = Path(options.run).parent / ".adaptive-eval"
        requests = _requests(record, [options.source, run_folder])
        write_page(record, options.html, banks=banks, series=series, alarms=alarms, requests=requests)
        screen.note(f"page: {options.html}")
    if options.markdown:
        from pytest_adaptive_eval.reports.markdown import summary_markdown

        text = summary_markdown(record, banks=banks, alarms=alarms)
        write_whole(options.markdown, [text.encode("utf-8")], "the summary")
        screen.note(f"summary: {options.markdown}")
    if options.comment:
        from pytest_adaptive_eval.reports.markdown import comment_markdown

        text = comment_markdown(record, banks=banks, alarms=alarms, link=options.link)
        write_whole(options.comment, [text.encode("utf-8")], "the comment")
        screen.note(f"comment: {options.comment}")
    if options.junit:
        from pytest_adaptive_eval.reports.junit import write_gate_report

        write_gate_report(record, options.junit)
        screen.note(f"JUnit report: {options.junit}")


def _requests(record: RunRecord, folders: Sequence[Path]) -> dict[str, str]:
    """Return the requests of a run by key, if a store of answers has them; one that cannot be read is a note."""
    from pytest_adaptive_eval.inputs import ANSWERS_FILE
    from pytest_adaptive_eval.models.store import CompletionStore

    named = []
    for interview in record.interviews:
        if interview.reuse:
            named.append(Path(interview.reuse.store))
    requests: dict[str, str] = {}
    for path in dict.fromkeys([*(folder / ANSWERS_FILE for folder in folders), *named]):
        if path.is_file():
            try:
                with CompletionStore(path, exclusive=False) as store:
                    requests |= store.find_requests(record.sent_keys)
            except ConfigError as error:
                screen.note(f"shown without the requests as they were sent: {error}")
    return requests


def _write_index(history: History, folder: Path) -> None:
    """Write the page of a history, and pages of its newest runs."""
    from pytest_adaptive_eval.records.drift import lasting, monitor
    from pytest_adaptive_eval.reports.index_page import write_index
    from pytest_adaptive_eval.reports.page import write_page
    from pytest_adaptive_eval.text import counted

    series = history.series()
    alarms = monitor(series)
    newest = [history.whole(record.run) for record in history.runs[-_RUNS:]]
    folder.mkdir(parents=True, exist_ok=True)
    links = {record.run: f"{record.run}.html" for record in newest[-_PAGES:]}
    for record in newest[-_PAGES:]:
        write_page(record, folder / links[record.run], series=_until(record, series))
    index = folder / "index.html"
    write_index(index, history.runs, links, newest=newest, alarms=alarms, lasting=lasting(alarms, series))
    screen.note(f"index: {index}, {counted(len(history.runs), 'run')}")


def _until(record: RunRecord, series: Sequence[Series]) -> list[Series]:
    """Return the series that a run is of, up to it."""
    shortened = []
    for entry in series:
        runs = [point.run for point in entry.points[-_RUNS:]]
        if record.run in runs:
            end = len(entry.points) - len(runs) + runs.index(record.run) + 1
            shortened.append(replace(entry, points=entry.points[:end]))
    return shortened


def _export_of(text: str) -> tuple[str, Path]:
    """Return kind and path of an export such as ``responses=answers.csv``."""
    kind, sign, path = text.partition("=")
    if kind not in _EXPORTS:
        raise argparse.ArgumentTypeError(f"{text!r}: known kinds are {', '.join(_EXPORTS)}")
    if bool(path) != _EXPORTS[kind] or bool(sign) != bool(path):
        raise argparse.ArgumentTypeError(f"{text!r}: expected {kind}{'=PATH' if _EXPORTS[kind] else ' alone'}")
    return kind, Path(path)


def _export(record: RunRecord, kind: str, path: Path) -> None:
    """Write a run for other tools."""
    from pytest_adaptive_eval.text import counted

    match kind:
        case "mlflow":
            service("log_mlflow", "exports")(record)
        case "wandb":
            baseline = service("log_wandb", "exports")(record)
            screen.note(f"Weights & Biases: baseline = {baseline!r} compares with this run")
        case _:
            if path.suffix.lower() == ".csv":
                form = "csv"
            else:
                form = "jsonl"
            rows = service("write_export", "exports")(record, path, form)
            screen.note(f"answers: {path}, {counted(rows, 'row')}")
            others = [evaluation.name for evaluation in record.others]
            if others:
                screen.note(f"answers to items leave out {', '.join(others)}: see the record")


def _trend(record: RunRecord, runs: NamedRuns) -> tuple[list[Series], list[Alarm]]:
    """Return the series of the run's evaluations up to it, and the alarms that last; both empty without a history."""
    from pytest_adaptive_eval.records.drift import lasting, monitor

    series: list[Series] = []
    if runs.source.exists():
        with suppress(AdaptiveEvalError):
            series = runs.history.including(record).series_of(record)
    return series, lasting(monitor(series), series)


REGISTERED = (
    Verb(
        "report",
        "show a run, and write it as a page, Markdown, JUnit or tables",
        "Show a run, and write it for people, for continuous integration and for other tools. Nothing is asked or "
        "judged again.",
        _add_arguments,
        _run,
        (
            "report latest --html report.html",
            "report record.json --exit-code",
            "report --index pages --export responses=answers.csv",
        ),
    ),
)
