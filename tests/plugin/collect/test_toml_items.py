"""Tests of TOML files as pytest, editors and other plugins see them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

FILE = """
[[eval]]
bank = "toy.jsonl"
budget = 30

[[eval.gate]]
at_least = 0.5

[[eval.gate]]
at_least = 0.99

[[eval]]
name = "again"
bank = "toy.jsonl"
budget = 6
"""
NODEIDS = [
    "adaptive-eval.toml::toy[aeval:toy]",
    "adaptive-eval.toml::toy-accuracy[at-least-0.5]",
    "adaptive-eval.toml::toy-accuracy[at-least-0.99]",
    "adaptive-eval.toml::again[aeval:toy]",
]
#: What plugins and editors look at: no parameters, the line in the file, and fixtures of the user's own.
CONFTEST = """
@pytest.fixture(autouse=True)
def seen(request):
    log("seen.txt", request.node.name)
    assert request.module.__name__

def pytest_runtest_setup(item):
    assert not hasattr(item, "callspec")
    assert item.getparent(pytest.Module).path.suffix == ".toml"
    log("lines.txt", f"{item.location[1] + 1} {item.originalname}")
"""


@pytest.fixture
def toml(lab: Any) -> Any:
    lab.bank()
    lab.toy(more=CONFTEST)
    (lab.path / "adaptive-eval.toml").write_text(FILE)
    return lab


def listed(result: pytest.RunResult) -> list[str]:
    return [line for line in result.outlines if "::" in line]


def test_what_is_listed_can_be_pasted_back(toml: Any) -> None:
    assert listed(toml.run("--collect-only", "-q")) == NODEIDS
    for nodeid in NODEIDS:  # a gate comes with its interview
        interview = NODEIDS[0] if "accuracy" in nodeid else nodeid
        assert listed(toml.run(nodeid, "--collect-only", "-q")) == list(dict.fromkeys([interview, nodeid]))
    assert listed(toml.run("adaptive-eval.toml::toy-accuracy", "--collect-only", "-q")) == NODEIDS[:3]


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-k", "again"], NODEIDS[3:]),
        (["-k", "at-least-0.99"], [NODEIDS[0], NODEIDS[2]]),
        (["-k", "aeval"], [NODEIDS[0], NODEIDS[3]]),
        (["-m", "adaptive_gate"], NODEIDS[:3]),
        (["-m", "adaptive_eval"], NODEIDS),
        (["--deselect", NODEIDS[3]], NODEIDS[:3]),
    ],
)
def test_selections_of_pytest(toml: Any, arguments: list[str], expected: list[str]) -> None:
    assert listed(toml.run("--collect-only", "-q", *arguments)) == expected


def test_a_selection_of_nothing_names_the_questions(toml: Any) -> None:
    for quiet in ([], ["-q"]):
        result = toml.run("-k", "q99", *quiet)
        assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
        shown = " ".join(" ".join(result.outlines).split())  # lines may be as wide as the terminal
        assert shown.count("selects nothing") == 2
        for name in ("toy", "again"):
            assert (
                f"adaptive-eval: -k 'q99' selects nothing: it takes names such as {name}[aeval:toy], and a question is "
                f"asked by its id, as 'adaptive-eval.toml::{name}[q0]'; the ids are q0, q1, q2, ..., q58, q59"
            ) in shown
    assert not any("selects nothing" in line for line in toml.run("-k", "again").outlines)
    toml.run("adaptive-eval.toml::toy[q99]").stdout.fnmatch_lines(["*has no item 'q99'; its ids are q0, q1, q2, *"])


def test_names_and_ids_of_any_script(lab: Any) -> None:
    ids = ["größe", "数学-1", *(f"вопрос-{n}" for n in range(10))]
    rows = [{"id": name, "prompt": f"{name} {n}", "answer": "right"} for n, name in enumerate(ids)]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    lab.toy()
    text = '[[eval]]\nname = "Prüfung 数学"\nbank = "toy.jsonl"\nbudget = "100%"\nmust_pass = ["数学-1"]\n'
    (lab.path / "adaptive-eval.toml").write_text(f"{text}[[eval.gate]]\nat_least = 0.5\n", "utf-8")
    reports = ["--adaptive-eval-html=r.html", "--adaptive-eval-junit=r.xml"]
    assert lab.run("-k", "数学", *reports).ret == 0
    assert lab.run("adaptive-eval.toml::Prüfung 数学[größe]").ret == 0
    (whole,) = lab.records
    assert {asked["item"] for asked in whole["interviews"][0]["administrations"]} <= {*ids}
    assert whole["gates"][0]["name"] == "Prüfung 数学-accuracy[at-least-0.5]"
    assert "Prüfung 数学" in (lab.path / "r.html").read_text("utf-8")
    assert "Prüfung 数学" in (lab.path / "r.xml").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('bank = "toy.jsonl"\nbudget = 99\n', 3, "budget 99: the bank has 60 items"),
        ('bank = "toy.jsonl"\nmust_pass = ["q1", "q99"]\n', 3, "must_pass: 'q99' is neither an item nor a category"),
        ('bank = "toy.jsonl"\n[[eval.gate]]\nmetric = "auc"\nat_least = 1.0\n', 3, "auc is of a task that is climbed"),
        ('task = "addition"\n[[eval.gate]]\nmetric = "auc"\nat_least = 99\n', 5, "auc.at_least(99): the task has 12"),
        ('bank = "toy.jsonl"\n[[eval.gate]]\nat_least = "160%"\n', 4, "accuracy.at_least(1.6): an accuracy lies in"),
        ('bank = "toy.jsonl"\nmodel = "replay:none.csv"\n', 3, "recorded answers 'none.csv' cannot be read"),
        (
            'bank = "toy.jsonl"\nmodel = "replay:a.csv"\nmodel_options = { colour = 1 }\n',
            3,
            "'replay:a.csv' has no option colour",
        ),
    ],
)
def test_a_mistake_names_the_line_of_its_key(lab: Any, text: str, line: int, message: str) -> None:
    lab.bank()
    lab.toy()
    path = lab.path / "adaptive-eval.toml"
    path.write_text(f"[[eval]]\n{text}")
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    told = next(error for error in result.errlines if error.startswith("ERROR: "))
    assert told.startswith(f"ERROR: {path}:{line}: ")
    assert message in told


def test_fixtures_and_places(toml: Any) -> None:
    toml.run()
    assert toml.outcomes() == [("toy-accuracy[at-least-0.5]", "PASS"), ("toy-accuracy[at-least-0.99]", "FAIL")]
    assert len(toml.lines("loaded.txt")) == 1
    seen = toml.lines("seen.txt")
    assert {name.partition("[")[0] for name in seen} == {"toy", "again", "toy-accuracy"}
    assert not any("aeval:" in name for name in seen)
    lines = dict.fromkeys(toml.lines("lines.txt"))
    assert list(lines) == ["2 toy", "6 toy-accuracy", "9 toy-accuracy", "12 again"]
    toml.run("--lf")
    assert toml.outcomes() == [("toy-accuracy[at-least-0.99]", "FAIL")]
    assert [one["name"] for one in toml.record["interviews"]] == ["toy"]


def test_editors_name_tests_by_absolute_paths_and_a_root(toml: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """VS Code runs ``--rootdir=ROOT PATH::NAME`` and PyCharm ``PATH::NAME`` in the file's folder."""
    folder = toml.path / "evals"
    folder.mkdir()
    (toml.path / "adaptive-eval.toml").rename(folder / "adaptive-eval.toml")
    (toml.path / "toy.jsonl").rename(folder / "toy.jsonl")
    gate = "adaptive-eval.toml::toy-accuracy[at-least-0.5]"
    assert toml.run(f"--rootdir={toml.path}", f"{folder / gate}").ret == 0
    monkeypatch.chdir(folder)
    assert toml.run(f"--rootdir={toml.path}", gate, "-c", str(toml.path / "tox.ini")).ret == 0
    for record in toml.records:
        assert [one["nodeid"] for one in record["interviews"]] == ["evals/adaptive-eval.toml::toy[aeval:toy]"]
        assert [one["nodeid"] for one in record["gates"]] == [f"evals/{gate}"]


