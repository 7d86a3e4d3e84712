"""Gates on items in formats: error rates of abilities in parts and of gains, on checkpoints the bank has not seen.

``python benchmarks/format_gates.py parts`` leaves a quarter of the runs of a fixture family out at a time, fits M2 and
M3 to the rest, and interviews those left out by their recorded answers. What an ability *is* for a checkpoint is its
estimate from all its answers in all formats, by the same parameters; printed is how often the one-sided 95 % bounds of
the interview miss it, by part, how far off the estimate is, and the half width that is stated. ``--kind`` (cross),
``--form`` (m3), ``--budget`` (20%,40%), ``--selector`` (information), ``--floor`` (0.5), ``--repeats`` (5).

``python benchmarks/format_gates.py gains`` puts the threshold of a gain gate at each checkpoint's own gain, and a
hundredth above and below it: the share of PASS where the claim is false and of FAIL where it is true, for interviews
that stop at a decision and for such that ask their budget.

``python benchmarks/format_gates.py released`` runs the gates of the example through pytest on the recorded answers of
the released checkpoints, 20 seeds: verdicts and calls.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import read_format_responses
from pytest_adaptive_eval.calibration.scale import format_scale
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.gain import fullest, gap_claims
from pytest_adaptive_eval.claims.weighted_ability import weighted_ability
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.irt.estimation import Estimator
from pytest_adaptive_eval.irt.multimodal import Form
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.modalities import asked_in_formats
from pytest_adaptive_eval.items.responses import FormatResponses

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
Array = NDArray[np.float64]
#: Quarters of the runs that are left out, one at a time.
FOLDS = 4
#: One-sided.
CONFIDENCE = 0.95


def held_out(kind: str, form: Form) -> Iterator[tuple[ItemBank, Array]]:
    """A bank in formats without a quarter of the runs, and the answers (S, pairs) of those left out."""
    found = read_format_responses([FIXTURES / "responses" / f"{kind}.csv.gz"])
    bank = read_bank(FIXTURES / "banks" / f"{kind}.items.jsonl")
    found = ordered(found, bank)
    runs = np.array(found.families)
    names = np.random.default_rng(0).permutation(sorted(set(runs)))
    for fold in range(FOLDS):
        out = np.isin(runs, names[fold::FOLDS])
        scale = format_scale(found.scores[~out], found.modalities, form)
        pairs = asked_in_formats(replace(bank, in_formats=scale))
        place = {form: n for n, form in enumerate(found.modalities.formats)}
        columns = np.array([place[form] for form in pairs.categories])
        rows = np.repeat(np.arange(len(bank)), len(place))
        yield pairs, found.scores[out][:, rows, columns]


def ordered(found: FormatResponses, bank: ItemBank) -> FormatResponses:
    """The responses in the bank's order of items."""
    place = {name: n for n, name in enumerate(found.items)}
    return found.at([place[name] for name in bank.ids])


def everything(pairs: ItemBank, scores: Array, estimator: Estimator) -> Array:
    """Abilities (S, K) by all answers."""
    shape = (len(scores), *pairs.discrimination.shape)
    given = np.broadcast_to(pairs.discrimination, shape), np.broadcast_to(pairs.intercept, shape[:2])
    start = estimator.prior(len(scores), pairs.dimensions)
    return np.asarray(estimator.estimate(scores, *given, None, start).theta)


def parts(options: argparse.Namespace) -> None:
    """Misses of the bounds, by part."""
    budgets = options.budget.split(",")
    errors: dict[str, list[Array]] = {budget: [] for budget in budgets}
    bounds: dict[str, list[Array]] = {budget: [] for budget in budgets}
    truths: list[Array] = []
    names: tuple[str, ...] = ()
    for pairs, scores in held_out(options.kind, options.form):
        scores, names = np.nan_to_num(scores), pairs.parts
        policy = replace(POLICIES["decide"], selector=SELECTORS[options.selector], floor=options.floor, stop="budget")
        truth = everything(pairs, scores, policy.estimator)
        truths.append(truth)
        for budget in budgets:
            for repeat in range(options.repeats):
                seeds = [1000 * repeat + s for s in range(len(scores))]
                session = Session(pairs, replace(policy, budget=budget), seed=seeds, subjects=len(scores))
                while (proposal := session.ask()) is not None:
                    session.tell(np.take_along_axis(scores, proposal.items, axis=1))
                for s, own in enumerate(truth):
                    found = weighted_ability(pairs, session.log(s))
                    errors[budget].append(found.theta - own)
                    z = stdtrit(found.freedom, CONFIDENCE)
                    bounds[budget].append(z * found.standard_error)
    spread = np.vstack(truths).std(axis=0)
    told = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, spread, strict=True))
    print(f"{options.kind}, {options.form}, {options.selector}, floor {options.floor:g}; spread of abilities: {told}")
    for budget in budgets:
        off, half = np.vstack(errors[budget]), np.vstack(bounds[budget])
        print(
            f"  {budget} of the calls, {len(off)} interviews: low bound too high / high one too low, error, half width"
        )
        for k, name in enumerate(names):
            above, below = (off[:, k] > half[:, k]).mean(), (off[:, k] < -half[:, k]).mean()
            print(
                f"    {name:6} {above:.3f} / {below:.3f}   {off[:, k].std():.2f}   {half[:, k].mean():.2f}", flush=True
            )


