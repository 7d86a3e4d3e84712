"""Protocol of interviewers, which sort questions into categories and choose the next one among candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pytest_adaptive_eval.interviewer.memory import MemoryTable
from pytest_adaptive_eval.items.item import Item


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that may be asked next.

    Args:
        position: Position in the bank.
        item: Item with text and images, or with an id alone if the bank has no texts.
        categories: Categories that are known before the item is administered.
        difficulty: Difficulty on the scale of the ability, in logits; None if hidden or unknown.
        probability: Predicted score at the current ability; None likewise.
        distance: Euclidean distance of its embedding to the nearest earlier question; infinite before the first.
    """

    position: int
    item: Item
    categories: tuple[str, ...]
    difficulty: float | None
    probability: float | None
    distance: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Choice of an interviewer, with its reason.

    Args:
        index: Index among the candidates.
        reason: Sentence for the report, which may contain foreign text.
        fallback: Kind of failure, if code chose in place of the interviewer; else empty.
    """

    index: int
    reason: str
    fallback: str = ""


@runtime_checkable
class Interviewer(Protocol):
    """Leader of an interview; one object serves one session with one or more subjects."""

    @property
    def name(self) -> str:
        """Name for reports and records."""

    def categorise(self, items: Sequence[Item], existing: Sequence[str]) -> list[tuple[str, ...]]:
        """Return at least one category per item, new ones or exact names of `existing` ones."""

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """Choose among at least one candidate; `ability` is in logits, None if hidden or unknown."""

    def account(self) -> Mapping[str, Any]:
        """Return models, calls, tokens, seconds and fallbacks by kind as JSON values."""

    def close(self) -> None:
        """Release memory, devices and connections."""
