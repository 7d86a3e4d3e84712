"""A judge on a server grades answers ahead of their tests: more requests at once, and the results of one by one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("httpcore2", reason="servers need httpcore2 (extra endpoint)")

from fake_server import JsonServer, completion

from pytest_adaptive_eval.models.endpoint.model import EndpointModel

EVALUATION = """
[[eval]]
bank = "talks.jsonl"
budget = "100%"
stop = "budget"
samples = {samples}
model = "{url}#pupil"
judge = {{ model = "{url}#judge", options = {{ temperature = 0.7, concurrency = 32 }} }}
[[eval.gate]]
at_least = 0.5
"""
CONFTEST = """
import pytest
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

class Pupil(Model):
    def answer(self, items):
        return [Completion(f"I heard: {item.prompt}") for item in items]

@pytest.fixture(scope="session")
def model():
    return Pupil(SubjectIdentity("pupil", "checkpoint", {"temperature": 0}))
"""
TEST = """
import pytest

@pytest.mark.adaptive_eval(bank="talks.jsonl", budget="100%", stop="budget", batch=4, judge={"model": "URL#judge"})
def test_talks(item, model):
    item.score(item.grade(model.generate(item)))
"""
JUDGMENTS = ("You judge", "Once more")
ITEMS = 12


class Models:
    """A pupil whose first answer comes after nine others, and a judge whose ranks depend on text and seed.

    The first judgments of its answers wait until `expected` are open; whoever waits gives up after ten seconds. Every
    seventh text has no rank. With `interrupt` no answer gets one, and the run gets SIGINT when all of them are judged.
    """

    def __init__(self, expected: int, interrupt: bool = False) -> None:
        self.expected, self.interrupt, self.most = expected, interrupt, 0
        self.asked: Counter[tuple[str, str, Any]] = Counter()
        self.ended, self.gave_up = threading.Event(), False
        self._open = self._answers = self._hung = 0
        self._lock, self._enough, self._others = threading.Lock(), threading.Event(), threading.Event()

    def __call__(self, body: Any, _: Mapping[str, str]) -> tuple[dict[str, Any], int]:
        model, text = body["model"], body["messages"][-1]["content"]
        with self._lock:
            self.asked[model, text, body.get("seed")] += 1
        usage = {"prompt_tokens": len(text), "completion_tokens": 1}
        said = self.judge(text, body.get("seed") or 0) if text.startswith(JUDGMENTS) else self.pupil(text)
        return completion(model, said, usage=usage), 200

    def pupil(self, text: str) -> str:
        with self._lock:
            self._answers += text.startswith("Write")
            first = self._answers == 1
            if self._answers > 9 or self.expected == 1:
                self._others.set()
        if first:
            self._others.wait(10.0)
            self._others.set()
        return f"I heard: {text}"

    def judge(self, text: str, seed: int) -> str:
        answered = "I heard" in text  # not the accepted answer of a probe
        if answered:
            with self._lock:
                self._open += 1
                self.most = max(self.most, self._open)
                if self._open >= self.expected:
                    self._enough.set()
            self._enough.wait(10.0)
            self._enough.set()
            with self._lock:
                self._open -= 1
        if answered and self.interrupt:
            with self._lock:
                self._hung += 1
                last = self._hung == ITEMS
            if last:
                os.kill(os.getpid(), signal.SIGINT)
            self.gave_up |= not self.ended.wait(10.0)
        number = sum(map(ord, text))
        return "I would rather not say" if answered and not number % 7 else f"<rank>{1 + (number + seed) % 5}</rank>"

    @property
    def requests(self) -> Counter[tuple[str, str, Any]]:
        """What was asked of the judge about answers of the pupil."""
        return Counter({request: n for request, n in self.asked.items() if "I heard" in request[1]})


@pytest.fixture
def judged(lab: Any) -> Any:
    """A laboratory whose answers a judge grades, for one address of a server."""
    lab.ini("    ignore::pytest_adaptive_eval.errors.AdaptiveEvalWarning\n")
    items = [{"id": f"t{n}", "prompt": f"Write {n}.", "answer": f"{n}", "grader": "contains"} for n in range(ITEMS)]
    (lab.path / "talks.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    lab.port = 0
    return lab


def run(lab: Any, expected: int = 1, samples: int = 2, interrupt: bool = False) -> tuple[Any, Models]:
    """The record of a run, and its models."""
    models = Models(expected, interrupt)
    with JsonServer(["pupil", "judge"], models, port=lab.port) as server:
        lab.port = server.port  # the address is in the records
        (lab.path / "adaptive-eval.toml").write_text(EVALUATION.format(url=server.url, samples=samples))
        lab.result = lab.run()
        models.ended.set()
    return None if interrupt else lab.record_without("run", "started", "seconds", "resumed", "call_sizes"), models


def test_a_judge_gets_several_requests_at_once_and_the_record_is_that_of_one_by_one(
    judged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, at_once = run(judged, expected=6)
    assert at_once.most >= 6
    monkeypatch.setattr(EndpointModel, "waits_apart", False)
    (judged.path / ".adaptive-eval").rename(judged.path / "before")
    alone, one_by_one = run(judged)
    assert one_by_one.most == 1
    assert together == alone
    assert at_once.requests == one_by_one.requests
    (interview,) = alone["interviews"]
    # the first 20 answers, and by their hashes about half of the later four: this judge samples
    assert 20 < interview["judged"]["repeated"] < 24
    assert interview["judged"]["repeated"] > interview["judged"]["same"]
    assert interview["judged"]["unread"]
    assert len(interview["administrations"]) == 2 * ITEMS


def test_another_run_takes_what_a_greedy_judge_of_known_weights_said(judged: Any) -> None:
    models = Models(1)
    with JsonServer(["pupil", "judge"], models) as server:
        for n, (revision, requests) in enumerate([("one", 24), ("one", 24), ("two", 48)]):
            text = EVALUATION.format(url=server.url, samples=1).replace("temperature = 0.7", f'revision = "{revision}"')
            (judged.path / "adaptive-eval.toml").write_text(text)
            record = f"--adaptive-eval-record={n}.json"
            judged.run("--adaptive-eval-reuse=shared.sqlite", f"--adaptive-eval-dir=run-{n}", record)
            assert models.requests.total() == requests
    first, second = (json.loads((judged.path / f"{n}.json").read_text())["interviews"][0] for n in range(2))
    assert second["judged"] == first["judged"]


@pytest.mark.slow
def test_an_interrupt_ends_open_judgments_and_the_next_run_judges_all_answers_that_came(judged: Any) -> None:
    def scores(record: Any) -> list[Any]:
        asked = record["interviews"][0]["administrations"]
        return [(entry["item"], entry["score"], entry["status"]) for entry in asked]

    whole, _ = run(judged, samples=1)
    (judged.path / ".adaptive-eval").rename(judged.path / "before")
    _, interrupted = run(judged, samples=1, interrupt=True)
    assert judged.result.ret == pytest.ExitCode.INTERRUPTED
    assert not interrupted.gave_up
    resumed, models = run(judged, samples=1, expected=6)
    assert models.most >= 6
    assert not any(text.startswith("Write") for _, text, _ in models.asked)
    assert resumed["interviews"][0]["judged"] == whole["interviews"][0]["judged"]
    assert scores(resumed) == scores(whole)


@pytest.mark.parametrize(("cut", "judged_ahead"), [("", ITEMS), ('.removeprefix("I heard: ")', 4)])
def test_answers_are_judged_ahead_while_a_python_test_grades_them_as_they_are(
    judged: Any, cut: str, judged_ahead: int
) -> None:
    judged.tests(CONFTEST, "conftest")
    models = Models(expected=4)
    with JsonServer(["judge"], models) as server:
        judged.tests(TEST.replace("URL", server.url).replace("(item))", f"(item){cut})"))
        judged.run()
    assert models.most >= 4
    (interview,) = judged.record["interviews"]
    assert {entry["text"].startswith("I heard") for entry in interview["administrations"]} == {not cut}
    assert (
        len({text.removeprefix("Once more: you ").removeprefix("You ") for _, text, _ in models.requests})
        == judged_ahead
    )
