"""Coverage and width of intervals by the draws, on real response matrices.

``python benchmarks/interval_coverage.py`` calibrates a bank from 60 models on AI2D and MMMU, or from half of the
families of other matrices with ``--data``, and interviews the held-out models many times by each policy. It prints how
often each one-sided 95 % bound misses the true accuracy, the coverage of both bounds in the fifth of the models by
accuracy where it is least, and the width over that of a normal interval of as many uniform draws. ``decide, no gate``
has the approximate interval of interviews that no gate judges. For the others, whose intervals gates use, the median
width over that of the approximate interval of the same draws follows. ``--confidence 0.975`` makes 95 % intervals, and
``--draws 20 40 100`` sets numbers of draws. The same with shuffled difficulties shows that the bounds do not rest on
the bank. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
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
from pytest_adaptive_eval.inference.sampling import approximate_interval
from pytest_adaptive_eval.items.bank import ItemBank

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", Path(__file__).resolve().parent.parent.parent / "shared" / "data"))
SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
NAMES = {"AI2D": "AI2D_TEST.csv.gz", "MMMU": "MMMU_DEV_VAL.csv.gz"}
#: Matrices of other kinds of subjects, and the most of their subjects that are interviewed.
MATRICES = (
    "swebench_verified",
    "alpacaeval2_binary",
    "digits_checkpoints",
    "swebench_pro",
    "gso",
    "terminalbench2_mean",
)
MOST_SUBJECTS = 40
#: Policies, and whether their interval is that of gates.
RUNS = {
    "random": (Policy(SELECTORS["random"], 0.0), True),
    "decide": (replace(POLICIES["decide"], stop="budget"), True),
    "decide, no gate": (POLICIES["decide"], False),
    "information, floor .5": (Policy(SELECTORS["information"], 0.5), True),
}
Array = NDArray[np.float64]


def read(name: str, split: str) -> NDArray[np.float64]:
    """Scores (models, items) of the models of a split, ``train`` or ``test``; of all but the test's with ``others``."""
    with gzip.open(DATA / "autojudger" / name, "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    named = json.loads((DATA / "autojudger" / f"{'test' if split == 'others' else split}_models.json").read_text())
    wanted = [model for model in head[1:] if model not in named] if split == "others" else named
    columns = [head.index(model) for model in wanted if model in head]
    return np.array([[float(row[c]) for row in rows] for c in columns])


def matrix_of(name: str) -> tuple[Array, list[str]]:
    """Scores (subjects, items) of a matrix without missing ones, and the family of each subject."""
    with gzip.open(DATA / "matrices" / name / "matrix.csv.gz", "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    first = next(n for n, column in enumerate(head) if n and column not in ("run", "step"))
    run = head.index("run") if "run" in head else 0
    scores = np.array([[float(value or 0) for value in row[first:]] for row in rows])
    return scores, [row[run] for row in rows]


def halves(name: str) -> tuple[Array, Array]:
    """Scores of half of a matrix's families, and of at most `MOST_SUBJECTS` subjects of the others."""
    responses, families = matrix_of(name)
    known = np.random.default_rng(0).permutation(sorted(set(families)))[::2]
    calibrating = np.isin(families, known)
    held = responses[~calibrating]
    return responses[calibrating], held[:: max(1, len(held) // MOST_SUBJECTS)]


def sides(name: str, pool: str) -> tuple[Array, Array]:
    """Scores of the subjects that calibrate, and of those that are interviewed."""
    return halves(name) if name in MATRICES else (read(NAMES[name], pool), read(NAMES[name], "test"))


def bank_of(fitted: Fit) -> ItemBank:
    """A bank without texts."""
    n = len(fitted.intercept)
    return ItemBank("b", [str(i) for i in range(n)], (), fitted.discrimination, fitted.intercept)


def cell(logs: list[DesignLog], truth: Array, asked: int, confidence: float, gated: bool) -> str:
    """Misses below and above, coverage of the worst fifth, and widths, after so many items."""
    n = logs[0].size
    ended = [replace(log[:asked], horizon=asked, fixed=True) for log in logs]
    rough = [approximate_interval(log, confidence) for log in ended]
    found = [interval_of_draws(log, confidence) for log in ended] if gated else rough
    low, high = (np.array([getattr(interval, end) for interval in found]) for end in ("low", "high"))
    below, above = low > truth + 1e-12, high < truth - 1e-12
    fifth = np.searchsorted(np.quantile(truth, [0.2, 0.4, 0.6, 0.8]), truth, side="right")
    least = min((~(below | above))[fifth == f].mean() for f in range(5))
    plain = 2 * NormalDist().inv_cdf(confidence) * np.sqrt(truth * (1 - truth) / asked * (1 - asked / n))
    width = f"{(high - low).mean() / plain.mean():.2f}x"
    if gated:
        median = np.median(high - low) / np.median([interval.high - interval.low for interval in rough])
        width += f", {median:.2f} of approximate"
    return f"{asked:4} {below.mean():.3f}/{above.mean():.3f} ({least:.2f}) {width}"


def main() -> None:
    """Interview and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40, help="interviews a held-out model and policy")
    parser.add_argument("--confidence", type=float, default=0.95, help="of each one-sided bound")
    parser.add_argument("--data", nargs="*", default=list(NAMES), choices=(*NAMES, *MATRICES))
    parser.add_argument("--draws", nargs="*", type=int, help="numbers of draws in place of shares of the items")
    parser.add_argument("--policies", nargs="*", default=list(RUNS), choices=list(RUNS))
    options = parser.parse_args()
    print(
        f"share of one-sided {options.confidence:.1%} bounds that miss (low bound above / high bound below the truth), "
        "coverage of both in the worst fifth, width ratio"
    )
    for name in options.data:
        calibrating, responses = sides(name, "train")
        truth = responses.mean(axis=1)
        subject = np.repeat(np.arange(len(truth)), options.seeds)
        fitted = fit_map(calibrating, model="2pl")
        if not fitted.converged:
            raise RuntimeError(f"the fit of {name} has not converged: its last change was {fitted.change:.2g}")
        n = responses.shape[1]
        counts = options.draws or [round(share * n) for share in SHARES]
        shuffled = np.random.default_rng(0).permutation(n)
        for label, order in (("calibrated", np.arange(n)), ("difficulties shuffled", shuffled)):
            bank = bank_of(replace(fitted, intercept=fitted.intercept[order]))
            for run in options.policies:
                policy, gated = RUNS[run]
                if run == "random" and label != "calibrated":
                    continue
                session = Session(bank, replace(policy, budget=max(counts)), seed=1, subjects=len(subject))
                while (proposal := session.ask()) is not None:
                    session.tell(responses[subject[:, None], proposal.items])
                logs = [session.log(s) for s in range(len(subject))]
                cells = [cell(logs, truth[subject], count, options.confidence, gated) for count in counts]
                print(f"{name:18} {label:22} {run:21} {'   '.join(cells)}", flush=True)
        greedy = Session(bank_of(fitted), POLICIES["estimate"], seed=1, subjects=len(truth))
        while (proposal := greedy.ask()) is not None:
            greedy.tell(np.take_along_axis(responses, proposal.items, axis=1))
        model = [model_based(float(a), float(e)) for a, e in zip(*greedy.projection(), strict=True)]
        inside = np.mean([i.low <= t <= i.high for i, t in zip(model, truth, strict=True)])
        print(f"{name:18} model-based, policy estimate, 15 %: its 90 % interval covers {inside:.2f}")


if __name__ == "__main__":
    main()
