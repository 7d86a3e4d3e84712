"""Gates that a selection leaves out are named, and count where FAIL verdicts are corrected."""

from __future__ import annotations

from typing import Any

import pytest

GATES = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

def test_easy(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.3)

def test_hard(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least({hard})

def test_computed(adaptive_eval):
    assert adaptive_eval["toy"].accuracy.at_least(0.1 + 0.1)

def test_unknown(adaptive_eval, request):
    assert adaptive_eval["elsewhere"].accuracy.at_least(0.1)
"""
#: Stands for a plugin that leaves tests to other shards.
SHARD = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "test_hard" in item.name]
"""


@pytest.mark.parametrize("shard", [True, False])
def test_family_counts_gates_that_a_selection_leaves_out(project: Any, shard: bool) -> None:
    seen = "def pytest_sessionfinish(session):\n    log('family.txt', session.config.pluginmanager.getplugin("
    seen += "'adaptive-eval-run').family)\n"
    project.toy(more=seen + (SHARD if shard else ""))
    project.tests(GATES.format(hard=0.5))
    result = project.run(*(() if shard else ("-k", "test_hard")))
    assert result.ret == 0
    assert project.lines("family.txt") == ["4"]
    assert project.record["deselected"] == [f"test_it.py::test_{name}" for name in ("easy", "computed", "unknown")]


def test_gates_left_out_are_named_where_nothing_is_promoted(project: Any) -> None:
    project.tests(GATES.format(hard=0.99))
    result = project.run("-k", "test_hard")
    assert result.ret == 1
    (warning,) = project.record["warnings"]
    assert "test_it.py::test_easy" in warning
    assert "WARNING: gates that were deselected" in result.stdout.str()
