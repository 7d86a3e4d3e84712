"""``adaptive-eval study decoys``: a bank with items of low quality, as in the M3-IRT paper."""

from __future__ import annotations

import argparse
from pathlib import Path

from pytest_adaptive_eval.cli.options import PASSED, check_writable, parse_seed
from pytest_adaptive_eval.cli.screen import say
from pytest_adaptive_eval.cli.verb import Verb


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a bank, or a JSONL file of items, with images and texts"
    parser.add_argument("bank", metavar="BANK", type=Path, help=text)
    add = parser.add_argument
    add(
        "-o", "--output", metavar="FILE.jsonl", type=Path, required=True, help="JSONL file of items and decoys to write"
    )
    add("--share", metavar="N", type=float, default=0.5, help="share of decoys, at most a half (%(default)s)")
    add("--seed", metavar="N", type=parse_seed, default=0, help="of the swaps (%(default)s)")


def _run(options: argparse.Namespace) -> int:
    from pytest_adaptive_eval.banks.reader import read_bank
    from pytest_adaptive_eval.banks.writer import write_items
    from pytest_adaptive_eval.extensions.papers.decoys import contaminated
    from pytest_adaptive_eval.items.item import LOW_QUALITY

    check_writable("-o", options.output, [options.bank])
    items = contaminated(list(read_bank(options.bank).items), share=options.share, seed=options.seed)
    write_items(options.output, items)
    decoys = sum(LOW_QUALITY in item.meta for item in items)
    say([f"wrote {options.output}: {decoys} of {len(items)} items are of low quality"])
    return PASSED


REGISTERED = (
    Verb(
        "study decoys",
        "add items of low quality to a bank, with swapped images and texts",
        "Write the items of a bank, and decoys: a third each with the image, the text, or both of other items. Their "
        "meta has low_quality, by which study m3irt and bank refine know them.",
        _add_arguments,
        _run,
        ("study decoys my.bank -o contaminated.jsonl --share .3",),
    ),
)
