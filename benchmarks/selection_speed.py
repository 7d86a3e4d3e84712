"""Time of one adaptive step against catsim: choosing the next item, and estimating ability after its answer.

A step is ``Session.ask`` and ``Session.tell`` with 30 items answered already, on a two-parameter bank. catsim (``pip
install catsim``) does the same work with ``MaxInfoSelector.select`` and ``NumericalSearchEstimator.estimate``, called
with bank, answers and ability as its documentation has it, and once before it is timed. The three take turns, so that
whatever else runs on the machine weighs on all of them; medians of CPU time are shown.

Run as ``python benchmarks/selection_speed.py [--repeats 60] [--subjects]``. ``--replays`` times instead interviews of
subjects from recorded scores over a fifth of a bank, in step and in sessions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration import replay
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import MaximumInformation
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

ANSWERED = 30
SIZES = (1_000, 10_000, 100_000)


def make_bank(n: int) -> tuple[ItemBank, NDArray[np.float64]]:
    """A bank of `n` items, and their right answers' draw for a subject of ability 0.3."""
    rng = np.random.default_rng(n)
    a, b = rng.lognormal(0.0, 0.3, n), rng.normal(0.0, 1.0, n)
    ids = [str(i) for i in range(n)]
    bank = ItemBank("bench", ids, [Item(i) for i in ids], a, -a * b)
    right = (rng.random(n) < 1.0 / (1.0 + np.exp(-a * (0.3 - b)))).astype(float)
    return bank, right


def seconds(work: Callable[[], object]) -> float:
    """CPU time of this thread for one call; what catsim's numexpr does in other threads is left out, in its favour."""
    start = time.thread_time()
    work()
    return time.thread_time() - start


def answered(bank: ItemBank, policy: Policy, right: NDArray[np.float64], subjects: int = 1, seed: int = 0) -> Session:
    """A session in which 30 items are answered."""
    session = Session(bank, policy, seed=seed, subjects=subjects)
    while session.asked < ANSWERED:
        step(session, right)
    return session


def step(session: Session, right: NDArray[np.float64]) -> None:
    """One question and its answer."""
    proposal = session.ask()
    assert proposal is not None
    session.tell(right.take(proposal.items))


def against_catsim(n: int, repeats: int) -> tuple[float, float, float]:
    """Median seconds a step: maximum information, the policy ``decide``, and catsim."""
    from catsim.estimation import NumericalSearchEstimator
    from catsim.item_bank import ItemBank as CatsimBank
    from catsim.selection import MaxInfoSelector

    bank, right = make_bank(n)
    greedy = Policy(selector=MaximumInformation(), floor=0.0, budget=ANSWERED + 1)
    decide = Policy(POLICIES["decide"].selector, POLICIES["decide"].floor, budget=ANSWERED + 1)
    items = np.column_stack([bank.discrimination[:, 0], bank.difficulty, np.zeros(n), np.ones(n)])
    theirs, selector, estimator = CatsimBank(items), MaxInfoSelector(), NumericalSearchEstimator()
    times: tuple[list[float], list[float], list[float]] = ([], [], [])

    def theirs_step(asked: list[int], answers: list[bool], theta: float) -> None:
        selector.select(item_bank=theirs, administered_items=asked, est_theta=theta)
        estimator.estimate(item_bank=theirs, administered_items=asked, response_vector=answers, est_theta=theta)

    for repeat in range(repeats):
        before = answered(bank, greedy, right, seed=repeat)
        asked = before.log().items.tolist()
        state = (asked, [bool(r) for r in right[asked]], float(before.estimate.theta[0, 0]))
        theirs_step(*state)  # each is warm when it is timed
        times[2].append(seconds(partial(theirs_step, *state)))
        for policy, taken in zip((greedy, decide), times[:2], strict=True):
            taken.append(seconds(partial(step, answered(bank, policy, right, seed=repeat), right)))
    return statistics.median(times[0]), statistics.median(times[1]), statistics.median(times[2])


def many_subjects(n: int, subjects: int, repeats: int) -> float:
    """Median seconds a step of the policy ``decide`` for `subjects` subjects at once."""
    bank, right = make_bank(n)
    policy = Policy(POLICIES["decide"].selector, POLICIES["decide"].floor, budget=ANSWERED + repeats)
    session = answered(bank, policy, right, subjects)
    return statistics.median(seconds(lambda: step(session, right)) for _ in range(repeats))


def replays(subjects: int, n: int) -> None:
    """Print the CPU seconds of replayed interviews, in step and in sessions."""
    bank, _ = make_bank(n)
    rng = np.random.default_rng(1)
    scores = (rng.random((subjects, n)) < bank.probability(rng.standard_normal((subjects, 1)))).astype(float)
    interviews = {
        "estimate": replace(POLICIES["estimate"], assisted=False),
        "draws of decide": replace(POLICIES["decide"], stop="budget"),
    }
    for name, policy in interviews.items():
        seeds, policies = list(range(subjects)), [replace(policy, budget="20%")]
        work = partial(replay.replay_each, bank, policies, scores, seed=seeds, designed=False)
        taken = {"in step": seconds(work)}
        with patch.object(replay, "servable", lambda *_: False):
            taken["in sessions"] = seconds(work)
        _show(subjects, n, name, taken)


def _show(subjects: int, n: int, what: str, taken: dict[str, float]) -> None:
    print(f"{subjects} x {n} {what}: " + ", ".join(f"{name} {s:.2f} s" for name, s in taken.items()), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--subjects", action="store_true", help="also time many subjects at once")
    parser.add_argument("--replays", action="store_true", help="time replayed interviews")
    arguments = parser.parse_args()
    if arguments.replays:
        for subjects, n in ((60, 500), (60, 3000), (60, 10_000)):
            replays(subjects, n)
        return
    print("microseconds a step (ask + tell, 30 answered), medians; x = times faster than catsim")
    print(f"{'items':>8} {'catsim':>10} {'max. information':>18} {'x':>6} {'decide':>10} {'x':>6}")
    for n in SIZES:
        greedy, decide, theirs = against_catsim(n, max(5, arguments.repeats if n <= 10_000 else arguments.repeats // 4))
        print(
            f"{n:>8} {theirs * 1e6:>10.0f} {greedy * 1e6:>18.1f} {theirs / greedy:>6.0f} "
            f"{decide * 1e6:>10.1f} {theirs / decide:>6.0f}",
            flush=True,
        )
    if arguments.subjects:
        print(f"\n{'items':>8} {'subjects':>9} {'us a step':>12} {'us a subject':>13}")
        for n in SIZES[:2]:
            for subjects in (1, 17, 100, 1000):
                taken = many_subjects(n, subjects, 7)
                print(f"{n:>8} {subjects:>9} {taken * 1e6:>12.0f} {taken * 1e6 / subjects:>13.1f}", flush=True)


if __name__ == "__main__":
    main()
