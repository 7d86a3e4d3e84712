"""How many calls a local model needs whose calls hold several questions, and whether its verdict depends on them.

``python benchmarks/call_sizes.py`` runs pytest, one process a run, with a model whose calls take the seconds of
`--times`, between whose sizes they are interpolated: ``--times 1:2.1 8:4.4 16:6 32:13`` is a small model on two
cores.  `--rows` chooses:

- ``verdict``: a gate at .65 on a bank of 1 200 items of which 75 % are answered right. Calls, seconds asleep, and
  questions asked and counted, at several largest batches; in the first column of each, whether items, scores, chances
  and verdict equal those of the first row.
- ``share``: 16 evaluations of 40 questions each of one model, by the policies ``decide`` and ``estimate``, with and
  without parameters of the items. Calls over the ideal, which is all questions over the batch.

The times are scaled: `--scale` seconds of sleep are a second.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from pytest_adaptive_eval.banks.writer import write_bank
from pytest_adaptive_eval.items.item import Item

MODEL = """
import json, time
import numpy as np
import pytest
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

class Timed(Model):
    shared_batch = {batch}

    def answer(self, items):
        seconds = float(np.interp(len(items), {sizes}, {seconds}))
        with open("calls.jsonl", "a") as file:
            file.write(json.dumps([len(items), seconds]) + "\\n")
        time.sleep(seconds * {scale})
        return [Completion("right" if item.meta["right"] else "wrong") for item in items]

@pytest.fixture(scope="session")
def model():
    return Timed(SubjectIdentity("timed", "hash", {{"temperature": 0}}))
"""
EVALUATION = """
[[eval]]
name = "{name}"
bank = "{bank}"
{settings}
"""
GATE = """
[[eval.gate]]
at_least = {at_least}
"""


class Outcome(NamedTuple):
    """The calls of a run, each with its number of questions and its seconds, and the interviews of its record."""

    calls: list[tuple[int, float]]
    interviews: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """Seconds of all calls."""
        return sum(seconds for _, seconds in self.calls)

    @property
    def questions(self) -> int:
        """Number of questions of all calls."""
        return sum(size for size, _ in self.calls)

    @property
    def measured(self) -> list[Any]:
        """What may not depend on the sizes of calls."""
        columns = ("item", "score", "propensity")
        return [
            [[tuple(row[name] for name in columns) for row in interview["administrations"]], interview["stop"]]
            for interview in self.interviews
        ]


def make_bank(folder: Path, name: str, size: int, share: float, seed: int, *, calibrated: bool) -> str:
    """Write a bank of which the model answers a share right, and return the name of its file."""
    rng = np.random.default_rng(seed)
    difficulty = rng.normal(size=size)
    ability = 1.2 * np.log(share / (1.0 - share))
    right = rng.random(size) < (expit(ability - difficulty) if calibrated else share)
    items = [
        Item(f"{name}-{n}", f"{name} {n}", answer="right", meta={"right": bool(row)}) for n, row in enumerate(right)
    ]
    if calibrated:
        write_bank(folder / f"{name}.bank", items, discrimination=np.ones(size), intercept=-difficulty)
        return f"{name}.bank"
    lines = [
        {"id": item.id, "prompt": item.prompt, "answer": "right", "meta": {"right": item.meta["right"]}}
        for item in items
    ]
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"{name}.jsonl"


def run(folder: Path, evaluations: str, batch: int, args: argparse.Namespace) -> Outcome:
    """Run the evaluations in a folder with their banks, with a model that takes these times."""
    times = [pair.split(":") for pair in args.times]
    sizes, seconds = [int(size) for size, _ in times], [float(taken) for _, taken in times]
    (folder / "conftest.py").write_text(MODEL.format(batch=batch, sizes=sizes, seconds=seconds, scale=args.scale))
    (folder / "adaptive-eval.toml").write_text(evaluations)
    (folder / "calls.jsonl").unlink(missing_ok=True)
    ours = ["--adaptive-eval", "--adaptive-eval-fresh", "--adaptive-eval-record=record.json"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *ours], cwd=folder, check=False, stdout=subprocess.DEVNULL, timeout=600
    )
    record = json.loads((folder / "record.json").read_text())
    calls = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    return Outcome([(int(size), float(seconds)) for size, seconds in calls], record["interviews"])


def verdict_rows(folder: Path, args: argparse.Namespace) -> None:
    """Print the table of `verdict`."""
    print(f"{'bank':12}{'batch':>7}{'equal':>7}{'calls':>7}{'seconds':>9}{'asked':>7}{'counted':>9}  verdict")
    for calibrated in (False, True):
        for seed in range(args.seeds):
            name = f"{'parameters' if calibrated else 'plain'}{seed}"
            bank = make_bank(folder, name, 1200, 0.75, seed, calibrated=calibrated)
            settings = EVALUATION.format(name=name, bank=bank, settings=f"seed = {seed}") + GATE.format(at_least=0.65)
            first: list[Any] | None = None
            for batch in args.batches:
                outcome = run(folder, settings, batch, args)
                first = outcome.measured if first is None else first
                (interview,) = outcome.interviews
                equal = "yes" if outcome.measured == first else "no"
                row = f"{name:12}{batch:7}{equal:>7}{len(outcome.calls):7}{outcome.seconds:9.1f}{outcome.questions:7}"
                print(f"{row}{interview['asked']:9}  {interview['stop']}", flush=True)


def share_rows(folder: Path, args: argparse.Namespace) -> None:
    """Print the table of `share`."""
    print(f"{'bank':12}{'policy':10}{'batch':>7}{'equal':>7}{'calls':>7}{'questions':>11}{'ideal':>7}{'ratio':>7}")
    for calibrated in (False, True):
        kind = "parameters" if calibrated else "plain"
        banks = [make_bank(folder, f"{kind}{n}", 120, 0.75, n, calibrated=calibrated) for n in range(16)]
        for policy in ("decide", "estimate") if calibrated else ("decide",):
            more = f'budget = 40\nstop = "budget"\npolicy = "{policy}"'
            text = "".join(EVALUATION.format(name=f"e{n}", bank=bank, settings=more) for n, bank in enumerate(banks))
            first: list[Any] | None = None
            for batch in args.batches[1:]:
                outcome = run(folder, text, batch, args)
                first = outcome.measured if first is None else first
                together = min(batch, 16) if policy == "estimate" else batch
                ideal = -(-640 // together)
                equal = "yes" if outcome.measured == first else "no"
                row = f"{kind:12}{policy:10}{batch:7}{equal:>7}{len(outcome.calls):7}{outcome.questions:11}{ideal:7}"
                print(f"{row}{len(outcome.calls) / ideal:7.2f}", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the chosen tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", choices=("verdict", "share"), default="verdict")
    parser.add_argument("--times", nargs="+", default=["1:.5"], metavar="SIZE:SECONDS", help="seconds of calls")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 64, 256], help="largest batches, one first")
    parser.add_argument("--scale", type=float, default=0.1, help="seconds of sleep for a second")
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        {"verdict": verdict_rows, "share": share_rows}[args.rows](Path(name), args)


if __name__ == "__main__":
    main()
