"""Rules that end a test at a verdict, ours and the field's, on the same real response matrices.

``python benchmarks/field_gates.py`` draws the items of each held-out subject uniformly, except for our gate with a
bank. For each rule it counts the questions to a correct verdict, undecided ones as the whole bank, the share decided
within the size of a fixed test of power .8, and false verdicts of both sides where the truth is at the threshold, with
a look after each answer of half the bank. The rules:

``bank`` is the policy `decide` on a bank calibrated from other subjects. ``bets`` are the same bets on uniform draws.
``hypergeometric`` is the likelihood ratio of a uniform mixture of the totals up to 30 points beyond the threshold (as
in Waudby-Smith, Stark and Ramdas 2021). ``wald`` is the sequential probability ratio of the threshold and a truth at
the margin, which it has to know. ``fixed`` is the exact test of one look at its fixed size, where it always ends.
``posterior`` stops when 95 % of the posterior of a uniform prior are on one side, and ``wilson`` when Wilson's 95 %
bound does, both from the tenth answer on. ``precision`` ends, from the twentieth answer on, where half of Wilson's
two-sided 95 % interval is at most the margin, as TensorZero's adaptive stopping does, and has a verdict if the
threshold is outside. Two rules ask the items of maximum information on the bank, once for each subject: ``atlas``
ends at a standard error of .3 logits, as ATLAS does (arXiv 2511.04689), and has a verdict if the threshold's ability
is 1.645 standard errors away; ``confident`` ends as soon as it is, from the tenth answer on, like rankings of
arXiv 2601.13885. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default ``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from gate_decisions import DECIDE, classical, decided
from interval_coverage import MATRICES, NAMES, bank_of, sides
from numpy.typing import NDArray
from scipy.special import expit, gammaln
from scipy.stats import beta, hypergeom

from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.projection import ability_at
from pytest_adaptive_eval.inference.betting import Claim, log_wealth
from pytest_adaptive_eval.inference.design import DesignLog
from pytest_adaptive_eval.irt.estimation import ESTIMATORS
from pytest_adaptive_eval.irt.prediction import ABILITY_SD
from pytest_adaptive_eval.items.bank import ItemBank

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
ALPHA, QUANTILE = 0.05, 1.6449
FIRST = 10  #: Answers before rules without a guarantee look.
LEAST, BOTH = 20, 1.96  #: Answers before ``precision`` looks, and its quantile.
ATLAS_ERROR = 0.3  #: Standard error of the ability, in logits, at which ``atlas`` ends.
REACH, TOTALS = 0.3, 40  #: Totals of the hypergeometric mixture: how far they go, and how many they are.


@dataclass(frozen=True)
class Gate:
    """A gate on n items: threshold and margin in items, 1 for PASS or -1 for FAIL, and the size of the fixed test."""

    n: int
    total: float
    margin: float
    side: int
    size: int

    @property
    def null(self) -> int:
        """The total nearest to the threshold for which the verdict is wrong."""
        return int(np.ceil(self.total - 1e-9)) - (self.side > 0)

    def share(self, total: float) -> float:
        """A total's share of the bank, not 0 or 1."""
        return float(np.clip(total / self.n, 0.5 / self.n, 1 - 0.5 / self.n))


#: Whether each of S tests is decided after each of t answers, by the right answers so far, shape (S, t).
Rule = Callable[[Array, Gate], Flags]


def bets(right: Array, gate: Gate) -> Flags:
    n, scores = gate.n, np.diff(right, axis=1, prepend=0.0)
    t = np.arange(right.shape[1])
    left = np.broadcast_to((n - t).astype(float), right.shape)
    p = (right - scores + 1.0) / (t + 2.0)
    items = np.broadcast_to(t, right.shape)
    log = DesignLog(items, scores, 1.0 / left, p, p * left, p * (1 - p) * left**2, p * left, (1 - p) * left, n)
    return np.asarray(log_wealth(log, Claim(gate.total), 1 if gate.side > 0 else -1) >= -np.log(ALPHA))


def settled(right: Array, gate: Gate) -> Flags:
    """Whether the answers alone decide."""
    most = right + gate.n - np.arange(1, right.shape[1] + 1)
    return np.asarray(right >= gate.total - 1e-9 if gate.side > 0 else most < gate.total - 1e-9)


