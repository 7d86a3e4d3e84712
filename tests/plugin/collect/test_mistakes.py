"""Mistakes of the user: exit code 4, a sentence that says where and what to do, and nothing written."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest


def refused(lab: Any, *messages: str, args: tuple[str, ...] = ()) -> None:
    """The run ends with exit code 4 and these lines, before anything is asked or written."""
    result = lab.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len(result.errlines) < 12, "no traceback"
    for message in messages:
        result.stderr.fnmatch_lines([message])
    told = [line for line in result.errlines if line and not line.startswith(("ERROR: usage: ", "  "))]
    assert len(told) == len(messages), "each mistake is told once"
    assert lab.asked == []
    assert not (lab.path / ".adaptive-eval").exists()


@pytest.mark.parametrize(
    ("fixture", "call", "status", "error"),
    [
        (
            "@pytest.fixture(scope='session')\ndef model():\n    from pytest_adaptive_eval import CallableModel\n"
            "    return CallableModel(lambda prompt: 'yes', name='yes', checkpoint='1')\n",
            "model(item.prompt)",
            pytest.ExitCode.TESTS_FAILED,
            "*TypeError: a model is not called by itself: write model.generate(item.prompt)*",
        ),
        (
            "@pytest.fixture(scope='session')\ndef model():\n    return 'step-4000'\n",
            "model.generate(item.prompt)",
            pytest.ExitCode.USAGE_ERROR,
            "*the fixture model returned the text 'step-4000', expected a model: return load_model('step-4000')*",
        ),
    ],
)
def test_a_model_that_cannot_be_asked_so_is_an_error_with_what_to_write(
    lab: Any, fixture: str, call: str, status: pytest.ExitCode, error: str
) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        f"import pytest\n{fixture}\n@pytest.mark.adaptive_eval('toy.jsonl')\ndef test_toy(item, model):\n"
        f"    assert item.grade({call})\n"
    )
    result = lab.run()
    assert result.ret == status
    result.stdout.fnmatch_lines([error])
    # in the report of the evaluation and in its row; pytest's summary has it where the terminal is wide enough
    report, _, _ = result.stdout.str().partition("short test summary info")
    assert report.count("1 of the answers failed") <= 2


GATE = (
    "@pytest.mark.adaptive_gate('toy', at_least=0.5)\n"
    "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
)


def marked(lab: Any, marker: str, signature: str = "item, model", more: str = "") -> None:
    lab.tests(
        f"import pytest\n{more}\n@pytest.mark.adaptive_eval({marker})\ndef test_toy({signature}):\n"
        "    assert item.grade(model.generate(item.prompt))\n"
    )


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('"none.jsonl"', "no bank at *none.jsonl: give a folder NAME.bank or a JSONL file of items"),
        ("", "bank is missing; name a bank folder*"),
        ('"toy.jsonl", bank="toy.jsonl"', "the marker adaptive_eval takes one bank and keywords, got *"),
        ('"toy.jsonl", "toy.jsonl"', "the marker adaptive_eval takes one bank and keywords, got *"),
        ('"toy.jsonl", budgett=3', "unknown setting 'budgett'; did you mean 'budget'?"),
        ('"toy.jsonl", colour=3', "unknown setting 'colour'; known are name, bank, *"),
        ('"toy.jsonl", budget=0', "budget 0: the bank has 60 items, so a count lies in 1 ... 60"),
        ('"toy.jsonl", budget=61', "budget 61: the bank has 60 items, so a count lies in 1 ... 60"),
        ('"toy.jsonl", budget=0.5', "budget is 0.5, expected a whole number or text (a share is written in quotes*"),
        ('"toy.jsonl", budget=True', "budget is True, expected a whole number or text*"),
        ('"toy.jsonl", budget="0%"', "budget is '0%', expected a share above 0% and at most 100%"),
        ('"toy.jsonl", budget="150%"', "budget is '150%', expected a share above 0% and at most 100%"),
        ('"toy.jsonl", budget="some"', "budget 'some': write a count such as 50 or a share*"),
        (
            '"toy.jsonl", selector="best"',
            "selector 'best' is not known; known are *, or install a plugin*",
        ),
        ('"toy.jsonl", selector="spread"', "selector 'spread' needs a calibrated bank, and 'toy' has no parameters*"),
        ('"toy.jsonl", stop=0.3', "a standard error needs an ability, and the bank 'toy' has no parameters; *"),
        (
            '"toy.jsonl", policy="guess"',
            "policy 'guess' is not known; known are estimate, form, decide, fixed-form, autojudger-paper, a2-judger*",
        ),
        (
            '"toy.jsonl", stop="never"',
            "stop is 'never', expected 'decision', 'budget' or a standard error",
        ),
        (
            '"toy.jsonl", policy="fixed-form", seed=3, floor=1',
            "floor does not go with a fixed form, which is drawn uniformly and asked in full*",
        ),
        (
            '"toy.jsonl", policy="fixed-form", stop="decision"',
            "stop does not go with a fixed form, which is drawn uniformly and asked in full*",
        ),
        ('"toy.jsonl", model="m"', "model is for TOML: a marker's model is the fixture, *"),
        ('"toy.jsonl", floor=2', "floor is 2, expected a share of uniform draws in ?0, 1?"),
        ('"toy.jsonl", batch=0', "batch is 0, expected a whole number of at least 1"),
        ('"toy.jsonl", seed=-1', "seed is -1, expected a whole number of at least 0"),
    ],
)
def test_marker(lab: Any, marker: str, message: str) -> None:
    lab.bank()
    lab.toy()
    marked(lab, marker, more=GATE)
    refused(lab, f"ERROR: */test_it.py:*: test_toy*: {message}")


@pytest.mark.slow
def test_a_named_test_with_a_mistake(lab: Any) -> None:
    lab.toy()
    marked(lab, '"none.jsonl"')
    refused(lab, "ERROR: */test_it.py:3: test_toy*: no bank at *", args=("test_it.py::test_toy",))


def test_every_mistake_is_told_at_once(lab: Any) -> None:
    lab.toy()
    marked(lab, '"none.jsonl"')
    (lab.path / "x.eval.toml").write_text("")
    refused(lab, "*/test_it.py:3: test_toy*: no bank at *", "*x.eval.toml: no evaluation*")


def test_other_mistakes_stay(lab: Any) -> None:
    """A gate whose evaluations are all there is judged on its own."""
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl"', more=GATE.replace("at_least=0.5", "above='nobody'"))
    (lab.path / "x.eval.toml").write_text("")
    refused(lab, "ERROR: *x.eval.toml: no evaluation*", "test_it.py::test_gate: the bank 'toy' has no reference *")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("args", [(), ("-n1",)])
def test_a_page_that_could_not_be_written(project: Any, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...]) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    message = 'ERROR: the HTML report needs jinja2: pip install "pytest-adaptive-eval[[]html]"'
    refused(project, message, args=("--adaptive-eval-html=page.html", *args))


def test_no_item(lab: Any) -> None:
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl"', signature="model")
    refused(lab, "ERROR: */test_it.py:3: test_toy: the test takes no argument `item`*")


def test_two_markers(lab: Any) -> None:
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl")\n@pytest.mark.adaptive_eval("toy.jsonl"')
    refused(lab, "ERROR: */test_it.py:3: test_toy: two markers adaptive_eval on one test; write one test a bank")


def test_an_async_test(lab: Any) -> None:
    lab.bank()
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl")
        async def test_toy(item, model):
            pass
        """
    )
    refused(lab, "ERROR: */test_it.py:3: test_toy: an async test cannot ask adaptively*")


