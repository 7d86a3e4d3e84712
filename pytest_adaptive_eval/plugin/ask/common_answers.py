"""Answers that count as right for items with different keys, and that the graders of these items refuse."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.plugin.ask.donors import Donor, refuses, shown
from pytest_adaptive_eval.plugin.ask.replies import alike, given_texts

FEWEST = 3  #: Items for which an answer counts as right, from which on it answers none of them.
_KEYS = 8  #: Keys of items with a common answer that are compared, at most.

Keys = tuple[str, ...]  #: Accepted answers of an item.


class CommonAnswers:
    """Answers of one interview with the items for which the test counts them as right.

    Only items count whose own graders refuse the answer. Texts that differ in case and space alone are one answer.

    Args:
        items: Items of the bank.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        #: An answer's texts, and the items that it is right for, by what all ways to write it have in common.
        self._right_for: dict[tuple[str, ...], tuple[Sequence[str], list[Item]]] = {}
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
        _, items = self._right_for.setdefault(tuple(map(alike, texts)), (texts, []))
        if not item.answer.strip() or any(other.id == item.id for other in items):
            return ""
        items.append(item)
        if all(other.answers == item.answers for other in items):
            return ""  # the usual case, in which nothing is graded
        items[:] = [other for other in items if refuses(other, texts)]
        if item not in items:
            return ""
        for other in {other.answers: other for other in items[:_KEYS]}.values():
            pair = frozenset((item.answers, other.answers))
            if len(pair) == 2 and pair not in self._distinguished and refuses_key_of(other):
                self._distinguished.add(pair)
        return self._unsound(texts, items)

    def suspect_for(self, item: Item) -> Donor | None:
        """Return the answer that is right for most items, two at least, and that the item's grader refuses, or None."""
        suspects = [suspect for suspect in self._right_for.values() if len(suspect[1]) > 1]
        for texts, items in sorted(suspects, key=lambda suspect: -len(suspect[1]))[:2]:
            if item not in items and refuses(item, texts):
                return Donor(given_texts(*texts), "an answer to several questions")
        return None

    def _unsound(self, texts: Sequence[str], items: Sequence[Item]) -> str:
        """Return that an answer is right for items that the test distinguishes; empty if it is not."""
        by_key = {item.answers: item for item in items}
        if len(items) < FEWEST:
            return ""
        for keys in itertools.combinations(list(by_key)[:_KEYS], self._keys_needed):
            if all(frozenset(pair) in self._distinguished for pair in itertools.combinations(keys, 2)):
                listed = ", ".join(f"{item.id!r} ({item.answer!r})" for item in _first(keys, items))
                return (
                    f"the test counts {shown(texts)} as right for {listed}, whose own graders refuse it, so a model "
                    "that is always wrong would pass: write `assert item.grade(...)`, or an assertion that such an "
                    "answer fails"
                )
        return ""


def _first(keys: Sequence[Keys], items: Sequence[Item]) -> list[Item]:
    """Return the first items with these keys, and further ones up to `FEWEST`."""
    first = []
    for key in keys:
        first.append(next(item for item in items if item.answers == key))
    return [*first, *(item for item in items if item not in first)][:FEWEST]
