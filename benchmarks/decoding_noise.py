"""Error rates of gates on the accuracy expected over decodings, with items asked once, repeated or sampled.

Each item of a bank has an expected score, drawn once from a beta distribution, and an answer is right with that chance.
The threshold lies at the bank's expected accuracy, where a verdict may be wrong at most one time in twenty to each
side; the bank's predictions are the expected scores with noise. Beside it the same gate without measuring.

    python benchmarks/decoding_noise.py --seeds 1000

With ``--runs`` it makes whole runs of pytest instead: a sampling model whose expected accuracy is the threshold is
asked its whole bank, by default and with ``repeat = 0``. It prints the outcomes, and the notes of open verdicts.

    python benchmarks/decoding_noise.py --runs 40 --items 60
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from pytest_adaptive_eval.cat.policy import POLICIES
from pytest_adaptive_eval.cat.session import Session
from pytest_adaptive_eval.inference.betting import Claim, decide, interval_of_draws
from pytest_adaptive_eval.inference.noise import DecodingNoise
from pytest_adaptive_eval.inference.sampling import is_exact
from pytest_adaptive_eval.items.bank import ItemBank
from pytest_adaptive_eval.items.item import Item

#: Expected scores of the first items: at temperature .7 of a trained checkpoint (mostly sure), of one that is hardly
#: ever sure, of one whose whole noise is on a tenth of the items, and of one that is nearly always right.
KINDS = {
    "mostly sure": np.random.default_rng(3).beta(0.07, 0.07, 10_000),
    "hardly sure": np.random.default_rng(3).beta(2.0, 2.0, 10_000),
    "a tenth unsure": np.tile([1, 1, 1, 1, 1, 0.5, 1, 0, 0, 0], 1000),
    "nearly right": np.full(10_000, 0.97),
}
WAYS = ((1, 0.1), (1, 0.3), (3, 0.0))


#: A project whose model samples: item q7 is right with the chance that stands in its prompt.
PROJECT = """
import random
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Model:
    identity = SubjectIdentity("sampling", "", {{"temperature": 0.7}})

    def __init__(self):
        self.random = random.Random({run})

    def generate(self, prompt):
        return "right" if self.random.random() < float(prompt) else "wrong"

@pytest.fixture(scope="module")
def model():
    return Model()

@pytest.mark.adaptive_eval("whole.jsonl", budget="100%", stop="{stop}"{repeat})
def test_whole(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("whole", at_least={threshold})
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""

Stop = Literal["budget", "decision"]
RULES: tuple[tuple[Stop, str], ...] = (("decision", "20%"), ("decision", "100%"), ("budget", "50%"), ("budget", "100%"))


def verdicts(
    expected: np.ndarray, side: int, seeds: int, samples: int, repeat: float, stop: Stop, budget: str, *, measured: bool
) -> tuple[np.ndarray, float]:
    """Outcomes of a gate whose threshold lies just beyond the truth, and the mean number of items asked."""
    n, rng = len(expected), np.random.default_rng(side + 1)
    p = np.clip(expected, 0.02, 0.98)
    bank = ItemBank(
        "simulated",
        [f"q{i}" for i in range(n)],
        [Item(f"q{i}", "?") for i in range(n)],
        np.ones((n, 1)),
        np.log(p / (1.0 - p)) + rng.normal(0.0, 0.5, n),
    )
    claim = Claim(float(expected.sum()) + side * 1e-6)
    policy = replace(POLICIES["decide"], budget=budget, stop=stop)
    session = Session(bank, policy, seed=7, subjects=seeds, claims=(claim,), decodings=samples if measured else 0)
    answers = (rng.random((seeds, n, samples)) < expected[:, None]).astype(float)
    scores = answers.mean(axis=2)
    while (proposal := session.ask()) is not None:
        session.tell(np.take_along_axis(scores, proposal.items, axis=1))
    outcomes, asked = np.zeros(seeds, dtype=int), 0
    for s in range(seeds):
        log = session.log(s)
        asked += len(log)
        if measured:
            given = [list(answers[s, i]) for i in log.items]
            for k in rng.choice(len(log), round(repeat * len(log)), replace=False):
                given[k].append(float(rng.random() < expected[log.items[k]]))
            log = replace(log, noise=DecodingNoise.of(given, log.scores.tolist(), samples, n).allowed)
        if is_exact(log):
            interval = interval_of_draws(log, claim.confidence)
            outcomes[s] = int(interval.low * n >= claim.total) - int(interval.high * n < claim.total)
        else:
            outcomes[s] = decide(log, [claim]).outcome[0]
    return outcomes, asked / seeds


def run_gate(expected: np.ndarray, run: int, stop: str, repeat: str) -> tuple[str, str]:
    """Run pytest once.  Return the gate's outcome, and the verdict's notes without their figures."""
    with tempfile.TemporaryDirectory() as folder:
        items = [{"id": f"q{i}", "prompt": repr(float(p)), "answer": "right"} for i, p in enumerate(expected)]
        Path(folder, "whole.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
        text = PROJECT.format(run=run, stop=stop, repeat=repeat, threshold=float(expected.mean()))
        Path(folder, f"test_{Path(folder).name}.py").write_text(text)  # a name of its own: modules stay loaded
        flags = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", folder]
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(
                [
                    folder,
                    *flags,
                    "--adaptive-eval",
                    f"--adaptive-eval-dir={folder}/runs",
                    f"--adaptive-eval-record={folder}/run.json",
                ]
            )
        verdict = json.loads(Path(folder, "run.json").read_text())["gates"][0]["verdict"]
        return verdict["outcome"], re.sub(r"\d*\.?\d+", "N", "; ".join(verdict["notes"]))


def print_runs(runs: int, items: int) -> None:
    """Print the outcomes of whole runs of pytest."""
    for kind in ("mostly sure", "hardly sure"):
        expected = KINDS[kind][:items]
        for stop, repeat in (("decision", ""), ("budget", ""), ("budget", ", repeat=0")):
            found = [run_gate(expected, run, stop, repeat) for run in range(runs)]
            counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(Counter(o for o, _ in found).items()))
            print(f"{kind}, stop {stop}{repeat}: {counts}", flush=True)
            for notes, n in Counter(notes for o, notes in found if o == "INCONCLUSIVE" or repeat).items():
                print(f"  {n} x {notes}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--items", type=int, default=300)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--runs", type=int, default=0, help="whole runs of pytest instead of simulated interviews")
    options = parser.parse_args()
    if options.runs:
        print_runs(options.runs, options.items)
        return
    for kind in options.kinds:
        expected = KINDS[kind][: options.items]
        print(
            f"{kind}: {2 * float((expected * (1 - expected)).mean()):.3f} of the answers differ between two decodings"
        )
        for stop, budget in RULES:
            for samples, repeat in WAYS:
                rates = []
                for measured in (True, False):
                    for side in (1, -1):
                        found, _ = verdicts(
                            expected, side, options.seeds, samples, repeat, stop, budget, measured=measured
                        )
                        rates.append(float((found == side).mean()))
                print(
                    f"  {stop:8} {budget:>4}  samples {samples} repeat {repeat:3.0%}  false PASS / FAIL "
                    f"{rates[0]:.3f} / {rates[1]:.3f}, not measured {rates[2]:.3f} / {rates[3]:.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
