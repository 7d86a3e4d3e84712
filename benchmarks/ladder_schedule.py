"""The area under the accuracy by level: coverage, gates, and what an adaptive schedule saves.

``python benchmarks/ladder_schedule.py`` simulates subjects whose accuracy falls in several ways and prints

1. how often the bounds of a full ladder, and of one that stops at the first level without a right answer, miss the
   true area (nominal 5 % to each side), which is how often a gate at the true value would be refused or passed wrongly;
2. the verdicts of paired gates on a candidate as good as its baseline, at the margin, and a level worse;
3. the questions that the schedule asks for an interval as wide as that of a full ladder, as a share of the
   ladder's, its coverage of the area measured with 1 000 questions a level (nominal 95 %), and the least share that any
   method without a shape assumption could reach.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pytest_adaptive_eval.ladder.result import Ladder, difference
from pytest_adaptive_eval.ladder.schedule import Schedule

Array = NDArray[np.float64]


def falling(levels: int, middle: float, slope: float, luck: float = 0.0, lapse: float = 0.0) -> Array:
    """A logistic curve with a guess floor and a rate of lapses."""
    curve: Array = luck + (1.0 - luck - lapse) * expit((middle - np.arange(1, levels + 1)) / slope)
    return curve


#: Name to accuracies by level and the family's guess floor.  The first ten fall within few of many levels, as where a
#: family reaches far beyond a subject; the others do not.
SUBJECTS: dict[str, tuple[Array, float]] = {
    "20 levels, falls at 8 over 4": (falling(20, 8, 1.0), 0.0),
    "20 levels, falls at 8 over 2": (falling(20, 8, 0.5), 0.0),
    "20 levels, falls at 14 over 4": (falling(20, 14, 1.0), 0.0),
    "20 levels, falls at 3 over 3": (falling(20, 3, 0.8), 0.0),
    "25 levels, falls at 4 over 3": (falling(25, 4, 0.8), 0.0),
    "25 levels, falls at 12 over 6": (falling(25, 12, 1.5), 0.0),
    "40 levels, falls at 10 over 4": (falling(40, 10, 1.0), 0.0),
    "40 levels, falls at 25 over 8": (falling(40, 25, 2.0), 0.0),
    "20 levels, 1, 1, .42, .12, .04, 0 ...": (np.array([1, 1, 0.42, 0.12, 0.04] + [0.0] * 15), 0.0),
    "20 levels, falls at once after 9": (np.array([1.0] * 9 + [0.5] + [0.0] * 10), 0.0),
    "8 levels, falls at 4 over 3": (falling(8, 4, 0.7), 0.0),
    "12 levels, falls at 5 over 3": (falling(12, 5, 0.7), 0.0),
    "20 levels, lapses .05": (falling(20, 8, 1.0, lapse=0.05), 0.0),
    "20 levels, guess floor .1": (falling(20, 8, 1.0, luck=0.1), 0.1),
    "8 levels, guess floor .1": (falling(8, 4, 0.7, luck=0.1), 0.1),
    "8 levels, 1, .96, .68, .67, .66, .62, .4, .3": (np.array([1, 0.96, 0.68, 0.67, 0.66, 0.62, 0.4, 0.3]), 0.1),
    "8 levels, all .5": (np.full(8, 0.5), 0.0),
}


def answers(rng: np.random.Generator, accuracy: Array, queries: int) -> list[Array]:
    """Right and wrong answers to so many questions of each level."""
    return [(rng.random(queries) < p).astype(float) for p in accuracy]


def stopped(scores: list[Array]) -> list[Array]:
    """Up to and with the first level without a right answer."""
    end = next((n for n, level in enumerate(scores, 1) if not level.any()), len(scores))
    return scores[:end]


def bounds(seeds: int) -> None:
    """How often the bounds miss."""
    print("share of intervals (95 % to each side) whose low bound lies above the true area / high bound below")
    print(f"{'subject':46} {'queries':>7} {'full ladder':>15} {'width':>6} {'stopped':>15} {'width':>6}")
    every = []
    for number, (name, (accuracy, _)) in enumerate(SUBJECTS.items()):
        truth = float(accuracy.sum())
        for queries in (10, 50):
            rng = np.random.default_rng([7, number, queries])
            misses, widths = np.zeros((2, 2)), np.zeros(2)
            for _ in range(seeds):
                scores = answers(rng, accuracy, queries)
                for k, asked in enumerate((scores, stopped(scores))):
                    found = Ladder(tuple(asked), len(accuracy)).interval(0.95)
                    misses[k] += found.low > truth + 1e-9, found.high < truth - 1e-9
                    widths[k] += found.high - found.low
            cells = [f"{low:.3f} / {high:.3f}" for low, high in misses / seeds]
            means = widths / seeds
            every.append(misses / seeds)
            print(f"{name:46} {queries:7} {cells[0]:>15} {means[0]:6.2f} {cells[1]:>15} {means[1]:6.2f}", flush=True)
    cells = [f"{low:.3f} / {high:.3f}" for low, high in np.mean(every, axis=0)]
    print(f"{'mean':46} {'':7} {cells[0]:>15} {'':6} {cells[1]:>15}")


def pairs(seeds: int) -> None:
    """Verdicts of paired gates with a margin of half a level, 50 questions a level."""
    print("\npaired gate, margin .5, 50 questions a level, nine answers in ten alike but for the change: PASS / FAIL")
    print(f"{'baseline':46} {'as good':>15} {'at the margin':>15} {'a level worse':>15}")
    for number, (name, (accuracy, _)) in enumerate(SUBJECTS.items()):
        cells = []
        for drop in (0.0, 0.5, 1.0):
            rng = np.random.default_rng([11, number, int(10 * drop)])
            # The same loss in odds at every level, so that the area falls by `drop`.
            odds = np.log(np.clip(accuracy, 1e-4, 1 - 1e-4)) - np.log1p(-np.clip(accuracy, 1e-4, 1 - 1e-4))
            low, high = 0.0, 30.0
            for _ in range(60):
                shift = (low + high) / 2
                low, high = (shift, high) if accuracy.sum() - expit(odds - shift).sum() < drop else (low, shift)
            worse = expit(odds - low) if drop else accuracy
            counts = np.zeros(2)
            for _ in range(seeds):
                first, second = [], []
                for p, q in zip(accuracy, worse, strict=True):
                    u = rng.random(50)
                    v = np.where(rng.random(50) < 0.9, u, rng.random(50))
                    first.append((u < p).astype(float))
                    second.append((v < q).astype(float))
                found = difference(Ladder(tuple(second), len(accuracy)), Ladder(tuple(first), len(accuracy)), 0.95)
                counts += found.low >= -0.5, found.high < -0.5
            cells.append(f"{counts[0] / seeds:.3f} / {counts[1] / seeds:.3f}")
        print(f"{name:46} {cells[0]:>15} {cells[1]:>15} {cells[2]:>15}", flush=True)


def schedules(seeds: int, queries: int) -> None:
    """What the schedule saves."""
    print(f"\nschedule against a ladder of {queries} questions a level, two-sided 95 %, {seeds} seeds")
    print(f"{'subject':46} {'width':>6} {'calls':>6} {'share':>6} {'bound':>6} {'coverage':>8} {'ladder':>8}")
    shares, covered = [], []
    for number, (name, (accuracy, floor)) in enumerate(SUBJECTS.items()):
        rng = np.random.default_rng([3, number])
        spread = np.sqrt(accuracy * (1 - accuracy))
        bound = spread.sum() ** 2 / (len(accuracy) * (spread**2).sum())
        calls, hits, full, width = [], [], [], []
        for _ in range(seeds):
            measured = float(sum(level.mean() for level in answers(rng, accuracy, 1000)))
            ladder = Ladder(tuple(answers(rng, accuracy, queries)), len(accuracy)).interval(0.975)
            full.append(ladder.low <= measured <= ladder.high)
            width.append(ladder.high - ladder.low)
            schedule = Schedule(len(accuracy), width[-1], 0.975, floor)
            scores: list[list[float]] = [[] for _ in accuracy]
            while levels := schedule.ask(scores, 10):
                for level in levels:
                    scores[level - 1].append(float(rng.random() < accuracy[level - 1]))
            found = schedule.interval(scores)
            calls.append(sum(map(len, scores)))
            hits.append(found.low <= measured <= found.high)
        shares.append(float(np.mean(calls)) / (queries * len(accuracy)))
        covered.append(float(np.mean(hits)))
        print(
            f"{name:46} {np.mean(width):6.2f} {np.mean(calls):6.0f} {shares[-1]:6.3f} {bound:6.3f} {covered[-1]:8.3f} "
            f"{np.mean(full):8.3f}",
            flush=True,
        )
    for label, chosen in (("the first ten", slice(0, 10)), ("the others", slice(10, None)), ("all", slice(None))):
        print(f"{label:46} {'':6} {'':6} {np.mean(shares[chosen]):6.3f} {'':6} {np.mean(covered[chosen]):8.3f}")


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="of bounds and pairs")
    parser.add_argument("--schedule-seeds", type=int, default=200)
    parser.add_argument(
        "--queries", type=int, default=50, help="a level, of the ladder that the schedule is compared with"
    )
    parser.add_argument("--only", choices=("bounds", "pairs", "schedules"))
    options = parser.parse_args()
    if options.only in (None, "bounds"):
        bounds(options.seeds)
    if options.only in (None, "pairs"):
        pairs(options.seeds)
    if options.only in (None, "schedules"):
        schedules(options.schedule_seeds, options.queries)


if __name__ == "__main__":
    main()
