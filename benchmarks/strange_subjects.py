"""Subjects unlike a bank's population: error of the shown estimate, and how often they are named.

``python benchmarks/strange_subjects.py --splits 10`` splits the families of each matrix as `prediction.py` does, makes
six kinds of strange subjects of the tested ones, and interviews all by two selectors. It prints the share of subjects
that are named as unlike the bank, and the root mean square error of the accuracy by the bank's model and of the shown
one, with standard errors over splits.

``--gates`` prints instead the questions of gates 10 and 5 points from the truth, over those of uniform draws without a
bank, with standard errors over subjects, and the share of gates that the default budget decides. It adds two kinds, and
three simulated banks, whose subjects differ in two dimensions of which the item response model has one.

The kinds: ``reversed`` is right on the hardest items, as many as before; ``knows the hardest`` has the hardest 30 %
right as well; ``collapsed`` lost 60 % of its right answers; ``forgetful`` lost a third of the items, those that lie
furthest along the main component of the calibration subjects' scores; ``contaminated`` has 40 % of the items right as
well; ``guessing`` is right in a quarter. With ``--gates``, ``near-perfect`` is wrong in one item of a hundred, and
``half known`` has a random half of the items right as well.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from itertools import product

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from gate_decisions import DECIDE, UNIFORM, decided
from numpy.typing import NDArray
from prediction import read, split

from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay_each
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import MaximumInformation
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.misfit import misfit_reason, refitted_projection
from pytest_adaptive_eval.gates.planning import default_budget
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]
MATRICES = ("swebench_verified", "alpacaeval2_binary", "MMMU")
#: Items, mean and spread of difficulties, and geometric mean of slopes, of simulated banks of 60 and 17 subjects.
SIMULATED = {"MMT-like": (800, -0.2, 1.3, 1.0), "CRUX-like": (800, 0.3, 1.5, 1.6), "MATH-like": (1324, 1.0, 1.5, 2.0)}
#: Kinds whose gates are counted.
GATED = ("ordinary", "near-perfect", "guessing", "half known", "reversed", "collapsed")
BUDGETS = (0.05, 0.15)
PLAIN = replace(POLICIES["estimate"], assisted=False)
SELECTORS = {"estimate": PLAIN, "maximum-information": replace(PLAIN, selector=MaximumInformation())}


def strange(scores: Array, train: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Scores of each kind, made of those of ordinary subjects (S, n)."""
    filled = np.where(np.isnan(scores), 0.0, scores)
    known = np.where(np.isnan(train), np.nanmean(train, axis=0), train)
    hardest = np.argsort(known.mean(axis=0))
    n = scores.shape[1]
    reverse = np.zeros_like(filled)
    for row, right in zip(reverse, filled.sum(axis=1).round().astype(int), strict=True):
        row[hardest[:right]] = 1.0
    hard, lost = filled.copy(), filled.copy()
    hard[:, hardest[: round(0.3 * n)]] = 1.0
    component = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)[2][1]
    lost[:, np.argsort(component)[: n // 3]] = 0.0
    return {
        "ordinary": scores,
        "reversed": reverse,
        "knows the hardest": hard,
        "collapsed": filled * (rng.random(filled.shape) < 0.4),
        "forgetful": lost,
        "contaminated": np.where(rng.random(filled.shape) < 0.4, 1.0, filled),
        "guessing": (rng.random(filled.shape) < 0.25).astype(float),
    }


def findings(bank: ItemBank, session: Session) -> tuple[Array, Array, Array]:
    """Return which subjects are named, and their accuracies by the bank's model and as shown, shape (S,) each."""
    model, _ = session.projection()
    named, shown = np.zeros(len(model)), model.copy()
    errors = session.estimate.standard_error.tolist()
    for s, theta in enumerate(session.estimate.theta.tolist()):
        log = session.log(s)
        if misfit_reason(bank, log, theta, errors[s], float(model[s]), drawn=False):
            named[s], (shown[s], _) = 1.0, refitted_projection(bank, log, theta)
    return named, model, shown


def simulated(name: str, seed: int) -> tuple[Responses, Responses]:
    """Calibration and tested subjects of a simulated bank."""
    items, mean, spread, slope = SIMULATED[name]
    rng = np.random.default_rng([seed, items, round(100 * slope)])
    slopes, difficulties = rng.lognormal(np.log(slope), 0.4, items), rng.normal(mean, spread, items)
    second = 0.5 * slopes * rng.normal(size=items)
    theta = rng.normal(size=(77, 2))
    logits = slopes * (theta[:, :1] - difficulties) + second * theta[:, 1:]
    scores = (rng.random(logits.shape) < 1.0 / (1.0 + np.exp(-logits))).astype(float)
    subjects, ids = tuple(f"m{s}" for s in range(77)), tuple(f"q{i}" for i in range(items))
    both = Responses(subjects, ids, scores)
    return both.of(np.arange(60)), both.of(np.arange(60, 77))


def gated(scores: Array, train: Array, rng: np.random.Generator) -> dict[str, Array]:
    """Scores of the kinds whose gates are counted, made of those of ordinary subjects (S, n)."""
    ordinary = np.nan_to_num(scores)
    kinds = {
        **strange(ordinary, train, rng),
        "near-perfect": (rng.random(ordinary.shape) >= 0.01).astype(float),
        "half known": np.where(rng.random(ordinary.shape) < 0.5, 1.0, ordinary),
    }
    return {kind: kinds[kind] for kind in GATED}


def gates(matrix: str, splits: int, each: int, seeds: int, margin: float) -> None:
    """Print the questions of gates on `each` subjects of a kind and split, `seeds` interviews a side."""
    found: dict[str, list[tuple[float, ...]]] = {}
    responses = None if matrix in SIMULATED else read(matrix)
    for seed in range(splits):
        train, test = simulated(matrix, seed) if responses is None else split(matrix, responses, seed)
        bank = Recipe().fit_completely(train.scores, train.weights).bank("bank", train.items)
        n = len(bank)
        plain = replace(bank, calibrated=False)
        for kind, scores in gated(test.scores, train.scores, np.random.default_rng(seed)).items():
            for s, row in enumerate(scores[:each]):
                for side in (1, -1):
                    threshold = row.mean() - side * margin
                    if not 0.02 < threshold < 0.98:
                        continue
                    budget = default_budget([Condition("accuracy", "at_least", threshold)], bank, DECIDE)
                    asked = []
                    for used, policy in ((bank, DECIDE), (plain, UNIFORM)):
                        rows, claim = np.repeat(row[None], seeds, axis=0), Claim(threshold * n)
                        verdicts = decided(used, policy, rows, "100%", 100 * seed + 2 * s + (side > 0), claim)
                        asked.append(np.where(verdicts.outcome[:, 0] == side, verdicts.at[:, 0], n))
                    within = [float(np.mean(at <= budget)) for at in asked]
                    found.setdefault(kind, []).append((*(float(at.mean()) for at in asked), *within))
    for kind, cells in found.items():
        ours, uniform, within, without = np.array(cells).T
        ratio = ours.sum() / uniform.sum()
        error = (ours - ratio * uniform).std() / len(ours) ** 0.5 / uniform.mean()
        print(
            f"{matrix} {margin:.2f} {kind:18} {len(ours) * seeds:5} gates, {ours.mean():6.1f} questions, "
            f"{ratio:.3f} +- {error:.3f} of uniform draws; within the default budget "
            f"{within.mean():.2f}, uniform draws {without.mean():.2f}",
            flush=True,
        )


def main() -> None:
    """Run, and print a line for each matrix, budget, selector, kind and share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--matrix", nargs="+", choices=(*MATRICES, *SIMULATED), help="simulated ones with --gates alone"
    )
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--gates", action="store_true", help="questions of gates")
    parser.add_argument("--margins", nargs="+", type=float, default=(0.1, 0.05), help="of the gates")
    parser.add_argument("--each", type=int, default=5, help="subjects of a kind and split, with --gates")
    parser.add_argument("--seeds", type=int, default=4, help="interviews of a gate, with --gates")
    options = parser.parse_args()
    if options.gates:
        for matrix, margin in product(options.matrix or (*MATRICES, *SIMULATED), options.margins):
            gates(matrix, options.splits, options.each, options.seeds, margin)
        return
    for matrix in options.matrix or MATRICES:
        responses = read(matrix)
        found: dict[tuple[int, str, str], list[list[float]]] = {}
        for seed in range(options.splits):
            train, test = split(matrix, responses, seed)
            bank = Recipe().fit_completely(train.scores, train.weights).bank("bank", train.items)
            kinds = strange(test.scores, train.scores, np.random.default_rng(seed))
            scores, size = np.concatenate(list(kinds.values())), len(test.scores)
            truth = np.nanmean(scores, axis=1)
            for name, plain in SELECTORS.items():
                policies = [replace(plain, budget=round(budget * len(bank))) for budget in BUDGETS]
                seeds = [seed + s for s in range(len(scores))]
                sessions = replay_each(bank, policies, scores, seed=seeds, designed=False)
                for policy, session in zip(policies, sessions, strict=True):
                    named, model, shown = findings(bank, session)
                    for k, kind in enumerate(kinds):
                        rows = slice(k * size, (k + 1) * size)
                        squares = [float(np.mean((accuracy - truth)[rows] ** 2)) for accuracy in (model, shown)]
                        key = (policy.budget_on(bank), name, kind)
                        found.setdefault(key, []).append([float(named[rows].mean()), *squares])
        print(f"{matrix}: {len(bank)} items, {options.splits} splits")
        for (budget, name, kind), each in found.items():
            named_share, *squared = np.array(each).mean(axis=0)
            spread = np.array(each).std(axis=0, ddof=1) / len(each) ** 0.5
            errors = [
                f"{square**0.5:.3f} +- {error / 2 / max(square**0.5, 1e-9):.3f}"
                for square, error in zip(squared, spread[1:], strict=True)
            ]
            print(
                f"  {budget:4} {name:20} {kind:18} named {named_share:.3f} +- {spread[0]:.3f}, error by the model "
                f"{errors[0]}, shown {errors[1]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
