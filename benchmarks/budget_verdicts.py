"""False verdicts at the end of a budget, and the width of its interval, on banks of any quality.

``python benchmarks/budget_verdicts.py`` simulates interviews with ``stop = "budget"`` whose truth lies right at the
threshold. It prints for each cell how often they PASS and FAIL wrongly at .05, and the median width of the 90 %
interval beside that of as many uniform draws without a bank. It marks cells above .05 by more than three standard
errors and exits with 1 if there are any. ``--cells TEXT`` selects cells by name, ``--seeds N`` sets the interviews a
side.

Banks: ``good``, whose parameters are the true ones; ``slopes x4`` and ``slopes x10``, with slopes that are too steep;
``annotated``, with one slope and five levels of guessed difficulty; ``none``, without parameters. Models:
``ordinary``, of the bank's population; ``easiest``, wrong on the easiest 6 % alone; ``at random``, wrong on 6 % at
random; ``near-perfect``, wrong on 1 % at random.
"""

from __future__ import annotations

import argparse
import os
import zlib
from dataclasses import replace
from itertools import product

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.betting import Claim, decide, interval_of_draws
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank

Array = NDArray[np.float64]
PROMISED, HAIR = 0.05, 1e-6
SIZES, BUDGETS = (100, 400, 1000), (20, 30, 100)
BANKS = ("good", "slopes x4", "slopes x10", "annotated")
MODELS = ("ordinary", "easiest", "at random", "near-perfect")
ABILITY = 0.6  #: Of the ordinary model.
WIDTHS = 200  #: Interviews whose intervals are measured.


def parameters(kind: str, size: int) -> tuple[ItemBank, Array, Array]:
    """Return a bank of a kind, and the true slopes and intercepts, shape (n,) each."""
    rng = np.random.default_rng(size)
    slope, easiness = rng.lognormal(0.0, 0.3, size), rng.normal(0.0, 1.2, size)
    levels = np.clip(np.round(easiness + rng.normal(0.0, 1.0, size)), -2.0, 2.0)
    assumed = slope * {"slopes x4": 4.0, "slopes x10": 10.0}.get(kind, 1.0)
    columns = (np.ones(size), levels) if kind == "annotated" else (assumed, assumed * easiness)
    bank = ItemBank("b", [str(n) for n in range(size)], (), *columns, calibrated=kind != "none")
    return bank, slope, slope * easiness


def sheets(model: str, slope: Array, intercept: Array, count: int, rng: np.random.Generator) -> Array:
    """Return the scores of a model, shape (count, n), with equally many right answers in each row."""
    n = len(slope)
    logits = slope * ABILITY + intercept
    if model == "ordinary":
        wrong = n - round(float((1.0 / (1.0 + np.exp(-logits))).sum()))
        order = (logits + rng.logistic(size=(count, n))).argsort(axis=1)
    else:
        wrong = max(1, round((0.01 if model == "near-perfect" else 0.06) * n))
        order = rng.random((count, n)).argsort(axis=1)
    if model == "easiest":
        order = np.tile((-intercept / slope).argsort(), (count, 1))
    scores = np.ones((count, n))
    np.put_along_axis(scores, order[:, :wrong], 0.0, axis=1)
    return scores


def interviews(bank: ItemBank, scores: Array, budget: int, seeds: list[int]) -> DesignLog:
    """Return the draws of interviews that ask their whole budget, one per row of scores."""
    policy = replace(POLICIES["decide"], budget=budget, stop="budget")
    if not bank.calibrated:
        policy = replace(policy, selector=SELECTORS["random"], floor=0.0)
    session = Session(bank, policy, seed=seeds, subjects=len(scores))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session.logs()


def outcomes(logs: DesignLog, total: float) -> NDArray[np.int64]:
    """Return the verdict on each interview: 1, -1 or 0."""
    return decide(logs, [Claim(total)], 1).outcome[:, 0]


def median_width(logs: DesignLog) -> float:
    """Return the median width of the first intervals."""
    found = [interval_of_draws(logs[s]) for s in range(min(WIDTHS, len(logs.scores)))]
    return float(np.median([interval.high - interval.low for interval in found]))


def measure(kind: str, model: str, size: int, budget: int, seeds: int) -> bool:
    """Print one cell.  Return whether its rates are at most the promised one, within three standard errors."""
    name = f"{kind}, {model}, {size} items, {budget} draws"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    bank, slope, intercept = parameters(kind, size)
    scores = sheets(model, slope, intercept, seeds, rng)
    true = float(scores[0].sum())
    numbers = rng.integers(2**62, size=seeds).tolist()
    logs = interviews(bank, scores, budget, numbers)
    passed, failed = (outcomes(logs, true + HAIR) == 1).mean(), (outcomes(logs, true) == -1).mean()
    plain = interviews(parameters("none", size)[0], scores[:WIDTHS], budget, numbers[:WIDTHS])
    widths = f"width {median_width(logs):.3f}, without a bank {median_width(plain):.3f}"
    most = PROMISED + 3.0 * (PROMISED * (1.0 - PROMISED) / seeds) ** 0.5
    held = max(passed, failed) <= most
    print(f"{name:45} PASS {passed:.4f} FAIL {failed:.4f} {widths}{'' if held else ' EXCEEDED'}", flush=True)
    return bool(held)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000, help="interviews of each cell")
    parser.add_argument("--cells", default="", help="only cells whose name contains this text")
    options = parser.parse_args()
    held = True
    for kind, model, size, budget in product((*BANKS, "none"), MODELS, SIZES, BUDGETS):
        name = f"{kind}, {model}, {size} items, {budget} draws"
        if options.cells in name and budget < size:
            held &= measure(kind, model, size, budget, options.seeds)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
