"""Interpolation by polynomials through Chebyshev nodes."""

from __future__ import annotations

import numpy as np

from pytest_adaptive_eval.irt.chebyshev import nodes, weights_at


def test_polynomials_pass_through_their_values() -> None:
    x = np.linspace(-1, 1, 7)
    np.testing.assert_allclose(weights_at(x, 12) @ np.exp(nodes(12)), np.exp(x), atol=1e-11)
    np.testing.assert_allclose(weights_at(nodes(12), 12), np.eye(12), atol=1e-14)
    np.testing.assert_allclose(weights_at(x, 1), 1.0)
