"""Required gates: a run in which one of them gives no result fails and promotes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.cli import main

TWO_GATES = """
import pytest

@pytest.mark.adaptive_eval(bank="toy.jsonl", budget=30, stop="budget")
def test_toy(item, model):
    assert item.grade(model.generate(item.prompt))

@pytest.mark.adaptive_gate("toy", at_least=0.3)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts

@pytest.mark.parametrize(
    "least", [pytest.param(least, marks=pytest.mark.adaptive_gate("toy", at_least=least)) for least in (0.2, 0.4)]
)
def test_level(adaptive_eval, least):
    assert adaptive_eval.verdicts

def test_other():
    pass
"""
TOML = """
[run]
required = {required}

[[eval]]
bank = "toy.jsonl"
name = "toy"
budget = 30
stop = "budget"

[[eval.gate]]
metric = "accuracy"
at_least = 0.5
"""


@pytest.fixture
def gates(project: Any) -> Any:
    project.tests(TWO_GATES)
    return project


def required(project: Any, *names: str) -> None:
    project.ini("adaptive_eval_required_gates =\n" + "".join(f"    {name}\n" for name in names))


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    "name", ["test_gate", "test_level", "test_level[0.4]", "test_it.py::test_gate", "test_it.py::test_level[0.2]"]
)
def test_run_with_every_required_gate_passes(gates: Any, name: str) -> None:
    required(gates, name)
    assert gates.run().ret == 0
    assert list(gates.record["required"]) == [name]
    assert len(gates.record["required"][name]) == (2 if name == "test_level" else 1)
    assert gates.record["exit_status"] == 0
    assert not gates.record.get("warnings")


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(
    "select", [("-k", "test_gate"), ("test_it.py::test_gate",), ("--deselect=test_it.py::test_level",)]
)
def test_required_gate_that_a_selection_leaves_out_fails_the_run(gates: Any, select: tuple[str, ...]) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    required(gates, "test_level")
    result = gates.run(*select, "--adaptive-eval-html=page.html", "--adaptive-eval-record=record.json")
    assert result.ret == 1
    said = "required gates gave no result, so nothing is promoted: test_level"
    result.stdout.fnmatch_lines([f"adaptive-eval: {said}"])
    record = gates.record
    assert record["required"] == {"test_level": [f"test_it.py::test_level[{least}]" for least in (0.2, 0.4)]}
    assert record["exit_status"] == 1
    assert said in record["warnings"]
    assert said in (gates.path / "page.html").read_text()
    assert main(["report", "record.json", "--markdown", "summary.md"]) == 0
    summary = (gates.path / "summary.md").read_text()
    assert "Not to be promoted" in summary
    assert "1 required gate gave no result" in summary
    assert "test\\_level" in summary or "test_level" in summary


def test_one_parameter_without_result_is_a_required_gate_without_result(gates: Any) -> None:
    required(gates, "test_level")
    assert gates.run("--deselect=test_it.py::test_level[0.4]").ret == 1
    assert gates.outcomes() == [("test_gate", "PASS"), ("test_level[0.2]", "PASS")]


@pytest.mark.slow
def test_gate_that_skips_itself_before_its_verdict_has_no_result(gates: Any) -> None:
    required(gates, "test_gate")
    test = gates.path / "test_it.py"
    test.write_text(
        test.read_text().replace("def test_gate(adaptive_eval):", "@pytest.mark.skip\ndef test_gate(adaptive_eval):")
    )
    result = gates.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*required gates gave no result*: test_gate"])


def test_unknown_required_gate_fails_the_run_and_near_names_are_suggested(gates: Any) -> None:
    required(gates, "test_gaet")
    result = gates.run()
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*: test_gaet (no gate of this name was collected); did you mean test_gate or *"])
    assert gates.record["required"] == {"test_gaet": []}


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize("more", ["", "def test_plain_fails():\n    assert False\n"])
def test_selection_without_any_evaluation_fails_for_a_required_gate(gates: Any, more: str) -> None:
    pytest.importorskip("jinja2", reason="pages need jinja2 (extra html)")
    required(gates, "test_gate")
    gates.tests("def test_alone():\n    pass\n" + more, "test_alone")
    for select in (("test_alone.py",), ("-k", "nothing_has_this_name")):
        result = gates.run(*select, "--adaptive-eval-html=page.html", "--adaptive-eval-junit=gates.xml")
        assert result.ret == 1
        result.stdout.fnmatch_lines(["*required gates gave no result*: test_gate*"])
        assert gates.record["exit_status"] == 1
    assert gates.asked == []


def test_name_of_two_functions_is_a_usage_error_before_any_question(gates: Any) -> None:
    required(gates, "test_gate")
    gates.tests(
        "import pytest\n@pytest.mark.adaptive_gate('toy', at_least=0.3)\n"
        "def test_gate(adaptive_eval):\n    assert adaptive_eval.verdicts\n",
        "test_more",
    )
    result = gates.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*the required gate 'test_gate' could mean test_it.py::test_gate or test_more.py::test_gate: write more*"]
    )
    assert gates.asked == []
    required(gates, "test_more.py::test_gate")
    assert gates.run().ret == 0


def test_name_is_cut_only_at_a_separator(gates: Any) -> None:
    required(gates, "gate")
    assert gates.run().ret == 1


@pytest.mark.fast_rows(1)
@pytest.mark.parametrize(("name", "status"), [("toy-accuracy", 0), ("toy-accuracy[at-least-0.5]", 0), ("toy-area", 1)])
def test_toml_file_names_required_gates(project: Any, name: str, status: int) -> None:
    (project.path / "test_it.py").unlink()
    (project.path / "adaptive-eval.toml").write_text(TOML.format(required=[name]))
    assert project.run().ret == status
    assert list(project.record["required"]) == [name]


@pytest.mark.slow
def test_toml_file_may_hold_required_gates_alone(gates: Any) -> None:
    (gates.path / "adaptive-eval.toml").write_text('[run]\nrequired = ["test_gate"]\n')
    assert gates.run().ret == 0
    assert gates.run("-k", "test_level").ret == 1


@pytest.mark.fast_rows(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run = 3", "run is 3, expected one table"),
        ("[run]\nneeded = []", r"\[run\]: unknown setting 'needed'; known are required"),
        ("[run]\nrequired = 'test_gate'", r"\[run\]: required is 'test_gate', expected a list"),
        ("[run]\nrequired = ['']", r"\[run\] required is \[''\], expected names of gates"),
        ("[run]\nrequired = []", "no evaluation"),
    ],
)
def test_mistake_in_the_table_run_is_a_usage_error(tmp_path: Path, text: str, message: str) -> None:
    from pytest_adaptive_eval.errors import ConfigError
    from pytest_adaptive_eval.evaluation import read_toml

    path = tmp_path / "adaptive-eval.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_toml(path)


@pytest.mark.slow
def test_required_gates_are_missed_under_xdist(gates: Any) -> None:
    pytest.importorskip("xdist")
    required(gates, "test_level")
    result = gates.spawn("-n2", "-k", "test_gate")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*required gates gave no result*: test_level"])
    assert len(gates.record["required"]["test_level"]) == 2
    assert gates.spawn("-n2").ret == 0


def test_merge_judges_the_union_of_shards(gates: Any, capsys: pytest.CaptureFixture[str]) -> None:
    required(gates, "test_gate", "test_level")
    for number, select in enumerate(("test_gate", "test_level")):
        assert gates.run("-k", select, f"--adaptive-eval-record=shard{number}.json").ret == 1
    shards = ["shard0.json", "shard1.json"]
    assert main(["merge", *shards, "-o", "all.json"]) == 0
    assert json.loads((gates.path / "all.json").read_text())["exit_status"] == 0
    assert main(["report", "all.json", "--markdown", "all.md"]) == 0
    assert "May be promoted" in (gates.path / "all.md").read_text()
    assert gates.run("-k", "test_gate", "--adaptive-eval-record=again.json").ret == 1
    assert main(["merge", "shard0.json", "again.json", "-o", "half.json"]) == 1
    half = json.loads((gates.path / "half.json").read_text())
    assert any("required gates gave no result" in text and text.endswith(": test_level") for text in half["warnings"])


@pytest.mark.slow
def test_merge_keeps_a_shard_red_that_failed_for_something_else_too(gates: Any) -> None:
    required(gates, "test_gate", "test_level")
    assert gates.run("-k", "test_gate", "--adaptive-eval-record=one.json").ret == 1
    test = gates.path / "test_it.py"
    test.write_text(test.read_text().replace("    pass\n", "    assert False\n"))
    assert gates.run("-k", "test_level or test_other", "--adaptive-eval-record=two.json").ret == 1
    assert main(["merge", "one.json", "two.json", "-o", "all.json"]) == 1


@pytest.mark.slow
def test_merge_keeps_a_shard_red_whose_report_could_not_be_written(gates: Any) -> None:
    required(gates, "test_gate", "test_level")
    assert gates.run("-k", "test_gate", "--adaptive-eval-record=one.json").ret == 1
    more = "def pytest_adaptive_eval_report(record):\n    raise OSError('full')\n"
    gates.toy(more=more)
    assert gates.run("-k", "test_level", "--adaptive-eval-record=two.json").ret == 1
    two = json.loads((gates.path / "two.json").read_text())
    assert not two["only_required_gates_absent"]
    assert main(["merge", "one.json", "two.json", "-o", "all.json"]) == 1
