"""Gates on what a harness measured, and on several samples of an item, each of which is a call of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_harness import Fake

#: Slow and costly on every third item, with one right sample of three on every fifth.
SCRIPT = """
for item in ids:
    begin(item)
    number = int(item[1:])
    called = (here / "calls.txt").read_text().count('"' + item + '"')
    write(item, score=float(number % 5 > 0 or called == 1), seconds=90.0 if number % 3 == 0 else 9.0, cost=0.5, steps=4,
          retries=2, cached=True)
"""
EVALUATION = """
[[eval]]
name = "agent"
bank = "agent.jsonl"
model = "harness:command"
budget = "100%"
stop = "budget"
samples = {samples}

[eval.model_options]
command = {command}
parallel = 20
"""


def interview_of(pytester: pytest.Pytester, gates: str, samples: int = 1) -> dict[str, Any]:
    fake = Fake(pytester.path)
    (fake.path / "agent.jsonl").write_text("".join(json.dumps({"id": f"t{n}"}) + "\n" for n in range(60)))
    command = json.dumps(fake.write(SCRIPT))
    (fake.path / "adaptive-eval.toml").write_text(EVALUATION.format(command=command, samples=samples) + gates)
    plugins = ["-p", "adaptive_eval", "-p", "no:logging", "-p", "no:cacheprovider"]
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        pytester.runpytest_inprocess(*plugins, "--adaptive-eval", "--adaptive-eval-record=run.json")
    record: dict[str, Any] = json.loads((fake.path / "run.json").read_text())
    return {**record["interviews"][0], "calls": fake.calls, "gates": record["gates"]}


def test_times_cost_and_steps_of_the_log_are_judged(pytester: pytest.Pytester) -> None:
    gates = """
[[eval.gate]]
metric = "seconds"
within = 60
at_least = "60%"

[[eval.gate]]
metric = "cost"
cap = 2
at_most = 0.4

[[eval.gate]]
metric = "steps"
cap = 10
at_most = 5

[[eval.gate]]
metric = "retries"
within = 1
at_most = "5%"
"""
    found = interview_of(pytester, gates)
    verdicts = [(gate["verdict"]["outcome"], gate["verdict"]["interval"]["estimate"]) for gate in found["gates"]]
    assert verdicts == [
        ("PASS", pytest.approx(40 / 60)),
        ("FAIL", pytest.approx(0.5)),
        ("PASS", pytest.approx(4.0)),
        ("PASS", pytest.approx(0.0)),
    ]
    assert set(found["administrations"][0]["measures"]) == {"seconds", "cost", "steps", "retries"}
    assert [gate["verdict"]["metric"] for gate in found["gates"]] == [
        "share of seconds within 60", "mean cost cut at 2", "mean steps cut at 10", "share of retries within 1",
    ]  # fmt: skip
    assert [gate["verdict"]["requirement"] for gate in found["gates"]] == [">= .60", "<= .40", "<= 5.00", "<= .05"]


@pytest.mark.slow
def test_each_sample_is_a_call_of_its_own(pytester: pytest.Pytester) -> None:
    gates = '[[eval.gate]]\nmetric = "pass^3"\nat_least = 0.5\n\n[[eval.gate]]\nmetric = "pass@2"\nat_least = 0.5\n'
    found = interview_of(pytester, gates, samples=3)
    for call in found["calls"]:
        assert len(set(call)) == len(call)
    assert sum(map(len, found["calls"])) == 180
    every, any_of_two = (found["item_estimates"][metric] for metric in ("pass^3", "pass@2"))
    for item, estimate in every.items():
        flaky = int(item[1:]) % 5 == 0
        assert estimate == (0.0 if flaky else 1.0)
        assert any_of_two[item] == pytest.approx(2 / 3 if flaky else 1.0)
    assert sorted(found["flaky"]) == sorted(f"t{n}" for n in range(0, 60, 5))
    estimates = [gate["verdict"]["interval"]["estimate"] for gate in found["gates"]]
    assert estimates == [pytest.approx(48 / 60), pytest.approx((48 + 12 * 2 / 3) / 60)]
