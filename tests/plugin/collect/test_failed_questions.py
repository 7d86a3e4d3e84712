"""``--adaptive-eval-failed``: the questions of a run that were answered wrongly, asked again one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

TOML = """
[[eval]]
name = "text"
bank = "toy.jsonl"
model = "replay:old.jsonl"
budget = "100%"
stop = "budget"

[[eval.gate]]
at_least = 0.9
"""


#: Output as users have it.
BRIEF = ("-o", "adaptive_eval_details=false")


@pytest.fixture
def failing(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run with three wrong answers, and a model that has mended one of them."""
    monkeypatch.delenv("CI", raising=False)
    lab.bank()
    for name, wrong in (("old", {2, 4, 8}), ("new", {4, 8})):
        answers = [{"id": f"q{i}", "text": "wrong" if i in wrong else "right"} for i in range(60)]
        (lab.path / f"{name}.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    (lab.path / "adaptive-eval.toml").write_text(TOML.replace("0.9", "0.99"))
    return lab


def test_wrong_answers_of_a_gate_that_did_not_pass_are_shown_and_asked_again(failing: Any) -> None:
    shown = failing.run(*BRIEF).stdout.str()
    assert "wrong answers" in shown
    assert shown.count("answered: wrong") == 3
    command = shown.partition(
        "next: ask the 3 wrongly answered questions again, with the options of this run\n  pytest "
    )[2]
    again = failing.run(*command.partition("\n")[0].split(), "--adaptive-eval-model=replay:new.jsonl")
    assert again.ret == 1
    again.assert_outcomes(passed=1, failed=2)
    again.stdout.fnmatch_lines_random(["FAILED *::text?q4? *", "FAILED *::text?q8? *"])
    assert len(list((failing.path / ".adaptive-eval" / "runs").glob("*.json"))) == 1, "no record: nothing was judged"


@pytest.mark.slow
def test_logs_of_ci_show_no_question(failing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    assert "answered:" not in failing.run(*BRIEF).stdout.str()


@pytest.mark.slow
def test_workers_ask_the_same_questions(failing: Any) -> None:
    pytest.importorskip("xdist", reason="workers need pytest-xdist")
    failing.run()
    failing.run("--adaptive-eval-failed=latest", "-n2").assert_outcomes(failed=3)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--adaptive-eval-failed=latest", "adaptive-eval.toml"], "says what is asked: remove adaptive-eval.toml"),
        (["--adaptive-eval-failed=none.json"], "none.json"),
        (["--adaptive-eval-failed=2031"], "no history at "),
        (["--adaptive-eval-failed=other.json"], "the questions of 'text' are of no file in "),
        (["--adaptive-eval-failed=right.json"], "has no wrong answer to a question"),
    ],
)
def test_a_run_whose_questions_cannot_be_asked_is_refused(failing: Any, arguments: list[str], message: str) -> None:
    failing.run("--adaptive-eval-record=record.json", "--adaptive-eval-dir=elsewhere")
    record = json.loads((failing.path / "record.json").read_text())
    (interview,) = record["interviews"]
    nodeid = interview["nodeid"]
    interview["nodeid"] = f"../{nodeid}"
    (failing.path / "other.json").write_text(json.dumps(record))
    interview["nodeid"] = nodeid
    interview["administrations"] = [entry for entry in interview["administrations"] if entry["score"]]
    (failing.path / "right.json").write_text(json.dumps(record))
    result = failing.run(*arguments)
    assert result.ret == 4
    assert message in " ".join((result.stdout.str() + result.stderr.str()).split())
