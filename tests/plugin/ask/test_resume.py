"""A run that ended before its time goes on where it stopped; no other run shares its answers."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import Any

import pytest

WHOLE = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=60, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""
KEPT = "adaptive-eval: answers are kept: the same command goes on from them (--adaptive-eval-fresh asks again)"
INTERRUPT = "if len((HERE / 'asked.txt').read_text().split()) == 12: raise KeyboardInterrupt"


def verdict(lab: Any) -> str:
    return str(lab.record["gates"][0]["verdict"]["sentence"])


def test_control_c_and_on_again(project: Any, comparable: Any) -> None:
    project.run()
    whole = comparable(project.record, "resumed")
    (project.path / "asked.txt").unlink()
    project.toy(fault=INTERRUPT)
    result = project.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(project.journals) == 1
    result.stdout.fnmatch_lines([KEPT])
    project.toy()
    result = project.run()
    assert result.ret == 0
    result.stdout.no_fnmatch_line(KEPT)
    assert len(project.asked) == 31  # the one in flight is asked again
    assert comparable(project.record, "resumed") == whole
    resumed = [a["resumed"] for a in project.record["interviews"][0]["administrations"]]
    assert resumed == [True] * 11 + [False] * 19
    assert project.journals == []


@pytest.mark.slow
def test_finished_interviews_of_an_interrupted_run_are_kept(lab: Any) -> None:
    for name in ("one", "two"):
        lab.bank(name)
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("one.jsonl", budget=8)
        def test_one(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_eval("two.jsonl", budget=8)
        def test_two(item, model):
            assert item.grade(model.generate(item.prompt))
        """
    )
    lab.toy(fault=INTERRUPT)
    assert lab.run().ret == pytest.ExitCode.INTERRUPTED
    assert [i["name"] for i in lab.record["interviews"]] == ["one"]
    assert lab.record["missing"] == ["test_it.py::test_two[aeval:two]"]
    lab.toy()
    assert lab.run().ret == 0
    assert len(lab.asked) == 17
    assert lab.journals == []


def test_a_finished_run_is_not_reused(project: Any) -> None:
    assert project.run().ret == 0
    assert project.run().ret == 0
    assert len(project.asked) == 60


def test_answers_that_cannot_be_read_are_asked_anew(project: Any) -> None:
    choices = {"choices": ["right", "left"], "meta": {"choices_shown": False}}
    items = [{**item, **choices, "grader": "choice", "answer": "A"} for item in project.items()]
    (project.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    project.toy(fault="return 'I would rather not say'")
    result = project.run()
    assert result.ret == 1
    assert "30 of 30 answers hold no answer at all" in project.record["interviews"][0]["error"]
    result.stdout.no_fnmatch_line(KEPT)
    assert len(project.record["interviews"][0]["administrations"]) == 30
    project.toy()
    assert project.run().ret == 0
    assert len(project.asked) == 60


@pytest.mark.slow
def test_fresh_starts_anew(project: Any) -> None:
    project.toy(fault=INTERRUPT)
    project.run()
    project.toy()
    assert project.run("--adaptive-eval-fresh").ret == 0
    assert len(project.asked) == 12 + 30


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    "change",
    [
        {"identity": '"toy", "another"'},
        {"identity": '"toy", "hash", {"temperature": 1}'},
        {"identity": '"toy", ""'},
        {"args": ("--adaptive-eval-seed=1",)},
    ],
)
def test_another_interview_shares_nothing(project: Any, change: dict[str, Any]) -> None:
    project.toy(fault=INTERRUPT)
    project.run()
    project.toy(**({"identity": change["identity"]} if "identity" in change else {}))
    assert project.run(*change.get("args", ())).ret == 0
    assert not any(a["resumed"] for a in project.record["interviews"][0]["administrations"])


@pytest.mark.slow
def test_who_is_not_known_leaves_no_journal(project: Any) -> None:
    project.toy(fault=INTERRUPT, identity='"toy"')
    project.run().stdout.no_fnmatch_line(KEPT)
    assert project.journals == []
    project.toy(identity='"toy"')
    project.run()
    assert len(project.asked) == 12 + 30


