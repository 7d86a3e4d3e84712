"""Items of several turns in a run: a server answers each turn, a judge ranks them together."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import PeerServer

JUDGED = """
[[eval]]
bank = "talks.jsonl"
model = "{url}#pupil"
budget = "100%"
{judge}
[[eval.gate]]
at_least = 0.5
"""
ITEMS = [{"id": f"t{n}", "prompt": f"Write about {n}.", "grader": "judge", "turns": ["Rewrite it."]} for n in range(12)]


def reply(model: str, text: str) -> str:
    """A pupil that says what it was asked, and a judge that wants both answers."""
    if model == "judge":
        both = "I heard: Write" in text and "I heard: Rewrite it." in text
        return f"<rank>{5 if both else 1}</rank>"
    return f"I heard: {text}"


def write(lab: Any, url: str, judge: str) -> None:
    (lab.path / "talks.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS))
    (lab.path / "adaptive-eval.toml").write_text(JUDGED.format(url=url, judge=judge.format(url=url)))


def test_a_judge_grades_the_answers_to_both_turns(lab: Any) -> None:
    with PeerServer({"pupil": 0.0, "judge": 0.0}, reply) as server:
        write(lab, server.url, 'judge = {{ model = "{url}#judge" }}')
        result = lab.run("--adaptive-eval", "--adaptive-eval-record=record.json")
        assert result.ret == 0
    record = json.loads((lab.path / "record.json").read_text())
    asked = record["interviews"][0]["administrations"]
    assert server.asked["pupil"] >= 2 * len(asked) + 1  # one call looks at the server, and others are ahead
    for entry in asked:
        prompt = f"Write about {entry['item'].removeprefix('t')}."
        assert entry["text"] == f"I heard: {prompt}\n\n[turn 2] Rewrite it.\n\nI heard: Rewrite it."


def test_items_for_a_judge_without_one_end_the_run_before_anything_is_asked(lab: Any) -> None:
    with PeerServer({"pupil": 0.0}, reply) as server:
        write(lab, server.url, "")
        result = lab.run("--adaptive-eval")
        assert result.ret == 4
        assert "is graded by a judge, and the evaluation names none" in " ".join(result.stderr.str().split())
        assert server.asked["pupil"] < len(ITEMS)
