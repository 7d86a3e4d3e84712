"""Join ids in other tools' logs to ids of one's own items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pytest_adaptive_eval.cli.screen import screen
from pytest_adaptive_eval.errors import ResponsesError
from pytest_adaptive_eval.text import counted

if TYPE_CHECKING:
    from pytest_adaptive_eval.items.item import Item
    from pytest_adaptive_eval.items.responses import Responses


def add_ids_argument(add: Callable[..., object], texts: str) -> None:
    """Add the option that joins ids of the logs to the ids of `texts`."""
    text = (
        f"joins ids of logs to ids of {texts}: a prefix to strip, an expression whose group is kept, a field of the "
        "logs, question, or a file of both"
    )
    add("--ids", metavar="HOW", help=text)


def joined(responses: Responses, ids: str | None, items: Sequence[Item] | None) -> Responses:
    """Return the responses under the ids of one's own items.

    Raises:
        ResponsesError: No id is that of an item; the message says what ``--ids`` can join by.
    """
    from pytest_adaptive_eval.banks.responses.ids import rename_items

    if ids is not None:
        responses, left_out = rename_items(responses, ids, items or ())
        if left_out:
            screen.note(f"left out: {counted(left_out, 'item')} to which --ids {ids} gives no id")
    if items is None:
        return responses
    bank_ids = {item.id for item in items}
    if not any(item in bank_ids for item in responses.items):
        logged = next(iter(responses.questions.values()), None)
        if logged is not None and logged.names:
            fields = f", a field such as {', '.join(logged.names)}"
        else:
            fields = ""
        raise ResponsesError(
            f"{responses.source}: none of its items, such as {responses.items[0]!r:.80}, is among the items with "
            f"texts, such as {items[0].id!r:.80}; give --ids a prefix to strip{fields}, or question to join by texts"
        )
    return responses
