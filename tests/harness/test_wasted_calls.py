"""Calls of the right size: few starts, and few items that the verdict does not need."""

from __future__ import annotations

import hashlib
import heapq
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_harness import Fake

#: Seconds of the fake harness for one of the real one.
SCALE = 0.04
START, PARALLEL, CALL = 20.0, 16, 32
EVALUATION = """
[[eval]]
name = "agent"
bank = "agent.jsonl"
seed = {seed}
model = "harness:command"

[eval.model_options]
command = {command}
parallel = 16
grace = 0.2

[[eval.gate]]
at_least = 0.6
"""
#: Items of 1 to 40 s, by a hash of the id, 16 at once after a start of 20 s.
SCRIPT = """
import hashlib
from concurrent.futures import ThreadPoolExecutor

def share(text):
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32

def run(item):
    begin(item)
    time.sleep((1 + 39 * share(item)) * {scale})
    write(item, score=float(share(item + "{seed}") < {truth}))

time.sleep({start} * {scale})
with ThreadPoolExecutor(16) as pool:
    list(pool.map(run, ids))
(output / "end").touch()
"""


def seconds(item: str) -> float:
    return 1 + 39 * int(hashlib.sha256(item.encode()).hexdigest()[:8], 16) / 2**32


def ideal(needed: Sequence[str]) -> float:
    """Return the seconds of the needed items in calls of 32."""
    total = 0.0
    for first in range(0, len(needed), CALL):
        slots = [0.0] * PARALLEL
        for item in needed[first : first + CALL]:
            heapq.heappush(slots, heapq.heappop(slots) + seconds(item))
        total += START + max(slots)
    return total


@pytest.mark.slow
def test_calls_waste_little_time_and_few_items(tmp_path: Path) -> None:
    wall = best = 0.0
    begun = needed = 0
    for seed, truth in ((1, 0.75), (2, 0.5), (3, 0.75), (5, 0.75)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        fake = Fake(folder)
        command = json.dumps(fake.write(SCRIPT.format(scale=SCALE, start=START, seed=seed, truth=truth)))
        (folder / "agent.jsonl").write_text("".join(json.dumps({"id": f"t{n}"}) + "\n" for n in range(500)))
        (folder / "adaptive-eval.toml").write_text(EVALUATION.format(seed=seed, command=command))
        words = [sys.executable, "-m", "pytest", "--adaptive-eval", "-q", "-p", "no:cacheprovider"]
        subprocess.run(words, cwd=folder, check=False, timeout=120)
        asked = sorted(file.stat().st_mtime for file in folder.glob(".adaptive-eval/harness/*/*/asked.json"))
        ended = sorted(file.stat().st_mtime for file in folder.glob(".adaptive-eval/harness/*/*/ended.json"))
        (record,) = folder.glob(".adaptive-eval/runs/*.json")
        (interview,) = json.loads(record.read_text())["interviews"]
        items = [row["item"] for row in interview["administrations"] if row["status"] == "ok"]
        wall += (ended[-1] - asked[0]) / SCALE
        best += ideal(items)
        begun += len(fake.begun)
        needed += len(items)
    shares = f"wall time over the ideal {wall / best:.2f}, items begun and not needed {(begun - needed) / needed:.2f}"
    sys.stdout.write(f"{shares}\n")
    assert wall <= 1.4 * best
    assert begun - needed <= 0.45 * needed
