"""``adaptive-eval init`` writes files that run, and ``doctor`` says what is missing."""

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
import yaml
from fake_harness import Fake
from fake_server import JsonServer, PeerServer, completion

from pytest_adaptive_eval.cli.verbs.init import CONFIG, WORKFLOW, files_of
from pytest_adaptive_eval.evaluation import evaluation_kinds
from pytest_adaptive_eval.evaluation.toml import read_toml
from pytest_adaptive_eval.ladder.policy import Climb

CHECKPOINT = Path(__file__).parents[2] / "fixtures" / "checkpoints" / "text-late"


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


def run_pytest() -> int:
    """Run what `init` says; returns the exit code."""
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "--adaptive-eval"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "Traceback" not in ended.stdout + ended.stderr, ended.stderr
    return ended.returncode


@pytest.mark.parametrize(
    ("kind", "names"),
    [("bank", "a"), ("ladder", "a"), ("images", "a"), *(("network", n) for n in ("a", "ab", "abc")), ("panel", "abc")],
)
def test_a_first_evaluation_of_a_kind_is_one_that_pytest_collects(run, tmp_path, kind, names):
    specs = [f"http://localhost:9/v1#{name}" for name in names]
    code, out, _ = run("init", "--kind", kind, *(part for spec in specs for part in ("--model", spec)))
    assert code == 0
    assert f"wrote {CONFIG}" in out
    written = read_toml(tmp_path / CONFIG, evaluation_kinds()).evaluations
    assert [len(evaluation.gates) for evaluation in written] == [1]
    assert all(json.dumps(spec) in (tmp_path / CONFIG).read_text() for spec in specs)
    (job,) = yaml.safe_load((tmp_path / WORKFLOW).read_text())["jobs"].values()
    assert job["steps"][1]["run"] == 'pip install "pytest-adaptive-eval[endpoint]"'


SERVER = "http://localhost:9/v1#a"
KEY = {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"}
BY_ADDRESS = 'pytest --adaptive-eval --adaptive-eval-model="$ADAPTIVE_EVAL_MODEL"'


@pytest.mark.parametrize(
    ("kind", "models", "runner", "command", "environment"),
    [
        ("bank", [], "ubuntu-latest", "pytest --adaptive-eval", {}),
        ("bank", [str(CHECKPOINT)], "self-hosted", "pytest --adaptive-eval", {}),
        ("bank", ["ollama:small"], "self-hosted", "pytest --adaptive-eval", {}),
        ("ladder", ["openai:small"], "ubuntu-latest", "pytest --adaptive-eval", KEY),
        (
            "bank",
            [SERVER],
            "ubuntu-latest",
            BY_ADDRESS,
            {"ADAPTIVE_EVAL_MODEL": "${{ secrets.ADAPTIVE_EVAL_MODEL }}"},
        ),
        ("network", [SERVER], "self-hosted", "pytest --adaptive-eval", {}),
        ("panel", [SERVER, "openai:b", "openai:c"], "self-hosted", "pytest --adaptive-eval", KEY),
    ],
)
def test_the_runner_of_the_first_workflow_reaches_the_models(kind, models, runner, command, environment):
    (job,) = yaml.safe_load(files_of(kind, models)[WORKFLOW])["jobs"].values()
    step = job["steps"][-1]
    assert (job["runs-on"], step["run"], step.get("env", {})) == (runner, command, environment)


@pytest.mark.slow
def test_without_a_model_an_example_passes(run, tmp_path):
    assert run("init")[0] == 0
    assert run_pytest() == 0
    assert run("doctor")[0] == 0


def test_files_that_exist_stay(run, tmp_path):
    (tmp_path / CONFIG).write_text("# mine\n")
    code, _, err = run("init")
    assert code == 4
    assert f"{CONFIG} exists; remove or rename it" in err
    assert [path.name for path in tmp_path.iterdir()] == [CONFIG]


def test_members_of_one_name_get_names_and_system_texts_of_their_own():
    specs = [f"http://localhost:9/v1#{name}" for name in ("ant", "ant", "bee")]
    (table,) = tomllib.loads(files_of("panel", [*specs, "http://localhost:8/v1#bee"])[CONFIG])["eval"]
    assert table["peers"] == [
        {"name": "ant-2", "model": specs[1], "system": "You are expert 2."},
        specs[2],
        {"name": "bee-4", "model": "http://localhost:8/v1#bee"},
    ]


@pytest.mark.parametrize(
    ("names", "agents"),
    [
        ("a", {"interviewer": "a"}),
        ("ab", {"interviewer": "b"}),
        ("abc", {"interviewer": "b", "supervisor": "c"}),
    ],
)
def test_models_of_a_network_are_candidate_interviewer_and_supervisor(names, agents):
    specs = {name: f"http://localhost:9/v1#{name}" for name in names}
    (table,) = tomllib.loads(files_of("network", list(specs.values()))[CONFIG])["eval"]
    assert table["model"] == specs["a"]
    assert table["models"] == {role: specs[name] for role, name in agents.items()}
    network = table["network"]
    assert {role: network[role] for role in ("interviewer", "supervisor") if role in network} == {r: r for r in agents}


@pytest.mark.parametrize("threshold", [2.0, 4.0])
def test_the_first_ladder_decides_about_a_model_that_solves_three_fifths_of_each_level(threshold):
    (table,) = tomllib.loads(files_of("ladder", ["http://localhost:9/v1#x"])[CONFIG])["eval"]
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
        (("--kind", "panel"), "0 models for --kind panel, which takes at least 3"),
        (("--kind", "panel", "--model", "x", "--model", "y"), "2 models for --kind panel, which takes at least 3"),
        (("--kind", "ladder", "--model", "x", "--model", "y"), "2 models for --kind ladder, which takes at most 1"),
        (("--model", "x", "--model", "y"), "2 models for --kind bank, which takes at most 1"),
        (("--kind", "network", "--model", "nowhere"), "model 'nowhere' is not known"),
        (("--dry-run",), "init --dry-run is gone: run init in an empty folder"),
    ],
)
def test_mistakes_write_nothing(run, tmp_path, options, complaint):
    code, _, err = run("init", *options)
    assert code == 4
    assert complaint in err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_first_evaluation_of_each_kind_runs_to_a_verdict(run, tmp_path):
    with PeerServer() as peers:
        spec = [part for name in ("ant", "bee", "cat") for part in ("--model", f"{peers.url}#{name}")]
        run("init", "--kind", "panel", *spec)
        assert run_pytest() in (0, 1)
    for kind, start in {"network": adder, "ladder": adder, "images": guesser}.items():
        (tmp_path / CONFIG).unlink()
        shutil.rmtree(tmp_path / ".github")
        with start() as server:
            run("init", "--kind", kind, "--model", f"{server.url}#{start.__name__}")
            assert run_pytest() in (0, 1)
        records = sorted((tmp_path / ".adaptive-eval" / "runs").glob("*.json"))
        assert json.loads(records[-1].read_text())["gates"][0]["verdict"]["outcome"] in ("PASS", "FAIL")


