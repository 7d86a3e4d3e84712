"""Polynomials through values at Chebyshev nodes (Trefethen 2013), which replace sums of many smooth functions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["nodes", "polynomials", "transform"]

Array = NDArray[np.float64]


@lru_cache(maxsize=8)
def nodes(count: int) -> Array:
    """Return the Chebyshev nodes in [-1, 1], shape (count,), read-only."""
    x = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    x.flags.writeable = False
    return x


@lru_cache(maxsize=8)
def transform(count: int) -> Array:
    """Return the matrix from values at the nodes to coefficients of the Chebyshev polynomials, read-only."""
    matrix = 2.0 / count * polynomials(nodes(count), count).T
    matrix[0] *= 0.5
    matrix.flags.writeable = False
    return matrix


def polynomials(x: Array, count: int) -> Array:
    """Return the first Chebyshev polynomials at x (S,) in [-1, 1], shape (S, count)."""
    values = np.empty((count, len(x)))
    values[0] = 1.0
    if count > 1:
        values[1] = x
    double = 2.0 * x
    for k in range(2, count):  # several times faster than cosines
        np.multiply(double, values[k - 1], out=values[k])
        values[k] -= values[k - 2]
    return values.T
