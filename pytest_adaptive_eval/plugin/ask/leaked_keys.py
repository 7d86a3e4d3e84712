"""Requests to which a test adds the expected answer of its item."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_adaptive_eval.items.item import Item
from pytest_adaptive_eval.models.base import RequestLog
from pytest_adaptive_eval.plugin.ask.replies import holds

MOST = 100  #: Items whose requests are looked at.
FEWEST = 3  #: Items with their own key in the request, from which on it is noted.


class LeakedKeys:
    """Items whose requests hold their own key, and not that of another item, beyond what the items themselves say."""

    def __init__(self) -> None:
        self._leaked: dict[str, None] = {}
        self._other: Item | None = None  #: The latest item.
        self._looked = 0

    def look(self, item: Item, log: RequestLog) -> None:
        """Look at the requests of an item's test."""
        other = None
        if self._other is not None and self._other.answers != item.answers:
            other = self._other
        self._other = item
        self._looked += 1
        if other is None or len(self._leaked) >= FEWEST or self._looked > MOST:
            return
        added = "\n".join(_added(item, log))
        if _holds_any(added, item) and not _holds_any(added, other):
            self._leaked[item.id] = None

    def note(self) -> str:
        """Return a sentence on requests with the expected answer; empty without them."""
        if len(self._leaked) < FEWEST:
            return ""
        return f"the test adds the expected answer to its request, as for {', '.join(map(repr, self._leaked))}"


def _added(item: Item, log: RequestLog) -> Iterator[str]:
    """Yield what requests have beyond their item and the replies before them."""
    texts = [*_texts(item), *item.choices, *item.turns]
    for index, request in enumerate(log.sent):
        before = [completion.text for _, completion in log.replies[:index]]
        expected = sorted(filter(str.strip, [*texts, *before]), key=len, reverse=True)
        for text in _texts(request):
            for part in expected:
                text = text.replace(part.strip(), " ")
            yield text


def _texts(item: Item) -> list[str]:
    return [item.prompt, *(str(message.get("content", "")) for message in item.messages)]


def _holds_any(text: str, item: Item) -> bool:
    return any(holds(text, answer) for answer in item.answers)
