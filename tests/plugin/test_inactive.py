"""Without --adaptive-eval nothing happens but one line for what was left out."""

from __future__ import annotations

import sys
from typing import Any

import pytest


def test_skips_with_a_reason_and_leaves_nothing(project: Any) -> None:
    before = {path.name for path in project.path.iterdir()}
    result = project.run("-rs", "-p", "no:cacheprovider", active=False)
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * needs --adaptive-eval"])
    result.stdout.no_fnmatch_line("*adaptive-eval:*")
    assert {path.name for path in project.path.iterdir()} - {"__pycache__"} == before
    assert project.asked == []


def test_toml_files_are_not_collected(lab: Any) -> None:
    (lab.path / "adaptive-eval.toml").write_text("[[eval]]\nbank = 'none.jsonl'\n")
    assert lab.run(active=False).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_plugin_loads_nothing_heavy(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_light():
            ours = sorted(name for name in sys.modules if name.startswith("pytest_adaptive_eval"))
            assert ours == ["pytest_adaptive_eval", "pytest_adaptive_eval.clock", "pytest_adaptive_eval.inputs",
                            "pytest_adaptive_eval.plugin", "pytest_adaptive_eval.plugin.entry",
                            "pytest_adaptive_eval.plugin.foreign_folders", "pytest_adaptive_eval.plugin.hooks",
                            "pytest_adaptive_eval.plugin.names", "pytest_adaptive_eval.plugin.run_settings"]
            assert not {"numpy", "scipy", "torch", "junit_xml"} & set(sys.modules)
        """
    )
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    command = [sys.executable, "-m", "pytest", "-p", "pytest_adaptive_eval.plugin.entry", "-p", "no:cacheprovider"]
    assert pytester.run(*command).ret == 0


def test_required(project: Any) -> None:
    project.ini("adaptive_eval_required = true")
    result = project.run(active=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_toy needs --adaptive-eval, and adaptive_eval_required is*"])
    result = project.run("-k", "nothing", active=False)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert project.run().ret == 0


@pytest.mark.slow
def test_required_of_toml(lab: Any) -> None:
    lab.ini("adaptive_eval_required = true")
    (lab.path / "x.eval.toml").write_text("")
    result = lab.run(active=False)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *x.eval.toml needs --adaptive-eval*"])


@pytest.mark.slow
def test_required_under_xdist(project: Any) -> None:
    pytest.importorskip("xdist", reason="workers need pytest-xdist (extra xdist)")
    project.ini("adaptive_eval_required = true")
    result = project.pytester.runpytest_subprocess("-n1", timeout=60)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_toy needs --adaptive-eval*"])


def test_help_and_markers(lab: Any) -> None:
    lab.run("--help", active=False).stdout.fnmatch_lines(["*--adaptive-eval-model=[[]NAME=]MODEL*"])
    lab.run("--markers", active=False).stdout.fnmatch_lines(["@pytest.mark.adaptive_eval(bank, *"])


def test_files_that_were_left_out_are_told(lab: Any) -> None:
    (lab.path / "x.eval.toml").write_text('[[evaluation]]\nbank = "b.jsonl"\n')
    (lab.path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    result = lab.run(active=False)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["adaptive-eval: x.eval.toml did not run: add --adaptive-eval"])
    (lab.path / "x.eval.toml").unlink()
    lab.run(active=False).stdout.no_fnmatch_line("adaptive-eval:*")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("ini", "outcomes"), [("", {"skipped": 1}), ("adaptive_eval_required = true", {"failed": 1})])
def test_a_gate_that_asks_for_results_while_it_runs(lab: Any, ini: str, outcomes: dict[str, int]) -> None:
    lab.ini(ini)
    lab.tests("def test_gate(request):\n    request.getfixturevalue('adaptive_eval')['toy'].accuracy.at_least(0.5)\n")
    lab.run(active=False).assert_outcomes(**outcomes)
