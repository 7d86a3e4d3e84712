"""Checks that fail a report and not the test: the answer is wrong, or an error where that cannot be known."""

from __future__ import annotations

from typing import Any

import pytest

SOFT = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model{fixture}):
    graded = item.grade(model.generate(item.prompt))
    {check}
    item.score(1.0)

def test_gate(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.5)
"""
#: A plugin that collects failures and fails the report in the end, as pytest-check does.
CHECKS = """
FAILED = []

@pytest.fixture
def soft():
    return lambda holds: FAILED.append("a check failed") if not holds else None

@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if FAILED and report.when == "call":
        report.outcome, report.longrepr = "failed", FAILED[0]
        try:
            raise AssertionError(FAILED[0])
        except AssertionError:
            call.excinfo = pytest.ExceptionInfo.from_current()
        FAILED.clear()
    return report
"""


def scores(lab: Any) -> set[tuple[bool, str, float | None]]:
    """Whether the model was right, status and score of each administration."""
    (interview,) = lab.record["interviews"]
    return {(int(a["item"][1:]) % 10 < 2, a["status"], a["score"]) for a in interview["administrations"]}


WRONG = {(True, "ok", 1.0), (False, "ok", 0.0)}


@pytest.fixture
def subtests_lab(lab: Any, request: pytest.FixtureRequest) -> Any:
    """A laboratory whose pytest has subtests."""
    if not request.config.pluginmanager.hasplugin("subtests"):
        pytest.skip("this pytest has no subtests, and pytest-subtests is not installed")
    lab.bank()
    return lab


@pytest.mark.slow
@pytest.mark.parametrize("args", [(), ("-n0",), ("-n2",)], ids=["plain", "n0", "n2"])
def test_a_failed_subtest_is_a_wrong_answer(subtests_lab: Any, args: tuple[str, ...]) -> None:
    lab = subtests_lab
    if args:
        pytest.importorskip("xdist")
    lab.toy(2)
    lab.tests(SOFT.format(fixture=", subtests", check="with subtests.test('grade'): assert graded == 1"))
    assert (lab.spawn if args else lab.run)(*args).ret == 1
    assert scores(lab) == WRONG
    assert lab.outcomes() == [("test_gate", "FAIL")]


def test_a_fault_in_a_subtest_is_an_error(subtests_lab: Any) -> None:
    lab = subtests_lab
    lab.toy(2)
    lab.tests(SOFT.format(fixture=", subtests", check="with subtests.test(): raise OSError('down')"))
    assert lab.run().ret == 1
    assert {(status, score) for _, status, score in scores(lab)} == {("error", None)}
    assert lab.outcomes() == [("test_gate", "ERROR")]


def test_a_failed_report_of_a_plugin_is_a_wrong_answer(lab: Any) -> None:
    lab.bank()
    lab.toy(2, more=CHECKS)
    lab.tests(SOFT.format(fixture=", soft", check="soft(graded == 1)"))
    assert lab.run("--junitxml=out.xml").ret == 1
    assert scores(lab) == WRONG
    assert lab.outcomes() == [("test_gate", "FAIL")]
    xml = (lab.path / "out.xml").read_text()
    (interview,) = lab.record["interviews"]
    wrong = sum(a["score"] == 0 for a in interview["administrations"])
    assert xml.count('<property name="adaptive_eval" value="0"') == wrong > 0


@pytest.mark.slow
def test_a_long_message_of_a_check_is_cut(lab: Any) -> None:
    lab.bank()
    lab.toy(0, more=CHECKS.replace('"a check failed"', '"failed " * 100'))
    lab.tests(SOFT.format(fixture=", soft", check="soft(graded == 1)"))
    lab.run()
    (interview,) = lab.record["interviews"]
    said = "a check failed beside the test's own assertions: " + ("failed " * 100)[:200]
    assert {answer["detail"] for answer in interview["administrations"]} == {said.strip()}


def test_a_killed_run_goes_on_with_wrong_answers_as_wrong(lab: Any) -> None:
    """The journal holds the score that the reports leave."""
    lab.bank()
    lab.toy(2, more=CHECKS, fault="if n == 20: raise KeyboardInterrupt")
    lab.tests(SOFT.format(fixture=", soft", check="soft(graded == 1)"))
    lab.run()
    lab.toy(2, more=CHECKS)
    lab.run()
    assert any(a["resumed"] for a in lab.record["interviews"][0]["administrations"])
    assert scores(lab) == WRONG


@pytest.mark.slow
@pytest.mark.parametrize(("module", "fixture", "check"), [
    ("pytest_check", ", check", "check.equal(graded, 1)"),
    ("pytest_assume", "", "pytest.assume(graded == 1)"),
])  # fmt: skip
def test_plugins_for_soft_assertions(lab: Any, module: str, fixture: str, check: str) -> None:
    pytest.importorskip(module)
    lab.autoload = True
    lab.bank()
    lab.toy(2)
    lab.tests(SOFT.format(fixture=fixture, check=check))
    assert lab.spawn("-W", "ignore::pluggy.PluggyTeardownRaisedWarning").ret == 1
    assert scores(lab) == WRONG


@pytest.mark.slow
def test_a_gate_may_use_subtests(subtests_lab: Any) -> None:
    lab = subtests_lab
    lab.toy()
    lab.tests(
        """
        import pytest

        @pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
        def test_toy(item, model):
            assert item.grade(model.generate(item.prompt))

        def test_gate(adaptive_eval, subtests):
            with subtests.test("low"):
                assert adaptive_eval["toy"].accuracy.at_least(0.4)
            with subtests.test("middle"):
                assert adaptive_eval["toy"].accuracy.at_least(0.5)
        """
    )
    assert lab.run().ret == 0
    assert lab.outcomes() == [("test_gate", "PASS"), ("test_gate", "PASS")]
