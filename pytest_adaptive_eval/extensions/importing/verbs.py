"""``adaptive-eval import``: a published benchmark in, a bank that can be asked out."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pytest_adaptive_eval.cli.options import (
    NOT_PASSED,
    PASSED,
    check_bank_output,
    check_writable,
    origin,
)
from pytest_adaptive_eval.cli.screen import say, screen, width
from pytest_adaptive_eval.cli.settings import add_settings_arguments, given_settings
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError, DatasetError
from pytest_adaptive_eval.mappings import ItemMapping, split_list
from pytest_adaptive_eval.typed_tables import described, read_table

if TYPE_CHECKING:
    from pytest_adaptive_eval.cli.parser import VerbParser
    from pytest_adaptive_eval.extensions.importing.base import ImportSettings
    from pytest_adaptive_eval.extensions.importing.importer import Imported
    from pytest_adaptive_eval.items.item import Item

#: Settings with several expressions.
_SEVERAL = {"header", "choices", "distractors", "accepted", "missing", "images", "category", "meta"}
#: Settings that most imports without a preset need, which are options too.
_COMMON = ("id", "question", "choices", "answer", "images", "grader", "split", "labels", "image_root")
#: Columns of a shown question.
_SHOWN = 1500


class ImportTable(ItemMapping, frozen=True):
    """Settings of ``import``: the mapping of fields, and what is read."""

    files: Annotated[str, described("files of a folder that count, such as '*_test.csv'")] = ""
    split: Annotated[str, described("split that counts (the first of test, validation, dev and train)")] = ""
    labels: Annotated[str, described("second file with the answers, or $label: a line each, or by id")] = ""
    labels_by: Annotated[str, described("id in the second file, such as rule_id (the id of the item)")] = ""
    image_root: Annotated[str, described("folder that image paths are relative to")] = ""
    source: Annotated[str, described("where the data come from, for the record (the name of the data)")] = ""
    licence: Annotated[str, described("licence of the data, for the record (read from files beside them)")] = ""


def _add_arguments(parser: VerbParser) -> None:
    text = "file or folder of the data set, hf:OWNER/NAME, or the data set of a tool as --presets lists them"
    parser.add_argument("source", metavar="DATA", nargs="?", help=text)
    add = parser.add_argument
    add("-o", "--output", metavar="BANK", type=Path, help="folder NAME.bank to write; needed unless --check")
    text = "show the mapping, what was refused and three items, and write nothing"
    add("--check", action="store_true", help=text)
    add("--preset", metavar="NAME", default="", help="a published benchmark, as --presets lists them, or a TOML file")
    add("--presets", action="store_true", help="list the presets and tools")
    text = "write items of another split too, or a few that the bank then lacks, for the key examples of an evaluation"
    add("--examples", metavar="FILE", type=Path, help=text)
    text = "go on though more than half the records are refused, or fields that the questions may need are unused"
    add("--partial", action="store_true", help=text)
    add("--replace", action="store_true", help="replace a bank that is in place")
    add_settings_arguments(parser, lambda: ImportTable, _COMMON)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    if options.presets:
        say(list(_presets()))
        return PASSED
    if options.source is None:
        raise ConfigError("name a file or folder to import; --presets lists the benchmarks and tools")
    if options.output is None and not options.check:
        raise ConfigError("-o NAME.bank is needed to write a bank; --check shows the mapping and three items")
    if options.output is not None and not options.check:
        check_bank_output(options.output, replaces=options.replace)
    settings = _settings(options)
    shots = _few_shot_split(options)
    screen.progress(f"reading {options.source}")
    with import_items(options.source, settings, options.preset) as imported:
        screen.progress("")
        say(list(_report(imported, options.source)))
        if not options.partial:
            check_refused(imported, options.source)
        if not imported.items:
            raise DatasetError(f"{options.source}: no record became an item")
        if options.check:
            say(list(_examples(imported.items)))
        if imported.unused and not options.partial:
            say(["", *_unused(imported.unused)])
            return NOT_PASSED
        if options.check:
            say(["", "nothing was written (--check)"])
            return PASSED
        held_out = _hold_out(imported) if options.examples is not None and not shots else []
        _write(imported, options)
    if shots:
        _write_examples(options, replace(settings, split=shots, files="", labels=None), imported.items)
    elif options.examples is not None:
        _write_items(options, held_out, "that the bank does not have")
    return PASSED


#: Items that a data set of one split gives as examples, and the share of its items that they are at most.
_HELD_OUT, _SHARE = 8, 10


def _few_shot_split(options: argparse.Namespace) -> str:
    """Return the split with the examples: the preset's, or the first other one of the data; empty if there is none."""
    from pytest_adaptive_eval.extensions.importing.importer import IMPORTERS
    from pytest_adaptive_eval.extensions.importing.opening import other_split

    if options.examples is None:
        return ""
    check_writable("--examples", options.examples, [Path(options.source)])
    split = IMPORTERS[options.preset].few_shot if options.preset in IMPORTERS else ""
    return split if split in ("train", "dev", "validation") else other_split(Path(options.source))


def _write_examples(options: argparse.Namespace, settings: ImportSettings, bank_items: Sequence[Item]) -> None:
    """Write the items of the few-shot split that have no images, and are none of the bank's."""
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    with import_items(options.source, settings, options.preset) as imported:
        check_refused(imported, options.source)
        asked = {" ".join(item.prompt.split()) for item in bank_items}
        items = [item for item in imported.items if not item.images and " ".join(item.prompt.split()) not in asked]
    _write_items(options, items, f"of the split {settings.split}")


