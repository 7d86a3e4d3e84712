"""Quantiles of Student's t distribution and of the normal, without scipy."""

from __future__ import annotations

import math

import numpy as np


def student_quantile(dof: float, probability: float) -> float:
    """Return the quantile of Student's t with `dof` degrees of freedom (at least 1), or of the normal for ``math.inf``.

    With t = sqrt(dof) tan(a) the density becomes cos(a)^(dof - 1), smooth on a bounded range, which Simpson's rule
    integrates to seven digits (five where dof < 2); importing scipy's own would cost a short run a fifth of its time.
    """
    dof = min(dof, 1e10)
    width = min(math.pi / 2, 40.0 / math.sqrt(dof))
    angle = np.linspace(0.0, width, 4001)
    density = np.cos(angle) ** (dof - 1.0)
    steps = (density[:-2:2] + 4.0 * density[1:-1:2] + density[2::2]).cumsum()
    at = (abs(probability - 0.5) / 0.5) * steps[-1]
    i = int(steps.searchsorted(at))
    # within one step of Simpson's rule the distribution function is inverted by Newton's iteration
    below = steps[i - 1] if i else 0.0
    h = width / 4000
    a = float(angle[2 * i])
    target = (at - below) * h / 3.0
    x = a + target / max(float(density[2 * i]), 1e-300)
    for _ in range(30):
        middle, end = math.cos((a + x) / 2) ** (dof - 1.0), math.cos(x) ** (dof - 1.0)
        step = ((x - a) / 6.0 * (float(density[2 * i]) + 4.0 * middle + end) - target) / max(end, 1e-300)
        x -= step
        if abs(step) < 1e-15 * max(width, 1.0):
            break
    return math.copysign(math.sqrt(dof) * math.tan(x), probability - 0.5)
