"""A sweep runs each cell as a plain run would, and leaves out cells whose inputs are as they were at their verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made import made

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.sweeps.cells import Cell, read_sweep
from pytest_adaptive_eval.extensions.sweeps.verbs import _name_apart
from pytest_adaptive_eval.records.run_files import read_run
from pytest_adaptive_eval.records.run_record import EvaluationRecord, RunRecord

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
    assert "0 of 2 cells finished before" in out
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
    assert "2 of 2 cells finished before" in capsys.readouterr().out
    write_answers(grid / "answers" / "step-9.jsonl", 9)
    os.utime(grid / "answers" / "step-9.jsonl", (1, 1))
    assert main(["sweep", "sweep.toml"]) == 0
    assert "1 of 2 cells finished before" in capsys.readouterr().out
    assert main(["report", "--from", str(folder), "--index", "pages"]) == 0
    assert "index: pages/index.html" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_correlates_its_evaluations_over_the_checkpoints(
    grid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (7, 8):
        write_answers(grid / "answers" / f"step-{step}.jsonl", step - 5)
    (grid / "hard.eval.toml").write_text(EVALUATION.replace("budget = 20", "budget = 30"))  # of the same name
    main(["sweep", "sweep.toml"])
    capsys.readouterr()
    record = grid / ".adaptive-eval-sweep" / "record.json"
    assert main(["history", "--correlate", "--from", str(record)]) == 0
    rows = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == ["toy, easy.eval.toml (accuracy) toy, hard.eval.toml (accuracy) 4 1.00 1.00 .083"]
    assert {entry.own_name for entry in read_run(record).interviews} == {"toy, easy.eval.toml", "toy, hard.eval.toml"}


def cell_record(grid: Path, checkpoint: str, subject: str, name: str = "toy") -> tuple[Cell, RunRecord]:
    entry = made(EvaluationRecord, name, "t", {"name": subject}, {"name": "toy", "content_hash": "h"}, asked=1, size=1)
    cell = Cell(checkpoint, checkpoint, "easy.eval.toml", (), grid, grid)
    return cell, RunRecord(f"r-{checkpoint}", "2031-05-06T07:08:09+00:00", evaluations=[entry])


def test_checkpoints_whose_subjects_share_a_name_are_told_apart(grid: Path) -> None:
    finished = [cell_record(grid, name, subject) for name, subject in (("a/end", "end"), ("b/end", "end"), ("c", "c"))]
    entries = [record.evaluations[0] for record in _name_apart(finished)]
    assert [entry.subject.name for entry in entries] == ["a/end", "b/end", "c"]
    assert [entry.name for entry in entries] == ["toy (a/end)", "toy (b/end)", "toy (c)"]
    assert {entry.evaluation_name for entry in entries} == {"toy"}


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


PROJECT = {
    "adaptive-eval.toml": """
[[eval]]
name = "sums"
bank = "toy.jsonl"
stop = "budget"
budget = 20
system = { file = "texts/system.txt" }
template = "texts/form.txt"
[[eval.gate]]
at_least = 0.4
[[eval.gate]]
not_worse_than = "baseline"
margin = 0.5
""",
    "texts/system.txt": "Answer with one word.",
    "texts/form.txt": "{prompt} Answer:",
    "pytest.ini": "[pytest]\nadaptive_eval_baseline = base.csv\npythonpath = lib\n",
    "conftest.py": "STRICT = 0\n",
    "lib/helper.py": "ACCEPTED = 'yes'\n",
    "data/words.txt": "yes\n",
    "test_toy.py": """
import os
from pathlib import Path

import helper
import pytest


@pytest.mark.adaptive_eval(bank="toy.jsonl", name="words", stop="budget", budget=10)
def test_words(item, model):
    words = (Path(__file__).parent / "data" / "words.txt").read_text().split()
    text = model.generate(item)
    assert text in words and text == helper.ACCEPTED


@pytest.mark.adaptive_gate("words", at_least=float(os.environ.get("LEAST", "0.3")))
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
}


class Project:
    """A whole project as one cell, whose inputs change while their times stay."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name, text in PROJECT.items():
            self.write(name, text)
        items = [{"id": f"q{n}", "prompt": f"question {n}", "answer": "yes"} for n in range(40)]
        self.write("toy.jsonl", "".join(json.dumps(item) + "\n" for item in items))
        self.write("base.csv", "subject," + ",".join(f"q{n}" for n in range(40)) + "\nmain" + ",1" * 40 + "\n")
        for name in ("one", "two"):
            self.write(f"{name}.jsonl", "".join(f'{{"id": "q{n}", "text": "yes"}}\n' for n in range(40)))
        (folder / "two.jsonl").write_text((folder / "two.jsonl").read_text().replace("yes", "yes."))
        self.link("one.jsonl")
        self.write("sweep.toml", 'checkpoints = ["replay:best.jsonl"]\n')

    def write(self, name: str, text: str) -> None:
        """Write a file whose time is older than any record."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (1e9, 1e9))

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new, 1))

    def link(self, target: str) -> None:
        path = self.folder / "best.jsonl"
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def touch_all(self) -> None:
        for name in ("adaptive-eval.toml", "toy.jsonl", "one.jsonl", "test_toy.py", "conftest.py"):
            os.utime(self.folder / name)

    def sweep(self, *arguments: str) -> str:
        """Run the sweep and return the id of the cell's run."""
        main(["sweep", "sweep.toml", *arguments])
        (record,) = self.folder.glob(".adaptive-eval-sweep/cells/*/record.json")
        return read_run(record).run


