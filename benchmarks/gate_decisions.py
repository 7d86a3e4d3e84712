"""Error rates of gates and the questions they take, on real response matrices.

``python benchmarks/gate_decisions.py errors`` interviews the 17 held-out models of AI2D and MMMU with a bank calibrated
from others, looks after every answer, and counts false verdicts with the truth right at the threshold: false PASS with
the true accuracy at c - 1/N, false FAIL with it at c. ``items`` counts the questions to a verdict at margins of 10, 5
and 2 points, against uniform draws without a bank, the oracle's bets and the classical test of fixed size; ``--data``
takes the other matrices too, whose banks are of half of the families. ``paired`` does so for a candidate against its
baseline, against the unpaired gate and the bets of one who knows how likely every item is to flip, ``defaults`` counts
the gates that the default budget decides, on the other matrices, and ``planning`` compares what a gate promises before
the first question with what happens. ``aimed`` compares bets that aim at the budget with the others alone, on the same
draws: paired gates whose budget is the size of Tango's score test, and thresholds with budgets of 10 to 40 %. The
matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default
``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from interval_coverage import MATRICES, NAMES, bank_of, halves, read, sides
from numpy.typing import NDArray
from scipy.stats import binom

from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.cat.policy import POLICIES, Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.paired import Baseline, PairedClaim
from pytest_adaptive_eval.gates.condition import Condition
from pytest_adaptive_eval.gates.planning import PLANNING_MARGIN, default_budget, outlooks
from pytest_adaptive_eval.inference.betting import DISTANCES, UNIT, Claim, Decisions, decide
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt.estimation import ESTIMATORS, Estimate
from pytest_adaptive_eval.items.bank import ItemBank

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
DECIDE = POLICIES["decide"]
UNIFORM = replace(DECIDE, selector=SELECTORS["random"], floor=0.0)


@dataclass(frozen=True)
class Known:
    """The estimator of one who knows the abilities."""

    theta: Array
    name: str = "known"
    has_prior: ClassVar[bool] = True

    def prior(self, subjects: int, dimensions: int) -> Estimate:
        """The truth, nearly surely."""
        return Estimate(self.theta, np.full((subjects, dimensions, dimensions), 1e-6), np.ones(subjects, dtype=bool))

    def estimate(self, scores: Array, A: Array, d: Array, c: Array | None, start: Estimate) -> Estimate:  # noqa: ARG002
        """The truth still."""
        return start


def interviews(
    bank: ItemBank, policy: Policy, responses: Array, share: str, seed: int, claim: Claim | None = None, **more: object
) -> DesignLog:
    """Everybody's draws, until all have decided the claim, and at most up to a share of the bank."""
    claims = () if claim is None else (claim,)
    session = Session(bank, replace(policy, budget=share), seed=seed, subjects=len(responses), claims=claims, **more)  # type: ignore[arg-type]
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(responses, proposal.items, axis=1))
    return session.logs()


def decided(
    bank: ItemBank, policy: Policy, responses: Array, share: str, seed: int, claim: Claim, **more: object
) -> Decisions:
    """What `interviews` decide of a claim, and when."""
    return decide(interviews(bank, policy, responses, share, seed, claim, **more), [claim])


def banks_of(name: str, model: str, pool: str) -> dict[str, ItemBank]:
    """A good bank, one with parameters perturbed, one with difficulties shuffled, of the models of a pool."""
    fitted = fit_map(read(NAMES[name], pool), model=model)
    rng = np.random.default_rng(0)
    n = len(fitted.intercept)
    noisy = replace(
        fitted,
        intercept=fitted.intercept + 0.5 * rng.standard_normal(n),
        discrimination=fitted.discrimination + 0.5 * rng.standard_normal(fitted.discrimination.shape),
    )
    shuffled = replace(fitted, intercept=fitted.intercept[rng.permutation(n)])
    return {"good": bank_of(fitted), "perturbed": bank_of(noisy), "shuffled": bank_of(shuffled)}


def abilities(bank: ItemBank, responses: Array) -> Array:
    """From all answers, shape (S, D)."""
    estimator = ESTIMATORS["map-wide"]()
    S = len(responses)
    A = np.broadcast_to(bank.discrimination, (S, *bank.discrimination.shape))
    d = np.broadcast_to(bank.intercept, (S, len(bank)))
    return estimator.estimate(responses, A, d, None, estimator.prior(S, bank.dimensions)).theta


