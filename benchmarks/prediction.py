"""Error of the accuracy over that of uniform draws, and ranking accuracy, by matrix and budget.

``python benchmarks/prediction.py --splits 10`` splits the families of each matrix into four fifths that calibrate and a
fifth that is interviewed, and compares the policies `estimate` and `form`, `estimate` without the bank's predictor, and
the mean of uniform draws. AI2D and MMMU are split into 60 and 17 models, without the paper's test models. The designs
are chosen anew in every split. Errors are divided by the mean error of as many uniform draws of the same subjects; all
numbers have standard errors over splits, which share subjects.

``--intervals`` prints instead the coverage of the 95 % intervals of `estimate`, that in each fifth of the subjects by
accuracy, and the half-width over that of as many uniform draws.

``--out FILE`` keeps the results of each split. What is there already is not done again, so that a run can be stopped,
gone on with, and done in parts. One file may hold both kinds.

The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from backtests import fifths
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.responses import read_responses
from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.prediction import choose_designs
from pytest_adaptive_eval.calibration.recipe import PartFits, Recipe
from pytest_adaptive_eval.calibration.replay import folds, replay
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.extensions.backtests.backtest import BacktestCell, Split, backtest, splits
from pytest_adaptive_eval.extensions.backtests.contenders import CONTENDERS
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
MATRICES = {
    **{name: f"matrices/{name}/matrix.csv.gz" for name in ("swebench_verified", "alpacaeval2_binary")},
    "digits_checkpoints": "matrices/digits_checkpoints/matrix.csv.gz",
    "MMMU": "autojudger/MMMU_DEV_VAL.csv.gz",
    "AI2D": "autojudger/AI2D_TEST.csv.gz",
}
NAMES = ("estimate", "form")
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2)
#: Budgets of the intervals.
WIDE = ("1%", "2%", "5%", "10%", "15%", "20%")
#: Uniform draws of each subject whose mean error is the yardstick.
UNIFORM = 40

Array = NDArray[np.float64]


def read(name: str) -> Responses:
    """Responses of a matrix, near-duplicates in one family."""
    orientation = "items-by-subjects" if MATRICES[name].startswith("autojudger") else None
    return grouped(read_responses(DATA / MATRICES[name], orientation=orientation))


def split(matrix: str, responses: Responses, seed: int) -> tuple[Responses, Responses]:
    """Subjects that calibrate, and those that are interviewed."""
    if not MATRICES[matrix].startswith("autojudger"):
        tested = folds(responses.families, 5, np.random.default_rng(seed)) == 0
        return responses.of(np.flatnonzero(~tested)), responses.of(np.flatnonzero(tested))
    test = set(json.loads((DATA / "autojudger" / "test_models.json").read_text()))
    others = responses.of([s for s, name in enumerate(responses.subjects) if name not in test])
    found = next(splits(others, 1, test=17, seed=seed))
    return others.of(np.sort(np.random.default_rng(seed).permutation(found.train)[:60])), others.of(found.test)


def estimates(bank: ItemBank, test: Responses, count: int, seed: int) -> Iterator[tuple[str, Array]]:
    """Estimated accuracies of the test subjects by each policy."""
    seeds = [seed + s for s in range(len(test.subjects))]
    policies = {"unassisted": replace(POLICIES["estimate"], assisted=False)} | {n: POLICIES[n] for n in NAMES}
    for name, policy in policies.items():
        yield name, replay(bank, replace(policy, budget=count), test.scores, seed=seeds).projection()[0]
    rng = np.random.default_rng(seed)
    yield "random", np.nanmean(rng.permuted(test.scores, axis=1)[:, :count], axis=1)


def uniform_error(scores: Array, truth: Array, count: int, rng: np.random.Generator) -> float:
    """Mean absolute error of the mean of `count` uniform draws."""
    draws = [np.nanmean(rng.permuted(scores, axis=1)[:, :count], axis=1) for _ in range(UNIFORM)]
    return float(np.abs(np.array(draws) - truth).mean())


def intervals(matrix: str, responses: Responses, seed: int) -> list[dict[str, Any]]:
    """Intervals of one split, a row for each budget."""
    place = {name: s for s, name in enumerate(responses.subjects)}
    sides = [np.array([place[name] for name in part.subjects]) for part in split(matrix, responses, seed)]
    found = backtest(
        responses, Split(*sides), [CONTENDERS["estimate"]], WIDE, recipe=Recipe(), seed=seed, intervals=True
    )
    return [
        {"matrix": matrix, "seed": seed, "budget": budget}
        | {name: getattr(cell, name) for name in ("truth", "uniform", "intervals")}
        for (_, budget), cell in found.cells.items()
    ]


def interval_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print coverage and width by method and budget."""
    for budget in WIDE:
        cell = BacktestCell()
        for row in rows:
            if row["budget"] == budget:
                cell.extend(BacktestCell(**{name: row[name] for name in ("truth", "uniform", "intervals")}))
        each = [
            f"{method} {cell.covers(method).mean():.3f} "
            f"(fifths {' '.join(f'{share:.2f}' for share in fifths(cell, method))}) at {cell.width(method):.2f}x"
            for method in cell.intervals
        ]
        print(f"  {budget:>4} {len(cell.truth)} interviews: {', '.join(each)}", flush=True)


