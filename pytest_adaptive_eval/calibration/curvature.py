"""Curvature of the bound of the logistic function, by exponentials or by sums of fractions."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Largest square, constant, and factor and pole of each term, of sums whose relative error is at most 1e-11 from 0 to
#: that square.
SUMS = (
    (
        64.0,
        0.005191064606137835,
        (
            (2.0000000286542, 9.8696044340256),
            (2.0027701425742, 88.845815378931),
            (2.5254130858888, 259.76398263835),
            (9.5938473224177, 968.82829328251),
        ),
    ),
    (
        400.0,
        0.002286340565421502,
        (
            (2.000000000785, 9.8696044021207),
            (2.0000276105821, 88.826631889785),
            (2.0162817577527, 247.04127554691),
            (2.5420366825967, 508.86599676103),
            (5.5578873085271, 1169.9567971763),
            (22.263307101077, 4790.3922213284),
        ),
    ),
)
#: Lower limit of a square whose root is taken: the curvature there differs from that of 0 by a part in 100 000.
LEAST_SQUARE = 1e-4


def curvature_at(square: Any, xp: Any) -> Any:
    """Return the curvature of the bound, in (0, 1/4], where the squares of xi, in squared logits, are these.

    Args:
        square: Of numpy or torch, at least 0 but for rounding; its values are lost.
        xp: ``numpy`` or ``torch``.
    """
    if xp is np:
        most = square.max(initial=0.0)
        for limit, constant, terms in SUMS:
            if most <= limit:
                return _sum(square, constant, terms)
    square = xp.clip(square, LEAST_SQUARE, None, out=square)
    xi = xp.sqrt(square, out=square)
    rest = xp.exp(-xi)  # tanh(xi / 2) = (1 - rest) / (1 + rest), in half the time of tanh
    curvature = 0.5 - 0.5 * rest
    rest += 1.0
    rest *= xi
    curvature /= rest
    return curvature


def _sum(square: Any, constant: float, terms: tuple[tuple[float, float], ...]) -> Any:
    """Return ``constant + sum(factor / (square + pole))`` in a new array."""
    curvature, term = np.full_like(square, constant), np.empty_like(square)
    for factor, pole in terms:
        np.add(square, pole, out=term)
        np.divide(factor, term, out=term)
        curvature += term
    return curvature
