"""Answers that count as right for items with different keys, and that the graders of these items refuse."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.ask.donors import Donor, refuses, shown
from pytest_adaptive_eval.plugin.ask.replies import alike, given_texts

FEWEST = 3  #: Items for which an answer counts as right, from which on it answers none of them.
_KEYS = 8  #: Keys of items with a common answer that are compared, at most.

Keys = tuple[str, ...]  #: Accepted answers of an item.


@dataclass(frozen=True)
class _Counted:
    """An item, and the texts that counted as right for it."""

    item: Item
    texts: Sequence[str]

    @functools.cached_property
    def refused(self) -> bool:
        """Whether the item's own grader refuses the texts."""
        return refuses(self.item, self.texts)


class CommonAnswers:
    """Answers of one interview with the items for which the test counts them as right.

    Texts that differ in case, in space and in the question that they repeat are one answer.

    Args:
        items: Items of the bank.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        #: Items that an answer is right for, by what all ways to write it have in common.
        self._right_for: dict[tuple[str, ...], list[_Counted]] = {}
        self._distinguished: set[frozenset[Keys]] = set()  #: Pairs of keys that the test tells apart.

    @functools.cached_property
    def _keys_needed(self) -> int:
        """Number of keys that the test has to distinguish: two on a bank that has no more."""
        keys: set[Keys] = set()
        for item in self._items:
            keys.add(item.answers)
            if len(keys) == FEWEST:
                return FEWEST
        return 2

    def add(self, item: Item, texts: Sequence[str], refuses_key_of: Callable[[Item], bool]) -> str:
        """Add an answer that counted as right for an item; return why the test is unsound, empty if it may be sound.

        Args:
            refuses_key_of: Whether the test of the item refuses the key of another one.
        """
        counted = self._right_for.setdefault(tuple(alike(text, item) for text in texts), [])
        if not item.answer.strip() or any(other.item.id == item.id for other in counted):
            return ""
        counted.append(_Counted(item, texts))
        if all(other.item.answers == item.answers for other in counted):
            return ""  # the usual case, in which nothing is graded
        refused = [other.item for other in counted if other.refused]
        if not refused:
            return ""
        granted = [other.item for other in counted if not other.refused]
        items = [*refused, *granted]
        for other in _by_key(items).values():
            pair = frozenset((item.answers, other.answers))
            if len(pair) == 2 and pair not in self._distinguished and refuses_key_of(other):
                self._distinguished.add(pair)
        if len(refused) < FEWEST:
            return ""
        return self._unsound(texts, items, len(refused))

    def suspect_for(self, item: Item) -> Donor | None:
        """Return the answer that is right for most items, two at least, and that the item's grader refuses, or None."""
        suspects = [counted for counted in self._right_for.values() if len(counted) > 1]
        for counted in sorted(suspects, key=len, reverse=True)[:2]:
            texts = counted[0].texts
            if all(other.item != item for other in counted) and refuses(item, texts):
                return Donor(given_texts(*texts), "an answer to several questions")
        return None

    def _unsound(self, texts: Sequence[str], items: Sequence[Item], refused: int) -> str:
        """Return that an answer is right for items that the test distinguishes; empty if it is not."""
        for keys in itertools.combinations(_by_key(items), self._keys_needed):
            if all(frozenset(pair) in self._distinguished for pair in itertools.combinations(keys, 2)):
                listed = ", ".join(f"{item.id!r} ({item.answer!r})" for item in _first(keys, items))
                return (
                    f"the test counts {shown(texts)} as right for {listed}, and {refused} of {len(items)} items' own "
                    "graders refuse it, so a model that is always wrong would pass: write `assert item.grade(...)`, or "
                    "an assertion that such an answer fails"
                )
        return ""


def _by_key(items: Sequence[Item]) -> dict[Keys, Item]:
    """Return an item by key, for the first `_KEYS` keys."""
    by_key: dict[Keys, Item] = {}
    for item in items:
        if len(by_key) < _KEYS:
            by_key.setdefault(item.answers, item)
    return by_key


def _first(keys: Sequence[Keys], items: Sequence[Item]) -> list[Item]:
    """Return the first items with these keys, and further ones up to `FEWEST`."""
    first = []
    for key in keys:
        first.append(next(item for item in items if item.answers == key))
    return [*first, *(item for item in items if item not in first)][:FEWEST]
