"""The Python API: marker, item, gates."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pytest_adaptive_eval.cat.policy import POLICIES


def test_pass(project: Any) -> None:
    result = project.run()
    assert result.ret == 0
    record = project.record
    (interview,) = record["interviews"]
    assert interview["nodeid"] == "test_it.py::test_toy[aeval:toy]"
    assert interview["subject"]["name"] == "toy"
    assert interview["asked"] == interview["scored"] == 30
    assert interview["stop"] == "BUDGET"
    assert len(interview["administrations"]) == len(project.asked) == 30
    assert [f"q{n}" for n in project.asked] == [a["item"] for a in interview["administrations"]]
    assert {(a["text"], a["score"]) for a in interview["administrations"]} == {("right", 1.0), ("wrong", 0.0)}
    (gate,) = record["gates"]
    assert (gate["name"], gate["interview"], gate["verdict"]["outcome"]) == ("test_gate", "toy", "PASS")
    assert (gate["file"], gate["line"]) == ("test_it.py", 8)
    assert record["exit_status"] == 0
    assert project.lines("loaded.txt") != []
    assert len(project.lines("loaded.txt")) == 1


@pytest.mark.parametrize(
    ("tenths", "target", "outcome"), [(9, 0.5, "PASS"), (9, 0.99, "FAIL"), (9, 0.88, "INCONCLUSIVE")]
)
def test_the_verdict_is_the_message(lab: Any, tenths: int, target: float, outcome: str) -> None:
    lab.bank()
    lab.toy(tenths)
    lab.tests(
        f"""
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least={target})
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = lab.run()
    assert result.ret == (0 if outcome == "PASS" else 1)
    assert lab.outcomes() == [("test_gate", outcome)]
    if outcome != "PASS":
        result.stdout.fnmatch_lines([f"E *assert {outcome} accuracy .* required, 95 %, 30 of 60 items*"])
        result.stdout.fnmatch_lines([f"FAILED test_it.py::test_gate - *assert {outcome} accuracy*"])


def test_error(project: Any) -> None:
    project.toy(fault="raise RuntimeError('no device')")
    result = project.run()
    assert result.ret == 1
    assert project.outcomes() == [("test_gate", "ERROR")]
    (interview,) = project.record["interviews"]
    assert interview["error"] == "2 of the answers failed, more than 5 % of the budget; the last: " + (
        "RuntimeError: no device"
    )
    result.stdout.fnmatch_lines(
        ["ERROR toy: 2 of the answers failed, more than 5 % of the budget; the last: RuntimeError: no device"]
    )
    result.stdout.fnmatch_lines(
        ["E *assert ERROR accuracy >= .50 required, 95 %, 2 of 60 items; 2 of the answers failed*"]
    )


@pytest.mark.slow
def test_three_errors_in_a_row(lab: Any) -> None:
    lab.bank(n=300)
    lab.toy(fault="if n > 3: raise OSError(f'no answer {n}')")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=200)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == 1
    (interview,) = lab.record["interviews"]
    assert interview["error"].startswith("3 answers in a row failed; the last: OSError: no answer 6")
    assert (interview["asked"], interview["scored"], interview["stop"]) == (6, 3, "ERRORS")


def test_a_few_errors_widen_the_interval(lab: Any) -> None:
    lab.bank(n=100)
    lab.toy(fault="if n in (5, 20): raise OSError('no answer')")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=60, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    assert lab.run().ret == 1  # two questions are errors
    (gate,) = lab.record["gates"]
    assert gate["verdict"]["outcome"] == "PASS"
    assert "2 answers have no score" in gate["verdict"]["sentence"]
    assert lab.record["interviews"][0]["scored"] == 58


def test_fractions_and_statuses(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        from pytest_adaptive_eval import Unscored
        @pytest.mark.adaptive_eval("toy.jsonl", budget=60)
        def test_toy(item, model):
            said = model.generate(item.prompt) in ("right", "wrong")
            number = int(item.id[1:])
            if number % 3 == 0:
                item.score(0.25 * said)
            elif number % 3 == 1:
                raise Unscored("refused", "would not say", "I cannot")
            else:
                item.score(said)
                assert item.answer != "right"
        """
    )
    result = lab.run("-v")
    assert result.ret == 0
    (interview,) = lab.record["interviews"]
    found = {
        int(a["item"][1:]) % 3: (a["status"], a["score"], a["text"], a["detail"]) for a in interview["administrations"]
    }
    assert found == {
        0: ("ok", 0.25, "right", ""),
        1: ("refused", 0.0, "I cannot", "would not say"),
        2: ("ok", 0.0, "right", ""),
    }
    assert interview["statuses"] == {"ok": 40, "refused": 20}
    result.stdout.fnmatch_lines(["*?q*? SCORE 0.25 *", "*?q*? WRONG *"], consecutive=False)


def test_a_score_out_of_range_is_an_error(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl")
        def test_toy(item, model):
            model.generate(item.prompt)
            item.score(float("nan"))
        """
    )
    assert lab.run().ret == 1
    assert "a score lies in [0, 1]" in lab.record["interviews"][0]["error"]


