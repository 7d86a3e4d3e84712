"""A system text of an evaluation: sent, recorded, and part of what identifies the bank."""

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
