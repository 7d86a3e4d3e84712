"""Gates that get the fixture adaptive_eval by its name while they run."""

from __future__ import annotations

from typing import Any

import pytest

INTERVIEW = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))
"""
#: Gates that a model with 9 of 10 right passes.
WAYS = {
    "in the test": """
def test_gate(request):
    assert request.getfixturevalue("adaptive_eval")["toy"].accuracy.at_least(0.5)
""",
    "in a nested function": """
def test_gate(request):
    def results():
        return request.getfixturevalue("adaptive_eval")
    assert results()["toy"].accuracy.at_least(0.5)
""",
    "by a constant of the module": """
NAME = "adaptive_eval"

def test_gate(request):
    assert request.getfixturevalue(NAME)["toy"].accuracy.at_least(0.5)
""",
    "by a parameter": """
import pytest

@pytest.mark.parametrize("name", ["adaptive_eval"])
def test_gate(request, name):
    assert request.getfixturevalue(name)["toy"].accuracy.at_least(0.5)
""",
    "in a fixture": """
import pytest

@pytest.fixture
def results(request):
    return request.getfixturevalue("adaptive_eval")

def test_gate(results):
    assert results["toy"].accuracy.at_least(0.5)
""",
    "by a fixture that takes it": """
import pytest

@pytest.fixture
def results(adaptive_eval):
    return adaptive_eval

class TestGates:
    def test_gate(self, request):
        assert request.getfixturevalue("results")["toy"].accuracy.at_least(0.5)
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

def plain(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

@plain
def test_gate(request):
    assert request.getfixturevalue("adaptive_eval")["toy"].accuracy.at_least(0.5)
""",
}
LAZY = """
import pytest
from pytest_lazy_fixtures import lf

@pytest.fixture
def results(adaptive_eval):
    return adaptive_eval

@pytest.mark.parametrize("got", [lf("adaptive_eval"), lf("results")])
def test_gate(got):
    assert got["toy"].accuracy.at_least(0.5)

@pytest.mark.parametrize("got", [[lf("adaptive_eval")]])
def test_in_a_list(got):
    assert got[0]["toy"].accuracy.at_least(0.5)
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
from pytest_bdd import given, parsers, scenarios, then

scenarios("toy.feature")

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
@pytest.mark.parametrize("way", WAYS)
def test_gate_before_its_interview_is_moved_after_it_and_recorded(dynamic: Any, way: str) -> None:
    dynamic.tests(WAYS[way], name="test_a")
    assert dynamic.run().ret == 0
    [(name, outcome)] = dynamic.outcomes()
    assert name.startswith("test_gate")
    assert outcome == "PASS"
    assert len(dynamic.asked) == 30


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize("way", WAYS)
def test_gate_in_a_plain_run_is_skipped(dynamic: Any, way: str) -> None:
    dynamic.tests(WAYS[way], name="test_a")
    result = dynamic.run(active=False)
    result.assert_outcomes(skipped=2)
    assert result.ret == 0
    assert dynamic.asked == []


@pytest.mark.slow
def test_gate_waits_for_an_interview_of_another_worker(dynamic: Any) -> None:
    pytest.importorskip("xdist")
    dynamic.tests(WAYS["in the test"] + WAYS["in a fixture"].replace("test_gate", "test_other"), name="test_a")
    assert dynamic.spawn("-n2").ret == 0
    assert dynamic.outcomes() == [("test_gate", "PASS"), ("test_other", "PASS")]


def test_gate_that_the_code_does_not_show_is_refused_until_it_is_marked(dynamic: Any) -> None:
    gate = """
    def test_gate(request):
        assert request.getfixturevalue("_".join(["adaptive", "eval"]))["toy"].accuracy.at_least(0.5)
    """
    dynamic.tests(gate, name="test_zz")
    result = dynamic.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(['*put @pytest.mark.usefixtures("adaptive_eval") on the test*'])
    mark = '    import pytest\n    @pytest.mark.usefixtures("adaptive_eval")'
    dynamic.tests(mark + gate, name="test_zz")
    assert dynamic.run().ret == 0
    assert dynamic.outcomes() == [("test_gate", "PASS")]


@pytest.mark.slow
def test_gate_that_gets_the_fixture_counts_in_the_family(dynamic: Any) -> None:
    seen = "def pytest_sessionfinish(session):\n    log('family.txt', session.config.pluginmanager.getplugin("
    dynamic.toy(more=seen + "'adaptive-eval-run').state.family)\n")
    gates = "".join(WAYS["in the test"].replace("test_gate", f"test_{n}") for n in range(5))
    dynamic.tests(gates, name="test_a")
    assert dynamic.run().ret == 0
    assert dynamic.lines("family.txt") == ["5"]


def test_question_that_gets_the_fixture_is_refused(dynamic: Any) -> None:
    asking = INTERVIEW.replace("model):", 'model, request):\n    request.getfixturevalue("adaptive_eval")')
    dynamic.tests(asking, name="test_z")
    result = dynamic.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*asks questions and cannot judge the answers too*"])
    assert dynamic.asked == []


@pytest.mark.slow
def test_test_that_gets_another_fixture_is_no_gate(dynamic: Any) -> None:
    dynamic.tests('def test_plain(request):\n    assert request.getfixturevalue("tmp_path")\n', name="test_a")
    assert dynamic.run().ret == 0
    assert dynamic.outcomes() == []


def test_lazy_fixtures_are_gates(dynamic: Any) -> None:
    pytest.importorskip("pytest_lazy_fixtures")
    dynamic.autoload = True
    dynamic.tests(LAZY, name="test_a")
    assert dynamic.run().ret == 0
    assert [outcome for _, outcome in dynamic.outcomes()] == ["PASS"] * 3


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("workers", [0, 2])
def test_scenarios_are_gates_where_a_step_takes_the_fixture(dynamic: Any, workers: int) -> None:
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
