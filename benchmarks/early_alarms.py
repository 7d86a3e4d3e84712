"""False alarms and delays of the drift monitor from the second run on, and of both alarms together.

``python benchmarks/early_alarms.py normal`` watches normal series whose level is steady or rises, whose runs vary by
1.4 of their errors, or whose noise has heavy tails. It then takes falls of 1 to 6 errors, after 4, 10 and 30 runs, and
slow declines. ``interviews`` does the same with interviews of models that sample their answers, on 20, 60 and 100 % of
the text bank, steady and rising, with the ability alone and with five categories. One model answers as the bank's
model has it; the other one as a released checkpoint of the fixtures did, with a fifth of the answers changed.

An alarm within the first ten runs is *early*; later ones are of the level that was *learned*.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from drift_alarms import ROOT, Array, recorded
from drift_alarms import series as series_of
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.policy import FIXED_FORM, POLICIES, Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.inference.sampling import mean_of_draws, sampling_error, standard_error
from pytest_adaptive_eval.irt.estimation import sandwich_error
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.drift import BASELINE, Alarm, Series, SeriesPoint, monitor

LENGTHS = (5, 20, 100, 400)
DELAYS = (1, 3, 8, 15)
CHANGED = 0.2  #: Share of a recorded checkpoint's answers that a run changes.
Draws = Callable[[np.random.Generator, int, int], Array]


def steady(rng: np.random.Generator, runs: int, count: int) -> Array:
    return rng.standard_normal((runs, count))


def rising(rng: np.random.Generator, runs: int, count: int) -> Array:
    """A level that rises by a fifth of an error each run for forty runs, and stays there."""
    return steady(rng, runs, count) + 0.2 * np.minimum(np.arange(runs), 40)[:, None]


def wide(rng: np.random.Generator, runs: int, count: int) -> Array:
    return 1.4 * steady(rng, runs, count)


def heavy(rng: np.random.Generator, runs: int, count: int) -> Array:
    """Student's t with 3 degrees of freedom, at variance 1."""
    return rng.standard_t(3, (runs, count)) / 3.0**0.5


def skewed(rng: np.random.Generator, runs: int, count: int) -> Array:
    """Exponential noise, whose tail is towards falls."""
    return 1.0 - rng.exponential(size=(runs, count))


KINDS: dict[str, Draws] = {
    "steady": steady,
    "rising by .2 errors a run": rising,
    "varies by 1.4 errors": wide,
    "Student's t(3)": heavy,
    "exponential, towards falls": skewed,
}


def watched(values: Array, errors: Array) -> list[Alarm]:
    """All alarms of one history."""
    return monitor(series_of(values, errors))


def shares(histories: Sequence[Sequence[Alarm]], runs: int) -> str:
    """Cells: shares of histories with an early, a later and any alarm, and later alarms in 1 000 runs."""
    early = [any(alarm.at < BASELINE for alarm in alarms) for alarms in histories]
    late = [sum(alarm.at >= BASELINE for alarm in alarms) for alarms in histories]
    either = [bool(alarms) for alarms in histories]
    rate = 1000.0 * sum(late) / max(len(late) * (runs - BASELINE), 1)
    cells = [np.mean(early), np.mean(np.array(late) > 0), np.mean(either)]
    return " | ".join([*(f"{cell:.4f}" for cell in cells), f"{rate:.2f}" if runs > BASELINE else "-"])


