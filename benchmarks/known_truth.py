"""Questions of gates without a bank, beside Wald's ratio test of one who knows the truth.

``python benchmarks/known_truth.py`` draws uniformly from 800 items with a share of right answers. A gate has its
threshold 10 or 5 points below or above that share. It prints the mean number of questions to the right verdict, beside
that of the likelihood ratio of the truth to the threshold, which ends at 20 and needs the truth. ``--seeds
N`` sets the interviews of a row.
"""

from __future__ import annotations

import argparse
import os
from itertools import product

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import DesignLog

Array = NDArray[np.float64]
SIZE, ALPHA = 800, 0.05
SHARES, MARGINS = (0.3, 0.5, 0.65, 0.8, 0.9, 0.95), (0.10, 0.05)


def draws(right: int, seeds: int, rng: np.random.Generator) -> DesignLog:
    """Return uniform draws of all items, predicted by the mean so far, one interview per row."""
    items = rng.random((seeds, SIZE)).argsort(axis=1)
    scores = (items < right).astype(float)
    place = np.arange(SIZE)
    left = np.broadcast_to(SIZE - place, scores.shape).astype(float)
    mean = (scores.cumsum(axis=1) - scores + 1.0) / (place + 2.0)
    variance = mean * (1.0 - mean) * left**2
    return DesignLog(items, scores, 1.0 / left, mean, mean * left, variance, mean * left, (1.0 - mean) * left, SIZE)


def by_ratio(scores: Array, right: int, claimed: int) -> Array:
    """Return the questions at which the likelihood ratio reaches 1 / alpha, the whole bank where it does not."""
    before, left = scores.cumsum(axis=1) - scores, SIZE - np.arange(SIZE)
    true, null = (np.clip((total - before) / left, 1e-9, 1.0 - 1e-9) for total in (right, claimed))
    ratio = np.where(scores > 0.5, np.log(true / null), np.log((1.0 - true) / (1.0 - null))).cumsum(axis=1)
    reached = ratio >= -np.log(ALPHA)
    return np.asarray(np.where(reached.any(axis=1), reached.argmax(axis=1) + 1, SIZE))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=400, help="interviews of a row")
    seeds = parser.parse_args().seeds
    print("| right | threshold | questions | by the ratio | over the ratio |")
    for margin, share, side in product(MARGINS, SHARES, (1, -1)):
        right, claimed = round(share * SIZE), round((share - side * margin) * SIZE)
        if claimed >= 0.985 * SIZE:
            continue
        logs = draws(right, seeds, np.random.default_rng([right, claimed]))
        found = decide(logs, [Claim(float(claimed), 1.0 - ALPHA)])
        asked = np.where(found.outcome[:, 0] == side, found.at[:, 0], SIZE)
        ratio = by_ratio(logs.scores, right, claimed).mean()
        error = asked.std() / seeds**0.5 / ratio
        print(
            f"| {share:.2f} | {share - side * margin:.2f} | {asked.mean():.0f} | {ratio:.0f} | "
            f"{asked.mean() / ratio:.2f} ± {error:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
