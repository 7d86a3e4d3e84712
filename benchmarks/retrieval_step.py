"""Time and memory of one retrieval step of AutoJudger over a large bank, against one matrix-vector product.

A step is what happens between two questions of one subject: the answer is told, the distance of every item to the
nearest question is brought up to date, the window is laid around the ability, and the farthest items in it are offered
to the interviewer without a model, who picks one. The product is that of the embeddings with one vector, laid out as
the interview keeps them, and for comparison as they mostly come, an item a row. The three take turns; medians.
``--from-scratch`` also times what keeping the distances up spares: the smallest distance to all questions, anew.

Run as ``python benchmarks/retrieval_step.py [--items 100000] [--dimensions 512] [--threads 2]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--items", type=int, default=100_000)
parser.add_argument("--dimensions", type=int, default=512)
parser.add_argument("--threads", default="2")
parser.add_argument("--repeats", type=int, default=60)
parser.add_argument("--asked", type=int, default=30, help="questions before the first timed one")
parser.add_argument("--from-scratch", action="store_true")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = options.threads

import numpy as np

from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.interviewer.autojudger import AutoJudger, AutoJudgerInterview
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    work()
    return 1000.0 * (time.perf_counter() - start)


def main() -> None:
    """Print the table."""
    n, d, repeats, asked = options.items, options.dimensions, options.repeats, options.asked
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, d)).astype(np.float32)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    across, vector = np.ascontiguousarray(points.T, dtype=np.float64), points[0].copy()
    ids = [f"q{i}" for i in range(n)]
    items = [Item(name, category=(f"topic {i % 40}",)) for i, name in enumerate(ids)]
    bank = ItemBank("bench", ids, items, np.ones(n), rng.normal(size=n))
    right = (rng.random(n) < 0.5).astype(float)
    tracemalloc.start()
    session = Session(bank, Policy(AutoJudger(points, first="random"), 0.0, budget=asked + repeats + 1))
    steps: dict[str, list[float]] = {
        name: [] for name in ("product", "an item a row", "told", "picked", "ask and tell")
    }
    while session.asked < asked:
        proposal = session.ask()
        assert proposal is not None
        session.tell(right[proposal.items])
    interview = session._selector_session
    assert isinstance(interview, AutoJudgerInterview)
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    told, rate = interview.record_scores, interview.criterion
    for _ in range(repeats):
        steps["product"].append(clocked(lambda: vector.astype(np.float64) @ across))
        steps["an item a row"].append(clocked(lambda: points @ vector))
        inner = {"told": 0.0, "picked": 0.0}

        def timed_told(items, scores, inner=inner):  # type: ignore[no-untyped-def]
            inner["told"] += clocked(lambda: told(items, scores))

        def timed_rate(view, inner=inner):  # type: ignore[no-untyped-def]
            start = time.perf_counter()
            found = rate(view)
            inner["picked"] += 1000.0 * (time.perf_counter() - start)
            return found

        interview.record_scores, interview.criterion = timed_told, timed_rate  # type: ignore[method-assign]

        def step() -> None:
            proposal = session.ask()
            assert proposal is not None
            session.tell(right[proposal.items])

        steps["ask and tell"].append(clocked(step))
        for name, taken in inner.items():
            steps[name].append(taken)
    middle = {name: statistics.median(values) for name, values in steps.items()}
    whole = statistics.median(a + b for a, b in zip(steps["told"], steps["picked"], strict=True))
    print(f"{n} items x {d} dimensions, {options.threads} threads, medians of {repeats}, milliseconds")
    print(f"  one product, laid out as the interview keeps them   {middle['product']:6.2f}")
    print(f"  one product, an item a row                          {middle['an item a row']:6.2f}")
    print(f"  distances brought up to date                        {middle['told']:6.2f}")
    print(f"  window, candidates, choice                          {middle['picked']:6.2f}")
    print(
        f"  retrieval step, both                                {whole:6.2f} = {whole / middle['product']:.2f} products"
    )
    print(f"  ask and tell, the ability estimated and all         {middle['ask and tell']:6.2f}")
    print(f"  memory: {8 * n * d / 2**20:.0f} MiB of embeddings, {8 * n / 2**20:.1f} MiB of distances a subject")
    print(f"  the session and its interview took {kept / 2**20:.0f} MiB, {most / 2**20:.0f} MiB at their height")
    if options.from_scratch:
        chosen = points[session.answers[0][0]]
        taken = statistics.median(clocked(lambda: (chosen @ across).max(axis=0)) for _ in range(9))
        print(f"  distances to all {len(chosen)} questions, anew                   {taken:6.2f}")


if __name__ == "__main__":
    main()
