"""``adaptive-eval bank refine``: a compact bank from responses."""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.checks import check_faults
from pytest_adaptive_eval.cli.formats import read_formats
from pytest_adaptive_eval.cli.options import (
    NOT_PASSED,
    PASSED,
    check_writable,
    parse_seed,
)
from pytest_adaptive_eval.cli.screen import save, say, screen, width
from pytest_adaptive_eval.cli.verb import Verb
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.typed_tables import located

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.types import Bools


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "responses in formats: a CSV with subject, item, format, score; a matrix; runs"
    parser.add_argument("source", metavar="RESPONSES", type=Path, nargs="+", help=text)
    add = parser.add_argument
    add("-o", "--output", metavar="FILE.jsonl", type=Path, help="write the items that are kept")
    add("--items", metavar="BANK", type=Path, help="the items' texts: a bank, or its JSONL")
    text = "responses in formats to known low-quality items, in addition to the ones that --items marks"
    add("--low-quality", metavar="FILE", type=Path, action="append", default=[], help=text)
    add("--form", choices=("m2", "m3"), default="m2", help="the model that judges (%(default)s)")
    text = "keep at most so many, a count or a share of the originals; all that need every modality when omitted"
    add("--size", metavar="N|N%", help=text)
    add("--reasons", metavar="FILE", type=Path, help="every item with its figures: .csv, or with all else .json")
    add("--filter", metavar="NAME", help="of recorded runs, the bank")
    add("--seed", metavar="N", type=parse_seed, default=0, help="of the fit (%(default)s)")


def _faults(options: argparse.Namespace) -> Iterator[str]:
    """Yield wrong names of files, before hours of work."""
    output, reasons = options.output, options.reasons
    if output is not None:
        if output.suffix != ".jsonl" or output.exists():
            yield f"-o {output}: items are written as JSON lines; name a new file that ends with .jsonl"
        if options.items is None:
            yield f"-o {output} needs --items with the texts; without them give --reasons alone"
        check_writable("-o", output)
    if reasons is not None:
        if reasons.suffix not in (".csv", ".json"):
            yield f"--reasons {reasons}: name a file that ends with .csv or .json"
        check_writable("--reasons", reasons, [*options.source, *options.low_quality, options.items])


def _refine(options: argparse.Namespace) -> int:
    """Choose the items to keep, and print the report."""
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.cat.stopping import resolve_budget
    from pytest_adaptive_eval.extensions.backtests.refine import refine
    from pytest_adaptive_eval.extensions.backtests.refine_lines import refine_lines

    check_faults(_faults(options))
    if options.items is None:
        items = []
    else:
        items = list(read_bank(options.items).items)
    responses, low = read_formats(options.source, options.low_quality, items, options.filter)
    if options.items is not None:
        _check_texts(options.items, {item.id for item in items}, responses.items, low)
    with located("--size"):
        if options.size is None:
            size = None
        else:
            size = resolve_budget(options.size, int((~low).sum()))
    result = refine(responses, low, form=options.form, size=size, seed=options.seed, progress=screen.progress)
    report = result.to_json()
    lines = refine_lines(report, width())
    if options.reasons is not None:
        _write_reasons(options.reasons, report)
    if options.output is not None:
        keep = set(result.kept_items)
        lines.append(_write_items(options.output, [item for item in items if item.id in keep]))
    say(lines)
    if result.kept_items:
        return PASSED
    return NOT_PASSED


def _check_texts(path: Path, texts: set[str], names: Sequence[str], low: Bools) -> None:
    """Refuse texts of other items, and note how many items have none."""
    if texts.isdisjoint(names):
        raise ConfigError(f"--items {path}: no text for any item, such as {names[0]!r}")
    lacking = sum(name not in texts and not bad for name, bad in zip(names, low, strict=True))
    if lacking:
        screen.note(f"{lacking} items with responses have no text in {path}; they cannot be written")


def _write_items(path: Path, items: Sequence[Item]) -> str:
    """Write the items that are kept; return a sentence on the file."""
    from pytest_adaptive_eval.banks.writer import write_items

    if not items:
        return "nothing was written: no item is kept"
    write_items(path, items)
    return f"wrote {path}: {len(items)} items; calibrate makes a bank with parameters of it"


def _write_reasons(path: Path, report: dict[str, Any]) -> None:
    if path.suffix == ".json":
        save(path, report)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(report["items"][0]))
        table.writeheader()
        table.writerows(report["items"])


REGISTERED = (
    Verb(
        "bank refine",
        "find items that need no image, or no text, and write a bank without them",
        "From responses to items with and without image and text: which items need both, which are shortcuts, why each "
        "was dropped, and how far that moves the ranking of the subjects.",
        _add_arguments,
        _refine,
        ("bank refine responses.csv --items my.bank --size 20% -o refined.jsonl",),
    ),
)
