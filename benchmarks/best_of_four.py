"""Gates of models side by side: how often one of four passes that all miss the requirement, on a simulated bank.

``python benchmarks/best_of_four.py`` interviews four models with the same draws, up to half of a bank of 400 items.
Their accuracies are one item below the threshold. It prints the false PASS of one gate, and the share of runs in which
at least one of the four passes.
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from gate_decisions import DECIDE, decided

from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank

SIZE, MODELS = 400, 4


def main() -> None:
    """Interview and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    slopes, intercepts = rng.lognormal(0.0, 0.4, SIZE), rng.normal(0.8, 1.5, SIZE)
    bank = ItemBank("b", [str(n) for n in range(SIZE)], (), slopes[:, None], intercepts)
    passed = np.zeros((MODELS, options.runs), dtype=bool)
    for model in range(MODELS):
        scores = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-intercepts))).astype(float)
        rows = np.repeat(scores[None], options.runs, axis=0)
        found = decided(bank, DECIDE, rows, "50%", list(range(options.runs)), Claim(scores.sum() + 1.0))
        passed[model] = found.outcome[:, 0] == 1
    print(f"{options.runs} runs: false PASS of one gate {passed.mean():.4f}, of at least one of {MODELS} ", end="")
    print(f"{passed.any(axis=0).mean():.4f}")


if __name__ == "__main__":
    main()
