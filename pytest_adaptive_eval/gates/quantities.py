"""Quantities that evaluations measure: the value of each subject with its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.inference.ranks import RankDistribution, joint_ranks
from pytest_adaptive_eval.types import Array

CONFIDENCE = 0.95  #: Confidence of the bounds in records and reports.


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One quantity of several subjects with a joint normal distribution, which gives bounds and probabilities of ranks.

    Args:
        values: Shape (n,). NaN if unknown. Stored as an array.
        covariance: Shape (n, n). Covariance of the estimates; NaN likewise. Stored as an array.
        method: See `Interval.method`.
    """

    values: Array
    covariance: Array
    method: str = "model-based"

    def __init__(self, values: ArrayLike, covariance: ArrayLike, method: str = "model-based") -> None:
        for name, data in (("values", values), ("covariance", covariance)):
            array = np.array(data, dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "method", method)

    def known(self, index: int) -> bool:
        """Return whether a subject has a value and an error."""
        return bool(np.isfinite(self.values[index]) and np.isfinite(self.covariance[index, index]))

    def interval(self, index: int, confidence: float = CONFIDENCE) -> Interval:
        """Return a subject's value with its bounds, each with this confidence."""
        value = float(self.values[index])
        error = math.sqrt(max(float(self.covariance[index, index]), 0.0))
        half = error * NormalDist().inv_cdf(confidence)
        return Interval(value, value - half, value + half, confidence, self.method)

    def above(self, index: int, other: int) -> float:
        """Return the probability that a subject's value is higher than another's."""
        c = self.covariance
        variance = float(c[index, index] + c[other, other] - 2.0 * c[index, other])
        lead = float(self.values[index] - self.values[other])
        return 1.0 - NormalDist(lead, max(variance, 1e-12) ** 0.5).cdf(0.0)

    def ranks(self, seed: int) -> tuple[RankDistribution, ...]:
        """Return the distributions of the subjects' ranks, 1 the best, among subjects with a value."""
        return joint_ranks(self.values, self.covariance, seed=seed)

    def rows(self, subjects: Sequence[str], seed: int) -> list[dict[str, Any]]:
        """Return a row per subject: estimate, bounds, confidence, standard error and rank, if known."""
        rows: list[dict[str, Any]] = []
        ranks = self.ranks(seed)
        for n, name in enumerate(subjects):
            row: dict[str, Any] = {"subject": name}
            if self.known(n):
                row |= self.interval(n).to_json()
                row["error"] = math.sqrt(max(float(self.covariance[n, n]), 0.0))
                best, worst = ranks[n].interval(CONFIDENCE)
                row["rank"] = {"mean": ranks[n].mean, "best": best, "worst": worst}
            elif np.isfinite(self.values[n]):
                row["estimate"] = float(self.values[n])
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, with None for unknown values; see `from_json`."""
        covariance = []
        for row in self.covariance.tolist():
            covariance.append([_finite(value) for value in row])
        return {"values": [*map(_finite, self.values.tolist())], "covariance": covariance, "method": self.method}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """Create from the data of `to_json`."""
        values = np.array(data["values"], dtype=np.float64)  # None becomes NaN
        covariance = np.array(data["covariance"], dtype=np.float64).reshape(len(values), -1)
        return cls(values, covariance, data["method"])


def _finite(value: float) -> float | None:
    if math.isfinite(value):
        return value
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """One quantity of some subjects that has bounds but no distribution, and so no ranks.

    Args:
        intervals: By subject, the function from a confidence to the interval.
        errors: By subject, the standard error of sampling alone, for repetitions; empty if unknown.
        guess: By subject, the value that guessing alone has; empty if unknown.
    """

    intervals: tuple[Callable[[float], Interval] | None, ...]
    errors: tuple[float | None, ...] = ()
    guess: tuple[float | None, ...] = ()

    def known(self, index: int) -> bool:
        """Return whether a subject has a value."""
        return self.intervals[index] is not None

    def interval(self, index: int, confidence: float = CONFIDENCE) -> Interval:
        """Return a subject's value with its bounds."""
        interval_at = self.intervals[index]
        assert interval_at is not None
        return interval_at(confidence)

    def rows(self, subjects: Sequence[str], seed: int) -> list[dict[str, Any]]:  # noqa: ARG002  # of `Measured`, for ranks
        """Return a row per subject with a value: estimate, bounds, confidence, standard error and guess."""
        unknown = (None,) * len(subjects)
        more = {"error": self.errors or unknown, "guess": self.guess or unknown}
        rows = []
        for n, name in enumerate(subjects):
            if self.known(n):
                values_known = {}
                for field_name, values in more.items():
                    if values[n] is not None:
                        values_known[field_name] = values[n]
                rows.append({"subject": name, **self.interval(n).to_json(), **values_known})
        return rows