def test_a_model_without_identity_leaves_no_journal(project: Any) -> None:
    project.tests(
        """
        import pytest
        @pytest.fixture(scope="session")
        def model():
            return lambda prompt: "right"
        """,
        "conftest",
    )
    path = project.path / "test_it.py"
    path.write_text(path.read_text().replace("model.generate", "model"))
    assert project.run().ret == 0
    assert project.record["interviews"][0]["subject"]["name"] == "<lambda>"
    assert not project.record["interviews"][0]["journal"]


@pytest.mark.slow
def test_errors_are_asked_again(project: Any) -> None:
    project.toy(fault="if n > 9: raise OSError('down')")
    assert project.run().ret == 1
    assert len(project.journals) == 1
    project.toy()
    assert project.run().ret == 0
    assert len(project.asked) == 9 + 2 + 21


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("batch", [1, 5])
def test_kill_9(lab: Any, comparable: Any, batch: int) -> None:
    lab.bank()
    lab.toy()
    text = f"""
        import pytest
        @pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, batch={batch})
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    lab.tests(text)
    lab.run()
    whole = comparable(lab.record, "resumed")
    (lab.path / "asked.txt").unlink()
    lab.toy(fault="if n == 12: os.kill(os.getpid(), signal.SIGKILL)")
    start = time.monotonic()
    assert lab.spawn().ret == -signal.SIGKILL
    assert time.monotonic() - start < 60
    assert len(lab.records) == 1
    lab.toy()
    assert lab.run().ret == 0
    assert comparable(lab.record, "resumed") == whole
    assert len(lab.asked) <= 30 + batch


@pytest.mark.slow
def test_another_process_at_the_same_journal(project: Any) -> None:
    """Two runs of one interview at a time: the second is told, and disturbs nothing."""
    project.autoload = True  # of the process within
    project.toy(
        fault="""
        if n == 3:
            import subprocess
            command = [sys.executable, "-m", "pytest", "--adaptive-eval", "-p", "no:cacheprovider", "-k", "toy"]
            if "INNER" not in os.environ:
                done = subprocess.run(command, env={**os.environ, "INNER": "1"}, capture_output=True, text=True)
                (HERE / "inner.txt").write_text(f"{done.returncode}\\n{done.stdout}")
        """
    )
    assert project.run().ret == 0
    first, *rest = project.lines("inner.txt")
    assert first == "4"
    assert any("another process is writing this journal" in line for line in rest)


ASKING = """
import helper
import pytest
from helper import prompt_of
SHOT = "{shot}"
@pytest.mark.adaptive_eval("toy.jsonl", budget=20, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(SHOT + prompt_of(item)))
def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.{gate}
"""
HELPER = """
def prompt_of(item):
    return "{helper}" + plain(item)
def plain(item):
    return {plain}
