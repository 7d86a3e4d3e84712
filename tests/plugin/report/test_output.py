"""What people see, and pytest's own JUnit file."""

from __future__ import annotations

import gc
from typing import Any
from xml.etree import ElementTree

import pytest


def test_letters_progress_and_summary(project: Any) -> None:
    result = project.run("--adaptive-eval-seed=1")
    result.stdout.re_match_lines([r"test_it.py [+-]{30}\.\. +\[100%\]"])
    result.stdout.fnmatch_lines(
        [
            "adaptive-eval: model from the fixture or the TOML file, seed 1, journal and*",
            "adaptive-eval: + right, - wrong, ~ partly right, ? unscored",
            "collected 2 items",
            "*= adaptive evaluation =*",
            "subject  bank  ability  accuracy *asked  ended because",
            "toy      toy         -  .* 30 of 60  the budget is spent",
            "PASS  test_gate: accuracy * >= .50 required, 95 %, 30 of 60*",
            "      * % right, between * % and * %; at least 50 % required",
            "record: .adaptive-eval/runs/*.json",
            "*= 2 passed in *",
        ]
    )
    header = "model from the fixture or the TOML file, seed 1, journal and records in .adaptive-eval"
    assert header in " ".join(result.stdout.str().split())


def test_nothing_is_kept_from_the_garbage_collector_after_a_run(project: Any) -> None:
    project.pytester.makeconftest(
        """
        import gc

        def pytest_collection_finish():
            print("frozen:", gc.get_freeze_count() > 0)
        """
    )
    project.run("-s").stdout.fnmatch_lines(["frozen: True"])
    assert gc.get_freeze_count() == 0


@pytest.mark.slow
def test_verbose(project: Any) -> None:
    result = project.run("-v")
    result.stdout.no_fnmatch_line("*: + right*")
    # the total has room for ten questions that a sampling model would be asked again
    result.stdout.fnmatch_lines(["test_it.py::test_toy?q* RIGHT *?  2%]", "test_it.py::test_gate PASSED *?100%]"])
    result.stdout.fnmatch_lines(["test_it.py::test_toy?q9? WRONG *"])


def test_quiet(project: Any) -> None:
    result = project.run("-q")
    result.stdout.no_fnmatch_line("*adaptive-eval:*")
    result.stdout.no_fnmatch_line("*= adaptive evaluation =*")
    result.stdout.fnmatch_lines(["PASS  test_gate: accuracy *, 30 of 60", "      * % right, *", "2 passed in *"])


@pytest.mark.slow
def test_count_style(project: Any) -> None:
    project.run("-o", "console_output_style=count").stdout.re_match_lines([r"test_it.py [+-]{30}\.\. +\[32/32\]"])


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("fault", ["raise OSError('down')", "if n > 5: raise OSError('down')"])
def test_progress_of_an_interview_that_ends_early(project: Any, fault: str) -> None:
    project.toy(fault=fault)
    project.run().stdout.re_match_lines([r"test_it.py [+-]*FFFF? +\[100%\]"])


@pytest.mark.slow
@pytest.mark.parametrize("switch", ["-n0", "-n2"])
def test_reporter_of_another_plugin_counts_the_questions(project: Any, switch: str) -> None:
    """It keeps the number of tests in the attribute that pytest-sugar and pytest-progress use."""
    pytest.importorskip("xdist")
    project.toy(
        more="""
def pytest_collection_finish(session):
    if reporter := session.config.pluginmanager.getplugin("terminalreporter"):
        reporter.tests_count = len(session.items)

def pytest_xdist_node_collection_finished(node, ids):
    node.config.pluginmanager.getplugin("terminalreporter").tests_count = len(ids)

def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"{terminalreporter.tests_count} of {terminalreporter._session.testscollected} tests")
"""
    )
    project.run(switch).stdout.fnmatch_lines(["32 of 32 tests"])


def test_colour(project: Any) -> None:
    text = project.run("--color=yes").stdout.str()
    assert "\x1b[34m-" in text
    assert "\x1b[32m+" in text
    assert "\x1b[1m\x1b[32mPASS" in text or "\x1b[32m\x1b[1mPASS" in text
    assert "\x1b" not in project.run("--color=no").stdout.str()


def test_a_complaint_is_red_and_bold(project: Any) -> None:
    project.toy(more="def pytest_adaptive_eval_report(record): raise KeyError('mine')")
    text = project.run("--color=yes").stdout.str()
    assert "\x1b[31m\x1b[1madaptive-eval: a plugin's report failed" in text


