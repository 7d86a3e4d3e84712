"""The verbs about past runs: report, history, compare, drift and merge, on real runs of a small project."""

from __future__ import annotations

import csv
import io
import json
import random
import shutil
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from fake_server import AlertReceiver

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.history import History
from pytest_adaptive_eval.records.run_files import new_run_id

ITEMS = 200
TOML = """
[[eval]]
bank = "toy.jsonl"
budget = 80
stop = "budget"
[[eval.gate]]
at_least = 0.5
"""


class Project:
    """A folder with a bank, recorded answers, and runs on them."""

    def __init__(self, lab: Any, capsys: pytest.CaptureFixture[str]) -> None:
        self.lab, self.capsys, self.path = lab, capsys, lab.path
        rows = [
            {"id": f"q{i}", "prompt": f"question {i}", "answer": "yes", "category": ["even" if i % 2 == 0 else "odd"]}
            for i in range(ITEMS)
        ]
        self.write("toy.jsonl", rows)
        self.text("adaptive-eval.toml", TOML)

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        self.text(name, "".join(json.dumps(row) + "\n" for row in rows))

    def text(self, name: str, text: str) -> None:
        (self.path / name).write_text(text)

    def answers(self, name: str, right: float, *, seed: int = 0) -> None:
        """Recorded answers of a subject, so many of them right."""
        rng = random.Random(seed)
        rows = [{"item": f"q{i}", "text": "yes" if rng.random() < right else "no"} for i in range(ITEMS)]
        self.write(f"{name}.jsonl", [{"id": row["item"], "text": row["text"]} for row in rows])

    def run(self, name: str, *flags: str) -> int:
        """A run with recorded answers as the model."""
        model = f"--adaptive-eval-model=replay:{name}.jsonl"
        result = self.lab.run(model, *flags)
        self.said = self.capsys.readouterr().err
        return int(result.ret)

    def command(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Exit code, output, and what was said besides."""
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        out, err = self.capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    def whole(self, run: str) -> dict[str, Any]:
        """The record of a run."""
        found: dict[str, Any] = json.loads((self.path / ".adaptive-eval" / "runs" / f"{run}.json").read_text())
        return found

    @property
    def ids(self) -> list[str]:
        return [run.run for run in History(self.path / ".adaptive-eval").runs]


@pytest.fixture
def project(lab: Any, capsys: pytest.CaptureFixture[str]) -> Project:
    return Project(lab, capsys)


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the runs of `two` are kept once they were made."""
    return tmp_path_factory.mktemp("held")


@pytest.fixture
def two(project: Project, held: Path) -> Project:
    """A good run, then a bad one of another checkpoint with other draws."""
    if not any(held.iterdir()):
        project.answers("good", 0.9)
        project.answers("bad", 0.4)
        assert project.run("good", "--adaptive-eval-record=good.json") == 0
        assert project.run("bad", "--adaptive-eval-seed=1", "--adaptive-eval-record=bad.json") == 1
        shutil.copytree(project.path, held, dirs_exist_ok=True)
    shutil.copytree(held, project.path, dirs_exist_ok=True)
    return project


def test_history_lists_runs_and_filters(two: Project) -> None:
    code, out, _ = two.command("history", "--json", "list.json")
    assert code == 0
    head, first, second = out.splitlines()
    assert head.split() == ["started", "run", "subject", "evaluation", "ability", "accuracy", "asked", "gates"]
    assert two.ids[0] in first
    assert first.endswith("  PASS")
    assert two.ids[1] in second
    assert second.endswith("  FAIL")
    rows = json.loads((two.path / "list.json").read_text())
    assert [row["run"] for row in rows] == two.ids
    for row in rows:  # the start tells runs of one second apart, as their ids do
        assert new_run_id(datetime.fromisoformat(row["started"]), bytes(4))[:20] == row["run"][:20]
    assert len(two.command("history", "--last", "1")[1].splitlines()) == 2
    assert len(two.command("history", "--subject", "good*")[1].splitlines()) == 2
    assert two.command("history", "--evaluation", "none")[1] == "no run in .adaptive-eval matches\n"
    assert two.command("history", "--last", "0")[0] == 4
    code, _, err = two.command("history", "--from", "nowhere")
    assert code == 4
    assert "no history at nowhere" in err


def test_compare_tells_what_changed(two: Project) -> None:
    code, out, _ = two.command("history", "--compare", two.ids[0][:22], "latest", "--json", "c.json")
    assert code == 0
    assert f"{two.ids[0]} -> {two.ids[1]}" in out
    (found,) = json.loads((two.path / "c.json").read_text())["evaluations"]
    assert found["accuracy"]["high"] < -0.3
    assert set(found["categories"]) == {"even", "odd"}
    asked = [
        {
            a["item"]: a["score"]
            for a in json.loads((two.path / f"{n}.json").read_text())["interviews"][0]["administrations"]
        }
        for n in ("good", "bad")
    ]
    both = [item for item in asked[0] if item in asked[1]]
    assert found["common"] == len(both) > 10
    assert found["lost"] == [item for item in both if asked[1][item] < asked[0][item]]
    assert two.command("history", "--compare", "good.json", "bad.json")[1] == out


@pytest.mark.slow
def test_compare_refuses_another_bank(two: Project) -> None:
    two.text("toy.jsonl", (two.path / "toy.jsonl").read_text().replace("question 3", "question three"))
    assert two.run("good") == 0, two.said
    code, out, _ = two.command("history", "--compare", two.ids[0], "latest")
    assert code == 4
    assert "not compared: the bank changed between the two (hash " in out
    two.text("adaptive-eval.toml", TOML.replace("budget =", 'name = "new"\nbudget ='))
    assert two.run("good") == 0, two.said
    code, _, err = two.command("history", "--compare", two.ids[0], "latest")
    assert code == 4
    assert "no evaluation in common: the first has toy, the second new" in err


def test_copies_are_marked_and_are_not_runs(two: Project) -> None:
    runs = two.ids
    assert "copy" not in two.command("history")[1]
    assert two.command("merge", *runs)[0] == 1
    code, out, _ = two.command("history", "--json", "list.json")
    assert code == 0
    head, *lines = out.splitlines()
    assert head.endswith("  copy")
    assert [line.endswith("  merged of 2") for line in lines].count(True) == 2
    assert "toy (replay:bad)" in out or "toy (bad)" in out, "the bank's name stands there once"
    rows = json.loads((two.path / "list.json").read_text())
    assert [row.get("merged") for row in rows].count(runs) == 2
    head, *learning = two.command("history", "--drift")[1].splitlines()
    assert head == "3 series of 2 runs watched"
    assert any(line.startswith("2 of 10 runs: alarms by the errors of the runs alone: ") for line in learning)
    assert two.command("report")[1] == two.command("report", runs[1])[1]
    assert (
        two.command("history", "--compare", runs[0], "latest")[1].splitlines()[0].startswith(f"{runs[0]} -> {runs[1]}")
    )
    two.command("merge", *runs, "-o", "all.json")
    code, out, _ = two.command("history", "--drift", "--from", "all.json")
    assert code == 0
    assert out.splitlines()[-1].startswith("all of them are merged")


def test_a_history_as_baseline_prefers_a_run_to_its_copies(two: Project) -> None:
    assert two.command("merge", two.ids[0])[0] == 0
    two.text("adaptive-eval.toml", TOML + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n')
    assert two.run("good", "--adaptive-eval-seed=3", "--adaptive-eval-baseline=.adaptive-eval") == 0
    (interview,) = two.whole(two.ids[-1])["interviews"]
    assert interview["baselines"]["baseline"]["run"] == two.ids[0]


def test_merging_puts_jobs_together(two: Project) -> None:
    code, out, _ = two.command("merge", "good.json", "bad.json", "-o", "all.json")
    assert code == 1
    merged = json.loads((two.path / "all.json").read_text())
    assert merged["merged"] == two.ids
    assert [i["name"] for i in merged["interviews"]] == ["toy", f"toy ({merged['interviews'][1]['subject']['name']})"]
    assert [g["interview"] for g in merged["gates"]] == [i["name"] for i in merged["interviews"]]
    assert "PASS" in out
    assert "FAIL" in out
    assert two.command("report", "all.json")[0] == 0
    assert two.command("merge", "good.json", "good.json")[0] == 4
    assert two.command("merge", "good.json")[0] == 0
    assert len(two.ids) == 3


def test_report_writes_what_is_asked_for(two: Project) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    code, out, _ = two.command(
        *("report", two.ids[0], "--html", "r.html", "--markdown", "r.md", "--junit", "r.xml"),
        *("--export", "responses=r.csv"),
    )
    assert code == 0
    assert "PASS" in out
    page = (two.path / "r.html").read_text()
    assert "question 1" in page, "the bank was found where the run had it"
    assert "PASS" in (two.path / "r.md").read_text()
    assert (two.path / "r.xml").read_bytes().startswith(b"<?xml")
    rows = list(csv.DictReader(io.StringIO((two.path / "r.csv").read_text())))
    assert len(rows) == 80
    code, _, err = two.command("report", two.ids[0], "--html", "r.html", "--export", "responses=r.jsonl")
    assert code == 0
    assert err.splitlines() == [
        "note: page: r.html",
        "note: answers: r.jsonl, 80 rows",
    ]
    assert len((two.path / "r.jsonl").read_text().splitlines()) == 80


def test_a_record_of_the_whole_bank_is_no_baseline_of_a_category(project: Project) -> None:
    project.answers("good", 0.9)
    assert project.run("good", "--adaptive-eval-record=base.json") == 0
    path = project.path / "adaptive-eval.toml"
    more = '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.1\n'
    path.write_text(
        path.read_text()
        .partition("[[eval.gate]]")[0]
        .replace("budget = 80", 'name = "toy"')
        .replace("toy.jsonl", "toy.jsonl#even")
        + more
    )
    result = project.lab.run("--adaptive-eval-model=replay:good.jsonl", "--adaptive-eval-baseline=base.json")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*asked 'the whole bank', and this evaluation asks 'even': record one that asks*"])


def test_the_latest_run_may_be_one_that_cannot_be_read(two: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    output = two.path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    (two.path / f".adaptive-eval/runs/{two.ids[1]}.json").write_text("")
    for _ in range(2):  # the index keeps no file that is no whole record
        code, _, err = two.command("report", "latest", "--github")
        assert code == 4
        assert "the latest run may be one that cannot be read" in err
        assert "promote=false" in output.read_text()
    assert two.command("report", two.ids[0])[0] == 0


def test_no_copy_hides_the_records_beside_it(two: Project) -> None:
    folder = two.path / "hist"
    shutil.copytree(two.path / ".adaptive-eval/runs", folder)
    (folder / "runs").mkdir()  # somebody else's
    code, _, err = two.command("merge", *two.ids, "--from", "hist")
    assert code == 1
    (new,) = {path.name for path in folder.glob("*.json")} - {f"{run}.json" for run in two.ids}
    assert f"note: record: hist/{new}" in err.splitlines()
    assert len(two.command("history", "--from", "hist")[1].splitlines()) == 5


def test_report_writes_over_no_bank_that_a_record_names(two: Project) -> None:
    before = (two.path / "toy.jsonl").read_bytes()
    code, _, err = two.command("report", "--html", "toy.jsonl", two.ids[0])
    assert code == 4
    assert "toy.jsonl is a file that is read, and would be replaced" in err
    assert (two.path / "toy.jsonl").read_bytes() == before


def test_report_of_no_run_is_an_error_and_promotes_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    output = project.path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    code, _, err = project.command("report", "none.json", "--github")
    assert code == 4
    assert "none.json: cannot be read" in err
    assert "promote=false" in output.read_text()
    assert project.command("report")[0] == 4


@pytest.mark.slow
def test_drift_alerts_by_its_exit_code(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.answers("good", 0.9)
    project.answers("bad", 0.3, seed=1)
    for seed in range(6):
        assert project.run("good", f"--adaptive-eval-seed={seed}") == 0
    code, out, _ = project.command("history", "--drift", "--json", "d.json")
    assert code == 0
    assert "6 of 10 runs: alarms by the errors of the runs alone: " in out
    assert out.splitlines()[-1] == "no alarm"
    found = json.loads((project.path / "d.json").read_text())
    assert {one["learning"] for one in found["series"]} == {"6 of 10 runs: alarms by the errors of the runs alone"}
    assert found["message"] == out.splitlines()[-1]
    for seed in range(6, 11):
        assert project.run("good", f"--adaptive-eval-seed={seed}") == 0
    code, out, _ = project.command("history", "--drift", "--json", "d.json")
    assert code == 0
    assert out.splitlines() == ["3 series of 11 runs watched", "no alarm"]
    assert len(json.loads((project.path / "d.json").read_text())["series"]) == 3
    for seed in range(20, 22):
        assert project.run("bad", f"--adaptive-eval-seed={seed}") == 1
    code, out, _ = project.command("history", "--drift", "--json", "d.json")
    assert code == 1
    assert "ALARM: accuracy of toy fell from" in out
    alarms = json.loads((project.path / "d.json").read_text())["alarms"]
    assert any(alarm["news"] for alarm in alarms)
    link = ("--link", "https://reports.example/7")
    assert project.command("history", "--drift", "--alert-file", "alert.json", *link)[0] == 1
    messages: list[Any] = [json.loads((project.path / "alert.json").read_text())]
    if find_spec("apprise"):
        with AlertReceiver() as receiver:
            monkeypatch.setenv("ALERTS", f"json://127.0.0.1:{receiver.port}/hooks/secret")
            code, out, err = project.command("history", "--drift", "--webhook", "ALERTS", *link)
        assert code == 1
        assert "the alert was sent" in err
        assert "secret" not in out + err
        messages += [body for _, body in receiver.requests]
        assert len(messages) == 2
    for message in messages:
        assert "accuracy of toy fell from" in json.dumps(message)
        assert "https://reports.example/7" in json.dumps(message)
    code, _, err = project.command("history", "--drift", "--webhook", "NO_SUCH_VARIABLE")
    assert code == 4
    assert "the environment has no such variable" in err
