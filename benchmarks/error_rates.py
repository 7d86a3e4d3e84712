"""Error rates of every kind of gate, with the truth right at the threshold.

``python benchmarks/error_rates.py`` simulates at least 5000 interviews for each cell, judges each as a run does, and
counts false verdicts. A cell is a kind of gate, a bank, a way to stop and a side: a false PASS where the truth is just
below the threshold, a false FAIL where it is at the threshold. Each rate has an exact two-sided interval
(Clopper-Pearson), at a level that holds for all cells together (Bonferroni). The command exits with 1 where an interval
lies above the rate that the gate promises. It names cells whose interval lies below half of it, which cost questions
and are no error.

``--json FILE`` keeps the table, ``--cells TEXT`` selects cells by name, ``--workers N`` measures N cells at once. The
same seed gives the same table.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from pytest_adaptive_eval.cat.policy import FIXED_FORM, POLICIES, Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.cat.stopping import StopReason
from pytest_adaptive_eval.claims.paired import Baseline
from pytest_adaptive_eval.claims.projection import ability_at
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.result import SessionResult
from pytest_adaptive_eval.gates.verdict import Outcome
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item, Response, Status
from pytest_adaptive_eval.ladder.policy import LADDER_POLICY, AdaptiveClimb, Climb

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Error rate that every gate promises for each side.
PROMISED = 0.05
#: Chance that any interval of a table misses its rate.
FAMILY_ALPHA = 0.05
SEEDS = 5000
#: Items of a bank.
SIZE = 100
#: Answers that a candidate loses and gains against its baseline.
LOST, GAINED = 8, 3
#: Right answers of the recorded subject that gates on ranks compare with.
RIGHT = 60
#: Items that a subject answers with an empty text, whatever their difficulty, and the score that such an answer has.
EMPTY = 10
EMPTY_SCORE = Response.of(Status.EMPTY, None, "", "").score or 0.0
#: Sizes of the categories whose accuracies count alike, and right answers in each: the macro accuracy is .6.
CATEGORY_SIZES, CATEGORY_RIGHT = (60, 25, 15), (42, 15, 6)
#: Interviews without a decision that are judged all the same.
CHECKED = 100
#: Distance of a threshold from the truth that makes a PASS wrong, in accuracy; above the rounding of thresholds.
HAIR = 1e-6
#: Bounds of seconds, and their keywords.
WITHIN, CAP = 2.0, 10.0
BOUNDS: Mapping[str, Any] = {"within": {"within": WITHIN}, "cap": {"cap": CAP}}
BANKS = ("good", "perturbed", "shuffled")
SIDES = (Outcome.PASS, Outcome.FAIL)
#: Accuracies by level of subjects that climb; at no level a climb ends by bad luck.
CURVE = np.array([0.98, 0.95, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25])
DECIDE = replace(POLICIES["decide"], budget="50%")
STOPS = {"decision": DECIDE, "budget": replace(DECIDE, stop="budget")}


@dataclass(frozen=True)
class Cell:
    """A kind of gate, with a bank and a way to stop.

    Args:
        name: Kind, bank, stop and details, separated by commas.
        false_verdicts: Takes the number of seeds and a generator. Returns for each side whether each trial ended with
            that verdict, wrongly.
    """

    name: str
    false_verdicts: Callable[[int, np.random.Generator], dict[Outcome, Flags]]


@dataclass(frozen=True)
class Rate:
    """The measured error rate of a cell, with its simultaneous interval.

    Args:
        low, high: Clopper-Pearson, at the level of the whole table.
    """

    cell: str
    side: str
    errors: int
    trials: int
    low: float
    high: float

    @property
    def judgement(self) -> str:
        """``exceeded``, ``conservative`` or ``held``."""
        if self.low > PROMISED:
            return "exceeded"
        return "conservative" if self.high < PROMISED / 2 else "held"


def exact_interval(errors: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a rate."""
    low = float(beta.ppf(alpha / 2, errors, trials - errors + 1)) if errors else 0.0
    high = float(beta.isf(alpha / 2, errors + 1, trials - errors)) if errors < trials else 1.0
    return low, high


# --- subjects and banks -----------------------------------------------------------------------------------------------


