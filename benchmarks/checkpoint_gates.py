"""Gates between real checkpoints: equal ones, a twin at the margin, and regressed ones.

``python benchmarks/checkpoint_gates.py`` lets the fixture checkpoint text-late answer the text bank twice at
temperature 0.7 with two seeds, and judges the second by ``not_worse_than`` the first (A/A), and a twin that loses one
item more than the margin. Then the regressed checkpoints are judged against text-late as recorded (A/B): the broadly
regressed one on the whole bank, the one that lost a single task by that task's gate. Each line is of many seeds of the
default policy.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.models import load_model
from pytest_adaptive_eval.records.baseline import read_baseline

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "fixtures" / "responses" / "released-text.csv.gz"
Array = NDArray[np.float64]


def judged(bank: ItemBank, scores: Array, claim: Claim, seeds: int, baseline: Baseline | None, **policy: object) -> str:
    """Verdicts and calls of one gate at the shipped defaults."""
    outcomes, calls = [], []
    own = replace(POLICIES["decide"], **policy)  # type: ignore[arg-type]
    for seed in range(seeds):
        session = Session(bank, own, seed=seed, claims=[claim], family=1, baseline=baseline)
        while (proposal := session.ask()) is not None:
            session.tell(scores[proposal.items])
        sign = 0
        if session.stop[0] in (StopReason.DECISION, StopReason.BUDGET, StopReason.EXHAUSTED):
            sign = int(decide(session.log(), [claim]).outcome[0])
        outcomes.append(sign)
        calls.append(session.asked)
    passed, failed = outcomes.count(1) / seeds, outcomes.count(-1) / seeds
    return (
        f"PASS {passed:.3f}  FAIL {failed:.3f}  INCONCLUSIVE {1 - passed - failed:.3f}  refused {1 - passed:.3f}, mean "
        f"{np.mean(calls):.1f} calls of {len(bank)}"
    )


def sampled(bank: ItemBank, checkpoint: str, seed: int) -> Array:
    """Scores of a checkpoint at temperature 0.7; an answer without a score counts as wrong."""
    subject = load_model(str(ROOT / "fixtures" / "checkpoints" / checkpoint), temperature=0.7, seed=seed)
    items = list(bank.items)
    out = []
    for start in range(0, len(items), 64):
        batch = items[start : start + 64]
        for item, answer in zip(batch, subject.answer(batch), strict=True):
            out.append(answer.response(item).score or 0.0)
    return np.array(out)


def recorded(bank: ItemBank, name: str) -> Baseline:
    """A released checkpoint's recorded answers."""
    return read_baseline(f"{RECORDED}#{name}", [ROOT], bank, "text").baseline


HEALTHY = ("text-early", "text-mid", "text-late")
REGRESSED = ("text-regressed", "text-regressed-mild", "text-regressed-addition")


def within_a_fifth(bank: ItemBank, names: Sequence[str], seeds: int) -> str:
    """Gates ten points from the truth of each checkpoint, at the shipped defaults."""
    decided, calls = [], []
    for name in names:
        scores = recorded(bank, name).scores
        for side in (1, -1):
            threshold = scores.mean() - 0.1 * side
            if not 0.02 < threshold < 0.98:
                continue
            claim = Claim(threshold * len(bank))
            for seed in range(seeds):
                session = Session(bank, POLICIES["decide"], seed=seed, claims=[claim])
                while (proposal := session.ask()) is not None:
                    session.tell(scores[proposal.items])
                decided.append(int(decide(session.log(), [claim]).outcome[0]) == side)
                calls.append(session.asked)
    return f"{np.mean(decided):.3f} decided rightly within a fifth, mean {np.mean(calls):.1f} calls of {len(bank)}"


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=500, help="of A/A and the twin")
    parser.add_argument("--regressed", type=int, default=200, help="seeds of the regressed checkpoints")
    options = parser.parse_args()
    bank = read_bank(ROOT / "fixtures" / "banks" / "text.bank")
    n = len(bank)
    print(f"ten points away, a training run's checkpoints: {within_a_fifth(bank, HEALTHY, 100)}")
    print(f"ten points away, regressed checkpoints: {within_a_fifth(bank, REGRESSED, 100)}")
    first, second = (sampled(bank, "text-late", seed) for seed in (1, 2))
    print(
        f"two decodings at temperature .7: accuracy {first.mean():.3f} and {second.mean():.3f}, "
        f"{np.mean(first != second):.1%} of the answers differ"
    )
    baseline = Baseline("first decoding", first)
    for margin in (0.02, 0.05, 0.10):
        claim = PairedClaim.of(baseline, margin, 0.95)
        text = judged(bank, second, claim, options.seeds, baseline)
        print(f"A/A, margin {margin:.2f}, {options.seeds} seeds: {text}")
        twin = second.copy()
        lost = int(second.sum() - np.ceil(claim.total - 1e-9)) + 1  # one item beyond the margin
        right = np.flatnonzero(second == 1)
        twin[np.random.default_rng(0).choice(right, lost, replace=False)] = 0.0
        for share in ("20%", "100%"):
            text = judged(bank, twin, claim, options.seeds, baseline, budget=share)
            print(f"twin one item beyond {margin:.2f}, budget {share}: {text}")
    late = recorded(bank, "text-late")
    for name, gates in (
        ("text-regressed", (("", 0.05),)),
        ("text-regressed-mild", (("", 0.05),)),
        ("text-regressed-addition", (("", 0.05), ("addition", 0.10))),
    ):
        for category, margin in gates:
            own = bank.only(category) if category else bank
            base = recorded(own, "text-late") if category else late
            scores = recorded(own, name).scores
            claim = PairedClaim.of(base, margin, 0.95)
            text = judged(own, scores, claim, options.regressed, base)
            print(
                f"{name} ({scores.mean():.3f} against {base.scores.mean():.3f}), {category or 'whole bank'}, not worse "
                f"than text-late by {margin:.2f}: {text}"
            )
        claim = Claim(0.60 * n)
        text = judged(bank, recorded(bank, name).scores, claim, options.regressed, None)
        print(f"{name}, accuracy >= .60: {text}", flush=True)


if __name__ == "__main__":
    main()
