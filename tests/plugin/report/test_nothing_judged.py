"""Runs in which nothing is scored, or nothing is judged, say so and show no figures."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_adaptive_eval.records.run_record import RunRecord
from pytest_adaptive_eval.reports.github import outputs
from pytest_adaptive_eval.reports.markdown import summary_markdown


def test_an_interview_without_a_score_records_no_figures(lab: Any) -> None:
    lab.calibrated()
    lab.toy(fault="raise ConnectionError('the server is gone')")
    lab.tests(
        "import pytest\n"
        "@pytest.mark.adaptive_eval('toy.bank', budget=30)\n"
        "def test_toy(item, model):\n    assert item.grade(model.generate(item.prompt))\n"
        "@pytest.mark.adaptive_gate('toy', at_least=0.5)\n"
        "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n"
    )
    result = lab.run()
    (interview,) = lab.record["interviews"]
    assert interview["asked"] > 0
    assert interview["scored"] == 0
    names = ("theta", "standard_error", "accuracy", "accuracy_model", "accuracy_conformal", "accuracy_error")
    assert [interview[name] for name in names] == [None] * len(names)
    assert lab.outcomes() == [("test_gate", "ERROR")]
    result.stdout.no_fnmatch_line("*~.*")
    result.stdout.no_fnmatch_line("*±*")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("flags", [(), ("-q",)], ids=["summary", "quiet"])
def test_a_run_without_a_gate_says_that_nothing_was_judged(lab: Any, flags: tuple[str, ...]) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    lab.bank()
    lab.toy()
    lab.tests(
        "import pytest\n"
        "@pytest.mark.adaptive_eval('toy.jsonl', budget=10)\n"
        "def test_toy(item, model):\n    assert item.grade(model.generate(item.prompt))\n"
    )
    result = lab.run("--adaptive-eval-html=page.html", *flags)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*no gate: nothing was judged*"])
    record = RunRecord.from_json(lab.record)
    assert record.warnings == ["no gate: nothing was judged"]
    assert not record.promote
    assert "no gate: nothing was judged" in (lab.path / "page.html").read_text()
    assert "no gate: nothing was judged" in summary_markdown(record)
    assert outputs(record)["promote"] == "false"


def test_a_run_whose_gates_were_deselected_names_them(project: Any) -> None:
    result = project.run("--deselect=test_it.py::test_gate")
    assert result.ret == 0
    none, deselected = project.record["warnings"]
    assert none == "no gate: nothing was judged"
    assert "did not judge this run: test_it.py::test_gate" in deselected


@pytest.mark.slow
def test_a_run_with_a_gate_does_not_say_that_nothing_was_judged(project: Any) -> None:
    result = project.run()
    result.stdout.no_fnmatch_line("*nothing was judged*")
    assert project.record["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_a_selection_of_no_test_fails_though_another_plugin_lets_it_pass(lab: Any, workers: str) -> None:
    pytest.importorskip("xdist")
    lab.project(
        more="""
@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
        session.exitstatus = pytest.ExitCode.OK
"""
    )
    result = lab.run("-k", "nothing", workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["adaptive-eval: no test was selected, so the run does not end with *"])
