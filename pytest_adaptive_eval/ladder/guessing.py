"""Test of whether the last levels of a ladder are distinguishable from guessing.

A subject that guesses scores above 0 at nearly every level, so a ladder that ends at 0 would never end. Its
answers at the last levels are compared with the expected scores of a guess. With n answers at levels of guess floors g,
their sum has the mean sum(n g) and at most the variance sum(n g (1 - g)) if the subject guesses.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from pytest_adaptive_eval.types import Array

#: Fewest levels and answers that are compared: a subject that is right in half of 30 cases is told from a floor of .15
#: with a probability of .997.
LEVELS, ANSWERS = 3, 30
LEVEL = 0.05  #: Level of the one-sided test that the subject is better than guessing.


def guessed_levels(scores: Sequence[Array], guess: Sequence[float]) -> int:
    """Return the number of last levels whose answers together are not distinguishable from guessing, else 0.

    Args:
        scores: Scores of each administered level, in [0, 1]; NaN marks a missing score.
        guess: Expected score of a guess by level, from the first level on; a level beyond its end has 0.
    """
    floors = [*guess, *[0.0] * len(scores)]
    total = mean = variance = 0.0
    answers = 0
    for n, level in enumerate(range(len(scores) - 1, -1, -1), 1):
        scored = scores[level][~np.isnan(scores[level])]
        floor = floors[level]
        total += float(scored.sum())
        mean += len(scored) * floor
        variance += len(scored) * floor * (1.0 - floor)
        answers += len(scored)
        if n >= LEVELS and answers >= ANSWERS:
            highest = mean + NormalDist().inv_cdf(1.0 - LEVEL) * variance**0.5
            if total <= highest:
                return n
            return 0
    return 0