def gains(options: argparse.Namespace) -> None:
    """Wrong verdicts of gain gates at the threshold."""
    for stop in ("decision", "budget"):
        wrong: Counter[str] = Counter()
        count = 0
        for pairs, scores in held_out(options.kind, options.form):
            if np.isnan(scores).any():
                scores = np.nan_to_num(scores)
            policy = replace(
                POLICIES["decide"], selector=SELECTORS[options.selector], floor=options.floor, stop=stop, budget="40%"
            )
            categories, full = np.array(pairs.categories), fullest(pairs)
            for s, own in enumerate(scores):
                means = {form: own[categories == form].mean() for form in set(categories.tolist())}
                gain = means[full] - max(share for form, share in means.items() if form != full)
                for side, threshold in (("PASS", gain + 0.01), ("FAIL", gain - 0.01)):
                    claims = gap_claims(pairs, threshold, CONFIDENCE)
                    session = Session(pairs, policy, seed=s, claims=claims, family=len(claims))
                    while (proposal := session.ask()) is not None:
                        session.tell(own[proposal.items])
                    log = session.log()
                    signs = decide(log, claims, len(claims)).outcome  # scores of gains are never judged exactly
                    passed, failed = bool((signs == 1).all()), bool((signs == -1).any())
                    wrong[side] += passed if side == "PASS" else failed
                count += 1
        print(f"{options.kind}, stop at {stop}: wrong PASS {wrong['PASS'] / count:.3f}, wrong FAIL "
              f"{wrong['FAIL'] / count:.3f} of {count} at a hundredth beyond the gain", flush=True)  # fmt: skip


def released(options: argparse.Namespace) -> None:
    """The example's gates through pytest."""
    example = ROOT / "examples" / "multimodal"
    for name in ("cross-early", "cross-late", "cross-regressed"):
        verdicts: dict[str, Counter[str]] = {}
        calls, cross = [], []
        for seed in range(options.seeds):
            with tempfile.TemporaryDirectory() as folder:
                recorded = FIXTURES / "responses" / "released-cross.csv.gz"
                command = [sys.executable, "-m", "pytest", "-q", "--adaptive-eval", f"--adaptive-eval-seed={seed}"]
                command += [f"--adaptive-eval-model=replay:{recorded}#{name}", f"--adaptive-eval-dir={folder}/run"]
                command += [f"--adaptive-eval-record={folder}/record.json", "-p", "no:cacheprovider", str(example)]
                subprocess.run(command, cwd=example, capture_output=True, check=False)
                record = json.loads(Path(folder, "record.json").read_text())
            (interview,) = record["interviews"]
            calls.append(interview["asked"])
            cross.append(interview["theta"][interview["bank"]["parts"].index("cross")])
            for gate in record["gates"]:
                verdicts.setdefault(gate["name"], Counter())[gate["verdict"]["outcome"]] += 1
        print(f"{name}: {np.mean(calls):.0f} calls of {interview['size']}, cross ability {np.mean(cross):+.2f}")
        for gate, found in verdicts.items():
            print(f"    {gate}: {dict(found)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("parts", "gains", "released"))
    parser.add_argument("--kind", default="cross", choices=("cross", "vision"))
    parser.add_argument("--form", default="m3", choices=("m2", "m3"))
    parser.add_argument("--budget", default="20%,40%")
    parser.add_argument("--selector", default="information")
    parser.add_argument("--floor", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    {"parts": parts, "gains": gains, "released": released}[options.what](options)


if __name__ == "__main__":
    main()
