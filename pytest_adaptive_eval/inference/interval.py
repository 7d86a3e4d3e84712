"""Estimate with its bounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Interval"]


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimate with its bounds.

    Parameters
    ----------
    estimate, low, high : float
    confidence : float
        Confidence of each one-sided bound; that of the two-sided interval is 2 * confidence - 1.
    method : str
        Method, as verdicts name it: ``anytime-valid``, ``exact
        uniform``, ``design-based``, ``conformal``, ``by levels`` ...
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of the record."""
        return asdict(self)
