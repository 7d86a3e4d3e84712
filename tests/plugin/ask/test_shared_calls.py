"""Questions, scores and verdicts are the same whatever a model's calls hold, alone, beside others and in workers."""

from __future__ import annotations

import json
from typing import Any

import pytest

MODEL = """
import json
import pytest
from pytest_adaptive_eval import Completion, Model, SubjectIdentity

class Batches(Model):
    shared_batch = {batch}

    def answer(self, items):
        with open("calls.jsonl", "a") as file:
            file.write(json.dumps([item.id for item in items]) + "\\n")
        return [Completion("wrong" if int(item.id[1:]) % 7 < 2 else "right") for item in items]

@pytest.fixture(scope="session")
def model():
    return Batches(SubjectIdentity("batches", "hash", {{"temperature": 0}}))
"""
EVALUATION = """
[[eval]]
name = "{name}"
bank = "{bank}"
budget = {budget}
{more}
"""
GATE = """
[[eval.gate]]
at_least = 0.4
"""
KINDS = {
    "plain": ("plain.jsonl", 60, GATE),
    "decide": ("scaled.bank", 60, GATE),
    "estimate": ("scaled.bank", 20, 'policy = "estimate"'),
}


@pytest.fixture
def banks(lab: Any) -> Any:
    """A laboratory with a bank without parameters and one with them."""
    lab.bank("plain", 90)
    lab.calibrated("scaled", 90)
    return lab


def interviews(lab: Any, names: list[str], batch: int, *flags: str) -> tuple[dict[str, Any], list[list[str]]]:
    """What may not depend on calls, by evaluation, and the items of each call."""
    (lab.path / "calls.jsonl").unlink(missing_ok=True)
    lab.pytester.makeconftest(MODEL.format(batch=batch))
    text = "".join(
        EVALUATION.format(name=name, bank=bank, budget=budget, more=more)
        for name, (bank, budget, more) in ((name, KINDS[name.split("-")[0]]) for name in names)
    )
    (lab.path / "adaptive-eval.toml").write_text(text)
    assert lab.run_with(flags, "--adaptive-eval-fresh").ret == 0
    columns = ("item", "score", "propensity", "predicted")
    found = {
        interview["name"]: [
            interview["stop"],
            [[row[name] for name in columns] for row in interview["administrations"]],
        ]
        for interview in lab.record["interviews"]
    }
    calls = [json.loads(line) for line in (lab.path / "calls.jsonl").read_text().splitlines()]
    return found, calls


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["decide", "plain", "estimate"])
def test_no_size_of_calls_changes_a_result(banks: Any, kind: str) -> None:
    alone, calls = interviews(banks, [kind], 1)
    assert {len(call) for call in calls} == {1}
    for batch in (8, 64):
        assert interviews(banks, [kind], batch)[0] == alone
    names = [kind, "decide-2", "plain-2", "estimate-2"]
    beside, calls = interviews(banks, names, 64)
    assert beside[kind] == alone[kind]
    assert len({len(call) for call in calls}) > 1


@pytest.mark.slow
def test_no_size_of_calls_changes_a_result_of_workers(banks: Any) -> None:
    names = ["decide", "plain", "estimate", "decide-2"]
    assert interviews(banks, names, 8, "-n2")[0] == interviews(banks, names, 64)[0]


def test_interviews_that_need_the_last_answer_share_calls_to_their_end(banks: Any) -> None:
    names = [f"estimate-{n}" for n in range(4)]
    _, calls = interviews(banks, names, 16)
    assert sum(map(len, calls)) == 4 * 20
    assert len(calls) <= 22  # 20 steps of four