def false_alarms(scale: int) -> None:
    print("| noise | series | runs | histories | early | learned | either | learned, in 1 000 runs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for kind, draws in KINDS.items():
        for count in (1, 6):
            rng = np.random.default_rng(5)
            for runs in LENGTHS:
                number = scale * (4000 if runs <= 20 else 40_000 // runs) // (1 if count == 1 else 2)
                errors = np.ones((runs, count))
                found = [watched(draws(rng, runs, count), errors) for _ in range(number)]
                print(f"| {kind} | {count} | {runs} | {number} | {shares(found, runs)} |", flush=True)


def found_within(alarms: Sequence[Sequence[Alarm]], since: int) -> str:
    """Cells: the median delay of the first alarm from a run on, and shares within some runs; both counted in."""
    delays = []
    for found in alarms:
        at = [alarm.at - since + 1 for alarm in found if alarm.at >= since]
        delays.append(min(at, default=np.inf))
    median = np.median(delays)
    cells = [f"{np.mean(np.array(delays) <= most):.3f}" for most in DELAYS]
    return " | ".join([f"{median:.0f}" if np.isfinite(median) else "none", *cells])


def falls(scale: int) -> None:
    heads = " | ".join(f"within {most}" for most in DELAYS)
    print(f"\n| fall | after runs | series | median delay | {heads} |")
    print(f"| --- | --- | --- | --- | {' | '.join('---' for _ in DELAYS)} |")
    for size in (1, 2, 3, 4, 6):
        for before in (4, 10, 30):
            for count in (1, 6):
                rng = np.random.default_rng(6)
                found = []
                for _ in range(1000 * scale // count):
                    values = steady(rng, before + 20, count)
                    values[before:] -= size  # all series of the evaluation
                    found.append(watched(values, np.ones_like(values)))
                print(f"| {size} | {before} | {count} | {found_within(found, before)} |", flush=True)
    for slope in (0.25, 0.5, 1.0):
        rng = np.random.default_rng(6)
        found = []
        for _ in range(1000 * scale):
            values = steady(rng, 24, 1) - slope * np.arange(24)[:, None]
            found.append(watched(values, np.ones_like(values)))
        print(f"| {slope} each run | 1 | 1 | {found_within(found, 1)} |", flush=True)


# --- interviews -------------------------------------------------------------------------------------------------------


def points(
    bank: ItemBank, policy: Policy, scores: Array, seed: int, *, alone: bool
) -> list[list[tuple[float, float, float]]]:
    """Value, standard error and sampling error of the ability, for each row of scores; of categories unless `alone`.

    A fixed form is drawn and estimated at once, since no draw depends on an answer.
    """
    found = []
    uniform = policy.selector.name == "random"
    codes = np.unique(bank.categories, return_inverse=True)[1]
    for start in range(0, len(scores), 400):
        rows = scores[start : start + 400]
        if uniform:
            rng = np.random.default_rng([seed, start])
            order = rng.permuted(np.tile(np.arange(len(bank)), (len(rows), 1)), axis=1)
            items = order[:, : int(policy.budget)]
            asked = np.take_along_axis(rows, items, axis=1)
            begun = policy.estimator.prior(len(rows), 1)
            estimate = policy.estimator.estimate(asked, bank.discrimination[items], bank.intercept[items], None, begun)
        else:
            seeds = list(range(seed + start, seed + start + len(rows)))
            session = Session(bank, policy, seed=seeds, subjects=len(rows))
            while (proposal := session.ask()) is not None:
                session.tell(np.take_along_axis(rows, proposal.items, axis=1))
            items = np.stack([session.log(s).items for s in range(len(rows))])
            asked, estimate = np.take_along_axis(rows, items, axis=1), session.estimate
        sampled = sandwich_error(estimate, asked, bank.discrimination[items], bank.intercept[items], None)
        for s in range(len(rows)):
            error = float(estimate.standard_error[s, 0])
            run = [(float(estimate.theta[s, 0]), error, max(error, float(sampled[s, 0])))]
            for code in range(codes.max() + 1) if uniform and not alone else ():
                log = uniform_draws(asked[s, codes[items[s]] == code], int((codes == code).sum()))
                drawn, new = standard_error(log), sampling_error(log.scores)
                run.append((mean_of_draws(log), drawn or new, max(drawn, new)))
            found.append(run)
    return found


def series(runs: Sequence[Sequence[tuple[float, float, float]]], count: int) -> list[Series]:
    """The first series of a history of runs."""
    out = []
    for k in range(count):
        measured = []
        for n, run in enumerate(runs):
            value, error, sampled = run[k]
            measured.append(SeriesPoint(f"r{n:03}", f"r{n:03}", "s", "", value, error, sampling_error=sampled))
        out.append(Series("e", "b", "h", "s", "accuracy" if k else "ability", f"c{k}" if k else "", tuple(measured)))
    return out


def interviews(number: int, cells: str, *, alone: bool) -> None:
    bank = read_bank(ROOT / "fixtures" / "banks" / "text.bank")
    name, answers = max(recorded(bank).items(), key=lambda entry: -abs(entry[1].mean() - 0.6))
    runs = 40

    def by_model(theta: Array) -> Array:
        return np.asarray(bank.probability(theta[:, None]))

    def by_checkpoint(theta: Array) -> Array:
        """Wrong answers become right with the rise of the ability, in place of a fifth."""
        right = np.where(theta > theta[0], CHANGED + 0.2 * (theta - theta[0]), CHANGED)
        return np.where(answers > 0.5, 1.0 - CHANGED, right[:, None])

    print(f"\nInterviews on the {len(bank)} items of the text bank; the checkpoint is {name}.")
    print("| model | level | policy | share of the bank | series | early | learned | either | learned, in 1 000 runs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    levels: dict[str, Array] = {"steady": np.full(runs, 1.0), "rising": np.linspace(0.5, 1.5, runs)}
    for model, chances in (("the bank's", by_model), ("checkpoint", by_checkpoint)):
        for level, theta in levels.items():
            p = chances(theta)
            for share in (0.2, 0.6, 1.0):
                for label in (FIXED_FORM, "decide"):
                    if share > 0.2 and label == "decide":
                        continue
                    name_of_cell = f"{model} | {level} | {label} | {share:.0%}"
                    if cells not in name_of_cell:
                        continue
                    policy = replace(POLICIES[label], stop="budget", budget=round(share * len(bank)))
                    rng = np.random.default_rng(7)
                    drawn = (rng.random((number, *p.shape)) < p).astype(float)
                    rows: NDArray[np.float64] = drawn.reshape(-1, len(bank))
                    held = points(bank, policy, rows, 0, alone=alone)
                    for count in (1, 6)[: min(len(held[0]), 2)]:
                        found = []
                        for h in range(number):
                            found.append(monitor(series(held[h * runs : (h + 1) * runs], count)))
                        print(f"| {name_of_cell} | {count} | {shares(found, runs)} |", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("normal", "interviews"))
    parser.add_argument("--scale", type=int, default=1, help="times as many normal draws")
    parser.add_argument("--histories", type=int, default=200, help="histories of interviews per row")
    parser.add_argument("--cells", default="", help="only rows of interviews that contain this text")
    parser.add_argument(
        "--alone", action="store_true", help="abilities without categories, which take most of the time"
    )
    options = parser.parse_args(arguments)
    if options.what == "normal":
        false_alarms(options.scale)
        falls(options.scale)
    else:
        interviews(options.histories, options.cells, alone=options.alone)


if __name__ == "__main__":
    main()
