"""``adaptive-eval import``: a published benchmark in, a bank that can be asked out."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.options import PASSED, check_bank_output, origin
from pytest_adaptive_eval.cli.screen import say, screen, width
from pytest_adaptive_eval.cli.settings import add_settings_arguments, given_settings
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, DatasetError
from pytest_adaptive_eval.mappings import split_list
from pytest_adaptive_eval.typed_tables import read_table, replaced

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.importing.base import Imported, ImportSettings
    from pytest_adaptive_eval.items.item import Item

#: Settings that most imports without a preset need, which are options too.
_COMMON = ("id", "question", "choices", "answer", "images", "grader", "split", "labels", "image_root")
#: Characters of a shown question, and fields that no question uses.
_SHOWN, _FIELDS = 8000, 24
#: A label before a key, up to its colon.
_LABEL = re.compile(r"[^\W\d][^:：\n]{0,20}[:：]\s*(?=\S)")


def _add_arguments(parser: VerbParser) -> None:
    text = "files, or a folder, of the data set, hf:OWNER/NAME, or the data set of a tool as --presets lists them"
    parser.add_argument("source", metavar="DATA", nargs="*", help=text)
    add = parser.add_argument
    text = "folder NAME.bank to write; without it, mapping and items are shown"
    add("-o", "--output", metavar="BANK", type=Path, help=text)
    add("--yes", action="store_true", help="accept the mapping that is proposed, if nothing about it is open")
    add("--preset", metavar="NAME", default="", help="a published benchmark, as --presets lists them")
    add("--presets", action="store_true", help="list the presets and tools")
    add("--partial", action="store_true", help="go on without the records that are refused")
    add("--replace", action="store_true", help="replace a bank that is in place")
    add_settings_arguments(parser, _table, _COMMON)


def _table() -> type[ImportSettings]:
    from pytest_adaptive_eval.extensions.importing.base import ImportSettings

    return ImportSettings


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    if options.presets:
        say(list(_presets()))
        return PASSED
    if not options.source:
        raise ConfigError("name a file or folder to import; --presets lists the benchmarks and tools")
    source = options.source[0]
    if options.output is not None:
        check_bank_output(options.output, replaces=options.replace)
    settings = _settings(options)
    screen.progress(f"reading {source}")
    with import_items(source, settings, options.preset) as imported:
        say(list(_report(imported, source)))
        if imported.proposed or options.output is None:
            say(list(_examples(imported.items)))
        if imported.proposed:
            _confirm(imported, options)
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
    data = given_settings(options)
    default = _table()()
    for name, value in data.items():
        if isinstance(value, str) and (name == "missing" or isinstance(getattr(default, name), tuple)):
            data[name] = split_list(value)
    settings = read_table(_table(), data, "--set", strict=False)
    return replaced(settings, paths=(*options.source[1:], *settings.paths))


def _confirm(imported: Imported, options: argparse.Namespace) -> None:
    """Ask a person at a terminal whether a proposed mapping is right; elsewhere ``--yes`` says so.

    Raises:
        DatasetError: It is not accepted, or something about it is open.
    """
    from pytest_adaptive_eval.text import clean_terminal, counted, wrap

    open_points = list(_open_points(imported, partial=options.partial))
    say(["", *(line for point in open_points for line in wrap(clean_terminal(point), width(), "  ", first="- "))])
    if open_points:
        count = counted(len(open_points), "open point")
        raise DatasetError(f"nothing was written: the mapping is a proposal with {count}")
    accepted = options.yes
    if not accepted and options.output is not None and sys.stdin.isatty() and sys.stdout.isatty():
        accepted = input("Is this mapping right? [y/N] ").strip().lower() in ("y", "yes")
    if not accepted or options.output is None:
        raise DatasetError(
            "nothing was written: the mapping is a proposal. Accept it with -o NAME.bank --yes, change it with --set "
            "KEY=VALUE, or keep its lines in a file and give --config FILE"
        )


def _open_points(imported: Imported, *, partial: bool) -> Iterator[str]:
    """Yield what a person has to decide before a proposed mapping can be accepted."""
    from pytest_adaptive_eval.extensions.importing.names import PLAIN, normal

    mapping = imported.parts[0][1]
    items = imported.items
    if not (mapping.question or mapping.messages):
        yield (
            "no field has the name of a question: give --set question=FIELD; of a tool's log, adaptive-eval calibrate "
            "LOG --uncalibrated -o NAME.bank writes the items"
        )
    for field in imported.unused:
        if field.needed:
            if field.name.isidentifier():
                name = field.name
            else:
                name = json.dumps(field.name)
            yield (
                f"questions may need {field.name!r}, and do not use it: give --set context={name}, --set "
                f"question='{{..}} {{{name}}}', or --set ignore={name} where they are whole without it"
            )
    asked = sum("?" in item.prompt or item.grader not in ("yesno", "numeric") for item in items)
    is_plain = normal(mapping.question) in PLAIN and not (mapping.context or mapping.instruction)
    if is_plain and asked * 2 <= len(items):
        yield (
            f"{mapping.question!r} asks nothing by itself, and no field says what is asked: give --set question="
            "'QUESTION {..}', or --set instruction=SENTENCE"
        )
    matches = [_LABEL.match(key) for key in {item.answer for item in items}]
    labels = set()
    for match in matches:
        labels.add(match[0] if match else "")
    label = min(labels, default="")
    if label and len(labels) == 1 < len(matches):
        key = f"extract({mapping.answer or 'FIELD'}, '{re.escape(label)}(.*?)[.。]*$')"
        yield f'every key begins with {label!r}, which an answer may leave out: give --set answer="{key}"'
    if imported.refused and not partial:
        yield imported.refusals()


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
            yield f"  {name} = {clean_terminal(_toml(value))}"
    if imported.unused:
        yield "fields that no question uses:"
    for field in imported.unused[:_FIELDS]:
        marks = ["may belong to the question"] * field.needed + ["always the same"] * field.constant
        if marks:
            remark = f"  # {', '.join(marks)}"
        else:
            remark = ""
        yield "  " + clean_terminal(f"{field.name} = {' '.join(field.example.split())!r:.90}{remark}")
    graders = Counter(item.grader for item in imported.items)
    yield f"{len(imported.items)} items of {imported.read} records; graders: " + (
        ", ".join(f"{count} {grader}" for grader, count in graders.most_common()) or "none"
    )
    for count, reason, first_places in imported.reasons():
        yield from wrap(clean_terminal(f"refused {count}: {reason} ({first_places})"), width(), "  ", first="  ")
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
        lines = []
        for line in "\n".join([*texts, *item.turns])[-_SHOWN:].splitlines():
            lines.append(f"  | {line}")
        for image in item.images:
            lines.append(f"  image: {image}")
        lines += [f"  answer: {item.to_json().get('answer', '')!r} (by the grader {item.grader})"]
        yield from ("", f"item {item.id}" + (f" [{' / '.join(item.category)}]" if item.category else ""))
        yield from map(clean_terminal, lines)


def _write(imported: Imported, options: argparse.Namespace, settings: ImportSettings) -> None:
    from pytest_adaptive_eval.banks.writer import write_uncalibrated

    facts = origin(settings, {**imported.facts, "read": imported.read, "refused": len(imported.refused)})
    bank = write_uncalibrated(options.output, imported.items, report={"source": facts}, replace=options.replace)
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
