"""False alarms and delays of the drift monitor, on normal draws and on interviews of the text bank.

``python benchmarks/drift_alarms.py normal`` compares the limits with long simulations, and runs `monitor` over
histories of six series whose truth stays, with standard errors that are right and ones that leave out half of the
variance, then over months with a drop of 3 standard errors after the ten runs that set the level. ``interviews`` does
the same with real interviews: every released checkpoint of the fixtures, as recorded, is interviewed 3 000 times by
each policy, and what a record would hold (its ability, and its accuracy in each of five categories) is watched.
``wandering`` watches 2 000 normal series of autocorrelation 0, .4 and .8, and steady measurements of a level that
wanders by one standard error with an autocorrelation of .8; and drops of 3 and 1 standard errors. The
stated rate is one alarm in 1 000 runs, over all series together.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.cat.policy import FIXED_FORM, POLICIES, Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.categories import by_category
from pytest_adaptive_eval.inference.betting import Claim
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.drift import BASELINE, Alarm, Series, SeriesPoint, limit, monitor

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "fixtures" / "responses" / "released-text.csv.gz"
Array = NDArray[np.float64]
STATED = 1000.0
SERIES = 6
#: Runs of a month, of which the first ten set the level.
MONTH = 30


def series(values: Array, errors: Array) -> list[Series]:
    """Histories from arrays of shape (runs, series); a value that is NaN was not measured."""
    out = []
    for k in range(values.shape[1]):
        points = tuple(
            SeriesPoint(f"r{n:05}", f"r{n:05}", "subject", "", float(values[n, k]), float(errors[n, k]))
            for n in range(len(values))
            if np.isfinite(values[n, k]) and errors[n, k] > 0
        )
        out.append(Series("e", "b", "h", "s", "accuracy" if k else "ability", f"c{k}" if k else "", points))
    return out


def watched(values: Array, errors: Array) -> list[Alarm]:
    """Alarms of one history after the runs that set the level; `early_alarms` has the earlier ones."""
    found = monitor(series(values, errors), average_run_length=STATED)
    return [alarm for alarm in found if alarm.at >= BASELINE]


def rate(label: str, alarms: int, runs: int) -> None:
    """One line on false alarms; the runs that set the level cannot alarm and are not counted."""
    low, high = (int(poisson.ppf(q, runs / STATED)) for q in (0.025, 0.975))
    fits = "within" if alarms <= high else "ABOVE"
    print(
        f"{label:72} {alarms:5} in {runs:7} runs, {1000 * alarms / runs:5.2f} in 1 000; {fits} the band {low}-{high}",
        flush=True,
    )


def delays(label: str, found: Sequence[float]) -> None:
    """One line on delays, the run that alarms counted in."""
    d = np.array(found)
    median = "none" if np.median(d) == np.inf else f"{np.median(d):.0f}"
    print(
        f"{label:72} median {median}, "
        f"{', '.join(f'{np.mean(d <= runs):.3f} within {runs}' for runs in (3, 6, 15))}; {len(d)} months",
        flush=True,
    )


def first(alarms: Sequence[Alarm], shift: int, only: int | None = None) -> float:
    """Runs from a shift to the first alarm after it, both counted in."""
    names = [
        a.series.points[a.at].run for a in alarms if only is None or a.series.category == (f"c{only}" if only else "")
    ]
    later = [int(name[1:]) for name in names if int(name[1:]) >= shift]
    return min(later) - shift + 1 if later else np.inf


# --- normal draws -----------------------------------------------------------------------------------------------------


def limits(rng: np.random.Generator) -> None:
    """Average run lengths of the plain sum, stated and simulated."""
    for length in (100.0, 1000.0, 6000.0, 60_000.0):
        h, s, alarms, steps = limit(length), np.zeros(20_000), 0, int(max(2000, length / 10))
        for _ in range(steps):
            s = np.maximum(0.0, s + rng.standard_normal(len(s)) - 1.0)
            over = s > h
            alarms += int(over.sum())
            s[over] = 0.0
        found = len(s) * steps / alarms
        print(f"limit {h:.4f} for {length:6.0f} runs: {found:8.1f} simulated, +- {found / alarms**0.5:.1f}", flush=True)


def normal(scale: int) -> None:
    """Rates and delays on normal draws."""
    rng = np.random.default_rng(1)
    limits(rng)
    print("\nfalse alarms")
    for label, count in (("6 series", SERIES), ("1 series", 1)):
        for truth, spread in (("right", 1.0), ("leaving out half of the variance", 2.0**0.5)):
            for runs, number in ((3000, 20 * scale), (40, 2000 * scale)):
                alarms = 0
                for _ in range(number):
                    alarms += len(watched(spread * rng.standard_normal((runs, count)), np.ones((runs, count))))
                rate(f"{label}, {number} of {runs} runs, errors {truth}", alarms, number * (runs - BASELINE))
    print("\na drop of 3 standard errors in one series, baseline of 10 runs")
    for label, count in (("6 series", SERIES), ("1 series", 1)):
        for when in ("11th run", "11th to 24th run"):
            for truth, spread in (("right", 1.0), ("leaving out half", 2.0**0.5)):
                found = []
                for _ in range(500 * scale):
                    shift = BASELINE if when == "11th run" else int(rng.integers(BASELINE, MONTH - 6))
                    values = spread * rng.standard_normal((MONTH, count))
                    values[shift:, 0] -= 3.0
                    found.append(first(watched(values, np.ones((MONTH, count))), shift, only=0))
                delays(f"{label}, from the {when}, errors {truth}", found)


# --- autocorrelated draws ---------------------------------------------------------------------------------------------


def wander(rng: np.random.Generator, runs: int, count: int, rho: float) -> Array:
    """Stationary normal series of variance 1 and autocorrelation rho, shape (runs, count)."""
    values = rng.standard_normal((runs, count))
    for n in range(1, runs):
        values[n] = rho * values[n - 1] + (1.0 - rho**2) ** 0.5 * values[n]
    return values


def measured_level(rng: np.random.Generator, runs: int, count: int) -> Array:
    """Independent errors of variance 1 around a level of variance 1 and autocorrelation .8, shape (runs, count)."""
    return wander(rng, runs, count, 0.8) + rng.standard_normal((runs, count))


def wandering(scale: int) -> None:
    """Rates, and delays of drops by 3 and 1 standard errors, on series that wander."""
    kinds: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
        f"autocorrelation {rho}": partial(wander, rho=rho) for rho in (0.0, 0.4, 0.8)
    }
    for kind, values_of in {**kinds, "a level that wanders": measured_level}.items():
        rng = np.random.default_rng(4)
        for runs in (40, 100):
            for count, number in ((1, 2000 * scale), (SERIES, 2000 * scale // SERIES)):
                alarms = [watched(values_of(rng, runs, count), np.ones((runs, count))) for _ in range(number)]
                label = f"{kind}, {number} histories of {runs} runs, {count} series"
                rate(label, sum(map(len, alarms)), number * (runs - BASELINE))
                alike = [" alike " in alarm.sentence for found in alarms for alarm in found]
                print(
                    f"  histories with an alarm: {np.mean(list(map(bool, alarms))):.3f}; "
                    f"alarms that name the autocorrelation: {np.mean(alike or [False]):.2f}",
                    flush=True,
                )
        for size, before in product((3, 1), (10, 30, 60)):
            found = []
            for _ in range(500 * scale):
                values = values_of(rng, before + MONTH, 1)
                values[before:] -= size
                found.append(first(watched(values, np.ones_like(values)), before))
            delays(f"{kind}, a drop of {size} standard errors after {before} runs", found)


# --- interviews -------------------------------------------------------------------------------------------------------


def recorded(bank: ItemBank) -> dict[str, Array]:
    """Scores of the released checkpoints, in the bank's order."""
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    place = [head.index(i) for i in bank.ids]
    return {row[0]: np.array([float(row[k]) for k in place]) for row in rows}