@pytest.mark.slow
def test_doctor_checks_a_model_and_what_pytest_collects(run, tmp_path):
    pytest.importorskip("torch", reason="checkpoints need torch (extra hf)")
    code, out, _ = run("doctor", "--model", str(CHECKPOINT))
    assert code == 0
    assert "ok      model" in out
    assert "absent  pytest --adaptive-eval: no evaluation in this folder: adaptive-eval init writes a first one" in out
    (tmp_path / CONFIG).write_text('[[eval]]\nbank = "none.jsonl"\n')
    code, out, _ = run("doctor", "--model", "nowhere")
    assert code == 1
    assert re.search(r"fault   model nowhere: model 'nowhere' is not\s+known", out)
    assert re.search(r"fault   pytest --adaptive-eval: .*none\.jsonl", out.replace("\n        ", " "))
    assert "2 to fix before pytest --adaptive-eval can run here" in out


@pytest.mark.slow
def test_doctor_shows_what_a_harness_would_run_and_tries_one_item(run, tmp_path):
    fake = Fake(tmp_path)
    command = fake.write("write(ids[0], score=0.5, cost=0.25, text=sys.argv[4])") + " -m {checkpoint}"
    (tmp_path / "ids.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
    (tmp_path / CONFIG).write_text(
        f'[[eval]]\nname = "e"\nbank = "ids.jsonl"\nmodel = "harness:command#m"\n'
        f"[eval.model_options]\ncommand = {json.dumps(command)}\n"
    )
    for flags, model in (([], "m"), (["--model", "harness:command#other"], "other")):
        code, out, _ = run("doctor", *flags)
        assert code == 0
        assert f"harness.py '{{ids_file}}' '{{output}}' -m {model}" in " ".join(out.split())
    assert not fake.calls
    code, out, _ = run("doctor", "--one-item")
    assert code == 0
    assert "ok      evaluation e: a: score 0.5, $0.25" in out
    assert fake.calls == [["a"]]
    fake.write("print('no key'); sys.exit(2)")
    code, out, _ = run("doctor", "--one-item")
    assert code == 1
    assert "evaluation e: a has no score: the log has no result of it (exit status 2; its last line: no key" in (
        " ".join(out.split())
    )


@pytest.mark.slow
def test_doctor_collects_with_the_model_that_is_named(run, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"id": "a", "prompt": "?", "answer": "yes"}\n')
    (tmp_path / "answers.jsonl").write_text('{"id": "a", "text": "yes"}\n')
    (tmp_path / CONFIG).write_text('[[eval]]\nbank = "q.jsonl"\n')
    code, out, _ = run("doctor")
    assert code == 1
    assert "no model: name one" in " ".join(out.split())
    assert run("doctor", "--model", "replay:answers.jsonl")[0] == 0
