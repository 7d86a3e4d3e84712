"""Gates whose predictions join the item response model and what the items' residuals have in common: what is gained.

``python benchmarks/gate_control.py`` compares two kinds of predicted scores, the control variates and draws of gates:
those of the item response model, which gates have, and those of a Gaussian predictor around it. It prints the variance
of a draw's estimate of the bank's sum after some answers, and the questions to a verdict, as ratios. The predictions
follow from earlier answers alone, so that the error rate is the stated one with either.

``--kind residuals`` takes the residuals of the bank's own predictor, `irt.prediction`, at a fifth of their weight.
``--kind factors`` takes the components of the standardised residuals that are larger than noise would make them
(Marchenko and Pastur 1967), shrunk by as much. The constants of both were chosen on splits of the other models.

Half of the families calibrate the banks of other matrices than AI2D and MMMU, as in ``gate_decisions.py``.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from gate_decisions import DECIDE, interviews, needed
from interval_coverage import MATRICES, NAMES, sides
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engine import Calibration
from pytest_adaptive_eval.calibration.prediction import fit_predictors
from pytest_adaptive_eval.calibration.quality import predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.cat.assisted import curves
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.irt.prediction import ABILITY_SD, Curves, Design
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Predicted scores of all items, shape (S, n), from curves, items and scores.
Predict = Callable[[Curves, Ints, Array], Array]

#: Answers after which the variance of a draw is measured.
ANSWERS = (24, 48, 96, 192, 384)
#: Constants of the bank's predictor, and of the factors: a subject's own shift, and an item's own part in p(1-p).
RESIDUALS = Design("estimate", 1, residual=0.2, shift=0.05, slope=1.0, noise=2.0)
SHIFT, NOISE = 0.05, 1.5
#: Smallest variances of a score, in a standardised residual and in a prediction.
LEAST_STANDARDISED, LEAST_VARIANCE = 0.02, 0.01
#: Predictions are no nearer to 0 and 1 than this, unless the item response model's are.
SUREST = 0.003


def noise_edge(rows: int, columns: int) -> float:
    """Largest eigenvalue of the products of rows of pure noise, over their median."""
    root = math.sqrt(min(rows, columns) / max(rows, columns))
    low, high = (1.0 - root) ** 2, (1.0 + root) ** 2
    x = np.linspace(low, high, 4001)[1:]
    mass = (np.sqrt(np.maximum((high - x) * (x - low), 0.0)) / x).cumsum()
    return float(high / x[mass.searchsorted(mass[-1] / 2.0)])


def by_residuals(fit: Calibration, scores: Array) -> Predict:
    """Predictions of the bank's own predictor."""
    subjects, items = (tuple(str(k) for k in range(size)) for size in scores.shape)
    [predictor] = fit_predictors(fit, Responses(subjects, items, scores), [RESIDUALS.shift], most=1)
    return lambda estimated, items, scores: predictor.predict(RESIDUALS, estimated, items, scores)[0]


def by_factors(fit: Calibration, scores: Array) -> Predict:
    """Predictions by the components of the standardised residuals that are larger than noise."""
    p = predicted(scores, fit)
    rows = (scores - p) / np.sqrt(np.maximum(p * (1.0 - p), LEAST_STANDARDISED) * len(scores))
    _, sizes, components = np.linalg.svd(rows, full_matrices=False)
    noise = float(np.median(sizes**2)) * noise_edge(*rows.shape)
    factors = np.sqrt(np.maximum(sizes**2 - noise, 0.0))[:, None] * components
    factors = factors[sizes**2 > noise]

    def predict(estimated: Curves, items: Ints, scores: Array) -> Array:
        theta, p, slopes = estimated
        spread = np.sqrt(np.maximum(p * (1.0 - p), LEAST_VARIANCE))
        at_items = np.take_along_axis(spread, items, axis=1)
        parts = [
            ABILITY_SD * np.take_along_axis(slopes, items[:, None, :], axis=2),
            factors[:, items].swapaxes(0, 1) * at_items[:, None, :],
            np.full((len(p), 1, items.shape[1]), SHIFT),
        ]
        loadings = np.concatenate(parts, axis=1)
        scaled = loadings / (NOISE * at_items**2)[:, None, :]
        centre = np.zeros(loadings.shape[:2])
        dimensions = theta.shape[1]
        centre[:, :dimensions] = theta / ABILITY_SD  # the ability's prior is about 0
        rest = scores - np.take_along_axis(p, items, axis=1) + (centre[:, None, :] @ loadings)[:, 0]
        information = np.eye(loadings.shape[1]) + scaled @ loadings.swapaxes(1, 2)
        a = np.linalg.solve(information, scaled @ rest[:, :, None])[:, :, 0] - centre
        change = ABILITY_SD * (a[:, None, :dimensions] @ slopes)[:, 0] + SHIFT * a[:, -1:]
        change += (a[:, dimensions:-1] @ factors) * spread
        return np.clip(p + change, np.minimum(p, SUREST), np.maximum(p, 1.0 - SUREST))

    return predict


