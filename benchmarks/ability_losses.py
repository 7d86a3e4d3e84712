"""Error rates and power of gates on a loss of ability against a baseline, for eight kinds of candidates.

``python benchmarks/ability_losses.py`` interviews candidates whose loss is exactly the margin, on a bank whose
parameters are right and on one with shuffled difficulties, with 20, 40 and 100 of its 100 items as the budget. It
counts verdicts PASS where the loss is a hair above the margin, and FAIL where it is a hair below. Then candidates that
are as good as the baseline show how often a gate on ability passes, beside one on the accuracy with the same loss.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from error_rates import DECIDE, SIDES, SIZE, ability_loss, banks, chances, interview, sheets
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.inference.betting import decide

Array = NDArray[np.float64]
RIGHT, LOSS = 80, 5  #: Right answers of the baseline, and answers that a candidate has less.
BUDGETS = (20, 40, 100)


def flipped(base: Array, lost: Array, gained: Array, losses: int, gains: int, rng: np.random.Generator) -> Array:
    """A candidate that loses and gains so many answers, at places with these weights."""
    out = base.copy()
    for value, weights, count in ((1.0, lost, losses), (0.0, gained, gains)):
        places = np.flatnonzero(base == value)
        chance = weights[places] / weights[places].sum()
        out[rng.choice(places, count, replace=False, p=chance)] = 1.0 - value
    return out


def candidates(base: Array, loss: int, count: int, rng: np.random.Generator) -> dict[str, Callable[[], Array]]:
    """Eight kinds of candidates with so many right answers less than the baseline."""
    chance = chances(RIGHT / SIZE)
    unsure = chance * (1.0 - chance)
    even = np.ones(SIZE)
    block = np.where(np.arange(SIZE) < SIZE // 4, 1.0, 1e-9)

    def rows(lost: Array, gained: Array, gains: int) -> Array:
        return np.stack([flipped(base, lost, gained, loss + gains, gains, rng) for _ in range(count)])

    return {
        "flips unsure answers": lambda: rows(unsure, unsure, 3),
        "flips any answers": lambda: rows(even, even, 3),
        "flips many answers": lambda: rows(even, even, 12),
        "loses alone": lambda: rows(even, even, 0),
        "loses easy items": lambda: rows(chance**8, even, 0),
        "loses hard items": lambda: rows((1.0 - chance) ** 8, even, 0),
        "loses one part of the bank": lambda: rows(block, even, 0),
        "another model": lambda: sheets(chance, RIGHT - loss, count, rng),
    }


KINDS = tuple(candidates(np.ones(SIZE), 0, 0, np.random.default_rng(0)))  #: Names of the kinds.


def outcomes(session: Session, condition: Condition, old: Baseline) -> Array:
    """1 for PASS, -1 for FAIL and 0 for none of each subject, as `gates.bets.judge_claim` has it."""
    claims = condition.claims(session.bank, {"old": old})
    return np.array([decide(session.log(s), claims).outcome[0] for s in range(session.subjects)])


def false_verdicts(runs: int, cells: str) -> None:
    print("| bank | budget | candidate | false PASS | false FAIL |")
    print("| --- | --- | --- | --- | --- |")
    for bank_name in ("good", "shuffled"):
        bank = banks()[bank_name]
        base = sheets(chances(RIGHT / SIZE), RIGHT, 1, np.random.default_rng(11))[0]
        old = Baseline("old", base)
        for budget in BUDGETS:
            policy = replace(DECIDE, budget=budget)
            for kind in KINDS:
                name = f"{bank_name} | {budget} | {kind}"
                if cells not in name:
                    continue
                rng = np.random.default_rng([11, zlib.crc32(name.encode())])
                draw = candidates(base, LOSS, runs, rng)[kind]
                rates = []
                for side in SIDES:
                    condition = ability_loss(bank, base, LOSS / SIZE, side)
                    session = interview(bank, policy, draw(), rng, condition, baseline=old)
                    rates.append(np.mean(outcomes(session, condition, old) == (1 if side is Outcome.PASS else -1)))
                print(f"| {name} | {rates[0]:.4f} | {rates[1]:.4f} |", flush=True)


def power(runs: int) -> None:
    print("\n| bank | budget | PASS by ability | PASS by accuracy |")
    print("| --- | --- | --- | --- |")
    for bank_name in ("good", "shuffled"):
        bank = banks()[bank_name]
        rng = np.random.default_rng(12)
        base = sheets(chances(RIGHT / SIZE), RIGHT, 1, rng)[0]
        old = Baseline("old", base)
        equal = candidates(base, 0, runs, rng)["flips unsure answers"]()
        for budget in BUDGETS:
            policy = replace(DECIDE, budget=budget)
            shares = []
            for condition in (
                ability_loss(bank, base, LOSS / SIZE, Outcome.PASS),
                Condition("accuracy", "not_worse_than", LOSS / SIZE, "old"),
            ):
                own = np.random.default_rng(13)
                session = interview(bank, policy, equal, own, condition, baseline=old)
                shares.append(np.mean(outcomes(session, condition, old) == 1))
            print(f"| {bank_name} | {budget} | {shares[0]:.3f} | {shares[1]:.3f} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000, help="interviews per cell and side")
    parser.add_argument("--cells", default="", help="only rows that contain this text, without the power")
    options = parser.parse_args(arguments)
    false_verdicts(options.runs, options.cells)
    if not options.cells:
        power(options.runs)


if __name__ == "__main__":
    main()
