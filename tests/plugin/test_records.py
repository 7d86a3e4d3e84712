"""The verbs about past runs: report, history, compare, drift, rescore and merge, on real runs of a small project."""

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
    assert "1 PASS" in first
    assert two.ids[1] in second
    assert second.endswith("1 FAIL")
    rows = json.loads((two.path / "list.json").read_text())
    assert [row["run"] for row in rows] == two.ids
    for row in rows:  # the start tells runs of one second apart, as their ids do
        assert new_run_id(datetime.fromisoformat(row["started"]), bytes(4))[:20] == row["run"][:20]
    assert len(two.command("history", "--last", "1")[1].splitlines()) == 2
    assert len(two.command("history", "--subject", "good*")[1].splitlines()) == 2
    assert two.command("history", "--evaluation", "none")[1] == "no run in .adaptive-eval is like that\n"
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


def test_rescoring_with_nothing_changed_gives_the_same_verdicts(two: Project) -> None:
    for name, expected in (("good", 0), ("bad", 1)):
        code, _, _ = two.command("gate", "--rescore", f"{name}.json", "-o", "again.json")
        assert code == expected
        old, new = (json.loads((two.path / f"{n}.json").read_text()) for n in (name, "again"))
        assert [g["verdict"] for g in new["gates"]] == [g["verdict"] for g in old["gates"]]
        for field in ("accuracy", "accuracy_error", "categories", "stop", "asked", "statuses", "administrations"):
            assert new["interviews"][0][field] == old["interviews"][0][field], field
        assert new["rescored_from"] == old["run"] != new["run"]


@pytest.mark.slow
def test_rescoring_grades_changed_items_by_the_new_key(two: Project) -> None:
    rows = [json.loads(line) for line in (two.path / "toy.jsonl").read_text().splitlines()]
    for row in rows:
        if int(row["id"][1:]) % 4:
            row["answer"] = "no"
    two.write("toy.jsonl", rows)
    code, out, _ = two.command("gate", "--rescore", "good.json", "-o", "again.json")
    assert code == 1, out
    old, new = (json.loads((two.path / f"{n}.json").read_text())["interviews"][0] for n in ("good", "again"))
    answers = {row["id"]: row["answer"] for row in rows}
    for before, after in zip(old["administrations"], new["administrations"], strict=True):
        assert after["score"] == float(before["text"] == answers[after["item"]])
        assert after["propensity"] == before["propensity"]
    changed = [a for a in old["administrations"] if int(a["item"][1:]) % 4]
    assert f"{len(changed)} answers got another score than was recorded" in out
    assert new["accuracy"]["estimate"] == pytest.approx(
        sum(a["score"] for a in new["administrations"]) / len(new["administrations"])
    )


def test_rescoring_by_other_gates_and_a_baseline(two: Project) -> None:
    gates = (
        TOML.replace("at_least = 0.5", "at_least = 0.8") + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n'
    )
    two.text("strict.toml", gates)
    code, out, err = two.command("gate", "--rescore", "good.json", "--gates", "strict.toml", "--baseline", "bad.jsonl")
    assert code == 0, out + err
    assert "PASS  toy-accuracy-at-least-0.8" in out
    assert "PASS  toy-accuracy-not-worse-than-0.2-baseline" in out
    assert two.ids[2] in err
    assert len(two.ids) == 3, "the new run is kept in the history"
    code, out, _ = two.command("gate", "--rescore", "bad.json", "--gates", "strict.toml", "--baseline", "good.jsonl")
    assert code == 1
    assert out.count("FAIL  toy") == 2
    code, out, _ = two.command("gate", "--rescore", "good.json", "--gates", "strict.toml")
    assert code == 0
    assert "no baseline yet" in out


