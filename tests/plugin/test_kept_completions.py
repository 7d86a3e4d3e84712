"""Answers of a batch are in the journal before any test grades them."""

from __future__ import annotations

import json
from typing import Any

import pytest

CONFTEST = """
import os, pytest
from pytest_adaptive_eval.models.base import Completion, Subject, SubjectIdentity

class Model(Subject):
    def answer(self, items):
        return self.answer_each(items, lambda *_: None)

    def answer_each(self, items, arrived):
        out = []
        for place, item in enumerate(items):
            if os.environ.get("KILL") and place == 5:
                os._exit(9)
            with open("asked.txt", "a") as file:
                file.write(item.id + "\\n")
            out.append(Completion("yes"))
            arrived(place, out[-1])
        return out

@pytest.fixture(scope="session")
def model():
    return Model(SubjectIdentity("m", "checkpoint"))
"""
TEST = """
import pytest

@pytest.mark.adaptive_eval(bank="b.jsonl", budget=24, batch=8)
def test_b(item, model):
    assert item.grade(model.generate(item))
"""


def test_an_answer_that_is_asked_for_alone_is_kept_once(lab: Any) -> None:
    lab.bank("b", n=24)
    model = CONFTEST.replace('os.environ.get("KILL") and place == 5', 'item.id == "q7"')
    lab.tests(model.replace("os._exit(9)", "raise KeyboardInterrupt"), "conftest")
    lab.tests(TEST.replace("batch=8", "batch=1").replace("assert ", "item.score(0)\n    "), "test_b")
    assert lab.run().ret == pytest.ExitCode.INTERRUPTED
    (journal,) = lab.journals
    assert len(journal.read_text().splitlines()) > 1
    assert "completion" not in journal.read_text()


@pytest.mark.slow
def test_a_killed_run_asks_no_answer_of_a_batch_again(pytester: pytest.Pytester, monkeypatch) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_b=TEST)
    items = [{"id": f"q{n}", "prompt": f"Question {n}?", "answer": "yes", "grader": "exact"} for n in range(24)]
    pytester.path.joinpath("b.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    monkeypatch.setenv("KILL", "1")
    pytester.runpytest_subprocess("--adaptive-eval")
    asked = pytester.path / "asked.txt"
    assert len(asked.read_text().split()) == 5
    monkeypatch.delenv("KILL")
    result = pytester.runpytest_subprocess("--adaptive-eval")
    assert result.ret == 0
    names = asked.read_text().split()
    assert len(names) == len(set(names)) == 24
