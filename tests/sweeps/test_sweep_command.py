"""The command runs each cell once, as a plain run would, and goes on after any end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from cells_of import SLOW, write_answers

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_files import read_run

COMMAND = (sys.executable, "-c", "from pytest_adaptive_eval.cli import main; raise SystemExit(main())", "sweep")


def sentences(path: Path) -> list[str]:
    return [gate.verdict.sentence for gate in read_run(path).gates]


def asked(path: Path) -> list[str]:
    return [a.item for interview in read_run(path).interviews for a in interview.administrations]


def plain_run(grid: Path, step: int, evaluation: str) -> Path:
    record = grid / f"plain-{step}.json"
    flags = ["--adaptive-eval", f"--adaptive-eval-model=replay:{grid}/answers/step-{step}.jsonl"]
    flags += [f"--adaptive-eval-record={record}", f"--adaptive-eval-dir={grid}/plain", evaluation]
    subprocess.run([sys.executable, "-m", "pytest", "-q", *flags], cwd=grid, capture_output=True, check=False)
    return record


def test_cells_are_plain_runs_and_are_not_run_again(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "sweep.toml"]) == 1  # one of the two fails
    out = capsys.readouterr().out
    assert "2 cells; results:" in out
    assert "step-9 x easy, seed 0: FAIL" in out
    assert "step-10 x easy, seed 0: PASS" in out
    folder = grid / ".adaptive-eval-sweep"
    for step in (9, 10):
        (found,) = folder.glob(f"cells/step-{step}--*/record.json")
        expected = plain_run(grid, step, "easy.eval.toml")
        assert sentences(found) == sentences(expected)
        assert asked(found) == asked(expected)
    record = read_run(folder / "record.json")
    assert [i.name for i in record.interviews] == ["toy (step-9, seed 0)", "toy (step-10, seed 0)"]
    assert [gate.interview for gate in record.gates] == [i.name for i in record.interviews]
    page = (folder / "sweep.html").read_text()
    assert "step-10" in page
    assert "Along training steps" in page
    times = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/record.json")}
    assert main(["sweep", "sweep.toml"]) == 1
    assert "2 cells, 2 finished before" in capsys.readouterr().out
    assert times == {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/record.json")}


def started(grid: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, "sweep.toml", *arguments], cwd=grid, stdout=subprocess.PIPE)


def wait_for(grid: Path, count: int) -> list[list[str]]:
    """Return the questions asked so far, at least so many."""
    log, latest = grid / "asked.txt", time.monotonic() + 60
    while time.monotonic() < latest:
        lines = log.read_text().splitlines() if log.exists() else []
        if len(lines) >= count:
            return [line.split() for line in lines]
        time.sleep(0.01)
    raise AssertionError("nothing was asked")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def end_of_process(pid: int) -> None:
    latest = time.monotonic() + 30
    while alive(pid):
        assert time.monotonic() < latest, "the cell outlived its driver"
        time.sleep(0.02)


@pytest.fixture
def slow_grid(grid: Path) -> Path:
    """One cell that takes its time."""
    (grid / "answers" / "step-9.jsonl").unlink()
    (grid / "easy.eval.toml").unlink()
    (grid / "test_slow.py").write_text(SLOW)
    (grid / "sweep.toml").write_text((grid / "sweep.toml").read_text().replace("*.eval.toml", "test_slow.py"))
    return grid


def goes_on_from_the_journal(grid: Path, in_flight: int) -> None:
    """Check that the second process took the answers of the first, but for those in flight at a kill."""
    lines = wait_for(grid, 20)
    assert len({item for _, item in lines}) == 20
    first = sum(process == lines[0][0] for process, _ in lines) - 1  # it runs the test on a made-up answer first
    (record,) = grid.glob(".adaptive-eval-sweep/cells/*/record.json")
    resumed = [a.resumed for i in read_run(record).interviews for a in i.administrations]
    assert sum(resumed) >= max(first - in_flight, 4)


@pytest.mark.slow
def test_a_killed_driver_takes_its_cells_along_and_goes_on(slow_grid: Path) -> None:
    driver = started(slow_grid)
    pid = int(wait_for(slow_grid, 7)[0][0])
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    end_of_process(pid)
    before = len(wait_for(slow_grid, 7))
    assert before < 20
    again = started(slow_grid)
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    goes_on_from_the_journal(slow_grid, 1)


@pytest.mark.slow
def test_a_cell_whose_process_is_killed_runs_again(slow_grid: Path) -> None:
    driver = started(slow_grid)
    os.kill(int(wait_for(slow_grid, 6)[0][0]), signal.SIGKILL)
    out, _ = driver.communicate(timeout=60)
    assert driver.returncode == 0, out
    assert b"ended by SIGKILL" in out
    assert b"run again, number 1" in out
    goes_on_from_the_journal(slow_grid, 1)
    (path,) = slow_grid.glob(".adaptive-eval-sweep/cells/*/cell.json")
    assert json.loads(path.read_text())["attempts"] == 2


@pytest.mark.slow
def test_an_interrupted_driver_says_that_all_is_kept(slow_grid: Path) -> None:
    # a shell that starts this suite in the background has told it to ignore interrupts
    heeds = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + COMMAND[2]
    command = [*COMMAND[:2], heeds, *COMMAND[3:], "sweep.toml"]
    driver = subprocess.Popen(command, cwd=slow_grid, stderr=subprocess.PIPE)
    pid = int(wait_for(slow_grid, 6)[0][0])
    driver.send_signal(signal.SIGINT)
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 2
    assert b"run the command again to go on" in err
    assert not alive(pid)
    assert "not ended" in (slow_grid / ".adaptive-eval-sweep" / "sweep.html").read_text()


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["sweep", "sweep.toml", *arguments]) == 4
    assert not Path(".adaptive-eval-sweep/cells").exists()
    return capsys.readouterr().err


def test_what_cannot_start_is_said_before_any_cell_runs(grid: Path, capsys: Any) -> None:
    text = (grid / "sweep.toml").read_text()
    (grid / "sweep.toml").write_text(text.replace("[", '["runs/step-*", "gone", "empty", ', 1))
    (grid / "empty").mkdir()
    (grid / "lost.eval.toml").write_text('[[eval]]\nbank = "lost.jsonl"\n')
    err = refused(capsys)
    assert "'runs/step-*': no checkpoint folder matches it" in err
    assert "'gone'" in err
    assert "no config.json in it" in err
    assert "lost.eval.toml:1: bank 'lost.jsonl' not found" in err
    assert "--keep-going" in err


@pytest.mark.slow
def test_what_cannot_start_is_left_out_when_told_so(grid: Path, capsys: Any) -> None:
    text = (grid / "sweep.toml").read_text()
    (grid / "sweep.toml").write_text(text.replace("step-*.jsonl", 'step-10.jsonl", "gone'))
    assert main(["sweep", "sweep.toml", "--keep-going"]) == 1  # not all that was asked for has passed
    said = capsys.readouterr()
    assert "left out: checkpoints 'gone'" in said.err
    assert "step-10 x easy, seed 0: PASS" in said.out


def test_a_sweep_that_no_machine_can_hold_is_refused(grid: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    (grid / "sweep.toml").write_text((grid / "sweep.toml").read_text() + "[resources]\ngpus = 8\n")
    assert "has 2 GPUs of 8" in refused(capsys)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b"])
def test_a_shard_that_is_none_is_refused(grid: Path, shard: str, capsys: Any) -> None:
    assert main(["sweep", "sweep.toml", "--shard", shard]) == 4
    assert "expected I/N" in capsys.readouterr().err


@pytest.mark.slow
def test_shards_share_the_cells_and_the_last_one_reports_all(grid: Path, capsys: Any) -> None:
    assert main(["sweep", "sweep.toml", "--shard", "2/2"]) == 0  # step-10 alone
    out = capsys.readouterr().out
    assert "1 cell; results" in out
    assert "1 PASS, 1 not ended" in out
    assert main(["sweep", "sweep.toml", "--shard", "1/2"]) == 1
    assert "1 FAIL, 1 PASS" in capsys.readouterr().out
    assert main(["sweep", "sweep.toml", "--report-only"]) == 1
    assert "1 FAIL, 1 PASS" in capsys.readouterr().out


@pytest.mark.slow
def test_a_full_disk_at_the_end_loses_no_cell(grid: Path, capsys: Any, monkeypatch: Any) -> None:
    (grid / "answers" / "step-9.jsonl").unlink()
    folder = grid / ".adaptive-eval-sweep"
    (folder / "record.json").mkdir(parents=True)  # cannot be written
    assert main(["sweep", "sweep.toml"]) == 4
    assert "record.json" in capsys.readouterr().err
    (folder / "record.json").rmdir()
    assert main(["sweep", "sweep.toml"]) == 0
    assert "1 finished before" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cell_that_died_after_its_record_is_not_asked_again(grid: Path) -> None:
    (grid / "answers" / "step-9.jsonl").unlink()
    assert main(["sweep", "sweep.toml"]) == 0
    (path,) = grid.glob(".adaptive-eval-sweep/cells/*/cell.json")
    end, record = json.loads(path.read_text()), path.with_name("record.json")
    path.write_text(json.dumps({**end, "exit_status": None, "gates": [], "interviews": []}))
    written = record.stat().st_mtime_ns
    assert main(["sweep", "sweep.toml"]) == 0
    assert record.stat().st_mtime_ns == written
    assert json.loads(path.read_text())["gates"] == end["gates"]
    data = json.loads(record.read_text())
    record.write_text(json.dumps({**data, "exit_status": 2}))  # of an interrupted run: that is no verdict
    path.write_text(json.dumps({**end, "exit_status": None}))
    assert main(["sweep", "sweep.toml"]) == 0
    assert record.stat().st_mtime_ns != written
    assert json.loads(path.read_text())["attempts"] == 2


def test_all_pairs_of_checkpoints_are_on_the_page_and_in_the_history(grid: Path, capsys: Any) -> None:
    write_answers(grid / "answers" / "step-11.jsonl", 9)
    assert main(["sweep", "sweep.toml"]) == 1
    page = (grid / ".adaptive-eval-sweep" / "sweep.html").read_text()
    assert "All 3 intervals hold together with 95 %" in page
    capsys.readouterr()
    assert main(["history", "--compare", ".adaptive-eval-sweep/record.json", "--json", "pairs.json"]) == 0
    assert "3 pairs; all intervals together hold with 95 %" in capsys.readouterr().out
    data = json.loads((grid / "pairs.json").read_text())
    (far,) = (pair for pair in data["pairs"] if set(pair["subjects"]) == {"step-10", "step-9"})
    assert far["subjects"] == ["step-10", "step-9"]
    assert far["decided"]
    assert far["shared"] > 0
