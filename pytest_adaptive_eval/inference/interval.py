"""Estimate with its bounds."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from pytest_adaptive_eval.text import number

#: Ends of the scale on which an accuracy has an ability: distance from the calibration subjects' mean, in logits.
ABILITY_BOUND = 8.0


@dataclass(frozen=True, slots=True)
class Interval:
    """Estimate with its bounds.

    Args:
        confidence: Confidence of each one-sided bound; that of the two-sided interval is 2 * confidence - 1.
        method: Method, as verdicts name it: ``anytime-valid``, ``exact uniform``, ``design-based``, ``conformal``, ``by
            levels`` ...
    """

    estimate: float
    low: float
    high: float
    confidence: float
    method: str

    def less(self, other: Interval) -> Interval:
        """Return this less an independent interval: the squares of the half widths add up (Zou and Donner 2008)."""
        change = self.estimate - other.estimate
        down = math.hypot(self.estimate - self.low, other.high - other.estimate)
        up = math.hypot(self.high - self.estimate, other.estimate - other.low)
        return Interval(change, change - down, change + up, self.confidence, f"{self.method}, independent")

    @property
    def negated(self) -> Interval:
        """The interval of the value with the other sign."""
        return Interval(-self.estimate, -self.high, -self.low, self.confidence, self.method)

    def in_words(self, digits: int = 3) -> str:
        """Return ``.612 [.551, .671]``."""
        return f"{number(self.estimate, digits)} {self.bounds_in_words(digits)}"

    def bounds_in_words(self, digits: int = 3) -> str:
        """Return ``[.551, .671]``."""
        return f"[{number(self.low, digits)}, {number(self.high, digits)}]"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON values of the record."""
        return asdict(self)
