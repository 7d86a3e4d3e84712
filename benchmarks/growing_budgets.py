"""How often a gate errs that is run again and again with a larger budget, with the same seed.

``python benchmarks/growing_budgets.py`` simulates interviews whose truth lies right at the threshold. Each is run with
13 budgets from 30 to 200 of 400 items, and its draws go on. It prints how often any of the runs PASSes, and how often
any FAILs, where each run goes on with the bets of the runs before, and where each run tests anew. It exits with 1 if a
rate of the first kind is above .05 by three standard errors. Last comes the share of interviews 8 points off that the
first, the last, and any of the runs passes. ``--seeds N`` sets the interviews a side.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from budget_verdicts import HAIR, Array, parameters, sheets
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.items.bank import ItemBank

SIZE, PROMISED, OFF = 400, 0.05, 32
BUDGETS = tuple(np.linspace(30, 200, 13).round().astype(int).tolist())
PASSES = 500  #: Interviews at once.
Outcomes = NDArray[np.int64]


def draws(bank: ItemBank, scores: Array, claim: Claim, stop: str, rng: np.random.Generator) -> DesignLog:
    """Return the draws of interviews by the largest budget, one per row of scores."""
    policy = replace(POLICIES["decide"], budget=BUDGETS[-1], stop=stop)  # type: ignore[arg-type]
    if not bank.calibrated:
        policy = replace(policy, selector=SELECTORS["random"], floor=0.0)
    seeds = rng.integers(2**62, size=len(scores)).tolist()
    session = Session(bank, policy, seed=seeds, subjects=len(scores), claims=[claim])
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    return session.logs()


def outcomes(logs: DesignLog, claim: Claim, going_on: bool) -> Iterator[Outcomes]:
    """Yield the outcomes by each budget: 1, -1 or 0 per interview."""
    for k, budget in enumerate(BUDGETS):
        earlier = BUDGETS[:k] if going_on else ()
        yield decide(replace(logs[:, :budget], horizon=budget, earlier=earlier, paths={}), [claim]).outcome[:, 0]


def verdicts(kind: str, stop: str, side: int, seeds: int, off: int, going_on: bool) -> tuple[float, float, float]:
    """Return the shares of interviews with a verdict of a side by the first, the last and any budget.

    Args:
        off: Distance of the truth from the threshold, in items, to the side's own side.
    """
    rng = np.random.default_rng([1 + side, len(kind), off])
    bank, slope, intercept = parameters(kind, SIZE)
    found = []
    for start in range(0, seeds, PASSES):
        scores = sheets("ordinary", slope, intercept, min(PASSES, seeds - start), rng)
        claim = Claim(float(scores[0].sum()) - side * off + (HAIR if side > 0 else 0.0))
        logs = draws(bank, scores, claim, stop, rng)
        found.append(np.stack(list(outcomes(logs, claim, going_on))) == side)
    decided = np.concatenate(found, axis=1)
    return float(decided[0].mean()), float(decided[-1].mean()), float(decided.any(axis=0).mean())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000, help="interviews a side")
    seeds = parser.parse_args().seeds
    held = True
    most = PROMISED + 3.0 * (PROMISED * (1.0 - PROMISED) / seeds) ** 0.5
    print("| stop, bank | going on: PASS, FAIL | anew: PASS, FAIL | 8 points off, going on: first, last, any |")
    for stop in ("decision", "budget"):
        for kind in ("good", "none"):
            rates = [
                verdicts(kind, stop, side, seeds, 0, going_on)[2] for going_on in (True, False) for side in (1, -1)
            ]
            power = verdicts(kind, stop, 1, min(seeds, 1000), OFF, True)
            held &= max(rates[:2]) <= most
            cells = [" / ".join(f"{rate:.4f}" for rate in pair) for pair in (rates[:2], rates[2:], power)]
            print(f"| {stop}, {kind} | {' | '.join(cells)} |", flush=True)
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
