"""``adaptive-eval import``: a published benchmark in, a bank that can be asked out."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from pytest_adaptive_eval.cli.options import PASSED, check_bank_output, origin
from pytest_adaptive_eval.cli.screen import say, screen, width
from pytest_adaptive_eval.cli.settings import add_settings_arguments, given_settings
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, DatasetError
from pytest_adaptive_eval.typed_tables import replaced

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.importing.advice import Plan
    from pytest_adaptive_eval.extensions.importing.base import Imported, ImportSettings
    from pytest_adaptive_eval.items.item import Item

#: Settings that most imports without a preset need, which are options too.
_COMMON = ("id", "question", "choices", "answer", "images", "grader", "split", "labels", "image_root")
#: Lines at the begin and at the end of a shown question, and characters of each.
_FIRST, _LAST, _WIDE = 2, 7, 160
#: Fields that no question uses, reasons of refusals and open points that are shown, and characters of a point.
_FIELDS, _REASONS, _POINTS, _LONGEST = 10, 4, 8, 900


def _add_arguments(parser: VerbParser) -> None:
    text = "files, or a folder, of the data set, hf:OWNER/NAME, or the data set of a tool as --presets lists them"
    parser.add_argument("source", metavar="DATA", nargs="*", help=text)
    add = parser.add_argument
    text = "folder NAME.bank to write; without it, mapping and items are shown"
    add("-o", "--output", metavar="BANK", type=Path, help=text)
    add("--yes", action="store_true", help="accept the mapping that is proposed, if nothing about it is open")
    add("--preset", metavar="NAME", default="", help="a published benchmark, as --presets lists them")
    add("--presets", action="store_true", help="list the presets and tools")
    text = "take the parameters of a ready bank, as `adaptive-eval banks` lists them, joined by id"
    add("--ready", metavar="NAME", default="", help=text)
    add("--partial", action="store_true", help="go on without the records that are refused")
    add("--replace", action="store_true", help="replace a bank that is in place")
    add_settings_arguments(parser, _table, _COMMON)


def _table() -> type[ImportSettings]:
    from pytest_adaptive_eval.extensions.importing.base import ImportSettings

    return ImportSettings


def _run(options: argparse.Namespace) -> int:
    is_main = threading.current_thread() is threading.main_thread()
    # by default a signal ends the process without its contexts, and copies of images would stay
    if is_main:
        before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    else:
        before = None
    try:
        return _import(options)
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, before)


def _import(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.ready import read_ready
    from pytest_adaptive_eval.extensions.importing.advice import Adviser
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items
    from pytest_adaptive_eval.extensions.importing.undecided import Undecided

    if options.presets:
        say(list(_presets()))
        return PASSED
    if not any(options.source):  # an empty name would be the folder that the command runs in
        raise ConfigError("name a file or folder to import; --presets lists the benchmarks and tools")
    source = options.source[0]
    if options.output is not None:
        check_bank_output(options.output, replaces=options.replace)
    if options.ready:
        read_ready(options.ready)  # a misspelt name is refused before the data are read
    settings = _settings(options)
    adviser = Adviser(source, settings, options.preset)
    screen.progress(f"reading {source}")
    try:
        imported = import_items(source, settings, options.preset)
    except DatasetError as error:
        # the frames of its traceback hold the records that were read, and they would stay beside those of each trial
        plan = adviser.plan(error.with_traceback(None))
        if plan.settings is None and not isinstance(error, Undecided):
            raise
        _decide(plan, options)
    with imported:
        say(list(_report(imported, source)))
        if imported.proposed or options.output is None:
            say(list(_examples(imported.items)))
        if imported.proposed:
            points = adviser.open_points(imported, partial=options.partial)
            if points:
                _decide(adviser.plan(imported), options)
            _confirm(options)
        elif not options.partial:
            check_refused(imported, source)
        if not imported.items:
            raise DatasetError(f"{source}: no record became an item")
        if options.output is None:
            say(["", "nothing was written: -o NAME.bank writes a bank"])
            return PASSED
        _write(imported, options, settings)
    return PASSED


def _settings(options: argparse.Namespace) -> ImportSettings:
    """Return the settings; a text that may hold several expressions is a list of them."""
    from pytest_adaptive_eval.extensions.importing.base import applied

    settings = applied(_table()(), given_settings(options))
    return replaced(settings, paths=(*options.source[1:], *settings.paths))


def _confirm(options: argparse.Namespace) -> None:
    """Ask a person at a terminal whether a proposed mapping is right; elsewhere ``--yes`` says so.

    Raises:
        DatasetError: It is not accepted, or something about it is open.
    """
    accepted = options.yes
    if not accepted and options.output is not None and sys.stdin.isatty() and sys.stdout.isatty():
        accepted = input("Is this mapping right? [y/N] ").strip().lower() in ("y", "yes")
    if not accepted or options.output is None:
        raise DatasetError(
            "nothing was written: the mapping is a proposal. Accept it with -o NAME.bank --yes, change it with --set "
            "KEY=VALUE, or keep its lines in a file and give --config FILE"
        )


def _decide(plan: Plan, options: argparse.Namespace) -> NoReturn:
    """Show what is open about a source and the command that decides it.

    Raises:
        DatasetError: Always; nothing is written.
    """
    from pytest_adaptive_eval.text import clean_terminal, counted, wrap

    lines = [""]
    for point in plan.points[:_POINTS]:
        lines += wrap(clean_terminal(f"{point!s:.{_LONGEST}}"), width(), "  ", first="- ")
    if len(plan.points) > _POINTS:
        lines.append(f"- and {counted(len(plan.points) - _POINTS, 'other point')}")
    if plan.settings is None:
        lines += ["", "no setting that import can try leads to a bank: write the lines above that are yours to decide"]
    else:
        if plan.left_out:
            left_out = f", without {counted(plan.left_out, 'record')}"
        else:
            left_out = ""
        heading = f"this command was tried and writes a bank{left_out}; check its settings:"
        if not plan.is_chosen:
            heading = f"no data say which of the settings is right: choose, as in this command{left_out} for the first"
        lines += ["", heading, _command(plan, options)]
    say(lines)
    count = counted(len(plan.points), "open point")
    raise DatasetError(f"nothing was written: the mapping is a proposal with {count}")


def _command(plan: Plan, options: argparse.Namespace) -> str:
    """Return the command line with the settings of a plan in place of earlier ones."""
    from pytest_adaptive_eval.banks.rows import stem_of
    from pytest_adaptive_eval.extensions.importing.undecided import as_options

    words = ["adaptive-eval", "import", *options.source]
    if options.preset:
        words += ["--preset", options.preset]
    if options.config is not None:
        words += ["--config", str(options.config)]
    name = re.sub(r"\W+", "-", stem_of(Path(options.source[0])))
    words += ["-o", str(options.output or f"{name}.bank"), "--yes"]
    if plan.left_out:
        words.append("--partial")
    if options.replace:
        words.append("--replace")
    if options.ready:
        words += ["--ready", options.ready]
    earlier = {}
    for name, value in given_settings(options, files=False).items():
        earlier[name] = str(value)
    return f"  {shlex.join(words)} {as_options(earlier | dict(plan.settings or {}))}".rstrip()


def _presets() -> Iterator[str]:
    from pytest_adaptive_eval.extensions.importing.importer import IMPORTERS

    rows = [
        (f"{name}:..." if importer.by_source else name, importer.summary)
        for name, importer in sorted(IMPORTERS.items(), key=lambda entry: (entry[1].by_source, entry[0]))
    ]
    longest = max(len(name) for name, _ in rows)
    yield from (f"{name:<{longest}}  {summary}" for name, summary in rows)


def _report(imported: Imported, source: str) -> Iterator[str]:
    """Yield the lines on the mapping, on fields that it leaves out, and on what was read and refused."""
    from pytest_adaptive_eval.text import clean_terminal, wrap

    kind = "proposed mapping" if imported.proposed else "mapping"
    for files, mapping in imported.parts:
        yield f"{kind} of {', '.join(files) or source}, as in a file of --config:"
        for name, value in mapping.given().items():
            yield f"  {name} = {clean_terminal(_toml(value)):.300}"
    if imported.unused:
        yield "fields that no question uses:"
    for field in imported.unused[:_FIELDS]:
        marks = ["may belong to the question"] * field.needed + ["always the same"] * field.constant
        if marks:
            remark = f"  # {', '.join(marks)}"
        else:
            remark = ""
        yield "  " + clean_terminal(f"{field.name} = {' '.join(field.example.split())!r:.90}{remark}")
    if len(imported.unused) > _FIELDS:
        more = ", ".join(field.name for field in imported.unused[_FIELDS:])
        yield f"  and {len(imported.unused) - _FIELDS} more: {clean_terminal(more):.200}"
    graders = Counter(item.grader for item in imported.items)
    yield f"{len(imported.items)} items of {imported.read} records; graders: " + (
        ", ".join(f"{count} {grader}" for grader, count in graders.most_common()) or "none"
    )
    reasons = imported.reasons()
    for count, reason, first_places in reasons[:_REASONS]:
        refused = f"refused {count}: {imported.problem(reason):.300} ({first_places})"
        yield from wrap(clean_terminal(refused), width(), "  ", first="  ")
    if len(reasons) > _REASONS:
        rest = sum(count for count, _, _ in reasons[_REASONS:])
        yield f"  refused {rest} for {len(reasons) - _REASONS} other reasons"
    for note in imported.notes:
        yield from wrap(clean_terminal(f"note: {note}"), width(), "  ", first="  ")


def _toml(value: object) -> str:
    """Return a value as TOML: a text in single quotes where it has none."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        if "'" not in value and value.isprintable():
            return f"'{value}'"
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _examples(items: list[Item]) -> Iterator[str]:
    """Yield two items as a subject and the grader get them: the first, and one in the middle."""
    from pytest_adaptive_eval.items.presentation import with_choices
    from pytest_adaptive_eval.text import clean_terminal

    for item in map(with_choices, items[:: len(items) // 2 or 1][:2]):
        if item.prompt:
            texts = [item.prompt]
        else:
            texts = [f"{part['role']}: {part['content']}" for part in item.messages]
        whole = "\n".join([*texts, *item.turns]).splitlines()
        left_out = len(whole) - _FIRST - _LAST
        if left_out > 1:
            whole[_FIRST:-_LAST] = [f"({left_out} lines more)"]
        lines = []
        for line in whole:
            if len(line) > _WIDE:
                line = f"{line[:_WIDE]} ({len(line) - _WIDE} characters more)"
            lines.append(f"  | {line}")
        for image in item.images:
            lines.append(f"  image: {image}")
        lines += [f"  answer: {item.to_json().get('answer', '')!r} (by the grader {item.grader})"]
        yield from ("", f"item {item.id}" + (f" [{' / '.join(item.category)}]" if item.category else ""))
        yield from map(clean_terminal, lines)


def _write(imported: Imported, options: argparse.Namespace, settings: ImportSettings) -> None:
    from pytest_adaptive_eval.banks.ready import join_ready, read_ready
    from pytest_adaptive_eval.banks.writer import write_bank, write_uncalibrated

    facts = origin(settings, {**imported.facts, "read": imported.read, "refused": len(imported.refused)})
    report = {"source": facts}
    if options.ready:
        ready = read_ready(options.ready)
        joined = join_ready(ready, [item.id for item in imported.items])
        bank = write_bank(
            options.output,
            imported.items,
            discrimination=joined.discrimination,
            intercept=joined.intercept,
            report={**report, "ready": ready.age},
            replace=options.replace,
            **joined.settings,
        )
        say([f"{joined.known} of {len(bank)} items have parameters of {ready.name}: {ready.age}"])
    else:
        bank = write_uncalibrated(options.output, imported.items, report=report, replace=options.replace)
    licence = facts["licence"] or "unknown"
    say([f"wrote {options.output}: {len(bank)} items, content {bank.content_hash}, licence {licence}"])


REGISTERED = (
    Verb(
        "import",
        "import a published benchmark as a bank",
        "Read the questions of a published benchmark, from files, a folder, the hub or an evaluation tool, and write a "
        "bank folder without parameters. Without a preset or a mapping of question and answer, a mapping is proposed "
        "from the names of fields: it is shown with two items, and --yes accepts it.",
        _add_arguments,
        _run,
        (
            "import benchmark.csv",
            "import benchmark.csv -o benchmark.bank --yes",
            "import benchmark.csv -o benchmark.bank --config mapping.toml",
        ),
    ),
)