# --- errors -----------------------------------------------------------------------------------------------------------


def naive(log: DesignLog, total: float, side: int) -> NDArray[np.bool_]:
    """Whether a 95 % interval at fixed size ever excludes the threshold, looked at after each answer from the 20th."""
    weights = 1.0 / log.variance
    sums = weights.cumsum(-1)
    mean = (weights * log.totals).cumsum(-1) / sums
    squares = (weights * log.totals**2).cumsum(-1) / sums - mean**2
    error = np.sqrt(np.maximum(squares, 1e-9) / np.arange(1, len(log) + 1))
    return np.asarray(((side * (mean - total) > 1.645 * error)[:, 19:]).any(-1))


def errors(seeds: int, model: str, pool: str, share: str, every: bool) -> None:
    """False verdicts with the truth at the threshold."""
    print(f"alpha .05 one-sided, {seeds} seeds a model, looked at after each answer up to {share} of the bank")
    limit = binom.isf(0.05 / 17, seeds, 0.05) / seeds
    print(f"a valid test exceeds {limit:.3f} on the worst of 17 models in at most 5 % of such tables")
    print(
        "data  bank       policy                        false PASS (worst model)  false FAIL (worst)  naive PASS / FAIL"
    )
    decide_policy = {"decide": DECIDE}
    more = {
        "information, floor .5": replace(DECIDE, selector=SELECTORS["information"]),
        "maximum-information, floor .1": replace(DECIDE, selector=SELECTORS["maximum-information"], floor=0.1),
        "variance, floor .1": replace(DECIDE, selector=SELECTORS["variance"], floor=0.1),
        "nearest-difficulty, floor .1": replace(DECIDE, selector=SELECTORS["nearest-difficulty"], floor=0.1),
        "random": UNIFORM,
        "spread, floor .1, one by one": replace(DECIDE, floor=0.1, batch=1),
    }
    for name in NAMES:
        responses = read(NAMES[name], "test")
        totals = responses.sum(axis=1)
        for label, bank in banks_of(name, model, pool).items():
            for policy_name, policy in (decide_policy | (more if every else {})).items():
                wrong: dict[int, list[float]] = {1: [], -1: []}
                plain: dict[int, list[float]] = {1: [], -1: []}
                for s, total in enumerate(totals):
                    rows = np.repeat(responses[s][None], seeds, axis=0)
                    for side, threshold in ((1, total + 1.0), (-1, total)):
                        claim = Claim(threshold)
                        mine = interviews(bank, policy, rows, share, 2 * s + (side > 0), claim)
                        found = decide(mine, [claim]).outcome[:, 0] == side
                        wrong[side].append(float(found.mean()))
                        plain[side].append(float(naive(mine, threshold, side).mean()))
                cells = [f"{np.mean(wrong[k]):.3f} ({max(wrong[k]):.3f})" for k in (1, -1)]
                print(
                    f"{name:5} {label:10} {policy_name:30} {cells[0]:>24} {cells[1]:>19} "
                    f"{np.mean(plain[1]):15.3f} / {np.mean(plain[-1]):.3f}",
                    flush=True,
                )


# --- items ------------------------------------------------------------------------------------------------------------


def needed(
    bank: ItemBank,
    policy: Policy,
    responses: Array,
    margin: float,
    seeds: int,
    theta: Array | None,
    distances: tuple[float, ...] = DISTANCES,
    **more: object,
) -> Array:
    """Questions to a verdict of each model and side, N where there is none or a wrong one; `theta` if it is known."""
    n = len(bank)
    out = []
    for s, row in enumerate(responses):
        rows = np.repeat(row[None], seeds, axis=0)
        own = policy if theta is None else replace(policy, estimator=Known(np.repeat(theta[s][None], seeds, axis=0)))
        for side in (1, -1):
            claim = Claim(row.sum() - side * margin * n, distances=distances)
            if 0.02 < claim.total / n < 0.98:
                found = decided(bank, own, rows, "100%", 2 * s + (side > 0), claim, **more)
                out.append(np.where(found.outcome[:, 0] == side, found.at[:, 0], n))
    return np.concatenate(out).astype(float)


