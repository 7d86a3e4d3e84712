"""Whether the errors of abilities by category hold, on simulated subjects, and what the profile gains.

``python benchmarks/profile_errors.py`` draws 400 subjects per row. The whole ability is N(0, 1), deviations of the
categories have the spread of the row, and difficulties are N(0, 1). Printed are the share of abilities within 1.96
standard errors, with its standard error over subjects; the root mean squared error of the profile; that of the whole
ability in place of each; and that of a separate estimate for each category, with the prior N(0, 1).
"""

from __future__ import annotations

import argparse
import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np

from pytest_adaptive_eval.irt.estimation import MAP
from pytest_adaptive_eval.irt.profile import estimate_profile


def show(asked: int, categories: int, spread: float, subjects: int) -> None:
    """Print one row."""
    rng = np.random.default_rng([asked, categories, round(100 * spread)])
    groups = np.arange(asked) % categories
    membership = np.eye(categories)[groups]
    covered, errors = [], []
    for _ in range(subjects):
        truth = rng.normal() + rng.normal(0.0, spread, categories)
        d = rng.normal(0.0, 1.0, asked)
        scores = (rng.random(asked) < 1.0 / (1.0 + np.exp(-(truth[groups] + d)))).astype(float)
        profile = estimate_profile(scores, np.ones(asked), d, None, membership)
        separate = np.empty(categories)
        for group in range(categories):
            own = groups == group
            A = np.ones((1, own.sum(), 1))
            found = MAP().estimate(scores[own][None], A, d[own][None], None, MAP().prior(1, 1))
            separate[group] = found.theta[0, 0]
        covered.append(np.mean(np.abs(profile.ability - truth) <= 1.96 * profile.standard_error))
        misses = [profile.ability - truth, profile.whole - truth, separate - truth]
        errors.append(np.mean(np.square(misses), axis=1))
    share = np.mean(covered)
    error = np.std(covered) / np.sqrt(subjects)
    rms = np.sqrt(np.mean(errors, axis=0))
    print(f"{asked:4} {categories:3} {spread:4.1f}  {share:.3f} ± {error:.3f}  {rms[0]:.2f} {rms[1]:.2f} {rms[2]:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=400)
    arguments = parser.parse_args()
    for asked, categories in ((30, 5), (80, 5), (150, 10)):
        for spread in (0.2, 0.7, 1.2):
            show(asked, categories, spread, arguments.subjects)


if __name__ == "__main__":
    main()
