"""Options for logs of other tools: the columns of their rows, and the ids that join them to one's own items."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.banks.responses.mapping import ResponseMapping
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses


def add_mapping_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the columns of a response."""
    from pytest_adaptive_eval.banks.responses.mapping import MAPPING_FIELDS

    text = "of any file: columns, paths such as doc.id, or expressions (docs/reference/responses.md)"
    add = parser.add_argument_group("columns of rows", text).add_argument
    for name, meaning in MAPPING_FIELDS.items():
        add(f"--{name}", metavar="EXPR", dest=f"map_{name}", help=meaning.replace("%", "%%"))
    add("--mapping", metavar="TOML", type=Path, help="a file with these options as keys")


def mapping_of(options: argparse.Namespace) -> ResponseMapping | None:
    """Return the mapping that the options give, None where they give none."""
    from pytest_adaptive_eval.banks.responses.mapping import MAPPING_FIELDS, ResponseMapping, read_mapping

    expressions = {name: text for name in MAPPING_FIELDS if (text := getattr(options, f"map_{name}")) is not None}
    if options.mapping is None:
        return ResponseMapping(**expressions) if expressions else None
    return ResponseMapping(**expressions).with_defaults(read_mapping(options.mapping))


def add_ids_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option that joins ids."""
    text = (
        "joins ids of the logs to those of --items: a prefix to strip, a regular expression whose group is kept, a "
        "field of the logs, 'question', or a CSV of both ids"
    )
    parser.add_argument("--ids", metavar="HOW", help=text)


def joined(responses: Responses, ids: str | None, items: Sequence[Item] | None) -> Responses:
    """Return the responses under the ids of one's own items.

    Raises:
        ResponsesError: No id is that of an item; the message says which ``--ids`` would join them.
    """
    from pytest_adaptive_eval.banks.responses.ids import propose_ids, rename_items

    if ids is not None:
        responses, left_out = rename_items(responses, ids, items or ())
        if left_out:
            screen.note(f"left out: {counted(left_out, 'item')} to which --ids {ids} gives no id")
    if items is None:
        return responses
    bank_ids = {item.id for item in items}
    matching = sum(item in bank_ids for item in responses.items)
    if matching == len(responses.items):
        return responses
    better, count = propose_ids(responses, items)
    if better:
        text = f"with --ids {better!r}, {count} of {len(responses.items)} items match, and {matching} do now"
        if not matching:
            raise ResponsesError(
                f"{responses.source}: none of its items, such as {responses.items[0]!r:.80}, is among the items with "
                f"texts, such as {items[0].id!r:.80}; {text}"
            )
        screen.note(text)
    return responses