def classical(totals: Array, n: int, margin: float) -> float:
    """Size of the one-sided normal test with alpha .05 and power .8, of a finite bank."""
    p = totals / n
    infinite = (1.6449 + 0.8416) ** 2 * p * (1 - p) / margin**2
    return float((infinite / (1 + (infinite - 1) / n)).mean())


def items(names: Sequence[str], seeds: int, model: str, pool: str, margins: Sequence[float], hindsight: bool) -> None:
    """Questions to a verdict by margin; most of the time is for the best constant bets in hindsight."""
    print(f"questions to a correct verdict, undecided counted as N; {seeds} seeds a model and side")
    ratios: dict[float, list[float]] = {}
    for name in names:
        calibrating, responses = sides(name, pool)
        bank = bank_of(fit_map(calibrating, model=model))
        n, totals = responses.shape[1], responses.sum(axis=1)
        plain = ItemBank("b", bank.ids, (), np.zeros((n, 1)), np.zeros(n), calibrated=False)
        for margin in margins:
            ours = needed(bank, DECIDE, responses, margin, seeds, None)
            uniform = needed(plain, UNIFORM, responses, margin, seeds, None)
            ratio, error = ours.mean() / uniform.mean(), ours.std() / np.sqrt(len(ours)) / uniform.mean()
            ratios.setdefault(margin, []).append(ratio)
            print(
                f"{name:5} {100 * margin:3.0f} points: decide {ours.mean():6.1f}, uniform and no bank "
                f"{uniform.mean():6.1f}, ratio {ratio:.3f} +- {error:.3f}; classical fixed size "
                f"{classical(totals, n, margin):.0f}; within a fifth {np.mean(ours <= n / 5):.3f}",
                flush=True,
            )
            if not hindsight:
                continue
            knows = abilities(bank, responses)
            bets = [(distance * margin / UNIT,) for distance in (0.5, 0.7, 1.0, 1.4, 2.0)]
            best = min(needed(plain, UNIFORM, responses, margin, seeds, None, bet).mean() for bet in bets)
            oracle = min(needed(bank, DECIDE, responses, margin, seeds, knows, bet).mean() for bet in bets)
            print(
                f"      uniform {uniform.mean() / best:.2f} of its best bet; oracle's best {oracle:6.1f}, we "
                f"{ours.mean() / oracle:.2f} of it",
                flush=True,
            )
    for margin, both in ratios.items():
        print(f"{100 * margin:3.0f} points, mean of {len(both)}: {np.mean(both):.3f} of the uniform test")


# --- batches ----------------------------------------------------------------------------------------------------------


def batches(seeds: int, model: str, pool: str, margins: Sequence[float], sizes: Sequence[int]) -> None:
    """Questions asked, up to the end of the batch in which the verdict falls, and calls of the model, by batch."""
    print(f"questions asked to a correct verdict, undecided counted as N; {seeds} seeds a model and side")
    for name in NAMES:
        responses = read(NAMES[name], "test")
        n = responses.shape[1]
        bank = banks_of(name, model, pool)["good"]
        for margin in margins:
            alone = 0.0
            for size in sizes:
                at = needed(bank, replace(DECIDE, batch=size), responses, margin, seeds, None)
                asked = np.minimum(np.ceil(at / size) * size, n)
                alone = alone or float(asked.mean())
                error = asked.std() / len(asked) ** 0.5 / alone
                print(
                    f"{name:5} {100 * margin:3.0f} points, batch {size:3}: {asked.mean():6.1f} asked, "
                    f"{asked.mean() / alone:.3f} of batch {sizes[0]}, +- {error:.3f}; "
                    f"verdict at {at.mean():6.1f}; {np.ceil(asked / size).mean():6.1f} calls; "
                    f"within a fifth {np.mean(asked <= n / 5):.3f}",
                    flush=True,
                )


# --- paired -----------------------------------------------------------------------------------------------------------


