"""Gates on SWE-bench Verified behind a harness: tasks and money of a verdict, and wrong verdicts at the threshold.

``python benchmarks/harness_gates.py`` calibrates a bank from 90 submissions of the leaderboard, and gates the 44 others
by whole runs of ``pytest --adaptive-eval`` whose model is a command that writes recorded scores. Gates are 10 points
below and above each submission's accuracy, and then at it: a FAIL of ``at_least`` its accuracy is wrong, and a PASS of
one task more is. ``--submissions`` and ``--seeds`` make fewer runs.

The costs of tasks are drawn once: log-normal with the 10th, 50th and 90th percentile that mini-swe-agent's public runs
have with GPT-5 and with Sonnet 4.5, scaled to the costs of these whole runs, $140 and $279. Their ranks correlate with
the tasks' difficulty by .5, as costs of two models do with each other. Money is that of all tasks that were begun.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pytest_adaptive_eval import interview

DATA = Path(os.environ.get("ADAPTIVE_EVAL_DATA", "../shared/data"))
LEFT_OUT, MARGIN, CORRELATION = 44, 0.1, 0.5
#: Dollars of the 10th, 50th and 90th percentile of tasks, and of the whole benchmark.
COSTS = {"GPT-5": (0.086, 0.204, 0.514, 140.0), "Sonnet 4.5": (0.276, 0.465, 0.953, 279.0)}
HARNESS = """
import json, sys
from pathlib import Path

recorded = json.loads(Path(sys.argv[1]).read_text())
with Path(sys.argv[3], "results.jsonl").open("w") as log:
    for item in Path(sys.argv[2]).read_text().split():
        log.write(json.dumps({"id": item, **recorded[item]}) + "\\n")
"""
Array = NDArray[np.float64]


def matrix() -> tuple[list[str], list[str], Array]:
    """Submissions, tasks, and scores of shape (submissions, tasks)."""
    with gzip.open(DATA / "matrices/swebench_verified/matrix.csv.gz", "rt", encoding="utf-8-sig") as file:
        head, *rows = csv.reader(file)
    return [row[0] for row in rows], head[1:], np.array([row[1:] for row in rows], float)


def costs(difficulty: Array, name: str, rng: np.random.Generator) -> Array:
    """Dollars of each task."""
    low, middle, high, whole = COSTS[name]
    ranks = (difficulty.argsort().argsort() + 0.5) / len(difficulty)
    hard = np.array([NormalDist().inv_cdf(rank) for rank in ranks])
    normal = CORRELATION * hard + np.sqrt(1 - CORRELATION**2) * rng.standard_normal(len(hard))
    deviation = np.log(high / low) / (2 * NormalDist().inv_cdf(0.9))
    drawn = middle * np.exp(deviation * normal)
    scaled: Array = drawn * whole / drawn.sum()
    return scaled


class Gated(NamedTuple):
    """One run: its outcome, number of tasks asked, tasks begun, and the estimated over the true cost of the bank."""

    outcome: str
    asked: int
    begun: list[bool]
    whole: float


def gate(folder: Path, bank: Path, recorded: Mapping[str, Mapping[str, float]], at_least: float, seed: int) -> Gated:
    """Run a gate on recorded scores and costs by task."""
    (folder / "recorded.json").write_text(json.dumps(recorded))
    words = [sys.executable, str(folder / "harness.py"), str(folder / "recorded.json")]
    options = {"command": f"{shlex.join(words)} {{ids_file}} {{output}}", "parallel": 16}
    place = folder / "run"
    gates = [{"at_least": round(at_least, 4)}]
    found = interview(bank, "harness:command", gates, folder=place, model_options=options, seed=seed)
    (record,) = found.record.interviews
    begun = set()
    for file in place.glob("harness/*/*/output/results.jsonl"):
        begun |= {json.loads(line)["id"] for line in file.read_text().splitlines()}
    shutil.rmtree(place)
    whole = record.costs.prices["subject"].whole or math.nan
    true_whole = sum(row["cost"] for row in recorded.values())
    outcome = found.gates[0].outcome.value
    return Gated(outcome, record.asked, [task in begun for task in recorded], whole / true_whole)


def mean(values: list[float]) -> str:
    """Mean with its standard error."""
    return f"{np.mean(values):.3g} +- {np.std(values, ddof=1) / len(values) ** 0.5:.2g}"


def apart(gated: Callable[[float, int], Gated], accuracies: Array, by_model: Mapping[str, Array]) -> None:
    """Print tasks and money of gates that are 10 points from the accuracy."""
    found: list[Gated] = []
    wrong = 0
    for submission, accuracy in enumerate(accuracies):
        for at_least, expected in ((accuracy - MARGIN, "PASS"), (accuracy + MARGIN, "FAIL")):
            if 0 < at_least < 1:
                found.append(gated(at_least, submission))
                wrong += found[-1].outcome not in (expected, "INCONCLUSIVE")
    decided = sum(each.outcome != "INCONCLUSIVE" for each in found)
    print(f"10 points away: {len(found)} gates, {decided} decided, {wrong} wrong")
    print(f"  tasks asked {mean([each.asked for each in found])}, begun {mean([sum(each.begun) for each in found])}")
    for name, dollars in by_model.items():
        spent = [float(dollars[each.begun].sum()) for each in found]
        print(f"  {name}: ${mean(spent)} of ${dollars.sum():.0f}")
    print(f"  estimated over true cost of the bank: {mean([each.whole for each in found])}")


def at_threshold(gated: Callable[[float, int], Gated], accuracies: Array, tasks: int) -> None:
    """Print how often gates are wrong whose threshold is the accuracy, or one task above it."""
    for more, wrong in ((0, "FAIL"), (1, "PASS")):
        outcomes = [gated(accuracy + more / tasks, each).outcome for each, accuracy in enumerate(accuracies)]
        share = outcomes.count(wrong) / len(outcomes)
        error = (0.05 * 0.95 / len(outcomes)) ** 0.5
        print(f"at the threshold: {share:.3f} of {len(outcomes)} have a wrong {wrong}, at most .05 + {2 * error:.3f}")


def main() -> None:
    """Gate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=LEFT_OUT)
    parser.add_argument("--seeds", type=int, default=1, help="runs of each gate at the threshold")
    options = parser.parse_args()
    names, tasks, scores = matrix()
    rng = np.random.default_rng(0)
    order = rng.permutation(len(names))
    held, known = order[:LEFT_OUT], order[LEFT_OUT:]
    by_model = {name: costs(1 - scores[known].mean(axis=0), name, rng) for name in COSTS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "harness.py").write_text(HARNESS)
        with (folder / "responses.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["subject", *tasks])
            writer.writerows([names[row], *map(int, scores[row])] for row in known)
        bank = folder / "swe.bank"
        words = [sys.executable, "-m", "pytest_adaptive_eval", "calibrate", folder / "responses.csv", "-o", bank]
        subprocess.run([*map(str, words), "--policy", "none"], check=True, stdout=subprocess.DEVNULL)
        stated = by_model["GPT-5"]

        def gated(at_least: float, each: int) -> Gated:
            recorded = {}
            scored = scores[held[each % LEFT_OUT]]
            for task, score, cost in zip(tasks, scored, stated, strict=True):
                recorded[task] = {"score": score, "cost": cost}
            return gate(folder, bank, recorded, at_least, each)

        accuracies = scores[held].mean(axis=1)[: options.submissions]
        apart(gated, accuracies, by_model)
        at_threshold(gated, np.tile(accuracies, options.seeds), len(tasks))


if __name__ == "__main__":
    main()