@pytest.mark.slow
def test_workers_run_tests_of_toml_files(toml: Any) -> None:
    assert toml.spawn("-n2").ret == 1
    assert toml.outcomes() == [("toy-accuracy[at-least-0.5]", "PASS"), ("toy-accuracy[at-least-0.99]", "FAIL")]


def test_a_question_of_a_model_of_the_file_by_node_id(toml: Any) -> None:
    answers = [{"id": f"q{n}", "text": "right" if n else "wrong"} for n in range(60)]
    (toml.path / "answers.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    text = FILE.replace("budget = 30", 'budget = 30\nmodel = "replay:answers.jsonl"')
    (toml.path / "adaptive-eval.toml").write_text(text)
    assert toml.run("adaptive-eval.toml::toy[q1]").ret == 0
    assert toml.run("adaptive-eval.toml::toy[q0]").ret == 1
    assert not toml.lines("loaded.txt")


def test_a_file_that_is_named_twice(toml: Any) -> None:
    assert listed(toml.run("adaptive-eval.toml", "adaptive-eval.toml", "--collect-only", "-q")) == NODEIDS
    result = toml.run("--keep-duplicates", "adaptive-eval.toml", "adaptive-eval.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "toy[aeval:toy] is collected twice: leave out --keep-duplicates" in result.stderr.str()


def test_studies_of_one_name_are_refused(toml: Any) -> None:
    panel = '[[eval]]\nkind = "peers"\nname = "toy"\nmodel = "a"\npeers = ["b"]\n'
    for name in ("a", "b", "c"):
        (toml.path / name).mkdir()
    (toml.path / "panel.eval.toml").write_text(panel.replace('["b"]', '["b", "c"]'))
    result = toml.run("--collect-only", "-q")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "have the name 'toy': rename one of them (name = ...)" in result.stderr.str()


def test_several_models_of_one_fixture_are_refused(toml: Any) -> None:
    text = (toml.path / "conftest.py").read_text()
    (toml.path / "conftest.py").write_text(text.replace('scope="module")', 'scope="module", params=["a", "b"])'))
    result = toml.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "adaptive-eval.toml:2: the fixture 'model' has params, and an evaluation" in result.stderr.str()


def test_tests_of_one_name_are_told_apart(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval(bank="toy.jsonl", name="mine", budget=20)
        @pytest.mark.parametrize("style", ["a", "b"])
        def test_toy(item, model, style):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval(bank="toy.jsonl", name="mine", budget=20)
        def test_other(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("mine[test_toy-a]", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run()
    names = ["mine[test_toy-a]", "mine[test_toy-b]", "mine[test_other]"]
    assert sorted(one["name"] for one in lab.record["interviews"]) == sorted(names)
    assert {gate["interview"] for gate in lab.record["gates"]} == {names[0]}
    for name in names:
        assert any(name in line for line in result.outlines)
    lab.tests((lab.path / "test_it.py").read_text().replace('"mine[test_toy-a]", at', '"mine", at'))
    assert "'mine'] could mean" in lab.run().stderr.str()


def test_tests_of_one_name_draw_as_a_test_of_that_name_alone(lab: Any) -> None:
    lab.bank()
    lab.toy()
    text = '[[eval]]\nbank = "toy.jsonl"\nbudget = 5\n'
    for folder in ("a", "b"):
        (lab.path / folder).mkdir()
        Path(lab.path / folder / "adaptive-eval.toml").write_text(text)
    assert lab.run("a").ret == lab.run().ret == 0
    alone, both = lab.records
    assert [one["name"] for one in alone["interviews"]] == ["toy"]
    assert [one["name"] for one in both["interviews"]] == ["toy[a/adaptive-eval.toml]", "toy[b/adaptive-eval.toml]"]
    drawn = [[entry["item"] for entry in one["administrations"]] for one in [*alone["interviews"], *both["interviews"]]]
    assert drawn[0] == drawn[1] == drawn[2]
