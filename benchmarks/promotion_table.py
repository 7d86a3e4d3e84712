"""The promotion example over many seeds and all released text checkpoints.

``python benchmarks/promotion_table.py`` runs ``pytest --adaptive-eval`` on ``examples/promotion``, without the
interview that another model leads, in a process of its own for each checkpoint and seed, and prints verdicts, exit
codes, abilities and calls. ``--replay`` takes the recorded answers of the checkpoints, which are the same as decoding
is greedy; without it the checkpoints are loaded and asked.
"""

from __future__ import annotations

import argparse
import collections
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "promotion"
CHECKPOINTS = (
    "text-early",
    "text-mid",
    "text-late",
    "text-regressed",
    "text-regressed-mild",
    "text-regressed-addition",
)
RECORDED = ROOT / "fixtures" / "responses" / "released-text.csv.gz"


def run(checkpoint: str, seed: int, folder: Path, replay: bool) -> tuple[int, dict[str, Any]]:
    """Exit code and record of one run of the example."""
    model = f"replay:{RECORDED}#{checkpoint}" if replay else str(ROOT / "fixtures" / "checkpoints" / checkpoint)
    record = folder / "record.json"
    record.unlink(missing_ok=True)
    options = ["--adaptive-eval", "--adaptive-eval-model", model, "--adaptive-eval-seed", str(seed)]
    places = ["--adaptive-eval-dir", str(folder / "run"), "--adaptive-eval-record", str(record)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not interviewed", *options, *places],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=False,
    )
    if not record.exists():
        raise SystemExit(f"no record from {checkpoint}, seed {seed}:\n{done.stdout}\n{done.stderr}")
    return done.returncode, json.loads(record.read_text())


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--replay", action="store_true", help="take the recorded answers instead of asking")
    parser.add_argument("--checkpoints", nargs="*", default=CHECKPOINTS, help="only these")
    options = parser.parse_args()
    theta: dict[str, list[float]] = {}
    print(f"{'checkpoint':24} {'mean calls':>9}  {'ability':>14}  {'accuracy gate':42} exit codes", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for checkpoint in options.checkpoints:
            codes: collections.Counter[int] = collections.Counter()
            outcomes: collections.Counter[str] = collections.Counter()
            theta[checkpoint] = []
            calls, size = 0, 1
            for seed in range(options.seeds):
                code, record = run(checkpoint, seed, Path(name), options.replay)
                interview = next(i for i in record["interviews"] if i["name"] == "text")
                codes[code] += 1
                mine = [g for g in record["gates"] if g["interview"] == "text"]
                gate = next(g for g in mine if g["verdict"]["metric"] == "accuracy")
                outcomes[gate["verdict"]["outcome"]] += 1
                theta[checkpoint].append(interview["theta"][0])
                calls, size = calls + interview["asked"], interview["size"]
            verdicts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
            mean, sd = statistics.mean(theta[checkpoint]), statistics.pstdev(theta[checkpoint])
            exits = ", ".join(f"{n} x {code}" for code, n in sorted(codes.items()))
            print(
                f"{checkpoint:24} {calls / options.seeds:5.1f}/{size}  {mean:6.2f} ± {sd:5.2f}  {verdicts:42} {exits}",
                flush=True,
            )
    if not {"text-early", "text-mid", "text-late"} <= set(theta):
        return
    rows = zip(theta["text-early"], theta["text-mid"], theta["text-late"], strict=True)
    ordered = sum(early < mid < late for early, mid, late in rows)
    print(f"\nearly < mid < late in estimated ability: {ordered} of {options.seeds} seeds")


if __name__ == "__main__":
    main()