def _hold_out(imported: Imported) -> list[Item]:
    """Take a few items without images out of an import, by their ids alone, and return them."""
    ranked = sorted(
        (item for item in imported.items if not (item.images or item.messages)),
        key=lambda item: hashlib.sha256(item.id.encode()).digest(),
    )
    held_out = ranked[: min(_HELD_OUT, len(imported.items) // _SHARE)]
    names = {item.id for item in held_out}
    imported.items[:] = [item for item in imported.items if item.id not in names]
    return held_out


def _write_items(options: argparse.Namespace, items: Sequence[Item], where: str) -> None:
    from pytest_adaptive_eval.outputs import write_whole

    if not items:
        raise DatasetError(f"{options.source}: no text item {where} is left for --examples")
    lines = (json.dumps(item.to_json()).encode("ascii") + b"\n" for item in items)
    write_whole(options.examples, lines, "the examples", ConfigError)
    say([f"wrote {options.examples}: {len(items)} examples {where}"])


def _presets() -> Iterator[str]:
    from pytest_adaptive_eval.extensions.importing.importer import IMPORTERS

    rows = [
        (f"{name}:..." if importer.by_source else name, importer.summary)
        for name, importer in sorted(IMPORTERS.items(), key=lambda entry: (entry[1].by_source, entry[0]))
    ]
    longest = max(len(name) for name, _ in rows)
    yield from (f"{name:<{longest}}  {summary}" for name, summary in rows)


def _settings(options: argparse.Namespace) -> ImportSettings:
    from pytest_adaptive_eval.extensions.importing.base import ImportSettings

    table = _table(options)
    mapping = ItemMapping(**{name: getattr(table, name) for name in ItemMapping.__struct_fields__})
    labels, image_root = (Path(name) if name else None for name in (table.labels, table.image_root))
    return ImportSettings(mapping, table.files, labels, table.labels_by, image_root, table.split, options.partial)


def _table(options: argparse.Namespace) -> ImportTable:
    """Return the settings; a text that may hold several expressions is a list of them."""
    data = given_settings(options)
    for name in _SEVERAL & data.keys():
        data[name] = split_list(value) if isinstance(value := data[name], str) else value
    return read_table(ImportTable, data, "--set", strict=False)


def _report(imported: Imported, source: str) -> Iterator[str]:
    """Yield the lines on the mapping, and on what was read and refused."""
    from pytest_adaptive_eval.text import clean_terminal, wrap

    for part in imported.parts:
        yield f"mapping of {', '.join(part.files) or source}, as in a file of --config:"
        for name, value in part.mapping.given().items():
            reason = f"  # guessed: {part.reasons[name]}" if name in part.reasons else ""
            yield f"  {name} = {clean_terminal(_toml(value))}{reason}"
    graders = Counter(item.grader for item in imported.items)
    yield f"{len(imported.items)} items of {imported.read} records; graders: " + (
        ", ".join(f"{count} {grader}" for grader, count in graders.most_common()) or "none"
    )
    for count, reason, places in imported.reasons():
        yield from wrap(clean_terminal(f"refused {count}: {reason} ({places})"), width(), "  ", first="  ")
    for note in imported.notes:
        yield from wrap(clean_terminal(f"note: {note}"), width(), "  ", first="  ")


def _toml(value: object) -> str:
    """Return a value as TOML: a text in single quotes where it has none."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return f"'{value}'" if "'" not in value and value.isprintable() else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)


def _unused(names: Sequence[str]) -> Iterator[str]:
    """Yield the lines on fields that the questions may need."""
    from pytest_adaptive_eval.text import clean_terminal, wrap

    listed = clean_terminal(", ".join(map(repr, names)))
    first = clean_terminal(names[0])
    yield from wrap(
        f"nothing was written: the questions may need {listed}, which the mapping does not use; give --set context="
        f"{first}, or --set question='{{question}} {{{first}}}', or --set meta={first} where the question is whole "
        "without it; --partial goes on without them all",
        width(),
        "  ",
        first="",
    )


def _examples(items: list[Item]) -> Iterator[str]:
    """Yield three items as a subject and the grader get them: the first, the middle and the last."""
    from pytest_adaptive_eval.text import clean_terminal

    for index in sorted({0, len(items) // 2, len(items) - 1}):
        item = items[index]
        yield ""
        yield f"item {item.id}" + (f" [{' / '.join(item.category)}]" if item.category else "")
        texts = [item.prompt] if item.prompt else [f"{part['role']}: {part['content']}" for part in item.messages]
        for line in "\n".join(texts)[-_SHOWN:].splitlines():
            yield f"  | {clean_terminal(line)}"
        for image in item.images:
            yield f"  image: {image}"
        yield "  " + clean_terminal(f"answer: {item.to_json().get('answer', '')!r} (by the grader {item.grader})")


def _write(imported: Imported, options: argparse.Namespace) -> None:
    from pytest_adaptive_eval.banks.writer import write_uncalibrated

    facts = origin(_table(options), {**imported.facts, "read": imported.read, "refused": len(imported.refused)})
    bank = write_uncalibrated(options.output, imported.items, report={"source": facts}, replace=options.replace)
    licence = facts["licence"] or "unknown"
    say([f"wrote {options.output}: {len(bank)} items, content {bank.content_hash}, licence {licence}"])


REGISTERED = (
    Verb(
        "import",
        "import a published benchmark as a bank",
        "Read the questions of a published benchmark, from a file, a folder, the hub or an evaluation tool, and write "
        "a bank folder without parameters. Fields are guessed from names and values; --check shows the mapping and "
        "three items.",
        _add_arguments,
        _run,
        ("import benchmark.csv --check", "import benchmark.csv -o benchmark.bank --set answer=solution"),
    ),
)
