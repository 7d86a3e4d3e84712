"""Gates on items in formats: error rates of abilities in parts and of gains.

``python benchmarks/format_gates.py parts`` gates eight checkpoints on each part of ability, with the threshold a
hundredth beyond the ability that all of their answers give: the share of PASS where the gate is false and of FAIL where
it is true. The checkpoints are ordinary ones, such that lost a fifth of their right answers, nearly perfect ones, and
such that miss the easiest 6 %. ``--away 1`` puts the threshold one standard deviation to either side of the ability,
and prints the share of right verdicts. ``--budget`` (5%,20%,40%), ``--selector`` (leverage),
``--floor`` (0.5), ``--runs`` (500). A threshold outside of the part's limits shows nan.

``python benchmarks/format_gates.py gains`` puts the threshold of a gain gate at each checkpoint's own gain, and a
hundredth above and below it: the share of PASS where the claim is false and of FAIL where it is true, for interviews
that stop at a decision and for such that ask their budget.

``python benchmarks/format_gates.py released`` runs the gates of the example through pytest on the recorded answers of
the released checkpoints, 20 seeds: verdicts and calls.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval.banks.reader import read_bank
from pytest_adaptive_eval.banks.responses import read_format_responses
from pytest_adaptive_eval.calibration.scale import format_scale
from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.selectors import SELECTORS
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.claims.gain import fullest, gap_claims
from pytest_adaptive_eval.claims.score_equations import ScoreEquations
from pytest_adaptive_eval.claims.weighted_ability import limits, weighted_ability
from pytest_adaptive_eval.inference.betting import decide
from pytest_adaptive_eval.inference.design import uniform_draws
from pytest_adaptive_eval.irt.multimodal import Form
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.modalities import asked_in_formats
from pytest_adaptive_eval.items.responses import FormatResponses

#: Sides of a threshold that a gate may refuse.
SIDES: list[Literal[1, -1]] = [1, -1]

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


def checkpoints(pairs: ItemBank) -> dict[str, Array]:
    """Scores (pairs,) of eight checkpoints."""
    rng, size = np.random.default_rng(1), len(pairs)
    easiest = np.argsort(-pairs.probability(np.zeros((1, pairs.dimensions)))[0], kind="stable")[: round(0.06 * size)]
    with gzip.open(FIXTURES / "responses" / "released-cross.csv.gz", "rt") as file:
        released = {row["subject"]: row for row in csv.DictReader(file)}
    found = {}
    for name in ("cross-early", "cross-late", "cross-regressed"):
        found[name] = np.array([float(released[name][item]) for item in pairs.ids])
    assert pairs.in_formats is not None
    middle = pairs.probability(pairs.in_formats.standings[5:6])[0]
    scores = {
        "ordinary": (rng.random(size) < middle).astype(float),
        "cross-early": found["cross-early"],
        "cross-late": found["cross-late"],
        "late, 20 % lost": found["cross-late"] * (rng.random(size) >= 0.2),
        "regressed, 20 % lost": found["cross-regressed"] * (rng.random(size) >= 0.2),
        "near-perfect": (np.arange(size) % 200 != 0).astype(float),
        "late, easiest wrong": found["cross-late"].copy(),
        "perfect, easiest wrong": np.ones(size),
    }
    for name in ("late, easiest wrong", "perfect, easiest wrong"):
        scores[name][easiest] = 0.0
    return scores


def parts(options: argparse.Namespace) -> None:
    """Wrong verdicts on parts of ability at the threshold, or right ones away from it."""
    pairs = asked_in_formats(read_bank(FIXTURES / "banks" / "cross.bank"))
    policy = replace(POLICIES["decide"], selector=SELECTORS[options.selector], floor=options.floor, stop="budget")
    policy = replace(policy, even_budget=False)
    low, high = limits(pairs)
    away = options.away or -0.01
    print("share of PASS / FAIL by part:", ", ".join(pairs.parts))
    for budget in options.budget.split(","):
        for name, scores in checkpoints(pairs).items():
            truth = ability_of_all(pairs, scores)
            session = Session(pairs, replace(policy, budget=budget), seed=range(options.runs), subjects=options.runs)
            while (proposal := session.ask()) is not None:
                session.tell(scores[proposal.items])
            counts = np.zeros((2, len(truth)))
            for subject in range(options.runs):
                equations = ScoreEquations(pairs, session.log(subject))
                for k, own in enumerate(truth):
                    for row, side in enumerate(SIDES):
                        threshold = own - side * away
                        if low[k] <= threshold <= high[k]:
                            counts[row, k] += equations.refuses(threshold, k, side, CONFIDENCE)
                        else:
                            counts[row, k] = np.nan
            shares = "  ".join(f"{passed:.3f}/{failed:.3f}" for passed, failed in (counts / options.runs).T)
            told = " ".join(f"{value:+.2f}" for value in truth)
            print(f"{budget:>4} {name:23} [{told}]  {shares}", flush=True)


def ability_of_all(pairs: ItemBank, scores: Array) -> Array:
    """Ability (D,) by all answers."""
    return weighted_ability(pairs, uniform_draws(scores, len(scores))).theta


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
    parser.add_argument("--budget", default="5%,20%,40%")
    parser.add_argument("--selector", default="leverage")
    parser.add_argument("--floor", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--away", type=float, default=0.0)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    {"parts": parts, "gains": gains, "released": released}[options.what](options)


if __name__ == "__main__":
    main()
