"""An estimate with its bounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its bounds.

    Parameters
    ----------
    estimate, low, high : float
    confidence : float
        Of each one-sided bound; the two-sided interval has 2 * confidence - 1.
    method : str
        Where it comes from, as verdicts name it: ``anytime-valid``, ``exact
        uniform``, ``design-based``, ``conformal``, ``by levels`` ...
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str

    def to_json(self) -> dict[str, Any]:
        """For the record."""
        return asdict(self)
