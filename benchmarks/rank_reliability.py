"""Whether stated probabilities of ranks come true, on real response matrices.

``python benchmarks/rank_reliability.py`` draws splits of 60 calibration and 17 test models of AI2D and MMMU, duplicates
on one side, calibrates a bank on the former with its replayed errors, and interviews the latter at 5 % of the items. Of
each test model it states how probable it is among the first 3, 10, 20 and 30 of the calibration models, and above those
at four places of their order. It prints, by tenths of what is stated, the mean stated, how often it was so, with the
standard error over splits of their difference, and the number of statements; and the Brier skill over the base rate of
each kind of statement: 0 is to know the base rates only, 1 is to know all.

The predictive distributions: ``replayed`` errors of the policy, the same ``level``, without regard to the projections
they are of, and a ``normal`` of the projection with the bank's own error. ``--pool others`` (the default) leaves out
the 17 test models of the AutoJudger paper, ``--pool paper`` takes its 77 models. The matrices are looked for in
``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from backtests import BENCHMARKS, draw, read
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.recipe import Recipe
from pytest_adaptive_eval.calibration.replay import conformal_tables, replay
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.conformal import Conformal, conformal_scale
from pytest_adaptive_eval.inference.ranks import Predictive, rank_probability
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.responses import Responses

POLICY_NAMES = ("estimate", "decide")
FIRST = (3, 10, 20, 30)
#: Places of the named calibration models, by the share of the others that they are above.
PLACES = (0.25, 0.5, 0.75, 0.9)

#: By (policy, method): the kind of a statement, what is stated, whether it was so, and the split.
Statements = dict[tuple[str, str], list[tuple[str, float, float, int]]]


def predictives(session: Session, table: Conformal) -> Iterator[dict[str, Predictive]]:
    """Of each subject of an ended session, by method."""
    accuracy, error = session.projection()
    scale = conformal_scale(accuracy, error, session.stopped_at, len(session.bank))
    for s in range(session.subjects):
        yield {
            "replayed": Predictive.replayed(table, float(accuracy[s]), float(scale[s])),
            "replayed, level": Predictive.replayed(replace(table, projected=()), float(accuracy[s]), float(scale[s])),
            "normal": Predictive.normal(float(accuracy[s]), float(error[s])),
        }


def state(responses: Responses, seed: int, budget: str, out: Statements) -> None:
    """Calibrate and interview by one split."""
    split = draw(responses, seed, shift=False)
    train, scores = responses.of(split.train), responses.scores[split.test]
    known, truth = train.scores.mean(axis=1), scores.mean(axis=1)
    named = np.quantile(known, PLACES, method="nearest")

    def made(learn: NDArray[np.float64]) -> ItemBank:
        return Recipe("2pl").fit_completely(learn).bank("b", responses.items)

    bank = made(train.scores)
    policies = [replace(POLICIES[name], budget=budget) for name in POLICY_NAMES]
    tables = conformal_tables(train, lambda part: made(part.scores), policies, bank=bank, seed=seed)
    for policy_name, policy, table in zip(POLICY_NAMES, policies, tables, strict=True):
        session = replay(bank, policy, scores, seed=[1000 * seed + int(s) for s in split.test])
        for true, methods in zip(truth, predictives(session, table), strict=True):
            better = ((known > true) + 0.5 * (known == true)).sum()
            for method, some in methods.items():
                statements = out[policy_name, method]
                for k in FIRST:
                    stated = rank_probability(some, known, k)
                    statements.append((f"among the first {k}", stated, float(better < k), seed))
                for place, other in zip(PLACES, named, strict=True):
                    seen = 0.5 * (float(true > other) + float(true >= other))
                    statements.append((f"above the {place:.0%} model", rank_probability(some, [other], 1), seen, seed))


def show(label: str, statements: list[tuple[str, float, float, int]]) -> None:
    """The reliability table of a method."""
    kinds, *numbers = zip(*statements, strict=True)
    stated, seen, split = map(np.array, numbers)
    kind = np.unique(kinds, return_inverse=True)[1]
    base = (np.bincount(kind, seen) / np.bincount(kind))[kind]
    missed, trivial = (stated - seen) ** 2, (base - seen) ** 2
    by_kind = 1.0 - np.bincount(kind, missed) / np.bincount(kind, trivial)
    tenth = np.minimum((10 * stated).astype(np.int64), 9)
    gap = np.abs(np.bincount(tenth, stated - seen, 10)).sum() / len(stated)
    print(
        f"{label}: Brier skill {1.0 - missed.sum() / trivial.sum():.3f}, least of a kind {by_kind.min():.3f}; mean gap "
        f"between stated and seen {gap:.4f}"
    )
    for part in range(10):
        here = tenth == part
        if here.any():
            error = np.bincount(split[here], (seen - stated)[here])
            print(
                f"    {part / 10:.1f}-{(part + 1) / 10:.1f}  stated {stated[here].mean():.3f}  seen "
                f"{seen[here].mean():.3f} +- {np.sqrt((error**2).sum()) / here.sum():.3f}  of {here.sum()}"
            )


def main() -> None:
    """Interview and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--benchmark", nargs="+", choices=list(BENCHMARKS), default=list(BENCHMARKS))
    parser.add_argument("--pool", choices=("others", "paper", "all"), default="others")
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--budget", default="5%")
    options = parser.parse_args()
    for benchmark in options.benchmark:
        start = time.perf_counter()
        responses = read(benchmark, options.pool)
        out: Statements = defaultdict(list)
        for seed in range(options.splits):
            state(responses, seed, options.budget, out)
        print(
            f"{benchmark}, pool {options.pool}, {options.splits} splits, {options.budget} of the items, "
            f"{time.perf_counter() - start:.0f} s"
        )
        for (policy, method), statements in out.items():
            show(f"  {policy}, {method}", statements)


if __name__ == "__main__":
    main()
