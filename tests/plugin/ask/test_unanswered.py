"""Empty, refused and cut answers in runs: graded as they are, and counted in every verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

EVAL = """
[[eval]]
bank = "toy.jsonl"
model = "replay:{model}.jsonl"
budget = "100%"
stop = "budget"
[[eval.gate]]
{gate}
"""
AT_LEAST = "at_least = 0.6"
NOT_WORSE = 'not_worse_than = "baseline"\nmargin = 0.05'


def answers(lab: Any, name: str, *kinds: tuple[int, str, str]) -> None:
    """Write recorded answers: so many of each text and status, in the bank's order."""
    rows = [(text, status) for count, text, status in kinds for _ in range(count)]
    lines = [
        {"id": f"q{n}", "text": text, **({"status": status} if status else {})} for n, (text, status) in enumerate(rows)
    ]
    (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    lab.bank(n=len(rows))


def run(lab: Any, model: str = "model", gate: str = AT_LEAST, *args: str) -> dict[str, Any]:
    """Run the evaluation, and return its verdict."""
    (lab.path / "adaptive-eval.toml").write_text(EVAL.format(model=model, gate=gate))
    lab.run(*args)
    verdict: dict[str, Any] = lab.record["gates"][0]["verdict"]
    return verdict


def bounds(verdict: dict[str, Any]) -> list[float]:
    return [round(verdict["interval"][name], 3) for name in ("estimate", "low", "high")]


@pytest.mark.slow
def test_empty_answers_are_wrong(lab: Any) -> None:
    answers(lab, "model", (23, "right", ""), (7, "wrong", ""), (10, "", ""))
    verdict = run(lab)
    assert (verdict["outcome"], bounds(verdict)) == ("FAIL", [0.575, 0.575, 0.575])
    assert ", 40 of 40 items, 10 of 40 empty, " in verdict["sentence"]
    assert lab.record["interviews"][0]["statuses"] == {"ok": 30, "empty": 10}


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("status", ["", "empty", "refused", "truncated"])
def test_a_silent_model_fails(lab: Any, status: str) -> None:
    answers(lab, "model", (40, "", status))
    verdict = run(lab)
    assert (verdict["outcome"], bounds(verdict)) == ("FAIL", [0, 0, 0])


def test_cut_and_refused_answers_are_graded_and_counted(lab: Any) -> None:
    answers(lab, "model", (30, "right", "truncated"), (6, "I won't.", "refused"), (4, "right", "refused"))
    verdict = run(lab)
    assert (verdict["outcome"], bounds(verdict)) == ("PASS", [0.85, 0.85, 0.85])
    assert "10 of 40 refused, 30 cut at the cap" in verdict["sentence"]
    assert lab.record["warnings"] == ["toy: 30 of 40 answers were truncated: raise max_tokens"]


def test_faults_of_the_infrastructure_stay_missing(lab: Any) -> None:
    answers(lab, "model", (38, "right", ""), (1, "", "timeout"), (1, "", "error"))
    verdict = run(lab)
    assert bounds(verdict) == [0.975, 0.95, 1.0]
    assert "empty" not in verdict["sentence"]


@pytest.mark.slow
@pytest.mark.parametrize("silent", [0, 4, 20])
def test_a_model_equals_its_own_record(lab: Any, silent: int) -> None:
    answers(lab, "model", (40 - silent, "right", ""), (silent, "", ""))
    run(lab, "model", AT_LEAST, "--adaptive-eval-record=main.json")
    verdict = run(lab, "model", NOT_WORSE, "--adaptive-eval-baseline=main.json", "--adaptive-eval-fresh")
    assert (verdict["outcome"], bounds(verdict)) == ("PASS", [0, 0, 0])


@pytest.mark.slow
def test_a_checkpoint_that_falls_silent_fails_against_its_baseline(lab: Any) -> None:
    answers(lab, "model", (60, "right", ""))
    run(lab, "model", AT_LEAST, "--adaptive-eval-record=main.json")
    answers(lab, "silent", (12, "", ""), (48, "right", ""))
    verdict = run(lab, "silent", NOT_WORSE, "--adaptive-eval-baseline=main.json")
    assert (verdict["outcome"], bounds(verdict)) == ("FAIL", [-0.2, -0.2, -0.2])


SUBJECT = """
import pytest
from pytest_adaptive_eval import Completion, Status, Model, SubjectIdentity, Unscored

class Own(Model):
    def answer(self, items):
        return [self.one(int(item.prompt.split()[-1])) for item in items]

    def one(self, n):
        if n % 4 == 0:
            return Completion("")
        return Completion('{"answer": "right"}' if n % 4 < 3 else '{"answer": "rig', Status.TRUNCATED)

@pytest.fixture(scope="module")
def model():
    return Own(SubjectIdentity("m", "hash", {"temperature": 0}))
"""
TEST = """
import json
import pytest
from pytest_adaptive_eval import Unscored

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget="100%", stop="budget")
def test_toy(item, model):
    {body}

@pytest.mark.adaptive_gate("toy", at_least=0.6)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
READ = 'assert item.grade(json.loads(model.generate(item.prompt))["answer"])'
CAUGHT = """try:
        text = model.generate(item.prompt)
    except Unscored:
        text = "right"
    item.score(item.grade(text))"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "scores"),
    [
        (READ, [0, 1, 1, 0]),
        ("assert 'right' in model.generate(item)", [0, 1, 1, 0]),
        (CAUGHT, [0, 1, 1, 0]),
    ],
)
def test_the_test_reads_a_cut_answer_and_never_an_empty_one(lab: Any, body: str, scores: list[float]) -> None:
    lab.bank(n=8)
    lab.tests(SUBJECT, "conftest")
    lab.tests(TEST.format(body=body))
    lab.run()
    interview = lab.record["interviews"][0]
    found = {int(a["item"][1:]): (a["status"], a["score"]) for a in interview["administrations"]}
    assert found == {n: ("truncated" if n % 4 else "empty", scores[n % 4]) for n in range(8)}
    assert "truncated" not in interview["administrations"][0]["text"]


@pytest.mark.slow
def test_an_error_of_a_test_on_a_whole_answer_is_an_error(lab: Any) -> None:
    lab.bank(n=8)
    lab.tests(SUBJECT.replace(", Status.TRUNCATED)", ")"), "conftest")
    lab.tests(TEST.format(body=READ))
    lab.run()
    assert lab.record["interviews"][0]["statuses"]["error"] == 1  # one is more than 5 % of 8
