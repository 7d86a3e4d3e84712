"""The published engine on MMMU: whether it converges, how it agrees with ``map``, and how its banks rank models.

``python benchmarks/svi_engines.py`` fits 60 models x 1050 items by ``svi`` as 1PL, 2PL and 3PL. For each it prints the
steps, whether the stopping rule was reached, and the correlation with ``map`` of the difficulties b, of the intercepts
d and of the predicted scores: the first two over the items that some solved and some did not, since for the others b
has no bound on one side, and b of 2PL and 3PL over those with a slope of at least .3 in both, since b = -d / a. Then
the 17 held-out models are interviewed with 5 % of the items from each ``svi`` bank, and ranked: by ability after
AutoJudger's nearest difficulty (with its five pseudo-items; in 3PL with a normal prior of ability), and by projected
accuracy after the policy ``estimate``, whose draws are random (mean and standard deviation over seeds). A pair of
equals counts one half. The last column is AutoJudger's own, with a language model as interviewer (its Table 13). The
matrix is looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Literal

import numpy as np
from interval_coverage import read
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engines.svi import SVIFit, SVISettings, fit_svi
from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import NearestDifficulty
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.irt import model as irt
from pytest_adaptive_eval.irt.estimation import MAP, PseudoItems
from pytest_adaptive_eval.items.bank import ItemBank

Array = NDArray[np.float64]

#: Ranking accuracy on MMMU at 5 % of the items, AutoJudger's Table 13.
PAPER = {"1pl": 87.94, "2pl": 84.56, "3pl": 86.03}


def agreement(fit: SVIFit, scores: Array, model: Literal["1pl", "2pl", "3pl"]) -> tuple[float, float, float]:
    """Correlations of b, d and the predictions with those of ``map``."""
    other = fit_map(scores, model=model)
    if not other.converged:
        raise RuntimeError(f"map has not converged: its last change was {other.change:.2g}")
    bounded = (scores.mean(axis=0) > 0) & (scores.mean(axis=0) < 1)
    a = other.discrimination[:, 0]
    steep = bounded & (a >= 0.3) & (fit.discrimination >= 0.3)
    p = irt.probability(fit.theta[:, None], fit.discrimination[:, None], fit.intercept, fit.guess)
    pairs = (
        (fit.difficulty[steep], (-other.intercept / a)[steep]),
        (fit.intercept[bounded], other.intercept[bounded]),
        (p.ravel(), other.probability().ravel()),
    )
    b, d, prediction = (float(np.corrcoef(x, y)[0, 1]) for x, y in pairs)
    return b, d, prediction


def main() -> None:
    """Fit, compare and interview."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(PAPER), choices=list(PAPER))
    parser.add_argument("--difficulty-prior", default=SVISettings().difficulty_prior, choices=["variance", "sd"])
    parser.add_argument("--seed", type=int, default=0, help="of the fit")
    parser.add_argument("--interviews", type=int, default=40, help="seeds of the policy estimate")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    scores, held_out = read("MMMU_DEV_VAL.csv.gz", "train"), read("MMMU_DEV_VAL.csv.gz", "test")
    truth = held_out.mean(axis=1)
    settings = SVISettings(difficulty_prior=options.difficulty_prior, device=options.device)
    estimate = replace(POLICIES["estimate"], budget="5%")
    print(f"{scores.shape[0]} models x {scores.shape[1]} items; prior b: 10^3 is its {options.difficulty_prior}")
    print("      steps  rule      seconds   r(b)   r(d)   r(p)   nearest b  estimate       AutoJudger's table")
    for model in options.models:
        start = time.perf_counter()
        fit = fit_svi(scores, model=model, settings=settings, seed=options.seed)
        seconds = time.perf_counter() - start
        b, d, p = agreement(fit, scores, model)
        ids = [str(i) for i in range(len(fit.intercept))]
        bank = ItemBank("mmmu", ids, (), fit.discrimination, fit.intercept, fit.guess, model=model)
        estimator = MAP() if model == "3pl" else PseudoItems()
        nearest = Policy(NearestDifficulty(), 0.0, budget="5%", estimator=estimator)
        ability = replay(bank, nearest, held_out, seed=0).estimate.theta[:, 0]
        projected = [replay(bank, estimate, held_out, seed=s).projection()[0] for s in range(options.interviews)]
        ranked = [ranking_accuracy(one, truth) for one in projected]
        rule = "reached" if fit.converged else "step limit"
        print(
            f"{model}   {fit.steps:5}  {rule:10} {seconds:5.0f}   {b:.3f}  {d:.3f}  {p:.3f}   "
            f"{ranking_accuracy(ability, truth):5.2f}      {np.mean(ranked):5.2f} (sd {np.std(ranked):.2f})"
            f"   {PAPER[model]:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
