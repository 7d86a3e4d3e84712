"""Plugins that run a failed test again: an item is administered once, and a gate is judged once."""

from __future__ import annotations

from typing import Any

import pytest

#: A test that raises on answers that are no JSON.
IN_TEST = """
import json, pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(json.loads(model.generate(item.prompt)))

def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.5)
"""
#: The same where the fixture asks, so that the set-up fails.
IN_FIXTURE = """
import json, pytest

@pytest.fixture
def answer(item, model):
    return json.loads(model.generate(item.prompt))

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, answer):
    assert item.grade(answer)

def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.5)
"""
#: Every third answer can be read.
UNREADABLE = """if n % 3: return "{'broken"\nreturn '"right"'"""

#: Reruns of another plugin: its protocol hook runs every failed test again, up to twenty times.
RERUNS = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for again in range(20):
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not any(report.failed for report in reports):
            break
        for report in reports:
            if report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True

def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
"""

#: Another plugin that calls a failed test again while it makes the report, after a fresh set-up.
RETRIES = """
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    report = yield
    tries = 0
    while report.when == "call" and report.failed and tries < 20:
        tries += 1
        item._initrequest()
        pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_setup(item=item), when="setup")
        again = pytest.CallInfo.from_call(lambda: item.ihook.pytest_runtest_call(item=item), when="call")
        fresh = pytest.TestReport.from_item_and_call(item, again)
        report.outcome, report.longrepr = fresh.outcome, fresh.longrepr
    return report
"""

WITH_PLUGINS = {
    "rerunfailures": ("pytest_rerunfailures", ("--reruns", "20")),
    "retry": ("pytest_retry", ("--retries", "20")),
    "flaky": ("flaky", ("--force-flaky", "--max-runs", "20")),
}


def asked_once(lab: Any) -> dict[str, Any]:
    """Check that every call of the model is an administration of the record, and give the interview's record."""
    (interview,) = lab.record["interviews"]
    assert len(lab.asked) == len(interview["administrations"])
    return interview


@pytest.mark.slow
@pytest.mark.parametrize("plugin", [RERUNS, RETRIES], ids=["protocol", "makereport"])
@pytest.mark.parametrize("text", [IN_TEST, IN_FIXTURE], ids=["test", "fixture"])
def test_an_unreadable_model_is_not_asked_until_it_can_be_read(lab: Any, plugin: str, text: str) -> None:
    lab.bank()
    lab.toy(fault=UNREADABLE, more=plugin)
    lab.tests(text)
    result = lab.run()
    assert result.ret == 1
    interview = asked_once(lab)
    assert interview["error"]
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_a_fault_is_recorded_once_and_is_no_answer(lab: Any) -> None:
    """Single faults do not void an interview: they stay errors, whatever is run again."""
    lab.bank(n=100)
    lab.toy(fault="if n in (3, 40): raise OSError('down')", more=RERUNS)
    lab.tests()
    assert lab.run().ret == 1, "questions failed"
    interview = asked_once(lab)
    assert interview["statuses"] == {"ok": 29, "error": 1}


@pytest.mark.slow
def test_another_plugin_runs_only_the_tests_of_others_again(lab: Any) -> None:
    lab.bank(n=100)
    lab.toy(fault="if n == 3: raise OSError('down')", more=RERUNS)
    lab.tests()
    (lab.path / "test_flaky.py").write_text(
        "TRIES = []\n\ndef test_flaky():\n    TRIES.append(1)\n    assert TRIES[2:]\n"
    )
    found = lab.run().parseoutcomes()
    assert (found["rerun"], found["failed"]) == (2, 1), "the flaky test passed, the question failed once"
    assert asked_once(lab)["statuses"] == {"ok": 29, "error": 1}


@pytest.mark.parametrize("plugin", [RERUNS, RETRIES], ids=["protocol", "makereport"])
def test_a_gate_that_failed_once_fails_the_run(lab: Any, plugin: str) -> None:
    lab.bank()
    lab.toy(more=plugin)
    lab.tests(
        """
        import pytest

        TRIES = []

        @pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))

        def test_gate(adaptive_eval):
            TRIES.append(1)
            assert adaptive_eval["toy"].accuracy.at_least(0.99 if len(TRIES) == 1 else 0.5)
        """
    )
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "FAIL")]
    asked_once(lab)


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("plugin", [RERUNS, RETRIES], ids=["protocol", "makereport"])
def test_void_interviews_and_their_gates_are_recorded_once(lab: Any, plugin: str) -> None:
    lab.project(fault="raise OSError('down')", more=plugin)
    assert lab.run("--adaptive-eval-junit=gates.xml").ret == 1
    asked_once(lab)
    assert lab.outcomes() == [("test_gate", "ERROR")]
    cases = (lab.path / "gates.xml").read_text().count("<testcase")
    assert cases == 2, "the interview and its gate"


def test_a_report_that_is_turned_into_a_pass_does_not_pass_the_run(lab: Any) -> None:
    lab.project(
        tenths=1,
        more="""
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(item):
            report = yield
            report.outcome = "passed"
            return report
        """,
    )
    assert lab.run().ret == 1
    assert lab.outcomes() == [("test_gate", "FAIL")]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_PLUGINS)
def test_plugins_for_flaky_tests(lab: Any, name: str) -> None:
    module, switches = WITH_PLUGINS[name]
    pytest.importorskip(module)
    lab.autoload = True
    lab.bank()
    lab.toy(fault=UNREADABLE)
    lab.tests(IN_TEST)
    result = lab.spawn(*switches)
    assert result.ret == 1
    interview = asked_once(lab)
    assert interview["error"]
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_the_question_as_an_ordinary_test_may_be_run_again(lab: Any) -> None:
    """A question that is named on the command line is no administration."""
    lab.bank()
    lab.toy(fault="if len((HERE / 'asked.txt').read_text().split()) == 1: raise OSError('down')", more=RERUNS)
    lab.tests()
    assert lab.run("test_it.py::test_toy[q1]").ret == 0
    assert len(lab.asked) == 2


def test_a_run_says_that_questions_were_run_again(lab: Any) -> None:
    lab.project(fault="if n == 3: raise OSError('down')", more=RETRIES)
    lab.run()
    (gate,) = lab.record["gates"]
    assert any("ran questions again, 20 times" in note for note in gate["verdict"]["notes"])
