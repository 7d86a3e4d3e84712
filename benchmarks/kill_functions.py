"""SIGKILL, SIGTERM and Ctrl-C at all moments of runs whose model is a function, and what is left of them.

``python benchmarks/kill_functions.py [--kills 40]`` interviews a plain function, one in threads and an ``async def`` of
20 ms a call, and ends the run by each signal in turn in the midst of its calls until a run ends by itself. It counts
calls that the resumed run made again although they had returned .05 s before the signal (must be none), and records
that differ from that of a run that nobody disturbed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

KINDS = ("plain", "threads", "async")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ITEMS, SECONDS = 48, 0.02
#: Seconds within which an answer that has returned is written: a sync of the disk may come before it.
WRITTEN = 0.05
#: What two records of one interview do not share.
_OF_THE_RUN = ("seconds", "measures", "resumed", "costs", "journal", "notes", "call_sizes", "sent")

CONFTEST = f"""
import asyncio, os, re, time
import pytest
from pytest_adaptive_eval import CallableModel

def note(event, prompt):
    file = os.open("calls.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{{event}} {{prompt}}\\n".encode())
    os.close(file)

def right(prompt):
    return f"The answer is {{int(re.search('[0-9]+', prompt)[0]) + 1}}."

def plain(prompt):
    note("begun", prompt)
    time.sleep({SECONDS})
    note("returned", prompt)
    return right(prompt)

async def later(prompt):
    note("begun", prompt)
    await asyncio.sleep({SECONDS})
    note("returned", prompt)
    return right(prompt)

@pytest.fixture(scope="session")
def model():
    kind = os.environ["KIND"]
    made = CallableModel(
        later if kind == "async" else plain, kind, checkpoint="v1", concurrency=4 if kind == "threads" else None
    )
    yield made
    made.close()
"""
TESTS = """
import pytest

@pytest.mark.adaptive_eval(bank="items.jsonl", stop="budget", budget="100%")
def test_items(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("items", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def write(folder: Path) -> None:
    """Write the project."""
    lines = [
        {
            "id": f"i{n}",
            "prompt": f"Which number follows {200 + 3 * n}?",
            "answer": str(201 + 3 * n),
            "grader": "numeric",
        }
        for n in range(ITEMS)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")


def start(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    """Start a run."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--adaptive-eval"]
    command += ["--adaptive-eval-record=record.json"]
    return subprocess.Popen(
        command, cwd=folder, env={**os.environ, "KIND": kind}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def calls(folder: Path) -> dict[str, collections.Counter[str]]:
    """Numbers of calls that have begun and of ones that have returned, by prompt."""
    counts: dict[str, collections.Counter[str]] = {"begun": collections.Counter(), "returned": collections.Counter()}
    path = folder / "calls.txt"
    for line in path.read_text().splitlines() if path.exists() else ():
        event, _, prompt = line.partition(" ")
        counts[event][prompt] += 1
    return counts


def record(folder: Path) -> Any:
    """The interview of a run, without what belongs to the run."""
    (interview,) = json.loads((folder / "record.json").read_text())["interviews"]
    for entry in [interview, *interview["administrations"]]:
        for name in _OF_THE_RUN:
            entry.pop(name, None)
    interview.pop("reuse", None)
    return interview


def disturbed(folder: Path, kind: str, whole: Any, rng: random.Random, kills: int) -> collections.Counter[str]:
    """Signal runs until one ends by itself; return what was seen."""
    seen: collections.Counter[str] = collections.Counter()
    returned = calls(folder)["returned"]  # when the last signal was sent: others were in flight then
    while not (folder / "record.json").exists():
        before, known, kills_before = calls(folder), returned, seen["kills"]
        process = start(folder, kind)
        target = sum(before["begun"].values()) + rng.randint(1, 12)
        stop = SIGNALS[(kills + seen["kills"]) % len(SIGNALS)]
        while process.poll() is None:
            if sum(calls(folder)["begun"].values()) >= target and seen["kills"] < 4:
                time.sleep(rng.uniform(0.0, SECONDS))
                returned = calls(folder)["returned"]
                time.sleep(WRITTEN)
                process.send_signal(stop)
                seen["kills"] += 1
                seen[stop.name] += 1
                process.wait(30)
                break
            time.sleep(0.002)
        after = calls(folder)
        again = {prompt for prompt, count in after["begun"].items() if count > before["begun"][prompt] > 0}
        had_returned = {prompt for prompt in again if known[prompt]}
        seen["asked again after they had returned"] += len(had_returned)
        seen["asked again in flight"] += len(again - had_returned)
        # A run that Ctrl-C ends has a record of what was there. Its status is 2, or 1 where pytest cannot show where
        # the signal came: tracebacks of Python 3.11 lack line numbers within the compiler of regular expressions.
        if process.returncode != 0 and seen["kills"] > kills_before:
            (folder / "record.json").unlink(missing_ok=True)
    seen["records that differ"] += record(folder) != whole
    return seen


def main() -> None:
    """Print the counts by kind of function."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    total: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        wholes = {}
        for kind in KINDS:
            folder = Path(scratch) / kind
            folder.mkdir()
            write(folder)
            start(folder, kind).wait(120)
            wholes[kind] = record(folder)
        number = 0
        while total["kills"] < options.kills:
            kind = KINDS[number % len(KINDS)]
            folder = Path(scratch) / f"run-{number}"
            folder.mkdir()
            write(folder)
            total += disturbed(folder, kind, wholes[kind], rng, total["kills"])
            shutil.rmtree(folder)
            number += 1
    names = ("asked again after they had returned", "asked again in flight", "records that differ")
    signals = ", ".join(f"{total[stop.name]} {stop.name}" for stop in SIGNALS)
    print(
        f"{total['kills']} kills ({signals}) of {number} runs: " + ", ".join(f"{total[name]} {name}" for name in names)
    )


if __name__ == "__main__":
    main()
