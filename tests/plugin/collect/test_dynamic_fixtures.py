"""Gates that get the fixture adaptive_eval by its name while they run, or from other plugins."""

from __future__ import annotations

from typing import Any

import pytest

INTERVIEW = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""
#: Gates that a model with 9 of 10 right passes, and whose arguments or marks show the fixture.
SHOWN = {
    "by a fixture that takes it": """
import pytest

@pytest.fixture
def results(adaptive_eval):
    return adaptive_eval

class TestGates:
    def test_gate(self, results):
        assert results["toy"].accuracy.at_least(0.5)
""",
    "by usefixtures": """
import pytest

@pytest.mark.usefixtures("adaptive_eval")
class TestGates:
    def test_gate(self, request):
        judge(request)

def judge(request):
    assert request.getfixturevalue("adaptive_eval")["toy"].accuracy.at_least(0.5)
""",
    "in a decorated test": """
import functools
import pytest

def plain(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@plain
@pytest.mark.adaptive_gate("toy", at_least=0.5)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
""",
}
HIDDEN = """
def test_gate(request):
    assert request.getfixturevalue("adaptive_eval")["toy"].accuracy.at_least(0.5)
"""
LAZY = """
import pytest
from pytest_lazy_fixtures import lf

@pytest.fixture
def results(adaptive_eval):
    return adaptive_eval

@pytest.mark.usefixtures("adaptive_eval")
@pytest.mark.parametrize("got", [lf("adaptive_eval"), lf("results")])
def test_gate(got):
    assert got["toy"].accuracy.at_least(0.5)
"""
FEATURE = """
Feature: Promotion
  Scenario: Good
    Given an interview
    Then its accuracy is at least 0.5

  Scenario: Other
    Given an interview

  Scenario Outline: Each
    Given an interview
    Then its accuracy is at least <value>
    Examples:
      | value |
      | 0.4   |
      | 0.6   |
"""
STEPS = """
import pytest
from pytest_bdd import given, parsers, scenario, then

@pytest.mark.usefixtures("adaptive_eval")
@scenario("toy.feature", "Good")
def test_good():
    pass

@scenario("toy.feature", "Other")
def test_other():
    pass

@pytest.mark.usefixtures("adaptive_eval")
@scenario("toy.feature", "Each")
def test_each():
    pass

@given("an interview")
def interview():
    pass

@then(parsers.parse("its accuracy is at least {value:g}"))
def accuracy(adaptive_eval, value):
    assert adaptive_eval["toy"].accuracy.at_least(value)
"""


@pytest.fixture
def dynamic(lab: Any) -> Any:
    """A project whose gates come in the first file and whose interview comes in the last."""
    lab.bank()
    lab.toy()
    lab.tests(INTERVIEW, name="test_z")
    return lab


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("way", SHOWN)
def test_gate_before_its_interview_is_moved_after_it_and_recorded(dynamic: Any, way: str) -> None:
    dynamic.tests(SHOWN[way], name="test_a")
    assert dynamic.run().ret == 0
    [(name, outcome)] = dynamic.outcomes()
    assert name.startswith("test_gate")
    assert outcome == "PASS"
    assert len(dynamic.asked) == 30


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("gate", [*SHOWN.values(), HIDDEN], ids=[*SHOWN, "hidden"])
def test_gate_in_a_plain_run_is_skipped(dynamic: Any, gate: str) -> None:
    dynamic.tests(gate, name="test_a")
    result = dynamic.run(active=False)
    result.assert_outcomes(skipped=2)
    assert result.ret == 0
    assert dynamic.asked == []


@pytest.mark.slow
def test_gate_waits_for_an_interview_of_another_worker(dynamic: Any) -> None:
    pytest.importorskip("xdist")
    dynamic.tests("".join(SHOWN.values()).replace("TestGates", "TestOther", 1), name="test_a")
    assert dynamic.spawn("-n2").ret == 0
    assert [outcome for _, outcome in dynamic.outcomes()] == ["PASS"] * 3


def test_gate_that_gets_the_fixture_while_it_runs_is_refused(dynamic: Any) -> None:
    dynamic.tests(HIDDEN, name="test_zz")
    result = dynamic.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(['*take it as an argument, or put @pytest.mark.usefixtures("adaptive_eval") on the*'])


def test_question_that_gets_the_fixture_is_refused(dynamic: Any) -> None:
    asking = INTERVIEW.replace("model):", 'model, request):\n    request.getfixturevalue("adaptive_eval")')
    dynamic.tests(asking, name="test_z")
    result = dynamic.run()
    assert result.ret != 0
    assert "asks questions and cannot judge the answers too" in result.stdout.str() + result.stderr.str()


def test_lazy_fixtures_are_gates_with_a_mark(dynamic: Any) -> None:
    pytest.importorskip("pytest_lazy_fixtures")
    dynamic.autoload = True
    dynamic.tests(LAZY, name="test_a")
    assert dynamic.run().ret == 0
    assert [outcome for _, outcome in dynamic.outcomes()] == ["PASS"] * 2


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("workers", [0, 2])
def test_scenarios_with_a_mark_are_gates(dynamic: Any, workers: int) -> None:
    pytest.importorskip("pytest_bdd")
    dynamic.autoload = True
    (dynamic.path / "toy.feature").write_text(FEATURE)
    dynamic.tests(STEPS, name="test_a")
    if workers:
        pytest.importorskip("xdist")
        assert dynamic.spawn(f"-n{workers}").ret == 0
    else:
        dynamic.run(active=False).assert_outcomes(passed=1, skipped=4)
        assert dynamic.run().ret == 0
    assert [outcome for _, outcome in dynamic.outcomes()] == ["PASS"] * 3