def measured(matrix: str, responses: Responses, seed: int) -> list[dict[str, Any]]:
    """Errors and rankings of one split, a row for each budget and method."""
    counts = [max(2, round(budget * len(responses.items))) for budget in BUDGETS]
    train, test = split(matrix, responses, seed)
    recipe = Recipe()
    designs = choose_designs(train, PartFits(recipe), counts, seed=seed)
    bank = designs.bank(recipe.fit_completely(train.scores, train.weights), train)
    truth = np.nanmean(test.scores, axis=1)
    rows = []
    for count in counts:
        yardstick = uniform_error(test.scores, truth, count, np.random.default_rng(seed))
        for name, found in estimates(bank, test, count, seed):
            error, ranking = float(np.abs(found - truth).mean()), ranking_accuracy(found, truth)
            key = {"matrix": matrix, "seed": seed, "count": count, "method": name}
            rows.append({**key, "error": error, "uniform": yardstick, "ranking": ranking})
    return rows


def kept(out: Path | None, matrix: str, responses: Responses, seed: int, wide: bool) -> list[dict[str, Any]]:
    """The rows of one split, those of intervals or the others, from the file if it has them."""
    lines = out.read_text().splitlines() if out is not None and out.is_file() else []
    found = [row for row in map(json.loads, lines) if ("intervals" in row) == wide]
    rows = [row for row in found if (row["matrix"], row["seed"]) == (matrix, seed)]
    if not rows:
        rows = (intervals if wide else measured)(matrix, responses, seed)
        if out is not None:
            with out.open("a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def table(rows: Sequence[dict[str, Any]], items: int) -> None:
    """Print a line for each budget and method."""
    for count, name in dict.fromkeys((row["count"], row["method"]) for row in rows):
        own = [row for row in rows if (row["count"], row["method"]) == (count, name)]
        error, uniform, rank = (np.array([row[key] for row in own]) for key in ("error", "uniform", "ranking"))
        ratio = error.mean() / uniform.mean()
        spread = (error - ratio * uniform).std(ddof=1) / uniform.mean() / len(own) ** 0.5
        print(
            f"  {count / items:4.0%} {name:10} error {error.mean():.4f}, over uniform {ratio:.3f} +- {spread:.3f}, "
            f"ranking {rank.mean():.2f} +- {rank.std(ddof=1) / len(own) ** 0.5:.2f}",
            flush=True,
        )


def main() -> None:
    """Run and print a line for each matrix, budget and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--intervals", action="store_true", help="coverage and width of intervals")
    parser.add_argument("--out", type=Path, help="keep the results here, and go on with those that are there")
    options = parser.parse_args()
    for matrix in options.matrix:
        responses = read(matrix)
        families, n = len(set(responses.families)), len(responses.items)
        print(
            f"{matrix}: {len(responses.subjects)} subjects of {families} families, {n} items, {options.splits} splits"
        )
        seeds = range(options.first, options.first + options.splits)
        rows = [row for seed in seeds for row in kept(options.out, matrix, responses, seed, options.intervals)]
        if options.intervals:
            interval_table(rows)
        else:
            table(rows, n)


if __name__ == "__main__":
    main()