@pytest.mark.parametrize("name", ["model", "vision"])
def test_a_model_for_every_question(lab: Any, name: str) -> None:
    lab.bank()
    lab.tests(
        f"""
        import pytest
        from pytest_adaptive_eval import SubjectIdentity
        from pytest_adaptive_eval.models.replay import ReplayModel
        @pytest.fixture
        def {name}():
            return ReplayModel("one", {{}})
        @pytest.mark.adaptive_eval("toy.jsonl")
        def test_toy(item, {name}):
            assert item.grade({name}.generate(item))
        """
    )
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stderr.str() + result.stdout.str()
    assert f"the fixture '{name}' has scope 'function' and would load the model for every question" in text
    assert not lab.records or lab.record["interviews"][0]["asked"] == 1


def test_no_model(lab: Any) -> None:
    lab.bank()
    marked(lab, '"toy.jsonl"')
    refused(lab, "ERROR: */test_it.py:3: test_toy*: no model: name one with --adaptive-eval-model*")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("toi", "test_it.py::test_gate: adaptive_eval?'toi'?: not among the collected evaluations *(toy); *"),
        ("test_it.py::test_x", "test_it.py::test_gate: adaptive_eval?'test_it.py::test_x'?: not among*"),
    ],
)
def test_a_gate_of_an_unknown_name(lab: Any, name: str, message: str) -> None:
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl"', more=GATE.replace("toy", name))
    result = lab.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_gate_alone(lab: Any) -> None:
    lab.tests(f"import pytest\n{GATE}")
    refused(
        lab, "ERROR: test_it.py::test_gate: adaptive_eval?'toy'?: not among the collected evaluations (none); check *"
    )
    lab.tests("def test_gate(adaptive_eval):\n    assert adaptive_eval['toy'].accuracy.at_least(0.5)\n")
    refused(lab, "ERROR: test_it.py::test_gate: *, and no evaluation is among the collected tests: check that *")