def hypergeometric(right: Array, gate: Gate) -> Flags:
    n, null = gate.n, gate.null
    left = n - np.arange(1, right.shape[1] + 1)
    last = int(np.clip(null + gate.side * REACH * n, 0, n))
    totals = np.unique(np.linspace(null + gate.side, last, TOTALS).round()) if null != last else np.array([null])

    def log_likelihood(m: float) -> Array:
        rest = m - right
        possible = (rest >= 0) & (rest <= left)
        choices = (
            gammaln(left + 1)
            - gammaln(np.where(possible, rest, 0) + 1)
            - gammaln(np.where(possible, left - rest, 0) + 1)
        )
        return np.where(possible, choices, -np.inf) - (gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))

    mixture = np.logaddexp.reduce([log_likelihood(m) for m in totals], axis=0) - np.log(len(totals))
    return np.asarray(settled(right, gate) | (mixture >= log_likelihood(null) - np.log(ALPHA)))


def wald(right: Array, gate: Gate) -> Flags:
    t = np.arange(1, right.shape[1] + 1)
    p, q = gate.share(gate.total), gate.share(gate.total + gate.side * gate.margin)
    ratio = right * np.log(q / p) + (t - right) * np.log((1 - q) / (1 - p))
    return np.asarray(settled(right, gate) | (ratio >= -np.log(ALPHA)))


def posterior(right: Array, gate: Gate) -> Flags:
    t = np.arange(1, right.shape[1] + 1)
    below = beta.cdf(gate.total / gate.n, right + 1, t - right + 1)
    sure = below <= ALPHA if gate.side > 0 else below >= 1 - ALPHA
    return settled(right, gate) | (sure & (t >= FIRST))


def wilson(right: Array, gate: Gate) -> Flags:
    t, p = np.arange(1, right.shape[1] + 1), gate.share(gate.total)
    beyond = gate.side * (right - t * p) >= QUANTILE * np.sqrt(t * p * (1 - p))  # the score test that Wilson inverts
    return settled(right, gate) | (beyond & (t >= FIRST))


def fixed(right: Array, gate: Gate) -> Flags:
    look = min(gate.size, right.shape[1])
    k, n, null = right[:, look - 1], gate.n, gate.null
    chance = hypergeom.sf(k - 1, n, null, look) if gate.side > 0 else hypergeom.cdf(k, n, null, look)
    out = np.zeros(right.shape, dtype=bool)
    out[:, look - 1 :] = (chance <= ALPHA)[:, None]
    return out


def precision(right: Array, gate: Gate) -> Flags:
    t = np.arange(1, right.shape[1] + 1)
    share, z = right / t, BOTH**2 / t
    half = BOTH * np.sqrt(share * (1 - share) / t + z / (4 * t)) / (1 + z)
    away = gate.side * ((share + z / 2) / (1 + z) - gate.total / gate.n)
    ended = ((half <= gate.margin / gate.n) & (t >= LEAST)).cumsum(axis=1) == 1
    return settled(right, gate) | (np.maximum.accumulate(ended & (away > half), axis=1))


RULES: dict[str, Rule] = {
    rule.__name__: rule for rule in (bets, hypergeometric, wald, fixed, posterior, wilson, precision)
}


def draws(row: Array, seeds: int, rng: np.random.Generator) -> Array:
    """Right answers so far of `seeds` uniform orders, shape (seeds, n)."""
    return np.asarray(rng.permuted(np.tile(row, (seeds, 1)), axis=1).cumsum(axis=1))


def ability_path(bank: ItemBank, responses: Array) -> tuple[Array, Array]:
    """Abilities and their standard errors after each answer to half of the bank, shape (S, t), maximum information."""
    policy = Policy(SELECTORS["maximum-information"], 0.0, "50%", estimator=ESTIMATORS["map-wide"]())
    session = Session(bank, policy, subjects=len(responses))
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(responses, proposal.items, axis=1))
    items, theta = session.answers[0], session.trace[:, :, 0]
    slope, intercept = bank.discrimination[items, 0], bank.intercept[items]
    error = np.empty(theta.shape)
    for t in range(theta.shape[1]):
        asked = np.s_[:, : t + 1]
        p = expit(theta[:, [t]] * slope[asked] + intercept[asked])
        error[:, t] = (1 / ABILITY_SD**2 + (slope[asked] ** 2 * p * (1 - p)).sum(axis=1)) ** -0.5
    return theta, error


