"""Models and prompts side by side: one interview each, with the same draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import pytest

from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.markdown import summary_markdown

EVALUATION = """
[[eval]]
name = "sums"
bank = "toy.jsonl"
budget = 40
stop = "budget"
{more}
"""

CONFTEST = """
import json
import pytest
from pytest_adaptive_eval import CallableModel

def answer(messages):
    with open("asked.txt", "a") as file:
        file.write(json.dumps(messages) + "\\n")
    return "right"

@pytest.fixture(scope="session")
def model():
    return CallableModel(answer, "writer", checkpoint="v1", messages=True)
"""


@pytest.fixture
def answers(lab: Any) -> Any:
    """A bank of 60 items, and two recorded models: alpha fails one item of six, beta one of two."""
    lab.bank()
    for name, every in (("alpha", 6), ("beta", 2)):
        lines = [{"id": f"q{n}", "text": "right" if n % every else "wrong"} for n in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lab


def evaluate(lab: Any, more: str, *flags: str) -> Any:
    (lab.path / "adaptive-eval.toml").write_text(EVALUATION.format(more=more))
    return lab.run("--adaptive-eval-fresh", *flags)


MODELS = 'models = ["replay:alpha.jsonl", "replay:beta.jsonl"]'


def test_models_get_the_same_items_and_their_difference_is_paired(answers: Any) -> None:
    result = evaluate(answers, MODELS + "\n[[eval.gate]]\nat_least = 0.6\n")
    first, second = answers.record["interviews"]
    assert [entry["name"] for entry in (first, second)] == ["sums-alpha", "sums-beta"]
    assert [(entry["group"], entry["variant"]) for entry in (first, second)] == [("sums", "alpha"), ("sums", "beta")]
    items = [[row["item"] for row in entry["administrations"]] for entry in (first, second)]
    assert items[0] == items[1]
    scores = [[row["score"] for row in entry["administrations"]] for entry in (first, second)]
    by_hand = sum(scores[0]) / 40 - sum(scores[1]) / 40
    (difference,) = answers.record["differences"]
    assert difference["subjects"] == ["alpha", "beta"]
    assert difference["shared"] == 40
    assert difference["interval"]["estimate"] == pytest.approx(by_hand)
    assert difference["interval"]["low"] > 0
    assert [outcome for _, outcome in answers.outcomes()] == ["PASS", "FAIL"]
    assert result.ret == 1
    result.stdout.fnmatch_lines(["side by side: sums", "*alpha*beta*+.*paired on 40 items*"])
    markdown = summary_markdown(RunRecord.from_json(answers.record))
    assert "### Side by side: sums" in markdown
    assert "| alpha | beta |" in markdown


def test_the_draws_are_those_of_the_evaluation_alone(answers: Any) -> None:
    evaluate(answers, 'model = "replay:alpha.jsonl"')
    alone = answers.record["interviews"][0]["administrations"]
    evaluate(answers, "", "--adaptive-eval-models=replay:beta.jsonl,replay:alpha.jsonl")
    interviews = {entry["variant"]: entry["administrations"] for entry in answers.record["interviews"]}
    assert [row["item"] for row in interviews["alpha"]] == [row["item"] for row in alone]
    assert set(interviews) == {"alpha", "beta"}


def test_templates_and_files_of_texts(answers: Any) -> None:
    answers.pytester.makeconftest(CONFTEST)
    (answers.path / "short.txt").write_text("{prompt} In short.")
    (answers.path / "system.txt").write_text("Be exact.")
    more = 'templates = ["short.txt", "{prompt} At length."]\nsystem = { file = "system.txt" }'
    evaluate(answers, more)
    assert [entry["variant"] for entry in answers.record["interviews"]] == ["short", "At_length"]
    assert answers.record["differences"][0]["interval"] is not None
    asked = [json.loads(line) for line in answers.asked]
    assert {messages[0]["content"] for messages in asked} == {"Be exact."}
    endings = [messages[-1]["content"].partition(" ")[2].partition(" ")[2] for messages in asked]
    assert sorted(set(endings)) == ["At length.", "In short."]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f'model = "replay:alpha.jsonl"\n{MODELS}', "model and models exclude each other"),
        ('template = "{prompt}"\ntemplates = ["{prompt}"]', "template and templates exclude each other"),
        ('template = "missing.txt"', "has no {prompt} and does not name a file"),
        ('system = { file = "missing.txt" }', "missing.txt: cannot be read"),
    ],
)
def test_what_contradicts_itself_is_refused(answers: Any, more: str, said: str) -> None:
    result = evaluate(answers, more)
    assert result.ret == 4
    assert said in " ".join(result.stderr.str().split())


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ('{ new = "replay:alpha.jsonl", old = "replay:beta.jsonl" }', ("new", "old")),
        ('["replay:alpha.jsonl", "replay:beta.jsonl"]', ("1", "2")),
    ],
)
def test_cases_in_junit_have_given_names_or_places_of_models(answers: Any, models: str, names: Sequence[str]) -> None:
    evaluate(answers, f"models = {models}\n[[eval.gate]]\nat_least = 0.6\n", "--adaptive-eval-junit=gates.xml")
    cases = []
    for case in ElementTree.parse(answers.path / "gates.xml").iter("testcase"):
        cases.append((case.get("classname"), case.get("name")))
    expected = []
    for name in names:
        suite = f"adaptive_eval.sums-{name}"
        expected += [(suite, "interview"), (suite, f"sums-{name}-accuracy: accuracy at least")]
    assert cases == expected
