"""Choices by the largest or smallest value that are the same on every processor.

A sum or a matrix product ends at other last digits on another processor. Values that are equal in exact arithmetic then
differ by noise, and the noise would choose. Here values within `TIE` of the best one are equal to it, and the first of
them wins.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_adaptive_eval.types import Array, Ints

Values = Array | Sequence[float]

#: Relative difference up to which values are equal, well above rounding errors of long sums in double precision.  In
#: single precision they are larger, so values to choose by are computed in double precision.
TIE = 1e-9


def first_largest(values: Values, scale: Array | float | None = None) -> Ints:
    """Return the first position along the last axis whose value is the largest or nearly so, shape (...).

    Args:
        values: Shape (..., n), without NaN; infinite values are possible.
        scale: Size of the numbers whose difference a value is, shape (...); the size of the largest value if None.
    """
    array = np.asarray(values, dtype=np.float64)
    largest = array.max(axis=-1, keepdims=True)
    if scale is None:
        least = np.minimum(largest * (1.0 - TIE), largest * (1.0 + TIE))
    else:
        least = largest - TIE * np.asarray(scale)[..., None]
    return np.asarray((array >= least).argmax(axis=-1))


def first_smallest(values: Values, scale: Array | float | None = None) -> Ints:
    """Return the first position along the last axis whose value is the smallest or nearly so, see `first_largest`."""
    return first_largest(np.negative(values), scale)


def tie_ranks(values: Values, scale: float | None = None) -> Array:
    """Return ranks from 0 by rising value, the same for neighbours that are nearly equal, shape (n,); NaN stays NaN.

    A stable sort of the ranks keeps nearly equal values in their order.

    Args:
        values: Shape (n,).
        scale: Size of the numbers whose differences the values are; the size of each value if None.
    """
    array = np.asarray(values, dtype=np.float64)
    order = array.argsort(kind="stable")
    low = array[order[:-1]]
    high = array[order[1:]]
    with np.errstate(invalid="ignore"):  # between equal infinite values
        gap = high - low
        differs = (gap > TIE * (np.maximum(np.abs(low), np.abs(high)) if scale is None else scale)) | np.isinf(gap)
    ranks = np.zeros(len(array))
    ranks[order[1:]] = differs.cumsum()
    ranks[np.isnan(array)] = np.nan
    return ranks