def test_junit_xml(lab: Any) -> None:
    lab.ini("junit_family = xunit1")
    lab.bank()
    lab.toy(tenths=1, fault="if n == 2: raise OSError('down \\x00 \\ud800')")
    lab.tests(
        """
        import pytest
        @pytest.mark.adaptive_eval("toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model, record_property):
            record_property("odd \\x01 name \\ud800", "odd \\x02 value \\ud800")
            assert item.grade(model.generate(item.prompt))
        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    lab.run("--junitxml=out.xml", "--adaptive-eval-junit=gates.xml")
    (suite,) = ElementTree.parse(lab.path / "out.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("32", "2", "0")
    cases = {case.get("name"): case for case in suite}
    assert len(cases) == 32
    gate = cases["test_gate"].find("failure")
    assert gate is not None
    assert "assert FAIL accuracy" in (gate.get("message") or "").splitlines()[0]
    first = {p.get("name"): p.get("value") for p in suite[0].iter("property")}
    assert first["status"] == "ok"
    assert first["position"] == "1"
    assert first["propensity"] == "0.0166667"
    assert first["adaptive_eval"] in ("0", "1")
    about = {p.get("name"): p.get("value") for p in cases["test_toy[aeval:toy]"].iter("property")}
    assert about == {"asked": "30", "scored": "29", "size": "60", "stop_sentence": "the budget is spent"}
    report = ElementTree.parse(lab.path / "gates.xml").getroot()
    assert [case.get("name") for case in report.iter("testcase")] == ["interview", "test_gate: accuracy at least"]


@pytest.mark.slow
def test_records_go_where_they_are_asked_for(project: Any) -> None:
    result = project.run(
        "--adaptive-eval-record=out/record.json", "--adaptive-eval-junit=out/gates.xml", "--adaptive-eval-dir=kept"
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["record: kept/runs/*.json", "JUnit report: out/gates.xml", "record copy: out/record.json"]
    )
    assert (project.path / "out/record.json").exists()
    assert (project.path / "out/gates.xml").exists()
    assert not (project.path / ".adaptive-eval").exists()


@pytest.mark.slow
def test_reports_of_an_earlier_run_do_not_survive(project: Any) -> None:
    """A run that is killed cannot say so itself; what an earlier one wrote must not speak for it."""
    args = ("--adaptive-eval-record=record.json", "--adaptive-eval-junit=gates.xml")
    assert project.run(*args).ret == 0
    project.toy(fault="os._exit(0)")
    assert project.spawn(*args).ret == 0  # nothing in a process can change this
    assert not (project.path / "record.json").exists()
    assert not (project.path / "gates.xml").exists()
    assert len(project.records) == 1


def test_xunit_hooks_and_plain_tests_are_left_alone(project: Any) -> None:
    project.tests("def test_fails(): assert 1 == 2\ndef test_passes(): pass", "test_plain")
    result = project.run("test_plain.py")
    result.assert_outcomes(passed=1, failed=1)
    assert not (project.path / ".adaptive-eval").exists()
    result.stdout.no_fnmatch_line("*adaptive evaluation*")


def test_a_gate_on_a_calibrated_bank_loads_no_scipy(lab: Any) -> None:
    lab.calibrated()
    lab.toy()
    lab.tests(
        """
        import pytest

        @pytest.mark.adaptive_eval(bank="toy.bank", budget=30)
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))

        @pytest.mark.adaptive_gate("toy", at_least=0.5)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    with (lab.path / "conftest.py").open("a") as file:
        file.write("\ndef pytest_unconfigure():\n    (HERE / 'loaded.json').write_text(repr('scipy' in sys.modules))\n")
    lab.spawn().assert_outcomes(passed=2)
    assert (lab.path / "loaded.json").read_text() == "False"


def test_no_line_of_a_library_stands_between_the_signs_of_answers(project: Any) -> None:
    selector = """
    import sys

    class Loud:
        name, mode, needs_calibration = "loud", "proportional", False

        def criterion(self, view):
            print("Loading weights: 100%", file=sys.stderr, flush=True)
            criterion = view.buffer(2)
            criterion[...] = 1.0
            return criterion

    def pytest_adaptive_eval_selector(name):
        return Loud() if name == "loud" else None
    """
    project.toy(more=selector)
    text = (project.path / "test_it.py").read_text()
    project.tests(text.replace("budget=30", 'budget=30, selector="loud", floor=0.5'))
    result = project.run()
    assert result.ret == 0
    result.stdout.re_match_lines([r"test_it.py [+-]{30}\.\. +\[100%\]"])
    assert "Loading" not in result.stdout.str() + result.stderr.str()
    project.tests((project.path / "test_it.py").read_text().replace("(item, model)", "(item, model, missing)"))
    assert "Loading weights" in project.run("-rA").stdout.str()  # in the report of the interview