@pytest.mark.slow
def test_rescoring_compares_with_what_the_run_was_compared_with(two: Project) -> None:
    gates = TOML + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n'
    two.text("adaptive-eval.toml", gates)
    # with another space in an answer, since a model is not compared with the very answers that it gives
    *others, last = map(json.loads, (two.path / "good.jsonl").read_text().splitlines())
    last["text"] += " "
    two.text("earlier.jsonl", "".join(f"{json.dumps(row)}\n" for row in (*others, last)))
    verdicts = []
    for given in ("good.json", "earlier.jsonl", ".adaptive-eval"):
        assert two.run("good", "--adaptive-eval-seed=3", f"--adaptive-eval-baseline={given}") == 0
        verdicts.append(two.whole(two.ids[-1])["gates"])
        policy = two.whole(two.ids[-1])["interviews"][0]["policy"]
        # no horizon is recorded where all stakes aim at the budget
        assert policy.get("horizon", policy["budget"]) == policy["budget"], "paired bets aim at the budget"
        code, out, err = two.command("gate", "--rescore", "latest")
        assert code == 0, out + err
        again = two.whole(two.ids[-1])
        assert again["interviews"][0]["policy"].get("horizon") == policy.get("horizon"), "a copy aims where its run did"
        assert [gate["verdict"] for gate in again["gates"]] == [gate["verdict"] for gate in verdicts[-1]]
        assert again["interviews"][0]["baselines"]["baseline"]["path"] == given
        assert two.command("gate", "--rescore", again["run"])[0] == 0, "a copy knows it too"
    before = two.ids
    first = next(run for run in before[2:] if "rescored_from" not in two.whole(run))
    code, out, err = two.command("gate", "--rescore", first, "--baseline", "bad.jsonl")
    assert code == 0, out + err
    assert "bad.jsonl is another baseline than the run was compared with" in out
    two.text("good.json", (two.path / "bad.json").read_text())
    before = two.ids
    code, out, err = two.command("gate", "--rescore", first)
    assert (code, out) == (4, "")
    assert "good.json, whose answers have changed since: name a baseline with --baseline FILE" in err
    (two.path / "good.json").unlink()
    code, _, err = two.command("gate", "--rescore", first)
    assert code == 4
    assert "good.json, which does not exist any more: name a baseline with --baseline FILE" in err
    old = two.whole(first)
    del old["interviews"][0]["baselines"]
    two.text("old.json", json.dumps(old))
    code, _, err = two.command("gate", "--rescore", "old.json")
    assert code == 4
    assert "its record does not say which: name it with --baseline FILE" in err
    for damaged, fault in (
        (-1.5, "condition: Expected `object | null`, got `float`"),
        ({"metric": "accuracy", "kind": []}, "condition.kind: Expected `str`, got `array`"),
        ({"metric": "accuracy", "sort": "at_least"}, "condition: Object missing required field `kind`"),
    ):
        old["gates"][0]["verdict"]["condition"] = damaged
        two.text("old.json", json.dumps(old))
        code, _, err = two.command("gate", "--rescore", "old.json")
        assert code == 4
        assert f"old.json: the run record is damaged: gates[0].verdict.{fault}. Write it again or restore" in err
    assert two.ids == before, "no copy is written"


