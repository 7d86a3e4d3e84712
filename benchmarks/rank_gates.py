"""Gates on ranks, for models like the recorded ones and unlike them, on real response matrices.

``python benchmarks/rank_gates.py`` calibrates a bank from recorded models, makes five kinds of candidates of the other
ones, and asks of each whether it is within the first k of the recorded models, for ranks k up to three places on either
side of its true rank. It counts wrong verdicts, verdicts and questions, at the defaults and by the policy ``estimate``.
``at_least`` at the same threshold has the same claim, which the command checks, so all its numbers are the same.

The kinds: ``ordinary``; ``lost at random``, a fifth of its answers; ``lost the hard half`` of the items by their
difficulty; ``reversed``, as many right answers on the hardest items; ``half known``, right on a random half of the
items and as before on the others. They are made of the better half of the other models, and those that know a half of
the weaker one. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from interval_coverage import MATRICES, NAMES, bank_of, fit_map, sides
from numpy.typing import NDArray

from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import default_budget
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.items.bank import ItemBank

Array = NDArray[np.float64]
KINDS = ("ordinary", "lost at random", "lost the hard half", "reversed", "half known")
POLICIES_TRIED = {"decide": POLICIES["decide"], "estimate": POLICIES["estimate"].feeding_gates()}
PLACES = 3  #: Ranks on either side of the true one.


def ranked_bank(name: str) -> tuple[ItemBank, Array]:
    """Return a bank with the accuracies of its models, and the scores of the other models."""
    calibrating, others = sides(name, "train")
    calibrating = np.nan_to_num(calibrating)
    accuracies = tuple(calibrating.mean(axis=1).tolist())
    names = tuple(f"m{n}" for n in range(len(accuracies)))
    return replace(bank_of(fit_map(calibrating)), subjects=names, accuracies=accuracies), np.nan_to_num(others)


def candidate(kind: str, scores: Array, bank: ItemBank, rng: np.random.Generator) -> Array:
    """Return the scores of a candidate that is made of another one's."""
    n, hardness = len(scores), np.argsort(-bank.difficulty)
    made = scores.copy()
    if kind == "lost at random":
        made[rng.random(n) < 0.2] = 0.0
    elif kind == "lost the hard half":
        made[hardness[: n // 2]] = 0.0
    elif kind == "reversed":
        made[:] = 0.0
        made[hardness[: round(scores.sum())]] = 1.0
    elif kind == "half known":
        made[rng.permutation(n)[: n // 2]] = 1.0
    return made


def interview(
    bank: ItemBank, policy: Policy, condition: Condition, scores: Array, runs: int, seed: int
) -> tuple[Array, Array]:
    """Return outcomes (1, -1 or 0) and questions of several interviews of a candidate."""
    (claim,) = condition.claims(bank, {})
    same = Condition("accuracy", "at_least", claim.total / len(bank)).claims(bank, {})[0]
    assert abs(same.total - claim.total) < 1e-9
    assert replace(same, total=claim.total) == claim
    if policy.stop == "decision":
        policy = replace(policy, budget=default_budget([condition], bank, policy))
    session = Session(bank, policy, seed=range(seed, seed + runs), subjects=runs, claims=[claim], family=1)
    while (proposal := session.ask()) is not None:
        session.tell(scores[proposal.items])
    outcome = decide(session.logs(), [claim], 1).outcome[:, 0]
    return outcome.astype(float), session.stopped_at.astype(float)


def measure(name: str, candidates: int, runs: int) -> None:
    """Print the figures of one matrix."""
    bank, others = ranked_bank(name)
    known = np.array(bank.accuracies)
    order = np.argsort(-others.mean(axis=1))
    for policy_name, policy in POLICIES_TRIED.items():
        for kind in KINDS:
            rng = np.random.default_rng(1)
            counts: dict[str, list[float]] = defaultdict(list)
            half = order[len(order) // 2 :] if kind == "half known" else order[: len(order) // 2]
            for number, base in enumerate(rng.choice(half, candidates).tolist()):
                scores = candidate(kind, others[base], bank, rng)
                accuracy = scores.mean()
                rank = 1 + int((known > accuracy + 1e-9).sum())
                for k in range(max(rank - PLACES, 1), min(rank + PLACES, len(known) + 1)):
                    condition = Condition("accuracy", "rank_within", k)
                    outcome, asked = interview(bank, policy, condition, scores, runs, 1000 * number)
                    wrong = outcome == (-1.0 if k >= rank else 1.0)
                    counts["FAIL" if k >= rank else "PASS"] += wrong.tolist()
                    counts["decided"] += (outcome != 0).tolist()
                    counts["asked"] += asked.tolist()
            rates = []
            for side in ("PASS", "FAIL"):
                trials = len(counts[side])
                most = 0.05 + 3.0 * (0.05 * 0.95 / max(trials, 1)) ** 0.5
                rate = float(np.mean(counts[side])) if trials else 0.0
                rates.append(f"wrong {side} {rate:.3f} of {trials} (at most {most:.3f}){' EXCEEDED' * (rate > most)}")
            print(
                f"{name:18} {policy_name:8} {kind:19} {', '.join(rates)}; decided {np.mean(counts['decided']):.3f}, "
                f"questions {np.mean(counts['asked']):.0f} of {len(bank)}",
                flush=True,
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=[*NAMES, "swebench_verified"], choices=[*NAMES, *MATRICES])
    parser.add_argument("--candidates", type=int, default=20, help="candidates of each kind")
    parser.add_argument("--runs", type=int, default=5, help="interviews of a candidate at each threshold")
    options = parser.parse_args()
    for name in options.data:
        measure(name, options.candidates, options.runs)


if __name__ == "__main__":
    main()
