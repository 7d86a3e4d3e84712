"""Replies that are wrong for an item: to other questions of the run, keys of other items, or made up."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.ask.replies import Replies, given_texts, without

#: Items whose keys may be donors, and answers of the run that are kept as donors.
_KEYS, _RECENT = 20, 8
APART = "-probe"  #: Behind the id of an item that stands for one that may be asked later.
_SHOWN = 60  #: Characters of a donor that are shown.


class Donor(NamedTuple):
    """Replies that are wrong for the item whose test they are given to; `source` says where they come from."""

    replies: Replies
    source: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the replies."""
        return tuple(completion.text for _, completion in self.replies)

    def without_key_of(self, item: Item) -> Donor | None:
        """Return the replies without the item's key; None where nothing wrong is left."""
        texts = [without(text, item.answers) for text in self.texts]
        if not any(map(str.strip, texts)) or not refuses(item, texts):
            return None
        return Donor(given_texts(*texts), f"{self.source}, without its key")


class Donors:
    """Answers to other questions: answers of this run, and keys of the bank."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        #: Answers with their items and scores by their texts, the latest last.
        self._donors: dict[tuple[str, ...], tuple[Donor, Item, float]] = {}

    @functools.cached_property
    def _keys(self) -> dict[str, Item]:
        """Item by key, of items that are spread over the bank."""
        step = max(1, len(self._items) // _KEYS)
        spread = [self._items[index] for index in range(0, len(self._items), step)]
        return {item.answer: item for item in spread if item.answer.strip()}

    def add(self, item: Item, texts: tuple[str, ...], score: float) -> None:
        """Keep the replies to the question of an item, and their score there."""
        if not any(map(str.strip, texts)):
            return
        self._donors.pop(texts, None)
        self._donors[texts] = Donor(given_texts(*texts), f"the answer to {item.id!r}"), item, score
        if len(self._donors) > _RECENT:
            del self._donors[next(iter(self._donors))]

    def answer_for(self, item: Item) -> Donor | None:
        """Return the best answer of the run to an item with another key, the latest of equal ones; None without one.

        A wrong answer to another question may be right for this one.
        """
        others = [entry for entry in reversed(self._donors.values()) if entry[1].answers != item.answers]
        for donor, _, _ in sorted(others, key=lambda entry: -entry[2]):
            if refuses(item, donor.texts):
                return donor
        return None

    def with_other_key(self, item: Item, texts: Sequence[str]) -> Item | None:
        """Return the question of an item with another key, for which the texts are wrong too; None without one."""
        for other in self._keys.values():
            apart = f"{item.id}{APART}"
            changed = replace(item, id=apart, answer=other.answer, others=other.others, meta=other.meta)
            if changed.answers != item.answers and refuses(changed, texts):
                return changed
        return None

    def key_for(self, item: Item) -> Donor | None:
        """Return the key of another item; None without one."""
        for text, other in self._keys.items():
            if refuses(item, [text]):
                return key_of(other)
        return None


def shown(texts: Sequence[str]) -> str:
    """Return replies as a message shows them, cut."""
    return repr(" | ".join(texts)[:_SHOWN])


def key_of(item: Item) -> Donor:
    """Return the key of an item, as the reply to each call."""
    return Donor(given_texts(item.answer), f"the key of {item.id!r}")


def refuses(item: Item, texts: Sequence[str]) -> bool:
    """Return whether an item's own grader gives no text any part of the score."""
    return all(_grade(item, text) == 0.0 for text in texts)


def _grade(item: Item, text: str) -> float | None:
    """Return the score of a text by the item's own grader; None where it cannot be graded."""
    try:
        return item.grade(text)
    except Exception:  # whatever a grader of the user raises
        return None
