"""What a bank of several dimensions gains over the chosen one of one dimension, on real response matrices.

``python benchmarks/model_choice.py --splits 20`` splits the families of each matrix as `prediction.py` does. In every
split it chooses the model of one dimension by held-out loss, and fits it and `mirt` to the calibration subjects. It
prints by how much the held-out loss of `mirt` is smaller, in nats per response and in its standard errors, and the
differences of ranking accuracy and of the error of the accuracy by `estimate` without the predictor, `mirt` less the
other, with standard errors over splits. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default
``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from prediction import MATRICES, read, split

from pytest_adaptive_eval.calibration import choice as model_choice
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy

BUDGETS = (0.01, 0.05)
PLAIN = replace(POLICIES["estimate"], assisted=False)


def main() -> None:
    """Run, and print a line for each matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--splits", type=int, default=20)
    options = parser.parse_args()
    model_choice.HOPELESS = np.inf  # several dimensions are fitted in all folds
    for matrix in options.matrix:
        responses, losses, gains = read(matrix), [], []
        for seed in range(options.splits):
            train, test = split(matrix, responses, seed)
            choice, truth = model_choice.choose_model(train, Recipe()), np.nanmean(test.scores, axis=1)
            one = {model: loss for model, loss in choice.losses.items() if model != "mirt"}
            best = min(one, key=one.__getitem__)
            simplest = next(model for model in one if one[model] - one[best] <= choice.errors[model])
            better = one[best] - choice.losses["mirt"]
            losses.append((better, better / choice.errors["mirt"]))
            gain = []
            for budget in BUDGETS:
                policy, found = replace(PLAIN, budget=max(2, round(budget * len(responses.items)))), []
                for model in (simplest, "mirt"):
                    bank = Recipe(model).fit_completely(train.scores, train.weights).bank("bank", train.items)
                    seeds = [seed + s for s in range(len(truth))]
                    accuracy = replay(bank, policy, test.scores, seed=seeds).projection()[0]
                    found.append((ranking_accuracy(accuracy, truth), float(np.abs(accuracy - truth).mean())))
                gain.append(np.subtract(found[1], found[0]))
            gains.append(gain)
        mean, error = np.mean(gains, axis=0), np.std(gains, axis=0, ddof=1) / len(gains) ** 0.5
        loss, least = np.mean(losses, axis=0)[0], np.min(losses, axis=0)[1]
        each = "; ".join(
            f"{budget:.0%}: ranking {m[0]:+.2f} +- {e[0]:.2f}, error {m[1]:+.4f} +- {e[1]:.4f}"
            for budget, m, e in zip(BUDGETS, mean, error, strict=True)
        )
        print(
            f"{matrix}, {len(gains)} splits: loss better by {loss:.4f}, at least {least:.1f} errors; {each}", flush=True
        )


if __name__ == "__main__":
    main()