@cache
def banks() -> dict[str, ItemBank]:
    """Return the true bank, one with parameters perturbed by .5, and one with difficulties shuffled."""
    rng = np.random.default_rng(5)
    slope, intercept = rng.lognormal(0.0, 0.3, SIZE), rng.normal(0.0, 1.2, SIZE)
    perturbed = slope + 0.5 * rng.standard_normal(SIZE), intercept + 0.5 * rng.standard_normal(SIZE)
    parameters = {
        "good": (slope, intercept),
        "perturbed": perturbed,
        "shuffled": (slope, rng.permutation(intercept)),
    }
    ids, items = [f"q{i}" for i in range(SIZE)], [Item(f"q{i}", "?", "yes") for i in range(SIZE)]
    return {name: ItemBank(name, ids, items, *values) for name, values in parameters.items()}


def sheets(chance: Array, right: int, count: int, rng: np.random.Generator) -> Array:
    """Draw answers with exactly `right` right ones per row, shape (count, n); likely answers are right more often."""
    latent = np.log(chance / (1.0 - chance)) + rng.logistic(size=(count, len(chance)))
    scores = np.zeros(latent.shape)
    np.put_along_axis(scores, latent.argsort(axis=1)[:, len(chance) - right :], 1.0, axis=1)
    return scores


def chances(accuracy: float) -> Array:
    """Return the true chances of a subject of this expected accuracy, shape (n,)."""
    true = banks()["good"]
    return np.asarray(true.probability(np.array([[ability_at(true, accuracy)]]))[0])


def interview(
    bank: ItemBank,
    policy: Policy,
    scores: Array,
    rng: np.random.Generator,
    condition: Condition,
    values: Mapping[str, Array] = MappingProxyType({}),
    **more: object,
) -> Session:
    """Interview the subjects whose answers are `scores`, shape (S, n), until all have ended.

    Args:
        values: Further values of the answers by name, shape (S, n, samples).
    """
    baselines = {b.name: b for b in (more.get("baseline"),) if isinstance(b, Baseline)}
    session = Session(
        bank,
        policy,
        seed=rng.integers(2**63, size=len(scores)).tolist(),
        subjects=len(scores),
        claims=condition.claims(bank, baselines) if condition.by_draws else (),
        family=condition.denials(bank),
        **more,  # type: ignore[arg-type]
    )
    while (proposal := session.ask()) is not None:
        told = {name: np.take_along_axis(known, proposal.items[..., None], axis=1) for name, known in values.items()}
        session.tell(np.take_along_axis(scores, proposal.items, axis=1), told)
    return session


def results(session: Session, condition: Condition, baselines: Sequence[Baseline] = ()) -> Iterator[SessionResult]:
    """Yield the result of each subject, as a run makes it of one."""
    calibrated = session.bank.calibrated
    accuracy, error = session.projection() if calibrated else (np.zeros(session.subjects), np.zeros(session.subjects))
    for s in range(session.subjects):
        yield SessionResult(
            "simulated",
            bank=session.bank,
            log=session.log(s),
            theta=session.estimate.theta[s].tolist() if calibrated else None,
            standard_error=session.estimate.standard_error[s].tolist() if calibrated else None,
            stop=session.stop[s],
            statuses={},
            climb=levels if isinstance(levels := session.policy.levelled, Climb | AdaptiveClimb) else None,
            invalid=session.policy.design_based,
            projected=(float(accuracy[s]), float(error[s])) if calibrated else None,
            planned=(condition,),
            family=condition.denials(session.bank),
            baselines={condition.name: baselines[s % len(baselines)]} if baselines else {},
        )


def verdicts(session: Session, condition: Condition, baselines: Sequence[Baseline] = ()) -> list[Outcome]:
    """Judge each subject.

    An interview under ``stop = "decision"`` that asked its whole budget has no verdict: of these only the first
    `CHECKED` are judged, to see that this is so.
    """
    decides, left, found = session.policy.stop == "decision", CHECKED, []
    for s, result in enumerate(results(session, condition, baselines)):
        if decides and session.stop[s] is not StopReason.DECISION:
            left -= 1
            if left < 0:
                found.append(Outcome.INCONCLUSIVE)
                continue
        found.append(result.judge(condition).outcome)
        assert found[-1] is not Outcome.ERROR
        assert not decides or session.stop[s] is StopReason.DECISION or found[-1] is Outcome.INCONCLUSIVE
    return found


