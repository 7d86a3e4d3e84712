"""``adaptive-eval import``: a published benchmark in, a bank that can be asked out."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pytest_adaptive_eval.cli.options import PASSED, check_bank_output, check_writable, origin
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
_SEVERAL = {
    "header",
    "context",
    "choices",
    "distractors",
    "accepted",
    "missing",
    "images",
    "category",
    "meta",
    "ignore",
}
#: Settings that most imports without a preset need, which are options too.
_COMMON = ("id", "question", "choices", "answer", "images", "grader", "split", "labels", "image_root")
#: Characters of a shown question, and fields that no question uses.
_SHOWN, _FIELDS = 8000, 24


class ImportTable(ItemMapping, frozen=True):
    """Settings of ``import``: the mapping of fields, and what is read."""

    ignore: Annotated[tuple[str, ...], described("fields that the questions do not need")] = ()
    files: Annotated[str, described("files of a folder that count, such as '*_test.csv'")] = ""
    split: Annotated[
        str, described("split that counts (of a preset, the first of test, validation, dev and train)")
    ] = ""
    labels: Annotated[str, described("second file with the answers, or $label: a line each, or by id")] = ""
    labels_by: Annotated[str, described("id in the second file, such as rule_id (the id of the item)")] = ""
    image_root: Annotated[str, described("folder that image paths are relative to")] = ""
    source: Annotated[str, described("where the data come from, for the record (the name of the data)")] = ""
    licence: Annotated[str, described("licence of the data, for the record (read from files beside them)")] = ""


def _add_arguments(parser: VerbParser) -> None:
    text = "files, or a folder, of the data set, hf:OWNER/NAME, or the data set of a tool as --presets lists them"
    parser.add_argument("source", metavar="DATA", nargs="*", help=text)
    add = parser.add_argument
    text = "folder NAME.bank to write; without it, mapping and items are shown"
    add("-o", "--output", metavar="BANK", type=Path, help=text)
    add("--yes", action="store_true", help="accept the mapping that is proposed, if nothing about it is open")
    add("--preset", metavar="NAME", default="", help="a published benchmark, as --presets lists them, or a TOML file")
    add("--presets", action="store_true", help="list the presets and tools")
    text = "write items of another split too, or a few that the bank then lacks, for the key examples of an evaluation"
    add("--examples", metavar="FILE", type=Path, help=text)
    add("--partial", action="store_true", help="go on without the records that are refused")
    add("--replace", action="store_true", help="replace a bank that is in place")
    add_settings_arguments(parser, lambda: ImportTable, _COMMON)


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    if options.presets:
        say(list(_presets()))
        return PASSED
    if not options.source:
        raise ConfigError("name a file or folder to import; --presets lists the benchmarks and tools")
    if options.output is not None:
        check_bank_output(options.output, replaces=options.replace)
    source = options.source[0]
    settings = _settings(options)
    shots = _few_shot_split(options, source)
    screen.progress(f"reading {source}")
    with import_items(source, settings, options.preset) as imported:
        screen.progress("")
        _show(imported, options)
        if imported.proposed:
            _confirm(imported, options)
        elif not options.partial:
            check_refused(imported, source)
        if not imported.items:
            raise DatasetError(f"{source}: no record became an item")
        if options.output is None:
            say(["", "nothing was written: -o NAME.bank writes a bank"])
            return PASSED
        held_out = _hold_out(imported) if options.examples is not None and not shots else []
        _write(imported, options)
    if shots:
        mapping = settings.mapping if options.preset else imported.parts[0][1]
        settings = replace(settings, mapping=mapping, split=shots, files="", labels=None)
        _write_examples(options, settings, imported.items)
    elif options.examples is not None:
        _write_items(options, held_out, "that the bank does not have")
    return PASSED


def _show(imported: Imported, options: argparse.Namespace) -> None:
    """Print the mapping and what was refused, and two items of a proposal or if nothing is written."""
    say(list(_report(imported, options.source[0])))
    if imported.proposed or options.output is None:
        say(list(_examples(imported.items)))


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
    if options.yes and options.output is not None:
        return
    if options.output is not None and sys.stdin.isatty() and sys.stdout.isatty():
        if input("Is this mapping right? [y/N] ").strip().lower() in ("y", "yes"):
            return
        raise DatasetError("nothing was written; change the mapping with --set KEY=VALUE, or with --config FILE")
    raise DatasetError(
        "nothing was written: the mapping is a proposal. Accept it with -o NAME.bank --yes, change it with --set "
        "KEY=VALUE, or keep its lines in a file and give --config FILE"
    )


def _open_points(imported: Imported, *, partial: bool) -> Iterator[str]:
    """Yield what a person has to decide before a proposed mapping can be accepted."""
    mapping = imported.parts[0][1]
    if not (mapping.question or mapping.messages):
        yield "no field has the name of a question: give --set question=FIELD"
    for field in imported.unused:
        if field.needed:
            name = field.name if field.name.isidentifier() else json.dumps(field.name)
            yield (
                f"questions may need {field.name!r}, and do not use it: give --set context={name}, --set "
                f"question='{{..}} {{{name}}}', or --set ignore={name} where they are whole without it"
            )
    if not _says_what_is_asked(imported):
        yield (
            f"{mapping.question!r} asks nothing by itself, and no field says what is asked: give --set question="
            "'QUESTION {..}', or --set instruction=SENTENCE"
        )
    label = _common_label(imported.items)
    if label:
        key = f"extract({mapping.answer or 'FIELD'}, '{re.escape(label)}(.*?)[.。]*$')"
        yield f'every key begins with {label!r}, which an answer may leave out: give --set answer="{key}"'
    if imported.refused and not partial:
        count, reason, places = imported.reasons()[0]
        yield (
            f"{len(imported.refused)} of {imported.read} records are refused, {count} because {reason} ({places}): "
            "change the mapping, or go on without them by --partial"
        )


def _common_label(items: Sequence[Item]) -> str:
    """Return the label, such as ``Answer:``, that all keys begin with; empty if they have none."""
    keys = {item.answer for item in items}
    matches = [_LABEL.match(key) for key in keys]
    labels = {match[0] if match else "" for match in matches}
    return labels.pop() if len(keys) > 1 and len(labels) == 1 else ""


def _says_what_is_asked(imported: Imported) -> bool:
    """Return whether plain texts with yes, no or numbers as answers ask something."""
    from pytest_adaptive_eval.extensions.importing.names import PLAIN, normal

    mapping, items = imported.parts[0][1], imported.items
    asked = mapping.context or mapping.instruction or normal(mapping.question.partition("}")[0]) not in PLAIN
    return bool(asked) or 2 * sum(
        "?" in item.prompt or item.grader not in ("yesno", "numeric") for item in items
    ) > len(items)


#: A label before a key, up to its colon.
_LABEL = re.compile(r"[^\W\d][^:：\n]{0,20}[:：]\s*(?=\S)")
#: Items that a data set of one split gives as examples, and the share of its items that they are at most.
_HELD_OUT, _SHARE = 8, 10


def _few_shot_split(options: argparse.Namespace, source: str) -> str:
    """Return the split with the examples: the preset's, or the first other one of the data; empty if there is none."""
    from pytest_adaptive_eval.extensions.importing.importer import IMPORTERS
    from pytest_adaptive_eval.extensions.importing.sources import other_split

    if options.examples is None:
        return ""
    check_writable("--examples", options.examples, [Path(source)])
    split = IMPORTERS[options.preset].few_shot if options.preset in IMPORTERS else ""
    return split if split in ("train", "dev", "validation") else other_split(Path(source), _table(options).split)


