"""``adaptive-eval init``: the commands that it prints run as printed."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_server import JsonServer, PeerServer, completion

from pytest_adaptive_eval.cli import starts
from pytest_adaptive_eval.evaluation import evaluation_kinds
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.ladder.policy import Climb

FIXTURES = Path(__file__).parents[2] / "fixtures"


def added(body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
    """Add the numbers of the last message."""
    numbers = [int(number) for number in re.findall(r"\d+", str(body["messages"][-1]["content"]))]
    return completion("adder", str(sum(numbers))), 200


def adder() -> JsonServer:
    """Return a server of one model, which adds."""
    return JsonServer(["adder"], added)


def guesser() -> JsonServer:
    """Return a server of one model, which reads pictures and says A, whatever they show."""

    def said(body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        read = len(json.dumps(body)) // 4
        usage = {"prompt_tokens": read, "completion_tokens": 3, "total_tokens": read + 3}
        return completion("guesser", "Answer: A", usage=usage), 200

    return JsonServer(["guesser"], said)


def next_commands(output: str) -> list[str]:
    return [line.strip() for line in output.partition("next:\n")[2].splitlines()]


def run_printed(output: str) -> list[int]:
    """Run the commands as a shell does; returns their exit codes."""
    place = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "PYTEST_ADDOPTS": ""}
    codes = []
    for command in next_commands(output):
        ended = subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, text=True)
        assert "Traceback" not in ended.stdout + ended.stderr, ended.stderr
        codes.append(ended.returncode)
    return codes


def write_questions(path: Path, count: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer"])
        writer.writerows([f"What is {n} + {n + 1}?", str(2 * n + 1)] for n in range(count))


def write_log(folder: Path, model: str, right: list[bool]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    samples = [
        {"id": f"q-{n}", "epoch": 1, "input": f"{n}?", "scores": {"match": {"value": "C" if value else "I"}}}
        for n, value in enumerate(right)
    ]
    about = {"version": 2, "status": "success", "eval": {"model": model, "task": "sums"}}
    (folder / f"{model.replace('/', '-')}.json").write_text(json.dumps({**about, "samples": samples}))


@pytest.mark.slow
def test_text_repository_imports_its_questions_and_asks_the_newest_checkpoint(run, tmp_path):
    pytest.importorskip("torch", reason="checkpoints (extra hf)")
    for name, written in (("text-early", 1), ("text-late", 2)):
        shutil.copytree(FIXTURES / "checkpoints" / name, tmp_path / "models" / name)
        os.utime(tmp_path / "models" / name / "config.json", (written, written))
    write_questions(tmp_path / "quiz.csv", 12)
    code, out, _ = run("init")
    assert code == 0
    assert "found: checkpoint models/text-late, the last written; 1 other" in out
    assert next_commands(out) == ["adaptive-eval import quiz.csv -o quiz.bank", "pytest --adaptive-eval"]
    assert 'bank = "quiz.bank"\nmodel = "models/text-late"\nbudget = ' in (tmp_path / "adaptive-eval.toml").read_text()
    assert run_printed(out) in ([0, 0], [0, 1])


@pytest.mark.slow
def test_vision_repository_takes_the_checkpoint_that_reads_images(run, tmp_path):
    pytest.importorskip("torch", reason="checkpoints (extra hf)")
    for name in ("text-late", "vision-late"):
        shutil.copytree(FIXTURES / "checkpoints" / name, tmp_path / name)
    lines = (FIXTURES / "banks" / "vision.items.jsonl").read_text().splitlines()[:10]
    (tmp_path / "pictures.jsonl").write_text("\n".join(lines))
    shutil.copytree(FIXTURES / "banks" / "vision-images", tmp_path / "vision-images")
    _, out, _ = run("init")
    assert 'bank = "pictures.jsonl"\nmodel = "vision-late"' in (tmp_path / "adaptive-eval.toml").read_text()
    assert run_printed(out) in ([0], [1])


@pytest.mark.slow
def test_served_model_is_found_in_the_settings_and_passes(run, tmp_path):
    pytest.importorskip("httpcore2", reason="servers (extra endpoint)")
    write_questions(tmp_path / "quiz.csv", 40)
    with adder() as server:
        (tmp_path / "compose.yaml").write_text(f"services: {{app: {{environment: {{BASE: '{server.url}'}}}}}}\n")
        _, out, _ = run("init")
        assert "found: model adder on the server that compose.yaml names" in out
        assert run_printed(out) == [0, 0]


def test_logs_alone_are_gated(run, tmp_path):
    write_log(tmp_path / "logs", "org/old", [True] * 40)
    write_log(tmp_path / "logs", "org/new", [True] * 40)
    (tmp_path / ".gitlab-ci.yml").write_text("stages: [test]\n")
    _, out, _ = run("init")
    assert next_commands(out) == ["adaptive-eval gate 'logs#org/old' --baseline 'logs#org/new'"]
    assert run_printed(out) == [0]
    assert not (tmp_path / "adaptive-eval.toml").exists()
    assert "adaptive-eval gate" in (tmp_path / ".gitlab" / "adaptive-eval.yml").read_text()


@pytest.mark.slow
def test_empty_folder_gets_an_example_that_passes(run, tmp_path):
    _, out, _ = run("init")
    assert next_commands(out) == ["pytest --adaptive-eval"]
    assert run_printed(out) == [0]
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((tmp_path / ".github" / "workflows" / "adaptive-eval.yml").read_text())
    assert workflow["jobs"]["gate"]["steps"][1]["run"].splitlines()[-1] == "pytest --adaptive-eval"


def test_checkpoint_without_questions_is_asked_generated_ones(run, tmp_path):
    pytest.importorskip("transformers", reason="checkpoints need transformers (extra hf)")
    shutil.copytree(FIXTURES / "checkpoints" / "text-late", tmp_path / "late")
    assert run("init")[0] == 0
    text = (tmp_path / "adaptive-eval.toml").read_text()
    assert 'task = "addition"' in text
    assert 'model = "late"' in text
    code, out, _ = run("doctor")
    assert code == 0
    assert "of 240 questions of the uncalibrated bank" in out


def test_files_that_exist_stay(run, tmp_path):
    (tmp_path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "q.jsonl"\n')
    (tmp_path / "Jenkinsfile").write_text("pipeline {}")
    code, out, _ = run("init")
    assert code == 0
    assert "evaluations are there already: adaptive-eval.toml; no other is written" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Jenkinsfile", "adaptive-eval.toml"]
    (tmp_path / "adaptive-eval.toml").unlink()
    (tmp_path / "example-questions.jsonl").write_text("mine")
    code, _, err = run("init")
    assert code == 4
    assert "example-questions.jsonl exists; remove or rename it, and run init again" in err
    assert not (tmp_path / "adaptive-eval.toml").exists()


def test_dry_run_shows_and_writes_nothing(run, tmp_path):
    code, out, _ = run("init", "--dry-run")
    assert code == 0
    assert "adaptive-eval.toml:\n" in out
    assert list(tmp_path.iterdir()) == []


def test_server_elsewhere_is_not_asked_and_its_model_is_to_be_named(run, tmp_path):
    (tmp_path / ".env").write_text("OPENAI_BASE_URL=https://models.invalid/v1\n")
    write_questions(tmp_path / "quiz.csv", 10)
    _, out, _ = run("init")
    assert "name one with adaptive-eval init --model https://models.invalid/v1#MODEL" in out
    assert next_commands(out)[-1] == "adaptive-eval plan quiz.bank"


def test_doctor_names_what_is_to_be_mended(run, tmp_path):
    (tmp_path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "q.jsonl"\n[[eval.gate]]\nat_least = 0.5\n')
    code, out, _ = run("doctor")
    assert code == 1
    assert "no bank at" in out
    assert "no model: name it with --adaptive-eval-model=FOLDER" in out
    (tmp_path / "q.jsonl").write_text('{"id": "a", "prompt": "a?", "answer": "a"}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": "a", "text": "a"}\n')
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nadaptive_eval_model = "replay:answers.jsonl"\n'
    )
    code, out, _ = run("doctor")
    assert "at most 1 of 1 questions of the uncalibrated bank q, 1 gate" in out
    assert "model replay:answers.jsonl: recorded answers" in out
    assert "nothing to fix" in out
    assert code == 0


@pytest.mark.slow
def test_doctor_tells_the_budget_that_the_gates_set(run, tmp_path):
    (tmp_path / "q.jsonl").write_text(
        "".join(f'{{"id": "q{n}", "prompt": "{n}?", "answer": "{n}"}}\n' for n in range(400))
    )
    text = '[[eval]]\nbank = "q.jsonl"\nmodel = "replay:q.jsonl"\n'
    gate = "[[eval.gate]]\nat_least = 0.6\n"
    told = {}
    for name, more in (
        ("gate", gate),
        ("must", f'must_pass = ["q3", "q4"]\n{gate}'),
        ("none", ""),
        ("written", f"budget = 50\n{gate}"),
    ):
        (tmp_path / "adaptive-eval.toml").write_text(text + more)
        out = " ".join(run("doctor")[1].split())
        told[name] = int(re.search(r"at most (\d+) of 400 questions", out)[1])
        assert ("which set the budget by default" in out) == (name in ("gate", "must"))
        assert ("2 questions must pass" in out) == (name == "must")
    plan = run("plan", "q.jsonl", "--at-least", "0.6")[1]
    assert f"the default budget of {told['gate']} questions" in plan
    assert told["none"] == 80 < 150 < told["gate"] < told["must"] == told["gate"] + 2
    assert told["written"] == 50


def test_doctor_names_a_model_that_is_not_there(run, tmp_path):
    code, out, _ = run("doctor", "--model", "nowhere")
    assert code == 1
    assert "fault" in out
    assert "model 'nowhere' is not known" in out


INTERVIEW = """import pytest

