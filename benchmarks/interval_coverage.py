"""Coverage and width of the intervals that gates use, on real response matrices.

``python benchmarks/interval_coverage.py`` calibrates a bank from 60 models on AI2D and MMMU, interviews the 17 held-out
models many times by each policy, and prints how often each one-sided 95 % bound misses the true accuracy, the coverage
of both bounds in the fifth of the models by accuracy where it is least, and the width over that of a plain mean of as
many uniform draws. ``--confidence 0.975`` makes 95 % intervals. The same with shuffled difficulties shows that the
bounds do not rest on the bank. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engines.variational import Fit, fit_map
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.projection import model_based
from pytest_adaptive_eval.inference.betting import interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)


def read(name: str, split: str) -> NDArray[np.float64]:
    """Scores (models, items) of the models of a split, ``train`` or ``test``; of all but the test's with ``others``."""
    with gzip.open(DATA / "autojudger" / name, "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    named = json.loads((DATA / "autojudger" / f"{'test' if split == 'others' else split}_models.json").read_text())
    wanted = [model for model in head[1:] if model not in named] if split == "others" else named
    columns = [head.index(model) for model in wanted if model in head]
    return np.array([[float(row[c]) for row in rows] for c in columns])


def bank_of(fitted: Fit) -> ItemBank:
    """A bank without texts."""
    n = len(fitted.intercept)
    return ItemBank("b", [str(i) for i in range(n)], (), fitted.discrimination, fitted.intercept)


def cell(logs: list[DesignLog], truth: NDArray[np.float64], share: float, confidence: float) -> str:
    """Misses below and above, coverage of the worst fifth, and width, after a share of the items."""
    n = logs[0].size
    t = round(share * n)
    found = [interval_of_draws(replace(log[:t], horizon=t), confidence) for log in logs]
    low, high = (np.array([getattr(interval, end) for interval in found]) for end in ("low", "high"))
    below, above = low > truth + 1e-12, high < truth - 1e-12
    fifth = np.searchsorted(np.quantile(truth, [0.2, 0.4, 0.6, 0.8]), truth, side="right")
    least = min((~(below | above))[fifth == f].mean() for f in range(5))
    plain = 2 * NormalDist().inv_cdf(confidence) * np.sqrt(truth * (1 - truth) / t * (1 - t / n))
    return f"{share:4.0%} {below.mean():.3f}/{above.mean():.3f} ({least:.2f}) {(high - low).mean() / plain.mean():.2f}x"


def main() -> None:
    """Interview and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, help="interviews a held-out model and policy")
    parser.add_argument("--confidence", type=float, default=0.95, help="of each one-sided bound")
    options = parser.parse_args()
    policies = {
        "random": Policy(SELECTORS["random"], 0.0),
        "decide": POLICIES["decide"],
        "information, floor .5": Policy(SELECTORS["information"], 0.5),
    }
    print(
        f"share of one-sided {options.confidence:.1%} bounds that miss (low bound above / high bound below the truth), "
        "coverage of both in the worst fifth, width ratio"
    )
    for name in ("AI2D_TEST.csv.gz", "MMMU_DEV_VAL.csv.gz"):
        responses = read(name, "test")
        truth = responses.mean(axis=1)
        subject = np.repeat(np.arange(len(truth)), options.seeds)
        fitted = fit_map(read(name, "train"), model="2pl")
        if not fitted.converged:
            raise RuntimeError(f"the fit of {name} has not converged: its last change was {fitted.change:.2g}")
        n = responses.shape[1]
        shuffled = np.random.default_rng(0).permutation(n)
        for label, order in (("calibrated", np.arange(n)), ("difficulties shuffled", shuffled)):
            bank = bank_of(replace(fitted, intercept=fitted.intercept[order]))
            for policy_name, policy in policies.items():
                if policy_name == "random" and label != "calibrated":
                    continue
                session = Session(bank, replace(policy, budget="20%", stop="budget"), seed=1, subjects=len(subject))
                while (proposal := session.ask()) is not None:
                    session.tell(responses[subject[:, None], proposal.items])
                logs = [session.log(s) for s in range(len(subject))]
                cells = [cell(logs, truth[subject], share, options.confidence) for share in SHARES]
                print(f"{name.split('_')[0]:5} {label:22} {policy_name:21} {'   '.join(cells)}", flush=True)
        greedy = Session(bank_of(fitted), POLICIES["estimate"], seed=1, subjects=len(truth))
        while (proposal := greedy.ask()) is not None:
            greedy.tell(np.take_along_axis(responses, proposal.items, axis=1))
        model = [model_based(float(a), float(e)) for a, e in zip(*greedy.projection(), strict=True)]
        inside = np.mean([i.low <= t <= i.high for i, t in zip(model, truth, strict=True)])
        print(f"{name.split('_')[0]:5} model-based, policy estimate, 15 %: its 90 % interval covers {inside:.2f}")


if __name__ == "__main__":
    main()
