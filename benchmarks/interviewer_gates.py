"""Gates on what an interviewer asked: a good and a regressed checkpoint, many seeds, against policies without one.

``python benchmarks/interviewer_gates.py`` interviews the fixture checkpoints text-late and text-regressed by their
recorded answers, at the settings of the example (``examples/promotion``): half of the questions are the interviewer's
and half are drawn uniformly, and the gate wants three fifths of the bank to be right. Printed are the verdicts and the
questions asked, by interviewer: by code, by the fixture's interviewer checkpoint, and the default policy ``decide``
beside. ``--seeds`` (20), ``--budget`` (20%), ``--floor`` (0.5); ``--only`` one interviewer, ``--checkpoint`` one of the
two.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.evaluation.interviewing import interviewed
from pytest_adaptive_eval.evaluation.tables import InterviewTable
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.baseline import read_baseline

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
RECORDED = FIXTURES / "responses" / "released-text.csv.gz"
THRESHOLD = 0.6


def judged(bank: ItemBank, scores: NDArray[np.float64], policy: Callable[[int], Policy], seeds: int) -> str:
    """Verdicts and questions asked, over seeds."""
    claim = Claim(THRESHOLD * len(bank), 0.95)
    outcomes, asked, fallbacks, chosen = [], [], 0, 0
    for seed in range(seeds):
        session = Session(bank, policy(seed), seed=seed, claims=[claim], family=1)
        while (proposal := session.ask()) is not None:
            session.tell(scores[proposal.items])
        outcomes.append(int(decide(session.log(), [claim]).outcome[0]))
        asked.append(session.asked)
        fallbacks += int(session.account.get("fallbacks", 0))
        chosen += int(session.account.get("chosen", 0))
        session.close()
    said = f", {chosen} choices, {fallbacks} fallbacks" if chosen else ""
    return (
        f"PASS {outcomes.count(1)}, FAIL {outcomes.count(-1)}, INCONCLUSIVE {outcomes.count(0)} of {seeds}; "
        f"{np.mean(asked):.0f} questions, at most {max(asked)}, of {len(bank)}{said}"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--budget", default="20%")
    parser.add_argument("--floor", type=float, default=0.5)
    parser.add_argument("--checkpoint", nargs="+", default=["text-late", "text-regressed"])
    parser.add_argument("--only", choices=("code", "model", "decide"))
    options = parser.parse_args()
    bank = read_bank(FIXTURES / "banks" / "text.bank")
    plain = replace(POLICIES["decide"], budget=options.budget, floor=options.floor)

    with tempfile.TemporaryDirectory() as folder:

        def led(table: InterviewTable, seed: int) -> Policy:
            selector, *_ = interviewed(
                table,
                bank,
                (FIXTURES / "checkpoints",),
                cache=Path(folder) / "cache",
                decisions=Path(folder) / f"{seed}.jsonl",
                seed=seed,
            )
            return replace(plain, selector=selector, batch=1)

        ways: dict[str, Callable[[int], Policy]] = {
            "code": lambda seed: led(InterviewTable(encoder="clip"), seed),
            "model": lambda seed: led(
                InterviewTable(encoder="clip", interviewer="interviewer", sort_candidates=True), seed
            ),
            "decide": lambda _: plain,
        }
        for name in options.checkpoint:
            scores = read_baseline(f"{RECORDED}#{name}", (Path("/"),), bank, "text").baseline.scores
            print(f"{name}: accuracy {scores.mean():.3f}, {THRESHOLD} required", flush=True)
            for way, policy in ways.items():
                if options.only in (None, way):
                    print(f"  {way:7} {judged(bank, scores, policy, options.seeds)}", flush=True)


if __name__ == "__main__":
    main()
