"""Interviews of one server, side by side: more requests at once, and the records of those one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from json_server import JsonServer, completion

EVALUATION = """
[[eval]]
name = "{name}"
bank = "{name}.jsonl"
budget = 40
model = "{url}#m"
model_options = {{ concurrency = 12 }}
[[eval.gate]]
at_least = 0.5
"""


class Busy:
    """Answers by the question alone, and notes how many requests were open at the same time.

    The first requests wait until `expected` are open, or for ten seconds.
    """

    def __init__(self, expected: int) -> None:
        self.expected, self.open, self.most, self.asked = expected, 0, 0, 0
        self._lock, self._enough = threading.Lock(), threading.Event()

    def __call__(self, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        text = body["messages"][-1]["content"]
        if not text.startswith("question"):  # of the connection
            return completion("m", "right"), 200
        with self._lock:
            self.asked += 1
            self.open += 1
            self.most = max(self.most, self.open)
            if self.open >= self.expected:
                self._enough.set()
        self._enough.wait(10.0)
        self._enough.set()
        with self._lock:
            self.open -= 1
        tokens = {"prompt_tokens": len(text), "completion_tokens": 1}
        return completion("m", "right" if sum(map(ord, text)) % 10 < 8 else "wrong", usage=tokens), 200


def run(lab: Any, expected: int, *flags: str) -> tuple[Any, Busy]:
    busy = Busy(expected)
    with JsonServer(["m"], busy, port=lab.port) as server:
        lab.port = server.port  # the address is in the records
        text = "".join(EVALUATION.format(name=name, url=server.url) for name in ("one", "two"))
        (Path(lab.path) / "adaptive-eval.toml").write_text(text)
        result = lab.run("--adaptive-eval-fresh", *flags)
    assert result.ret == 0, result.outlines
    return lab.record_without("run", "started", "seconds"), busy


def test_requests_of_two_interviews_are_open_at_once(lab: Any) -> None:
    for name in ("one", "two"):
        lines = [{"id": f"{name}-{i}", "prompt": f"question {name} {i}", "answer": "right"} for i in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    lab.port = 0
    alone, one_by_one = run(lab, 8)
    together, side_by_side = run(lab, 12, "--adaptive-eval-side-by-side")
    assert together == alone
    assert (one_by_one.most, side_by_side.most) == (8, 12)
    assert side_by_side.asked == one_by_one.asked
    assert all(interview["costs"]["subject"]["prompt_tokens"] > 0 for interview in alone["interviews"])
