"""Curvature of the bound of the logistic function, of numpy or torch."""

from __future__ import annotations

from typing import Any

#: Lower limit of a square whose root is taken: the curvature there differs from that of 0 by a part in 100 000.
LEAST_SQUARE = 1e-4


def curvature_at(square: Any, xp: Any) -> Any:
    """Return the curvature of the bound, in (0, 1/4], where the squares of xi, in squared logits, are these.

    Args:
        square: Of numpy or torch, at least 0 but for rounding; its values are lost.
        xp: ``numpy`` or ``torch``.
    """
    square = xp.clip(square, LEAST_SQUARE, None, out=square)
    xi = xp.sqrt(square, out=square)
    rest = xp.exp(-xi)  # tanh(xi / 2) = (1 - rest) / (1 + rest), in half the time of tanh
    curvature = 0.5 - 0.5 * rest
    rest += 1.0
    rest *= xi
    curvature /= rest
    return curvature
