"""System text, temperature and cap of an evaluation: sent, recorded, and refused where a model has none."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion


def test_a_system_text_is_sent_to_a_server_and_recorded(pytester: pytest.Pytester) -> None:
    chats: list[Any] = []

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        chats.append(body["messages"])
        return completion("m", "yes"), 200

    items = [{"id": f"q{n}", "prompt": f"{n}?", "answer": "yes"} for n in range(4)]
    (pytester.path / "b.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    with JsonServer(["m"], answer) as server:
        (pytester.path / "adaptive-eval.toml").write_text(
            f'[[eval]]\nbank = "b.jsonl"\nsystem = "Be brief."\nbudget = "100%"\nstop = "budget"\n'
            f'model = "{server.url}#m"\n[[eval.gate]]\nat_least = 0.5\n'
        )
        result = pytester.runpytest("--adaptive-eval", "--adaptive-eval-record=record.json", "-p", "no:cacheprovider")
    assert result.ret == 0
    asked = [chat for chat in chats if chat[-1]["content"].endswith("?")]
    assert len(asked) == 4
    assert {(chat[0]["role"], chat[0]["content"]) for chat in asked} == {("system", "Be brief.")}
    record = json.loads((pytester.path / "record.json").read_text())
    assert record["interviews"][0]["bank"]["presentation"]["system"] == "Be brief."


PYTHON = """
import pytest

@pytest.mark.adaptive_eval("toy.jsonl", budget=4, stop="budget", temperature=0.5)
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""
TOML = '[[eval]]\nbank = "toy.jsonl"\nbudget = 4\nstop = "budget"\n'


def ask(lab: Any, toml: str = "", python: str = "", *arguments: str) -> tuple[pytest.RunResult, list[Any]]:
    """Run evaluations with the model of a server; return the bodies of their requests too."""
    bodies: list[Any] = []

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        bodies.append(body)
        return completion("m", "right"), 200

    lab.bank()
    with JsonServer(["m"], answer) as server:
        (lab.path / "adaptive-eval.toml").unlink(missing_ok=True)
        if toml:
            (lab.path / "adaptive-eval.toml").write_text(toml.replace("URL", f"{server.url}#m"))
        lab.tests(python)
        result = lab.run(*(argument.replace("URL", f"{server.url}#m") for argument in arguments))
    return result, [body for body in bodies if "question" in body["messages"][-1]["content"]]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("toml", "python", "arguments"),
    [
        (f'{TOML}model = "URL"\ntemperature = 0.5\n', "", []),
        (f"{TOML}temperature = 0.5\n", "", ["--adaptive-eval-model=URL"]),
        ("", PYTHON, ["--adaptive-eval-model=URL"]),
    ],
    ids=["model of the file", "model of the run", "marker"],
)
def test_each_evaluation_has_its_temperature(lab: Any, toml: str, python: str, arguments: list[str]) -> None:
    result, bodies = ask(lab, toml, python, *arguments)
    assert result.ret == 0
    assert {body["temperature"] for body in bodies} == {0.5}
    assert "0.5" in str(lab.record["interviews"][0]["subject"])


def test_other_evaluations_of_the_model_keep_theirs(lab: Any) -> None:
    two = f'{TOML}model = "URL"\nmax_tokens = 7\n{TOML}name = "warm"\nmodel = "URL"\ntemperature = 0.5\nrepeat = 0\n'
    result, bodies = ask(lab, two)
    assert result.ret == 0
    assert [(body["temperature"], body["max_tokens"] == 7) for body in bodies] == [(0.0, True)] * 4 + [(0.5, False)] * 4


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("toml", "python", "message"),
    [
        ('model = "replay:answers.jsonl"\ntemperature = 0.5', "", "has no option temperature"),
        ('model = "URL"\ntemperature = -1', "", "temperature is -1, expected a number of at least 0"),
        (
            'model = "URL"\ntemperature = 1\nmodel_options = { temperature = 0 }',
            "",
            "toml:1: temperature is in the model's options too: remove one of them",
        ),
        ('model = "URL"\nask = "likelihood"\ntemperature = 1', "", "temperature goes with written answers"),
        ("", PYTHON, "test_toy[aeval:toy]: temperature is 0.5, and the model is of a fixture in Python"),
    ],
)
def test_a_temperature_that_nothing_would_heed_is_refused(lab: Any, toml: str, python: str, message: str) -> None:
    lab.toy()
    (lab.path / "answers.jsonl").write_text('{"id": "q0", "answer": "right"}\n')
    result, bodies = ask(lab, toml and f"{TOML}{toml}\n", python)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in " ".join(result.stderr.str().split())
    assert not bodies
