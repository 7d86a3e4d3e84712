"""What an interviewer is: it sorts questions into categories, and picks the next one among a few candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pytest_adaptive_eval.interviewer.memory import MemoryTable
from pytest_adaptive_eval.items.item import Item

__all__ = ["Candidate", "Choice", "Interviewer"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that may be asked next.

    Parameters
    ----------
    position : int
        In the bank.
    item : Item
        With its text and images; nothing but an id where the bank has no texts.
    categories : tuple of str
        As far as they are known before it is asked.
    difficulty : float or None
        On the scale of the ability, in logits; None where difficulties are hidden or unknown.
    probability : float or None
        Of a right answer at the present ability; None likewise.
    distance : float
        Euclidean distance of its embedding to the nearest question asked so far; infinite before the first.
    """

    position: int
    item: Item
    categories: tuple[str, ...]
    difficulty: float | None
    probability: float | None
    distance: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What an interviewer chose, and why.

    Parameters
    ----------
    index : int
        Among the candidates given.
    reason : str
        A sentence for the report; may hold foreign text.
    fallback : str
        Empty, or what went wrong when the interviewer's own choice could not be had and code chose.
    """

    index: int
    reason: str
    fallback: str = ""


@runtime_checkable
class Interviewer(Protocol):
    """Someone who leads an interview; one object serves one session, and several subjects in turn."""

    @property
    def name(self) -> str:
        """For people and for the record."""

    def categorise(self, items: Sequence[Item], known: Sequence[str]) -> list[tuple[str, ...]]:
        """Categories of each item, at least one; new ones may be made, `known` ones go by their exact names."""

    def choose(self, candidates: Sequence[Candidate], memory: MemoryTable, ability: float | None) -> Choice:
        """Choose among at least one candidate; `ability` is in logits, None where it is hidden or unknown."""

    def account(self) -> Mapping[str, Any]:
        """Models, calls, tokens, seconds, fallbacks by kind, in JSON values."""

    def close(self) -> None:
        """Give back memory, devices and connections."""