def interviews(
    bank: ItemBank, policy: Policy, scores: Array, seed: int, claims: Sequence[Claim]
) -> tuple[Array, Array]:
    """Values and standard errors (runs, series) of one interview with each row of `scores`."""
    values, errors = np.full((2, len(scores), SERIES), np.nan)
    for start in range(0, len(scores), 500):
        rows = scores[start : start + 500]
        seeds = list(range(seed + start, seed + start + len(rows)))
        session = Session(bank, policy, seed=seeds, subjects=len(rows), claims=claims)
        abilities: list[Array] = []
        while (proposal := session.ask()) is not None:
            abilities += [session.estimate.theta] * proposal.items.shape[1]
            session.tell(np.take_along_axis(rows, proposal.items, axis=1))
        before = np.stack(abilities, axis=1)
        for s in range(len(rows)):
            log = session.log(s)
            values[start + s, 0] = session.estimate.theta[s, 0]
            errors[start + s, 0] = session.estimate.covariance[s, 0, 0] ** 0.5
            for k, found in enumerate(by_category(bank, log, before[s, : len(log)].tolist()), start=1):
                if found.accuracy is not None and found.standard_error is not None:
                    values[start + s, k], errors[start + s, k] = found.accuracy.estimate, found.standard_error
    return values, errors


def lost(scores: Array, order: NDArray[np.intp], number: int) -> Array:
    """The answers with some right ones made wrong: the first `number` of those in `order`."""
    out = scores.copy()
    out[order[scores[order] == 1.0][:number]] = 0.0
    return out