"""


def asking(
    lab: Any, *, shot: str = "", helper: str = "", plain: str = "item.prompt", gate: str = "at_least(0.1)"
) -> None:
    lab.tests(ASKING.format(shot=shot, gate=gate))
    lab.tests(HELPER.format(helper=helper, plain=plain), name="helper")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    ("change", "resumed"),
    [
        ({}, 9),
        ({"gate": "at_least(0.2)"}, 9),  # which is no part of the question
        ({"shot": "Q: "}, 0),
        ({"helper": "Q: "}, 0),
        ({"plain": "item.prompt + ''"}, 9),  # the same request
    ],
)
def test_an_answer_is_kept_for_the_request_that_got_it(lab: Any, change: dict[str, str], resumed: int) -> None:
    lab.bank()
    lab.toy(fault="if n == 10: pytest.exit('stop')")
    asking(lab)
    lab.run()
    lab.toy()
    asking(lab, **change)
    assert lab.run().ret == 0
    assert sum(bool(a.get("resumed")) for a in lab.record["interviews"][0]["administrations"]) == resumed


def test_a_grader_that_changed_grades_anew(lab: Any) -> None:
    lab.bank()
    path = lab.path / "toy.jsonl"
    path.write_text(path.read_text().replace('"answer": "right"', '"answer": "right", "grader": "python:mine:grade"'))
    lab.ini("adaptive_eval_graders = mine\n")
    lab.toy(fault="if n == 10: pytest.exit('stop')")
    for text in ("1.0", "0.0"):
        lab.tests(f"def grade(answer, item):\n    return {text}\n", name="mine")
        lab.tests(
            ASKING.format(shot="", gate="at_least(0.1)")
            .replace("import helper", "")
            .replace("from helper import prompt_of", "prompt_of = lambda item: item.prompt")
        )
        assert lab.run().ret != 0
        lab.toy()
    (interview,) = lab.record["interviews"]
    assert {a["score"] for a in interview["administrations"]} == {0.0}


@pytest.mark.slow
def test_a_baseline_of_other_prompts_is_refused(lab: Any) -> None:
    lab.bank()
    lab.toy()
    asking(lab)
    assert lab.run("--adaptive-eval-record=base.json").ret == 0
    asking(lab, shot="Q: ")
    test = ASKING.format(shot="Q: ", gate="at_least(0.1)")
    start = test.index("def test_gate")
    lab.tests(
        test[:start]
        + '@pytest.mark.adaptive_gate("toy", not_worse_than="baseline", margin=0.2)\n'
        + "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    )
    result = lab.run("--adaptive-eval-baseline=base.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "changed since the baseline was recorded" in " ".join(result.stdout.str().split())


def test_an_assertion_of_the_model_is_no_wrong_answer(lab: Any) -> None:
    lab.bank()
    lab.toy(fault="assert n < 0, 'HTTP 500'")
    lab.tests()
    assert lab.run().ret == 1
    (interview,) = lab.record["interviews"]
    assert (interview["statuses"], interview["scored"]) == ({"error": 2}, 0)
    assert "an assertion of the model or the grader failed: HTTP 500" in interview["error"]


@pytest.mark.slow
def test_a_long_message_of_an_assertion_is_cut(lab: Any) -> None:
    lab.bank()
    lab.toy(fault="assert n < 0, 'down ' * 100")
    lab.tests()
    lab.run()
    (interview,) = lab.record["interviews"]
    said = "an assertion of the model or the grader failed: " + ("down " * 100)[:200]
    assert interview["administrations"][0]["detail"] == said


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n2",)])
def test_a_pattern_that_does_not_end_is_an_error_that_a_resumed_run_does_not_meet_again(
    lab: Any, workers: tuple[str, ...]
) -> None:
    items = lab.items()
    items[3] |= {"grader": "regex", "answer": "(x+x+)+y"}
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    stuck = "if number == 3: return 'x' * 20_000\n"
    lab.toy(fault=stuck + "if n == 50: pytest.exit('stop')")
    lab.tests(WHOLE)
    lab.run_with(workers)
    assert lab.asked.count("3") == 1
    lab.toy(fault=stuck)
    result = lab.run_with(workers)
    assert result.ret != 0  # an error is an error in the resumed run too
    assert lab.asked.count("3") == 1
    (interview,) = lab.record["interviews"]
    (asked,) = [a for a in interview["administrations"] if a["item"] == "q3"]
    assert (asked["status"], asked["score"], asked["resumed"]) == ("error", None, True)
    assert "item 'q3': the search for its pattern '(x+x+)+y' did not end within 2 s" in asked["detail"]
    assert interview["statuses"] == {"ok": 59, "error": 1}


def test_a_grader_that_does_not_return_is_an_error_of_its_item(lab: Any) -> None:
    items = lab.items()
    items[3] |= {"grader": "python:mine:grade"}
    (lab.path / "toy.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    lab.ini("adaptive_eval_graders = mine\n")
    lab.tests("def grade(item, answer):\n    while True: pass\ngrade.timeout = 0.2\n", name="mine")
    lab.toy()
    lab.tests(WHOLE)
    assert lab.run().ret != 0
    (interview,) = lab.record["interviews"]
    assert interview["statuses"] == {"ok": 59, "error": 1}
    (asked,) = [a for a in interview["administrations"] if a["item"] == "q3"]
    assert "item 'q3': its grader 'python:mine:grade' did not return within 0.2 s" in asked["detail"]