def by_side(
    one_side: Callable[[Outcome, int, np.random.Generator], Sequence[Outcome]], seeds: int, rng: np.random.Generator
) -> dict[Outcome, Flags]:
    """Simulate each side by itself, with its own truth, and flag its verdicts."""
    return {side: np.array([found is side for found in one_side(side, seeds, rng)]) for side in SIDES}


# --- kinds of gates ---------------------------------------------------------------------------------------------------


def accuracy_gate(
    bank: str, policy: Policy, right: int, metric: str, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``at_least`` on the accuracy, or on the ability that implies it."""
    of, accuracy = banks()[bank], right / SIZE
    target = accuracy + (HAIR if side is Outcome.PASS else 0.0)
    if metric == "ability":  # an ability is found within 1e-6 logits: stay on the same side
        target = ability_at(of, accuracy) + (2e-6 if side is Outcome.PASS else -2e-6)
    condition = Condition(metric, "at_least", target)
    return verdicts(interview(of, policy, sheets(chances(accuracy), right, seeds, rng), rng, condition), condition)


def upper_gate(policy: Policy, right: int, side: Outcome, seeds: int, rng: np.random.Generator) -> list[Outcome]:
    """``at_most`` on the accuracy: PASS is wrong a hair below it, FAIL is wrong at it."""
    accuracy = right / SIZE
    condition = Condition("accuracy", "at_most", accuracy - (HAIR if side is Outcome.PASS else 0.0))
    scores = sheets(chances(accuracy), right, seeds, rng)
    return verdicts(interview(banks()["good"], policy, scores, rng, condition), condition)


def shuffled_rows(values: Array, count: int, rng: np.random.Generator) -> Array:
    """Return values of items in another order in each row, shape (count, n)."""
    return rng.permuted(np.tile(values, (count, 1)), axis=1)


def seconds_gate(
    bank: ItemBank, policy: Policy, kind: str, bound: str, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``seconds`` within 2, or cut at 10; a tenth of the items has no answer in time."""
    seconds = np.random.default_rng(11).lognormal(0.3, 0.9, SIZE)
    seconds[: SIZE // 10] = np.inf
    if bound == "within":
        truth = float((seconds <= WITHIN).mean())
    else:
        truth = float(np.minimum(seconds, CAP).mean())
    hair = HAIR if side is Outcome.PASS else 0.0
    target = truth + (hair if kind == "at_least" else -hair)
    condition = Condition("seconds", kind, target, **BOUNDS[bound])
    scores = sheets(chances(0.6), 60, seeds, rng)
    values = {"seconds": shuffled_rows(seconds, seeds, rng)[..., None]}
    return verdicts(interview(bank, policy, scores, rng, condition, values), condition)


def seconds_loss_gate(
    policy: Policy, bound: str, complete: bool, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``seconds`` not worse than those of a baseline, for candidates that are slower by exactly the margin."""
    bank = banks()["good"]
    base = sheets(chances(0.6), 60, 1, rng)[0]
    seconds = np.random.default_rng(11).lognormal(0.3, 0.9, SIZE)
    slower = np.where(np.arange(SIZE) % 10 == 0, 9.0, seconds * np.random.default_rng(12).uniform(0.9, 1.0, SIZE))
    if bound == "within":
        loss = float((seconds <= WITHIN).mean() - (slower <= WITHIN).mean())
    else:
        loss = float(np.minimum(slower, CAP).mean() - np.minimum(seconds, CAP).mean())
    margin = loss - (HAIR if side is Outcome.PASS else 0.0)
    condition = Condition("seconds", "not_worse_than", margin, "old", **BOUNDS[bound])
    known = Condition("accuracy", "at_least", 0.5)
    earlier = replace(STOPS["budget"], budget=SIZE if complete else SIZE // 2)
    count = 1 if complete else seeds
    baselines = interview(bank, earlier, np.tile(base, (count, 1)), rng, known, repeated("seconds", seconds, count))
    found: list[Outcome] = []
    for n in range(count):  # each candidate has the draws of a partial baseline of its own to follow
        log = baselines.log(n)
        scores = np.full(SIZE, np.nan)
        scores[log.items] = log.scores
        old = Baseline("old", scores, log)
        rows = seeds // count
        values = repeated("seconds", slower, rows)
        session = interview(bank, policy, np.tile(base, (rows, 1)), rng, condition, values, baseline=old)
        found += verdicts(session, condition, [old])
    return found


def repeated(name: str, values: Array, count: int) -> dict[str, Array]:
    """Return the same values of the answers of so many subjects by name, shape (count, n, 1)."""
    return {name: np.tile(values, (count, 1))[..., None]}


def samples_gate(
    bank: ItemBank, policy: Policy, metric: str, samples: int, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``pass^k`` or ``pass@k`` over new samples of items whose chances of a right one differ."""
    chance = np.random.default_rng(13).beta(0.8, 0.6, SIZE)
    k = int(metric[-1])
    truth = float((chance**k).mean() if "^" in metric else (1.0 - (1.0 - chance) ** k).mean())
    condition = Condition(metric, "at_least", truth + (HAIR if side is Outcome.PASS else -HAIR))
    answers = rng.random((seeds, SIZE, samples)) < shuffled_rows(chance, seeds, rng)[..., None]
    scores, values = answers.mean(axis=-1), {"score": answers.astype(float)}
    return verdicts(interview(bank, policy, scores, rng, condition, values, decodings=samples), condition)


def silent_gate(
    bank: str, policy: Policy, right: int, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``at_least`` on the accuracy of a subject that answers `EMPTY` items with nothing."""
    of, accuracy = banks()[bank], right / SIZE
    condition = Condition("accuracy", "at_least", accuracy + (HAIR if side is Outcome.PASS else 0.0))
    chance, scores = chances(right / (SIZE - EMPTY)), np.full((seeds, SIZE), EMPTY_SCORE)
    answered = rng.permuted(np.tile(np.arange(SIZE), (seeds, 1)), axis=1)[:, EMPTY:]
    for own, row in zip(answered, scores, strict=True):
        row[own] = sheets(chance[own], right, 1, rng)[0]
    return verdicts(interview(of, policy, scores, rng, condition), condition)


def silent_loss_gate(bank: str, policy: Policy, side: Outcome, seeds: int, rng: np.random.Generator) -> list[Outcome]:
    """``not_worse_than`` for candidates that lose exactly the margin by empty answers, whatever the difficulty."""
    of, chance = banks()[bank], chances(0.8)
    condition = Condition("accuracy", "not_worse_than", LOST / SIZE - (HAIR if side is Outcome.PASS else 0.0), "old")
    base = sheets(chance, round(0.8 * SIZE), 1, rng)[0]
    candidates, places = np.tile(base, (seeds, 1)), np.flatnonzero(base == 1.0)
    lost = rng.permuted(np.tile(places, (seeds, 1)), axis=1)[:, :LOST]
    np.put_along_axis(candidates, lost, EMPTY_SCORE, axis=1)
    old = Baseline("old", base)
    return verdicts(interview(of, policy, candidates, rng, condition, baseline=old), condition, [old])


def macro_gate(bank: str, policy: Policy, side: Outcome, seeds: int, rng: np.random.Generator) -> list[Outcome]:
    """``macro_accuracy.at_least``, with categories of unequal size and accuracy."""
    category = np.repeat([f"c{n}" for n in range(len(CATEGORY_SIZES))], CATEGORY_SIZES)
    of = replace(banks()[bank], categories=category.tolist())
    accuracy = float(np.mean(np.divide(CATEGORY_RIGHT, CATEGORY_SIZES)))
    condition = Condition("macro_accuracy", "at_least", accuracy + (HAIR if side is Outcome.PASS else 0.0))
    chance, scores = chances(accuracy), np.empty((seeds, SIZE))
    for name, right in zip(np.unique(category), CATEGORY_RIGHT, strict=True):
        own = np.flatnonzero(category == name)
        scores[:, own] = sheets(chance[own], right, seeds, rng)
    return verdicts(interview(of, policy, scores, rng, condition), condition)


def at_the_margin(seeds: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw a baseline, shape (n,), and candidates that lose `LOST` answers and gain `GAINED`, shape (seeds, n)."""
    chance = chances(0.8)
    base = sheets(chance, round(0.8 * SIZE), 1, rng)[0]
    candidates = np.tile(base, (seeds, 1))
    for value, count in ((1.0, LOST), (0.0, GAINED)):
        places = np.flatnonzero(base == value)
        likely = 4.0 * chance[places] * (1.0 - chance[places])  # uncertain answers flip more often
        flips = sheets(np.clip(likely, 0.01, 0.99), count, seeds, rng)
        candidates[:, places] = np.where(flips == 1.0, 1.0 - value, value)
    return base, candidates


def ability_loss(bank: ItemBank, base: Array, loss: float, side: Outcome) -> Condition:
    """Condition that the ability is not worse than a baseline's by what a loss of accuracy is, up to a hair."""
    accuracy = float(base.mean())
    hair = 4e-6 if side is Outcome.PASS else -4e-6  # abilities are found within 1e-6 logits
    margin = ability_at(bank, accuracy) - ability_at(bank, accuracy - loss)
    return Condition("ability", "not_worse_than", margin - hair, "old")


def ability_paired_gate(
    bank: str, policy: Policy, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``ability.not_worse_than`` for candidates that lose exactly the margin."""
    base, candidates = at_the_margin(seeds, rng)
    condition = ability_loss(banks()[bank], base, (LOST - GAINED) / SIZE, side)
    old = Baseline("old", base)
    return verdicts(interview(banks()[bank], policy, candidates, rng, condition, baseline=old), condition, [old])


def paired_gate(
    bank: str, policy: Policy, complete: bool, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """``not_worse_than`` for candidates that lose exactly the margin."""
    of, margin = banks()[bank], (LOST - GAINED) / SIZE - (HAIR if side is Outcome.PASS else 0.0)
    condition = Condition("accuracy", "not_worse_than", margin, "old")
    base, candidates = at_the_margin(seeds, rng)
    if complete:
        old = Baseline("old", base)
        return verdicts(interview(of, policy, candidates, rng, condition, baseline=old), condition, [old])
    found = []
    earlier = interview(of, STOPS["budget"], np.tile(base, (seeds, 1)), rng, Condition("accuracy", "at_least", 0.5))
    for s in range(seeds):  # each candidate has the draws of a baseline of its own to follow
        log = earlier.log(s)
        known = np.full(SIZE, np.nan)
        known[log.items] = log.scores
        old = Baseline("old", known, log)
        # bets look after every draw, however many are answered together
        at_once = replace(policy, batch=len(log))
        found += verdicts(interview(of, at_once, candidates[[s]], rng, condition, baseline=old), condition, [old])
    return found


@cache
def format_banks() -> dict[str, ItemBank]:
    """Return banks of 40 items in three formats: the true one, and one with difficulties shuffled."""
    forms, count = ("image+text", "image", "none"), 40
    pairs = [(f"q{i}@{form}", form) for i in range(count) for form in forms]
    rng = np.random.default_rng(4)
    slope, intercept = rng.uniform(0.5, 1.5, len(pairs)), rng.normal(size=len(pairs))
    return {
        name: ItemBank(
            name,
            [item for item, _ in pairs],
            [Item(item, "?", "yes", formats=(form,)) for item, form in pairs],
            slope,
            values,
            categories=[form for _, form in pairs],
            report=MappingProxyType({"formats": list(forms)}),
        )
        for name, values in {"good": intercept, "shuffled": rng.permutation(intercept)}.items()
    }


def gain_gate(bank: str, policy: Policy, side: Outcome, seeds: int, rng: np.random.Generator) -> list[Outcome]:
    """``gain.at_least``: PASS is wrong if one gain is too small, FAIL if all just suffice."""
    of, true = format_banks()[bank], format_banks()["good"]
    right = {"image+text": 32, "image": 20, "none": 4 if side is Outcome.PASS else 20}
    condition = Condition("gain", "at_least", 12 / 40 + (HAIR if side is Outcome.PASS else 0.0))
    chance, form = true.probability(np.zeros((1, true.dimensions)))[0], np.array(true.categories)
    scores = np.zeros((seeds, len(of)))
    for name, count in right.items():
        own = np.flatnonzero(form == name)
        scores[:, own] = sheets(chance[own], count, seeds, rng)
    return verdicts(interview(of, policy, scores, rng, condition), condition)


def rank_gate(
    bank: str, policy: Policy, kind: str, side: Outcome, seeds: int, rng: np.random.Generator
) -> list[Outcome]:
    """Gates on ranks, for candidates one answer below a recorded subject, or as good as it."""
    right = RIGHT - (side is Outcome.PASS)
    known = np.r_[np.linspace(0.2, RIGHT / SIZE, 11), np.linspace(RIGHT / SIZE, 0.95, 11)[1:]]
    of = replace(banks()[bank], subjects=tuple(f"m{i}" for i in range(21)), accuracies=tuple(known.tolist()))
    condition = Condition("accuracy", kind, 11 if kind == "rank_within" else 0, "" if kind == "rank_within" else "m10")
    scores = sheets(chances(right / SIZE), right, seeds, rng)
    return verdicts(interview(of, policy, scores, rng, condition), condition)


def climbed(way: Climb | AdaptiveClimb, scores: Array, rng: np.random.Generator, condition: Condition) -> Session:
    """Climb the levels of a task, `scores` of shape (S, levels * queries)."""
    task = ItemBank.uncalibrated("task", [Item(f"{n}", "?", "yes") for n in range(scores.shape[1])])
    return interview(task, replace(LADDER_POLICY, selector=way, batch=way.batch), scores, rng, condition)


def answered(curve: Array, queries: int, luck: Array) -> Array:
    """Return right answers where `luck`, shape (S, levels * queries), is below the accuracy of its level."""
    return (luck < np.repeat(curve, queries)).astype(float)


def area_gate(way: Climb | AdaptiveClimb, seeds: int, rng: np.random.Generator) -> dict[Outcome, Flags]:
    """``auc.at_least`` a hair above the sum of the accuracies, and a hair below it, on the same climbs."""
    luck = rng.random((seeds, len(CURVE) * way.queries))
    session = climbed(way, answered(CURVE, way.queries, luck), rng, Condition("auc", "at_least", 1.0))
    flags = {}
    for side, hair in ((Outcome.PASS, HAIR), (Outcome.FAIL, -HAIR)):
        condition = Condition("auc", "at_least", float(CURVE.sum()) + hair)
        flags[side] = np.array([found is side for found in verdicts(session, condition)])
    return flags


def area_loss_gate(alike: float, seeds: int, rng: np.random.Generator) -> dict[Outcome, Flags]:
    """``auc.not_worse_than`` where the candidate's area is half a level below the baseline's, as is the margin."""
    way = Climb(queries=50)
    luck = rng.random((seeds, len(CURVE) * way.queries))
    own = np.where(rng.random(luck.shape) < alike, luck, rng.random(luck.shape))
    lower = CURVE - 0.5 / len(CURVE)
    session = climbed(way, answered(lower, way.queries, own), rng, Condition("auc", "at_least", 1.0))
    earlier = [Baseline("old", row, climbed=True) for row in answered(CURVE, way.queries, luck)]
    flags = {}
    for side, hair in ((Outcome.PASS, -HAIR), (Outcome.FAIL, HAIR)):
        condition = Condition("auc", "not_worse_than", 0.5 + hair, "old")
        flags[side] = np.array([found is side for found in verdicts(session, condition, earlier)])
    return flags


def last_level_gate(way: Climb, side: Outcome, seeds: int, rng: np.random.Generator) -> list[Outcome]:
    """``last_level.at_least(5)`` with the fifth level's accuracy at the rate for PASS, and a hair above it for FAIL."""
    curve = np.array([0.98, 0.95, 0.9, 0.8, way.stop_at + (0.0 if side is Outcome.PASS else HAIR), 0.2, 0.1, 0.05])
    condition = Condition("last_level", "at_least", 5)
    luck = rng.random((seeds, len(curve) * way.queries))
    return verdicts(climbed(way, answered(curve, way.queries, luck), rng, condition), condition)


# --- the table --------------------------------------------------------------------------------------------------------


OneSide = Callable[[Outcome, int, np.random.Generator], list[Outcome]]


def answer_gates() -> dict[str, OneSide]:
    """Return upper limits, and gates on values of the answers."""
    gates: dict[str, OneSide] = {}
    plain = ItemBank.uncalibrated("plain", [Item(f"q{n}", "?", "yes") for n in range(SIZE)])
    good = banks()["good"]
    for stop, policy in STOPS.items():
        gates[f"accuracy at_most 0.60, good, {stop}"] = partial(upper_gate, policy, 60)
        evenly = replace(policy, selector=POLICIES[FIXED_FORM].selector, floor=0.0)
        for bound in ("within", "cap"):
            gates[f"seconds {bound} at_least, good, {stop}"] = partial(seconds_gate, good, policy, "at_least", bound)
            gates[f"seconds {bound} at_most, good, {stop}"] = partial(seconds_gate, good, policy, "at_most", bound)
            uniform = partial(seconds_gate, plain, evenly, "at_most", bound)
            gates[f"seconds {bound} at_most, uniform draws, {stop}"] = uniform
            gates[f"seconds {bound}, whole baseline, {stop}"] = partial(seconds_loss_gate, policy, bound, True)
        for metric, samples in (("pass^3", 3), ("pass^3", 5), ("pass@3", 3), ("pass@3", 5)):
            name = f"{metric} of {samples} samples"
            gates[f"{name}, good, {stop}"] = partial(samples_gate, good, policy, metric, samples)
            gates[f"{name}, uniform draws, {stop}"] = partial(samples_gate, plain, evenly, metric, samples)
    for bound in ("within", "cap"):
        gates[f"seconds {bound}, partial baseline, decision"] = partial(seconds_loss_gate, DECIDE, bound, False)
    return gates


def cells() -> list[Cell]:
    """All kinds, in the order of the table."""
    kinds: dict[str, Callable[[int, np.random.Generator], dict[Outcome, Flags]]] = {}

    def add(name: str, one_side: Callable[[Outcome, int, np.random.Generator], list[Outcome]]) -> None:
        kinds[name] = partial(by_side, one_side)

    for bank in BANKS:
        for stop, policy in STOPS.items():
            for share in (0.60, 0.95) if bank == "good" else (0.60,):
                name = f"accuracy at_least {share:.2f}, {bank}, {stop}"
                add(name, partial(accuracy_gate, bank, policy, round(share * SIZE), "accuracy"))
        add(f"not_worse_than, whole baseline, {bank}, decision", partial(paired_gate, bank, DECIDE, True))
    for stop, policy in STOPS.items():
        add(f"accuracy at_least 0.60, a tenth empty, {stop}", partial(silent_gate, "good", policy, 60))
        add(f"not_worse_than, a loss by empty answers, {stop}", partial(silent_loss_gate, "good", policy))
    for stop, policy in STOPS.items():
        uniform = replace(policy, selector=POLICIES[FIXED_FORM].selector, floor=0.0)
        add(f"accuracy at_least 0.60, uniform draws, {stop}", partial(accuracy_gate, "good", uniform, 60, "accuracy"))
    for name, one_side in answer_gates().items():
        add(name, one_side)
    add("ability at_least, good, decision", partial(accuracy_gate, "good", DECIDE, 60, "ability"))
    add("ability not_worse_than, good, decision", partial(ability_paired_gate, "good", DECIDE))
    add("not_worse_than, whole baseline, good, budget", partial(paired_gate, "good", STOPS["budget"], True))
    add("not_worse_than, partial baseline, good, decision", partial(paired_gate, "good", DECIDE, False))
    for bank in ("good", "shuffled"):
        add(f"macro_accuracy at_least, {bank}, decision", partial(macro_gate, bank, DECIDE))
    add("macro_accuracy at_least, good, budget", partial(macro_gate, "good", STOPS["budget"]))
    add("gain at_least, good, decision", partial(gain_gate, "good", DECIDE))
    add("gain at_least, shuffled, decision", partial(gain_gate, "shuffled", DECIDE))
    add("gain at_least, good, budget", partial(gain_gate, "good", STOPS["budget"]))
    for stop, policy in STOPS.items():
        for bank in ("good", "shuffled"):
            add(f"rank_within 11 of 21, {bank}, {stop}", partial(rank_gate, bank, policy, "rank_within"))
        add(f"above a recorded subject, good, {stop}", partial(rank_gate, "good", policy, "above"))
    kinds["auc at_least, climb of 20 a level"] = partial(area_gate, Climb(queries=20))
    for alike in (0.5, 0.9):
        kinds[f"auc not_worse_than, {alike:.0%} alike"] = partial(area_loss_gate, alike)
    add("last_level at_least, climb of 20 a level", partial(last_level_gate, Climb(queries=20, stop_at=0.5)))
    settling = Climb(queries=20, stop_at=0.5, settle=True)
    add("last_level at_least, settling climb", partial(last_level_gate, settling))
    kinds["auc at_least, adaptive climb"] = partial(area_gate, AdaptiveClimb(queries=40, width=1.2))
    return [Cell(name, kind) for name, kind in kinds.items()]


def measure(name: str, seeds: int, seed: int) -> list[tuple[Outcome, int, int]]:
    """Return errors and trials of each side; the draws depend on the seed and the cell's name alone."""
    (cell,) = (cell for cell in cells() if cell.name == name)
    found = cell.false_verdicts(seeds, np.random.default_rng([seed, zlib.crc32(name.encode())]))
    return [(side, int(flags.sum()), len(flags)) for side, flags in found.items()]


def table(names: Sequence[str], seeds: int, seed: int, workers: int) -> Iterator[Rate]:
    """Yield the rates of the cells, two each."""
    alpha = FAMILY_ALPHA / (len(names) * len(SIDES))
    with ExitStack() as stack:
        one_after_another = workers == 1
        run = map if one_after_another else stack.enter_context(ProcessPoolExecutor(workers)).map
        for name, counts in zip(names, run(partial(measure, seeds=seeds, seed=seed), names), strict=True):
            for side, errors, trials in counts:
                yield Rate(name, side.value, errors, trials, *exact_interval(errors, trials, alpha))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return 1 where a rate exceeds what is promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="interviews per cell")
    parser.add_argument("--seed", type=int, default=0, help="of all draws")
    parser.add_argument("--cells", default="", help="only cells whose name contains this text")
    parser.add_argument("--workers", type=int, default=1, help="cells measured at once")
    parser.add_argument("--json", type=Path, help="file for the table")
    options = parser.parse_args(arguments)
    names = [cell.name for cell in cells() if options.cells in cell.name]
    if not names:
        parser.error(f"--cells is {options.cells!r}, expected a part of a cell's name such as {cells()[0].name!r}")
    print(
        f"{options.seeds} seeds per cell, seed {options.seed}; promised {PROMISED:.3f} for each side; all "
        f"{len(names) * len(SIDES)} intervals hold together with confidence {1 - FAMILY_ALPHA:.2f}"
    )
    print(f"{'gate, bank, stop':58} {'false':6} {'rate':>6} {'interval':>16} {'trials':>7}")
    rates = []
    for rate in table(names, options.seeds, options.seed, options.workers):
        rates.append(rate)
        print(
            f"{rate.cell:58} {rate.side:6} {rate.errors / max(rate.trials, 1):6.4f} [{rate.low:.4f}, {rate.high:.4f}] "
            f"{rate.trials:7} {rate.judgement if rate.judgement != 'held' else ''}",
            flush=True,
        )
    if options.json:
        told = {"seeds": options.seeds, "seed": options.seed, "promised": PROMISED, "family_alpha": FAMILY_ALPHA}
        rows = [{**asdict(rate), "judgement": rate.judgement} for rate in rates]
        options.json.write_text(json.dumps({**told, "rates": rows}, indent=1) + "\n", encoding="utf-8")
    for judgement, meaning in (
        ("conservative", f"lie below {PROMISED / 2:.3f}: fewer errors than promised, at the price of more questions"),
        ("exceeded", f"exceed the promised {PROMISED:.3f}"),
    ):
        if names := [f"{rate.cell} ({rate.side})" for rate in rates if rate.judgement == judgement]:
            print(f"{judgement}: {len(names)} of {len(rates)} cells {meaning}: {'; '.join(names)}")
    return int(any(rate.judgement == "exceeded" for rate in rates))


if __name__ == "__main__":
    raise SystemExit(main())