def test_a_gate_that_asks(lab: Any) -> None:
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl"', signature="item, model, adaptive_eval")
    refused(lab, "ERROR: test_it.py::test_toy?aeval:toy?: a test with the marker adaptive_eval asks questions and *")


def test_unittest(lab: Any) -> None:
    lab.bank()
    lab.tests(
        """
        import unittest, pytest
        class TestCase(unittest.TestCase):
            @pytest.mark.adaptive_eval("toy.jsonl")
            def test_toy(self):
                pass
        """
    )
    refused(lab, "ERROR: test_it.py::TestCase::test_toy: the marker adaptive_eval has no effect on this kind of test*")


@pytest.mark.parametrize("ini", ["", "xfail_strict = true"])
def test_strict_xfail(lab: Any, ini: str) -> None:
    lab.bank()
    lab.toy()
    marked(lab, '"toy.jsonl")\n@pytest.mark.xfail(' + ("" if ini else "strict=True"))
    lab.ini(ini)
    refused(lab, "ERROR: */test_it.py:3: test_toy*: a strict xfail fails every question*")
    if ini:
        marked(lab, '"toy.jsonl", budget=5)\n@pytest.mark.xfail(strict=False')
        assert lab.run().ret == 0


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--adaptive-eval-seed=-1",), "seed is -1, expected a whole number of at least 0"),
        (("--adaptive-eval-seed=x",), "*invalid int value: 'x'*"),
        (("-o", "adaptive_eval_seed=x"), "adaptive_eval_seed is 'x', expected a whole number"),
        (("--adaptive-eval-budget=0",), "*test_toy*: budget 0: the bank has 60 items*"),
        (("--adaptive-eval-budget=1.5",), "*test_toy*: budget '1.5': write a count*"),
        (("--dist=each", "-n1"), "--dist each runs every interview on every worker*"),
    ],
)
def test_flags(project: Any, args: tuple[str, ...], message: str) -> None:
    refused(project, f"*{message}", args=args)


