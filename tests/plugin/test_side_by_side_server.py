"""Interviews of one server, side by side: more requests at once, and the records of those one after the other."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion, failure

from pytest_adaptive_eval.models.endpoint.identity import Answerer

FLAG, FRESH = "--adaptive-eval-side-by-side", "--adaptive-eval-fresh"

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


@pytest.fixture
def served(lab: Any) -> Any:
    """A laboratory with two banks, for one address of a server."""
    for name in ("one", "two"):
        lines = [{"id": f"{name}-{i}", "prompt": f"question {name} {i}", "answer": "right"} for i in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    lab.port = 0
    return lab


def run(
    lab: Any, expected: int, *flags: str, answer: Any = None, at_least: float = 0.5, workers: Sequence[str] = ()
) -> tuple[Any, Busy]:
    """The record of a run, the answers to which are those of `answer`, if any, or else of a busy server."""
    busy = Busy(expected)
    with JsonServer(["m"], busy if answer is None else lambda *args: answer(busy, *args), port=lab.port) as server:
        lab.port = server.port  # the address is in the records
        text = "".join(EVALUATION.format(name=name, url=server.url) for name in ("one", "two"))
        (Path(lab.path) / "adaptive-eval.toml").write_text(text.replace("0.5", f"{at_least}"))
        lab.result = lab.run_with(workers, *flags)
    return lab.record_without("run", "started", "seconds", "resumed"), busy


@pytest.mark.slow
def test_requests_of_two_interviews_are_open_at_once(served: Any) -> None:
    alone, one_by_one = run(served, 8, FRESH)
    together, side_by_side = run(served, 12, FRESH, FLAG)
    assert served.result.ret == 0, served.result.outlines
    assert together == alone
    assert (one_by_one.most, side_by_side.most) == (8, 12)
    assert side_by_side.asked == one_by_one.asked
    assert all(interview["costs"]["subject"]["prompt_tokens"] > 0 for interview in alone["interviews"])


@pytest.mark.slow
def test_workers_have_the_answers_of_one_process(served: Any) -> None:
    alone, one_by_one = run(served, 1, FRESH, at_least=0.9)
    together, in_workers = run(served, 1, FRESH, FLAG, at_least=0.9, workers=["-n2"])
    interviews = [{interview["name"]: interview for interview in record["interviews"]} for record in (together, alone)]
    assert interviews[0] == interviews[1]
    assert in_workers.asked == one_by_one.asked


WAITS = """
import time
from pathlib import Path

reports = []

def pytest_runtest_logreport(report):
    if report.when == "call" and not reports:
        reports.append(report)
        asked, end = Path(__file__).with_name("asked.txt"), time.monotonic() + 10
        while len(asked.read_text()) < 9 and time.monotonic() < end:
            time.sleep(0.01)
        asked.with_name("seen.txt").write_text(str(len(asked.read_text())))
"""


@pytest.mark.slow
def test_the_next_questions_are_asked_while_tests_run(served: Any) -> None:
    def answer(busy: Busy, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        reply = busy(body, headers)
        if body["messages"][-1]["content"].startswith("question"):
            with (served.path / "asked.txt").open("a") as file:  # several threads do
                file.write("x")
        return reply

    served.pytester.makeconftest(WAITS)
    run(served, 1, FLAG, "-k", "one", answer=answer)
    assert served.result.ret == 0, served.result.outlines
    assert int((served.path / "seen.txt").read_text()) > 8  # in the first test of a batch of eight


@pytest.mark.slow
def test_a_question_that_fails_ahead_of_its_test_is_asked_once(served: Any) -> None:
    first, _ = run(served, 1, FRESH, at_least=0.9)
    failing = {interview["administrations"][20]["item"].replace("-", " ") for interview in first["interviews"]}

    def answer(busy: Busy, body: Any, headers: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        reply = busy(body, headers)
        return (failure("no"), 400) if any(body["messages"][-1]["content"].endswith(f) for f in failing) else reply

    alone, one_by_one = run(served, 1, FRESH, answer=answer, at_least=0.9)
    together, side_by_side = run(served, 1, FRESH, FLAG, answer=answer, at_least=0.9)
    for record in (alone, together):
        assert [interview["statuses"]["error"] for interview in record["interviews"]] == [1, 1]
    assert asked_and_scored(together) == asked_and_scored(alone)
    assert side_by_side.asked - one_by_one.asked in (0, 1)  # that of the second may fail before its tests begin


ENDS = """
import os

reports = []

def pytest_runtest_logreport(report):
    reports.append(report.when)
    if reports.count("call") == 12:
        {ending}
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["raise KeyboardInterrupt", "os._exit(9)"])
def test_answers_that_came_before_the_run_was_ended_are_kept(served: Any, ending: str) -> None:
    alone, one_by_one = run(served, 1, FRESH, at_least=0.9)
    conftest = served.pytester.makeconftest(ENDS.format(ending=ending))
    _, first = run(served, 1, FRESH, FLAG, at_least=0.9, workers=["-n0"])
    assert first.asked >= 12
    conftest.unlink()
    together, second = run(served, 1, FLAG, at_least=0.9)
    assert asked_and_scored(together) == asked_and_scored(alone)
    open_at_the_end = 12
    assert one_by_one.asked <= first.asked + second.asked <= one_by_one.asked + open_at_the_end


def asked_and_scored(record: Any) -> list[list[tuple[str, float]]]:
    return [[(a["item"], a["score"]) for a in interview["administrations"]] for interview in record["interviews"]]


@pytest.mark.slow
def test_a_fault_of_the_connections_ends_no_run_in_a_wait(served: Any, monkeypatch: Any) -> None:
    check, seen = Answerer.check, []

    def fail(self: Answerer, delivery: Any) -> Any:
        seen.append(delivery)
        if len(seen) == 20:
            raise RuntimeError("a fault that no server can provoke")
        return check(self, delivery)

    alone, _ = run(served, 1, FRESH)
    monkeypatch.setattr(Answerer, "check", fail)
    together, _ = run(served, 1, FRESH, FLAG)
    if served.result.ret == 0:  # between the tests
        assert asked_and_scored(together) == asked_and_scored(alone)
    else:
        assert "a fault that no server can provoke" in json.dumps(together)
