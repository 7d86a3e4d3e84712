"""What a test forgets to assert neither counts as right nor passes, and what is no text is no answer."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest

QUESTION = """
import pytest
@pytest.mark.adaptive_eval("toy.jsonl", budget=20{more})
def test_toy(item, model):
    {body}
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.3)
"""
GATE = """
import pytest
@pytest.mark.adaptive_eval("toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
{mark}
def test_gate(adaptive_eval):
    accuracy = adaptive_eval["toy"].accuracy
    {body}
"""
SCORED = """
import pytest
from pytest_adaptive_eval import SubjectIdentity
from pytest_adaptive_eval.subjects.base import Completion, Subject

class Scored(Subject):
    def answer(self, items):
        return [Completion("", score=float("{score}")) for _ in items]

@pytest.fixture(scope="module")
def model():
    return Scored(SubjectIdentity("scored"))
"""
GRADE = "item.grade(model.generate(item.prompt))"
FORGOTTEN = "test_it.py::test_toy?q*?: the test passed although item.grade(...) gave 0, *: write `assert item.grade(*"


def asking(lab: Any, body: str, more: str = "", tenths: int = 0) -> Any:
    lab.bank()
    lab.toy(tenths)
    lab.tests(QUESTION.format(body=body, more=more))
    return lab.run("-W", "ignore::pytest.PytestReturnNotNoneWarning")


@pytest.mark.parametrize("more", ["", ", samples=2", ')\n@pytest.mark.xfail(reason="so"'])
@pytest.mark.parametrize("body", [GRADE, f"item.grade('right'); {GRADE}"])
def test_a_question_that_does_not_assert(lab: Any, body: str, more: str) -> None:
    result = asking(lab, body, more)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(lab.asked) == 1
    result.stdout.fnmatch_lines([*(() if "xfail" in more else [f"ERROR toy: {FORGOTTEN}"]), "*it was given up*"])
    assert lab.outcomes() == [("test_gate", "ERROR")]
    (interview,) = lab.record["interviews"]
    assert fnmatch(interview["error"], FORGOTTEN)
    assert (interview["scored"], interview["stop"]) == (0, "GIVEN_UP")
    assert [line for path in lab.journals for line in path.read_text().splitlines() if '"score"' in line] == []


@pytest.mark.parametrize(
    "body",
    [
        "item.answer in model.generate(item.prompt)",
        "text = model.generate(item.prompt).strip(); print(len(text)); text == item.answer",
        "compare(model.generate(item.prompt), item.answer)",
    ],
)
def test_a_question_that_asserts_nothing(lab: Any, body: str) -> None:
    lab.bank()
    lab.toy(9)
    lab.tests(QUESTION.format(body=body, more="") + "def compare(text, answer):\n    return text == answer\n")
    assert lab.run().ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert fnmatch(interview["error"], "*: the test asserts nothing, so that every answer would count as right: *")
    assert interview["scored"] == 0


@pytest.mark.parametrize(
    "body",
    [
        "compare(model.generate(item.prompt), item.answer)",
        "check(model.generate(item.prompt), item.answer)",
        "np.testing.assert_equal(model.generate(item.prompt), item.answer)",
        "of = CHECKS['x']; of(model.generate(item.prompt), item.answer)",
        "CHECKS['x'](model.generate(item.prompt), item.answer)",
        "made().holds(model.generate(item.prompt), item.answer)",
        "rule = made(); rule.holds(model.generate(item.prompt), item.answer)",
        "request.getfixturevalue('check')(model.generate(item.prompt), item.answer)",
    ],
)
def test_a_question_that_another_asserts(lab: Any, body: str) -> None:
    lab.bank()
    lab.toy(9)
    helper = "import numpy as np\ndef compare(text, answer):\n    assert text == answer\n"
    helper += "CHECKS = {'x': compare}\nclass Rule: holds = staticmethod(compare)\ndef made(): return Rule()\n"
    fixture = "@pytest.fixture(scope='module')\ndef check(): return compare\n"
    lab.tests(
        QUESTION.format(body=body, more="").replace("item, model", "item, model, check, request") + helper + fixture
    )
    assert lab.run().ret == 0
    assert lab.outcomes() == [("test_gate", "PASS")]


@pytest.mark.parametrize("call", ["given(item, '')", "given(text='', item=item)"])
def test_a_helper_that_ends_before_it_grades(lab: Any, call: str) -> None:
    lab.bank()
    lab.toy(9)
    helper = "def given(item, text):\n    if text:\n        assert item.grade(text)\n"
    lab.tests(QUESTION.format(body=call, more="") + helper)
    assert lab.run().ret == 1
    (interview,) = lab.record["interviews"]
    assert (interview["statuses"], interview["scored"]) == ({"error": 2}, 0)


@pytest.mark.parametrize("answer", ["right", "wrong"])
def test_a_question_that_returns_instead(lab: Any, answer: str) -> None:
    result = asking(lab, f"return item.answer == {answer!r}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert interview["error"].endswith(
        "the test returns a value, which tells nothing: write `assert` before it, or item.score(...)"
    )
    assert interview["scored"] == 0


@pytest.mark.parametrize(
    "body",
    [
        "[assert_(item) for attempt in range(0) for assert_ in [lambda item: item.grade('right')]]",
        "for text in (): assert item.grade(text)",
        "if not item.prompt: item.score(1)",
    ],
)
def test_a_question_that_ends_before_it_grades(lab: Any, body: str) -> None:
    result = asking(lab, body)
    assert result.ret == 1
    (interview,) = lab.record["interviews"]
    assert (interview["statuses"], interview["scored"]) == ({"error": 2}, 0)
    assert "the test ended without item.grade(...) or item.score(...), which stand in it" in interview["error"]


def test_a_fault_of_grading_that_the_test_catches(lab: Any) -> None:
    asking(lab, "import contextlib\n    with contextlib.suppress(Exception):\n        assert item.grade(None)")
    (interview,) = lab.record["interviews"]
    assert (interview["statuses"], interview["scored"]) == ({"error": 2}, 0)


def test_a_question_with_a_score_of_its_own(lab: Any) -> None:
    judge = "judge = type('J', (), {'score': len, 'grade': len})"
    asking(lab, f"assert item.prompt or item.grade('x'); {judge}; assert judge.score(item.prompt)")
    (interview,) = lab.record["interviews"]
    assert set(interview["statuses"]) == {"ok"}


PARTLY = "item.item = __import__('dataclasses').replace(item.item, custom=lambda *_: 0.3); "


@pytest.mark.parametrize("body", ["assert item.grade('x')", "assert item.grade('x') > 0.2"])
def test_an_assertion_that_passes_a_fraction(lab: Any, body: str) -> None:
    result = asking(lab, PARTLY + body)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert "gave 0.3" in interview["error"]
    assert "write item.score(item.grade(...))" in interview["error"]
    assert interview["scored"] == 0


def test_a_fraction_that_is_scored(lab: Any) -> None:
    asking(lab, PARTLY + "item.score(item.grade('x'))")
    (interview,) = lab.record["interviews"]
    assert {one["score"] for one in interview["administrations"]} == {0.3}


def test_a_named_question_that_does_not_assert(lab: Any) -> None:
    asking(lab, GRADE)
    result = lab.run("test_it.py::test_toy[q3]", "-k", "q3")
    assert result.ret == 1
    result.stdout.fnmatch_lines([FORGOTTEN])


@pytest.mark.parametrize(
    ("body", "scores"),
    [
        (f"{GRADE}; assert item.grade('right')", {1.0}),  # the last grade counts
        (f"assert not {GRADE}; item.score(1)", {1.0}),
        (f"item.score({GRADE})", {0.0}),
        (f"assert {GRADE}", {0.0}),
    ],
)
def test_a_question_that_says_its_score(lab: Any, body: str, scores: set[float]) -> None:
    asking(lab, body)
    assert {a["score"] for a in lab.record["interviews"][0]["administrations"]} == scores
    assert lab.record["interviews"][0]["error"] == ""


@pytest.mark.parametrize(
    ("score", "body", "found"),
    [
        (0.0, "model.score(item)", "gave 0"),
        (0.1, "assert model.score(item)", "gave 0.1"),
        (float("nan"), "assert model.score(item)", "the score is nan"),
        (1.5, "item.score(model.score(item))", "the score is 1.5"),
    ],
)
def test_scores_that_a_model_knows(lab: Any, score: float, body: str, found: str) -> None:
    lab.bank()
    (lab.path / "conftest.py").write_text(SCORED.format(score=score))
    lab.tests(QUESTION.format(body=body, more=""))
    assert lab.run().ret != 0
    (interview,) = lab.record["interviews"]
    assert interview["scored"] == 0
    assert found in interview["error"]


def test_a_model_that_says_nothing_fails(lab: Any) -> None:
    lab.bank()
    lab.toy(fault="return ''")
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more=""))
    assert lab.run().ret == 1
    assert lab.record["interviews"][0]["statuses"] == {"empty": 16}
    assert lab.outcomes() == [("test_gate", "FAIL")]


def test_answers_of_an_earlier_run_are_graded_no_more(lab: Any) -> None:
    lab.bank()
    lab.toy(0, fault="if n == 9: pytest.exit('stop')")
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more=", stop='budget'"))
    lab.run()
    lab.toy(0)
    lab.run()
    assert lab.record["interviews"][0]["error"] == ""
    assert (lab.record["interviews"][0]["scored"], len(lab.asked)) == (20, 21)


@pytest.mark.parametrize(
    ("body", "kind"), [("item.grade(None)", "NoneType"), ("item.grade(b'right')", "bytes"), ("item.grade(3)", "int")]
)
def test_what_is_no_text_is_no_wrong_answer(lab: Any, body: str, kind: str) -> None:
    result = asking(lab, f"assert {body}")
    assert result.ret == 1
    (interview,) = lab.record["interviews"]
    assert (interview["statuses"], interview["scored"]) == ({"error": 2}, 0)
    assert interview["administrations"][0]["detail"].startswith(
        f"item.grade() got {kind}, expected the text of an answer (str): see what the model's generate() returns"
    )
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_a_number_is_what_a_numeric_grader_reads(lab: Any) -> None:
    lab.bank()
    path = lab.path / "toy.jsonl"
    path.write_text(path.read_text().replace('"answer": "right"', '"answer": "4", "grader": "numeric"'))
    lab.toy()
    lab.tests(QUESTION.format(body="assert item.grade(4) and item.grade(4.0)", more=""))
    assert lab.run().ret == 0


def test_what_is_no_text_in_toml(lab: Any) -> None:
    lab.bank()
    lab.toy(fault="return None")
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\nat_least = 0.5\n')
    assert lab.run().ret == 1
    assert "item.grade() got NoneType" in lab.record["interviews"][0]["error"]
    assert [outcome for _, outcome in lab.outcomes()] == ["ERROR"]


@pytest.mark.parametrize("outcome", ["FAIL", "INCONCLUSIVE"])
@pytest.mark.parametrize("body", ["{}", "return {}", "print({}.sentence)", "found = [{}, accuracy.at_least(0.1)]"])
def test_a_gate_that_does_not_assert(lab: Any, body: str, outcome: str) -> None:
    lab.bank()
    lab.toy(8)
    verdict = f"accuracy.at_least({0.99 if outcome == 'FAIL' else 0.75})"
    lab.tests(GATE.format(body=body.format(verdict), mark=""))
    result = lab.run("-W", "ignore::pytest.PytestReturnNotNoneWarning")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([f"{outcome} accuracy *; the test did not ask whether this holds: write `assert` *"])
    assert lab.outcomes()[0] == ("test_gate", outcome)


@pytest.mark.parametrize("body", ["assert accuracy", "assert adaptive_eval['toy']", "assert accuracy and 1"])
def test_a_gate_that_forgets_to_ask_for_a_verdict(lab: Any, body: str) -> None:
    lab.bank()
    lab.toy(0)
    lab.tests(GATE.format(body=body, mark=""))
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*is not a verdict and has no truth value: call a condition such as .at_least(0.6)"])
    assert lab.outcomes() == [("test_gate", "ERROR")]


@pytest.mark.parametrize("mark", ["@pytest.mark.skip(reason='no device')", ""])
def test_a_gate_that_was_skipped_gave_no_result(lab: Any, mark: str) -> None:
    lab.bank()
    lab.toy()
    body = "accuracy.at_least(0.1)" if mark else "pytest.skip('not today')"
    lab.tests(
        GATE.format(body=body, mark=mark) + "\ndef test_other(adaptive_eval):\n    assert lower(adaptive_eval)\n"
        "def lower(results):\n    return results['toy'].accuracy.at_least(0.2)\n"
    )
    result = lab.run()
    assert result.ret == 1
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(
        ["adaptive-eval: no result from test_it.py::test_gate (skipped: leave out by -k or -m what is not to count)"]
    )
    assert not lab.record.get("promote", False)
    assert lab.outcomes() == [("test_other", "PASS")]
    assert lab.run("-k", "not test_gate").ret == 0


def test_a_gate_that_asks_in_a_branch_that_is_not_taken(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        GATE.format(body="assert accuracy.at_least(0.1)", mark="")
        + """
def test_branch(adaptive_eval):
    if adaptive_eval["toy"].asked > 1000:
        assert adaptive_eval["toy"].accuracy.at_least(0.9)
def test_count(adaptive_eval):  # no gate at all
    assert adaptive_eval["toy"].asked == 30
"""
    )
    result = lab.run()
    assert result.ret == 1
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["the test asked for none of the verdicts that its source has: *left out by -k or -m"])
    assert lab.outcomes() == [("test_gate", "PASS"), ("test_branch", "ERROR")]


@pytest.mark.parametrize(
    "body",
    [
        "assert not accuracy.at_least(0.99)",
        "assert accuracy.at_least(0.99).outcome == 'FAIL'",
        "assert accuracy.at_least(0.99).to_json()['outcome'] == 'FAIL'",
        "assert accuracy.at_least(0.99) or True",
        "accuracy.at_least(0.1)",  # it holds
        "accuracy.at_least(0.75, on_inconclusive='pass')",
        "pytest.skip(str(accuracy.at_least(0.99)))",
    ],
)
def test_a_gate_that_says_what_it_wants(lab: Any, body: str) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(body=body, mark=""))
    assert lab.run().ret == 0
    assert len(lab.outcomes()) == 1


def test_a_gate_that_may_fail_may_forget(lab: Any) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(body="accuracy.at_least(0.99)", mark="@pytest.mark.xfail(strict=True, reason='so')"))
    result = lab.run()
    assert result.ret == 0
    result.assert_outcomes(passed=1, xfailed=1)


def test_a_verdict_keeps_what_a_plugin_made_of_it(lab: Any) -> None:
    lab.bank()
    lab.toy(
        8,
        more="""
        import dataclasses
        def pytest_adaptive_eval_verdict(verdict):
            assert not verdict
            return dataclasses.replace(verdict, notes=("seen",))
        """,
    )
    lab.tests(GATE.format(body="import dataclasses; assert not dataclasses.replace(accuracy.at_least(0.99))", mark=""))
    assert lab.run().ret == 0
    assert lab.record["gates"][0]["verdict"]["notes"] == ["seen"]
    lab.tests(GATE.format(body="accuracy.at_least(0.99)", mark=""))
    assert lab.run().ret == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("assert accuracy.at_least", "the test took a metric and asked for no verdict: call .at_least(...) of it"),
        ("accuracy", "the test took a metric and asked for no verdict: call .at_least(...) of it"),
        (
            "assert accuracy >= 0.6",
            "accuracy of toy is not a verdict and has no truth value: call a condition such as .at_least",
        ),
        ("assert adaptive_eval", "adaptive_eval is not a verdict and has no truth value: call a condition"),
        ("assert accuracy.at_least(0.99).outcome", "is neither true nor false: assert the verdict, or compare it"),
    ],
)
def test_a_gate_that_is_none(lab: Any, body: str, told: str) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(mark="", body=body))
    result = lab.run()
    assert result.ret == 1
    assert told in " ".join(result.stdout.str().split())
    assert lab.record["exit_status"] == 1


def test_a_test_that_reads_a_result_is_no_gate(lab: Any) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(mark="", body="assert accuracy == 30").replace('["toy"].accuracy', '["toy"].asked'))
    assert lab.run().ret == 0


def test_a_verdict_asked_for_when_the_test_is_over(lab: Any) -> None:
    lab.bank()
    lab.toy(1)
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=20)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.fixture
        def late(adaptive_eval):
            yield
            adaptive_eval["toy"].accuracy.at_least(0.6)
        def test_gate(late):
            pass
        """
    )
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*a verdict was asked for after the test was over*"])
    assert lab.record["exit_status"] == 1


