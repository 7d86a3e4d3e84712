"""Other plugins that would lose, repeat or deselect interviews are refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest

#: Plugin to load, its module, and arguments that switch it on.
REFUSED = [
    ("pytest_forked", "pytest_forked", "--forked"),
    ("run-parallel", "pytest_run_parallel", "--parallel-threads=2"),
    ("run-parallel", "pytest_run_parallel", "--iterations=2"),
    ("parallel", "pytest_parallel", "--workers=2"),
    ("pytest_isolate", "pytest_isolate", "--isolate"),
    ("isolated", "pytest_isolated", "--isolated"),
    ("repeat", "pytest_repeat", "--count=2"),
    ("flakefinder", "pytest_flakefinder", "--flake-finder"),
    ("pytest-rerun-all", "pytest_rerun_all", "--rerun-iter=2"),
    ("pytest_stress.pytest_stress", "pytest_stress", "--seconds=1"),
    ("pytest-testmon", "testmon", "--testmon"),
    ("pytest-testmon", "testmon", "--testmon-forceselect"),
]


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("plugin", "module", "argument"), REFUSED)
def test_option_that_no_verdict_survives_is_a_usage_error(
    project: Any, monkeypatch: pytest.MonkeyPatch, plugin: str, module: str, argument: str
) -> None:
    pytest.importorskip(module)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = project.spawn("-p", "adaptive_eval", "-p", plugin, argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    flag = argument.partition("=")[0].replace("-forceselect", "")
    result.stderr.fnmatch_lines([f"ERROR: {flag} (*: leave it out of a run with --adaptive-eval*"])
    assert project.asked == []


@pytest.mark.slow
def test_option_of_the_same_name_of_another_plugin_is_not_refused(project: Any) -> None:
    more = 'def pytest_addoption(parser):\n    parser.addoption("--count", type=int, default=1)\n'
    project.toy(more=more)
    assert project.run("--count=2").ret == 0
    assert project.outcomes() == [("test_gate", "PASS")]


def test_option_of_a_loaded_module_is_refused_before_any_question(project: Any) -> None:
    """The check itself, without the third-party plugin: a module of its name with its option."""
    (project.path / "pytest_repeat.py").write_text(
        'def pytest_addoption(parser):\n    parser.addoption("--count", type=int, default=1)\n'
    )
    project.pytester.syspathinsert()
    assert project.run("-p", "pytest_repeat").ret == 0
    asked = len(project.asked)
    result = project.run("-p", "pytest_repeat", "--count=2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --count (pytest-repeat) runs each test several times*"])
    assert len(project.asked) == asked


@pytest.mark.slow
@pytest.mark.parametrize("place", ["def test_toy(", "def test_gate("])
def test_marker_that_forks_an_interview_or_a_gate_is_refused(project: Any, place: str) -> None:
    (project.path / "pytest_forked.py").write_text(
        'def pytest_configure(config):\n    config.addinivalue_line("markers", "forked")\n'
    )
    project.pytester.syspathinsert()
    test = project.path / "test_it.py"
    test.write_text(test.read_text().replace(place, f"@pytest.mark.forked\n{place}"))
    result = project.run("-p", "pytest_forked")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: test_it.py::test_*: the marker forked (pytest-forked) runs each test in a*"])
    assert project.asked == []


@pytest.mark.slow
def test_testmon_that_selects_nothing_is_allowed(project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("testmon")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for _ in range(2):
        result = project.spawn("-p", "adaptive_eval", "-p", "pytest-testmon", "--testmon", "--testmon-noselect")
        assert result.ret == 0
        assert project.outcomes() == [("test_gate", "PASS")]


@pytest.mark.slow
def test_reporter_of_python_files_is_refused_beside_a_toml_file(project: Any) -> None:
    """The check itself, without pytest-csv: a module of its name with its option."""
    (project.path / "pytest_csv.py").write_text(
        'def pytest_addoption(parser):\n    parser.addoption("--csv", dest="csv_path")\n'
    )
    project.pytester.syspathinsert()
    assert project.run("-p", "pytest_csv", "--csv=out.csv").ret == 0
    asked = len(project.asked)
    evaluation = '[[eval]]\nbank = "toy.jsonl"\nname = "more"\n\n[[eval.gate]]\nat_least = 0.5\n'
    (project.path / "more.eval.toml").write_text(evaluation)
    result = project.run("-p", "pytest_csv", "--csv=out.csv")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: more.eval.toml::more*: --csv (pytest-csv) ends the run with an internal*"])
    assert len(project.asked) == asked


def test_plugin_that_knows_only_collected_tests_is_refused_where_questions_are_asked(project: Any) -> None:
    (project.path / "pytest_depends.py").write_text("")
    project.pytester.syspathinsert()
    result = project.run("-p", "pytest_depends")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: pytest-depends ends the run *: add -p no:depends to a run with *"])
    assert project.asked == []
    assert project.run("-p", "pytest_depends", "--collect-only").ret == 0
    (project.path / "test_other.py").write_text("def test_plain():\n    pass\n")
    assert project.run("-p", "pytest_depends", "test_other.py", "-k", "plain").ret == 0


def test_fixtures_that_hide_files_are_refused_before_any_question(project: Any) -> None:
    (project.path / "pyfakefs.py").write_text("import pytest\n@pytest.fixture\ndef fs(): yield\n")
    project.pytester.syspathinsert()
    project.toy(more="@pytest.fixture(autouse=True)\ndef hidden(fs): yield\n")
    result = project.run("-p", "pyfakefs")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *test_toy*: the fixture fs (pyfakefs) hides all files*without autouse*"])
    assert project.asked == []
