"""Find items by what their lines in a file name, without parsing the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.items.likelihood import TEXT_SCORINGS


def items_naming(items: Sequence[Item], *names: str) -> Iterator[Item]:
    """Yield the items that may have one of these texts, such as the name of a field, or its whole value.

    Of items in a file these are the ones whose line has it, so that the others are not parsed. Other sequences may be
    yielded whole.
    """
    find = getattr(items, "places_naming", None)
    return iter(items) if find is None else (items[place] for place in find(names))


def items_by_likelihood(items: Sequence[Item]) -> list[Item]:
    """Return the items that are scored by the likelihoods of texts, see `Item.likelihood`."""
    return [item for item in items_naming(items, *TEXT_SCORINGS) if item.likelihood is not None]
