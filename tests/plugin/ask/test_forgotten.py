"""What a test forgets to assert neither counts as right nor passes, and what is no text is no answer."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import pytest

from pytest_adaptive_eval import Item
from pytest_adaptive_eval.plugin.ask.question import AskedItem

QUESTION = """
import pytest
@pytest.mark.adaptive_eval("toy.jsonl", budget=20{more})
def test_toy(item, model):
    {body}
@pytest.mark.adaptive_gate("toy", at_least=0.3)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
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
from pytest_adaptive_eval.models.base import Completion, Model

class Scored(Model):
    def answer(self, items):
        return [Completion("", score=float("{score}")) for _ in items]

@pytest.fixture(scope="module")
def model():
    return Scored(SubjectIdentity("scored"))
"""
GRADE = "item.grade(model.generate(item.prompt))"
FORGOTTEN = "test_it.py::test_toy*: the test passed *although item.grade(...) gave 0, *: write `assert item.grade(*"


def asking(lab: Any, body: str, more: str = "", tenths: int = 0) -> Any:
    lab.bank()
    lab.toy(tenths)
    lab.tests(QUESTION.format(body=body, more=more))
    return lab.run("-W", "ignore::pytest.PytestReturnNotNoneWarning")


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("more", ["", ", samples=2", ')\n@pytest.mark.xfail(reason="so"'])
@pytest.mark.parametrize("body", [GRADE, f"item.grade('right'); {GRADE}"])
def test_a_question_that_does_not_assert(lab: Any, body: str, more: str) -> None:
    result = asking(lab, body, more)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lab.asked == []
    result.stdout.fnmatch_lines([*(() if "xfail" in more else [f"ERROR toy: {FORGOTTEN}"]), "*nothing could be asked*"])
    assert lab.outcomes() == [("test_gate", "ERROR")]
    (interview,) = lab.record["interviews"]
    assert fnmatch(interview["error"], FORGOTTEN)
    assert (interview["scored"], interview["stop"]) == (0, "UNASKED")
    assert lab.kept == 0


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["right", "wrong"])
def test_a_question_that_returns_instead(lab: Any, answer: str) -> None:
    result = asking(lab, f"return item.answer == {answer!r}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert interview["error"].endswith(
        "the test returns a value, which says nothing: write `assert` before it, or item.score(...)"
    )
    assert interview["scored"] == 0


PARTLY = "item.item = __import__('dataclasses').replace(item.item, custom=lambda *_: 0.3); "


@pytest.mark.parametrize("body", [f"assert {GRADE}", f"assert {GRADE} > 0.2"])
def test_an_assertion_that_passes_a_fraction(lab: Any, body: str) -> None:
    result = asking(lab, PARTLY + body)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (interview,) = lab.record["interviews"]
    assert "gave 0.3" in interview["error"]
    assert "write item.score(item.grade(...))" in interview["error"]
    assert interview["scored"] == 0


def test_a_fraction_that_is_scored(lab: Any) -> None:
    asking(lab, PARTLY + f"item.score({GRADE})")
    (interview,) = lab.record["interviews"]
    assert {one["score"] for one in interview["administrations"]} == {0.3}


def test_a_named_question_that_does_not_assert(lab: Any) -> None:
    asking(lab, GRADE)
    result = lab.run("test_it.py::test_toy[q3]", "-k", "q3")
    assert result.ret == 1
    result.stdout.fnmatch_lines([FORGOTTEN])


def test_no_gate_passes_within_a_floor_under_every_score(lab: Any) -> None:
    asking(lab, f"item.score(0.6 + {GRADE} / 4)")
    assert lab.outcomes() == [("test_gate", "INCONCLUSIVE")]
    assert ".60 is what other questions' answers get" in lab.record["gates"][0]["verdict"]["notes"][0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "scores"),
    [
        ("text = model.generate(item.prompt); item.grade('right'); assert item.grade(text)", {0.0}),  # the last counts
        (f"item.score({GRADE})", {0.0}),
        (f"assert {GRADE}", {0.0}),
    ],
)
def test_a_question_that_says_its_score(lab: Any, body: str, scores: set[float]) -> None:
    asking(lab, body)
    assert {a["score"] for a in lab.record["interviews"][0]["administrations"]} == scores
    assert lab.record["interviews"][0]["error"] == ""


@pytest.mark.fast_rows(1)
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
    assert lab.record["interviews"][0]["statuses"] == {"empty": 13}
    assert lab.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
def test_answers_of_an_earlier_run_are_graded_no_more(lab: Any) -> None:
    lab.bank()
    lab.toy(0, fault="if n == 9: pytest.exit('stop')")
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more=", stop='budget'"))
    lab.run()
    lab.toy(0)
    lab.run()
    assert lab.record["interviews"][0]["error"] == ""
    assert (lab.record["interviews"][0]["scored"], len(lab.asked)) == (20, 21)


@pytest.mark.fast_rows(1)
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


def test_a_number_is_what_a_numeric_grader_reads() -> None:
    asked = AskedItem(Item(id="a", prompt="?", answer="4", grader="numeric"))
    assert (asked.grade(4), asked.grade(4.0), asked.grade(5)) == (1.0, 1.0, 0.0)


@pytest.mark.slow
def test_what_is_no_text_in_toml(lab: Any) -> None:
    lab.bank()
    lab.toy(fault="return None")
    (lab.path / "adaptive-eval.toml").write_text('[[eval]]\nbank = "toy.jsonl"\n[[eval.gate]]\nat_least = 0.5\n')
    assert lab.run().ret == 1
    assert "item.grade() got NoneType" in lab.record["interviews"][0]["error"]
    assert [outcome for _, outcome in lab.outcomes()] == ["ERROR"]


#: Bodies of gates that leave out, swallow or evade the assertion of a verdict.
EVASIONS = {
    "forgotten": "{}",
    "returned": "return {}",
    "printed": "print({}.sentence)",
    "kept": "found = [{}, accuracy.at_least(0.1)]",
    "read": "assert {}.outcome in ('FAIL', 'INCONCLUSIVE')",
    "logged": "import logging; logging.info({}.outcome)",
    "denied": "assert not {}",
    "or_true": "assert {} or True",
    "raises": "with pytest.raises(AssertionError): assert {}",
    "caught": "import contextlib\n    with contextlib.suppress(AssertionError): assert {}",
    "json": "assert {}.to_json()['outcome'] != 'PASS'",
    "skipped": "pytest.skip(str({}))",
    "xfailed": "pytest.xfail(str({}))",
    "one_of_two": "assert accuracy.at_least(0.1) or {}\n    {}",
}


@pytest.mark.parametrize(("outcome", "verdict"), [("FAIL", "0.99"), ("INCONCLUSIVE", "0.75")])
def test_a_gate_whose_verdict_does_not_hold_fails_whatever_its_body_does(lab: Any, outcome: str, verdict: str) -> None:
    lab.bank()
    lab.toy(8)
    text = GATE.format(body="assert accuracy.at_least(0.1)", mark="")
    for name, body in EVASIONS.items():
        found = body.replace("{}", f"accuracy.at_least({verdict})")
        text += f"def test_{name}(adaptive_eval):\n    accuracy = adaptive_eval['toy'].accuracy\n    {found}\n"
    lab.tests(text)
    result = lab.run("-W", "ignore::pytest.PytestReturnNotNoneWarning")
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=len(EVASIONS))
    result.stdout.fnmatch_lines(
        [
            f"{outcome} accuracy *",
            "*verdicts do not hold); where one of them suffices, write `assert adaptive_eval.any_of(*",
        ]
    )
    by_gate = dict(lab.outcomes())
    assert by_gate.pop("test_gate") == "PASS"
    assert {f"test_{name}" for name in EVASIONS} == set(by_gate)


def test_a_gate_for_which_one_verdict_suffices(lab: Any) -> None:
    lab.bank()
    lab.toy(8)
    both = "accuracy.at_least(0.99), accuracy.at_least(0.1)"
    lab.tests(GATE.format(body=f"assert adaptive_eval.any_of({both})", mark=""))
    assert lab.run().ret == 0
    lab.tests(GATE.format(body="adaptive_eval.any_of(accuracy.at_least(0.99), accuracy.at_least(0.98))", mark=""))
    assert lab.run().ret == 1
    lab.tests(GATE.format(body="adaptive_eval.any_of(accuracy.at_least(0.1), True)", mark=""))
    result = lab.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*any_of takes verdicts, such as *"])


@pytest.mark.fast_rows(1)
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
def test_count(adaptive_eval):
    assert adaptive_eval["toy"].asked == 30
"""
    )
    result = lab.run()
    assert result.ret == 1
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["the test takes the fixture adaptive_eval and asked for no verdict: assert one, *"])
    assert lab.outcomes() == [("test_gate", "PASS"), ("test_branch", "ERROR"), ("test_count", "ERROR")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    ["accuracy.at_least(0.1)", "accuracy.at_least(0.75, on_inconclusive='pass')"],  # both hold
)
def test_a_gate_whose_verdict_holds_need_not_assert(lab: Any, body: str) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(body=body, mark=""))
    assert lab.run().ret == 0
    assert len(lab.outcomes()) == 1


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("threshold", [0.99, 0.1])
def test_a_gate_with_xfail_promotes_nothing(lab: Any, threshold: float) -> None:
    lab.bank()
    lab.toy(8)
    lab.tests(GATE.format(body=f"assert accuracy.at_least({threshold})", mark="@pytest.mark.xfail(reason='so')"))
    result = lab.run()
    assert result.ret == lab.record["exit_status"] == 1
    result.stdout.fnmatch_lines(["adaptive-eval: test_it.py::test_gate: the mark xfail takes no effect on a gate*"])


