"""Evaluations by likelihood on servers that cannot score texts end before the first question."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")
from fake_server import JsonServer, completion

TOML = """
[[eval]]
bank = "b.jsonl"
ask = "likelihood"
model = "URL#m"
model_options = { OPTIONS }
[[eval.gate]]
at_least = 0.5
"""


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("", 'is asked by chats: set api = "completions"'),
        ('api = "completions"', "does not give them by prompt_logprobs: the reply does not follow the protocol"),
        ('api = "completions", likelihoods = "echo"', "does not give them by echo: the reply does not follow"),
    ],
)
def test_a_server_that_gives_no_log_probabilities_is_asked_no_question(lab: Any, options: str, problem: str) -> None:
    asked: list[str] = []

    def answer(body: Any, _: Any) -> tuple[dict[str, Any], int]:
        """As llama.cpp: the fields for log-probabilities of a prompt are accepted and ignored."""
        if "messages" in body:
            asked.append(body["messages"][-1]["content"])
            return completion("m", "yes"), 200
        asked.append(body["prompt"])
        choice = {"index": 0, "text": " x", "finish_reason": "length", "logprobs": {"content": [{"logprob": -1.0}]}}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        reply = {"id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
        return {**reply, "usage": usage}, 200

    items = [{"id": f"q{n}", "prompt": f"Is it {n}?", "answer": "yes", "choices": ["yes", "no"]} for n in range(24)]
    (lab.path / "b.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    with JsonServer(["m"], answer) as server:
        (lab.path / "adaptive-eval.toml").write_text(TOML.replace("URL", server.url).replace("OPTIONS", options))
        result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert "items are scored by the likelihoods of texts: 'm' at" in interview["error"]
    assert problem in interview["error"]
    assert [text for text in asked if "Is it" in text] == []
    assert lab.outcomes() == [("b-accuracy[at-least-0.5]", "ERROR")]
