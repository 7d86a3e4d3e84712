"""The metric of docs/reference/plugins.md works as a plugin, and the table in gates.md has every metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_adaptive_eval.gates.condition import find_metric, register_metrics
from pytest_adaptive_eval.gates.metrics import metric_names

DOCS = Path(__file__).parents[2] / "docs/reference"
SECTION = (DOCS / "plugins.md").read_text("utf-8").partition("\n## Add a metric\n")[2].partition("\n## ")[0]
CODE, HOOK = re.findall(r"^ *```python\n(.*?)^ *```", SECTION, re.M | re.S)
FILE = """
[[eval]]
name = "sums"
bank = "sums.jsonl"
model = "replay:answers.jsonl"

[[eval.gate]]
metric = "percent"
at_least = {}
"""


@pytest.fixture(autouse=True)
def forget_metrics() -> Iterator[None]:
    yield
    register_metrics([])


def table_row(name: str) -> str:
    metric = find_metric(name)
    return f"| `{name}` | {metric.description} | {metric.unit} | {', '.join(metric.kinds)} |"


def write_project(pytester: Any, at_least: float) -> None:
    ids = [f"i{n}" for n in range(40)]
    items = "".join(json.dumps({"id": i, "prompt": "1+1", "answer": "2"}) + "\n" for i in ids)
    (pytester.path / "sums.jsonl").write_text(items)
    (pytester.path / "answers.jsonl").write_text("".join(json.dumps({"id": i, "text": "2"}) + "\n" for i in ids))
    hook = "\n".join(line[2:] for line in HOOK.splitlines())
    pytester.makeconftest(f"{CODE}\n\n{hook}\n")
    (pytester.path / "adaptive-eval.toml").write_text(FILE.format(at_least))


def run(pytester: Any, *arguments: str) -> Any:
    return pytester.runpytest("--adaptive-eval", "-p", "no:cacheprovider", *arguments)


def test_added_metric_is_known_to_toml_python_planner_and_page(pytester: Any) -> None:
    write_project(pytester, 60)
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.adaptive_gate("sums", metric="percent", at_least=55)
        def test_gate(adaptive_eval):
            assert adaptive_eval.verdicts
        """
    )
    result = run(pytester, "--adaptive-eval-budget=30", "--adaptive-eval-record=run.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*sums: percent >= 60.00: *% chance of a verdict within 30*", "*percent 100.000 *>= 60.00*"]
    )


def test_value_outside_the_range_of_an_added_metric_is_a_usage_error(pytester: Any) -> None:
    write_project(pytester, 101)
    result = run(pytester)
    assert result.ret == 4
    assert "percent.at_least(101): expected a percentage in [0, 100]" in result.stdout.str() + result.stderr.str()


def test_two_metrics_of_one_name_are_a_usage_error(pytester: Any) -> None:
    write_project(pytester, 60)
    conftest = pytester.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace('name = "percent"', 'name = "gain"'))
    result = run(pytester)
    assert result.ret == 4
    assert "plugins provide the metric 'gain' more than once" in result.stdout.str() + result.stderr.str()


def test_table_in_the_docs_has_every_metric() -> None:
    text = (DOCS / "gates.md").read_text("utf-8")
    assert [name for name in metric_names() if table_row(name) not in text] == []