@pytest.mark.adaptive_eval(bank="q.jsonl")
def test_sums(item, model):
    assert item.grade(model.generate(item.prompt))
"""
FIXTURE = """import pytest

@pytest.fixture(scope="session")
def model():
    return None
"""


def test_doctor_takes_a_fixture_of_conftest_as_the_model_and_counts_interviews_that_pytest_collects(run, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "a", "prompt": "a?", "answer": "a"}\n')
    (tmp_path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "q.jsonl"\n')
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_quiz.py").write_text(INTERVIEW)
    (tests / "quiz.py").write_text(INTERVIEW)
    (tests / "test_texts.py").write_text(f"TEXT = {INTERVIEW!r}\n# mark.adaptive_eval\n")
    (tmp_path / "conftest.py").write_text("# pytest.mark.adaptive_eval\n")
    code, out, _ = run("doctor")
    assert code == 1
    assert out.count("no model: name it") == 2
    assert "tests/test_quiz.py: 1 interview;" in out
    assert not any(name in out for name in ("tests/quiz.py", "test_texts.py", "conftest.py"))
    (tests / "conftest.py").write_text(FIXTURE)
    code, out, _ = run("doctor")
    assert out.count("no model: name it") == 1
    assert "fixture `model` of tests/conftest.py" in " ".join(out.split())
    (tmp_path / "conftest.py").write_text("from made_up import model\n")
    code, out, _ = run("doctor")
    assert code == 0
    assert "nothing to fix" in out


def test_doctor_follows_the_settings_of_pytest(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npython_files = 'check_*.py'\n")
    (tmp_path / "check_quiz.py").write_text(FIXTURE + "pytestmark = pytest.mark.adaptive_eval(bank='q.jsonl')\n")
    with (tmp_path / "check_quiz.py").open("a") as file:
        file.write("class TestQuiz:\n    def test_a(self, item, model): ...\n    def test_gate(self): ...\n")
    (tmp_path / "test_quiz.py").write_text(INTERVIEW)
    code, out, _ = run("doctor")
    assert code == 0
    assert "check_quiz.py: 1 interview;" in out
    assert "test_quiz.py:" not in out
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = checks\n")
    assert "evaluations: none in this folder" in run("doctor")[1]


@pytest.mark.parametrize(
    ("kind", "names"), [("ladder", "a"), ("multimodal", "a"), ("network", "a"), ("network", "ab"), ("panel", "abc")]
)
def test_a_first_evaluation_of_a_kind_is_one_that_pytest_collects(run, tmp_path, kind, names):
    specs = [f"http://localhost:9/v1#{name}" for name in names]
    code, out, _ = run("init", "--kind", kind, *(part for spec in specs for part in ("--model", spec)))
    assert code == 0
    assert f"found: {specs[0]} is the candidate" in out
    assert out.count("takes part") == len(names) - 1
    assert next_commands(out)[-1] == "pytest --adaptive-eval"
    written = read_toml(tmp_path / "adaptive-eval.toml", evaluation_kinds()).evaluations
    assert [len(evaluation.gates) for evaluation in written] == [1]
    assert all(json.dumps(spec) in (tmp_path / "adaptive-eval.toml").read_text() for spec in specs)


def test_members_of_one_name_get_names_and_system_texts_of_their_own():
    (table,) = tomllib.loads(starts.written("panel", ["a/ant", "a/ant", "b/ant", "http://localhost:9/v1#bee"]))["eval"]
    assert table["peers"] == [
        {"name": "ant-2", "model": "a/ant", "system": "You are expert 2."},
        {"name": "ant-3", "model": "b/ant"},
        "http://localhost:9/v1#bee",
    ]


@pytest.mark.parametrize("threshold", [2.0, 4.0])
def test_the_first_ladder_decides_about_a_model_that_solves_three_fifths_of_each_level(threshold):
    (table,) = tomllib.loads(starts.written("ladder", ["x"]))["eval"]
    climb, rng = Climb(table["queries"], table.get("stop_at", 0.0)), np.random.default_rng(0)
    decided = 0
    for _ in range(100):
        scores: list[Any] = []
        while len(scores) < table["levels"] and (not scores or climb.side(scores[-1]) > 0):
            scores.append((rng.random(climb.queries) < 0.6).astype(float))
        area = climb.area(climb.ladder(scores, table["levels"]), 0.95)
        decided += area.high < threshold if threshold > 3.0 else area.low >= threshold
    assert decided >= 95


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--kind", "panel"), "0 models for a panel, which takes at least 3"),
        (("--kind", "panel", "--model", "x", "--model", "y"), "2 models for a panel, which takes at least 3"),
        (("--kind", "ladder", "--model", "x", "--model", "y"), "2 models for a ladder, which takes at most 1"),
        (("--model", "x", "--model", "y"), "2 models go with --kind network or --kind panel"),
        (("--kind", "network", "--model", "nowhere"), "model 'nowhere' is not known"),
    ],
)
def test_a_kind_with_the_wrong_number_of_models_is_refused(run, tmp_path, options, complaint):
    code, _, err = run("init", *options)
    assert code == 4
    assert complaint in err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_first_evaluation_of_each_kind_runs_as_printed_to_a_verdict(run, tmp_path):
    with PeerServer() as peers:
        spec = [part for name in ("ant", "bee", "cat") for part in ("--model", f"{peers.url}#{name}")]
        _, out, _ = run("init", "--kind", "panel", *spec)
        assert run_printed(out) in ([0], [1])
    for kind, start in {"network": adder, "ladder": adder, "multimodal": guesser}.items():
        (tmp_path / "adaptive-eval.toml").unlink()
        shutil.rmtree(tmp_path / ".github")
        with start() as server:
            _, out, _ = run("init", "--kind", kind, "--model", f"{server.url}#{start.__name__}")
            assert run_printed(out) in ([0], [1])
        records = sorted((tmp_path / ".adaptive-eval" / "runs").glob("*.json"))
        assert json.loads(records[-1].read_text())["gates"][0]["verdict"]["outcome"] in ("PASS", "FAIL")