#: Gates that fail, and the outcomes that their record keeps.
FAILING = {
    "verdict": ("assert accuracy.at_least(0.99)", ["FAIL"]),
    "body": ("assert accuracy.at_least(0.1)\n    assert 1 == 2", ["PASS", "ERROR"]),
    "no verdict": ("assert 1 == 2", []),
}


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("name", FAILING)
def test_a_hook_that_skips_a_failed_gate_does_not_save_the_run(lab: Any, name: str) -> None:
    body, outcomes = FAILING[name]
    lab.bank()
    lab.toy(
        8,
        more="""
        import pytest
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            report = (yield).get_result()
            if report.failed:
                report.outcome, report.longrepr = "skipped", ("x", 1, "Skipped: later")
        """,
    )
    lab.tests(GATE.format(body=body, mark=""))
    result = lab.run()
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == lab.record["exit_status"] == 1
    assert [outcome for _, outcome in lab.outcomes()] == outcomes


@pytest.mark.slow
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
    lab.tests(GATE.format(body="accuracy.at_least(0.99)", mark=""))
    assert lab.run().ret == 1
    assert lab.record["gates"][0]["verdict"]["notes"] == ["seen"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("assert accuracy.at_least", "the test takes the fixture adaptive_eval and asked for no verdict: assert one"),
        ("accuracy", "the test takes the fixture adaptive_eval and asked for no verdict: assert one"),
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


@pytest.mark.slow
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
    result.stdout.fnmatch_lines(["adaptive-eval: tests failed, so the run does not end with the exit status 0 *"])


@pytest.mark.slow
def test_a_failed_test_beside_a_gate_that_passes_promotes_nothing(lab: Any) -> None:
    lab.bank()
    lab.toy(9)
    more = "def test_other():\n    assert False\ndef test_late():\n    pytest.exit('over', returncode=0)\n"
    lab.tests(QUESTION.format(body=f"assert {GRADE}", more="") + more)
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "PASS")]
    assert lab.record["exit_status"] == 1


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_gate_that_passed_after_other_tries_names_them(lab: Any) -> None:
    lab.bank()
    lab.toy(8)
    gate = GATE.format(body="assert accuracy.at_least(0.75)", mark="")
    lab.tests(gate.replace("budget=30", "budget=10"))
    assert lab.run().ret == 1
    lab.tests(gate.replace("budget=30", "budget=60"))
    result = lab.run("--adaptive-eval-seed=7")
    assert result.ret == 0
    (warning,) = lab.record["warnings"]
    tries = "INCONCLUSIVE (seed 0, 10 of 60 items)"
    assert warning.startswith(f"test_gate passed after 1 other run of it for this checkpoint within a day: {tries}")
    result.stdout.fnmatch_lines(["*test_gate passed after 1 other run*"])
    lab.toy(8, identity='"toy", "another"')
    assert lab.run("--adaptive-eval-seed=7").ret == 0
    assert lab.record["warnings"] == [], "another checkpoint"


