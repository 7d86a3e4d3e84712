"""Items that must pass, whatever the accuracy: asked first, and one wrong answer fails every gate."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_adaptive_eval.gates.must_pass import MustPassAnswer, must_pass_sentence, with_must_pass
from pytest_adaptive_eval.gates.verdict import Outcome, Verdict

MARKED = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, must_pass={must_pass})
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
TOML = """
[[eval]]
bank = "toy.jsonl"
budget = 30
must_pass = ["refund", "q4"]
stop = "{stop}"
[[eval.gate]]
at_least = 0.5
[[eval.gate]]
at_least = 0.6
"""


@pytest.fixture
def shop(lab: Any) -> Any:
    """A bank with a category of three items, of which the model answers number 19 wrong."""
    rows = [{**row, "category": ["refund" if n in (17, 18, 19) else "other"]} for n, row in enumerate(lab.items())]
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lab.toy()
    return lab


def test_right_answers_are_asked_first_and_noted(shop: Any) -> None:
    shop.tests(MARKED.format(must_pass=["q4", "q17"]))
    result = shop.run("-v")
    assert result.ret == 0
    assert shop.asked[:2] == ["4", "17"]
    (interview,) = shop.record["interviews"]
    assert interview["policy"]["must_pass"] == interview["policy"]["asked_first"] == ["q4", "q17"]
    assert [a["propensity"] for a in interview["administrations"][:3]] == [1.0, 1.0, pytest.approx(1 / 58)]
    assert shop.record["gates"][0]["verdict"]["notes"][-1] == "2 of 2 must-pass items right"
    result.stdout.fnmatch_lines(["*2 of 2 must-pass items right*"])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("workers", [[], ["-n1"]])
def test_one_wrong_answer_fails_every_gate_and_ends_the_interview(shop: Any, workers: list[str]) -> None:
    (shop.path / "adaptive-eval.toml").write_text(TOML.format(stop="decision"))
    result = shop.run_with(workers, "--adaptive-eval-junit=gates.xml")
    assert result.ret == 1
    assert sorted(shop.asked) == ["17", "18", "19", "4"]
    (interview,) = shop.record["interviews"]
    assert interview["stop"] == "MUST_PASS"
    sentence = (
        'FAIL 1 of 4 must-pass items wrong: q19 answered "wrong", 4 of 60 items; uncalibrated bank, uniform draws'
    )
    assert [gate["verdict"]["sentence"] for gate in shop.record["gates"]] == [sentence] * 2
    assert 'must-pass items wrong: q19 answered "wrong"' in (shop.path / "gates.xml").read_text().replace("&quot;", '"')


@pytest.mark.slow
def test_the_accuracy_is_told_too_where_the_budget_was_asked(shop: Any) -> None:
    (shop.path / "adaptive-eval.toml").write_text(TOML.format(stop="budget"))
    assert shop.run().ret == 1
    verdict = shop.record["gates"][0]["verdict"]
    assert (verdict["outcome"], verdict["asked"]) == ("FAIL", 30)
    assert verdict["interval"]["low"] > 0.5
    assert verdict["notes"][0].startswith("without them PASS: accuracy ")


@pytest.mark.slow
def test_an_error_of_one_is_an_error_of_the_gate(shop: Any) -> None:
    shop.toy(fault='if number == 4: raise OSError("the line is dead")')
    shop.tests(MARKED.format(must_pass=["q4"]))
    assert shop.run().ret == 1
    verdict = shop.record["gates"][0]["verdict"]
    assert verdict["outcome"] == "ERROR"
    assert verdict["sentence"].startswith("ERROR 1 of 1 must-pass item without a score: q4 has no score (error: ")
    assert "the line is dead" in verdict["sentence"]


@pytest.mark.slow
def test_of_several_answers_the_worst_counts(shop: Any) -> None:
    shop.toy(fault='if number == 4 and n == 2: return "no"')
    shop.tests(MARKED.format(must_pass=["q4"]).replace("budget=30", "budget=20, samples=3"))
    assert shop.run().ret == 1
    assert 'q4 answered "no"' in shop.record["gates"][0]["verdict"]["sentence"]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("keys", "error"),
    [
        (
            'must_pass = ["refunt"]',
            "'refunt' is neither an item nor a category of the bank 'toy'; did you mean 'refund'",
        ),
        ('must_pass = ["refund"]\nbudget = 2', "must_pass has 3 items, and the budget is 2: raise it, at least to 6"),
        ('must_pass = "refund"', "must_pass"),
    ],
)
def test_mistakes(shop: Any, keys: str, error: str) -> None:
    (shop.path / "adaptive-eval.toml").write_text(f'[[eval]]\nbank = "toy.jsonl"\n{keys}\n')
    result = shop.run()
    assert result.ret == 4
    assert error in result.stderr.str() + result.stdout.str()


@pytest.mark.slow
def test_without_a_gate_the_interview_fails(shop: Any) -> None:
    (shop.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\nmust_pass = ["q19"]\n')
    result = shop.run("-v")
    result.stdout.fnmatch_lines(['FAIL toy: 1 of 1 must-pass item wrong: q19 answered "wrong"; no gate judges it'])
    assert result.ret == 1


def test_a_long_list_is_cut() -> None:
    wrong = [MustPassAnswer(f"i{n}", 0.0, "x" * 100) for n in range(5)]
    sentence = must_pass_sentence([*wrong, MustPassAnswer("right", 1.0, "a")])
    assert sentence.startswith('5 of 6 must-pass items wrong: i0 answered "xxx')
    assert sentence.endswith('..." and 2 more')
    assert must_pass_sentence([MustPassAnswer("half", 0.5, "a")]).endswith('half answered "a", score .50')


@pytest.mark.parametrize(
    ("score", "outcome"),
    [(1.0, "PASS"), (0.999, "FAIL"), (0.75, "FAIL"), (0.5, "FAIL"), (0.25, "FAIL"), (0.0, "FAIL"), (None, "ERROR")],
)
def test_an_answer_that_is_right_in_part_does_not_pass(score: float | None, outcome: str) -> None:
    passed = Verdict(Outcome.PASS, "accuracy", ">= .50", asked=30, size=60)
    judged = with_must_pass(passed, lambda verdict: verdict, [MustPassAnswer("refund", score, "yes")])
    assert judged.outcome.value == outcome
