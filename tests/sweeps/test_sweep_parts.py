"""Settings, checks, retries, matrix, page and table of a sweep, without running a cell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from cells_of import cell, end_of, write_answers

from pytest_adaptive_eval import __version__
from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.extensions.sweeps.cells import CellEnd, Job, read_end, write_end
from pytest_adaptive_eval.extensions.sweeps.checks import (
    Machine,
    Signatures,
    check_room,
    file_hashes,
    fingerprint,
    named_banks,
    node_complaints,
)
from pytest_adaptive_eval.extensions.sweeps.driver import SweepRun
from pytest_adaptive_eval.extensions.sweeps.executors import LocalExecutor
from pytest_adaptive_eval.extensions.sweeps.live import LiveTable, cell_line
from pytest_adaptive_eval.extensions.sweeps.matrix import Matrix, state_of
from pytest_adaptive_eval.extensions.sweeps.page import sweep_page
from pytest_adaptive_eval.extensions.sweeps.settings import ResourceTable, read_sweep


def test_checkpoints_are_in_the_order_of_their_steps_with_names_of_their_own(grid: Path) -> None:
    for folder in ("a/step-2", "a/step-10", "b/step-2"):
        (grid / folder).mkdir(parents=True)
    (grid / "sweep.toml").write_text(
        'checkpoints = ["*/step-*", "http://host:1/v1#m"]\nevaluations = ["easy.eval.toml", "toy.py::test_x"]\n'
    )
    (grid / "toy.py").touch()
    (grid / "answers" / "step-9.jsonl").rename(grid / "kept.jsonl")
    sweep = read_sweep(grid / "sweep.toml")
    assert [c.name for c in sweep.checkpoints][:3] == ["a/step-2", "step-10", "b/step-2"]
    assert [(c.step, c.training_run) for c in sweep.checkpoints][:2] == [(2, "a/step-*"), (10, "step-*")]
    assert sweep.checkpoints[3].path is None
    assert [e.name for e in sweep.evaluations] == ["easy", "toy::test_x"]
    assert len({c.key for c in sweep.cells}) == len(sweep.cells) == 8
    assert sweep.missing == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("checkpoints = [", "not readable as TOML"),
        ('evaluations = ["x"]', "checkpoints is empty"),
        ('checkpoints = ["x"]\nevaluations = ["y"]\nseeds = []', "seeds is empty"),
        ('checkpoints = "x"', "checkpoints is 'x', expected a list"),
        ("checkpoint = []", "did you mean 'checkpoints'"),
        ("[resources]\ngpus = -1", "resources.gpus is -1, expected a whole number of at least 0"),
        ("[resources]\nmemory = -1", "resources.memory is -1, expected a number of at least 0"),
    ],
)
def test_a_file_that_is_no_sweep_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(message)) as error:
        read_sweep(path)
    assert str(path) in str(error.value)


def test_a_cell_is_another_after_a_change_of_bank_checkpoint_or_evaluation(grid: Path) -> None:
    def mark() -> str:
        (first, *_) = read_sweep(grid / "sweep.toml").cells
        return fingerprint(first, (), Signatures(grid))

    marks = [mark(), mark()]
    assert marks[0] == marks[1]
    (grid / "toy.jsonl").write_text((grid / "toy.jsonl").read_text().replace("question 1", "question one"))
    marks.append(mark())
    write_answers(grid / "answers" / "step-9.jsonl", 3)
    marks.append(mark())
    (grid / "easy.eval.toml").write_text((grid / "easy.eval.toml").read_text().replace("0.4", "0.41"))
    marks.append(mark())
    assert len(set(marks)) == 4


def test_a_machine_that_lacks_something_is_named() -> None:
    needs = ResourceTable(gpus=2, cpus=4, memory=64)
    small, large = Machine("node-a", 2, 16, ("0",)), Machine("node-b", 8, 128, ("0", "1"))
    assert small.lacks(needs) == "1 GPUs of 2, 2 cores of 4, 16 GiB of 64"
    assert large.lacks(needs) == ""
    check_room(needs, [small, large], "sweep.toml")
    with pytest.raises(ConfigError, match=r"sweep\.toml: no machine can hold a cell: node-a has 1 GPUs of 2"):
        check_room(needs, [small], "sweep.toml")


def test_a_node_with_another_package_or_bank_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "toy.bank").mkdir()
    (tmp_path / "toy.bank" / "bank.json").write_text("{}")
    here = file_hashes([tmp_path / "toy.bank"])
    assert node_complaints("n1", __version__, here, here) == []
    (tmp_path / "toy.bank" / "bank.json").write_text("{ }")
    (changed,) = node_complaints("n1", __version__, file_hashes([tmp_path / "toy.bank"]), here)
    assert changed.startswith("node n1: ")
    assert "toy.bank differs from the one here" in changed
    (absent,) = node_complaints("n1", __version__, file_hashes([tmp_path / "no.bank"]), here)
    assert "there is no" in absent
    assert "pytest-adaptive-eval 0.0.1, and here is" in node_complaints("n2", "0.0.1", {}, here)[0]
    assert "not installed" in node_complaints("n3", None, {}, here)[0]


class Fake:
    """An executor whose cells end as a table says, one end an attempt."""

    running = ()

    def __init__(self, ends: dict[str, list[CellEnd]]) -> None:
        self.ends = ends
        self.submitted: list[str] = []
        self.again: list[int] = []

    def retried(self, end: CellEnd, number: int) -> None:
        self.again.append(number)

    def submit(self, job: Job) -> None:
        self.submitted.append(job.key)

    def wait(self, seconds: float) -> list[CellEnd]:
        key = self.submitted[-1]
        return [self.ends[key].pop(0)]

    def close(self) -> None:
        pass


def job(key: str, folder: Path) -> Job:
    return Job(key, folder / key, folder, (), "f")


def test_a_verdict_is_never_retried_and_a_death_is_as_often_as_said(tmp_path: Path) -> None:
    dead = CellEnd("a", "f", reason="the node died")
    for ends, status, tries in (
        ([dead, dead, end_of(cell())], 0, 3),
        ([end_of(cell(), "FAIL")], 1, 1),
        ([replace(dead, exit_status=4, reason="refused")], 4, 1),
        ([dead] * 3, 3, 3),
    ):
        run = SweepRun([job("a", tmp_path)], retries=2)
        executor = Fake({"a": [replace(end, key="a") for end in ends]})
        run.drive(executor, lambda end: None, executor.retried, lambda running: None)
        assert run.ends["a"].exit_status == status
        assert len(executor.submitted) == tries
        assert executor.again == list(range(1, tries))
    assert run.ends["a"].reason == "the node died; run 3 times, so it is given up"


def test_only_finished_cells_of_the_same_content_are_kept(tmp_path: Path) -> None:
    ends = {
        "kept": end_of(cell(), "FAIL"),
        "other": replace(end_of(cell()), fingerprint="another"),
        "void": replace(end_of(cell()), reason="the server was down"),
        "died": CellEnd("died", "f", reason="it has not ended"),
    }
    jobs = [job(key, tmp_path) for key in ends]
    for key, end in ends.items():
        (tmp_path / key).mkdir()
        write_end(tmp_path / key, replace(end, key=key))
        assert read_end(tmp_path / key) is not None
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "cell.json").write_text('{"key": ')
    run = SweepRun([*jobs, job("torn", tmp_path)], 1)
    assert list(run.ends) == ["kept"]


def test_cells_get_gpus_of_their_own_and_give_them_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def run(job: Job, stop: object, environment: dict[str, str]) -> CellEnd:
        seen.append(environment["CUDA_VISIBLE_DEVICES"])
        if job.key == "3":
            raise OSError(28, "No space left on device")
        return replace(end_of(cell()), key=job.key)

    monkeypatch.setattr("pytest_adaptive_eval.extensions.sweeps.executors.run_cell", run)
    executor = LocalExecutor(ResourceTable(gpus=2), "s", machine=Machine("m", 8, 8, ("a", "b", "c", "d", "e")))
    for number in range(5):
        executor.submit(job(str(number), tmp_path))
    ends: list[CellEnd] = []
    while len(ends) < 5:
        ends += executor.wait(5)
    assert seen[:2] == ["a,b", "c,d"]
    assert all(len(set(text.split(","))) == 2 for text in seen)
    assert {end.key: end.reason for end in ends if not end.finished} == {
        "3": "OSError: [Errno 28] No space left on device"
    }


def test_the_matrix_has_worst_verdicts_curves_and_the_best() -> None:
    cells = [cell(f"step-{step}", name, seed) for step in (1, 2, 3) for name in ("a", "b") for seed in (0, 1)]
    ends = {c.key: end_of(c, "FAIL" if c.checkpoint.step == 1 else "PASS", float(c.checkpoint.step)) for c in cells}
    ends[cells[-1].key] = end_of(cells[-1], "INCONCLUSIVE", 4.0)
    matrix = Matrix(cells, ends, gpus=2)
    assert matrix.entry(cells[-1].checkpoint, cells[-1].evaluation).state == "INCONCLUSIVE"
    assert matrix.entry(cells[-1].checkpoint, cells[-1].evaluation).text == "3.50"
    assert matrix.states == {"FAIL": 4, "PASS": 7, "INCONCLUSIVE": 1}
    (first, second) = matrix.curves()
    assert [(p.step, p.estimate) for p in first.points] == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert second.points[-1].low == pytest.approx(3.5 - 1.645 * 0.1, abs=1e-3)
    best = {entry.evaluation: entry.checkpoint for entry in matrix.best()}
    assert best == {"all evaluations": "step-2", "a": "step-3", "b": "step-3"}  # most passed gates, highest estimate
    cost = matrix.cost()
    assert (cost.questions, cost.seconds, cost.gpu_seconds) == (84, 24.0, 48.0)


def test_states_of_cells() -> None:
    assert state_of(None) == "waiting"
    assert state_of(CellEnd("a", "f")) == "waiting"
    assert state_of(end_of(cell(), "PASS", reason="void")) == "ERROR"
    assert state_of(replace(end_of(cell()), gates=[])) == "none"


def test_the_page_escapes_names_and_says_what_has_no_verdict() -> None:
    hostile = '<script>alert(1)</script>"\x1b[31m\u202e'
    cells = [cell(f"{hostile} 1", "a"), cell("plain 2", "a"), cell("plain 3", "a")]
    ends = {
        cells[0].key: end_of(cells[0], "FAIL"),
        cells[1].key: replace(end_of(cells[1]), exit_status=4, reason=f"refused {hostile}"),
    }
    page = sweep_page(hostile, cells, ends)
    assert "<script" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "1 cell without a verdict" in page
    assert "not ended" in page
    assert page == sweep_page(hostile, cells, ends)


def test_the_table_fits_the_terminal_and_marks_what_runs() -> None:
    cells = [cell(f"step-{step}", name) for step in range(40) for name in ("a", "b")]
    ends = {c.key: end_of(c, "FAIL") for c in cells[:60]}
    table = LiveTable(cells, ends)
    lines = table.lines([cells[60].key], 60, 20)
    assert len(lines) <= 19
    assert all(len(line) <= 60 for line in lines)
    assert any(line == "step-30  » ·" for line in lines)
    assert "60 of 80 cells ended (60 FAIL), 1 run" in lines[-2]
    assert "now: step-30 x a, seed 0" in lines[-1]


def test_the_line_of_a_cell_runs_no_command_of_a_log() -> None:
    line = cell_line(cell("::error::x"), end_of(cell("::error::x"), "FAIL"))
    assert "::error" not in line
    assert "FAIL in 2.0 s, 7 questions: FAIL because" in line


def test_each_evaluation_has_a_picture_with_a_line_for_each_training_run() -> None:
    cells = [cell(f"run{run}-{step}", "a") for run in "xyzw" for step in (1, 2)]
    ends = {c.key: end_of(c) for c in cells}
    page = sweep_page("many", cells, ends)
    assert page.count("<figure>") == 1
    assert page.count('class="line faint"') == 4
    assert page.count('class="whisker"') == 0  # they would hide each other
    assert "<title>runx-*</title>" in page
    assert sweep_page("few", cells[:2], ends).count('class="whisker"') == 2


def test_banks_are_found_beside_the_file_and_where_the_commands_run(tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "top.jsonl").touch()
    (tmp_path / "evals" / "own.jsonl").touch()
    path = tmp_path / "evals" / "x.eval.toml"
    path.write_text('[[eval]]\nbank = "own.jsonl"\n\n[[eval]]\nbank = "top.jsonl"\n\n[[eval]]\ntask = "counting"\n')
    assert named_banks(path, tmp_path) == [tmp_path / "evals" / "own.jsonl", tmp_path / "top.jsonl"]
    with pytest.raises(ConfigError, match=r"x\.eval\.toml:4: bank 'top\.jsonl' not found"):
        named_banks(path, tmp_path / "evals")
