"""Ladders of the fixture checkpoints: areas by training, and a paired gate on the one task that was lost.

``python benchmarks/ladder_gates.py [--seeds 10] [--queries 50]`` climbs every task that the text checkpoints were
trained on with the early, the mid and the late one, and with one that lost addition alone, on the same questions.
Printed are the areas, in how many seeds early < mid < late, and the verdicts of ``auc.not_worse_than(late,
margin=0.5)``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np

from pytest_adaptive_eval.ladder.result import Ladder, difference
from pytest_adaptive_eval.models.checkpoint.model import TransformersModel
from pytest_adaptive_eval.tasks import FAMILIES

CHECKPOINTS = Path(__file__).resolve().parent.parent / "fixtures" / "checkpoints"
#: Hardest level asked: that of the training, and two or three more where the family goes on.
TASKS = {"counting": 8, "addition": 5, "operations": 8, "post_order": 8, "unscramble": 6}
NAMES = ("text-early", "text-mid", "text-late", "text-regressed-addition")
MARGIN, CONFIDENCE = 0.5, 0.95


def climb(subject: TransformersModel, task: str, seed: int, queries: int) -> Ladder:
    """The ladder of one subject, which ends at a level without a right answer."""
    family, levels = FAMILIES[task].in_terse_form(), []
    for level in range(1, TASKS[task] + 1):
        items = [family.item(level, seed * queries + k) for k in range(queries)]
        answers = subject.answer(items)
        pairs = zip(items, answers, strict=True)
        levels.append(np.array([item.grade(a.text) if a.status == "ok" else 0.0 for item, a in pairs]))
        if not levels[-1].any():
            break
    return Ladder(tuple(levels), TASKS[task])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--queries", type=int, default=50)
    arguments = parser.parse_args()
    subjects = {name: TransformersModel.load(CHECKPOINTS / name, max_tokens=16, batch_size=64) for name in NAMES}
    verdicts: dict[str, Counter[str]] = {task: Counter() for task in TASKS}
    ordered: Counter[str] = Counter()
    for seed in range(100, 100 + arguments.seeds):
        for task in TASKS:
            early, mid, late, lost = (climb(subject, task, seed, arguments.queries) for subject in subjects.values())
            ordered[task] += early.area < mid.area < late.area
            found = difference(lost, late, CONFIDENCE, "zero")
            verdict = "PASS" if found.low >= -MARGIN else "FAIL" if found.high < -MARGIN else "INCONCLUSIVE"
            verdicts[task][verdict] += 1
            print(
                f"seed {seed} {task:10} early {early} mid {mid} late {late}; lost addition {lost}: {verdict} "
                f"[{found.low:.2f}, {found.high:.2f}]",
                flush=True,
            )
    print(f"\n{'task':12} early < mid < late   auc.not_worse_than(late, margin={MARGIN})")
    for task in TASKS:
        print(f"{task:12} {ordered[task]:>8} of {arguments.seeds:<8} {dict(verdicts[task])}")


if __name__ == "__main__":
    main()