def _write_examples(options: argparse.Namespace, settings: ImportSettings, bank_items: Sequence[Item]) -> None:
    """Write the items of the few-shot split that have no images, and are none of the bank's."""
    from pytest_adaptive_eval.extensions.importing.importer import check_refused, import_items

    with import_items(options.source[0], settings, options.preset) as imported:
        check_refused(imported, options.source[0])
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
        raise DatasetError(f"{options.source[0]}: no text item {where} is left for --examples")
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
    return ImportSettings(
        mapping,
        files=table.files,
        labels=Path(table.labels) if table.labels else None,
        labels_by=table.labels_by,
        image_root=Path(table.image_root) if table.image_root else None,
        split=table.split,
        ignore=table.ignore,
        paths=tuple(options.source[1:]),
    )


def _table(options: argparse.Namespace) -> ImportTable:
    """Return the settings; a text that may hold several expressions is a list of them."""
    data = given_settings(options)
    for name in _SEVERAL & data.keys():
        data[name] = split_list(value) if isinstance(value := data[name], str) else value
    return read_table(ImportTable, data, "--set", strict=False)


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
        remark = f"  # {', '.join(marks)}" if marks else ""
        yield "  " + clean_terminal(f"{field.name} = {' '.join(field.example.split())!r:.90}{remark}")
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


def _examples(items: list[Item]) -> Iterator[str]:
    """Yield two items as a subject and the grader get them: the first, and one in the middle."""
    from pytest_adaptive_eval.items.presentation import with_choices
    from pytest_adaptive_eval.text import clean_terminal

    for index in sorted({0, len(items) // 2}) if items else ():
        item = with_choices(items[index])
        yield ""
        yield f"item {item.id}" + (f" [{' / '.join(item.category)}]" if item.category else "")
        texts = [item.prompt] if item.prompt else [f"{part['role']}: {part['content']}" for part in item.messages]
        for line in "\n".join([*texts, *item.turns])[-_SHOWN:].splitlines():
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