def flipped(base: Array, p: Array, share: float, even: bool, rng: np.random.Generator, loss: int = 0) -> Array:
    """A candidate that differs on a share of the items, as many gained as lost but for `loss`."""
    out = base.copy()
    weight = np.ones_like(p) if even else p * (1 - p)
    half = round(share * len(base) / 2)
    for value, number in ((0.0, half - loss // 2), (1.0, half + (loss + 1) // 2)):
        at = np.flatnonzero(base == value)
        chosen = rng.choice(at, min(number, len(at)), replace=False, p=weight[at] / weight[at].sum())
        out[chosen] = 1.0 - value
    return out


@dataclass(frozen=True, slots=True, eq=False)
class KnownFlips(Baseline):
    """A baseline to one who knows how likely each item is to flip."""

    flips: Array = field(kw_only=True)

    @classmethod
    def of(cls, base: Array, p: Array, share: float, even: bool) -> KnownFlips:
        """The chances under `flipped`, but for its drawing without replacement."""
        weight = np.ones_like(p) if even else p * (1 - p)
        half, flips = share * len(base) / 2, np.zeros(len(base))
        for side in (base == 0, base == 1):
            rate = half / weight[side].sum()
            for _ in range(50):  # no chance is above 1, and they add up to `half`
                rate *= half / np.minimum(rate * weight[side], 1.0).sum()
            flips[side] = np.minimum(rate * weight[side], 1.0)
        return cls("base", base, flips=np.clip(flips, 1e-4, 1 - 1e-4))

    def predicted(self, shapes: Array, items: Ints, scores: Array, model: Array | None = None) -> Array:  # noqa: ARG002
        """The truth."""
        found = self.scores * (1 - self.flips) + (1 - self.scores) * self.flips
        return np.repeat(found[None], len(items), axis=0)


def paired(seeds: int, model: str, pool: str, hindsight: bool) -> None:
    """Questions and error rates of a candidate against its baseline."""
    for name in NAMES:
        responses = read(NAMES[name], "test")
        n = responses.shape[1]
        bank = banks_of(name, model, pool)["good"]
        theta = abilities(bank, responses)
        p = bank.probability(theta)
        for share, margin in ((0.03, 0.02), (0.10, 0.05)):
            for even in (False, True):
                rng = np.random.default_rng(3)
                ours, unpaired, false = [], [], []
                oracle: dict[float, list[Array]] = {distance: [] for distance in (0.7, 1.0, 1.4, 2.0, 3.0)}
                for s, base in enumerate(responses):
                    candidates = np.stack([flipped(base, p[s], share, even, rng) for _ in range(seeds)])
                    baseline = Baseline("base", base)
                    claim = PairedClaim.of(baseline, margin, 0.95)
                    found = decided(bank, DECIDE, candidates, "100%", s, claim, baseline=baseline)
                    ours.append(np.where(found.outcome[:, 0] == 1, found.at[:, 0], n))
                    plain = Claim(claim.total)
                    alone = decided(bank, DECIDE, candidates, "100%", s, plain)
                    unpaired.append(np.where(alone.outcome[:, 0] == 1, alone.at[:, 0], n))
                    for distance, found_by in oracle.items() if hindsight else ():
                        knows, bet = KnownFlips.of(base, p[s], share, even), replace(claim, distances=(distance,))
                        best = decided(bank, DECIDE, candidates, "100%", s, bet, baseline=knows)
                        found_by.append(np.where(best.outcome[:, 0] == 1, best.at[:, 0], n))
                    loss = round(margin * n) + 1
                    worse = np.stack([flipped(base, p[s], share, even, rng, loss) for _ in range(seeds)])
                    if (worse.sum(axis=1) < claim.total).all():
                        passed = decided(bank, DECIDE, worse, "50%", s, claim, baseline=baseline).outcome[:, 0] == 1
                        false.append(float(passed.mean()))
                a, b = float(np.mean(ours)), float(np.mean(unpaired))
                ratio = a / b
                spread = (np.array(ours) - ratio * np.array(unpaired)).std(axis=1).mean() / b
                print(
                    f"{name:5} {share:4.0%} flips {'evenly' if even else '~ p(1-p)':9} margin {100 * margin:.0f}: "
                    f"paired {a:6.1f}, unpaired {b:6.1f}, ratio {ratio:.3f} +- "
                    f"{spread / np.size(ours) ** 0.5:.3f}; false PASS beyond the margin "
                    f"{np.mean(false) if false else float('nan'):.3f} of {len(false) * seeds}",
                    flush=True,
                )
                if hindsight:
                    least = min(float(np.mean(found_by)) for found_by in oracle.values())
                    print(f"      oracle's best {least:6.1f}, {least / b:.3f} of the unpaired gate", flush=True)
        siblings(name, bank, responses)


def siblings(name: str, bank: ItemBank, responses: Array) -> None:
    """Real pairs: the held-out models nearest to each other in their answers."""
    n = responses.shape[1]
    upper = np.triu_indices(len(responses), 1)
    differ = np.abs(responses[upper[0]] - responses[upper[1]]).mean(axis=1)
    for k in differ.argsort()[:5]:
        a, b = (int(places[k]) for places in upper)
        baseline = Baseline("base", responses[a])
        candidate = np.repeat(responses[b][None], 20, axis=0)
        margin = 0.05
        claim = PairedClaim.of(baseline, margin, 0.95)
        found = decided(bank, DECIDE, candidate, "100%", 1, claim, baseline=baseline)
        plain = Claim(claim.total)
        alone = decided(bank, DECIDE, candidate, "100%", 1, plain)
        verdicts = np.bincount(found.outcome[:, 0] + 1, minlength=3).tolist()
        print(
            f"{name:5} real pair, {differ[k]:.0%} of answers differ, net "
            f"{responses[b].mean() - responses[a].mean():+.3f}, margin 5 points: {verdicts} (FAIL, open, PASS), "
            f"{found.at[:, 0].mean():.0f} questions, unpaired {alone.at[:, 0].mean():.0f} of {n}",
            flush=True,
        )


# --- aimed ------------------------------------------------------------------------------------------------------------


def tango_size(share: float, margin: float, n: int) -> int:
    """Size of Tango's score test (1998) with alpha .05 and power .8, of a finite bank, for a candidate as good."""
    b, c = -share + 2 * -margin, share / 2 * margin * (1 + margin)
    flips = 2 * (np.sqrt(b * b - 8 * c) - b) / 4
    at_margin = flips - margin * (1 + margin)
    infinite = ((1.6449 * np.sqrt(at_margin) + 0.8416 * np.sqrt(share)) / margin) ** 2
    return round(float(infinite / (1 + (infinite - 1) / n)))


def before_and_after(log: DesignLog, claim: Claim, side: int, budget: int) -> Array:
    """Verdicts of a side and questions within the budget, without and with the bet that aims at it, shape (2, 2, S)."""
    out = []
    for one in (replace(log, horizon=0), log):
        found = decide(one, [claim])
        right = found.outcome[:, 0] == side
        out.append([right.astype(float), np.where(right, found.at[:, 0], budget)])
    return np.array(out)


def before_after_line(cells: Sequence[Array]) -> str:
    """Shares and questions before and after, with the standard error of the change."""
    each = np.concatenate(cells, axis=2)
    (share, asked), (new_share, new_asked) = each.mean(axis=2)
    runs = each.shape[2]
    gain, saved = (each[1] - each[0]).std(axis=1) / runs**0.5
    return (
        f"decided {share:.3f} -> {new_share:.3f} (+- {gain:.3f}), asked {asked:.1f} -> {new_asked:.1f} "
        f"(x {new_asked / asked:.3f} +- {saved / asked:.3f}), {runs} runs"
    )


POWERED = (0.03, 0.10, 0.20)  #: Shares of items on which a candidate differs from its baseline.


def rate(values: Array) -> str:
    """A share with its standard error."""
    if not len(values):
        return "-"
    return f"{values.mean():.3f} +- {(values.mean() * (1 - values.mean()) / len(values)) ** 0.5:.3f}"


def power(names: Sequence[str], seeds: int, model: str, pool: str, margins: Sequence[float]) -> None:
    """Paired gates whose budget is that of a fixed test: PASS of equal candidates, and of ones beyond the margin."""
    for name in names:
        calibrating, responses = sides(name, pool)
        bank, n = bank_of(fit_map(calibrating, model=model)), responses.shape[1]
        responses = responses[:: max(1, len(responses) // 10)]
        p = bank.probability(abilities(bank, responses))
        for share, margin, even in product(POWERED, margins, (False, True)):
            if margin > share:
                continue  # who differs on fewer items cannot lose so much
            rng, budget = np.random.default_rng(3), min(tango_size(share, margin, n), n)
            passed: dict[tuple[str, bool], list[Array]] = {}
            good: list[Array] = []
            for s, base in enumerate(responses):
                if not share * 1.2 < base.mean() < 1 - share * 1.2:
                    continue
                baseline = Baseline("base", base)
                claim = PairedClaim.of(baseline, margin, 0.95)
                patient = replace(claim, confidence=1 - 1e-13)  # the draws are those of the claim, and none stops early
                for loss in (0, round(margin * n) + 1):
                    if loss // 2 > round(share * n / 2):
                        continue
                    candidates = np.stack([flipped(base, p[s], share, even, rng, loss) for _ in range(seeds)])
                    if loss and not (candidates.sum(axis=1) < claim.total).all():
                        continue
                    log = interviews(bank, DECIDE, candidates, str(budget), s, patient, baseline=baseline)
                    spent = replace(log, fixed=True, paths={})  # both stops have the same draws
                    both = before_and_after(log, claim, 1, budget)
                    passed.setdefault(("decision", loss > 0), []).append(both[1, 0])
                    verdicts = decide(spent, [claim]).outcome[:, 0]
                    passed.setdefault(("budget", loss > 0), []).append((verdicts == 1).astype(float))
                    if not loss:
                        good.append(both)
            rates = [
                f"{stop} {rate(np.concatenate(passed[stop, False]))}, false "
                f"{rate(np.concatenate(passed.get((stop, True), [np.empty(0)])))}"
                for stop in ("decision", "budget")
            ]
            print(
                f"{name:18} {share:4.0%} flips {'evenly' if even else '~ p(1-p)':8} margin {100 * margin:2.0f}, budget "
                f"{budget:4} of {n}: {'; '.join(rates)}; without the aimed bet {before_after_line(good)}",
                flush=True,
            )


def aimed(names: Sequence[str], seeds: int, model: str, pool: str) -> None:
    """Thresholds with small and large budgets, without and with the bet that aims at the budget."""
    for name in names:
        calibrating, responses = sides(name, pool)
        bank, n = bank_of(fit_map(calibrating, model=model)), responses.shape[1]
        responses = responses[:: max(1, len(responses) // 10)]
        for margin, budgeted in product((0.10, 0.05), ("10%", "20%", "30%", "40%")):
            found = []
            for s, row in enumerate(responses):
                rows = np.repeat(row[None], max(1, seeds // 2), axis=0)
                for side in (1, -1):
                    claim = Claim(row.sum() - side * margin * n)
                    if 0.02 < claim.total / n < 0.98:
                        patient = replace(claim, confidence=1 - 1e-13)
                        log = interviews(bank, DECIDE, rows, budgeted, 2 * s + (side > 0), patient)
                        found.append(before_and_after(log, claim, side, log.scores.shape[1]))
            print(
                f"{name:18} threshold {100 * margin:2.0f} points off, budget {budgeted}: {before_after_line(found)}",
                flush=True,
            )


# --- defaults ---------------------------------------------------------------------------------------------------------


def defaults(seeds: int) -> None:
    """Share of the gates 10 points from the truth that the default budget decides, on banks of half of the families."""
    print("gates 10 points from the truth without a written budget: decided, mean budget and questions, of the items")
    for name in MATRICES:
        calibrating, responses = halves(name)
        bank = bank_of(fit_map(calibrating))
        n = len(bank)
        for label, policy, used in (
            ("calibrated", DECIDE, bank),
            ("uncalibrated", UNIFORM, replace(bank, calibrated=False)),
        ):
            found, budgets, asked = [], [], []
            for s, row in enumerate(responses):
                for side in (1, -1):
                    threshold = row.mean() - side * PLANNING_MARGIN
                    if not 0.02 < threshold < 0.98:
                        continue
                    budget = default_budget([Condition("accuracy", "at_least", threshold)], used, policy)
                    rows = np.repeat(row[None], seeds, axis=0)
                    decisions = decided(used, policy, rows, str(budget), 2 * s + (side > 0), Claim(threshold * n))
                    at = decisions.at[:, 0]
                    found += (decisions.outcome[:, 0] != 0).tolist()
                    budgets.append(budget)
                    asked += np.where(at > 0, at, budget).tolist()
            print(
                f"{name:20} {label:12} {np.mean(found):.3f} of {len(found):5} gates, {np.mean(budgets):6.1f}, "
                f"{np.mean(asked):6.1f}, {n}",
                flush=True,
            )


# --- planning ---------------------------------------------------------------------------------------------------------


def planning(seeds: int, model: str, pool: str) -> None:
    """What a gate promises and what happens."""
    print("chance of a verdict within a fifth and expected questions: promised (happened)")
    for name in NAMES:
        responses = read(NAMES[name], "test")
        n, totals = responses.shape[1], responses.sum(axis=1)
        bank = banks_of(name, model, pool)["good"]
        for margin in (0.15, 0.10, 0.07, 0.05, 0.03):
            promised, within = [], []
            happened = []
            for s, total in enumerate(totals):
                for side in (1, -1):
                    threshold = total / n - side * margin
                    if not 0.02 < threshold < 0.98:
                        continue
                    ahead = outlooks(Condition("accuracy", "at_least", threshold), bank, DECIDE, margin=margin)
                    mine = ahead[0 if side > 0 else -1]
                    promised.append(mine.expected)
                    within.append(mine.chance(round(n / 5)))
                    claim, rows = Claim(threshold * n), np.repeat(responses[s][None], seeds, axis=0)
                    found = decided(bank, DECIDE, rows, "100%", 2 * s + (side > 0), claim)
                    happened.append(np.where(found.outcome[:, 0] == side, found.at[:, 0], n))
            print(
                f"{name:5} {100 * margin:3.0f} points: {np.mean(within):.2f} "
                f"({np.mean(np.array(happened) <= n / 5):.2f}), {np.mean(promised):6.1f} ({np.mean(happened):6.1f})",
                flush=True,
            )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ("errors", "items", "batches", "paired", "power", "aimed", "planning", "defaults")
    parser.add_argument("what", choices=choices)
    parser.add_argument("--seeds", type=int, default=20, help="interviews a model (120 for the error rates)")
    parser.add_argument("--model", default="2pl", choices=("2pl", "mirt"), help="of the bank")
    parser.add_argument(
        "--pool",
        default="train",
        choices=("train", "others"),
        help="models that the bank is calibrated from: the 60 of the paper, or all but the 17 held-out ones",
    )
    parser.add_argument("--margins", nargs="*", type=float, default=[10, 5, 2], help="of items, in points")
    parser.add_argument("--no-hindsight", action="store_true", help="without the oracle and the best bets")
    parser.add_argument("--share", default="35%", help="of the bank, looked at for errors")
    parser.add_argument("--data", nargs="*", default=list(NAMES), choices=(*NAMES, *MATRICES), help="only these")
    parser.add_argument("--sizes", nargs="*", type=int, default=[1, 8, 64, 256], help="of batches, in items")
    parser.add_argument("--every", action="store_true", help="errors of every selector and stop that gates allow")
    options = parser.parse_args(arguments)
    for name in set(NAMES) - set(options.data):
        del NAMES[name]
    margins = [points / 100 for points in options.margins]
    if options.what == "errors":
        errors(options.seeds, options.model, options.pool, options.share, options.every)
    elif options.what == "items":
        items(options.data, options.seeds, options.model, options.pool, margins, not options.no_hindsight)
    elif options.what == "batches":
        batches(options.seeds, options.model, options.pool, margins, options.sizes)
    elif options.what == "paired":
        paired(options.seeds, options.model, options.pool, not options.no_hindsight)
    elif options.what == "aimed":
        aimed(options.data, options.seeds, options.model, options.pool)
    elif options.what == "power":
        power(options.data, options.seeds, options.model, options.pool, margins)
    elif options.what == "defaults":
        defaults(options.seeds)
    else:
        planning(options.seeds, options.model, options.pool)


if __name__ == "__main__":
    main()
