"""Kills in the midst of a call: nothing that was written is run twice, and no process is left."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from fake_harness import Fake

#: Items of the bank, and seconds of an item.
ITEMS, SECONDS = 24, 0.06
EVALUATION = """
[[eval]]
name = "agent"
bank = "agent.jsonl"
model = "harness:command"
stop = "budget"
budget = {items}

[eval.model_options]
command = {command}
grace = {grace}

[[eval.gate]]
at_least = 0.5
"""
#: Writes what it was running when it was asked to end, as a harness that ends in order does.
ORDERLY = """
for item in ids:
    begin(item)
    write(item, score=float(int(item[1:]) % 3 > 0))
"""


def project(path: Path, script: str, grace: float = 2.0) -> None:
    command = Fake(path).write(script, SECONDS)
    (path / "agent.jsonl").write_text("".join(json.dumps({"id": f"t{n}"}) + "\n" for n in range(ITEMS)))
    (path / "adaptive-eval.toml").write_text(EVALUATION.format(items=ITEMS, command=json.dumps(command), grace=grace))


def start(path: Path, *flags: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "pytest", "--adaptive-eval", "-q", "-p", "no:cacheprovider", *flags]
    with (path / "output.txt").open("ab") as file:
        return subprocess.Popen(words, cwd=path, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)


def written(path: Path) -> list[str]:
    """Items whose results are in the logs of all calls."""
    found = []
    for file in path.glob(".adaptive-eval/harness/*/*/output/*.jsonl"):
        for line in file.read_text().splitlines():
            found.append(json.loads(line)["id"])
    return found


def groups(path: Path) -> list[int]:
    return [int(file.read_text()) for file in path.glob(".adaptive-eval/harness/*/*/group")]


def lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def answers(path: Path) -> list[Any]:
    """What the newest record has of each question."""
    newest = max((path / ".adaptive-eval/runs").glob("*.json"), key=lambda file: file.stat().st_mtime)
    (interview,) = json.loads(newest.read_text())["interviews"]
    return [(row["item"], row["score"], row["status"], row["text"]) for row in interview["administrations"]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_killed_run_goes_on_with_what_was_written(number: signal.Signals, tmp_path: Path) -> None:
    kills = int(os.environ.get("HARNESS_KILLS", "3"))
    rng = random.Random(7)
    whole = tmp_path / "whole"
    whole.mkdir()
    project(whole, ORDERLY)
    assert start(whole).wait(60) == 0
    killed = tmp_path / "killed"
    killed.mkdir()
    project(killed, ORDERLY)
    done = 0
    for _ in range(kills):
        process = start(killed)
        before = len(Fake(killed).begun)
        deadline = time.monotonic() + 20
        most = rng.randint(1, 3)
        while len(Fake(killed).begun) < before + most and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.random() * SECONDS)
        if process.poll() is None:
            process.send_signal(number)
            done += 1
        process.wait(20)
        deadline = time.monotonic() + 10
        while any(map(lives, groups(killed))) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not any(map(lives, groups(killed)))
    assert done
    last = start(killed)
    assert last.wait(60) == 0
    assert sorted(set(written(killed))) == sorted(f"t{n}" for n in range(ITEMS))
    assert len(written(killed)) == ITEMS, "an item whose result was written is not run again"
    assert answers(killed) == answers(whole)


@pytest.mark.slow
def test_a_harness_that_ignores_the_request_to_end_is_killed_with_its_children(tmp_path: Path) -> None:
    script = """
import subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"])
begin(ids[0])
time.sleep(60)
"""
    project(tmp_path, script, grace=0.3)
    process = start(tmp_path)
    deadline = time.monotonic() + 20
    while not Fake(tmp_path).begun and time.monotonic() < deadline:
        time.sleep(0.02)
    (group,) = groups(tmp_path)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while lives(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not lives(group)
