"""Polynomials through values at Chebyshev nodes (Trefethen 2013), which replace sums of many smooth functions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pytest_adaptive_eval.types import Array

#: Added to distances from nodes, so that none is 0; distances that are not 0 are so much larger that they stay.
TINY = 1e-30


@lru_cache(maxsize=8)
def nodes(count: int) -> Array:
    """Return the Chebyshev nodes in [-1, 1], shape (count,), read-only."""
    x = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    x.flags.writeable = False
    return x


@lru_cache(maxsize=8)
def _barycentric(count: int) -> Array:
    """Return the barycentric weights of the nodes, shape (count,), read-only (Trefethen 2013, chapter 5)."""
    weights = np.sin(np.pi * (np.arange(count) + 0.5) / count)
    weights[1::2] *= -1.0
    weights.flags.writeable = False
    return weights


def weights_at(x: Array, count: int) -> Array:
    """Return the weights of values at the nodes in the polynomial's value at x (S,) in [-1, 1], shape (S, count)."""
    distance = x[:, None] - nodes(count)
    distance += TINY
    weights = np.divide(_barycentric(count), distance, out=distance)
    weights /= np.add.reduce(weights, axis=1, keepdims=True)
    return weights