def test_several_interviews_and_gates(lab: Any) -> None:
    for name in ("one", "two"):
        lab.bank(name)
    lab.toy()
    lab.tests(
        """
        import pytest
        def test_both(adaptive_eval):
            for name in ("one", "second"):
                assert adaptive_eval[name].accuracy.at_least(0.5)
        @pytest.mark.adaptive_eval(bank="one.jsonl", budget="50%")
        def test_one(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("one", at_least=0.99)
        def test_first(adaptive_eval):
            assert adaptive_eval.verdicts
        class TestClass:
            @pytest.mark.adaptive_eval(bank="two.jsonl", name="second", budget=20, seed=3)
            def test_two(self, item, model):
                assert self.answered(item, model)
            def answered(self, item, model):
                return item.grade(model.generate(item.prompt))
            @pytest.mark.adaptive_gate("test_it.py::TestClass::test_two[aeval:two]", at_least=0.5)
            def test_second(self, adaptive_eval):
                assert adaptive_eval.verdicts
        def test_plain():
            pass
        """
    )
    result = lab.run("-v")
    assert result.ret == 1
    assert [i["name"] for i in lab.record["interviews"]] == ["one", "second"]
    assert lab.outcomes() == [
        ("test_first", "INCONCLUSIVE"),
        ("test_both", "PASS"),
        ("test_both", "PASS"),
        ("test_second", "PASS"),
    ]
    assert [gate["interview"] for gate in lab.record["gates"]] == ["one", "one", "second", "second"]
    assert len(lab.lines("loaded.txt")) == 1
    result.stdout.fnmatch_lines(
        ["*::test_one?aeval:one? PASSED*", "*::test_first FAILED*", "*::test_two?aeval:two? PASSED*", "*::test_both *"]
    )


@pytest.mark.slow
def test_stacked_parametrization(lab: Any) -> None:
    lab.bank("my-bank 1")
    lab.toy()
    text = """
        import pytest
        @pytest.mark.parametrize("style", ["a", "b"])
        @pytest.mark.adaptive_eval(bank="my-bank 1.jsonl", budget=20)
        @pytest.mark.parametrize("n", [1])
        def test_toy(item, model, style, n):
            assert n == 1
            text = model.generate(item.prompt)
            assert item.grade(text if style == "a" else text.replace("wrong", "right"))
        def accurate(style):
            name = f"test_it.py::test_toy[aeval:my-bank_1-1-{style}]"
            return pytest.param(style, marks=pytest.mark.adaptive_gate(name, at_least=0.99))
        @pytest.mark.parametrize("style", [accurate("a"), accurate("b")])
        def test_gate(adaptive_eval, style):
            assert adaptive_eval.verdicts
        """
    lab.tests(text)
    result = lab.run("-v")
    assert [i["nodeid"][-2:-1] for i in lab.record["interviews"]] == ["a", "b"]
    assert lab.outcomes() == [("test_gate[a]", "FAIL"), ("test_gate[b]", "INCONCLUSIVE")]
    assert [gate["interview"] for gate in lab.record["gates"]] == ["my-bank 1[a]", "my-bank 1[b]"]
    result.stdout.fnmatch_lines(["test_it.py::test_toy?q*-1-a? RIGHT *"])
    assert len(lab.lines("loaded.txt")) == 1
    lab.tests(text.replace('f"test_it.py::test_toy[aeval:my-bank_1-1-{style}]"', '"my-bank 1"'))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_gate?a?: adaptive_eval?'my-bank 1'? could mean *-a], *-b]: name the*"])


