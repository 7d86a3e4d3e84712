"""How often ``calibrate`` refuses banks that say nothing, and good ones, on simulated answers.

``python benchmarks/bank_refusals.py``: of items that are all alike, so that only abilities tell answers apart; of
answers that are copies of a few random ones; and of 2PL items as they come, and easy ones.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.build import calibrate
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]
Shape = tuple[int, int]


def alike(rng: np.random.Generator, shape: Shape) -> Array:
    """Items that are all alike, of subjects that are not."""
    p = 1 / (1 + np.exp(-rng.normal(size=(shape[0], 1))))
    return (rng.random(shape) < p).astype(float)


def copied(rng: np.random.Generator, shape: Shape) -> Array:
    """A tenth of the subjects answers at random, and the rest as one of these on all but 3 % of the items."""
    patterns = (rng.random((shape[0] // 10, shape[1])) < 0.6).astype(float)
    scores = patterns[rng.integers(0, len(patterns), shape[0])]
    return np.where(rng.random(shape) < 0.03, 1.0 - scores, scores)


def good(rng: np.random.Generator, shape: Shape, easy: float = 0.0) -> Array:
    """2PL: log a ~ N(-.1, .4), d ~ N(easy, 1.2), theta ~ N(0, 1)."""
    a, d = np.exp(rng.normal(-0.1, 0.4, shape[1])), rng.normal(easy, 1.2, shape[1])
    return (rng.random(shape) < 1 / (1 + np.exp(-(rng.normal(size=(shape[0], 1)) * a + d)))).astype(float)


def easily(rng: np.random.Generator, shape: Shape) -> Array:
    """The same, with about 94 % right."""
    return good(rng, shape, 3.0)


CASES: tuple[tuple[str, Callable[[np.random.Generator, Shape], Array], tuple[Shape, ...]], ...] = (
    ("all items alike", alike, ((30, 200), (100, 50), (200, 200), (500, 50), (500, 200))),
    ("copies of a few", copied, ((60, 100), (120, 100))),
    ("2PL", good, ((10, 50), (20, 50), (30, 50), (30, 100), (60, 100))),
    ("2PL, 94 % right", easily, ((20, 50), (30, 50), (30, 100), (60, 100))),
)


def main() -> None:
    """Print refused of tried."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    trials = parser.parse_args().trials
    for name, make, shapes in CASES:
        for shape in shapes:
            refused = 0
            for seed in range(trials):
                scores = make(np.random.default_rng(seed), shape)
                names = tuple(f"s{s}" for s in range(shape[0])), tuple(f"q{i}" for i in range(shape[1]))
                refused += not calibrate(Responses(*names, scores), Recipe("2pl")).quality.trusted
            print(f"{name:16} {shape[0]:4} x {shape[1]:3}: refused {refused} of {trials}", flush=True)


if __name__ == "__main__":
    main()