@pytest.mark.parametrize(("by", "workers"), [("exit", ()), ("hook", ()), ("hook", ("-n2",))])
def test_a_run_that_failed_is_not_made_one_that_passed(lab: Any, by: str, workers: tuple[str, ...]) -> None:
    lab.bank()
    lab.toy(1, more="def pytest_sessionfinish(session): session.exitstatus = 0\n" if by == "hook" else "")
    late = "def test_late():\n    pytest.exit('over', returncode=0)\n" if by == "exit" else ""
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more="") + late)
    result = lab.run_with(workers)
    assert result.ret == 1
    assert lab.record["exit_status"] == 1
    assert lab.outcomes() != [("test_gate", "PASS")]
    result.stdout.fnmatch_lines(["adaptive-eval: tests failed, so that the run does not end with the exit status 0 *"])


def test_a_failed_test_beside_a_gate_that_passes_promotes_nothing(lab: Any) -> None:
    lab.bank()
    lab.toy(9)
    more = "def test_other():\n    assert False\ndef test_late():\n    pytest.exit('over', returncode=0)\n"
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more="") + more)
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert lab.record["exit_status"] == 1


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_run_that_finds_no_evaluation(lab: Any, workers: str) -> None:
    lab.tests("def test_plain(): pass")
    result = lab.spawn(workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["adaptive-eval: no evaluation was found, so nothing was judged: *"])
    assert lab.records == []
    lab.ini("addopts = --adaptive-eval\n")  # where it is not asked for this run
    assert lab.pytester.runpytest_subprocess(workers).ret == 0
    assert lab.spawn(workers, "-k", "plain").ret == 0


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("assert r.accuracy.at_least(0.5); strict(r)", 30),
        ("assert r.accuracy.at_least(0.5); strict(r.accuracy)", 30),
        ("assert r.accuracy.at_least(0.5); strict(adaptive_eval)", 30),
        ("assert r.accuracy.at_least(0.5); strict([r])", 30),
        ("assert r.accuracy.at_least(0.5); print(r, f'{r}', r.asked)", 16),
    ],
)
def test_a_gate_that_hands_its_result_on_asks_the_whole_budget(lab: Any, body: str, asked: int) -> None:
    lab.bank()
    lab.toy(9)
    lab.tests(
        f"""
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=30)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        def test_gate(adaptive_eval):
            r = adaptive_eval["toy"]
            {body}
        def strict(given):
            pass
        """
    )
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    assert interview["asked"] == asked
