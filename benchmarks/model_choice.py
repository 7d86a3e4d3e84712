"""What the choice of a bank's model gives and costs, on real response matrices.

``python benchmarks/model_choice.py --splits 20`` splits the families of each matrix as `prediction.py` does. In every
split `choose_model` chooses, and the best model of one dimension and `mirt` are fitted to the calibration subjects. It
prints by how much the held-out loss of `mirt` is smaller, in nats per response, the share of splits that choose it, and
differences of ranking accuracy and of the error of the accuracy by `estimate` without the predictor: `mirt` less the
model of one dimension, and the chosen one less `mirt`, with standard errors over splits. The matrices are looked for in
``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
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
from pytest_adaptive_eval.calibration.replay import replay_each
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy

BUDGETS = (0.01, 0.05)
PLAIN = replace(POLICIES["estimate"], assisted=False)


def main() -> None:
    """Run, and print a line for each matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", nargs="+", choices=list(MATRICES), default=list(MATRICES))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    options = parser.parse_args()
    for matrix in options.matrix:
        responses, losses, several, found = read(matrix), [], [], []
        counts = [max(2, round(budget * len(responses.items))) for budget in BUDGETS]
        policies = [replace(PLAIN, budget=count) for count in counts]
        for seed in range(options.first, options.first + options.splits):
            train, test = split(matrix, responses, seed)
            choice, truth = model_choice.choose_model(train, Recipe()), np.nanmean(test.scores, axis=1)
            seeds = [seed + s for s in range(len(truth))]
            by_model = []
            for model in (choice.of_one_dimension, "mirt"):
                bank = Recipe(model).fit_completely(train.scores, train.weights).bank("bank", train.items)
                sessions = replay_each(bank, policies, test.scores, seed=seeds, designed=False)
                accuracies = [session.projection()[0] for session in sessions]
                errors = [float(np.abs(accuracy - truth).mean()) for accuracy in accuracies]
                by_model.append([[ranking_accuracy(accuracy, truth) for accuracy in accuracies], errors])
            one, mirt = np.array(by_model)
            is_mirt = choice.model == "mirt"
            several.append(is_mirt)
            losses.append(choice.losses[choice.of_one_dimension] - choice.losses["mirt"])
            found.append([mirt - one, (mirt if is_mirt else one) - mirt])
            print(
                f"# {matrix} {seed}, one dimension {one.tolist()}, mirt {mirt.tolist()}: {choice.sentence}", flush=True
            )
        mean = np.mean(found, axis=0)
        error = np.std(found, axis=0, ddof=1) / len(found) ** 0.5
        print(f"{matrix}, {len(found)} splits: loss {np.mean(losses):.4f} smaller, mirt in {np.mean(several):.0%}")
        for k, name in enumerate(("mirt less one dimension", "chosen less mirt")):
            for b, budget in enumerate(BUDGETS):
                rank, off = (f"{mean[k, q, b]:+.4f} +- {error[k, q, b]:.4f}" for q in range(2))
                print(f"  {name}, {budget:.0%}: ranking {rank}, error {off}", flush=True)


if __name__ == "__main__":
    main()
