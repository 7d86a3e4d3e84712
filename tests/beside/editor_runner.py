"""Stand-in for the pytest plugin of an editor such as VS Code: makes the same calls on items and reports.

Loaded with ``-p editor_runner``. It writes what an editor would show to the JSON file that EDITOR_SHOWS names: the
discovered tests as a tree, or the outcome of each test that ran.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

#: Path of each test that ran, by node id.
_paths: dict[str, Path] = {}
#: Outcome of each test, by its absolute id.
_outcomes: dict[str, str] = {}


def _absolute(nodeid: str, path: Path) -> str:
    return "::".join([str(path), *nodeid.split("::")[1:]])


def _tree(session: pytest.Session) -> dict[str, dict[str, Any]]:
    """Return the discovered tests by file, each by its id with its name and its line, from 1."""
    files: dict[str, dict[str, Any]] = {}
    for item in session.items:
        name = item.name
        if hasattr(item, "callspec"):  # a parametrized function of a Python file: it gets a node of its own
            assert item.originalname  # type: ignore[attr-defined]  # of functions
            function, _, name = name.partition("[")
            _, classes = item.nodeid.rsplit("::", 1)[0].rsplit(".py", 1)
            assert f"{item.path}{classes}::{function}" == _absolute(item.nodeid, item.path).partition("[")[0]
        parent = item.parent
        while isinstance(parent, pytest.Class):
            parent = parent.parent
        assert isinstance(parent, pytest.File)
        line = item.location[1]
        assert line is not None
        files.setdefault(str(parent.path), {})[_absolute(item.nodeid, item.path)] = [name, line + 1]
    return files


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Keep the path of a test, which its report lacks."""
    _paths[item.nodeid] = item.path
    assert not any(mark.name == "skip" for mark in item.own_markers)
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_report_teststatus(report: pytest.TestReport) -> Generator[None, object, object]:
    """Take the first outcome of each test."""
    if report.when == "call" or (report.when == "setup" and report.skipped):
        path = _paths.get(report.nodeid, Path.cwd())
        _outcomes.setdefault(_absolute(report.nodeid, path), report.outcome)
    return (yield)


def pytest_exception_interact(node: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Take a failure with its text."""
    assert call.excinfo is not None
    assert call.excinfo.typename
    assert report.longreprtext
    _outcomes.setdefault(_absolute(node.nodeid, node.path), "failed")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write what the editor would show."""
    shown = _tree(session) if session.config.option.collectonly else _outcomes
    Path(os.environ["EDITOR_SHOWS"]).write_text(json.dumps(shown))
