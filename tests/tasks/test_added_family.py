"""The page on adding a task family: its example works as the only new file of a project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pytest_adaptive_eval.extensions.studies.network.declare import read_network
from pytest_adaptive_eval.tasks import FAMILIES, families
from pytest_adaptive_eval.tasks.family import written_item

PAGE = (Path(__file__).parents[2] / "docs/reference/plugins.md").read_text("utf-8")
SECTION = PAGE.partition("\n## Add a task family\n")[2].partition("\n## ")[0]
TEST = """
import pytest

@pytest.fixture(scope="module")
def model():
    return lambda prompt: prompt.split()[1][::-1]

@pytest.mark.adaptive_eval(task="backwards", levels=3, queries=5)
def test_backwards(item, model):
    assert item.grade(model(item.prompt))

@pytest.mark.adaptive_gate("backwards", metric="auc", at_least=1.0)
def test_gate(adaptive_eval):
    assert adaptive_eval.verdicts
"""


def example() -> str:
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    return str(code)


def test_family_of_the_page_is_asked_and_gated(pytester: Any) -> None:
    pytester.makeconftest(example())
    pytester.makepyfile(TEST)
    result = pytester.runpytest("--adaptive-eval", "-p", "no:cacheprovider")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*PASS*"])


def test_family_of_the_page_can_be_written_by_an_interviewer() -> None:
    module: dict[str, Any] = {}
    exec(example(), module)
    known = families([*FAMILIES.values(), module["BACKWARDS"]])
    network = read_network({"interviewer": "ann", "node": [{"task": "backwards"}]}, "sue", families=known)
    assert network.nodes[0].questions == "written"
    item = written_item(known["backwards"], 1, "w", "Please write CAB backwards!")
    assert (item.prompt, item.answer) == ("Write CAB backwards.", "BAC")