KINDS: dict[str, Callable[[Calibration, Array], Predict]] = {"residuals": by_residuals, "factors": by_factors}


@dataclass(frozen=True, slots=True, eq=False)
class Predicting(Baseline):
    """Predictions in the place of those by a baseline: a session takes them as they are."""

    bank: ItemBank = field(kw_only=True)
    predict: Predict = field(kw_only=True)

    def predicted(self, shapes: Array, items: Ints, scores: Array, model: Array | None = None) -> Array:  # noqa: ARG002
        """The bank's own predictions before the first answer, and `predict` afterwards."""
        if not items.size:
            return self.bank.probability(np.zeros((len(items), self.bank.dimensions)))
        return self.predict(curves(self.bank, DECIDE.estimator, items, scores), items, scores)


def draw_variance(p: Array, scores: Array, items: Ints) -> Array:
    """Variance of the estimated sum by one more draw, half uniform and half by the predicted spread; shape (S,)."""
    free = np.ones(p.shape, dtype=bool)
    np.put_along_axis(free, items, values=False, axis=1)
    spread = np.where(free, np.sqrt(p * (1.0 - p)), 0.0)
    q = 0.5 * spread / spread.sum(axis=1, keepdims=True) + 0.5 / free.sum(axis=1, keepdims=True)
    error = np.where(free, scores - p, 0.0)
    return np.asarray((error**2 / q).sum(axis=1) - error.sum(axis=1) ** 2)


def compare(name: str, kind: str, pool: str, seeds: int, margins: list[float]) -> None:
    """Print the ratios of one matrix."""
    calibrating, responses = sides(name, pool)
    fit = Recipe("2pl").fit_completely(calibrating)
    bank = fit.bank("bank", [str(k) for k in range(calibrating.shape[1])])
    predicting = Predicting("none", np.zeros(len(bank)), bank=bank, predict=KINDS[kind](fit, calibrating))
    rows = np.repeat(responses, 4, axis=0)
    log = interviews(bank, replace(DECIDE, stop="budget"), rows, str(ANSWERS[-1]), 0)
    for t in ANSWERS:
        items, scores = log.items[:, :t], log.scores[:, :t]
        model = curves(bank, DECIDE.estimator, items, scores)
        ours = draw_variance(predicting.predict(model, items, scores), rows, items)
        each = (ours / draw_variance(model.probability, rows, items)).reshape(len(responses), -1).mean(axis=1)
        error = each.std(ddof=1) / len(each) ** 0.5
        print(f"{name:5} {t:3} answers: variance of a draw {each.mean():.3f} +- {error:.3f}", flush=True)
    for margin in margins:
        before = needed(bank, DECIDE, responses, margin / 100, seeds, None)
        after = needed(bank, DECIDE, responses, margin / 100, seeds, None, baseline=predicting)
        ratio = after.mean() / before.mean()
        error = (after - ratio * before).std() / len(after) ** 0.5 / before.mean()
        print(
            f"{name:5} {margin:3.0f} points: questions by the item response model {before.mean():6.1f}, by {kind} "
            f"{after.mean():6.1f}, ratio {ratio:.3f} +- {error:.3f}",
            flush=True,
        )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=list(KINDS), default="factors")
    parser.add_argument("--data", nargs="*", default=list(NAMES), choices=(*NAMES, *MATRICES))
    parser.add_argument("--pool", default="train", choices=("train", "others"), help="as in gate_decisions.py")
    parser.add_argument("--seeds", type=int, default=20, help="interviews a model and side")
    parser.add_argument("--margins", nargs="*", type=float, default=[5, 10], help="in points")
    options = parser.parse_args()
    for name in options.data:
        compare(name, options.kind, options.pool, options.seeds, options.margins)


if __name__ == "__main__":
    main()
