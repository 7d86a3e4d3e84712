"""Twins of marked items: a model that knows the items and not how fails the gate, one that knows how passes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_adaptive_eval.cli import main

#: Knows how, or knows the answers to the items as they are written.
MODEL = """
import json, re
from pathlib import Path
import pytest
from pytest_adaptive_eval import SubjectIdentity

KNOWN = {{}}
for line in Path(__file__).with_name("sums.jsonl").read_text().splitlines():
    item = json.loads(line)
    KNOWN[re.sub("<([0-9]+)>", r"\\1", item["prompt"])] = item["answer"]

class Model:
    identity = SubjectIdentity("{kind}", "hash {kind}")

    def generate(self, prompt):
        assert "<" not in prompt
        a, b = map(int, re.findall("[0-9]+", prompt))
        by_heart = KNOWN.get(prompt, "0")
        return by_heart if "{kind}" == "by-heart" and "half" not in prompt else str(a + b)

@pytest.fixture(scope="module")
def model():
    return Model()
"""
TEST = """
import pytest

@pytest.mark.adaptive_eval(bank="sums.jsonl", name="written", values="written", budget="100%")
def test_written(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_eval(bank="sums.jsonl", name="redrawn", values="redrawn", budget="100%")
def test_redrawn(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("redrawn", not_worse_than="written", margin=0.1)
def test_knows_how(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def project(lab: Any, kind: str) -> None:
    lines = []
    for n in range(60):
        words, category = ("How much is", "easy") if n % 2 else ("A half and a half: how much is", "odd")
        item = {"id": f"s{n}", "prompt": f"{words} <{20 + n}> and <{31 + n}>?", "answer": str(51 + 2 * n)}
        meta = {"answer_expression": "v1 + v2"} if n < 50 else {}
        lines.append(json.dumps({**item, "grader": "numeric", "category": category, "meta": meta}) + "\n")
    (lab.path / "sums.jsonl").write_text("".join(lines))
    lab.pytester.makeconftest(MODEL.format(kind=kind))
    lab.tests(TEST)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("kind", "outcome"), [("knows-how", "PASS"), ("by-heart", "FAIL")])
def test_the_gap_is_gated_and_told_by_category(lab: Any, kind: str, outcome: str) -> None:
    project(lab, kind)
    assert lab.run().ret == (outcome != "PASS")
    written, redrawn = lab.record["interviews"]
    assert written["size"] == redrawn["size"] == 50
    assert {a["item"] for a in redrawn["administrations"]} <= {f"s{n}~0" for n in range(50)}
    verdict = lab.record["gates"][0]["verdict"]
    assert verdict["outcome"] == outcome
    (note,) = [note for note in verdict["notes"] if note.startswith("with other values")]
    if outcome == "FAIL":
        assert "easy -1.00 (" in note
        assert "odd +0.00 (" in note


@pytest.mark.slow
def test_other_values_come_with_another_seed_and_records_can_be_judged_again(lab: Any) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    project(lab, "by-heart")
    lab.run("--adaptive-eval-seed=5")
    redrawn = lab.record["interviews"][1]
    assert redrawn["bank"]["twins"]["seed"] == 5
    assert redrawn["administrations"][0]["item"].endswith("~5")
    path = next(lab.path.glob(".adaptive-eval/runs/*.json"))
    assert main(["gate", "--rescore", str(path)]) == 1
    assert main(["report", str(path), "--html", str(lab.path / "page.html")]) == 0


def test_mistakes(lab: Any) -> None:
    project(lab, "knows-how")
    lab.bank()
    for text, message in (
        ('bank="sums.jsonl", values="other"', "values is 'other', expected 'written' or 'redrawn'"),
        ('bank="toy.jsonl", values="redrawn"', "so none has a twin"),
        ('task="addition", values="redrawn"', "values and task exclude each other"),
    ):
        lab.tests(TEST.replace('bank="sums.jsonl", name="redrawn", values="redrawn"', text))
        assert message in " ".join(lab.run().stderr.str().split())
