"""What one large family of near-copies does to a bank: 150 of 300 made subjects answer nearly as one.

``python benchmarks/near_copies.py`` plants a 2PL of 400 items and 150 subjects that differ, and adds 150 near-copies of
one of them, each with 3 % of its answers turned. Items are calibrated on all 300 subjects as `calibrate` groups them,
on one subject of the family and the 149 others, and on all 300 as if each were different. 60 new subjects tell how good
the items are: correlation of the slopes with the planted ones, share of negative slopes, loss of their answers in nats,
and ranking accuracy and error of the policy `estimate` without a predictor at 5 % of the items.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.families import grouped
from pytest_adaptive_eval.calibration.quality import losses, predicted
from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import replay
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.inference.rank_correlation import ranking_accuracy
from pytest_adaptive_eval.items.responses import Responses

Array = NDArray[np.float64]

ITEMS, DIFFERENT, COPIES, NEW = 400, 150, 150, 60
#: Share of a copy's answers that are turned.
TURNED = 0.03


def made(seed: int) -> tuple[Array, Array, Array]:
    """Slopes, scores of the 300 calibration subjects (the first and the last 150 alike), and of the new subjects."""
    rng = np.random.default_rng(seed)
    slopes, difficulty = np.exp(0.5 * rng.standard_normal(ITEMS)), 1.5 * rng.standard_normal(ITEMS)
    theta = 1.5 * rng.standard_normal(DIFFERENT + NEW)
    scores = (rng.random((len(theta), ITEMS)) < 1 / (1 + np.exp(-slopes * (theta[:, None] - difficulty)))).astype(float)
    turned = rng.random((COPIES, ITEMS)) < TURNED
    return slopes, np.vstack([scores[:DIFFERENT], np.abs(scores[0] - turned)]), scores[DIFFERENT:]


def named(scores: Array) -> Responses:
    """Responses of subjects without families."""
    subjects, items = (tuple(f"{kind}{k}" for k in range(size)) for kind, size in zip("sq", scores.shape, strict=True))
    return Responses(subjects, items, scores)


def measured(responses: Responses, slopes: Array, new: Array, seed: int) -> list[float]:
    """Correlation of slopes, share of negative slopes, loss, ranking accuracy and error of one bank."""
    fit = Recipe("2pl").fit_completely(responses.scores, responses.weights)
    fitted = fit.discrimination[:, 0]
    policy = replace(POLICIES["estimate"], budget="5%", assisted=False)
    seeds = [seed + s for s in range(len(new))]
    estimated = replay(fit.bank("bank", responses.items), policy, new, seed=seeds).projection()[0]
    truth = new.mean(axis=1)
    return [
        float(np.corrcoef(fitted, slopes)[0, 1]),
        float((fitted < 0).mean()),
        float(losses(new, predicted(new, fit)).mean()),
        ranking_accuracy(estimated, truth),
        float(np.abs(estimated - truth).mean()),
    ]


def main() -> None:
    """Calibrate and print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    rows: dict[str, list[list[float]]] = {}
    for seed in range(options.seeds):
        slopes, scores, new = made(seed)
        ways = {
            "all, as calibrate groups them": grouped(named(scores)),
            "one of the family, and the others": named(scores[:DIFFERENT]),
            "all, as if each were different": named(scores),
        }
        for way, responses in ways.items():
            rows.setdefault(way, []).append(measured(responses, slopes, new, seed))
    for way, values in rows.items():
        found = np.array(values)
        cells = [
            f"{name} {mean:.{digits}f} +- {error:.{digits}f}"
            for name, mean, error, digits in zip(
                ("slopes", "negative", "loss", "ranking", "error"),
                found.mean(axis=0),
                found.std(axis=0, ddof=1) / len(found) ** 0.5,
                (3, 4, 4, 2, 4),
                strict=True,
            )
        ]
        print(f"{way:34} {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
