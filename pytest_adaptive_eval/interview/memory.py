"""What the interviewer remembers: a table of what was asked in each category, and how it went."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CategoryRow", "MemoryTable"]


@dataclass(frozen=True, slots=True)
class CategoryRow:
    """One category so far.

    Parameters
    ----------
    name : str
    count : int
        Questions asked; those without a score included.
    lowest, highest, mean : float or None
        Of their difficulties, in logits; None where none is known.
    accuracy : float or None
        Mean score of those that have one.
    """

    name: str
    count: int
    lowest: float | None
    highest: float | None
    mean: float | None
    accuracy: float | None


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """All categories so far, in the order in which they came up."""

    rows: tuple[CategoryRow, ...] = ()
