"""Cells on a real Ray cluster of three nodes: the same verdicts after a worker and a node were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cells_of import SLOW, write_answers

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_files import read_run

pytestmark = pytest.mark.slow

pytest.importorskip("ray")

COMMAND = (sys.executable, "-c", "from pytest_adaptive_eval.cli import main; raise SystemExit(main())", "sweep")


class Nodes:
    """A cluster of three nodes of one core each, as a process of its own."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("ray_nodes.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), "3"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.address = self.process.stdout.readline().strip()

    def kill_one(self) -> None:
        """Kill a node with all its processes."""
        self.process.stdin.write("kill\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "killed\n"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    cluster = Nodes()
    yield cluster
    cluster.process.communicate(timeout=60)


def questions(grid: Path) -> list[tuple[int, str]]:
    log = grid / "asked.txt"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(int(pid), item) for pid, item in map(str.split, lines)]


def wait_for_question(grid: Path, count: int, without: set[int]) -> int:
    """Return a process that asked at least so many questions, besides some."""
    latest = time.monotonic() + 120
    while time.monotonic() < latest:
        asked = [pid for pid, _ in questions(grid) if pid not in without]
        for pid in set(asked):
            if count <= asked.count(pid) < 18:
                return pid
        time.sleep(0.01)
    raise AssertionError("nothing was asked")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_nodes_that_see_other_things_are_refused(grid: Path, nodes: Nodes, capsys: pytest.CaptureFixture[str]) -> None:
    (grid / "sweep.toml").write_text((grid / "sweep.toml").read_text() + "[resources]\ngpus = 3\n")
    code = subprocess.run([*COMMAND, "sweep.toml", "--ray", nodes.address], cwd=grid, capture_output=True, text=True)
    assert code.returncode == 4
    assert "no machine can hold a cell" in code.stderr
    assert "has 0 GPUs of 3" in code.stderr


def test_the_same_verdicts_after_a_worker_and_a_node_were_killed(grid: Path, nodes: Nodes) -> None:
    (grid / "easy.eval.toml").unlink()
    (grid / "test_slow.py").write_text(SLOW.replace("0.05", "0.1"))
    (grid / "sweep.toml").write_text((grid / "sweep.toml").read_text().replace("*.eval.toml", "test_slow.py"))
    for step, right in ((11, 3), (12, 7)):
        write_answers(grid / "answers" / f"step-{step}.jsonl", right)
    driver = subprocess.Popen([*COMMAND, "sweep.toml", "--ray", nodes.address], cwd=grid, stdout=subprocess.PIPE)
    first = wait_for_question(grid, 3, set())
    os.kill(parent(first), signal.SIGKILL)
    wait_for_question(grid, 3, {first})
    nodes.kill_one()
    out, _ = driver.communicate(timeout=240)
    assert driver.returncode == 1, out  # two of the four fail
    assert b"run again, number 1" in out
    assert b"its worker or node died" in out
    times = list((grid / ".adaptive-eval-sweep").glob("cells/*/record.json"))
    assert len(times) == 4
    asked = len(questions(grid))
    assert asked <= 80 + 4  # what was in flight when its process was killed
    text = (grid / "sweep.toml").read_text()
    (grid / "local.toml").write_text(f'folder = "local"\n{text}')
    assert main(["sweep", "local.toml"]) == 1
    for path in times:
        local = read_run(grid / "local" / "cells" / path.parent.name / "record.json")
        for ours, theirs in zip(read_run(path).interviews, local.interviews, strict=True):
            assert [a.item for a in ours.administrations] == [a.item for a in theirs.administrations]
            assert ours.accuracy == theirs.accuracy
        assert [g.verdict for g in read_run(path).gates] == [g.verdict for g in local.gates]
    again = subprocess.run(
        [*COMMAND, "sweep.toml", "--ray", nodes.address], cwd=grid, capture_output=True, text=True, check=False
    )
    assert "4 cells, 4 finished before" in again.stdout
