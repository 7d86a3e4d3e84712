"""A model for one evaluation of several, named on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.errors import ConfigError
from pytest_adaptive_eval.plugin.collect.named_models import split_models

TOML = """
[[eval]]
name = "text"
bank = "toy.jsonl"
budget = 10
[[eval]]
name = "vision"
bank = "toy.jsonl"
model = "replay:file.jsonl"
budget = 10
"""


@pytest.fixture
def suite(lab: Any) -> Any:
    lab.bank()
    for name in ("file", "one", "two"):
        answers = [{"id": f"q{i}", "text": "right"} for i in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    (lab.path / "adaptive-eval.toml").write_text(TOML)
    return lab


def subjects(lab: Any) -> dict[str, str]:
    return {i["name"]: i["subject"]["name"] for i in lab.record["interviews"]}


def test_one_evaluation_gets_its_own_and_the_others_the_whole(suite: Any) -> None:
    flags = ["--adaptive-eval-model=replay:one.jsonl", "--adaptive-eval-model=vision=replay:two.jsonl"]
    result = suite.run(*flags)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["adaptive-eval: model replay:one.jsonl, vision=replay:two.jsonl, *"])
    assert subjects(suite) == {"text": "one", "vision": "two"}


@pytest.mark.slow
def test_without_the_whole_the_file_names_the_others(suite: Any) -> None:
    assert suite.run("--adaptive-eval-model=text=replay:one.jsonl").ret == 0
    assert subjects(suite) == {"text": "one", "vision": "file"}


@pytest.mark.slow
@pytest.mark.parametrize("flag", ["replay:two.jsonl", "vision=replay:two.jsonl"])
def test_a_model_of_the_same_kind_takes_the_options_of_the_evaluation(suite: Any, flag: str) -> None:
    answers = [{"task": f"q{i}", "mark": 1} for i in range(60)]
    for name in ("file", "two"):
        (suite.path / f"{name}.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    options = 'model = "replay:file.jsonl"\nmodel_options = { item = "task", score = "mark" }'
    (suite.path / "adaptive-eval.toml").write_text(
        TOML.partition('[[eval]]\nname = "vision"')[1] + f'\nbank = "toy.jsonl"\n{options}\nbudget = 10\n'
    )
    assert suite.run(f"--adaptive-eval-model={flag}").ret == 0
    assert subjects(suite) == {"vision": "two"}


def test_an_unknown_name_is_a_mistake(suite: Any) -> None:
    result = suite.run("--adaptive-eval-model=replay:one.jsonl", "--adaptive-eval-model=visoin=replay:two.jsonl")
    assert result.ret == 4
    assert "did you mean 'vision'?" in result.stderr.str() + result.stdout.str()


def test_what_is_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step=1000").mkdir()
    url = "http://h/v1?key=1#m"
    assert split_models(["a", "b"]) == ("b", {})
    assert split_models([url, "n=" + url, "my eval=runs/step=2"]) == (url, {"n": url, "my eval": "runs/step=2"})
    assert split_models(["step=1000"]) == ("step=1000", {})
    assert split_models(["runs/step=9", "lm-eval:hf#pretrained=x"])[0] == "lm-eval:hf#pretrained=x"
    with pytest.raises(ConfigError, match="--adaptive-eval-model is empty"):
        split_models(["n="])
