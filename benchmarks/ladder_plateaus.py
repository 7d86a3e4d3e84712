"""Gates on the last level of a climb whose accuracy stays near the rate that ends it: how often they decide wrongly.

``python benchmarks/ladder_plateaus.py`` climbs twelve levels with 3 to 20 questions each. The accuracies are a
hundredth above the rate on the first k levels (k of 3, 5, 8), or fall from 1 to that level. Then they are at the rate
or below it. Printed are the largest shares of FAIL at the true last level and of PASS one level above, 2 000 climbs
per cell.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.ladder.policy import Climb
from pytest_adaptive_eval.ladder.result import last_above

RUNS, CAP = 2000, 12
Array = NDArray[np.float64]


def curves(rate: float, last: int) -> dict[str, Array]:
    """Accuracies by level; the last one above the rate is `last`."""
    levels = np.arange(1, CAP + 1)
    plateau, falling = np.where(levels <= last, rate + 0.01, rate), np.linspace(1.0, rate + 0.01, last)
    return {
        "above the limit, then at it": plateau,
        "above the limit, then half": np.where(levels <= last, plateau, rate / 2.0),
        "falling to the limit": np.where(levels <= last, falling[levels.clip(1, last) - 1], rate),
    }


def rates(queries: int, rate: float, curve: Array, last: int) -> Array:
    """Shares of FAIL and PASS."""
    climb, rng = Climb(queries, rate), np.random.default_rng([queries, last, round(100 * rate)])

    @cache
    def bounds(right: tuple[int, ...]) -> tuple[bool, bool]:
        scores = [(np.arange(queries) < count).astype(float) for count in right]
        found = last_above(climb.ladder(scores, CAP), rate)
        return found.high < last, found.low >= last + 1

    wrong = np.zeros(2)
    for counts in rng.binomial(queries, curve, (RUNS, CAP)):
        failed = np.flatnonzero(counts <= rate * queries)
        asked = int(failed[0]) + 1 if len(failed) else CAP
        wrong += bounds(tuple(counts[:asked].tolist()))
    return wrong / RUNS


def main() -> None:
    """Measure and print."""
    for queries in (3, 5, 8, 10, 13, 20):
        worst: dict[str, Array] = {}
        for rate in (0.2, 0.5, 0.8):
            for last in (3, 5, 8):
                for name, curve in curves(rate, last).items():
                    worst[name] = np.maximum(worst.get(name, np.zeros(2)), rates(queries, rate, curve, last))
        told = "; ".join(f"{name} {fail:.3f} / {passed:.3f}" for name, (fail, passed) in worst.items())
        print(f"{queries} questions a level, largest FAIL / PASS: {told}", flush=True)


if __name__ == "__main__":
    main()
