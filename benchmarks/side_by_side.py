"""Four evaluations of one fixture checkpoint, side by side against one after the other.

``python benchmarks/side_by_side.py`` runs both in turns, each as a pytest process of its own, and prints wall and
processor time, the time in the model, its calls and how full their batches were. It ends with an error unless both have
the same questions, answers, scores, verdicts and costs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FLAG = "--adaptive-eval-side-by-side"
#: Environment variable with the file that gets the number of prompts of each call of the model, and its time.
SIZES = "SIDE_BY_SIDE_SIZES"
CATEGORIES = ("addition", "counting", "operations", "unscramble")
EVALUATION = """
[[eval]]
name = "{category}"
bank = "{root}/fixtures/banks/text.bank"
category = "{category}"
model = "{root}/fixtures/checkpoints/{checkpoint}"
model_options = {{ batch_size = {rows} }}
policy = "{policy}"
budget = {budget}
"""
GATE = """
[[eval.gate]]
at_least = {at_least}
"""
#: Facts of a record that differ between equal runs.
TIMES = {"run", "started", "seconds"}


def pytest_configure() -> None:
    """Write down size and time of each batch: this module is loaded as a plugin of the runs that it starts."""
    from pytest_adaptive_eval.models.checkpoint.generation import Generator

    generate = Generator.generate

    def counted(self: Generator, batch: Any) -> Any:
        begun = time.process_time()
        answers = generate(self, batch)
        with Path(os.environ[SIZES]).open("a") as file:
            file.write(f"{len(batch)} {time.process_time() - begun}\n")
        return answers

    Generator.generate = counted  # type: ignore[method-assign]


@dataclass(frozen=True)
class Run:
    """What one pytest process took, in seconds, and its record without times."""

    wall: float
    processor: float
    model: float
    sizes: Sequence[int]
    record: Mapping[str, Any]


def without_times(value: Any) -> Any:
    """A record without what differs between equal runs."""
    if isinstance(value, dict):
        return {key: without_times(entry) for key, entry in value.items() if key not in TIMES}
    return [without_times(entry) for entry in value] if isinstance(value, list) else value


def run(text: str, flags: Sequence[str]) -> Run:
    """Run evaluations in an empty folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "adaptive-eval.toml").write_text(text)
        sizes = folder / "sizes.txt"
        environment = {**os.environ, SIZES: str(sizes), "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-m", "pytest", "--adaptive-eval", "-q", "-p", "side_by_side", *flags]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode not in (0, 1):
            raise SystemExit(ended.stdout + ended.stderr)
        (path,) = (folder / ".adaptive-eval" / "runs").glob("*.json")
        record = json.loads(path.read_text())
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        calls = [line.split() for line in sizes.read_text().splitlines()]
        model = sum(float(seconds) for _, seconds in calls)
        return Run(wall, processor, model, [int(size) for size, _ in calls], without_times(record))


def compare(policy: str, options: argparse.Namespace) -> None:
    """Print both ways of asking by one policy."""
    text = "".join(
        EVALUATION.format(
            root=ROOT, category=category, checkpoint=options.checkpoint, rows=options.rows, policy=policy,
            budget=options.budget,
        )
        + (GATE.format(at_least=options.at_least) if policy == "decide" else "")
        for category in CATEGORIES
    )  # fmt: skip
    ways = {"one after the other": [], "side by side": [FLAG]}
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    for _ in range(options.turns):
        for way, flags in ways.items():
            runs[way].append(run(text, flags))
    records = [each.record for way in runs.values() for each in way]
    if any(record != records[0] for record in records):
        raise SystemExit(f"{policy}: the runs differ in their questions, answers, verdicts or costs")
    asked = sum(interview["asked"] for interview in records[0]["interviews"])
    verdicts = ", ".join(gate["verdict"]["outcome"] for gate in records[0]["gates"]) or "no gates"
    print(f"{policy}: {asked} questions, verdicts {verdicts}; the same records in all {len(records)} runs")
    for way, each in runs.items():
        sizes = each[0].sizes
        print(
            f"  {way:20} {median(r.wall for r in each):5.1f} s, {median(r.processor for r in each):5.1f} s of CPU, "
            f"{median(r.model for r in each):5.2f} s of it in the model, {len(sizes):3} calls of "
            f"{sum(sizes) / len(sizes):4.1f} questions, {sum(sizes) / len(sizes) / options.rows:.0%} of a batch",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="*", default=["decide", "estimate"])
    parser.add_argument("--checkpoint", default="text-late", help="folder of fixtures/checkpoints")
    parser.add_argument("--budget", type=int, default=64, help="questions of an evaluation")
    parser.add_argument("--rows", type=int, default=32, help="of a batch of the model")
    parser.add_argument("--at-least", type=float, default=0.75, help="accuracy that the gates of `decide` ask for")
    parser.add_argument("--turns", type=int, default=3, help="runs of each")
    options = parser.parse_args(arguments)
    for policy in options.policies:
        compare(policy, options)


if __name__ == "__main__":
    main()
