r"""Evidence that the level of a few measurements fell, as an e-process.

Measurement n has the value x_n, the level mu_n and the standard error s_n. It is compared with the mean of those
before it, weighted by W = 1 / s^2::

    r_n = (x_n - m_{n-1}) / h_n,    h_n^2 = s_n^2 + 1 / (W_1 + ... + W_{n-1})

For normal measurements the r_n are independent and of variance 1 (Hawkins 1987). If no level is below an earlier one,
their means are at least 0. A fall by d from measurement k on changes the mean of r_n, n >= k, by -c_n::

    c_n = d (W_1 + ... + W_{k-1}) / (W_1 + ... + W_{n-1}) / h_n

So the likelihood ratio of that fall to a steady level, the product of ``exp(-c_n r_n - c_n^2 / 2)``, has expectation 1
at a steady level, and at most 1 at any level that never falls. The evidence is the mean of these ratios over the k up
to a horizon. The probability that it *ever* reaches 1 / alpha is at most alpha (Ville 1939), and a slow decline adds to
it as a sudden fall does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

#: Fall d that the ratios assume, in standard errors of the measurement before it. Falls of 2 to 6 are found about as
#: soon with it as with a mixture of sizes.
ASSUMED = 3.0


class Evidence(NamedTuple):
    """Evidence of a fall after each measurement.

    Args:
        logarithm: Natural logarithm of the e-process.
        since: Index of the first measurement after the likeliest fall, 0 before there can be one.
    """

    logarithm: list[float]
    since: list[int]


def evidence_of_fall(values: Sequence[float], errors: Sequence[float], horizon: int) -> Evidence:
    """Return the evidence that a level fell, from the first `horizon` measurements in order of time.

    Args:
        values, errors: Shape (n,). Measurements, and their standard errors, above 0.
        horizon: Number of measurements that the evidence is planned for, at least 2; later ones do not count.
    """
    x = np.array(values[:horizon], dtype=np.float64)
    weights = np.array(errors[:horizon], dtype=np.float64) ** -2.0
    falls = horizon - 1
    ratios = np.zeros(falls)  # entry k: of a fall from measurement k + 1 on, from 0
    evidence = Evidence([], [])
    for n in range(len(x)):
        before = weights[:n].cumsum()
        if n:
            spread = math.sqrt(1.0 / weights[n] + 1.0 / before[-1])
            residual = (x[n] - weights[:n] @ x[:n] / before[-1]) / spread
            change = ASSUMED / np.sqrt(weights[:n]) * before / before[-1] / spread
            ratios[:n] -= change * residual + change**2 / 2.0
        evidence.logarithm.append(float(np.logaddexp.reduce(ratios)) - math.log(falls))
        evidence.since.append(int(ratios[:n].argmax()) + 1 if n else 0)
    return evidence