# -- banks ----------------------------------------------------------------------------------------


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "toy.jsonl: no items*"),
        (['{"id": "a", "prompt": "p", "answer": "x"}', "{"], "toy.jsonl:2: not a JSON object*"),
        (["[]"], "toy.jsonl is a table or a list; expected a bank folder, or an item in each line*"),
        (['{"id": "a", "prompt": "p", "answer": "x"}'] * 2, "toy.jsonl:2: the item id 'a' is already in line 1*"),
        (['{"id": "a b", "prompt": "p", "answer": "x"}'], "toy.jsonl:1: id 'a b' cannot name a test*"),
        (['{"id": "a", "prompt": "p"}'], "toy.jsonl:1: item 'a' has no answer*"),
        (
            ['{"id": "a", "prompt": "p", "answer": "x", "anser": 1}'],
            "toy.jsonl:1: Object contains unknown field `anser`*",
        ),
        (['{"id": "a", "prompt": "p", "grader": "python:os:system"}'], "toy.jsonl:1: item 'a': grader *not trusted*"),
    ],
)
def test_item_files(lab: Any, lines: list[str], message: str) -> None:
    (lab.path / "toy.jsonl").write_text("\n".join(lines))
    lab.toy()
    marked(lab, '"toy.jsonl"')
    refused(lab, f"ERROR: */{message}")


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("name", ["bank.json", "params.npz", "items.jsonl"])
@pytest.mark.parametrize("how", ["missing", "garbage"])
def test_bank_folders(lab: Any, name: str, how: str) -> None:
    file = lab.calibrated() / name
    file.unlink()
    if how == "garbage":
        file.write_bytes(b"\x80\x02garbage")
    lab.toy()
    marked(lab, '"toy.bank"')
    refused(lab, f"ERROR: *toy.bank*{name}*")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_bad_discrimination(lab: Any, value: float) -> None:
    bank = lab.calibrated()
    with np.load(bank / "params.npz") as file:
        columns = dict(file)
    columns["discrimination"][7] = value
    np.savez(bank / "params.npz", **columns)
    lab.toy()
    marked(lab, '"toy.bank"')
    refused(lab, f"ERROR: *bank 'toy': item 'q7' has discrimination ?{value}?, expected finite*")


def test_an_edited_bank(lab: Any) -> None:
    items = lab.calibrated() / "items.jsonl"
    items.write_text(items.read_text().replace("right", "wrong"))
    lab.toy()
    marked(lab, '"toy.bank"')
    refused(lab, "ERROR: *items.jsonl: its hash is * the texts were edited after calibration; write the bank again")


def test_a_grader_of_ones_own(lab: Any) -> None:
    item = {"id": "a", "prompt": "question 1", "grader": "python:mine:grade"}
    (lab.path / "toy.jsonl").write_text(json.dumps(item))
    lab.pytester.makepyfile(mine="def grade(item, text):\n    return 0.25\n")
    lab.pytester.syspathinsert()
    lab.ini("adaptive_eval_graders = mine")
    lab.toy()
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=1)
        def test_toy(item, model):
            item.score(item.grade(model.generate(item.prompt)))
        """
    )
    assert lab.run().ret == 0
    assert lab.record["interviews"][0]["administrations"][0]["score"] == 0.25


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.parametrize(
    "skip", ["pytest.importorskip('no_such_module')", "pytest.skip('not here', allow_module_level=True)"]
)
def test_a_file_of_gates_that_skips_itself(project: Any, skip: str, workers: tuple[str, ...]) -> None:
    text = (
        "@pytest.mark.adaptive_gate('toy', at_least=0.9)\n"
        "def test_other(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    )
    (project.path / "test_skipped.py").write_text(f"import pytest\n{skip}\n{text}")
    (project.path / "test_plain.py").write_text(
        "import pytest\npytest.skip('no business of ours', allow_module_level=True)\n"
    )
    result = project.run_with(workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert (
        "test_skipped.py contains adaptive_eval and is skipped as a whole ("
        in result.stdout.str() + result.stderr.str()
    )
    assert not project.asked
    assert project.run_with(workers, "--ignore=test_skipped.py").ret == 0
