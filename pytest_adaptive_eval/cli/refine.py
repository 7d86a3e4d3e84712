"""``adaptive-eval refine``: the contaminated twin of a bank, and the compact bank that responses to it leave."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_adaptive_eval.cli.formats import read_formats
from pytest_adaptive_eval.cli.options import NOT_PASSED, PASSED, put, refuse, screen, width, writable
from pytest_adaptive_eval.errors import ConfigError

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.item import Item

__all__ = ["refine_command"]


def refine_command(options: argparse.Namespace) -> int:
    """Make the twin, or find the items that are no good; returns the exit code."""
    output: Path | None = options.output
    if output is not None:
        if output.suffix != ".jsonl":
            raise ConfigError(f"-o {output}: items are written as JSON lines; name a file that ends with .jsonl")
        if output.exists():
            raise ConfigError(f"-o {output} exists: choose another name")
        writable("-o", output)
    return _twin(options) if options.twin else _refine(options)


def _twin(options: argparse.Namespace) -> int:
    from collections import Counter

    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.banks.texts import write_items
    from pytest_adaptive_eval.items.contamination import LOW_QUALITY, contaminated

    if len(options.source) > 1 or options.output is None:
        raise ConfigError("--twin takes one bank, and -o FILE.jsonl for its twin")
    refuse(options, ("items", "reasons", "size", "filter", "low-quality"), "goes with responses, not with --twin")
    items = contaminated(list(read_bank(options.source[0]).items), share=options.share / 100, seed=options.seed)
    write_items(options.output, items)
    kinds = Counter(item.meta[LOW_QUALITY] for item in items if LOW_QUALITY in item.meta)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    bad = sum(kinds.values())
    put(f"wrote {options.output}: {len(items) - bad} items, and {bad} of low quality by what is swapped: {counts}\n")
    return PASSED


def _refine(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.banks.texts import write_items
    from pytest_adaptive_eval.calibration.refine import refine
    from pytest_adaptive_eval.cat.stopping import resolve_budget
    from pytest_adaptive_eval.reports.formats import refine_lines

    if options.output is not None and options.items is None:
        raise ConfigError(f"-o {options.output} needs --items with the texts; without them give --reasons alone")
    reasons: Path | None = options.reasons
    if reasons is not None:
        if reasons.suffix not in (".csv", ".json"):
            raise ConfigError(f"--reasons {reasons}: name a file that ends with .csv or .json")
        writable("--reasons", reasons, [*options.source, *options.low_quality, options.items])
    items: list[Item] | None = None if options.items is None else list(read_bank(options.items).items)
    responses, low = read_formats(options.source, options.low_quality, items, options.filter)
    if items is not None:
        text_ids = {item.id for item in items}
        if not (have := [name in text_ids for name in responses.items]).count(True):
            raise ConfigError(f"--items {options.items}: no text for any item, such as {responses.items[0]!r}")
        if lacking := have.count(False) - sum(1 for h, bad in zip(have, low, strict=True) if bad and not h):
            screen.note(f"{lacking} items with responses have no text in {options.items}; they cannot be written")
    try:
        size = None if options.size is None else resolve_budget(options.size, int((~low).sum()))
    except ConfigError as error:
        raise ConfigError(f"--size: {error}") from None
    result = refine(responses, low, form=options.form, size=size, seed=options.seed, progress=screen.progress)
    screen.progress("")
    report = result.to_json()
    lines = refine_lines(report, width())
    if reasons is not None:
        _write(reasons, report)
    if options.output is not None and items is not None:
        keep = set(result.kept)
        kept_items = [item for item in items if item.id in keep]
        if kept_items:
            write_items(options.output, kept_items)
            lines.append(
                f"wrote {options.output}: {len(kept_items)} items; calibrate makes a bank with parameters of it"
            )
        else:
            lines.append("nothing was written: no item is kept")
    put("\n".join(lines) + "\n")
    return PASSED if result.kept else NOT_PASSED


def _write(path: Path, report: dict[str, Any]) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps(report, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(report["items"][0]))
        table.writeheader()
        table.writerows(report["items"])