def fallen(
    bank: ItemBank, policy: Policy, scores: Array, claims: Sequence[Claim], k: int, order: NDArray[np.intp]
) -> tuple[Array, tuple[Array, Array]] | None:
    """Answers with as many lost as lower series `k` by 3 of its standard errors, and interviews of them.

    The errors are those of the runs before or after the drop, whichever are larger. None where the answers to lose do
    not suffice.
    """

    def held(answers: Array, seed: int, number: int = 200) -> tuple[Array, Array]:
        return interviews(bank, policy, np.repeat(answers[None], number, axis=0), seed, claims)

    def typical(found: tuple[Array, Array]) -> tuple[float, float]:
        return float(np.nanmean(found[0][:, k])), float(np.sqrt(np.nanmean(found[1][:, k] ** 2)))

    level, error = typical(held(scores, 10**6))

    def enough(number: int) -> bool:
        mean, now = typical(held(lost(scores, order, number), 2 * 10**6))
        return level - mean >= 3.0 * max(error, now)

    low, high = 0, int(scores[order].sum())
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    worse = lost(scores, order, high)
    return worse, held(worse, 3 * 10**6)


def months(before: tuple[Array, Array], after: tuple[Array, Array], number: int, only: int | None) -> list[float]:
    """Delays over months of ten runs before a drop and twenty after it, drawn from interviews held."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(number):
        old = rng.choice(len(before[0]), BASELINE, replace=False)
        new = rng.choice(len(after[0]), MONTH - BASELINE, replace=False)
        values, errors = (np.concatenate((a[old], b[new])) for a, b in zip(before, after, strict=True))
        found.append(first(watched(values, errors), BASELINE, only))
    return found


def real(runs: int) -> None:
    """Rates and delays on interviews."""
    bank = read_bank(ROOT / "fixtures" / "banks" / "text.bank")
    rng = np.random.default_rng(2)
    names = sorted(set(bank.categories))
    budget = replace(POLICIES["decide"], stop="budget")
    total = np.zeros(4, dtype=int)
    found: dict[str, list[float]] = {}
    for name, scores in recorded(bank).items():
        gate = [Claim((scores.mean() - 0.1) * len(bank))]
        theta = float(interviews(bank, budget, scores[None], 1, ())[0][0, 0])
        p = bank.probability(np.array([[theta]]))[0]
        fixed = np.repeat(scores[None], runs, axis=0)
        for label, policy, claims, answers in (
            ("decide, whole budget", budget, (), fixed),
            ("decide, until a gate is decided", POLICIES["decide"], gate, fixed),
            ("fixed-form, drawn anew", POLICIES[FIXED_FORM], (), fixed),
            ("decide, answers drawn from the bank", budget, (), (rng.random(fixed.shape) < p).astype(float)),
        ):
            held = interviews(bank, policy, answers, 0, claims)
            values, errors = held
            typical = np.sqrt(np.nanmean(errors**2, axis=0))
            ratio = np.nanvar(values, axis=0) / typical**2
            print(f"\n{name}, {label}: variance over stated {np.array2string(ratio, precision=2, floatmode='fixed')}")
            whole = len(watched(values, errors))
            parts = sum(len(watched(values[k : k + 40], errors[k : k + 40])) for k in range(0, runs, 40))
            rate("  one history", whole, runs - BASELINE)
            rate("  histories of 40 runs", parts, runs * 30 // 40)
            total += (whole, runs - BASELINE, parts, runs * 30 // 40)
            if answers is not fixed:
                continue
            order = rng.permutation(len(bank))
            for k, category in enumerate(["", *names]):
                some = order if not category else order[[bank.categories[i] == category for i in order]]
                drop = fallen(bank, policy, scores, claims, k, some)
                if drop is not None:
                    answers_of = [scores[some].mean(), drop[0][some].mean()]
                    what = f"  {category or 'ability'} lower by 3 errors ({answers_of[0]:.2f} to {answers_of[1]:.2f})"
                    own = months(held, drop[1], 200, k)
                    delays(what, own)
                    found.setdefault("category" if category else "ability", []).extend(own)
    print()
    rate("all of these, one history each", int(total[0]), int(total[1]))
    rate("all of these, histories of 40 runs", int(total[2]), int(total[3]))
    for what, own in found.items():
        delays(f"all of these, {what} lower by 3 errors", own)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("normal", "wandering", "interviews"))
    parser.add_argument("--scale", type=int, default=1, help="times as many normal draws")
    parser.add_argument("--runs", type=int, default=3000, help="interviews a checkpoint and policy")
    options = parser.parse_args(arguments)
    if options.what == "normal":
        normal(options.scale)
    elif options.what == "wandering":
        wandering(options.scale)
    else:
        real(options.runs)


if __name__ == "__main__":
    main()
