"""Gates on accuracy whose answers an earlier run predicts: questions over those without, and false verdicts.

``python benchmarks/earlier_runs.py questions`` interviews candidates with thresholds 10 and 5 points on either side of
their accuracy, by the default policy with and without the answers of an earlier run, on two matrices of models, one of
agents and one of checkpoints of training runs. The earlier run is of a checkpoint that differs on 3, 10 or 20 % of the
items, or of another model. On the matrix of checkpoints these are consecutive ones of held-out runs; elsewhere as many
answers are gained as lost, half of the candidates evenly and half in proportion to p(1-p). ``--asked 1 .5 .2 .05`` are
the shares of the bank that the earlier run asked. Each line has the mean questions, their ratio with a standard error,
and the number of wrong verdicts. At the end come the means over the matrices.

``python benchmarks/earlier_runs.py errors`` puts the truth at the threshold, on a simulated bank of 400 items, and
counts false verdicts after each answer up to half of the bank. The bank is right, or wrong by 5, 10 or 25 points. The
earlier run is one that resembles the candidate, one that is wrong on all items, the candidate's own answers, or the
first 80 items that the same seed asked of an equal subject. With ``--same-stream`` the draws are those of an interview
without predictions, which is what must not be. The matrices are looked for in ``ADAPTIVE_EVAL_DATA`` (default
``../shared/data``).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from gate_decisions import DECIDE, UNIFORM, abilities, decided, flipped
from interval_coverage import bank_of, matrix_of, sides
from numpy.typing import NDArray

from pytest_adaptive_eval.calibration.engines.variational import fit_map
from pytest_adaptive_eval.cat.policy import Policy
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.earlier import EarlierAnswers
from pytest_adaptive_eval.inference.betting import Claim, decide
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.records.earlier import EarlierRun
from pytest_adaptive_eval.records.parts import PredictionRecord

Array = NDArray[np.float64]
DATA = ("AI2D", "MMMU", "swebench_verified", "digits_checkpoints")
CHECKPOINTS = "digits_checkpoints"
SHARES = (0.03, 0.10, 0.20)
UNRELATED = "unrelated"
SIZE, SHIFTS = 400, (0.0, 0.05, 0.10, 0.25)  #: Items of the simulated bank, and errors of its predicted accuracy.


def stream(seed: int, scores: Array) -> int:
    """Return the seed of the draws with the predictions of some scores, as the plugin has it."""
    known = {str(n): float(scores[n]) for n in np.flatnonzero(~np.isnan(scores))}
    return EarlierRun.of(PredictionRecord("earlier"), known).stream(seed)


# --- questions --------------------------------------------------------------------------------------------------------


def consecutive(share: float, most: int) -> list[tuple[Array, Array]]:
    """Return the consecutive checkpoints of held-out training runs that differ on nearest to a share of the items."""
    responses, runs = matrix_of(CHECKPOINTS)
    calibrating = set(np.random.default_rng(0).permutation(sorted(set(runs)))[::2].tolist())
    pairs: list[tuple[Array, Array]] = []
    for before, after, run, following in zip(responses, responses[1:], runs, runs[1:], strict=False):
        if run == following and run not in calibrating:
            pairs.append((before, after))
    pairs.sort(key=lambda pair: abs(float(np.abs(pair[1] - pair[0]).mean()) - share))
    return pairs[:most]


def pairs_of(data: str, bank: ItemBank, held: Array, kind: float | str, most: int) -> list[tuple[Array, Array]]:
    """Return pairs of an earlier subject's and a candidate's scores."""
    rng = np.random.default_rng(5)
    if isinstance(kind, str):
        order = rng.permutation(len(held))
        return [(held[a], held[b]) for a, b in zip(order, np.roll(order, 1), strict=True)][:most]
    if data == CHECKPOINTS:
        return consecutive(kind, most)
    p = bank.probability(abilities(bank, held))
    pairs: list[tuple[Array, Array]] = []
    for s in rng.permutation(len(held)).tolist():
        if kind / 2 < held[s].mean() < 1 - kind / 2:
            pairs.append((held[s], flipped(held[s], p[s], kind, len(pairs) % 2 == 0, rng)))
    return pairs[:most]


@dataclass
class Cell:
    """Questions of the gates of one cell, with predictions and without, and its wrong verdicts."""

    ours: list[Array]
    default: list[Array]
    wrong: int = 0

    def ratio(self) -> tuple[float, float, float, float]:
        """Return the mean questions, those of the default, their ratio and its standard error."""
        ours, default = np.concatenate(self.ours), np.concatenate(self.default)
        ratio = float(ours.mean() / default.mean())
        error = float((ours - ratio * default).std() / len(ours) ** 0.5 / default.mean())
        return float(ours.mean()), float(default.mean()), ratio, error


def cell_of(
    bank: ItemBank, pairs: Sequence[tuple[Array, Array]], margin: float, asked: float, seeds: int, plain: bool
) -> Cell:
    """Interview candidates on both sides of their thresholds."""
    n = len(bank)
    cell = Cell([], [])
    policy = DECIDE
    if plain:
        bank, policy = replace(bank, calibrated=False), UNIFORM
    for place, (before, candidate) in enumerate(pairs):
        scores = before.copy()
        scores[np.random.default_rng(place).permutation(n)[round(asked * n) :]] = np.nan
        earlier = EarlierAnswers("earlier", scores)
        for side in (1, -1):
            claim = Claim(candidate.sum() - side * margin * n)
            if not 0.02 < claim.total / n < 0.98:
                continue
            rows = np.repeat(candidate[None], seeds, axis=0)
            seed = 2 * place + (side > 0)
            for found_by, own_seed, more in (
                (cell.default, seed, {}),
                (cell.ours, stream(seed, scores), {"earlier": earlier}),
            ):
                own = UNIFORM.by_predictions if plain and more else policy
                found = decided(bank, own, rows, "100%", own_seed, claim, **more)
                found_by.append(np.where(found.outcome[:, 0] == side, found.at[:, 0], n))
                if more:
                    cell.wrong += int((found.outcome[:, 0] == -side).sum())
    return cell


def questions(data: Sequence[str], shares: Sequence[float], seeds: int, most: int, plain: bool) -> None:
    """Print the questions of each cell, and the means over the matrices."""
    ratios: dict[tuple[str, float, float], list[tuple[float, float]]] = {}
    for name in data:
        calibrating, held = sides(name, "train")
        bank = bank_of(fit_map(calibrating, model="2pl"))
        for kind in (*SHARES, UNRELATED):
            pairs = pairs_of(name, bank, held, kind, most)
            differ = float(np.mean([np.abs(after - before).mean() for before, after in pairs]))
            label = kind if isinstance(kind, str) else f"{kind:.0%}"
            for asked, margin in product(shares, (0.10, 0.05)):
                cell = cell_of(bank, pairs, margin, asked, seeds, plain)
                ours, default, ratio, error = cell.ratio()
                ratios.setdefault((label, asked, margin), []).append((ratio, error))
                runs = sum(map(len, cell.ours))
                print(
                    f"{name:18} {label:9} ({differ:4.0%} differ) earlier run of {asked:4.0%}, {100 * margin:2.0f} "
                    f"points: {ours:6.1f}, default {default:6.1f}, ratio {ratio:.3f} +- {error:.3f}, {cell.wrong} of "
                    f"{runs} wrong",
                    flush=True,
                )
    for (label, asked, margin), cells in ratios.items():
        each = np.array(cells)
        error = float((each[:, 1] ** 2).sum() ** 0.5 / len(each))
        print(
            f"mean of {len(each)}: {label:9} earlier run of {asked:4.0%}, {100 * margin:2.0f} points: "
            f"{each[:, 0].mean():.3f} +- {error:.3f}"
        )


# --- errors -----------------------------------------------------------------------------------------------------------


def simulated(shift: float) -> tuple[ItemBank, Array]:
    """Return a bank whose predicted accuracy is off by `shift`, and a candidate's scores."""
    rng = np.random.default_rng(7)
    slopes, intercepts = rng.lognormal(0.0, 0.4, SIZE), rng.normal(0.8, 1.5, SIZE)
    candidate = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(-intercepts))).astype(float)
    right, low, high = candidate.mean() + shift, -10.0, 10.0
    while high - low > 1e-6:  # the shift of all intercepts by which an average subject scores that much
        middle = (low + high) / 2
        low, high = (low, middle) if (1.0 / (1.0 + np.exp(-intercepts - middle))).mean() > right else (middle, high)
    ids = [str(n) for n in range(SIZE)]
    return ItemBank("b", ids, (), slopes[:, None], intercepts + low), candidate


