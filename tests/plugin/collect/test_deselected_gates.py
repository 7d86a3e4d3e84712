"""Gates that a selection leaves out are named, and count where FAIL verdicts are corrected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_adaptive_eval.cli import main
from pytest_adaptive_eval.records.run_record import RunRecord

GATES = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.3)
def test_easy(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.adaptive_gate("toy", at_least={hard})
def test_hard(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.adaptive_gate("toy", at_least=0.1 + 0.1)
def test_computed(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.adaptive_gate("elsewhere", at_least=0.1)
def test_unknown(adaptive_eval, request):
    assert adaptive_eval.verdicts
"""
#: Stands for a plugin that leaves tests to other shards.
SHARD = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "test_hard" in item.name]
"""


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("shard", [True, False])
def test_family_counts_gates_that_a_selection_leaves_out(project: Any, shard: bool) -> None:
    seen = "def pytest_sessionfinish(session):\n    log('family.txt', session.config.pluginmanager.getplugin("
    seen += "'adaptive-eval-run').state.family)\n"
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


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("select", ["test_it.py::test_hard", "--lf"])
def test_gates_dropped_before_the_selection_of_items_are_named_and_counted(project: Any, select: str) -> None:
    seen = "def pytest_sessionfinish(session):\n    log('family.txt', session.config.pluginmanager.getplugin("
    seen += "'adaptive-eval-run').state.family)\n"
    project.toy(more=seen)
    project.tests(GATES.format(hard=0.99).replace("elsewhere", "toy"))
    if select == "--lf":
        assert project.run().ret == 1
    assert project.run(select).ret == 1
    assert set(project.lines("family.txt")) == {"4"}
    left = {f"test_it.py::test_{name}" for name in ("easy", "computed", "unknown")}
    assert set(project.record["deselected"]) == left


#: Stands for pytest-split: runs every second gate, the first with --group 1.
SPLIT = """
def pytest_addoption(parser):
    parser.addoption("--splits", type=int)
    parser.addoption("--group", type=int)

def pytest_collection_modifyitems(config, items):
    if config.option.splits:
        gates = [item for item in items if "adaptive_eval" in item.fixturenames]
        items[:] = gates[config.option.group - 1 :: config.option.splits]
"""


@pytest.fixture
def sharded(project: Any) -> Any:
    (project.path / "pytest_split.py").write_text(SPLIT)
    project.pytester.syspathinsert()
    project.tests(GATES.format(hard=0.5).replace("elsewhere", "toy"))
    return project


def test_shard_promotes_nothing_and_the_merged_shards_do(sharded: Any) -> None:
    for group in (1, 2):
        record = f"--adaptive-eval-record={group}.json"
        result = sharded.run("-p", "pytest_split", "--splits=2", f"--group={group}", record)
        assert result.ret == 0
        result.stdout.fnmatch_lines(["WARNING: gates of other shards did not judge this run: *"])
        assert sharded.record["shard"] == f"--splits=2 --group={group}"
        assert not RunRecord.from_json(sharded.record).promote
    assert main(["report", "1.json", "--markdown", "1.md"]) == 0
    summary = (sharded.path / "1.md").read_text()
    assert "Not to be promoted" in summary
    assert "Gates are left to other shards." in summary
    assert main(["merge", "1.json", "2.json", "-o", "all.json"]) == 0
    both = RunRecord.from_json(json.loads((sharded.path / "all.json").read_text()))
    assert both.promote
    assert (both.warnings, bool(both.shard)) == ([], False)


@pytest.mark.slow
def test_merged_record_without_one_of_the_shards_promotes_nothing(sharded: Any) -> None:
    for group in (1, 2):
        record = f"--adaptive-eval-record={group}.json"
        assert sharded.run("-p", "pytest_split", "--splits=3", f"--group={group}", record).ret == 0
    assert main(["merge", "1.json", "2.json", "-o", "all.json"]) == 1
    assert main(["report", "all.json", "--exit-code"]) == 1
    both = RunRecord.from_json(json.loads((sharded.path / "all.json").read_text()))
    assert not both.promote
    (warning,) = both.warnings
    assert warning.startswith("gates of other shards did not judge this run: test_it.py::test_computed; merge")


@pytest.mark.slow
def test_shard_options_of_a_plugin_that_leaves_no_gate_out_change_nothing(sharded: Any) -> None:
    assert sharded.run("-p", "pytest_split", "--splits=1", "--group=1").ret == 0
    assert not sharded.record["shard"]
    assert RunRecord.from_json(sharded.record).promote


def test_node_id_of_a_plain_test_is_no_choice_to_run_no_evaluation(project: Any) -> None:
    """A misspelt command must not pass for an evaluation."""
    project.tests(GATES.format(hard=0.5).replace("elsewhere", "toy") + "\ndef test_plain():\n    pass\n")
    assert project.run("test_it.py::test_plain").ret == pytest.ExitCode.USAGE_ERROR
    assert project.run("-k", "test_plain").ret == 0