#: Whether the cell runs again, what happened, and how it happens.
CHANGES: list[tuple[bool, str, Callable[[Project, pytest.MonkeyPatch], object]]] = [
    (False, "nothing", lambda _p, _m: None),
    (False, "files of the same content with new times", lambda p, _m: p.touch_all()),
    (False, "a file that nobody reads", lambda p, _m: p.write("README.md", "words")),
    (False, "a variable that nobody reads", lambda _p, m: m.setenv("SOMETHING", "1")),
    (True, "a stricter gate", lambda p, _m: p.edit("adaptive-eval.toml", "0.4", "0.5")),
    (True, "a gate of the same length", lambda p, _m: p.edit("adaptive-eval.toml", "0.5", "0.6")),
    (True, "a smaller margin", lambda p, _m: p.edit("adaptive-eval.toml", "margin = 0.5", "margin = 0.4")),
    (True, "a budget", lambda p, _m: p.edit("adaptive-eval.toml", "budget = 20", "budget = 21")),
    (True, "a key of the bank", lambda p, _m: p.edit("toy.jsonl", '"answer": "yes"', '"answer": "no!"')),
    (True, "a prompt of the bank", lambda p, _m: p.edit("toy.jsonl", "question 7", "question 8")),
    (True, "an answer of the checkpoint", lambda p, _m: p.edit("one.jsonl", "yes", "not")),
    (True, "a link to another checkpoint", lambda p, _m: p.link("two.jsonl")),
    (True, "a system text", lambda p, _m: p.edit("texts/system.txt", "one word", "a word")),
    (True, "a template", lambda p, _m: p.edit("texts/form.txt", "Answer:", "Reply:")),
    (True, "a baseline", lambda p, _m: p.edit("base.csv", ",1", ",0")),
    (True, "another baseline", lambda p, _m: (p.write("b.csv", (p.folder / "base.csv").read_text()),
                                              p.edit("pytest.ini", "base.csv", "b.csv"))),
    (True, "a setting of the ini file", lambda p, _m: p.edit("pytest.ini", "lib", "lib\nadaptive_eval_seed = 3")),
    (True, "a conftest file", lambda p, _m: p.edit("conftest.py", "0", "1")),
    (True, "a new conftest file beside the tests", lambda p, _m: p.write("more/conftest.py", "")),
    (True, "a test file", lambda p, _m: p.edit("test_toy.py", "budget=10", "budget=11")),
    (True, "a new test file", lambda p, _m: p.write("test_more.py", "def test_more(): pass\n")),
    (True, "a test file less", lambda p, _m: (p.folder / "test_more.py").unlink()),
    (True, "a module that a test imports", lambda p, _m: p.edit("lib/helper.py", "'yes'", "'yes.'")),
    (True, "a file that a test reads for each question", lambda p, _m: p.edit("data/words.txt", "yes", "yes.")),
    (True, "a condition from the environment", lambda _p, m: m.setenv("LEAST", "0.35")),
    (True, "options from the environment", lambda _p, m: m.setenv("PYTEST_ADDOPTS", "--adaptive-eval-seed=9")),
    (True, "a new file of evaluations", lambda p, _m: p.write("b.eval.toml", '[[eval]]\nbank = "toy.jsonl"\n')),
    (False, "nothing again", lambda _p, _m: None),
]  # fmt: skip


@pytest.mark.slow
def test_a_cell_runs_again_for_every_change_of_its_inputs_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    before = project.sweep()
    wrong = []
    for again, change, make in CHANGES:
        make(project, monkeypatch)
        after = project.sweep()
        if (after != before) is not again:
            wrong.append(change)
        before = after
    assert wrong == []


FUNCTION = """
import pytest
from pytest_adaptive_eval import CallableModel


@pytest.fixture(scope="session")
def model():
    return CallableModel(lambda prompt: "yes", "m"CHECKPOINT)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("checkpoint", "again"), [("", True), (', checkpoint="v1"', False)])
def test_a_model_whose_weights_nobody_knows_is_asked_again_but_under_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], checkpoint: str, again: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.write("conftest.py", FUNCTION.replace("CHECKPOINT", checkpoint))
    (tmp_path / "adaptive-eval.toml").unlink()
    first = project.sweep()
    assert (project.sweep() != first) is again
    second = project.sweep()
    assert project.sweep("--resume") == second
    assert ("is not known (--resume)" in capsys.readouterr().out) is again