def resembling(candidate: Array, share: float) -> Array:
    """Return scores that differ on a share of the items."""
    scores = candidate.copy()
    chosen = np.random.default_rng(11).choice(SIZE, round(share * SIZE), replace=False)
    scores[chosen] = 1.0 - scores[chosen]
    return scores


def first_asked(bank: ItemBank, policy: Policy, subject: Array, seed: int, count: int = 80) -> Array:
    """Return a subject's scores on the first items that a seed asks, NaN elsewhere."""
    session = Session(bank, replace(policy, budget=count), seed=seed, claims=[Claim(subject.sum())])
    while session.asked < count and (proposal := session.ask()) is not None:
        session.tell(subject[proposal.items])
    scores = np.full(SIZE, np.nan)
    scores[session.log().items] = session.log().scores
    return scores


#: Earlier answers by the name of the cell, from the bank, the candidate's scores and the seed; those of one seed alone
#: need an interview for each run.
WHOLE: dict[str, Callable[[Array], Array]] = {
    "differs on 3%": lambda candidate: resembling(candidate, 0.03),
    "differs on 10%": lambda candidate: resembling(candidate, 0.10),
    "differs on 20%": lambda candidate: resembling(candidate, 0.20),
    "wrong on half": lambda candidate: resembling(candidate, 0.50),
    "reversed": lambda candidate: 1.0 - candidate,
    "the same file": lambda candidate: candidate,
    "all right": np.ones_like,
}
#: Share of the items on which the subject differs that the same seed asked, and the policy of both runs.
OF_SEED = {
    "first 80 of the same seed, differs on 3%": (0.03, DECIDE),
    "the candidate's own first 80, same seed": (0.0, DECIDE),
    "the candidate's own first 80, uniform draws": (0.0, UNIFORM),
}