@pytest.mark.slow
def test_a_path_is_a_bank_and_a_gate_may_use_a_fixture(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        from pathlib import Path
        @pytest.fixture
        def result(adaptive_eval):
            return adaptive_eval["toy"]
        def test_gate(result):
            assert result.accuracy.at_least(0.5)
        @pytest.mark.adaptive_eval(Path(__file__).parent / "toy.jsonl", budget=30)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == 0
    assert lab.outcomes() == [("test_gate", "PASS")]


def test_fixtures_see_questions_and_no_placeholder(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.fixture(scope="module")
        def once():
            with open("once.txt", "a") as file:
                file.write("once\\n")
        @pytest.fixture(autouse=True)
        def prompt(item):
            return item.prompt
        @pytest.mark.adaptive_eval("toy.jsonl", budget=10)
        def test_toy(prompt, once, model):
            assert model.generate(prompt) == "right"
        """
    )
    assert lab.run("-W", "error").ret == 0
    assert lab.lines("once.txt") == ["once"]
    assert lab.record["interviews"][0]["asked"] == 10


@pytest.mark.slow
def test_marks_reach_the_questions(project: Any) -> None:
    project.toy(
        more="""
        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker("late")

        def pytest_runtest_call(item):
            log("marks.txt", [m.name for m in item.iter_markers() if m.name in ("early", "late", "timeout")])
        """
    )
    project.ini("markers =\n    early\n    late")
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("def test_toy", "@pytest.mark.early\ndef test_toy"))
    assert project.run("--strict-markers").ret == 0
    lines = project.lines("marks.txt")
    assert lines[:30] == ["['early', 'late']"] * 30
    assert lines[-1] == "['late']"


def test_skip_marks_skip_the_interview_and_void_its_gates(project: Any) -> None:
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("def test_toy", "@pytest.mark.skip(reason='no device')\ndef test_toy"))
    result = project.run()
    result.assert_outcomes(failed=1, skipped=2)
    assert project.asked == []
    assert project.outcomes() == [("test_gate", "ERROR")]
    assert project.record["interviews"][0]["error"] == "skipped: no device"
    project.tests(path.read_text().replace("@pytest.mark.skip(reason='no device')", ""))
    project.toy(setup="pytest.skip('no model')")
    result = project.run("-k", "toy")
    assert result.ret == 0
    result.assert_outcomes(skipped=2, deselected=1)
    assert project.record["interviews"][0]["error"] == "skipped: no model"


@pytest.mark.slow
def test_questions_that_skip_have_no_answer(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=60)
        def test_toy(item, model):
            pytest.skip("not today")
        """
    )
    assert lab.run().ret == 1
    interview = lab.record["interviews"][0]
    assert interview["statuses"] == {"not_run": 3}
    assert interview["error"].endswith("skipped: not today")


def test_a_gate_that_fails_for_another_reason_is_recorded(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=30)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        def test_before(adaptive_eval):
            assert adaptive_eval["toy"].asked == 31
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_after(adaptive_eval):
            assert adaptive_eval.verdicts
            raise RuntimeError("later")
        """
    )
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_before", "ERROR"), ("test_after", "PASS"), ("test_after", "ERROR")]
    assert lab.record["gates"][0]["verdict"]["sentence"].startswith("ERROR assert 30 == 31")
    assert lab.record["gates"][2]["verdict"]["sentence"] == "ERROR RuntimeError: later"


def test_a_bank_of_one_item_is_asked(lab: Any) -> None:
    lab.bank(n=1)
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget="100%")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == 0
    assert [answer["item"] for answer in lab.record["interviews"][0]["administrations"]] == ["q0"]


def test_batches_are_answered_in_one_call(lab: Any) -> None:
    lab.bank()
    (lab.path / "conftest.py").write_text(
        """
import pytest
from pytest_adaptive_eval import Model, SubjectIdentity
from pytest_adaptive_eval.models.base import Completion

class Batch(Model):
    def answer(self, items):
        with open("batches.txt", "a") as file:
            file.write(f"{len(items)}\\n")
        return [Completion("right") for _ in items]

@pytest.fixture(scope="session")
def model():
    return Batch(SubjectIdentity("batch", "hash"))
"""
    )
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=10, batch=4)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    assert lab.run().ret == 0
    assert lab.lines("batches.txt") == ["4", "4", "2"]
    assert lab.record["interviews"][0]["asked"] == 10


def test_calibrated_banks_have_abilities(lab: Any) -> None:
    lab.calibrated(n=200)
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.bank", budget=60)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", metric="ability", at_least=-1)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    assert lab.run().ret == 0
    (interview,) = lab.record["interviews"]
    assert len(interview["theta"]) == 1
    first, last = interview["administrations"][0], interview["administrations"][-1]
    assert first["theta_before"] == [0.0]
    assert last["theta_after"] == interview["theta"]
    answers = interview["administrations"]
    for earlier, later in pairwise(answers):  # of one batch, or of two
        same_batch = later["theta_before"] == earlier["theta_before"]
        assert later["theta_before"] == earlier["theta_before" if same_batch else "theta_after"]
    assert len({answer["theta_after"][0] for answer in answers}) > 1
    assert first["reason"] == f"drawn by spread, {POLICIES['decide'].floor:.0%} uniformly"


@pytest.mark.slow
def test_another_seed_asks_other_questions(project: Any) -> None:
    project.run("--adaptive-eval-seed=1")
    project.run("--adaptive-eval-seed=1")
    project.run("--adaptive-eval-seed=2")
    project.run("--adaptive-eval-seed=2", "--adaptive-eval-budget=5")
    asked = [[a["item"] for a in r["interviews"][0]["administrations"]] for r in project.records]
    assert asked[0] == asked[1]
    assert asked[1] != asked[2]
    assert asked[3] == asked[2][:5]
    assert project.records[3]["interviews"][0]["policy"]["seed"] == 2
