"""A recipe without an item response model, beside which `estimate` is held: its error over that of uniform draws.

``python benchmarks/mean_recipe.py --splits 10`` predicts scores by the items' means and what the calibration subjects'
deviations from them have in common, with a shift of the subject's own and a slope along the means. Half of the budget
is a greedy form, the same for everybody, and half is drawn uniformly. The estimate mixes the predicted accuracy with
the difference estimator. Noise, shift, slope and mixture are chosen by held-out families, for the budget. Splits and
yardstick are those of ``prediction.py``.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from itertools import product

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray
from prediction import MATRICES, read, split, uniform_error

from pytest_adaptive_eval.calibration.families import family_weights
from pytest_adaptive_eval.calibration.prediction import form_orders
from pytest_adaptive_eval.calibration.replay import folds
from pytest_adaptive_eval.cat.assisted import parts
from pytest_adaptive_eval.irt.prediction import Curves, Design, Evidence, Predictor
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]

#: Noise, shift and slope that are tried, and weights of the difference estimator.
SETTINGS = tuple(product((0.7, 1.0, 1.5, 2.0), (0.05, 0.1, 0.2), (0.0, 0.5, 1.0)))
WEIGHTS = (0.0, 0.15, 0.3, 0.5, 0.7, 1.0)
#: Shift by which the form is made, smallest variance of a score, and folds of families.
FORM_SHIFT, LEAST_VARIANCE, FOLDS = 0.1, 0.02, 5


def fitted(train: Responses) -> tuple[Array, Predictor]:
    """The items' mean scores, and the predictor of deviations from them."""
    w = family_weights(train.families)
    seen = ~np.isnan(train.scores)
    mean = np.nansum(w[:, None] * train.scores, axis=0) / np.maximum((w[:, None] * seen).sum(axis=0), 1e-9)
    rows = np.where(seen, train.scores - mean, 0.0) * np.sqrt(w / w.sum())[:, None]
    level = (mean - mean.mean()) / max(float(mean.std()), 1e-9)
    scales = np.ones((1, len(rows) + 2))
    scales[:, -2:] = FORM_SHIFT
    noise = np.maximum(mean * (1.0 - mean), LEAST_VARIANCE)
    [order] = form_orders(np.concatenate([rows, [np.ones_like(level), level]]), noise, scales)
    return mean, Predictor(rows, level, order)


def estimates(train: Responses, scores: Array, count: int, designs: list[Design], seed: int) -> Array:
    """Accuracies of S subjects by the model and by the difference estimator with each design, shape (designs, 2, S)."""
    mean, predictor = fitted(train)
    chosen, (subjects, n) = count - count // 2, scores.shape
    form, rest, rng = predictor.order[:chosen], predictor.order[chosen:], np.random.default_rng(seed)
    items = np.stack([np.concatenate([form, rng.permutation(rest)[: count - chosen]]) for _ in range(subjects)])
    flat = Curves(np.zeros((subjects, 1)), np.tile(mean, (subjects, 1)), np.zeros((subjects, 1, n)))
    asked = np.take_along_axis(scores, items, axis=1)
    whole = Evidence(predictor, designs, flat, items, asked)
    first = Evidence(predictor, designs, flat, items[:, :chosen], asked[:, :chosen])
    return np.array([parts(design, whole, first)[:2] for design in designs])


def error(train: Responses, test: Responses, count: int, seed: int) -> float:
    """Mean absolute error of the recipe, its constants chosen by families of the calibration subjects."""
    base = Design("estimate", count, uniform=0.5, residual=1.0)
    designs = [replace(base, noise=noise, shift=shift, slope=slope) for noise, shift, slope in SETTINGS]
    fold = folds(train.families, min(FOLDS, len(set(train.families))), np.random.default_rng(seed))
    weights, found = family_weights(train.families), np.empty((len(designs), 2, len(fold)))
    for f in range(fold.max() + 1):
        learn, held = (train.of(np.flatnonzero(part)) for part in (fold != f, fold == f))
        found[:, :, fold == f] = estimates(learn, held.scores, count, designs, seed)
    truth = np.nanmean(train.scores, axis=1)
    mixed = [(1 - weight) * found[:, 0] + weight * found[:, 1] for weight in WEIGHTS]
    losses = np.array([(weights * np.abs(x - truth)).sum(axis=1) for x in mixed])  # (weights, designs)
    w, best = np.unravel_index(losses.argmin(), losses.shape)
    model, difference = estimates(train, test.scores, count, [designs[best]], seed)[0]
    estimated = (1 - WEIGHTS[w]) * model + WEIGHTS[w] * difference
    return float(np.abs(estimated - np.nanmean(test.scores, axis=1)).mean())


def main() -> None:
    """Run and print a line for each matrix and budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--budgets", nargs="+", type=float, default=[0.05])
    options = parser.parse_args()
    for matrix in options.matrix:
        responses = read(matrix)
        for budget in options.budgets:
            count, rows = max(2, round(budget * len(responses.items))), []
            for seed in range(options.splits):
                train, test = split(matrix, responses, seed)
                truth = np.nanmean(test.scores, axis=1)
                plain = uniform_error(test.scores, truth, count, np.random.default_rng(seed))
                rows.append((error(train, test, count, seed), plain))
            own, uniform = np.array(rows).T
            ratio = own.mean() / uniform.mean()
            spread = (own - ratio * uniform).std(ddof=1) / uniform.mean() / len(own) ** 0.5
            print(
                f"{matrix} {budget:.0%}: error {own.mean():.4f}, over uniform {ratio:.3f} +- {spread:.3f}", flush=True
            )


if __name__ == "__main__":
    main()