def outcomes(
    bank: ItemBank, candidate: Array, label: str, side: int, runs: int, first: int, same_stream: bool
) -> Iterator[bool]:
    """Yield whether each run gave a false verdict of a side, with the truth at the threshold."""
    claim = Claim(candidate.sum() + (side > 0))
    if label in WHOLE:
        scores = WHOLE[label](candidate)
        rows = np.repeat(candidate[None], runs, axis=0)
        seeds = [seed if same_stream else stream(seed, scores) for seed in range(first, first + runs)]
        found = decided(bank, DECIDE, rows, "50%", seeds, claim, earlier=EarlierAnswers("earlier", scores))
        yield from (found.outcome[:, 0] == side).tolist()
        return
    share, policy = OF_SEED[label]
    for seed in range(first, first + runs):
        scores = first_asked(bank, policy, resembling(candidate, share), seed)
        own = seed if same_stream else stream(seed, scores)
        earlier = EarlierAnswers("earlier", scores)
        session = Session(bank, replace(policy, budget="50%"), seed=own, claims=[claim], earlier=earlier)
        while (proposal := session.ask()) is not None:
            session.tell(candidate[proposal.items])
        yield bool(decide(session.log(), [claim]).outcome[0] == side)


def errors(cells: Sequence[str], runs: int, worst: int, same_stream: bool, shifts: Sequence[float]) -> None:
    """Print the false verdicts of each cell, and of more runs of the four worst."""
    limit = 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5
    print(f"false verdicts at the threshold, {runs} runs a cell and side; at most {limit:.4f} is within two errors")
    rates: dict[tuple[float, str, int], float] = {}
    for shift, label in product(shifts, cells):
        bank, candidate = simulated(shift)
        for side in (1, -1):
            found = list(outcomes(bank, candidate, label, side, runs, 0, same_stream))
            rates[shift, label, side] = float(np.mean(found))
        passed, failed = (rates[shift, label, side] for side in (1, -1))
        print(
            f"bank off by {100 * shift:2.0f} points, {label:45} false PASS {passed:.4f}, FAIL {failed:.4f}", flush=True
        )
    for cell in sorted(rates, key=lambda cell: -rates[cell])[: 4 if worst else 0]:
        shift, label, side = cell
        bank, candidate = simulated(shift)
        found = list(outcomes(bank, candidate, label, side, worst, runs, same_stream))
        verdict = "PASS" if side > 0 else "FAIL"
        print(f"{worst} further runs, bank off by {100 * shift:2.0f} points, {label}: {verdict} {np.mean(found):.4f}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("questions", "errors"))
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=DATA)
    parser.add_argument("--asked", nargs="*", type=float, default=[1.0], help="shares that the earlier run asked")
    parser.add_argument("--seeds", type=int, default=16, help="interviews of a pair, margin and side")
    parser.add_argument("--pairs", type=int, default=17, help="most pairs of a kind")
    parser.add_argument("--plain", action="store_true", help="without the parameters of the bank")
    parser.add_argument("--runs", type=int, default=2000, help="runs of a cell of errors")
    parser.add_argument("--cells", nargs="*", default=[*WHOLE, *OF_SEED], choices=[*WHOLE, *OF_SEED], help="of errors")
    parser.add_argument("--worst", type=int, default=10000, help="further runs of the four worst cells; 0 for none")
    parser.add_argument("--shifts", nargs="*", type=float, default=list(SHIFTS), help="errors of the bank's accuracy")
    parser.add_argument("--same-stream", action="store_true", help="draw as without predictions, which is invalid")
    options = parser.parse_args()
    if options.what == "questions":
        questions(options.data, options.asked, options.seeds, options.pairs, options.plain)
    else:
        errors(options.cells, options.runs, options.worst, options.same_stream, options.shifts)


if __name__ == "__main__":
    main()
