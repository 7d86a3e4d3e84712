"""Gates on the grades of a judge that samples: how often they decide wrongly at the judge's own average.

``python benchmarks/judge_noise.py`` has a judge whose grade of an answer is right or wrong at random, with an average
for each of 400 answers; 20 answers are graded twice. The threshold is the average over all answers. Printed are the
shares of PASS and FAIL with and without the noise in the bounds, 2 000 runs per cell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.noise import allowed_variance, variance_bound
from pytest_adaptive_eval.models.judging import REPEATED

RUNS, SIZE, CONFIDENCE = 2000, 400, 0.95


def main() -> None:
    """Measure and print."""
    for unsure in (0.05, 0.2, 0.5):
        for budget in (60, 200, SIZE):
            wrong = np.zeros((2, 2))
            for seed in range(RUNS):
                rng = np.random.default_rng([seed, budget])
                right = rng.random(SIZE) < 0.8
                average = np.where(rng.random(SIZE) < unsure, rng.uniform(0.2, 0.8, SIZE), right)
                first, second = (rng.random((2, SIZE)) < average).astype(float)
                claim = Claim(float(average.sum()), CONFIDENCE)
                order = rng.permutation(SIZE)[:budget]
                variances = (first - second)[order[:REPEATED]] ** 2 / 2.0
                allowed = min(allowed_variance(variances), float(variance_bound(first[order])))
                for row, noise in enumerate((0.0, allowed)):
                    log = replace(uniform_draws(first[order], SIZE), noise=noise)
                    outcome = int(decide(log, [claim]).outcome[0])
                    wrong[row] += [outcome > 0, outcome < 0]
            shares = [" / ".join(f"{share:.3f}" for share in row) for row in wrong / RUNS]
            print(f"{unsure:.0%} unsure grades, {budget} asked: PASS / FAIL {shares[0]}, with the noise {shares[1]}")


if __name__ == "__main__":
    main()
