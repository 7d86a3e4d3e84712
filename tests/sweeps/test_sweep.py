"""A sweep runs each cell as a plain run would, and only cells without a verdict that is newer than their files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.sweeps.cells import read_sweep
from pytest_adaptive_eval.records.run_files import read_run

EVALUATION = '[[eval]]\nbank = "toy.jsonl"\nbudget = 20\nstop = "budget"\n\n[[eval.gate]]\nat_least = 0.4\n'
SWEEP = 'checkpoints = ["replay:answers/step-*.jsonl"]\nevaluations = ["*.eval.toml"]\n'


def write_answers(path: Path, right: int) -> None:
    """Record answers, `right` of ten of which are right."""
    path.parent.mkdir(exist_ok=True)
    rows = [{"id": f"q{n}", "text": "yes" if n % 10 < right else "no"} for n in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two checkpoints on one file of evaluations; the command runs in the folder."""
    monkeypatch.chdir(tmp_path)
    items = [{"id": f"q{n}", "prompt": f"question {n}", "answer": "yes"} for n in range(40)]
    (tmp_path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (tmp_path / "easy.eval.toml").write_text(EVALUATION)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    for step, right in ((9, 1), (10, 10)):
        write_answers(tmp_path / "answers" / f"step-{step}.jsonl", right)
    return tmp_path


def test_cells_are_in_the_order_of_their_numbers_and_have_folders_of_their_own(grid: Path) -> None:
    (grid / "hard.eval.toml").write_text(EVALUATION)
    _, cells = read_sweep(grid / "sweep.toml")
    assert [cell.title for cell in cells] == [
        f"step-{step}.jsonl x {name}.eval.toml" for step in (9, 10) for name in ("easy", "hard")
    ]
    assert len({cell.folder for cell in cells}) == 4
    (grid / "sweep.toml").write_text(SWEEP + 'arguments = ["--adaptive-eval-seed=1"]\n')
    _, seeded = read_sweep(grid / "sweep.toml")
    assert not {cell.folder for cell in cells} & {cell.folder for cell in seeded}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no checkpoints; expected a list"),
        ('checkpoints = ["runs/*"]', r"checkpoints 'runs/\*': nothing matches it"),
        (SWEEP.replace("*.eval", "no-*.eval"), r"evaluations 'no-\*.eval.toml': nothing matches it"),
        (SWEEP + "seeds = [1]", "seeds is gone: write arguments"),
        (SWEEP + "gpus = -1", "gpus is -1"),
    ],
)
def test_mistakes_of_a_sweep_file_are_named(grid: Path, text: str, message: str) -> None:
    (grid / "sweep.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_sweep(grid / "sweep.toml")


def plain_run(grid: Path, step: int) -> Path:
    record = grid / f"plain-{step}.json"
    flags = ["--adaptive-eval", f"--adaptive-eval-model=replay:{grid}/answers/step-{step}.jsonl"]
    flags += [f"--adaptive-eval-record={record}", f"--adaptive-eval-dir={grid}/plain", "easy.eval.toml"]
    subprocess.run([sys.executable, "-m", "pytest", "-q", *flags], cwd=grid, capture_output=True, check=False)
    return record


@pytest.mark.slow
def test_cells_are_plain_runs_and_run_again_only_when_a_file_changed(
    grid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "sweep.toml", "--jobs", "2"]) == 1  # one of the two fails
    out = capsys.readouterr().out
    assert "2 cells, 0 finished before" in out
    assert "step-9.jsonl x easy.eval.toml: FAIL" in out
    assert "step-10.jsonl x easy.eval.toml: PASS" in out
    folder = grid / ".adaptive-eval-sweep"
    for step in (9, 10):
        (found,) = folder.glob(f"cells/step-{step}*/record.json")
        cell, plain = read_run(found), read_run(plain_run(grid, step))
        assert [gate.verdict.sentence for gate in cell.gates] == [gate.verdict.sentence for gate in plain.gates]
        asked = [[a.item for a in run.interviews[0].administrations] for run in (cell, plain)]
        assert asked[0] == asked[1]
    record = read_run(folder / "record.json")
    assert [i.name for i in record.interviews] == ["toy (step-9.jsonl)", "toy (step-10.jsonl)"]
    assert [gate.interview for gate in record.gates] == [i.name for i in record.interviews]
    assert main(["sweep", "sweep.toml"]) == 1
    assert "2 cells, 2 finished before" in capsys.readouterr().out
    write_answers(grid / "answers" / "step-9.jsonl", 9)
    later = (folder / "record.json").stat().st_mtime + 10
    os.utime(grid / "answers" / "step-9.jsonl", (later, later))
    assert main(["sweep", "sweep.toml"]) in (0, 1)  # its file stays newer than its record
    assert "2 cells, 1 finished before" in capsys.readouterr().out
    assert main(["report", "--from", str(folder), "--index", "pages"]) == 0
    assert "index: pages/index.html" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_on_ray_has_the_same_verdicts(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ray")
    assert main(["sweep", "sweep.toml", "--ray"]) == 1
    out = capsys.readouterr().out
    assert "step-9.jsonl x easy.eval.toml: FAIL" in out
    assert "step-10.jsonl x easy.eval.toml: PASS" in out


def test_a_cell_without_a_record_names_its_output(grid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (grid / "easy.eval.toml").write_text(EVALUATION.replace("toy.jsonl", "none.jsonl"))
    (grid / "sweep.toml").write_text(SWEEP.replace("step-*", "step-9"))
    assert main(["sweep", "sweep.toml"]) == 1
    assert "step-9.jsonl x easy.eval.toml: pytest ended with 4, see" in capsys.readouterr().out
