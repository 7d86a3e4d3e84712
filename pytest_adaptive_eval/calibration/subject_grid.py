"""Sums of the bound's curvature of many subjects, by interpolation between a few abilities.

In one dimension the curvature at an item is a smooth function of a subject's ability and of its variance. Where all
subjects have answered all items, the variance is nearly a smooth function of the ability. So the curvature is computed
at Chebyshev nodes, of the ability and of what the variance differs from a polynomial in it. Sums over subjects or items
follow from those at the nodes. The nearest pole is ``pi / slope`` away from the real abilities, which bounds the error
(Trefethen 2013, theorem 8.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebvander

from pytest_adaptive_eval.irt.chebyshev import nodes, weights_at
from pytest_adaptive_eval.types import Array

#: Error of a curvature of at most 1/4.
ERROR = 1e-9
#: Share of the distance to the nearest pole that the bound of the error uses.
STRIP = 0.8
#: Degree of the variance as a polynomial in the ability.
DEGREE = 8
#: Nodes for a subject, at most.
SHARE = 0.3
#: Subjects at which the error is measured.
MEASURED = 9


@dataclass(frozen=True, slots=True, eq=False)
class SubjectGrid:
    """Curvature of S subjects at n items, as the product of two arrays.

    Args:
        basis: Shape (S, K).
        curvature: Shape (K, n). Curvature at the nodes.
    """

    basis: Array
    curvature: Array

    def over_subjects(self, factors: Array) -> Array:
        """Return sums over subjects, shape (k, n), with factors of shape (k, S)."""
        return np.asarray((factors @ self.basis) @ self.curvature)

    def over_items(self, factors: Array) -> Array:
        """Return sums over items, shape (k, S), with factors of shape (k, n)."""
        return np.asarray((factors @ self.curvature.T) @ self.basis.T)


def subject_grid(theta: Array, variance: Array, items: Array) -> SubjectGrid | None:
    """Return the curvature at the root mean squares of logits, or None if there are too few subjects for the nodes.

    Args:
        theta, variance: Shape (S,). Ability of each subject, and its variance.
        items: Shape (3, n). E[a^2], E[a d] and E[d^2] of the items, for the slope a and the intercept d.
    """
    subjects, steepest = len(theta), float(items[0].max())
    middle, half = 0.5 * float(theta.max() + theta.min()), 0.5 * float(np.ptp(theta))
    if half == 0.0 or steepest == 0.0:
        return None
    height = STRIP * math.pi / (math.sqrt(steepest) * half)
    growth = height + math.sqrt(1.0 + height**2)
    count = max(DEGREE + 1, math.ceil(math.log(4.0 / ((growth - 1.0) * ERROR)) / math.log(growth)))
    if count > SHARE * subjects:
        return None
    x = (theta - middle) / half
    powers = chebvander(x, DEGREE)
    coefficients = np.linalg.lstsq(powers, variance, rcond=None)[0]
    rest = variance - powers @ coefficients
    reach = max(float(np.abs(rest).max()), 1e-12)
    pole = 2.0 * STRIP * math.pi**2 / (steepest * reach)
    layers = max(1, math.ceil(math.log(4.0 / ERROR) / max(math.log(pole), 1e-9)))
    if layers * count > SHARE * subjects:
        return None
    along, across = weights_at(x, count), weights_at(rest / reach, layers)
    basis = (across[:, :, None] * along[:, None]).reshape(subjects, -1)
    smooth = chebvander(nodes(count), DEGREE) @ coefficients
    at = np.tile(middle + half * nodes(count), layers)
    grid = SubjectGrid(basis, _curvature(at, (smooth + reach * nodes(layers)[:, None]).ravel(), items))
    some = np.linspace(0, subjects - 1, MEASURED).astype(np.int64)
    some[:2] = theta.argmin(), theta.argmax()
    error = np.abs(grid.basis[some] @ grid.curvature - _curvature(theta[some], variance[some], items))
    return grid if error.max() <= 10.0 * ERROR else None


def _curvature(theta: Array, variance: Array, items: Array) -> Array:
    """Return the curvature at abilities and variances (m,), shape (m, n)."""
    square = np.stack([theta**2 + variance, 2.0 * theta, np.ones_like(theta)], axis=1) @ items
    return np.asarray(curvature_at(square, np))


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
