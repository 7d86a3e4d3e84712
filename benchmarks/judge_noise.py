"""Gates on the grades of a judge that samples: how often they decide wrongly at the judge's own average.

``python benchmarks/judge_noise.py`` has a judge whose grade of an answer is right or wrong at random, with an average
for each of 400 answers; the first 20 answers are graded twice, and half of the later ones. The threshold is the average
over all answers. Printed are the shares of PASS and FAIL with and without the noise in the bounds, and by how much the
noise moves each bound: with these repeats, and with those of the first 20 answers alone. 2 000 runs per cell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.noise import allowed_variance, noise_margin, variance_bound
from pytest_adaptive_eval.models.judging import EVERY, REPEATED

RUNS, SIZE, CONFIDENCE = 2000, 400, 0.95


def main() -> None:
    """Measure and print."""
    for unsure in (0.05, 0.2, 0.5):
        for budget in (60, 200, SIZE):
            wrong, moved = np.zeros((2, 2)), np.zeros(2)
            for seed in range(RUNS):
                rng = np.random.default_rng([seed, budget])
                right = rng.random(SIZE) < 0.8
                average = np.where(rng.random(SIZE) < unsure, rng.uniform(0.2, 0.8, SIZE), right)
                first, second = (rng.random((2, SIZE)) < average).astype(float)
                claim = Claim(float(average.sum()), CONFIDENCE)
                order = rng.permutation(SIZE)[:budget]
                variances = (first - second)[order] ** 2 / 2.0
                twice = (np.arange(budget) < REPEATED) | (rng.random(budget) < 1.0 / EVERY)
                most = float(variance_bound(first[order]))
                few, many = (min(allowed_variance(some), most) for some in (variances[:REPEATED], variances[twice]))
                plain = uniform_draws(first[order], SIZE)
                for row, noise in enumerate((0.0, many)):
                    outcome = int(decide(replace(plain, noise=noise), [claim]).outcome[0])
                    wrong[row] += [outcome > 0, outcome < 0]
                moved += [noise_margin(replace(plain, noise=noise), CONFIDENCE) / SIZE for noise in (many, few)]
            shares = [" / ".join(f"{share:.3f}" for share in row) for row in wrong / RUNS]
            many, few = moved / RUNS
            print(
                f"{unsure:.0%} unsure grades, {budget} asked: PASS / FAIL {shares[0]}, with the noise {shares[1]}; "
                f"bounds move by {many:.3f}, by 20 repeats {few:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
