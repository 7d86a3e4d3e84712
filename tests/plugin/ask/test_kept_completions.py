"""Answers of a batch are in the journal before any test grades them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

CONFTEST = """
import os, pytest
from pytest_adaptive_eval.models.base import Completion, Model, SubjectIdentity

class Own(Model):
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
    return Own(SubjectIdentity("m", "checkpoint"))
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
    assert lab.kept > 1


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


VOTES = """
import random
import pytest

@pytest.mark.adaptive_eval(bank="b.jsonl", budget=24, batch=BATCH, stop="budget")
def test_b(item, model):
    hints = [f"{item.prompt} Hint {random.random()}", f"Well: {item.prompt}"]
    assert [model.generate(hint) for hint in hints].count("yes") >= 1
    item.score(SCORE)

def test_gate(adaptive_eval):
    assert adaptive_eval["b"].accuracy.at_least(0.1)
"""
OWN = """
from pathlib import Path
import pytest
from pytest_adaptive_eval import SubjectIdentity

class Own:
    identity = SubjectIdentity("m", "checkpoint")

    def generate(self, prompt):
        with open("asked.txt", "a") as file:
            file.write(prompt.replace(" ", "_") + "\\n")
        if len(Path("asked.txt").read_text().split()) == 20:
            pytest.exit("stop")
        return "yes"

@pytest.fixture(scope="session")
def model():
    return Own()
"""
SUBJECT = (
    OWN.replace("import SubjectIdentity", "import Completion, Model, SubjectIdentity")
    .replace(
        'class Own:\n    identity = SubjectIdentity("m", "checkpoint")\n\n    def generate(self, prompt):',
        "class Own(Model):\n    def answer(self, items):\n        prompt = items[0].prompt",
    )
    .replace('return "yes"', 'return [Completion("yes")]')
    .replace("Own()", 'Own(SubjectIdentity("m", "checkpoint"))')
)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("model", [OWN, SUBJECT], ids=["own", "subject"])
@pytest.mark.parametrize("batch", [1, 8])
def test_each_request_of_a_test_is_kept_and_graded_by_the_code_of_the_run_that_goes_on(
    lab: Any, model: str, batch: int
) -> None:
    lab.bank("b", n=24)
    lab.tests(model, "conftest")
    text = VOTES.replace("BATCH", str(batch))
    lab.tests(text.replace("SCORE", "1"), "test_b")
    assert lab.run().ret == 2
    assert len(lab.asked) == 20
    random.random()  # another process would have other states too
    lab.tests(text.replace("SCORE", "0.25"), "test_b")
    assert lab.run().ret == 0
    assert len(lab.asked) == 2 * 24 + 1  # the request that was open when the first run ended, and the rest
    assert len(set(lab.asked)) == 2 * 24  # random parts of prompts are the same again
    administrations = lab.record["interviews"][0]["administrations"]
    assert [entry["resumed"] for entry in administrations] == [n < 10 for n in range(24)]
    assert {entry["score"] for entry in administrations} == {0.25}


def test_an_own_model_without_generate_says_that_nothing_is_kept(lab: Any) -> None:
    lab.bank("b", n=24)
    lab.tests(OWN.replace("def generate", "def chat"), "conftest")
    lab.tests(VOTES.replace("BATCH", "8").replace("SCORE", "1").replace("generate", "chat"), "test_b")
    lab.run()
    assert lab.journals == []
    lab.tests(OWN.replace("def generate", "def chat").replace("== 20", "== 0"), "conftest")
    result = lab.run()
    assert "answers of 'm' are not kept for a later run" in " ".join(result.stdout.str().split())
    assert len(lab.asked) == 20 + 48
