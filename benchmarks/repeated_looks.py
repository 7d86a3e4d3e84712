"""Print how often a Wilson bound passes a model below the threshold: ``python benchmarks/repeated_looks.py``.

The one-sided 95 % lower bound is compared with the threshold after each answer.  The probabilities are exact.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

THRESHOLD = 0.70
FIRST = 10  # answers before the first look


def pass_probability(accuracy: float, answers: int, looks: bool = True) -> float:
    """Return the probability of a pass within `answers`, with a look after each one or only at the end."""
    z = float(stats.norm.ppf(0.95))
    undecided, passed = np.ones(1), 0.0  # probability of each number of right answers without a pass
    for n in range(1, answers + 1):
        undecided = np.append(undecided * (1 - accuracy), 0.0) + np.append(0.0, undecided * accuracy)
        if n == answers or (looks and n >= FIRST):
            share = np.arange(n + 1) / n
            half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
            above = (share + z**2 / (2 * n) - half) / (1 + z**2 / n) > THRESHOLD
            passed += math.fsum(undecided[above])
            undecided[above] = 0.0
    return passed


if __name__ == "__main__":
    for accuracy in (0.65, 0.695):
        for answers in (150, 1000):
            each, once = (pass_probability(accuracy, answers, looks) for looks in (True, False))
            print(f"accuracy {accuracy}, up to {answers} answers: {each:.3f} with repeated looks, {once:.3f} with one")