@pytest.mark.slow
def test_rescoring_a_run_that_had_no_baseline_gives_its_notice_again(two: Project) -> None:
    two.text("adaptive-eval.toml", TOML + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n')
    assert two.run("good", "--adaptive-eval-seed=3") == 0
    code, out, _ = two.command("gate", "--rescore", "latest")
    assert code == 0
    assert "no baseline yet" in out


def test_copies_are_marked_and_are_not_runs(two: Project) -> None:
    runs = two.ids
    assert "copy" not in two.command("history")[1]
    assert two.command("gate", "--rescore", "latest")[0] == 1
    assert two.command("gate", "--rescore", "latest")[0] == 1
    assert two.command("merge", *runs)[0] == 1
    code, out, _ = two.command("history", "--json", "list.json")
    assert code == 0
    head, *lines = out.splitlines()
    assert head.endswith("  copy")
    assert [line.endswith(f"1 FAIL  rescored from {runs[1]}") for line in lines].count(True) == 2
    assert [line.endswith("  merged of 2") for line in lines].count(True) == 2
    assert "toy (replay:bad)" in out or "toy (bad)" in out, "the bank's name stands there once"
    rows = json.loads((two.path / "list.json").read_text())
    assert [row.get("rescored_from") for row in rows].count(runs[1]) == 2
    assert [row.get("merged") for row in rows].count(runs) == 2
    head, *learning = two.command("history", "--drift")[1].splitlines()
    assert head == "3 series of 2 runs watched"
    assert learning[-1] == "no run could alarm: every series still learns its level"
    assert two.command("report")[1] == two.command("report", runs[1])[1]
    assert (
        two.command("history", "--compare", runs[0], "latest")[1].splitlines()[0].startswith(f"{runs[0]} -> {runs[1]}")
    )
    two.command("merge", *runs, "-o", "all.json")
    code, out, _ = two.command("history", "--drift", "--from", "all.json")
    assert code == 0
    assert out.splitlines()[-1].startswith("all of them are copies, rescored or merged")


def test_a_history_as_baseline_prefers_a_run_to_its_copies(two: Project) -> None:
    assert two.command("gate", "--rescore", two.ids[0])[0] == 0
    two.text("adaptive-eval.toml", TOML + '[[eval.gate]]\nnot_worse_than = "baseline"\nmargin = 0.2\n')
    assert two.run("good", "--adaptive-eval-seed=3", "--adaptive-eval-baseline=.adaptive-eval") == 0
    (interview,) = two.whole(two.ids[-1])["interviews"]
    assert interview["baselines"]["baseline"]["run"] == two.ids[0]


def test_rescoring_says_what_it_cannot_do(two: Project) -> None:
    rows = (two.path / "toy.jsonl").read_text().splitlines()
    two.text("toy.jsonl", "\n".join(rows[1:]) + "\n")
    code, _, err = two.command("gate", "--rescore", "good.json")
    assert code == 4
    assert "the draws were made from another set of items" in err
    (two.path / "toy.jsonl").unlink()
    code, _, err = two.command("gate", "--rescore", "good.json")
    assert code == 4
    assert "is not at hand: name it with --bank toy=PATH" in err
    two.text("moved.jsonl", "\n".join(rows) + "\n")
    assert two.command("gate", "--rescore", "good.json", "--bank", "toy=moved.jsonl")[0] == 0
    for given in ("toy", "toy=", "toy=none.jsonl"):
        assert two.command("gate", "--rescore", "good.json", "--bank", given)[0] == 4
    record = json.loads((two.path / "good.json").read_text())
    record["gates"][0]["verdict"].pop("condition")
    two.text("old.json", json.dumps(record))
    code, _, err = two.command("gate", "--rescore", "old.json", "--bank", "toy=moved.jsonl")
    assert code == 4
    assert "give gates with --gates FILE.toml" in err


def test_a_test_that_scores_in_its_own_way_keeps_its_scores(project: Project) -> None:
    (project.path / "adaptive-eval.toml").unlink()
    project.answers("good", 0.9)
    project.text(
        "test_own.py",
        "import pytest\n"
        "@pytest.mark.adaptive_eval('toy.jsonl', budget=60)\n"
        "def test_toy(item, model):\n"
        "    item.text = model.generate(item)\n"
        "    item.score(0.75 * (item.text == 'yes'))\n"
        "@pytest.mark.adaptive_gate('toy', at_least=0.4)\ndef test_gate(adaptive_eval):\n"
        "    assert adaptive_eval.verdicts\n",
    )
    project.text(
        "conftest.py",
        "import pytest\n"
        "class Own:\n"
        "    def generate(self, item):\n"
        "        return 'yes'\n"
        "@pytest.fixture(scope='session')\n"
        "def model():\n"
        "    return Own()\n",
    )
    assert project.run("good", "--adaptive-eval-record=own.json") == 0
    code, out, _ = project.command("gate", "--rescore", "own.json")
    assert code == 0
    assert "the test scores answers in its own way, so the recorded scores are kept" in out


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


@pytest.mark.parametrize("verb", [("gate", "--rescore", "-o"), ("report", "--html")])
def test_no_verb_writes_over_a_bank_that_a_record_names(two: Project, verb: tuple[str, ...]) -> None:
    before = (two.path / "toy.jsonl").read_bytes()
    code, _, err = two.command(*verb, "toy.jsonl", two.ids[0])
    assert code == 4
    assert "toy.jsonl is a file that is read, and would be replaced" in err
    assert (two.path / "toy.jsonl").read_bytes() == before


def test_a_copy_of_a_run_with_a_missing_gate_does_not_pass(project: Project) -> None:
    project.answers("good", 0.9)
    path = project.path / "adaptive-eval.toml"
    path.write_text(path.read_text().replace('bank = "toy.jsonl"', 'bank = "toy.jsonl"\nname = "toy"'))
    (project.path / "test_skipped.py").write_text(
        "import pytest\n@pytest.mark.skip\n@pytest.mark.adaptive_gate('toy', at_least=0.2)\n"
        "def test_gate(adaptive_eval):\n"
        "    assert adaptive_eval.verdicts\n"
    )
    assert project.run("good") == 1
    code, _, err = project.command("gate", "--rescore", "latest", "-o", "new.json")
    assert code == 1
    assert "the run had no result from test_skipped.py: :test_gate: no copy of it passes" in err
    assert json.loads((project.path / "new.json").read_text())["exit_status"] == 1
    (project.path / "gates.toml").write_text(path.read_text())
    assert project.command("gate", "--rescore", "latest", "--gates", "gates.toml", "-o", "gated.json")[0] == 0


def test_report_of_no_run_is_an_error_and_promotes_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    output = project.path / "output"
    monkeypatch.setenv("GITHUB_OUTPUT", str(output))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    code, _, err = project.command("report", "none.json", "--github")
    assert code == 4
    assert "none.json: cannot read the run record" in err
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
    assert "6 of 10 runs: cannot alarm yet: " in out
    assert out.splitlines()[-1] == "no run could alarm: every series still learns its level"
    found = json.loads((project.path / "d.json").read_text())
    assert {one["learning"] for one in found["series"]} == {"6 of 10 runs: cannot alarm yet"}
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