def by_ability(theta: Array, error: Array, cut: float, side: int) -> dict[str, Flags]:
    """Whether ``confident`` and ``atlas`` have a verdict by each answer of one subject, shape (1, t) each."""
    far = (side * (theta - cut) >= QUANTILE * error)[None]
    looked = np.arange(1, far.shape[1] + 1) >= FIRST
    ended = (error <= ATLAS_ERROR).cumsum() == 1
    return {"confident": far & looked, "atlas": np.maximum.accumulate(far & ended, axis=1)}


def main() -> None:
    """Run, and print a line for each matrix, margin and rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", default=list(NAMES), choices=(*NAMES, *MATRICES))
    parser.add_argument("--margins", nargs="*", type=float, default=[10, 5], help="in points")
    parser.add_argument("--seeds", type=int, default=20, help="interviews a subject and side")
    options = parser.parse_args()
    for name in options.data:
        calibrating, responses = sides(name, "train")
        bank, n, rng = bank_of(fit_map(calibrating)), responses.shape[1], np.random.default_rng(0)
        theta, error = ability_path(bank, responses)
        for points in options.margins:
            margin = points / 100 * n
            asked: dict[str, list[Array]] = {rule: [] for rule in ("bank", *RULES, "confident", "atlas")}
            within: dict[str, list[float]] = {rule: [] for rule in asked}
            false: dict[str, list[float]] = {rule: [] for rule in asked}
            for s, row in enumerate(responses):
                right = draws(row, options.seeds, rng)
                rows = np.repeat(row[None], options.seeds, axis=0)
                for side in (1, -1):
                    total = row.sum() - side * margin
                    if not 0.02 < total / n < 0.98:
                        continue
                    size = max(round(classical(np.array([row.sum()]), n, points / 100)), 1)
                    gate = Gate(n, total, margin, side, size)
                    edge = row.sum() + (1.0 if side > 0 else 0.0)
                    for rule, decides in RULES.items():
                        found = decides(right, gate)
                        at = np.where(found.any(axis=1), found.argmax(axis=1) + 1, n)
                        within[rule].append(float((at <= size).mean()))
                        asked[rule].append(np.full(len(at), size) if rule == "fixed" else at)
                        wrong = decides(right[:, : n // 2], replace(gate, total=edge))
                        false[rule].append(float(wrong.any(axis=1).mean()))
                    here = by_ability(theta[s], error[s], ability_at(bank, total / n), side)
                    there = by_ability(theta[s], error[s], ability_at(bank, edge / n), side)
                    for rule, found in here.items():
                        at = np.where(found.any(axis=1), found.argmax(axis=1) + 1, n)
                        asked[rule].append(at)
                        within[rule].append(float((at <= size).mean()))
                        false[rule].append(float(there[rule].any()))
                    verdicts = decided(bank, DECIDE, rows, "100%", 2 * s + (side > 0), Claim(total))
                    at = np.where(verdicts.outcome[:, 0] == side, verdicts.at[:, 0], n)
                    asked["bank"].append(at)
                    within["bank"].append(float((at <= size).mean()))
                    at_edge = decided(bank, DECIDE, rows, "50%", 2 * s + (side > 0), Claim(edge))
                    false["bank"].append(float((at_edge.outcome[:, 0] == side).mean()))
            for rule, parts in asked.items():
                each = np.concatenate(parts)
                runs = len(each)
                rate = float(np.mean(false[rule]))
                print(
                    f"{name:18} {points:3.0f} points {rule:14} {each.mean():7.1f} +- {each.std() / runs**0.5:4.1f} "
                    f"questions of {n}, within the fixed size {np.mean(within[rule]):.3f}, false {rate:.3f} +- "
                    f"{(rate * (1 - rate) / runs) ** 0.5:.3f} ({runs} interviews)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
