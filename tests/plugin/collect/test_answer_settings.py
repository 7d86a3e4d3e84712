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


TOML = '[[eval]]\nbank = "toy.jsonl"\nbudget = 4\nstop = "budget"\n'


def ask(lab: Any, toml: str) -> tuple[pytest.RunResult, list[Any]]:
    """Run evaluations with the model of a server; return the bodies of their requests too."""
    bodies: list[Any] = []

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        bodies.append(body)
        return completion("m", "right"), 200

    lab.bank()
    with JsonServer(["m"], answer) as server:
        (lab.path / "adaptive-eval.toml").write_text(toml.replace("URL", f"{server.url}#m"))
        result = lab.run()
    return result, [body for body in bodies if "question" in body["messages"][-1]["content"]]


def test_other_evaluations_of_the_model_keep_theirs(lab: Any) -> None:
    first = f'{TOML}model = "URL"\nmax_tokens = 7\n'
    second = f'{TOML}name = "warm"\nmodel = "URL"\nmodel_options = {{ temperature = 0.5 }}\nrepeat = 0\n'
    result, bodies = ask(lab, first + second)
    assert result.ret == 0
    assert [(body["temperature"], body["max_tokens"] == 7) for body in bodies] == [(0.0, True)] * 4 + [(0.5, False)] * 4


def test_a_temperature_of_an_evaluation_is_refused(lab: Any) -> None:
    result, bodies = ask(lab, f'{TOML}model = "URL"\ntemperature = 0.5\n')
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "temperature is gone: write model_options = { temperature = ... }" in " ".join(result.stderr.str().split())
    assert not bodies
