"""Error of the accuracy over that of uniform draws, and ranking accuracy, by matrix and budget.

``python benchmarks/prediction.py --splits 10`` splits the families of each matrix into four fifths that calibrate and a
fifth that is interviewed, and compares the policy `estimate`, a fixed form with the predictor of
`calibration.prediction`, and the same half form and half uniform.  Errors are divided by the mean error of as many
uniform draws of the same subjects; both numbers have standard errors over splits, which share subjects.

The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.prediction import fit_assisted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import folds, replay
from pytest_adaptive_eval.cat.session import POLICIES
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.items.responses import Responses

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
MATRICES = {
    **{name: f"matrices/{name}/matrix.csv.gz" for name in ("swebench_verified", "alpacaeval2_binary")},
    "digits_checkpoints": "matrices/digits_checkpoints/matrix.csv.gz",
    "MMMU": "autojudger/MMMU_DEV_VAL.csv.gz",
    "AI2D": "autojudger/AI2D_TEST.csv.gz",
}
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2)
#: Uniform draws of each subject whose mean error is the yardstick.
UNIFORM = 40

Array = NDArray[np.float64]


def read(name: str) -> Responses:
    """Responses of a matrix, near-duplicates in one family."""
    orientation = "items-by-subjects" if MATRICES[name].startswith("autojudger") else None
    return grouped(read_responses(DATA / MATRICES[name], orientation=orientation))


def estimates(train: Responses, test: Responses, count: int, seed: int) -> Iterator[tuple[str, Array]]:
    """Estimated accuracies of the test subjects by each method."""
    fit = Recipe().fit_completely(train.scores, train.weights)
    policy = replace(POLICIES["estimate"], budget=count)
    seeds = [seed + s for s in range(len(test.subjects))]
    yield "estimate", replay(fit.bank("bank", train.items), policy, test.scores, seed=seeds).projection()[0]
    for method, share in (("form", 1.0), ("half form", 0.5)):
        assisted = fit_assisted(train, count, share, seed)
        drawn = [assisted.draw(count, np.random.default_rng(s)) for s in seeds]
        yield method, np.array([assisted.estimate(i, row[i]) for i, row in zip(drawn, test.scores, strict=True)])


def uniform_error(scores: Array, truth: Array, count: int, rng: np.random.Generator) -> float:
    """Mean absolute error of the mean of `count` uniform draws."""
    draws = [np.nanmean(rng.permuted(scores, axis=1)[:, :count], axis=1) for _ in range(UNIFORM)]
    return float(np.abs(np.array(draws) - truth).mean())


def main() -> None:
    """Run and print a line for each matrix, budget and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    for matrix in options.matrix:
        responses = read(matrix)
        families, n = len(set(responses.families)), len(responses.items)
        print(
            f"{matrix}: {len(responses.subjects)} subjects of {families} families, {n} items, {options.splits} splits"
        )
        for budget in BUDGETS:
            count = max(2, round(budget * n))
            errors: dict[str, list[tuple[float, float]]] = {}
            rankings: dict[str, list[float]] = {}
            for seed in range(options.splits):
                tested = folds(responses.families, 5, np.random.default_rng(seed)) == 0
                train, test = (responses.of(np.flatnonzero(rows)) for rows in (~tested, tested))
                truth = np.nanmean(test.scores, axis=1)
                yardstick = uniform_error(test.scores, truth, count, np.random.default_rng(seed))
                for method, found in estimates(train, test, count, seed):
                    errors.setdefault(method, []).append((float(np.abs(found - truth).mean()), yardstick))
                    rankings.setdefault(method, []).append(ranking_accuracy(found, truth))
            for method, pairs in errors.items():
                error, uniform = np.array(pairs).T
                ratio = error.mean() / uniform.mean()
                spread = (error - ratio * uniform).std(ddof=1) / uniform.mean() / len(pairs) ** 0.5
                rank = np.array(rankings[method])
                print(
                    f"  {budget:4.0%} {method:10} error {error.mean():.4f}, over uniform {ratio:.2f} +- {spread:.2f}, "
                    f"ranking {rank.mean():.1f} +- {rank.std(ddof=1) / len(rank) ** 0.5:.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