@pytest.mark.slow
def test_a_hook_that_exits_with_a_status_of_its_own_keeps_it(lab: Any) -> None:
    lab.bank()
    lab.toy(9, more="def pytest_sessionfinish(): pytest.exit('done', returncode=3)\n")
    lab.tests(GATE.format(body="assert accuracy.at_least(0.5)", mark=""))
    assert lab.spawn().ret == 3
    assert lab.record["exit_status"] == 3


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("end", ["pytest.exit('done', returncode=0)", "sys.exit(0)", "sys.exit()"])
@pytest.mark.parametrize("hook", ["sessionfinish", "terminal_summary", "unconfigure"])
def test_no_hook_makes_a_failed_run_end_with_0(lab: Any, hook: str, end: str) -> None:
    lab.bank()
    lab.toy(0, more=f"@pytest.hookimpl(trylast=True)\ndef pytest_{hook}(): {end}\n")
    lab.tests(GATE.format(body="assert accuracy.at_least(0.5)", mark=""))
    assert lab.spawn().ret == 1
    assert lab.record["exit_status"] == 1


def test_a_hook_that_returns_0_for_the_whole_run_changes_no_failed_one(lab: Any) -> None:
    lab.bank()
    lab.toy(0, more="@pytest.hookimpl(wrapper=True)\ndef pytest_cmdline_main():\n    yield\n    return 0\n")
    lab.tests(GATE.format(body="assert accuracy.at_least(0.5)", mark=""))
    assert lab.spawn().ret == 1
