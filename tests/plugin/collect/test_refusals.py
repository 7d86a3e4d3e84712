"""Other plugins that would lose, repeat or deselect interviews are refused with a sentence."""

from __future__ import annotations

from typing import Any

import pytest


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
