"""Quantities that evaluations measure: the value of each subject with its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pytest_adaptive_eval.inference.interval import Interval
from pytest_adaptive_eval.types import Array

CONFIDENCE = 0.95  #: Confidence of the bounds in records and reports.


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One quantity of several subjects with a joint Student distribution, which gives bounds and comparisons.

    Args:
        values: Shape (n,). NaN if unknown. Stored as an array.
        covariance: Shape (n, n). Estimated covariance of the values; NaN likewise. Stored as an array.
        method: See `Interval.method`.
        freedom: Degrees of freedom of the variance of differences of the values; infinite if it is known.
        value_freedom: Degrees of freedom of the variances themselves, which may hold an error that all values share.
    """

    values: Array
    covariance: Array
    method: str = "model-based"
    freedom: float = math.inf
    value_freedom: float = math.inf

    def __init__(
        self,
        values: ArrayLike,
        covariance: ArrayLike,
        method: str = "model-based",
        freedom: float = math.inf,
        value_freedom: float = math.inf,
    ) -> None:
        for name, data in (("values", values), ("covariance", covariance)):
            array = np.array(data, dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        for name, value in (("method", method), ("freedom", freedom), ("value_freedom", value_freedom)):
            object.__setattr__(self, name, value)

    def known(self, index: int) -> bool:
        """Return whether a subject has a value and an error."""
        return bool(np.isfinite(self.values[index]) and np.isfinite(self.covariance[index, index]))

    def interval(self, index: int, confidence: float = CONFIDENCE) -> Interval:
        """Return a subject's value with its bounds, each with this confidence."""
        from scipy.special import stdtrit

        value = float(self.values[index])
        error = math.sqrt(max(float(self.covariance[index, index]), 0.0))
        half = error * float(stdtrit(self.value_freedom, confidence))
        return Interval(value, value - half, value + half, confidence, self.method)

    def above(self, index: int, other: int) -> float:
        """Return the one-sided confidence with which a subject's value is higher than another's."""
        from scipy.special import stdtr

        c = self.covariance
        variance = float(c[index, index] + c[other, other] - 2.0 * c[index, other])
        lead = float(self.values[index] - self.values[other])
        return float(stdtr(self.freedom, lead / max(variance, 1e-12) ** 0.5))

    def within(self, index: int, k: int) -> float:
        """Return the confidence with which a subject is among the first `k` of all n subjects, in [0, 1].

        It is among them if n - k comparisons find it better. If it is not, at least k others are as good: one of k
        comparisons errs, or i + 1 of k + i. Each comparison therefore has a k-th of the error rate.
        """
        needed = len(self.values) - k
        confidences = sorted((self.above(index, other) for other in self._others(index)), reverse=True)
        if needed > len(confidences):
            return 0.0
        return max(1.0 - k * (1.0 - confidences[needed - 1]), 0.0)

    def beyond(self, index: int, k: int) -> float:
        """Return the confidence with which `k` other subjects have a higher value than a subject, see `within`."""
        mirrored = Measured(-self.values, self.covariance, freedom=self.freedom)
        return mirrored.within(index, len(self.values) - k)

    def _others(self, index: int) -> list[int]:
        return [n for n in range(len(self.values)) if n != index and self.known(n)]

    def rank_bounds(self, index: int, confidence: float = CONFIDENCE) -> tuple[int, int]:
        """Return the best and worst rank of a subject, each as a bound with this confidence."""
        last = len(self.values)
        behind = [k for k in range(1, last) if self.beyond(index, k) >= confidence]
        ahead = [k for k in range(1, last) if self.within(index, k) >= confidence]
        return max(behind, default=0) + 1, min(ahead, default=last)

    def mean_rank(self, index: int) -> float:
        """Return the expected rank of a subject among subjects with a value, 1 the best."""
        return 1.0 + math.fsum(self.above(other, index) for other in self._others(index))

    def rows(self, subjects: Sequence[str]) -> list[dict[str, Any]]:
        """Return a row per subject: estimate, bounds, confidence, standard error and rank, if known."""
        rows: list[dict[str, Any]] = []
        for n, name in enumerate(subjects):
            row: dict[str, Any] = {"subject": name}
            if self.known(n):
                row |= self.interval(n).to_json()
                row["error"] = math.sqrt(max(float(self.covariance[n, n]), 0.0))
                best, worst = self.rank_bounds(n)
                row["rank"] = {"mean": self.mean_rank(n), "best": best, "worst": worst}
            elif np.isfinite(self.values[n]):
                row["estimate"] = float(self.values[n])
            rows.append(row)
        return rows

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data, with None for unknown values; see `from_json`."""
        covariance = []
        for row in self.covariance.tolist():
            covariance.append([_finite(value) for value in row])
        return {
            "values": [*map(_finite, self.values.tolist())],
            "covariance": covariance,
            "method": self.method,
            "freedom": [_finite(self.freedom), _finite(self.value_freedom)],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Measured:
        """Create from the data of `to_json`."""
        values = np.array(data["values"], dtype=np.float64)  # None becomes NaN
        covariance = np.array(data["covariance"], dtype=np.float64).reshape(len(values), -1)
        freedom = [math.inf if number is None else number for number in data["freedom"]]
        return cls(values, covariance, data["method"], *freedom)


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

    def rows(self, subjects: Sequence[str]) -> list[dict[str, Any]]:
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
